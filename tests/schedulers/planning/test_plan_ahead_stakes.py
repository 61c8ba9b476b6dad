"""Where little can be gained, little is tried: no plan is worse for it, and no bound untrue."""

import numpy as np
import pytest

from foresail.milp.solver import Limits, find_solver
from foresail.schedulers._planning import solving
from foresail.schedulers._planning.pricing import program_of
from foresail.schedulers._planning.problem import Budget, PlanChoice, Problem, left_by, value_of
from foresail.schedulers._planning.solving import Effort, solve_problem

SLOTS = 4
EXACTLY = Effort("highs", 60.0, 0.0, 1.0, 3000)


def question(worth, needs, capacity, costs=(), given_back=()):
    """Jobs of one group each on one row: worth by slot, cpus while they run, to the end."""
    worth = np.array(worth, np.float64)
    slots = worth.shape[1]
    return Problem(
        first_group=np.arange(len(worth) + 1),
        group_set=np.zeros(len(worth), np.int64),
        consumption=np.outer(needs, np.ones(slots)).astype(np.float64),
        worth=worth,
        cover=np.ones((1, 1)),
        capacity=np.array([capacity], np.float64),
        victim_cost=np.array(costs, np.float64),
        victim_credit=np.array(given_back, np.float64)[:, None, None] * np.ones((1, 1, slots)),
    )


@pytest.mark.parametrize(("cost", "value"), [(0.05, 0.95), (0.15, 0.85), (0.25, 0.8), (10.0, 0.8)])
def test_a_job_is_stopped_if_more_is_gained(cost, value):
    """Two cpus are free from the third slot on; now, one has to be taken from a running job."""
    asked = question([[1.0, 0.9, 0.8, 0.7]], [2], [1, 1, 2, 2], [cost], [1])
    solved = solve_problem(asked, EXACTLY)
    assert (solved.value, solved.bound) == (pytest.approx(value), pytest.approx(value))
    assert solved.choice.stopped.tolist() == [value > 0.8]


def test_what_stopping_costs_proves_a_plan():
    """A job worth 1 stops none that costs 10; without it there is one best start, and no solver."""
    asked = question([[1.0, 0.9, 0.8, 0.7]], [2], [1, 1, 2, 2], [10.0], [1])
    solved = solve_problem(asked, EXACTLY)
    assert (solved.gap, solved.columns, solved.prices) == (0.0, 0, None)


@pytest.mark.parametrize("seed", range(30))
def test_victims_left_out_are_in_no_better_plan(seed):
    """Costs from next to nothing to more than any job: as good as the program of everything."""
    random = np.random.default_rng(seed)
    costs = random.choice([0.01, 0.5, 3.0, 30.0], 3) * random.uniform(0.9, 1.1, 3)
    asked = question(
        np.sort(random.uniform(0.0, 10.0, (5, SLOTS)), axis=1)[:, ::-1],
        random.integers(1, 5, 5),
        np.sort(random.integers(0, 7, SLOTS)),
        costs,
        random.integers(1, 4, 3),
    )
    solved = solve_problem(asked, EXACTLY)
    groups, slots = np.nonzero(asked.worth > 0.0)
    best = find_solver("highs").solve(program_of(asked, groups, slots), Limits()).objective
    assert solved.value == pytest.approx(best, rel=1e-5)
    assert solved.value == pytest.approx(value_of(asked, solved.choice))
    assert left_by(asked, solved.choice).min() >= -1e-6
    assert solved.bound >= best - 1e-6


def test_jobs_worth_next_to_nothing_are_planned_without_a_program():
    """Three cpus for two jobs of two: the bound takes half of one, and what is told says so."""
    effort = Effort("highs", 60.0, 0.02, 1.0, 3000)
    for worth, program, gap in ((1.0, True, 0.0), (1e-3, False, 0.3)):
        solved = solve_problem(question([[worth], [0.6 * worth]], [2, 2], [3]), effort)
        assert (solved.value, solved.columns > 0) == (worth, program)
        assert solved.gap == pytest.approx(gap, abs=1e-6)


def test_programs_get_less_work_the_more_they_have_looked_for_in_vain():
    """Half of the second job is missing to the bound each time, and no plan has it."""
    asked = question([[1.0], [0.6]], [2, 2], [3])
    effort = Effort("highs", 60.0, 0.02, 1.0, 3000)
    in_vain = 0.0
    for expected in (0.3, 2 * 0.95 * 0.3 + 0.3):
        solved = solve_problem(asked, effort, in_vain=in_vain)
        assert solved.columns > 0
        in_vain = solved.in_vain
        assert in_vain == pytest.approx(expected)
    solved = solve_problem(asked, effort, in_vain=1e6)
    assert (solved.columns, solved.gap) == (0, pytest.approx(0.3))
    assert solved.in_vain == pytest.approx(0.95e6), "what was not looked for is not in vain"
    worthy = question([[1e6], [0.6e6]], [2, 2], [3])
    assert solve_problem(worthy, effort, in_vain=1e6).columns > 0, "more is at stake than ever"


@pytest.mark.parametrize(("stake", "searches"), [(0.0, 2), (0.5, 5), (1.0, 8)])
def test_searches_end_when_they_are_fruitless(monkeypatch, stake, searches):
    """Two in a row, one of each kind, and more if much is at stake: nothing better exists."""
    asked = question([[2.0], [1.0]], [2, 2], [3])
    chosen = PlanChoice(np.array([0, -1]), np.array([0, -1]), np.zeros(0, np.bool_))
    kinds = []
    search = solving.search_plan

    def counted(*given):
        kinds.append(given[-2][-1])
        return search(*given)

    monkeypatch.setattr(solving, "search_plan", counted)
    found = solving.searched(asked, chosen, 3.0, Budget(60.0), stake)
    assert value_of(asked, found) == 2.0
    assert kinds == ([1, 3] * 4)[:searches]


def test_searches_leave_half_of_the_work_to_programs():
    """However much is at stake."""
    asked = question([[2.0], [1.0]], [2, 2], [3])
    chosen = PlanChoice(np.array([0, -1]), np.array([0, -1]), np.zeros(0, np.bool_))
    budget = Budget(0.02)
    solving.searched(asked, chosen, 3.0, budget, 1.0)
    assert 0.0 < budget.left <= 0.01


def test_a_share_of_what_is_left():
    """What may still be spent can only become less."""
    budget = Budget(2.0)
    budget.keep(0.25)
    assert budget.left == 0.5
    budget.keep(3.0)
    assert budget.left == 0.5
