"""A plan improved by chance, in several legs; it needs no solver and proves nothing."""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.schedulers._planning.problem import PlanChoice, Problem, left_by, value_of
from foresail.schedulers._planning.work import Budget, of_searching
from foresail.schedulers.kernels.plan_search import SearchedPlan, SearchProblem, search_plan

_TRIES: Final = (1, 3)
"""Kinds of searches in turn: of how many options the one is taken for which least room is made."""
_MOST_SEARCHES: Final = 24
_MORE_IN_VAIN: Final = 6
"""How many searches in a row may be in vain besides one of each kind, if all is at stake."""
_CHANGES: Final = 2000
_CHANGES_FOR_A_JOB: Final = 200
_USUAL_CHANGES: Final = 8000
"""How long a search is if little is at stake: so many changes, more for each job, at most these."""
_LONGER: Final = 3
_MOST_CHANGES: Final = 16_000
"""By how many times that a search is longer if all is at stake, and how long it is at most."""
_ROUNDING: Final = 1e-6


def searched(
    problem: Problem, choice: PlanChoice, enough: float, budget: Budget, stake: float
) -> PlanChoice:
    """The best of several searches from a plan, which is never worth less than it.

    They are as long as the problem is large and as much is at stake; some are left out when half of
    the budget is spent, or when several in a row, of each kind at least one, have found nothing
    better.

    Parameters
    ----------
    problem, choice
        The question, and the plan to begin with.
    enough
        A value at which to stop.
    budget
        Begin no more searches once half of it is spent.
    stake
        How much is at stake, from 0 to 1: how long they are, and how many may be in vain.
    """
    ask = SearchProblem(
        problem.first_group,
        problem.group_set,
        problem.consumption,
        problem.worth,
        problem.rows,
        problem.victim_cost,
        problem.victim_credit,
    )
    left = left_by(problem, choice)
    begin = best_value = value_of(problem, choice)
    best = choice
    fruitless, patience = 0, len(_TRIES) + int(_MORE_IN_VAIN * stake)
    half = 0.5 * budget.left
    usual = min(_CHANGES + _CHANGES_FOR_A_JOB * problem.jobs, _USUAL_CHANGES)
    changes = min(int(usual * (1.0 + _LONGER * stake)), _MOST_CHANGES)
    for seed in range(_MOST_SEARCHES):
        if best_value >= enough or fruitless == patience or budget.left <= half:
            break
        plan = SearchedPlan(
            choice.group.copy(), choice.slot.copy(), choice.stopped.copy(), left.copy()
        )
        tries = _TRIES[seed % len(_TRIES)]
        _, tried = search_plan(ask, plan, begin, enough, changes, changes // 2, tries, seed)
        budget.spend(of_searching(problem, tried))
        found = PlanChoice(plan.group, plan.slot, plan.stopped)
        value = value_of(problem, found)
        if value > best_value and left_by(problem, found).min(initial=np.inf) >= -_ROUNDING:
            best, best_value, fruitless = found, value, 0
        else:
            fruitless += 1
    return best
