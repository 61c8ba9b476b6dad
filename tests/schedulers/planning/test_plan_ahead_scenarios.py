"""Plans compared in drawn futures: 3Sigma's two-job example, and plans carried out by hand."""

import heapq

import numpy as np
import pytest

from foresail.distributions.empirical import Empirical
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.mixture import Mixture
from foresail.distributions.point import Point
from foresail.distributions.uniform import Uniform
from foresail.model.preference import Preference, PreferenceKind
from foresail.schedulers._planning.beliefs import RuntimeBeliefs
from foresail.schedulers._planning.scenarios import (
    DrawnFutures,
    ListedPlan,
    best_in_futures,
    listed,
)
from foresail.schedulers.kernels.scenarios import carry_out
from planning_problems import built, job, outcome, racks, running, view_of, waiting

EXAMPLE = (
    "window_slots=8,slot_seconds=2.5,slo_value=1,best_effort_value={best_effort},"
    "best_effort_horizon_seconds=40,over_estimates=off,hopeless_jobs=drop,relative_gap=0,"
    "cycle_seconds=60,scenarios={scenarios}"
)
WIDE, NARROW = Uniform(0.0, 10.0), Uniform(2.5, 7.5)


def example(best_effort=0.1, scenarios=4000):
    """3Sigma's scheduler with the values of its two-job example."""
    text = EXAMPLE.format(best_effort=best_effort, scenarios=scenarios)
    return built(f"3sigma({text})")


def two_jobs(belief):
    """Its example: a job with the deadline 15 and one without, on one node."""
    return view_of(
        racks(1), waiting((job("slo", 1, deadline=15.0), belief), (job("be", 1), belief))
    )


def futures_of(scheduler, view):
    """The question of a view, and its futures."""
    demands = scheduler.demands(view)
    return demands, DrawnFutures(view, demands, scheduler._places, scheduler.parameters)


@pytest.mark.parametrize(("belief", "in_time"), [(WIDE, 0.875), (NARROW, 1.0)])
def test_what_running_second_is_really_worth(belief, in_time):
    """G1: after the other job the deadline is met with 0.875, which the program values at 0.5."""
    demands, futures = futures_of(example(), two_jobs(belief))
    nobody = np.zeros(0, np.bool_)
    second = ListedPlan(np.array([1, 0]), np.array([0, 1]), nobody)
    worth = futures.worth(second).mean(axis=0)
    assert worth[0] == pytest.approx(in_time, abs=4.0 * (0.11 / 4000) ** 0.5)
    assert worth[1] == pytest.approx(0.0875, abs=1e-4)
    planned = {WIDE: (4, 0.5), NARROW: (3, 1.0)}[belief]
    assert demands.problem.worth[0, planned[0]] == pytest.approx(planned[1], abs=1e-5)


@pytest.mark.parametrize(
    ("best_effort", "by_program", "in_futures"),
    [
        (0.1, "slo", "slo"),
        (0.9, "slo", "slo"),
        (1.2, "slo", "be"),
        (1.9, "slo", "be"),
        (2.1, "be", "be"),
    ],
)
def test_who_goes_first_by_program_and_in_futures(best_effort, by_program, in_futures):
    """G1: the worth at which the other job goes first is 2 to the program, and 1 in truth.

    It gains an eighth of its worth by going first, and the deadline loses an eighth.
    """
    for scenarios, first in ((0, by_program), (4000, in_futures)):
        starts, _ = outcome(example(best_effort, scenarios), two_jobs(WIDE))
        assert [name for name, start in starts.items() if start == 0.0] == [first]


def slow_starts(order, rows, cpus, runtimes, free, held, ends):
    """When each job of a list starts in one future, event by event, from the definition."""
    free, starts = free.astype(float).copy(), {}
    events = [(end, tuple(held[at])) for at, end in enumerate(ends)]
    heapq.heapify(events)
    clock = 0.0
    while True:
        for at, job_at in enumerate(order):
            if job_at in starts:
                continue
            before = [other for other in order[:at] if other not in starts]
            needed = sum((rows[other] * cpus[other] for other in before), np.zeros(free.size))
            if (~rows[job_at] | (free - needed >= cpus[job_at] - 1e-9)).all():
                starts[job_at] = clock
                free -= rows[job_at] * cpus[job_at]
                heapq.heappush(
                    events, (clock + runtimes[job_at], tuple(rows[job_at] * cpus[job_at]))
                )
        if not events:
            return [starts.get(at, np.inf) for at in range(cpus.size)]
        clock = events[0][0]
        while events and events[0][0] <= clock:
            free += np.array(heapq.heappop(events)[1])


@pytest.mark.parametrize("seed", range(8))
def test_plans_are_carried_out_as_defined(seed):
    """Starts in every future are those of an obvious simulation, on rows that nest."""
    random = np.random.default_rng(seed)
    jobs, busy, futures = 7, 4, 3
    in_first = random.random(jobs) < 0.4
    rows = np.stack([in_first, np.ones(jobs, np.bool_)], axis=1)
    cpus = random.integers(1, 5, jobs).astype(float)
    first = random.integers(0, 2, busy)
    held = np.stack([first, np.ones(busy, np.int64)], axis=1).astype(float)
    free = np.array([4.0 - first.sum(), 8.0 - busy])
    runtimes = np.round(random.uniform(1, 20, (futures, jobs)))
    ends = np.round(random.uniform(1, 20, (futures, busy)))
    order = random.permutation(jobs)[:6]
    starts = np.empty((futures, jobs))
    carry_out(order, rows * cpus[:, np.newaxis], runtimes, free, held, ends, starts)
    for at in range(futures):
        slow = slow_starts(order.tolist(), rows, cpus, runtimes[at], free, held, ends[at])
        assert starts[at].tolist() == slow


@pytest.mark.parametrize(
    "belief",
    [
        Point(5.0),
        Empirical([1.0, 2.0, 2.0, 9.0]),
        Uniform(3.0, 8.0),
        Mixture([Point(2.0), Uniform(4.0, 8.0)], [0.25, 0.75]),
    ],
    ids=lambda belief: type(belief).__name__,
)
@pytest.mark.parametrize("elapsed", [0.0, 1.5])
def test_quantiles_are_those_of_the_belief(belief, elapsed):
    """Drawn runtimes follow the belief, given what has passed."""
    levels = np.array([[0.05, 0.2, 0.4, 0.7, 0.95]])
    found = RuntimeBeliefs([belief]).quantiles(levels, elapsed)[0]
    expected = [belief.given(elapsed).quantile(float(level)) for level in levels[0]]
    assert found == pytest.approx(expected, abs=1e-6)


def test_runtimes_are_drawn_evenly():
    """Of four futures one falls into each quarter of a belief, and equal views draw the same."""
    view = two_jobs(WIDE)
    scheduler = example(scenarios=4)
    _, futures = futures_of(scheduler, view)
    drawn = np.sort(futures.runtimes, axis=0)
    assert (np.floor(drawn / 2.5) == np.arange(4)[:, np.newaxis]).all()
    _, again = futures_of(example(scenarios=4), view)
    assert (again.runtimes == futures.runtimes).all()


def drawn_view(seed):
    """Running and waiting jobs on two racks, of which some prefer the first."""
    random = np.random.default_rng(seed)
    likes = Preference(PreferenceKind.PARTITION, ("r1",), 1.5)

    def belief():
        return LogNormal(float(random.normal(3.5, 0.5)), float(random.uniform(0.3, 1.0)))

    busy = [
        running(job(f"r{at}", 1), belief(), [name], start=-float(random.exponential(20)), order=at)
        for at, name in enumerate(["n11", "n12", "n13", "n21", "n22", "n23"])
    ]
    pending = waiting(
        *(
            (
                job(
                    f"j{at}",
                    int(random.integers(1, 4)),
                    0.0,
                    float(random.uniform(40, 200)) if random.random() < 0.6 else None,
                    likes if random.random() < 0.5 else None,
                ),
                belief(),
            )
            for at in range(9)
        )
    )
    return view_of(racks(4, 4), pending, busy)


@pytest.mark.parametrize("seed", range(6))
def test_the_chosen_plan_is_worth_no_less(seed):
    """In its futures the chosen plan is at least as good as the program's, and starts are real."""
    view = drawn_view(seed)
    scheduler = built("3sigma(window_slots=12,slot_seconds=10,scenarios=64,preemption=no)")
    demands, futures = futures_of(scheduler, view)
    program = scheduler.solved(demands).choice
    best = best_in_futures(demands, futures, program)
    by_program = futures.values(listed(demands, program))
    assert futures.values(best).mean() >= by_program.mean()
    decision = scheduler.decide(view)
    started = {each.job_id for each in decision.starts}
    choice = futures.choice(best)
    assert started == {view.pending[at].job.job_id for at in np.flatnonzero(choice.slot == 0)}


def test_equal_views_give_equal_decisions():
    """Nothing but the view decides what is drawn."""
    text = "3sigma(window_slots=12,slot_seconds=10,scenarios=32,cycle_seconds=60)"
    assert built(text).decide(drawn_view(1)) == built(text).decide(drawn_view(1))


def test_a_job_that_outlived_its_belief_ends_when_it_is_expected_to():
    """Nothing is left of the belief: the corrected end counts, or one more cycle."""
    busy = [running(job("old", 1, deadline=1e4), 10, ["n11"], start=-50.0, end=33.0)]
    view = view_of(racks(1), waiting((job("next", 1, deadline=100.0), 10)), busy)
    _, futures = futures_of(built("3sigma(scenarios=3,preemption=no)"), view)
    plan = ListedPlan(np.array([0]), np.array([0]), np.zeros(0, np.bool_))
    assert futures.starts(plan)[:, 0].tolist() == [33.0, 33.0, 33.0]
