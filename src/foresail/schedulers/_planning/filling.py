"""Plans without a solver: job by job, by density or by price; and improving a plan at its edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.schedulers._planning.problem import PlanChoice, Problem, left_by, value_of
from foresail.schedulers.kernels.plan_filling import fill_plan

_ROUNDING: Final = 1e-7


def filled(problem: Problem, order: Integers, scores: Floats, given: PlanChoice) -> PlanChoice:
    """Give the jobs of ``order`` in turn their best fitting option instead of what they have."""
    group, slot = given.group.copy(), given.slot.copy()
    fill_plan(
        order,
        problem.first_group,
        problem.group_set,
        problem.consumption,
        scores,
        problem.rows,
        left_by(problem, given),
        group,
        slot,
    )
    return PlanChoice(group, slot, given.stopped)


def best_of_groups(problem: Problem, scores: Floats) -> Floats:
    """The best score of any group of each job, -inf for a job without; shape (jobs,)."""
    best = np.full(problem.jobs, -np.inf)
    np.maximum.at(best, problem.group_job, scores)
    return best


def densities(problem: Problem) -> Floats:
    """The best worth of each job for a cpu and slot that it holds; shape (jobs,)."""
    held = problem.consumption.sum(axis=1)
    return best_of_groups(problem, problem.worth.max(axis=1, initial=0.0) / held)


def greedy(problem: Problem) -> PlanChoice:
    """The better of two plans: by density, and by worth; no job is stopped."""
    nothing = PlanChoice.nothing(problem)
    by_worth = best_of_groups(problem, problem.worth.max(axis=1, initial=0.0))
    plans = [
        improved(problem, filled(problem, _descending(by), problem.worth, nothing))
        for by in (densities(problem), by_worth)
    ]
    return max(plans, key=lambda plan: value_of(problem, plan))


def priced(problem: Problem, reduced: Floats, stopped: Booleans) -> PlanChoice:
    """A plan by prices: each job in order of its gain over what its resources are worth."""
    order = _descending(best_of_groups(problem, reduced.max(axis=1, initial=-np.inf)))
    nothing = replace(PlanChoice.nothing(problem), stopped=stopped)
    wanted = np.where(problem.worth > 0.0, reduced, 0.0)
    return improved(problem, filled(problem, order, wanted, nothing))


def improved(problem: Problem, choice: PlanChoice) -> PlanChoice:
    """No worse: starts moved to where they are worth more, and others given what is left.

    No job is stopped for nothing.
    """
    planned = choice.planned
    order = planned[np.argsort(choice.slot[planned], kind="stable")]
    choice = filled(problem, order, problem.worth, choice)
    waiting = _descending(densities(problem))
    choice = filled(problem, waiting[choice.group[waiting] < 0], problem.worth, choice)
    return _spared(problem, choice)


def _descending(by: Floats) -> Integers:
    return np.argsort(-by, kind="stable")


def _spared(problem: Problem, choice: PlanChoice) -> PlanChoice:
    """The same without stopping those whose cpus are not needed in any slot."""
    return replace(choice, stopped=_needed(problem, left_by(problem, choice), choice.stopped))


def needed_now(problem: Problem, choice: PlanChoice) -> Booleans:
    """Which jobs must be stopped for those that start now; others can still be stopped later.

    To stop them already would waste what they might yet finish, and free what no job is to have.
    """
    later = choice.slot > 0
    group, slot = np.where(later, -1, choice.group), np.where(later, -1, choice.slot)
    left = left_by(problem, PlanChoice(group, slot, choice.stopped))
    now = replace(problem, victim_credit=problem.victim_credit[:, :, :1])
    return _needed(now, left[:, :1], choice.stopped)


def _needed(problem: Problem, left: Floats, stopped: Booleans) -> Booleans:
    """Which of the stopped must be, the dearest spared first; ``left`` counts all as gone."""
    needed = stopped.copy()
    dearest = np.argsort(-problem.victim_cost, kind="stable")
    for victim in dearest[stopped[dearest]]:
        without = left - problem.victim_credit[victim]
        if (without >= -_ROUNDING).all():
            needed[victim], left = False, without
    return needed


def in_order_of_arrival(problem: Problem, choice: PlanChoice) -> PlanChoice:
    """The same, but of jobs that differ in nothing the earlier arrival starts first."""
    alike: dict[tuple[bytes, ...], list[int]] = {}
    for job in range(problem.jobs):
        at = slice(problem.first_group[job], problem.first_group[job + 1])
        arrays = (problem.group_set[at], problem.consumption[at], problem.worth[at])
        alike.setdefault(tuple(array.tobytes() for array in arrays), []).append(job)
    group, slot = choice.group.copy(), choice.slot.copy()
    for jobs in alike.values():
        planned = [job for job in jobs if choice.group[job] >= 0]
        if planned and len(jobs) > 1:
            options = sorted(
                (choice.slot[job], choice.group[job] - problem.first_group[job]) for job in planned
            )
            group[jobs] = slot[jobs] = -1
            for job, (start, which) in zip(jobs, options, strict=False):
                group[job], slot[job] = problem.first_group[job] + which, start
    return PlanChoice(group, slot, choice.stopped)
