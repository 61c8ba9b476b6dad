"""Jobs worth most are taken whole: what that leaves of a bound, and programs of them alone."""

from dataclasses import replace

import numpy as np
import pytest

from foresail.milp.solver import Limits, find_solver
from foresail.schedulers._planning import solving
from foresail.schedulers._planning.pricing import program_of, whole_jobs
from foresail.schedulers._planning.problem import Problem, left_by, value_of
from foresail.schedulers._planning.solving import Effort, solve_problem
from long_series import some_of

SLOTS = 6
MUCH_IN_VAIN = 1e9


def question(worth, needs, capacity, costs=(), given_back=()):
    """Jobs of one group each on one row: worth by slot, cpus by slot after the start."""
    worth = np.array(worth, np.float64)
    return Problem(
        first_group=np.arange(len(worth) + 1),
        group_set=np.zeros(len(worth), np.int64),
        consumption=np.array(needs, np.float64),
        worth=worth,
        cover=np.ones((1, 1)),
        capacity=np.array([capacity], np.float64),
        victim_cost=np.array(costs, np.float64),
        victim_credit=np.array(given_back, np.float64)[:, None, None]
        * np.ones((1, 1, len(capacity))),
    )


def crowd(seed, costs=()):
    """Ten jobs worth 1,000 until their deadlines and four worth about 1, for a few slots each."""
    random = np.random.default_rng(seed)
    deadline, slots = random.integers(2, SLOTS + 1, 10), np.arange(SLOTS)
    great = np.where(slots < deadline[:, None], 1000.0, 0.0)
    small = random.uniform(0.5, 1.0, (4, 1)) * np.linspace(1.0, 0.8, SLOTS)
    runs = slots < random.integers(1, SLOTS, (14, 1))
    needs = random.integers(2, 8, (14, 1)) * runs
    given_back = random.integers(1, 4, len(costs))
    return question(np.vstack((great, small)), needs, [9.0] * SLOTS, costs, given_back)


def best_of(asked):
    """What the best plan of all is worth, by the program of everything."""
    groups, slots = np.nonzero(asked.worth > 0.0)
    found = find_solver("highs").solve(program_of(asked, groups, slots), Limits(relative_gap=0.0))
    return found.objective


@pytest.mark.parametrize(
    ("bound", "attainable"),
    [(1999.0, 1002.0), (2000.0, 2000.0), (2001.5, 2001.5), (2371.0, 2002.0), (999.0, 2.0)],
)
def test_what_lies_between_whole_jobs_is_out_of_reach(bound, attainable):
    """Three jobs worth 1,000 and two worth 1: a plan is worth so many thousands and 2 at most."""
    worth = [[1000.0, 0.0]] * 3 + [[1.0, 0.9]] * 2
    whole = whole_jobs(question(worth, np.ones((5, 2)), [2, 2]))
    assert whole.jobs.tolist() == [True] * 3 + [False] * 2
    assert (whole.others, whole.little) == (2.0, 2.0)
    assert whole.attainable(bound) == pytest.approx(attainable)


def test_counting_knows_what_stopping_costs_and_that_jobs_differ():
    """Two jobs of 1,000 less 30 for two victims; and starts worth 600 of a job worth 1,000."""
    stops = question([[1000.0]] * 3, np.ones((3, 1)), [1], [20.0, 10.0, 5.0], [1, 1, 0])
    assert whole_jobs(stops).attainable(1970.5) == pytest.approx(1970.5), "2,000 less 29.5"
    assert whole_jobs(stops).attainable(1960.0) == pytest.approx(1000.0)
    differ = question([[1000.0, 600.0, 400.0]], np.ones((1, 3)), [1, 1, 1])
    whole = whole_jobs(differ)
    assert (whole.least, whole.most, whole.little) == (600.0, 1000.0, 400.0)
    assert whole.attainable(1300.0) == 1300.0
    assert whole.attainable(590.0) == 400.0


def test_no_start_is_worth_anything():
    """There is nothing to count."""
    assert whole_jobs(question([[0.0]], [[1.0]], [1])) is None
    nothing = solve_problem(question([[0.0]], [[1.0]], [1]), Effort("highs", 1.0, 0.0, 1.0, 3000))
    assert (nothing.value, nothing.bound) == (0.0, 0.0)


def test_one_more_is_beyond_what_as_many_are_worth():
    """As far as counting says something; else half a job more."""
    whole = whole_jobs(question([[1000.0]] * 3 + [[1.0]], np.ones((4, 1)), [2]))
    assert 2001.0 < whole.one_more(2000.5) < 3000.0
    assert whole.attainable(whole.one_more(2000.5)) == pytest.approx(2001.0)
    assert whole.one_more(1999.0) == pytest.approx(2499.0)


@pytest.mark.parametrize("costs", [(), (10.0, 10.0, 400.0)])
@pytest.mark.parametrize("most_options", [4, 12, 3000])
@pytest.mark.parametrize("seed", some_of(range(8), 3))
def test_bounds_are_true_and_no_plan_is_too_good(seed, most_options, costs):
    """However few options a program may have: those left out are in no plan beyond the bound."""
    asked = crowd(seed, costs)
    best = best_of(asked)
    for gap in (0.0, 0.02):
        solved = solve_problem(asked, Effort("highs", 60.0, gap, 1.0, most_options))
        assert solved.value == pytest.approx(value_of(asked, solved.choice))
        assert left_by(asked, solved.choice).min() >= -1e-6
        assert solved.value <= best + 1e-6
        assert solved.bound >= best - 1e-6


def test_a_whole_job_is_never_looked_for_in_vain(monkeypatch):
    """Without any search, whatever was looked for before: as many jobs as in the best plan."""
    monkeypatch.setattr(solving, "searched", lambda problem, choice, *rest: choice)
    effort = Effort("highs", 60.0, 0.02, 1.0, 3000)
    gained = 0
    for seed in range(12):
        asked = crowd(seed)
        solved = solve_problem(asked, effort, in_vain=MUCH_IN_VAIN)
        assert solved.value // 1000.0 == best_of(asked) // 1000.0
        assert solved.in_vain <= MUCH_IN_VAIN, "it counts no program of whole jobs"
        gained += solved.value - solved.greedy_value > 500.0
    assert gained


def test_jobs_without_deadlines_alone_are_asked_no_program_of_whole_jobs(monkeypatch):
    """For these, what programs have looked for in vain counts."""
    monkeypatch.setattr(solving, "searched", lambda problem, choice, *rest: choice)
    asked = crowd(3)
    little = replace(asked, worth=asked.worth / 1000.0)
    effort = Effort("highs", 60.0, 0.0, 1.0, 3000)
    assert solve_problem(asked, effort, in_vain=MUCH_IN_VAIN).columns > 0
    assert solve_problem(little, effort, in_vain=MUCH_IN_VAIN).columns == 0


def test_what_is_set_aside_is_not_spent():
    """Half of what is left, and it comes back."""
    budget = solving.Budget(2.0)
    budget.spend(0.4)
    later = budget.set_aside(0.25)
    assert (later, budget.left) == (pytest.approx(0.4), pytest.approx(1.2))
    budget.spend(1.3)
    budget.spend(-later)
    assert budget.left == pytest.approx(0.3)
    budget.spend(1.0)
    assert budget.set_aside(0.5) == 0.0
