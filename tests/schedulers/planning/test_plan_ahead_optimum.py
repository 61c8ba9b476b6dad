"""Plans against everything that could be planned: brute force, and the general path of STRL."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.distributions.basic import Uniform
from foresail.distributions.empirical import Empirical
from foresail.model.job import DeadlineValue, DecayingValue
from foresail.model.preference import Preference, PreferenceKind
from foresail.schedulers._planning.problem import PlanChoice, greedy, left_by, value_of
from foresail.strl.expression import Sum, Supply
from foresail.strl.solving import solve
from planning_problems import built, job, outcome, racks, running, view_of, waiting
from strl_shapes import Gang, StartWindow, either, unconstrained, within

SLOTS, SLOT = 4, 10.0
EXACT = f"window_slots={SLOTS},slot_seconds={SLOT},relative_gap=0,hopeless_jobs=drop"
AMPLE = f"{EXACT},cycle_seconds=60"
HORIZON = 200.0

beliefs = st.one_of(
    st.integers(1, 50).map(float),
    st.lists(st.integers(1, 50).map(float), min_size=2, max_size=4).map(Empirical),
    st.tuples(st.integers(0, 20), st.integers(1, 30)).map(
        lambda pair: Uniform(float(pair[0]), float(pair[0] + pair[1]))
    ),
)
preferences = st.one_of(
    st.none(),
    st.sampled_from(
        [
            Preference(PreferenceKind.ATTRIBUTE, ("gpu",), 2.0),
            Preference(PreferenceKind.SAME, ("rack",), 1.5),
            Preference(PreferenceKind.PARTITION, ("r1", "r2"), 2.0),
            Preference(PreferenceKind.PARTITION, ("r2", "r3"), 2.0),
        ]
    ),
)
demands = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.one_of(st.none(), st.integers(10, 90).map(float)),
        preferences,
        beliefs,
    ),
    min_size=1,
    max_size=3,
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def random_view(asked, busy):
    """A view of six nodes in three racks, some of them busy, the first rack with gpus."""
    jobs = [
        (job(f"j{at}", tasks, 0.0, deadline, preference), belief)
        for at, (tasks, deadline, preference, belief) in enumerate(asked)
    ]
    names = ["n11", "n12", "n21", "n22", "n31", "n32"]
    held = [
        running(job(f"r{at}", 1), belief, [name], order=at)
        for at, (name, belief) in enumerate(zip(names, busy, strict=False))
        if belief is not None
    ]
    return view_of(racks(2, 2, 2, gpu=(1,)), waiting(*jobs), held)


def best_by_trying(problem):
    """The value of the best choice, by trying all of them."""
    options = [
        [(-1, -1)]
        + [
            (group, slot)
            for group in range(problem.first_group[at], problem.first_group[at + 1])
            for slot in range(problem.slots)
            if problem.worth[group, slot] > 0.0
        ]
        for at in range(problem.jobs)
    ]
    best = 0.0
    for chosen in product(*options):
        group, slot = np.array(chosen, np.int64).T
        choice = PlanChoice(group.copy(), slot.copy(), np.zeros(problem.victim_cost.size, np.bool_))
        value = value_of(problem, choice)
        if value > best and left_by(problem, choice).min() >= -1e-7:
            best = value
    return best


@quick
@given(demands, st.lists(st.one_of(st.none(), beliefs), max_size=6))
def test_nothing_better_can_be_planned(asked, busy):
    """Value and bound enclose the best of all choices, and no row is overdrawn."""
    scheduler = built(f"3sigma({AMPLE},preemption=no)")
    problem = scheduler.demands(random_view(asked, busy)).problem
    solved = scheduler.solved(scheduler.demands(random_view(asked, busy)))
    best = best_by_trying(problem)
    assert solved.value == pytest.approx(best, rel=1e-4, abs=1e-6)
    assert solved.bound >= best - 1e-6 * max(best, 1.0)
    assert solved.value >= value_of(problem, greedy(problem))
    assert left_by(problem, solved.choice).min() >= -1e-6


@quick
@given(demands, st.lists(st.one_of(st.none(), beliefs), max_size=6))
def test_what_is_to_start_now_does(asked, busy):
    """All that a plan starts now is placed, within what it prefers if it was planned so."""
    scheduler = built(f"3sigma({AMPLE},preemption=no)")
    view = random_view(asked, busy)
    asking = scheduler.demands(view)
    choice = scheduler.solved(asking).choice
    decision = scheduler.decide(view)
    now = [view.pending[at].job.job_id for at in np.flatnonzero(choice.slot == 0)]
    assert [each.job_id for each in decision.starts] == now
    for start in decision.starts:
        at = [each.job.job_id for each in view.pending].index(start.job_id)
        wanted = view.pending[at].job.preference
        if wanted is not None and asking.spaces[choice.group[at]].slowdown == 1.0:
            nodes = {n.name: (n, p.name) for p in view.cluster.partitions for n in p.nodes}
            assert wanted.holds((*nodes[n], tasks) for n, tasks in start.placement.tasks_by_node)


def strl_of(view, nodes, slowdown):
    """The view's jobs in STRL, with the values that the scheduler gives them."""
    parts = []
    for each in view.pending:
        some = each.job
        if some.value is None:
            value = DecayingValue(0.0, HORIZON)
        else:
            value = DeadlineValue(some.value.deadline_seconds, 1000.0)
        window = StartWindow(0.0, (SLOTS - 1) * SLOT, SLOT)
        gang = Gang(some.tasks, each.prediction.mean(), value, window)
        if some.preference is None:
            parts.append(unconstrained(gang, nodes))
        else:
            gpus = frozenset(name for name in nodes if name[1] == "1")
            slower = unconstrained(gang.slower(slowdown), nodes)
            parts.append(either((slower, within(gang, [gpus]))))
    return Sum(tuple(part for part in parts if part is not None))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nested", [False, True], ids=["alike", "nested"])
def test_as_good_as_the_general_path(seed, nested):
    """The plan is worth what STRL's program is, with sets that nest at least as much.

    More is possible: the sets' rows let the later part of a job's run move to other nodes.
    """
    random = np.random.default_rng(seed)
    likes = Preference(PreferenceKind.ATTRIBUTE, ("gpu",), 2.0) if nested else None
    asked = [
        (
            job(
                f"j{at}",
                int(random.integers(1, 5)),
                0.0,
                float(random.integers(20, 90)) if random.random() < 0.6 else None,
                likes if random.random() < 0.5 else None,
            ),
            float(random.integers(5, 45)),
        )
        for at in range(7)
    ]
    busy = running(job("r", 2), 15.0, ["n11", "n21"])
    view = view_of(racks(3, 3, gpu=(1,)), waiting(*asked), [busy])
    scheduler = built(f"tetrisched({AMPLE},best_effort_horizon_seconds={HORIZON})")
    solved = scheduler.solved(scheduler.demands(view))
    nodes = frozenset(f"n{rack}{at}" for rack in (1, 2) for at in (1, 2, 3))
    supply = Supply(nodes, {"n11": 15.0, "n21": 15.0})
    general = solve(strl_of(view, nodes, 2.0), supply, SLOT)
    assert solved.value >= general.value * (1 - 1e-5)
    if not nested:
        assert solved.value == pytest.approx(general.value, rel=1e-5)
    assert solved.gap < 1e-4


def test_of_alike_jobs_the_earlier_goes_first():
    """Six equal jobs on two nodes leave in order of arrival."""
    scheduler = built(f"tetrisched({AMPLE})")
    jobs = waiting(*((job(f"j{at}", 1, 0.0, 95.0), 10) for at in range(6)))
    starts, _ = outcome(scheduler, view_of(racks(2), jobs))
    assert starts == {f"j{at}": 10.0 * (at // 2) for at in range(6)}


def test_a_solver_that_runs_out_of_time_leaves_the_greedy_plan():
    """With no time to speak of the plan is greedy's, and the bound says how good that is."""
    scheduler = built(f"3sigma({EXACT},cycle_seconds=1e-9)")
    asked = [(3, 40.0, None, 20.0), (2, 40.0, None, 20.0), (4, None, None, Uniform(5.0, 30.0))]
    solved = scheduler.solved(scheduler.demands(random_view(asked, [])))
    assert solved.value == solved.greedy_value > 0.0
    assert solved.bound >= solved.value


def test_worth_is_counted_once_for_a_stopped_job():
    """What a choice is worth falls by what stopping costs."""
    scheduler = built(f"3sigma({AMPLE})")
    view = view_of(racks(1), (), [running(job("be", 1), 30.0, ["n11"])], now=5.0)
    problem = scheduler.demands(replace(view, pending=waiting((job("a", 1), 10.0)))).problem
    nothing = PlanChoice.nothing(problem)
    stopping = replace(nothing, stopped=np.array([True]))
    assert value_of(problem, stopping) == value_of(problem, nothing) - problem.victim_cost[0]
