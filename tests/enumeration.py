"""All values of a tiny program, tried in order: slow, and right by inspection."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from foresail.milp.solver import (
    TOLERANCE,
    Limits,
    Program,
    Solution,
    Solver,
    SolveStatus,
)
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.model.registry import NoParameters, register


class Enumeration(Solver):
    """Tries every value of every whole column that the rows leave open, for tiny programs.

    Bounds are finite. Columns that need not be whole are worth 0 or more, and only in rows with an
    upper bound alone, where at most one of them counts positively: then their greatest values are
    their best ones.
    """

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def solve(self, program: Program, limits: Limits, start: Floats | None = None) -> Solution:
        """See ``Solver.solve``.

        Raises
        ------
        InputError
            If the program is not of the kind that the class describes.
        """
        _require_enumerable(program)
        began = time.perf_counter()
        search = _DepthFirstSearch(program, began + limits.time_limit_seconds)
        if start is not None and program.admits(start):
            search.best, search.objective = start, program.objective_of(start)
        search.visit(program.lower, program.upper)
        seconds = time.perf_counter() - began
        if search.stopped:
            bound = _optimistic(program, program.lower, program.upper)
            status = SolveStatus.NOTHING_FOUND if search.best is None else SolveStatus.STOPPED
            return Solution(status, search.best, search.objective, bound, seconds)
        status = SolveStatus.INFEASIBLE if search.best is None else SolveStatus.OPTIMAL
        return Solution(status, search.best, search.objective, search.objective, seconds)


def register_enumeration() -> None:
    """Let solvers be asked for it by name for the length of a test."""
    register("solver", "enumeration")(Enumeration)


def _require_enumerable(program: Program) -> None:
    def require(holds: bool, expected: str) -> None:
        if not holds:
            problem = "the program is not one that enumeration takes"
            raise InputError(problem, field="solver", value="enumeration", expected=expected)

    require(bool(np.isfinite([program.lower, program.upper]).all()), "finite bounds")
    smooth = ~program.integer
    require(bool((program.objective[smooth] >= 0.0).all()), "columns worth 0 or more")
    at_smooth = smooth[program.entry_columns]
    rows = program.entry_rows[at_smooth]
    require(bool((program.row_lower[rows] == -math.inf).all()), "rows with an upper bound alone")
    positive = np.bincount(rows[program.entry_values[at_smooth] > 0.0])
    require(not positive.size or positive.max() <= 1, "one positive smooth column per row")


def _optimistic(program: Program, lower: Floats, upper: Floats) -> float:
    worth = program.objective
    return float(np.maximum(worth, 0.0) @ upper + np.minimum(worth, 0.0) @ lower)


@dataclass(slots=True)
class _DepthFirstSearch:
    """Depth first through the values, cutting off what the rows or the best so far rule out."""

    program: Program
    deadline: float
    best: Floats | None = None
    objective: float = -math.inf
    stopped: bool = False

    def visit(self, lower: Floats, upper: Floats) -> None:
        """Try all values between these bounds."""
        if time.perf_counter() > self.deadline:
            self.stopped = True
            return
        tightened = _tightened(self.program, lower, upper)
        if tightened is None:
            return
        lower, upper = tightened
        if _optimistic(self.program, lower, upper) <= self.objective:
            return
        open_columns = np.flatnonzero(self.program.integer & (upper > lower))
        if not open_columns.size:
            if self.program.admits(upper):
                self.best, self.objective = upper, self.program.objective_of(upper)
            return
        column = open_columns[0]
        for value in np.arange(upper[column], lower[column] - 1.0, -1.0):
            below, above = lower.copy(), upper.copy()
            below[column] = above[column] = value
            self.visit(below, above)


def _tightened(program: Program, lower: Floats, upper: Floats) -> tuple[Floats, Floats] | None:
    """Bounds that follow from the rows; None if a row cannot hold."""
    rows, columns, factors = program.entry_rows, program.entry_columns, program.entry_values
    count = program.row_lower.size
    rising = factors > 0.0
    while True:
        least_part = factors * np.where(rising, lower[columns], upper[columns])
        most_part = factors * np.where(rising, upper[columns], lower[columns])
        least = np.bincount(rows, least_part, count)
        most = np.bincount(rows, most_part, count)
        if (least > program.row_upper + TOLERANCE).any():
            return None
        if (most < program.row_lower - TOLERANCE).any():
            return None
        from_upper = (program.row_upper[rows] - (least[rows] - least_part)) / factors
        from_lower = (program.row_lower[rows] - (most[rows] - most_part)) / factors
        low, high = lower.copy(), upper.copy()
        np.minimum.at(high, columns, np.where(rising, from_upper, from_lower))
        np.maximum.at(low, columns, np.where(rising, from_lower, from_upper))
        low[program.integer] = np.ceil(low[program.integer] - TOLERANCE)
        high[program.integer] = np.floor(high[program.integer] + TOLERANCE)
        if (low > high + TOLERANCE).any():
            return None
        high = np.maximum(low, high)
        if np.allclose(low, lower, atol=TOLERANCE) and np.allclose(high, upper, atol=TOLERANCE):
            return low, high
        lower, upper = low, high
