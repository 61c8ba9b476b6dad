"""What resources are worth in every slot: a linear program that grows, and the bound it proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.milp.solver import GrowingSolver, Relaxation, relative_gap
from foresail.model.arrays import Floats, Integers
from foresail.schedulers._planning.filling import best_of_groups
from foresail.schedulers._planning.problem import PlanChoice, Problem
from foresail.schedulers._planning.program import column_entries, most_entries, program_of
from foresail.schedulers._planning.work import (
    Budget,
    iterations_within,
    of_building,
    of_pricing,
    of_solving,
)

_SHARE: Final = 0.5
_ROUNDS: Final = 30
_JOBS_A_ROUND: Final = 1000
_OPTIONS_A_JOB: Final = 3
_MANY_SETS: Final = 256
"""Of more sets (jobs with as many mixes of resources), each has few groups."""


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """What resources are worth."""

    of_rows: Floats
    """What a unit of each row is worth in every slot; shape (rows, slots)."""
    reduced: Floats
    """By how much every option is worth more than what it needs; shape (groups, slots)."""
    stopped: Floats
    """How much of every running job the linear program stops, 0 to 1."""
    bound: float
    """No choice is worth more."""


def prices_by(problem: Problem, of_rows: Floats, stopped: Floats) -> Prices:
    """What prices of rows, whichever they are, say about options, and the bound they prove."""
    reduced = _reduced(problem, of_rows)
    return Prices(of_rows, reduced, stopped, _bound(problem, of_rows, reduced))


def prices(
    problem: Problem, solver: GrowingSolver, plans: Sequence[PlanChoice], gap: float, budget: Budget
) -> Prices | None:
    """Solve the linear program over ever more options, until its bound is as good as it gets.

    Parameters
    ----------
    problem, solver
        The question, and who answers.
    plans
        Their options are the first ones.
    gap
        Stop as near to the bound as this share of the program's objective.
    budget
        Of which half is spent on this at most.

    Returns
    -------
    Prices or None
        None if that did not do for the first program and its solve.
    """
    to_leave = (1.0 - _SHARE) * budget.left
    taken = np.zeros(problem.worth.shape, np.bool_)
    for plan in plans:
        taken[plan.group[plan.planned], plan.slot[plan.planned]] = True
    groups, slots = np.nonzero(taken)
    building = of_building(most_entries(problem, groups, slots))
    if building > budget.left - to_leave:
        return None
    budget.spend(building)
    program = program_of(problem, groups, slots)
    rows, entries = program.size.rows, program.size.entries
    relaxation = solver.relaxation(program)
    best: Prices | None = None
    for _ in range(_ROUNDS):
        left = budget.left - to_leave
        if left <= 0.0 or budget.is_spent:
            break
        found = relaxation.solve(iterations_within(left, rows), budget.guard_seconds)
        budget.spend(of_solving(entries, rows, found.iterations) + of_pricing(problem))
        if found.prices is None or found.values is None:
            break
        of_rows = np.maximum(found.prices[problem.jobs :], 0.0).reshape(problem.capacity.shape)
        now = prices_by(problem, of_rows, found.values[: problem.victim_cost.size])
        if best is None or now.bound < best.bound:
            best = now
        if relative_gap(found.objective, best.bound) <= gap:
            break
        job_prices = np.maximum(found.prices[: problem.jobs], 0.0)
        groups, slots = _wanted(
            problem, now.reduced - job_prices[problem.group_job, np.newaxis], taken
        )
        if not groups.size:
            break
        taken[groups, slots] = True
        entries += _add(relaxation, problem, groups, slots)
    return best


def _add(relaxation: Relaxation, problem: Problem, groups: Integers, slots: Integers) -> int:
    """Let the program know of more options; how many entries they have."""
    rows, columns, values = column_entries(problem, groups, slots)
    starts = np.searchsorted(columns, np.arange(groups.size + 1))
    worth = problem.worth[groups, slots]
    relaxation.add_columns(worth, np.ones(groups.size), starts, rows, values)
    return values.size


def _wanted(problem: Problem, gain: Floats, taken: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """The best new options of those jobs that gain most by one."""
    gain = np.where(taken | (problem.worth <= 0.0), -np.inf, gain)
    best = best_of_groups(problem, gain.max(axis=1, initial=-np.inf))
    jobs = np.argsort(-best, kind="stable")[:_JOBS_A_ROUND]
    jobs = jobs[best[jobs] > 1e-7]
    return best_options(problem, gain, jobs, _OPTIONS_A_JOB, 1e-7)


def best_options(
    problem: Problem, score: Floats, jobs: Integers, count: int, least: float
) -> tuple[Integers, Integers]:
    """Groups and slots of the best few options of some jobs, of those that score above least."""
    groups: list[Integers] = [np.empty(0, np.int64)]
    slots: list[Integers] = [np.empty(0, np.int64)]
    for job in jobs:
        first, end = problem.first_group[job], problem.first_group[job + 1]
        scores = score[first:end].ravel()
        few = np.argsort(-scores, kind="stable")[:count]
        few = few[scores[few] > least]
        groups.append(first + few // problem.slots)
        slots.append(few % problem.slots)
    return np.concatenate(groups), np.concatenate(slots)


def _reduced(problem: Problem, of_rows: Floats) -> Floats:
    """Worth of every option less the price of what it needs."""
    reduced = problem.worth.copy()
    of_sets = problem.cover @ of_rows
    if of_sets.shape[0] > _MANY_SETS:
        return _reduced_by_slot(problem, reduced, of_sets[problem.group_set])
    padded = np.concatenate((of_sets, np.zeros_like(of_sets)), axis=1)
    later = np.arange(problem.slots)[:, np.newaxis] + np.arange(problem.slots)
    for number in np.flatnonzero(of_sets.any(axis=1)):
        groups = np.flatnonzero(problem.group_set == number)
        reduced[groups] -= problem.consumption[groups] @ padded[number][later]
    return reduced


def _reduced_by_slot(problem: Problem, reduced: Floats, of_groups: Floats) -> Floats:
    """The same from prices of each group, one slot after a start after the other."""
    for after in range(problem.slots):
        priced = problem.consumption[:, after, np.newaxis] * of_groups[:, after:]
        reduced[:, : problem.slots - after] -= priced
    return reduced


def _bound(problem: Problem, of_rows: Floats, reduced: Floats) -> float:
    """What no choice exceeds, whatever the prices: Lagrange's bound."""
    wanted = np.where(problem.worth > 0.0, reduced, 0.0).max(axis=1, initial=0.0)
    jobs = np.maximum(best_of_groups(problem, wanted), 0.0).sum()
    credit = (problem.victim_credit * of_rows).sum(axis=(1, 2))
    stopped = np.maximum(credit - problem.victim_cost, 0.0).sum()
    return float((of_rows * np.maximum(problem.capacity, 0.0)).sum() + jobs + stopped)
