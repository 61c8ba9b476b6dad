"""Some options of a problem as a program: a binary column each, and one for each running job.

Rows: at most one option for a job; then, for every row of the problem and every slot, no more is
expected to be held than there is, with what stopped jobs give back. 3Sigma section 4.3.3, without
its columns for partitions.
"""

from __future__ import annotations

import numpy as np

from foresail.milp.program import Program, ProgramBuilder
from foresail.model.arrays import Floats, Integers
from foresail.schedulers._planning.problem import PlanChoice, Problem


def column_entries(
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


def most_entries(problem: Problem, groups: Integers, slots: Integers) -> int:
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
    rows, columns, values = column_entries(problem, groups, slots)
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
