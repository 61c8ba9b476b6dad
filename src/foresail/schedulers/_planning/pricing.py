"""A problem as a program, what resources are worth in it, and the bounds that this proves.

The program has a binary column for every option looked at, and one for each running job. Rows: at
most one option for a job; then, for every row of the problem and every slot, no more is expected to
be held than there is, with what stopped jobs give back. 3Sigma section 4.3.3, without its columns
for partitions.

A linear program that starts a third of a job worth 1,000 proves a bound that no plan comes near,
where all jobs with a deadline are worth the same and the others next to nothing. Plans are worth
a whole number of them then, and the little that is added: what lies between is out of reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.milp.solver import Program, ProgramBuilder, Relaxation, Solver, relative_gap
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.schedulers._planning.problem import (
    Budget,
    PlanChoice,
    Problem,
    best_of_groups,
    iterations_within,
    of_building,
    of_pricing,
    of_solving,
)


def _column_entries(
    problem: Problem, groups: Integers, slots: Integers
) -> tuple[Integers, Integers, Floats]:
    """Rows, columns (0 for the first option) and values of options, column by column."""
    count, width = groups.size, problem.slots
    after = np.arange(width) - slots[:, np.newaxis]
    needs = np.where(after < 0, 0.0, problem.consumption[groups[:, np.newaxis], after])
    shares = problem.cover[problem.group_set[groups]]
    option, union = np.nonzero(shares)
    rows = problem.jobs + union[:, np.newaxis] * width + np.arange(width)
    columns = np.broadcast_to(option[:, np.newaxis], rows.shape)
    values = needs[option] * shares[option, union, np.newaxis]
    held = values > 0.0
    all_rows = np.concatenate((problem.group_job[groups], rows[held]))
    all_columns = np.concatenate((np.arange(count), columns[held]))
    all_values = np.concatenate((np.ones(count), values[held]))
    order = np.argsort(all_columns, kind="stable")
    return all_rows[order], all_columns[order], all_values[order]


def _most_entries(problem: Problem, groups: Integers, slots: Integers) -> int:
    """No program of these options has more entries than this."""
    rows = np.count_nonzero(problem.cover, axis=1)[problem.group_set[groups]]
    of_options = int((1 + rows * (problem.slots - slots)).sum())
    return of_options + int(np.count_nonzero(problem.victim_credit))


def program_of(problem: Problem, groups: Integers, slots: Integers) -> Program:
    """The program of these options; columns of running jobs that may be stopped come first."""
    builder = ProgramBuilder()
    victims = builder.add_columns(0.0, np.ones(problem.victim_cost.size), True)
    builder.add_objective(victims, -problem.victim_cost)
    options = builder.add_columns(0.0, np.ones(groups.size), True, problem.worth[groups, slots])
    builder.add_rows(-np.inf, np.ones(problem.jobs))
    capacity = builder.add_rows(-np.inf, problem.capacity.ravel())
    victim, union, slot = np.nonzero(problem.victim_credit)
    builder.add_entries(
        capacity[union * problem.slots + slot],
        victims[victim],
        -problem.victim_credit[victim, union, slot],
    )
    rows, columns, values = _column_entries(problem, groups, slots)
    builder.add_entries(rows, options[columns], values)
    return builder.build()


def values_of(problem: Problem, groups: Integers, slots: Integers, choice: PlanChoice) -> Floats:
    """A choice among these options as values of the program's columns."""
    job = problem.group_job[groups]
    chosen = (choice.group[job] == groups) & (choice.slot[job] == slots)
    return np.concatenate((choice.stopped.astype(np.float64), chosen.astype(np.float64)))


def choice_of(problem: Problem, groups: Integers, slots: Integers, values: Floats) -> PlanChoice:
    """The choice that values of the program's columns mean."""
    victims = problem.victim_cost.size
    choice = PlanChoice.nothing(problem)
    chosen = np.flatnonzero(values[victims:] > 0.5)
    job = problem.group_job[groups[chosen]]
    choice.group[job] = groups[chosen]
    choice.slot[job] = slots[chosen]
    choice.stopped[:] = values[:victims] > 0.5
    return choice


_NEARLY: Final = 0.5
"""A job is one of those worth most if its best start is worth so much of what any is worth."""
_ROUNDING: Final = 1e-6
"""A bound so little short of a whole number of jobs, as a share of one, is not short of it."""
_BELOW: Final = 1e-4
"""A value so far below a whole number of jobs is short of it."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeJobs:
    """The jobs worth most, and what a plan of them is worth besides."""

    jobs: Booleans
    """True for these jobs; shape (jobs,)."""
    least: float
    most: float
    """Least and most worth of their starts, of those worth half as much as any start, or more."""
    others: float
    """Worth of all the other jobs together, each with its best start."""
    little: float
    """Worth of a plan besides such starts, at most."""
    costs: float
    """Cost of stopping all running jobs that give anything back."""

    def attainable(self, bound: float) -> float:
        """Return what no plan exceeds if none exceeds a bound."""
        return min(bound, self._count(bound) * self.most + self.little)

    def one_more(self, value: float) -> float:
        """Least worth of a plan that has one of them more than a plan of a value.

        Half a job more where they are worth so different amounts that counting says nothing.
        """
        whole = (self._count(value) + 1.0 - _BELOW) * self.least - self.costs
        return max(whole, value + _NEARLY * self.most)

    def _count(self, value: float) -> float:
        """Return how many such starts a plan has at most, whatever it pays for stopping jobs."""
        return float(np.floor((value + self.costs) / self.least + _ROUNDING))


def whole_jobs(problem: Problem) -> WholeJobs | None:
    """Return the whole jobs of a problem; None if no start is worth anything."""
    most = float(problem.worth.max(initial=0.0))
    if most <= 0.0:
        return None
    great = problem.worth >= _NEARLY * most
    best = _best(problem, problem.worth)
    jobs = best >= _NEARLY * most
    giving = problem.victim_credit.any(axis=(1, 2))
    return WholeJobs(
        jobs,
        float(problem.worth[great].min()),
        most,
        float(best[~jobs].sum()),
        float(_best(problem, np.where(great, 0.0, problem.worth)).sum()),
        float(problem.victim_cost[giving].sum()),
    )


def _best(problem: Problem, worth: Floats) -> Floats:
    """Return what each job is worth with its best start, nothing at least; shape (jobs,)."""
    return np.maximum(best_of_groups(problem, worth.max(axis=1, initial=0.0)), 0.0)


_SHARE: Final = 0.5
_ROUNDS: Final = 30
_JOBS_A_ROUND: Final = 1000
_OPTIONS_A_JOB: Final = 3
_MANY_SETS: Final = 256
"""Number of sets (jobs with as many mixes of resources) above which each has few groups."""


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices of resources."""

    of_rows: Floats
    """Worth of a unit of each row in every slot; shape (rows, slots)."""
    reduced: Floats
    """Worth of every option beyond that of what it needs; shape (groups, slots)."""
    stopped: Floats
    """Share of every running job that the linear program stops, 0 to 1."""
    bound: float
    """Upper bound of the worth of any choice."""


def prices_by(problem: Problem, of_rows: Floats, stopped: Floats) -> Prices:
    """Derive from prices of rows, whichever they are, those of options and the bound they prove."""
    reduced = _reduced(problem, of_rows)
    return Prices(of_rows, reduced, stopped, _bound(problem, of_rows, reduced))


def prices(
    problem: Problem, solver: Solver, plans: Sequence[PlanChoice], gap: float, budget: Budget
) -> Prices | None:
    """Solve the linear program over ever more options, until its bound is as good as it gets.

    The options of ``plans`` are the first ones. It stops as near to the bound as the share ``gap``
    of the program's objective, or when half of the budget is spent. None if the solver has no
    relaxations, or that did not do for the first program and its solve.
    """
    to_leave = (1.0 - _SHARE) * budget.left
    taken = np.zeros(problem.worth.shape, np.bool_)
    for plan in plans:
        taken[plan.group[plan.planned], plan.slot[plan.planned]] = True
    groups, slots = np.nonzero(taken)
    building = of_building(_most_entries(problem, groups, slots))
    if building > budget.left - to_leave:
        return None
    budget.spend(building)
    program = program_of(problem, groups, slots)
    rows, entries = program.size.rows, program.size.entries
    relaxation = solver.relaxation(program)
    if relaxation is None:
        return None
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
    rows, columns, values = _column_entries(problem, groups, slots)
    starts = np.searchsorted(columns, np.arange(groups.size + 1))
    worth = problem.worth[groups, slots]
    relaxation.add_columns(worth, np.ones(groups.size), starts, rows, values)
    return values.size


def _wanted(problem: Problem, gain: Floats, taken: Booleans) -> tuple[Integers, Integers]:
    """The best new options of those jobs that gain most by one."""
    gain = np.where(taken | (problem.worth <= 0.0), -np.inf, gain)
    best = best_of_groups(problem, gain.max(axis=1, initial=-np.inf))
    jobs = np.argsort(-best, kind="stable")[:_JOBS_A_ROUND]
    jobs = jobs[best[jobs] > 1e-7]
    return _best_options(problem, gain, jobs, _OPTIONS_A_JOB, 1e-7)


def _best_options(
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
    """Reduce by prices of each group, one slot after a start after the other."""
    for after in range(problem.slots):
        priced = problem.consumption[:, after, np.newaxis] * of_groups[:, after:]
        reduced[:, : problem.slots - after] -= priced
    return reduced


def _bound(problem: Problem, of_rows: Floats, reduced: Floats) -> float:
    """Return what no choice exceeds, whatever the prices: Lagrange's bound."""
    wanted = np.where(problem.worth > 0.0, reduced, 0.0).max(axis=1, initial=0.0)
    jobs = np.maximum(best_of_groups(problem, wanted), 0.0).sum()
    credit = (problem.victim_credit * of_rows).sum(axis=(1, 2))
    stopped = np.maximum(credit - problem.victim_cost, 0.0).sum()
    return float((of_rows * np.maximum(problem.capacity, 0.0)).sum() + jobs + stopped)
