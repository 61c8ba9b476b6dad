"""Schedulers that plan ahead: the golden examples of 3Sigma and TetriSched, and plans by hand."""

from dataclasses import replace

import numpy as np
import pytest

from foresail.corrections.built_in import (
    ExponentialIncrement,
    ExponentialIncrementParameters,
)
from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.model.cluster import Cluster
from foresail.model.preference import Preference, PreferenceKind
from foresail.schedulers._planning.pricing import program_of
from foresail.schedulers._planning.problem import left_by
from planning_problems import built, job, outcome, racks, running, view_of, waiting

EXAMPLE = (
    "window_slots=8,slot_seconds=2.5,slo_value=1,best_effort_value={best_effort},"
    "best_effort_horizon_seconds=40,over_estimates=off,hopeless_jobs=drop,relative_gap=0,cycle_seconds=60"
)
WIDE, NARROW = Uniform(0.0, 10.0), Uniform(2.5, 7.5)


def example(best_effort=0.1):
    """3Sigma's scheduler with the values of its two-job example."""
    return built(f"3sigma({EXAMPLE.format(best_effort=best_effort)})")


def two_jobs(belief, cluster=None):
    """Its example: a job with the deadline 15 and one without, on one node."""
    both = waiting((job("slo", 1, deadline=15.0), belief), (job("be", 1), belief))
    return view_of(cluster or racks(1), both)


@pytest.mark.parametrize(
    ("belief", "slo", "consumption"),
    [
        (WIDE, [1, 1, 1, 0.75, 0.5, 0.25, 0, 0], [1, 0.75, 0.5, 0.25, 0, 0, 0, 0]),
        (NARROW, [1, 1, 1, 1, 0.5, 0, 0, 0], [1, 1, 0.5, 0, 0, 0, 0, 0]),
    ],
    ids=["wide", "narrow"],
)
def test_expected_worth_and_consumption(belief, slo, consumption):
    """G1: the rows of the two-job example in either scenario."""
    problem = example().demands(two_jobs(belief)).problem
    be = [0.0875, 0.08125, 0.075, 0.06875, 0.0625, 0.05625, 0.05, 0.04375]
    assert problem.worth == pytest.approx(np.array([slo, be]), abs=1e-5)
    assert problem.consumption == pytest.approx(np.array([consumption] * 2))
    assert problem.capacity == pytest.approx(np.ones((1, 8)))


@pytest.mark.parametrize("cluster", [racks(1), Cluster.of_processors(1)], ids=["node", "pool"])
@pytest.mark.parametrize(
    ("belief", "value", "starts"),
    [
        (WIDE, 1.0625, {"slo": 0.0, "be": 10.0}),
        (NARROW, 1.0875, {"be": 0.0, "slo": 7.5}),
        (Point(5.0), 1.0875, {"be": 0.0, "slo": 5.0}),
    ],
    ids=["wide", "narrow", "point"],
)
def test_two_job_example(belief, value, starts, cluster):
    """G1: who goes first depends on how sure the runtimes are; of equal starts the earliest."""
    view = two_jobs(belief, cluster)
    scheduler = example()
    solved = scheduler.solved(scheduler.demands(view))
    assert solved.value == pytest.approx(value, abs=1e-5)
    assert solved.gap < 1e-6
    assert outcome(scheduler, view) == (starts, [])


@pytest.mark.parametrize(("best_effort", "first"), [(1.9, "slo"), (2.1, "be")])
def test_worth_of_best_effort_decides_at_two(best_effort, first):
    """G1: from twice the worth of the job with the deadline on, the other one goes first."""
    scheduler, view = example(best_effort), two_jobs(WIDE)
    assert outcome(scheduler, view)[0][first] == 0.0
    if first == "be":
        assert scheduler.solved(scheduler.demands(view)).value == pytest.approx(2.3375, abs=1e-4)


@pytest.mark.parametrize(("belief", "options"), [(WIDE, 14), (NARROW, 13)], ids=["wide", "narrow"])
def test_size_of_the_example(belief, options):
    """G28: 16 options, fewer without worthless ones; a row a job and one a slot."""
    problem = example().demands(two_jobs(belief)).problem
    assert problem.worth.size == 16
    groups, slots = np.nonzero(problem.worth)
    size = program_of(problem, groups, slots).size
    assert (size.binaries, size.rows) == (options, 2 + 8)


@pytest.mark.parametrize(
    ("cost", "value", "stopped"),
    [(0.3, 0.7, True), (0.49, 0.51, True), (0.51, 0.5, False), (0.7, 0.5, False)],
)
def test_preemption_pays_below_a_half(cost, value, stopped):
    """G7: to stop the other job is worth it up to a cost of 0.5; otherwise wait for its end."""
    text = "window_slots=4,slot_seconds=2.5,slo_value=1,over_estimates=off,hopeless_jobs=drop"
    scheduler = built(f"3sigma({text},relative_gap=0,cycle_seconds=60)")
    busy = running(job("be", 1), WIDE, ["n11"], start=-5.0, end=5.0)
    view = view_of(racks(1), waiting((job("slo", 1, deadline=10.0), WIDE)), [busy])
    demands = scheduler.demands(view)
    assert demands.problem.worth[0] == pytest.approx([1, 0.75, 0.5, 0.25], abs=1e-5)
    assert demands.problem.victim_credit[0, 0] == pytest.approx([1, 0.5, 0, 0])
    costing = replace(demands.problem, victim_cost=np.array([cost]))
    solved = scheduler.solved(replace(demands, problem=costing))
    assert solved.value == pytest.approx(value, abs=1e-5)
    assert solved.choice.stopped.tolist() == [stopped]
    assert solved.choice.slot.tolist() == [0 if stopped else 2]


@pytest.mark.parametrize(
    ("over_estimates", "belief", "expected"),
    [
        ("on", Empirical([100.0, 200.0]), 0.825),
        ("off", Empirical([100.0, 200.0]), 0.0),
        ("adaptive", Empirical([40.0] + [200.0] * 49), 0.02 + 0.98 * 0.7),
        ("adaptive", Empirical([40.0] + [200.0] * 9), 0.1),
    ],
)
def test_over_estimates(over_estimates, belief, expected):
    """G6: a job that was hopeless from the start is worth something after its deadline (80 s)."""
    # the decay lasts for the window and the longest runtime: 20 slots of 10 s and 200 s
    text = f"window_slots=20,slot_seconds=10,slo_value=1,over_estimates={over_estimates}"
    scheduler = built(f"3sigma({text},hopeless_jobs=drop)")
    view = view_of(racks(1), waiting((job("slo", 1, deadline=80.0), belief)))
    assert scheduler.demands(view).problem.worth[0, 0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("cycle", "growth", "initial", "expected"),
    [
        (2.0, 2.0, 100.0, [102, 106, 114, 130, 162, 226]),
        (4.0, 1.0, 50.0, [54, 58, 62, 66, 70, 74]),
    ],
    ids=["3sigma", "tetrisched"],
)
def test_corrections_of_expired_estimates(cycle, growth, initial, expected):
    """G3 and H13: longer and longer steps, or one cycle after the other."""
    correction = ExponentialIncrement(ExponentialIncrementParameters(cycle, growth))
    some, current, made = job("a", 1), initial, []
    for count in range(6):
        current = correction.correct(some, Point(initial), initial, current, count)
        made.append(current)
    assert made == expected


FIGURE_4 = "window_slots={slots},slot_seconds=10,relative_gap=0,hopeless_jobs=drop,cycle_seconds=60"


def figure_4():
    """H1: three jobs with deadlines on three nodes."""
    jobs = waiting(
        (job("1", 2, deadline=10.0), 10), (job("2", 1, deadline=40.0), 20),
        (job("3", 3, deadline=20.0), 10),
    )  # fmt: skip
    return view_of(racks(3), jobs)


def test_tetrisched_meets_all_deadlines_of_its_example():
    """H1: globally and planning ahead, all three end in time, as only one order lets them."""
    scheduler = built(f"tetrisched({FIGURE_4.format(slots=3)})")
    assert outcome(scheduler, figure_4())[0] == {"1": 0.0, "3": 10.0, "2": 20.0}
    solved = scheduler.solved(scheduler.demands(figure_4()))
    assert solved.value == pytest.approx(3000.0, rel=1e-5)
    assert solved.gap < 1e-6


def test_without_planning_ahead_the_third_job_waits():
    """H1, NP: starts now only; the first two."""
    scheduler = built(f"tetrisched({FIGURE_4.format(slots=1)})")
    assert outcome(scheduler, figure_4())[0] == {"1": 0.0, "2": 0.0}


def test_one_job_after_the_other_misses_a_deadline():
    """H1, NG: in order of arrival the third job finds no three nodes in time."""
    scheduler = built(f"tetrisched({FIGURE_4.format(slots=3)},placing=in_order)")
    assert outcome(scheduler, figure_4())[0] == {"1": 0.0, "2": 0.0}


GPU_ELSEWHERE = "window_slots=9,slot_seconds=1,best_effort_value=10,best_effort_horizon_seconds=10"


@pytest.mark.parametrize(
    ("slowdown", "slots", "start", "nodes"),
    [
        (1.5, 9, 0.0, ["n21", "n22"]),
        (2.5, 9, 2.0, []),
        (2.5, 1, 0.0, ["n21", "n22"]),
    ],
)
def test_wait_or_fall_back(slowdown, slots, start, nodes):
    """H6: gpus are busy until 2 s; a job of 2 s runs elsewhere now unless that is too slow."""
    parameters = GPU_ELSEWHERE.replace("slots=9", f"slots={slots}")
    scheduler = built(f"tetrisched({parameters},relative_gap=0)")
    likes = Preference(PreferenceKind.ATTRIBUTE, ("gpu",), slowdown)
    busy = running(job("busy", 2, deadline=100.0), 2, ["n11", "n12"])
    view = view_of(racks(2, 2, gpu=(1,)), waiting((job("g", 2, preference=likes), 2)), [busy])
    assert outcome(scheduler, view)[0] == {"g": start}
    started = scheduler.decide(view).starts
    assert [name for each in started for name, _ in each.placement.tasks_by_node] == nodes


@pytest.mark.parametrize(
    ("taken", "start", "nodes"),
    [
        ([], 0.0, ["n11", "n12"]),
        (["n11"], 0.0, ["n12", "n21"]),
        (["n11", "n12"], 0.0, ["n21", "n22"]),
        (["n11", "n12", "n21"], None, []),
    ],
)
def test_gpus_if_they_are_free(taken, start, nodes):
    """H2: two gpu nodes, else any two, else none; only a start now is considered."""
    scheduler = built("tetrisched(window_slots=1,slot_seconds=1)")
    likes = Preference(PreferenceKind.ATTRIBUTE, ("gpu",), 1.5)
    busy = [running(job(name, 1), 99, [name], order=order) for order, name in enumerate(taken)]
    pending = waiting((job("g", 2, preference=likes), 2))
    view = view_of(racks(2, 2, gpu=(1,)), pending, busy)
    assert outcome(scheduler, view)[0].get("g") == start
    placed = [n for each in scheduler.decide(view).starts for n, _ in each.placement.tasks_by_node]
    assert placed == nodes


def test_rack_local_and_gpu_jobs_share_the_cluster():
    """H5 without its third job: the rack-local job leaves the gpu rack to whom it is faster for."""
    scheduler = built(f"tetrisched({GPU_ELSEWHERE},relative_gap=0)")
    same = Preference(PreferenceKind.SAME, ("rack",), 1.5)
    gpu = Preference(PreferenceKind.ATTRIBUTE, ("gpu",), 1.5)
    pending = waiting((job("m", 2, preference=same), 2), (job("g", 2, preference=gpu), 2))
    decision = scheduler.decide(view_of(racks(2, 2, gpu=(1,)), pending))
    placed = {each.job_id: each.placement.tasks_by_partition for each in decision.starts}
    assert placed == {"g": (("r1", 2),), "m": (("r2", 2),)}


def test_one_task_a_rack():
    """A job that wants its tasks apart gets one node in each rack, or waits for that."""
    scheduler = built(f"tetrisched({GPU_ELSEWHERE},relative_gap=0)")
    apart = Preference(PreferenceKind.SPREAD, ("rack",), 3.0)
    view = view_of(racks(2, 2), waiting((job("a", 2, preference=apart), 3)))
    (start,) = scheduler.decide(view).starts
    assert start.placement.tasks_by_node == (("n11", 1), ("n21", 1))


def test_preferences_that_overlap_are_all_kept():
    """Racks {1,2}, {2,3} and {1,3}: all three gangs fit at once, each within its own."""
    scheduler = built("tetrisched(window_slots=2)")
    pending = waiting(
        *(
            (job(name, 2, 0.0, 100.0, Preference(PreferenceKind.PARTITION, tuple(racks_), 9.0)), 20)
            for name, racks_ in (("a", ("r1", "r2")), ("b", ("r2", "r3")), ("c", ("r1", "r3")))
        )
    )
    view = view_of(racks(2, 2, 2), pending)
    decision = scheduler.decide(view)
    assert {each.job_id for each in decision.starts} == {"a", "b", "c"}
    for start, each in zip(decision.starts, pending, strict=True):
        homes = {rack for rack, _ in start.placement.tasks_by_partition}
        assert homes <= set(each.job.preference.names)


def test_nobody_is_stopped_for_a_later_start():
    """A job whose plan needs another's nodes later only stops it when that time has come."""
    scheduler = built("3sigma(window_slots=4,slot_seconds=10,over_estimates=off)")
    long = running(job("be", 1), 1000, ["n11"])
    short = running(job("slo", 1, deadline=50.0), 20, ["n12"], order=1)
    pending = waiting((job("wide", 2, deadline=45.0), 10))
    starts, stopped = outcome(scheduler, view_of(racks(2), pending, [long, short], 5.0))
    assert starts == {"wide": 25.0}
    assert stopped == []


def test_capacity_is_kept_in_expectation():
    """No row of the plan is overdrawn in any slot."""
    scheduler = example()
    demands = scheduler.demands(two_jobs(WIDE))
    left = left_by(demands.problem, scheduler.solved(demands).choice)
    assert left.min() >= -1e-6
