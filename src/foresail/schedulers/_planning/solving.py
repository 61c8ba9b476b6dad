"""The best choice that is found in time: greedy, prices, greedy on prices, a small program."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from foresail.milp.program import ProgramBuilder
from foresail.milp.solver import GrowingSolver, Limits, Solver, find_solver, relative_gap
from foresail.schedulers._planning.filling import best_of_groups, greedy, improved, priced
from foresail.schedulers._planning.pricing import Prices, best_options, prices
from foresail.schedulers._planning.problem import Choice, Problem, value_of
from foresail.schedulers._planning.program import choice_of, program_of, values_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FOR_PRICES: Final = 0.5
_OPTIONS: Final = 300
_LEAST_OPTIONS_A_JOB: Final = 8
_MOST_JOBS: Final = 500


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A choice, and how good it is known to be.

    Parameters
    ----------
    choice
        Never worth less than greedy's.
    value, bound, greedy_value
        What it is worth, what no choice exceeds, and what greedy's was worth.
    columns, rows
        Size of the last program; 0 if none was needed.
    greedy_seconds, pricing_seconds, solver_seconds
        Of planning without a solver, of the linear programs, of the last program.
    """

    choice: Choice
    value: float
    bound: float
    greedy_value: float
    columns: int = 0
    rows: int = 0
    greedy_seconds: float = 0.0
    pricing_seconds: float = 0.0
    solver_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """By what share of its value the best choice may be better."""
        return relative_gap(self.value, self.bound)


def solve_problem(problem: Problem, solver_name: str, seconds: float, gap: float) -> Solved:
    """The best choice that is found in some seconds.

    Parameters
    ----------
    problem
        The question.
    solver_name
        A registered solver; one that cannot add columns is given a program without prices.
    seconds, gap
        When to stop: after so long, or this near to the bound, as a share of the value.
    """
    solver = _ready_solver(solver_name)
    began = time.perf_counter()
    until = began + seconds
    quick = greedy(problem)
    greedy_value = value_of(problem, quick)
    best, value = quick, greedy_value
    most = np.maximum(best_of_groups(problem, problem.worth.max(axis=1, initial=0.0)), 0.0)
    bound = float(most.sum())
    filled_at = time.perf_counter()
    if relative_gap(value, bound) <= min(gap, 1e-4):
        return Solved(best, value, bound, greedy_value, greedy_seconds=filled_at - began)
    found: Prices | None = None
    if solver.capabilities.column_addition:
        growing = cast("GrowingSolver", solver)
        found = prices(problem, growing, quick, 0.1 * gap, _FOR_PRICES * (until - filled_at))
    if found is not None:
        bound = min(bound, found.bound)
        for stopped in {tuple((found.stopped > level).tolist()) for level in (0.5, 0.999)}:
            plan = priced(problem, found.reduced, np.array(stopped, np.bool_))
            if value_of(problem, plan) > value:
                best, value = plan, value_of(problem, plan)
    priced_at = time.perf_counter()
    columns = rows = 0
    left = until - priced_at
    if relative_gap(value, bound) > gap and left > 0.0:
        few = max(_OPTIONS // problem.jobs, _LEAST_OPTIONS_A_JOB)
        missing = bound - value
        score = problem.worth if found is None else found.reduced
        score = np.where(problem.worth > 0.0, score, -np.inf)
        promising = int((score > -missing).sum())
        groups, slots = _options(problem, score, best, missing, few)
        program = program_of(problem, groups, slots)
        columns, rows = program.size.columns, program.size.rows
        start = values_of(problem, groups, slots, best)
        answer = solver.solve(program, Limits(left, gap), start)
        if groups.size >= promising:  # no option that could be in a better choice is missing
            bound = min(bound, max(answer.bound, value))
        if answer.values is not None:
            plan = improved(problem, choice_of(problem, groups, slots, answer.values))
            if value_of(problem, plan) > value:
                best, value = plan, value_of(problem, plan)
    return Solved(
        choice=best,
        value=value,
        bound=max(bound, value),
        greedy_value=greedy_value,
        columns=columns,
        rows=rows,
        greedy_seconds=filled_at - began,
        pricing_seconds=priced_at - filled_at,
        solver_seconds=time.perf_counter() - priced_at,
    )


@cache
def _ready_solver(name: str) -> Solver:
    """A solver that has solved something: what it has to import first takes no cycle's time."""
    solver = find_solver(name)
    builder = ProgramBuilder()
    builder.add_columns(0.0, 1.0, True, 1.0)
    solver.solve(builder.build(), Limits())
    return solver


def _options(
    problem: Problem, score: Floats, plan: Choice, missing: float, count: int
) -> tuple[Integers, Integers]:
    """The plan's options, and the most promising few of each job.

    An option whose price exceeds its worth by all that is missing to the bound is in no better
    choice.
    """
    best = best_of_groups(problem, score.max(axis=1, initial=-np.inf))
    jobs = np.argsort(-best, kind="stable")[:_MOST_JOBS]
    groups, slots = best_options(problem, score, jobs, count, -missing)
    planned = plan.planned
    chosen = plan.group[planned] * problem.slots + plan.slot[planned]
    both = np.union1d(groups * problem.slots + slots, chosen)
    return both // problem.slots, both % problem.slots
