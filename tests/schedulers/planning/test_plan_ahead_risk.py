"""Capacity that is kept with a stated probability: plans carried out with drawn runtimes."""

from dataclasses import replace

import numpy as np
import pytest

from foresail.distributions.basic import Uniform
from foresail.distributions.log_normal import LogNormal
from foresail.model.errors import InputError
from foresail.model.preference import Preference, PreferenceKind
from foresail.schedulers._planning.overflow import AskedRows, charged
from foresail.schedulers._planning.problem import PlanChoice
from planning_problems import built, job, outcome, racks, running, view_of, waiting

SLOTS, SLOT, NODES = 12, 30.0, 24
DRAWS = 4000
PLANS = f"window_slots={SLOTS},slot_seconds={SLOT},preemption=no,cycle_seconds=1"


def drawn_belief(random):
    """Minutes, more or less certain."""
    return LogNormal(float(random.normal(5.0, 0.5)), float(random.uniform(0.3, 1.2)))


def drawn_view(seed, sizes=(NODES,)):
    """A cluster full of running jobs, and as many waiting ones that would like more than it has."""
    random = np.random.default_rng(seed)
    names = [f"n{rack}{at}" for rack, size in enumerate(sizes, 1) for at in range(1, size + 1)]
    busy, free = [], [*names]
    while len(free) > 2:
        tasks = min(int(random.integers(1, 7)), len(free))
        nodes, free = free[:tasks], free[tasks:]
        begun = -float(random.exponential(60.0))
        order = len(busy)
        busy.append(
            running(job(f"r{order}", tasks), drawn_belief(random), nodes, start=begun, order=order)
        )
    first = Preference(PreferenceKind.PARTITION, ("r1",), 1.5) if len(sizes) > 1 else None
    pending = waiting(
        *(
            (
                job(
                    f"j{at}",
                    int(random.integers(1, 7)),
                    0.0,
                    float(random.uniform(100, 900)) if random.random() < 0.6 else None,
                    first if random.random() < 0.5 else None,
                ),
                drawn_belief(random),
            )
            for at in range(16)
        )
    )
    return view_of(racks(*sizes), pending, busy)


def planned(view, parameters):
    """The question, and the plan that is chosen."""
    scheduler = built(f"3sigma({PLANS}{parameters})")
    demands = scheduler.demands(view)
    return demands, scheduler.solved(demands).choice


def overflow_probability(demands, choice):
    """Probability of every row to be asked for more than it has; shape (rows, slots)."""
    problem = demands.problem
    asked = AskedRows.by_running(demands, choice.stopped)
    only = np.zeros_like(problem.worth)
    only[choice.group[choice.planned], choice.slot[choice.planned]] = 1.0
    asked.fill(problem, choice.planned, only, 1.0, PlanChoice.nothing(problem))
    rows = np.arange(asked.most.size)
    return 1.0 - asked.cumulative[rows, :, asked.most]


def realised(view, demands, choice, seed=0):
    """How often the whole cluster is asked for more than it has, by drawing runtimes."""
    random = np.random.default_rng(seed)
    moments = np.arange(SLOTS) * SLOT
    asked = np.zeros((DRAWS, SLOTS))
    for each in view.running:
        elapsed = each.elapsed_seconds(view.now)
        left = each.prediction.given(elapsed).sample(random, DRAWS) - elapsed
        asked += each.job.tasks * (left[:, np.newaxis] > moments)
    for at in choice.planned.tolist():
        start = choice.slot[at] * SLOT
        slowdown = demands.spaces[choice.group[at]].slowdown
        ends = start + slowdown * demands.pending[at].prediction.sample(random, DRAWS)
        here = (moments >= start) & ((ends[:, np.newaxis] > moments) | (moments == start))
        asked += demands.pending[at].job.tasks * here
    total = sum(partition.total.cpus for partition in view.cluster.partitions)
    return (asked > total + 1e-9).mean(axis=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("risk", [0.2, 0.05])
def test_no_slot_is_overdrawn_more_likely_than_said(seed, risk):
    """In drawn futures no slot asks for more than there is more often than the risk says."""
    view = drawn_view(seed)
    demands, choice = planned(view, f",overflow_risk={risk}")
    assert choice.planned.size > 3
    error = 4.0 * np.sqrt(risk * (1.0 - risk) / DRAWS)
    assert (realised(view, demands, choice) <= risk + error).all()
    assert overflow_probability(demands, choice).max() <= risk + 1e-6


def test_in_expectation_slots_are_overdrawn_nearly_every_other_time():
    """What the published systems plan: over half of all later slots are above a risk of 0.2."""
    shares = []
    for seed in range(5):
        view = drawn_view(seed)
        demands, choice = planned(view, "")
        shares.append(realised(view, demands, choice)[1:] > 0.2)
    assert np.mean(shares) > 0.5


def test_the_probability_is_what_happens():
    """The exact probability of every slot agrees with how often it happens."""
    view = drawn_view(1)
    demands, choice = planned(view, "")
    exact = overflow_probability(demands, choice)[0]
    assert realised(view, demands, choice) == pytest.approx(exact, abs=4.0 * 0.5 / DRAWS**0.5)


def test_every_set_of_places_keeps_the_risk():
    """Where some jobs prefer a rack, the rack keeps the risk as the cluster does."""
    view = drawn_view(3, sizes=(12, 12))
    demands, choice = planned(view, ",overflow_risk=0.1")
    probability = overflow_probability(demands, choice)
    assert probability.shape[0] > 1
    assert probability.max() <= 0.1 + 1e-6
    assert (realised(view, demands, choice) <= 0.12).all()


def test_less_risk_is_worth_less():
    """Plans that have to be surer are worth less, over eight crowds.

    Of one alone that need not be: making a plan fit its risk may cost a job that a surer one kept.
    """
    worth = []
    for parameters in ("", ",overflow_risk=0.3", ",overflow_risk=0.1", ",overflow_risk=0.01"):
        scheduler = built(f"3sigma({PLANS}{parameters})")
        views = map(drawn_view, range(8))
        worth.append(sum(scheduler.solved(scheduler.demands(view)).value for view in views))
    assert worth == sorted(worth, reverse=True)
    assert worth[-1] < 0.9 * worth[0]


@pytest.mark.parametrize(
    ("risk", "start"), [("none", 20.0), ("0.4", 20.0), ("0.3", 30.0), ("0.1", 30.0), ("0.02", 40.0)]
)
def test_by_hand(risk, start):
    """Eight jobs hold eight nodes, each until some time before 40 s; a job of four waits.

    Four are free in expectation at 20 s. That fewer are has the probability 93/256 = 0.363 then,
    0.027 at 30 s, and 0 at 40 s.
    """
    busy = [
        running(job(f"r{at}", 1, deadline=1e3), Uniform(0.0, 40.0), [f"n1{at + 1}"], order=at)
        for at in range(8)
    ]
    view = view_of(racks(8), waiting((job("wide", 4, deadline=300.0), 10)), busy)
    scheduler = built(f"3sigma(window_slots=9,slot_seconds=10,overflow_risk={risk})")
    assert outcome(scheduler, view)[0]["wide"] == start


def test_starts_now_are_certain():
    """The risk is about later slots: what is free now is given out all the same."""
    view = view_of(racks(4), waiting(*((job(f"j{at}", 1), Uniform(0, 600)) for at in range(4))))
    starts, _ = outcome(built(f"3sigma({PLANS},overflow_risk=0.001)"), view)
    assert starts == dict.fromkeys(("j0", "j1", "j2", "j3"), 0.0)


def test_charges_lie_between_the_mean_and_the_most():
    """Nobody is charged less than expected or more than it may hold; now, exactly that."""
    scheduler = built(f"3sigma({PLANS})")
    demands = scheduler.demands(drawn_view(4))
    problem = charged(demands, 0.1)
    expected = demands.problem.consumption
    assert (problem.consumption >= expected - 1e-9).all()
    assert (problem.consumption <= expected[:, :1] + 1e-9).all()
    assert problem.consumption[:, 0] == pytest.approx(expected[:, 0])
    assert problem.capacity[:, 0] == pytest.approx(demands.problem.capacity[:, 0])
    assert (problem.capacity[:, 1:] < demands.problem.capacity[:, 1:]).all()
    assert (problem.capacity >= 0.0).all()


def test_points_leave_nothing_to_risk():
    """Of runtimes that are certain the plan is that in expectation."""
    view = drawn_view(3)
    values = []
    for parameters in ("distribution=no", "distribution=no,overflow_risk=0.01"):
        scheduler = built(f"3sigma({PLANS},relative_gap=0,{parameters})")
        demands = scheduler.demands(view)
        solved = scheduler.solved(demands)
        values.append(solved.value)
        assert overflow_probability(demands, solved.choice).max() <= 1e-9
    assert values[1] == pytest.approx(values[0], rel=0.01)


def test_who_is_stopped_is_not_counted():
    """A plan that stops a running job has its nodes for sure."""
    text = "window_slots=4,slot_seconds=10,over_estimates=off,overflow_risk=0.01"
    scheduler = built(f"3sigma({text})")
    busy = [running(job("be", 2), Uniform(100.0, 200.0), ["n11", "n12"], start=-5.0)]
    view = view_of(racks(2), waiting((job("slo", 2, deadline=20.0), 10)), busy)
    assert outcome(scheduler, view) == ({"slo": 0.0}, ["be"])


@pytest.mark.parametrize("risk", ["0", "0.6", "-0.1", "nan"])
def test_a_risk_is_a_probability_of_at_most_a_half(risk):
    """Anything else is refused by name."""
    with pytest.raises(InputError, match="overflow_risk"):
        built(f"3sigma(overflow_risk={risk})")


def test_large_machines_are_counted_in_larger_units():
    """On 4,000 cpus the probability is no less than the one counted by cpu, and not much more."""
    view = drawn_view(1)
    demands, choice = planned(view, "")
    cpus = 4000.0 / NODES
    problem = demands.problem
    larger = replace(
        demands,
        problem=replace(
            problem,
            consumption=problem.consumption * cpus,
            capacity=problem.capacity * cpus,
        ),
        held=demands.held * cpus,
    )
    exact = overflow_probability(demands, choice)
    rough = overflow_probability(larger, choice)
    assert (rough >= exact - 1e-9).all()
    assert (rough <= exact + 0.05).all()
    assert (rough > exact + 1e-6).any()
