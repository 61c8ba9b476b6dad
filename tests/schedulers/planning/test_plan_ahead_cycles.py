"""What goes on from cycle to cycle: plans and prices handed on, records, failures of solvers."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from foresail.milp.highs import Highs
from foresail.model.errors import InputError, UnknownNameError
from foresail.schedulers._planning import solving
from foresail.schedulers._planning.demands import require_numbers
from foresail.schedulers._planning.problem import fitting, left_by, value_of
from foresail.schedulers._planning.triage import Turn, carried_from, hint_from, moved_on
from planning_problems import built, crowd, job, racks, view_of, waiting

SLOTS = "window_slots=6,slot_seconds=10,hopeless_jobs=drop,cycle_seconds=600"


@pytest.mark.parametrize("policy", ["3sigma", "tetrisched"])
def test_same_views_same_decisions(policy):
    """Two schedulers that see the same views one after the other decide the same every time."""
    views = [crowd(3, now) for now in (1.0, 4.0, 7.0, 12.0)]
    first, second = built(f"{policy}({SLOTS})"), built(f"{policy}({SLOTS})")
    assert [first.decide(view) for view in views] == [second.decide(view) for view in views]


def test_asked_again_at_the_same_moment():
    """The second answer to a view begins where the first did, not with the first."""
    scheduler = built(f"3sigma({SLOTS})")
    scheduler.decide(crowd(5, 1.0))
    assert scheduler.decide(crowd(5, 4.0)) == scheduler.decide(crowd(5, 4.0))


@pytest.mark.parametrize("seed", range(6))
def test_hint_is_a_plan(seed):
    """A plan handed on fits the next moment, and its prices bound every plan of that moment."""
    scheduler = built(f"3sigma({SLOTS},relative_gap=0)")
    demands = scheduler.demands(crowd(seed, 1.0))
    solved = scheduler.solved(demands)
    carried = moved_on(carried_from(demands, solved, 1.0, 10.0, Turn()), 8.0, 10.0)
    later = scheduler.demands(crowd(seed, 8.0))
    problem = fitting(later.problem)
    hint = hint_from(carried, later, problem)
    assert left_by(problem, hint.choice).min() >= -1e-6
    best = scheduler.solved(later)
    warm = scheduler.solved(later, carried)
    assert value_of(problem, hint.choice) <= best.bound + 1e-6
    assert warm.bound >= best.value - 1e-6 * best.value
    assert warm.value >= warm.greedy_value
    assert warm.value == pytest.approx(best.value, rel=1e-4)


def test_prices_move_with_time():
    """A price of a moment stays that moment's: half a slot later, half of two slots' prices."""
    scheduler = built(f"3sigma({SLOTS})")
    demands = scheduler.demands(crowd(1))
    prices = np.arange(6.0) * np.ones((len(demands.rows), 1))
    solved = replace(scheduler.solved(demands), prices=prices)
    carried = carried_from(demands, solved, 0.0, 10.0, Turn())
    for moved in moved_on(carried, 15.0, 10.0).prices.values():
        assert moved == pytest.approx([1.5, 2.5, 3.5, 4.5, 5.0, 5.0])


def test_options_that_never_fit_are_worth_nothing():
    """What needs more than there is with everybody stopped is left out, and nothing else."""
    scheduler = built(f"3sigma({SLOTS})")
    view = crowd(2, 5.0)
    problem = scheduler.demands(view).problem
    full = replace(problem, capacity=problem.capacity * 0.0)
    room = full.victim_credit.sum(axis=0)
    kept = fitting(full).worth > 0.0
    for group, slot in np.argwhere(problem.worth > 0.0):
        needs = full.consumption[group, : problem.slots - slot]
        rows = room[full.cover[full.group_set[group]] > 0.0, slot:]
        assert kept[group, slot] == bool((needs <= rows + 1e-7).all())


def test_record_of_a_cycle():
    """The last cycle says what it was worth and what it cost; one without jobs says nothing."""
    scheduler = built(f"3sigma({SLOTS})")
    view = crowd(4, 2.0)
    scheduler.decide(view)
    last = scheduler.last
    assert (last.now, last.pending, last.running) == (2.0, 9, 3)
    assert last.greedy_value <= last.value <= last.bound
    assert 0.0 <= last.gap <= 0.02
    assert last.cycle_seconds > 0.0
    scheduler.decide(replace(view, pending=()))
    assert scheduler.last is None


class Failing(Highs):
    """A solver that breaks when it is asked."""

    def relaxation(self, program):
        """Breaks."""
        raise RuntimeError("out of order")

    def solve(self, program, limits, start=None):
        """Breaks."""
        raise RuntimeError("out of order")


def test_a_solver_that_fails_loses_no_job(monkeypatch):
    """Every job is still started, planned or told why not; it is said once, and in the record."""
    monkeypatch.setattr(solving, "_ready_solver", lambda name: Failing(None))
    solving._warn_once.cache_clear()
    scheduler = built(f"3sigma({SLOTS},relative_gap=0)")
    view = crowd(4, 2.0)
    with pytest.warns(RuntimeWarning, match="highs failed .*out of order"):
        decision = scheduler.decide(view)
    assert scheduler.last.solver_failure == "out of order"
    assert scheduler.last.value >= scheduler.last.greedy_value > 0.0
    told = {each.job_id for each in decision.starts} | set(decision.reasons)
    assert told == {each.job.job_id for each in view.pending}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.decide(crowd(4, 3.0))


def test_unknown_solver():
    """A solver that nobody knows is refused when the scheduler is made."""
    with pytest.raises(UnknownNameError, match="nonsense"):
        built("3sigma(solver=nonsense)")


def test_a_belief_without_numbers_is_refused():
    """The message names the job whose predicted runtime is not a number."""
    scheduler = built(f"3sigma({SLOTS})")
    fine, odd = waiting((job("fine", 1), 10.0), (job("odd", 1), 10.0))
    view = view_of(racks(2), (fine, replace(odd, planned_seconds=np.nan)))
    with pytest.raises(InputError, match="job odd"):
        scheduler.decide(view)


@pytest.mark.parametrize("array", ["worth", "consumption"])
def test_options_without_numbers_are_refused(array):
    """Nor is a plan made where a worth or a consumption is not a number."""
    scheduler = built(f"3sigma({SLOTS})")
    demands = scheduler.demands(
        view_of(racks(2), waiting((job("fine", 1), 9.0), (job("odd", 1), 9.0)))
    )
    numbers = getattr(demands.problem, array).copy()
    numbers[1, 2] = np.nan
    problem = replace(demands.problem, **{array: numbers})
    with pytest.raises(InputError, match="job odd"):
        require_numbers(replace(demands, problem=problem))
