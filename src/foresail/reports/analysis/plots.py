"""Draw the plots that analyses declare, for one log or overlaid for several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.analysis.finding import Finding, Plot
from foresail.model.arrays import Floats
from foresail.reports.curve_figure import AxisScale, band_between, scale_of
from foresail.reports.figure import Figure, packed
from foresail.reports.style import caption, layout, literal

_COLOURS: Final = ("@policy1", "@policy2", "@policy3", "@policy4", "@policy5", "@policy6")
_GREY: Final = "@policy0"
_SYMBOLS: Final = ("circle", "diamond", "square", "triangle-up", "cross", "x")
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True, slots=True)
class LogStyle:
    """A log's looks, the same throughout a report.

    The dash is for figures whose lines tell nothing but logs.
    """

    log: str
    colour: str
    dash: str
    symbol: str


def log_styles(logs: Sequence[str]) -> tuple[LogStyle, ...]:
    """A style per log: six hues, grey, and then the same again with other dashes."""
    colours = (*_COLOURS, _GREY)
    return tuple(
        LogStyle(
            log,
            colours[position % len(colours)],
            DASHES[position // len(colours) % len(DASHES)],
            _SYMBOLS[position % len(_SYMBOLS)],
        )
        for position, log in enumerate(logs)
    )


def series_colour(position: int) -> str:
    """Colour of one of several series where there is only one log."""
    return _COLOURS[position % len(_COLOURS)]


_HEIGHT: Final = 300
_HEAT_HEIGHT: Final = 170
_PALE: Final = 0.5
_BOX: Final = ("lower_whisker", "quartile_1", "median", "quartile_3", "upper_whisker")


@dataclass(frozen=True)
class LogPlot:
    """One plot of a finding on one log."""

    style: LogStyle
    finding: Finding
    plot: Plot

    @property
    def table(self) -> pl.DataFrame:
        """The rows behind it."""
        return self.finding.tables[self.plot.table]

    def series(self) -> list[tuple[str | None, pl.DataFrame]]:
        """The rows by series, in order of appearance."""
        table = self.table
        if self.plot.series is None:
            return [(None, table)]
        parts = table.partition_by(self.plot.series, maintain_order=True)
        return [(str(part[self.plot.series][0]), part) for part in parts]

    def lines(self) -> list[int]:
        """Rows of each line; nothing for a heat map, which is an image."""
        return [] if self.plot.kind == "heat" else [part.height for _, part in self.series()]


@dataclass(frozen=True)
class _Look:
    name: str
    log: str
    series: str | None
    colour: str
    dash: str
    symbol: str
    opacity: float


def most_rows(lines: Sequence[int], marks: int) -> int:
    """Return how many rows of each line may be drawn so that all together make at most ``marks``.

    Never fewer than 40, which a line needs to have a shape.
    """
    low, high = 40, max([40, *lines])
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(rows, middle) for rows in lines) <= marks:
            low = middle
        else:
            high = middle - 1
    return low


def drawn(
    name: str,
    parts: Sequence[LogPlot],
    findings: Sequence[str],
    *,
    rows: int,
    longest: float,
    table: pl.DataFrame,
    note: str = "",
) -> Figure:
    """One figure with the same plot of at least one log.

    Lines have at most so many ``rows``, evenly thinned beyond; ``longest`` is the longest duration
    of the page in seconds. The others are as in ``Figure``.
    """
    first = parts[0].plot
    if first.kind == "heat":
        traces, drawing = _heat(parts)
    else:
        across, up = _scales(parts, longest)
        traces = [
            trace for part in parts for trace in _traces(part, across, up, rows, len(parts) > 1)
        ]
        drawing = layout(
            _HEIGHT,
            xaxis=across.axis,
            yaxis=up.axis,
            barmode="group",
            boxmode="group",
            hovermode="closest",
        )
        if any(count > rows for part in parts for count in part.lines()):
            note = f"{note} Lines are drawn through {rows} of their points.".strip()
    title = parts[0].finding.title
    return Figure(name, title, list(findings), traces, drawing, table, note)


def _scales(parts: Sequence[LogPlot], longest: float) -> tuple[AxisScale, AxisScale]:
    plot = parts[0].plot
    ups = ["low", "high"] if plot.kind == "band" else []
    ups = list(_BOX) if plot.kind == "box" else [plot.y, *ups]
    y_values = np.concatenate([_numbers(part.table, column) for part in parts for column in ups])
    y_values = y_values[np.isfinite(y_values)]
    up = scale_of(plot.y_label, plot.y_kind, y_values, log=plot.log_y, longest=longest)
    if plot.kind == "steps" and plot.y_kind == "share":
        up.axis["range"] = [0, 1.02]
    if plot.x_kind == "category" or parts[0].table.schema[plot.x] == pl.String:
        across = scale_of(plot.x_label, "number", np.zeros(1), log=False)
        across.axis.update(type="category", rangemode="normal", showgrid=False)
        del across.axis["tickformat"]
        return across, up
    x_values = np.concatenate([_numbers(part.table, plot.x) for part in parts])
    x_values = x_values[np.isfinite(x_values)]
    across = scale_of(plot.x_label, plot.x_kind, x_values, log=plot.log_x, longest=longest)
    if plot.kind not in ("bars", "box") and plot.x_kind not in ("hour",) and not plot.log_x:
        across.axis["rangemode"] = "normal"
    return across, up


def _traces(
    part: LogPlot, across: AxisScale, up: AxisScale, rows: int, overlaid: bool
) -> Iterator[dict[str, Any]]:
    for position, (series, table) in enumerate(part.series()):
        look = _look(part.style, series, position, overlaid)
        if part.plot.kind == "box":
            yield from _boxes(part.plot, table, look, up)
            continue
        shown = _thinned(_complete(table, part.plot), rows)
        if part.plot.kind == "bars":
            yield _bars(part.plot, shown, look, across, up)
            continue
        if part.plot.kind == "band":
            x = across.drawn(_numbers(shown, part.plot.x))
            low, high = (up.drawn(_numbers(shown, column)) for column in ("low", "high"))
            yield band_between(look.colour, x, low, high)
        yield _line(part.plot, shown, look, across, up)


def _look(style: LogStyle, series: str | None, position: int, overlaid: bool) -> _Look:
    """Colours distinguish logs, and dashes their series; of a single log, colours its series."""
    if series is None:
        name = literal(style.log)
        return _Look(name, name, None, style.colour, style.dash, style.symbol, 1.0)
    log, told = literal(style.log), literal(series)
    dash = DASHES[position % len(DASHES)]
    if not overlaid:
        return _Look(told, log, told, series_colour(position), dash, style.symbol, 1.0)
    opacity = 1.0 if position == 0 else _PALE
    return _Look(f"{log}: {told}", log, told, style.colour, dash, style.symbol, opacity)


def _line(
    plot: Plot, table: pl.DataFrame, look: _Look, across: AxisScale, up: AxisScale
) -> dict[str, Any]:
    trace = _marks("scatter", plot, table, look, across, up)
    trace |= {"showlegend": True, "cliponaxis": False}
    marker = {"color": look.colour, "symbol": look.symbol, "size": 6, "opacity": 0.75}
    if plot.kind == "points":
        return trace | {"mode": "markers", "marker": marker}
    few = table.height == 1
    shape = "hv" if plot.kind == "steps" else "linear"
    width = 1.6 if table.height > 200 and plot.kind == "line" else 2.2
    line = {"color": look.colour, "dash": look.dash, "width": width, "shape": shape}
    return trace | {"mode": "lines+markers" if few else "lines", "line": line, "marker": marker}


def _bars(
    plot: Plot, table: pl.DataFrame, look: _Look, across: AxisScale, up: AxisScale
) -> dict[str, Any]:
    marker = {"color": look.colour, "opacity": look.opacity}
    marks = _marks("bar", plot, table, look, across, up)
    return marks | {"marker": marker, "showlegend": True}


def _marks(
    kind: str, plot: Plot, table: pl.DataFrame, look: _Look, across: AxisScale, up: AxisScale
) -> dict[str, Any]:
    """Return what lines and bars have in common: whose they are, where, and what is said there."""
    x, said = _positions(plot, table, across)
    y = _numbers(table, plot.y)
    return {
        "type": kind,
        "name": look.name,
        "legendgroup": look.log,
        "meta": look.series,
        "x": x,
        "y": packed(up.drawn(y)),
        "customdata": [
            f"{at}: {up.said(value)}" for at, value in zip(said, y.tolist(), strict=True)
        ],
        "hovertemplate": f"%{{customdata}}<extra>{look.name}</extra>",
    }


def _boxes(plot: Plot, table: pl.DataFrame, look: _Look, up: AxisScale) -> Iterator[dict[str, Any]]:
    lower, first, median, third, upper = (
        up.drawn(_numbers(table, column)).tolist() for column in _BOX
    )
    names = [literal(name) for name in table[plot.x].cast(pl.String).to_list()]
    yield {
        "type": "box",
        "name": look.name,
        "legendgroup": look.log,
        "meta": look.series,
        "x": names,
        "q1": first,
        "median": median,
        "q3": third,
        "lowerfence": lower,
        "upperfence": upper,
        "line": {"color": look.colour, "dash": "solid", "width": 1.8},
        "marker": {"color": look.colour, "symbol": look.symbol},
        "offsetgroup": look.name,
        "showlegend": True,
    }


def _heat(parts: Sequence[LogPlot]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A map per log, one above the other on the same axes."""
    plot = parts[0].plot
    gap = 0.28 / len(parts) if len(parts) > 1 else 0.0
    tall = (1.0 - gap * (len(parts) - 1)) / len(parts)
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes = []
    for position, part in enumerate(parts):
        number = "" if position == 0 else str(position + 1)
        top = 1.0 - position * (tall + gap)
        across = scale_of(plot.x_label, plot.x_kind, _numbers(part.table, plot.x), log=False)
        up = scale_of(plot.y_label, plot.y_kind, _numbers(part.table, plot.y), log=False)
        traces.append(
            {
                "type": "heatmap",
                "name": literal(part.style.log),
                "x": packed(across.drawn(_numbers(part.table, plot.x))),
                "y": packed(up.drawn(_numbers(part.table, plot.y))),
                "z": packed(_numbers(part.table, plot.shade or plot.y)),
                "colorscale": [[0, "@cell"], [1, part.style.colour]],
                "showscale": False,
                "hovertemplate": "%{x:.4~g}, %{y:.4~g}: %{z:.4~g}"
                f"<extra>{literal(part.style.log)}</extra>",
                "xaxis": f"x{number}",
                "yaxis": f"y{number}",
            }
        )
        axes[f"xaxis{number}"] = across.axis | {
            "anchor": f"y{number}",
            "rangemode": "normal",
            "showgrid": False,
        }
        axes[f"yaxis{number}"] = up.axis | {
            "domain": [max(top - tall, 0.0), top],
            "anchor": f"x{number}",
            "rangemode": "normal",
            "showgrid": False,
        }
        if len(parts) > 1:
            notes.append(caption(literal(part.style.log), top, part.style.colour))
    height = max(_HEIGHT, _HEAT_HEIGHT * len(parts))
    return traces, layout(height, annotations=notes, **axes)


def _positions(plot: Plot, table: pl.DataFrame, across: AxisScale) -> tuple[Any, list[str]]:
    """Say where marks lie along x, and what that is called."""
    if plot.x_kind == "category" or table.schema[plot.x] == pl.String:
        names = table[plot.x].cast(pl.String).to_list()
        return [literal(name) for name in names], [literal(name) for name in names]
    values = _numbers(table, plot.x)
    return packed(across.drawn(values)), [across.said(value) for value in values.tolist()]


def _complete(table: pl.DataFrame, plot: Plot) -> pl.DataFrame:
    known = pl.col(plot.y).is_not_null()
    if table.schema[plot.y].is_float():
        known &= pl.col(plot.y).is_finite()
    return table.filter(known & pl.col(plot.x).is_not_null())


def _thinned(table: pl.DataFrame, rows: int) -> pl.DataFrame:
    if table.height <= rows:
        return table
    return table[np.unique(np.linspace(0, table.height - 1, rows).round().astype(np.int64))]


def _numbers(table: pl.DataFrame, column: str) -> Floats:
    return table[column].cast(pl.Float64).to_numpy().astype(np.float64)
