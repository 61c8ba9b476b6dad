"""Planning ahead stops after so much work, whatever the clock says, but for disasters."""

from itertools import count
from types import SimpleNamespace

import pytest

from foresail.schedulers._planning.problem import Budget, checks_within, iterations_within
from planning_problems import built, crowd

WINDOW = "window_slots=6,slot_seconds=10,hopeless_jobs=drop,relative_gap=0,solver_share=1"
BUDGETS = (1e-9, 0.0005, 0.002, 0.02, 60.0)


def ticking(seconds):
    """A clock on which so many seconds pass whenever it is looked at."""
    looks = count()
    return SimpleNamespace(perf_counter=lambda: seconds * next(looks))


def decided(seed, budget, clock, monkeypatch):
    """What is decided about a crowd, and what that is worth."""
    monkeypatch.setattr("foresail.schedulers._planning.problem.time", clock)
    scheduler = built(f"3sigma({WINDOW},cycle_seconds={budget})")
    return scheduler.decide(crowd(seed, 1.0, 30)), scheduler.last


@pytest.mark.parametrize("seed", range(4))
def test_a_slow_machine_decides_as_a_fast_one(seed, monkeypatch):
    """However little may be spent; of more work a plan is worth more, or as much."""
    worth = []
    for budget in BUDGETS:
        fast, known = decided(seed, budget, ticking(1e-9), monkeypatch)
        slow, also = decided(seed, budget, ticking(1e-3), monkeypatch)
        assert fast == slow
        assert (known.value, known.bound, known.columns) == (also.value, also.bound, also.columns)
        worth.append(known.value)
    assert worth[0] == known.greedy_value
    assert worth[-1] == max(worth) > worth[0]


def test_work_is_what_ends_a_plan(monkeypatch):
    """Between nothing and enough there are budgets that stop midway: in bounds, if not in plans."""
    bounds = {
        decided(seed, budget, ticking(0.0), monkeypatch)[1].bound
        for seed in (0, 1)
        for budget in BUDGETS
    }
    assert len(bounds) > 4


def test_the_clock_ends_a_disaster(monkeypatch):
    """A machine that stands still for minutes leaves greedy's plan."""
    _, last = decided(0, 60.0, ticking(5000.0), monkeypatch)
    assert (last.value, last.columns) == (last.greedy_value, 0)


def test_budgets_are_counted():
    """What is spent is gone; one iteration is always allowed, a program only if it can begin."""
    budget = Budget(1.0)
    budget.spend(0.75)
    assert (budget.left, budget.is_spent) == (0.25, False)
    budget.spend(0.25)
    assert budget.is_spent
    assert (iterations_within(0.0, 1000), checks_within(0.0, 1000)) == (1, 0)
    assert iterations_within(2.0, 100) == 2 * iterations_within(1.0, 100)
    assert iterations_within(1e300, 0) <= 10**9
