"""Finding of an analysis: a verdict in words, numbers, tables, and plots to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper, wraps
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import polars as pl

from foresail.model.registry import NoParameters
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture of a finding's table, said in data; ``foresail.reports`` draws it."""

    kind: Literal["line", "steps", "points", "bars", "rows", "band", "box", "heat"]
    """``line`` and ``steps`` through (x, y); ``points``; ``bars``; ``rows`` (bars that lie, x at
    their left); ``band`` (y with the columns ``low`` and ``high`` of the table around it); ``box``
    (a Tukey box per x from the columns ``lower_whisker``, ``quartile_1``, ``median``,
    ``quartile_3``, ``upper_whisker``); ``heat`` (a cell per (x, y) shaded by ``shade``)."""
    table: str
    """The finding's table that the plot shows."""
    x: str
    y: str
    """Columns."""
    x_label: str
    y_label: str
    """With units."""
    alternative: str
    """The finding in a sentence, for those who cannot see the picture."""
    series: str | None = None
    """Column that distinguishes several lines (or groups of bars)."""
    shade: str | None = None
    """Column of the shade of a heat map."""
    x_kind: Literal["number", "duration", "share", "hour", "category"] = "number"
    y_kind: Literal["number", "duration", "share"] = "number"
    """Notation of values: plain numbers, durations in seconds, shares of one, hours of the day (0
    to 24), or names (x only)."""
    log_x: bool = False
    log_y: bool = False
    """Logarithmic axes."""
    level: float | None = None
    """A height that values are compared with."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding of one analysis on one workload."""

    name: str
    """Name the analysis is registered under."""
    title: str
    """Heading of the page."""
    verdict: str
    """One sentence with the numbers that matter."""
    scalars: Mapping[str, float]
    """Every number that a study reports, by name with unit."""
    tables: Mapping[str, pl.DataFrame]
    """The arrays behind it, small enough to draw (some thousand rows); written as CSV."""
    plots: tuple[Plot, ...] = ()
    """Drawings of the tables."""
    notes: tuple[str, ...] = field(default=())
    """Remarks that the reader needs to trust it: definitions, what was left out and how many."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An analysis that the workload cannot answer, and the field that is missing."""

    name: str
    title: str
    reason: str


class Analysis(Protocol):
    """One analysis; built from its parameters record alone.

    A class may say in ``section`` which section of the workload study it belongs to ("3.4"), which
    is where it stands among the others.
    """

    def examine(self, workload: Workload) -> Finding | Unavailable:
        """Return the finding; ``Unavailable`` where the workload lacks a field, never a guess."""


class Answer(NamedTuple):
    """Finding of a study: a ``Finding`` but for the study's own name and title."""

    verdict: str
    scalars: Mapping[str, float]
    tables: Mapping[str, pl.DataFrame]
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Study:
    """An analysis that is a function of its parameters and of the workload."""

    name: str
    title: str
    parameters: Any
    ask: Callable[[Any, Workload], Answer | str]

    def examine(self, workload: Workload) -> Finding | Unavailable:
        answer = self.ask(self.parameters, workload)
        if isinstance(answer, str):
            return Unavailable(self.name, self.title, answer)
        return Finding(self.name, self.title, *answer)


Record = TypeVar("Record")


def study_with_parameters(
    title: str, section: str = ""
) -> Callable[[Callable[[Record, Workload], Answer | str]], Callable[[Record], Analysis]]:
    """Make a builder of an analysis from a function that has its name.

    The function answers, or says what the workload lacks.
    """

    def studied(ask: Callable[[Record, Workload], Answer | str]) -> Callable[[Record], Analysis]:
        def build(parameters: Record) -> Analysis:
            return _Study(ask.__name__, title, parameters, ask)

        update_wrapper(build, ask)
        del build.__dict__["__wrapped__"]  # it takes the parameters alone
        build.__dict__["section"] = section
        return build

    return studied


def study(
    title: str, section: str = ""
) -> Callable[[Callable[[Workload], Answer | str]], Callable[[NoParameters], Analysis]]:
    """The same of a function that has nothing to set."""

    def studied(ask: Callable[[Workload], Answer | str]) -> Callable[[NoParameters], Analysis]:
        @wraps(ask)
        def asked(_: NoParameters, workload: Workload) -> Answer | str:
            return ask(workload)

        return study_with_parameters(title, section)(asked)

    return studied
