"""What a solver of programs is asked, what it can do, and what it answers.

A back end is one file of this package with ``@register("solver", name)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from foresail.milp.program import Program
from foresail.model.errors import InputError
from foresail.model.registry import find


class SolveStatus(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    """Within the gap that was asked for."""

    STOPPED = "stopped"
    """At a limit, with values that may not be the best."""

    NOTHING_FOUND = "nothing found"
    """At a limit, without values."""

    INFEASIBLE = "infeasible"
    """No values keep all bounds."""

    UNBOUNDED = "unbounded"
    """There is no best: values without end."""


@dataclass(frozen=True, slots=True)
class SolverCapabilities:
    """What not every back end can do."""

    column_addition: bool = False
    """Solves relaxations that take more columns and go on from there: see ``GrowingSolver``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: after so many seconds, or as near to the bound as this share of the objective.

    ``most_nodes`` of a search tree are looked at, and ``most_checks`` times the back end may look
    at its limits, whatever the time; None: no such limit. A back end that counts none has the clock
    alone.

    Raises
    ------
    InputError
        If the time limit is not above 0 or the gap is negative.
    """

    time_limit_seconds: float = math.inf
    relative_gap: float = 1e-6
    most_nodes: int | None = None
    most_checks: int | None = None

    def __post_init__(self) -> None:
        if not self.time_limit_seconds > 0.0:
            raise InputError(
                "no time to solve in",
                field="time limit",
                value=self.time_limit_seconds,
                expected="seconds above 0",
            )
        if not self.relative_gap >= 0.0:
            raise InputError(
                "not a gap", field="gap", value=self.relative_gap, expected="0 or above"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What a solver found."""

    status: SolveStatus
    """How the solve ended."""
    values: NDArray[np.float64] | None
    """Per column; None if nothing was found."""
    objective: float
    """What the values are worth; -inf if nothing was found."""
    bound: float
    """No values are worth more; inf if the back end cannot say."""
    seconds: float
    """How long the solve took."""
    checks: int = 0
    """How often it looked at its limits; 0 if the back end does not count."""

    @property
    def gap(self) -> float:
        """By what share of the objective the best may be better: see ``relative_gap``."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: float, bound: float) -> float:
    """(bound - objective) / objective: 0 if they are equal, inf if the objective is none or 0."""
    apart = bound - objective
    if apart <= 1e-9 * max(1.0, abs(bound)):
        return 0.0
    if objective == 0.0 or not math.isfinite(apart):
        return math.inf
    return apart / abs(objective)


class Solver(Protocol):
    """A back end."""

    capabilities: SolverCapabilities

    def solve(
        self, program: Program, limits: Limits, start: NDArray[np.float64] | None = None
    ) -> Solution:
        """The best values found within the limits; ``start`` are values to begin from.

        A solve that runs out of time without any values says so in its status. A back end that
        cannot begin from values, stop within a gap or tell a bound does without.
        """


@dataclass(frozen=True, slots=True, eq=False)
class RelaxedSolution:
    """The best values where columns need not be whole."""

    status: SolveStatus
    """``OPTIMAL``, or why there are no values."""
    values: NDArray[np.float64] | None
    prices: NDArray[np.float64] | None
    """Per column; and per row what one unit more of its bound would be worth. None without
    values."""
    objective: float
    """What the values are worth: no whole ones are worth more. inf without values."""
    iterations: int
    """How many the solve took."""


class Relaxation(Protocol):
    """A program whose columns need not be whole, which grows between solves."""

    def add_columns(
        self,
        objective: NDArray[np.float64],
        upper: NDArray[np.float64],
        starts: NDArray[np.int64],
        rows: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None:
        """Append columns from 0 to ``upper``.

        Entries of column c are ``starts[c]`` up to ``starts[c + 1]`` of ``rows`` and ``values``;
        ``starts`` has one number more than there are columns.
        """

    def solve(
        self, most_iterations: int | None = None, time_limit_seconds: float = math.inf
    ) -> RelaxedSolution:
        """The best values, beginning from where the last solve ended."""


class GrowingSolver(Solver, Protocol):
    """A back end with the capability ``column_addition``."""

    def relaxation(self, program: Program) -> Relaxation:
        """The relaxation of a program, without a solve yet."""


def nothing(ended: SolveStatus, seconds: float, bound: float = math.inf) -> Solution:
    """The answer of a back end that has no values: there are none, or it found none."""
    bound = {SolveStatus.INFEASIBLE: -math.inf, SolveStatus.UNBOUNDED: math.inf}.get(ended, bound)
    return Solution(ended, None, -math.inf, bound, seconds)


def find_solver(name: str) -> Solver:
    """The back end of this name.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    entry = find("solver", name)
    solver: Solver = entry.build(entry.parameters())
    return solver
