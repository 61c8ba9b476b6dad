"""Mixed-integer programs as sparse arrays, what a solver is asked about them, and its answers.

A back end is one file of this package with ``@register("solver", name)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError
from foresail.model.registry import find

Scalar = TypeVar("Scalar", bound=np.generic)

TOLERANCE = 1e-6
"""Distance that a value may have from a bound, and from a whole number: what solvers promise."""


@dataclass(frozen=True, slots=True)
class ProgramSize:
    """Size of a program; binaries are among the integers."""

    columns: int
    integers: int
    binaries: int
    rows: int
    entries: int


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Maximise ``objective`` x values: rows and columns within bounds, and some columns whole."""

    objective: Floats
    lower: Floats
    upper: Floats
    """Per column: what one unit is worth, and the bounds (-inf and inf are allowed)."""
    integer: Booleans
    """True for columns of whole numbers only; shape (columns,), bool."""
    row_lower: Floats
    row_upper: Floats
    """Bounds of every row; shape (rows,)."""
    row_starts: Integers
    """Entries of row r are ``row_starts[r]`` up to ``row_starts[r + 1]``; shape (rows + 1,)."""
    entry_columns: Integers
    entry_values: Floats
    """Column and coefficient of every entry, row by row; columns ascend within a row."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def size(self) -> ProgramSize:
        """Columns, integers, binaries, rows and entries."""
        binary = self.integer & (self.lower == 0.0) & (self.upper == 1.0)
        return ProgramSize(
            columns=self.objective.size,
            integers=int(self.integer.sum()),
            binaries=int(binary.sum()),
            rows=self.row_lower.size,
            entries=self.entry_values.size,
        )

    @property
    def entry_rows(self) -> Integers:
        """Row of every entry."""
        return np.repeat(np.arange(self.row_lower.size), np.diff(self.row_starts))

    def objective_of(self, values: Floats) -> float:
        """Return what these values of the columns are worth."""
        return float(self.objective @ values)

    def rows_of(self, values: Floats) -> Floats:
        """Return what every row comes to with these values of the columns."""
        parts = self.entry_values * values[self.entry_columns]
        return np.bincount(self.entry_rows, parts, self.row_lower.size).astype(np.float64)

    def admits(self, values: Floats, tolerance: float = TOLERANCE) -> bool:
        """Return whether these values keep all bounds, rows and whole numbers."""
        whole = values[self.integer]
        rows = self.rows_of(values)
        return bool(
            np.all(values >= self.lower - tolerance)
            and np.all(values <= self.upper + tolerance)
            and np.all(np.abs(whole - np.round(whole)) <= tolerance)
            and np.all(rows >= self.row_lower - tolerance)
            and np.all(rows <= self.row_upper + tolerance)
        )


def _check(program: Program) -> None:
    columns = program.objective.size
    rows = program.row_lower.size
    starts = program.row_starts
    for name, size in (("lower", columns), ("upper", columns), ("integer", columns)):
        if getattr(program, name).shape != (size,):
            raise ValueError(f"{name}: shape {getattr(program, name).shape}, not ({size},)")
    if program.row_upper.shape != (rows,) or starts.shape != (rows + 1,):
        raise ValueError(f"{rows} lower bounds of rows, but {program.row_upper.size} upper bounds")
    entries = program.entry_values.size
    if starts[0] != 0 or starts[-1] != entries or (np.diff(starts) < 0).any():
        raise ValueError("row_starts do not ascend from 0 to the number of entries")
    where = program.entry_columns
    if where.shape != (entries,) or (entries and not 0 <= where.min() <= where.max() < columns):
        raise ValueError(f"an entry is in none of the {columns} columns")
    if not (np.isfinite(program.objective).all() and np.isfinite(program.entry_values).all()):
        raise ValueError("a coefficient is not a finite number")
    for low, high in ((program.lower, program.upper), (program.row_lower, program.row_upper)):
        if np.isnan(low).any() or np.isnan(high).any():
            raise ValueError("a bound is not a number")


@dataclass(slots=True)
class ProgramBuilder:
    """Appends columns, rows and entries as arrays; ``build`` sorts them into a program."""

    _columns: int = 0
    _rows: int = 0
    _objective: list[Floats] = field(default_factory=list)
    _lower: list[Floats] = field(default_factory=list)
    _upper: list[Floats] = field(default_factory=list)
    _integer: list[Booleans] = field(default_factory=list)
    _row_lower: list[Floats] = field(default_factory=list)
    _row_upper: list[Floats] = field(default_factory=list)
    _entries: list[tuple[Integers, Integers, Floats]] = field(default_factory=list)

    def add_columns(
        self, lower: ArrayLike, upper: ArrayLike, integer: ArrayLike, objective: ArrayLike = 0.0
    ) -> Integers:
        """Append columns; what is one number holds for all of them. Returns their numbers."""
        low, high, whole, worth = np.broadcast_arrays(
            np.atleast_1d(np.asarray(lower, np.float64)),
            np.asarray(upper, np.float64),
            np.asarray(integer, np.bool_),
            np.asarray(objective, np.float64),
        )
        self._lower.append(low)
        self._upper.append(high)
        self._integer.append(whole)
        self._objective.append(worth)
        first = self._columns
        self._columns += low.size
        return np.arange(first, self._columns)

    def add_rows(self, lower: ArrayLike, upper: ArrayLike) -> Integers:
        """Append rows without entries; returns their numbers."""
        low, high = np.broadcast_arrays(
            np.atleast_1d(np.asarray(lower, np.float64)), np.asarray(upper, np.float64)
        )
        self._row_lower.append(low)
        self._row_upper.append(high)
        first = self._rows
        self._rows += low.size
        return np.arange(first, self._rows)

    def add_entries(self, rows: ArrayLike, columns: ArrayLike, values: ArrayLike) -> None:
        """Append coefficients; those of one row and column add up."""
        at_rows, at_columns, coefficients = np.broadcast_arrays(
            np.atleast_1d(np.asarray(rows, np.int64)),
            np.asarray(columns, np.int64),
            np.asarray(values, np.float64),
        )
        self._entries.append((at_rows, at_columns, coefficients))

    def add_objective(self, columns: ArrayLike, values: ArrayLike) -> None:
        """Append to what columns are worth; values of one column add up."""
        self.add_entries(np.full(np.size(columns), -1), columns, values)

    def build(self) -> Program:
        """The program.

        Raises ``ValueError`` if an entry is in a row or column that was not appended, or a number
        is not finite.
        """
        parts = self._entries or [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        if rows.size and not -1 <= rows.min() <= rows.max() < self._rows:
            raise ValueError(f"an entry is in none of the {self._rows} rows")
        if columns.size and not 0 <= columns.min() <= columns.max() < self._columns:
            raise ValueError(f"an entry is in none of the {self._columns} columns")
        objective = _joined(self._objective, np.float64)
        worth = rows < 0
        objective = objective + np.bincount(columns[worth], values[worth], objective.size)
        rows, columns, values = _merged(
            rows[~worth], columns[~worth], values[~worth], max(self._columns, 1)
        )
        return Program(
            objective=objective,
            lower=_joined(self._lower, np.float64),
            upper=_joined(self._upper, np.float64),
            integer=_joined(self._integer, np.bool_),
            row_lower=_joined(self._row_lower, np.float64),
            row_upper=_joined(self._row_upper, np.float64),
            row_starts=np.searchsorted(rows, np.arange(self._rows + 1)).astype(np.int64),
            entry_columns=columns,
            entry_values=values,
        )


def _joined(parts: list[NDArray[Scalar]], kind: type[Scalar]) -> NDArray[Scalar]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _merged(
    rows: Integers, columns: Integers, values: Floats, width: int
) -> tuple[Integers, Integers, Floats]:
    """Entries by row, then column; those of one place added up and zeros dropped."""
    place = rows * width + columns
    order = np.argsort(place, kind="stable")
    place = place[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    values = np.add.reduceat(values[order], first) if first.size else np.empty(0)
    place = place[first]
    kept = values != 0.0
    return place[kept] // width, place[kept] % width, values[kept]


class SolveStatus(StrEnum):
    """Ways in which a solve ends."""

    OPTIMAL = "optimal"
    """Within the gap that was asked for."""

    STOPPED = "stopped"
    """At a limit, with values that may not be the best."""

    NOTHING_FOUND = "nothing found"
    """At a limit, without values."""

    INFEASIBLE = "infeasible"
    """Impossible: no values keep all bounds."""

    UNBOUNDED = "unbounded"
    """There is no best: values without end."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a solve: after so many seconds, or as near to the bound as this share.

    ``most_nodes`` of a search tree are looked at, and ``most_checks`` times the back end may look
    at its limits, whatever the time; None: no such limit. A back end that counts none has the clock
    alone.

    Raises ``InputError`` if the time limit is not above 0 or the gap is negative.
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
    """Answer of a solver."""

    status: SolveStatus
    """End of the solve."""
    values: Floats | None
    """Per column; None if nothing was found."""
    objective: float
    """Worth of the values; -inf if nothing was found."""
    bound: float
    """Upper bound of the worth of any values; inf if the back end cannot say."""
    seconds: float
    """Time that the solve took."""
    checks: int = 0
    """Number of times it looked at its limits; 0 if the back end does not count."""

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


@dataclass(frozen=True, slots=True, eq=False)
class RelaxedSolution:
    """The best values where columns need not be whole."""

    status: SolveStatus
    """``OPTIMAL``, or why there are no values."""
    values: Floats | None
    prices: Floats | None
    """Per column; and per row the worth of one unit more of its bound. None without values."""
    objective: float
    """Worth of the values: no whole ones are worth more. inf without values."""
    iterations: int
    """Number of iterations of the solve."""


class Relaxation(Protocol):
    """A program whose columns need not be whole, which grows between solves."""

    def add_columns(
        self, objective: Floats, upper: Floats, starts: Integers, rows: Integers, values: Floats
    ) -> None:
        """Append columns from 0 to ``upper``.

        Entries of column c are ``starts[c]`` up to ``starts[c + 1]`` of ``rows`` and ``values``;
        ``starts`` has one number more than there are columns.
        """

    def solve(
        self, most_iterations: int | None = None, time_limit_seconds: float = math.inf
    ) -> RelaxedSolution:
        """The best values, beginning from where the last solve ended."""


class Solver(ABC):
    """A back end."""

    @abstractmethod
    def solve(self, program: Program, limits: Limits, start: Floats | None = None) -> Solution:
        """Find the best values within the limits; ``start`` are values to begin from.

        A solve that runs out of time without any values says so in its status. A back end that
        cannot begin from values, stop within a gap or tell a bound does without.
        """

    def relaxation(self, program: Program) -> Relaxation | None:
        """Relax a program, without a solve yet; None from a back end that has none that grow."""
        del program
        return None


def nothing(ended: SolveStatus, seconds: float, bound: float = math.inf) -> Solution:
    """The answer of a back end that has no values: there are none, or it found none."""
    bound = {SolveStatus.INFEASIBLE: -math.inf, SolveStatus.UNBOUNDED: math.inf}.get(ended, bound)
    return Solution(ended, None, -math.inf, bound, seconds)


def find_solver(name: str) -> Solver:
    """The back end of this name.

    Raises ``UnknownNameError`` if there is none.
    """
    entry = find("solver", name)
    solver: Solver = entry.build(entry.parameters())
    return solver
