"""What an analysis finds: a verdict in words, numbers, tables, and what to draw of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import polars as pl

from foresail.model.registry import NoParameters
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture of a finding's table, said in data; ``foresail.reports`` draws it.

    Parameters
    ----------
    kind
        ``line`` and ``steps`` through (x, y); ``points``; ``bars``; ``band`` (y with the columns
        ``low`` and ``high`` of the table around it); ``box`` (a Tukey box per x from the columns
        ``lower_whisker``, ``quartile_1``, ``median``, ``quartile_3``, ``upper_whisker``); ``heat``
        (a cell per (x, y) shaded by ``shade``).
    table
        Which of the finding's tables it shows.
    x, y
        Columns.
    series
        Column that tells several lines (or groups of bars) apart.
    shade
        Column of the shade of a heat map.
    x_label, y_label
        With units.
    x_kind, y_kind
        How values are said: plain numbers, durations in seconds, shares of one, hours of the day
        (0 to 24), or names (x only).
    log_x, log_y
        Logarithmic axes.
    alternative
        The finding in a sentence, for those who cannot see the picture.
    """

    kind: Literal["line", "steps", "points", "bars", "band", "box", "heat"]
    table: str
    x: str
    y: str
    x_label: str
    y_label: str
    alternative: str
    series: str | None = None
    shade: str | None = None
    x_kind: Literal["number", "duration", "share", "hour", "category"] = "number"
    y_kind: Literal["number", "duration", "share"] = "number"
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What one analysis found on one workload.

    Parameters
    ----------
    name
        Name the analysis is registered under.
    title
        As a heading.
    verdict
        One sentence with the numbers that matter.
    scalars
        Every number that a study reports, by name with unit.
    tables
        The arrays behind it, small enough to draw (some thousand rows); written as CSV.
    plots
        What to draw of the tables.
    notes
        What the reader must know to trust it: definitions, what was left out and how many.
    """

    name: str
    title: str
    verdict: str
    scalars: Mapping[str, float]
    tables: Mapping[str, pl.DataFrame]
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = field(default=())


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
        """What it finds; ``Unavailable`` where the workload lacks a field, never a guess."""
        ...


class PlainAnalysis:
    """Base of analyses that have nothing to set."""

    def __init__(self, parameters: NoParameters) -> None:
        del parameters
