"""Draw plots as they are declared: of one table or several overlaid, and panels of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl

from foresail.analysis.finding import Plot
from foresail.model.distribution import Floats
from foresail.reports import style as looks
from foresail.reports.curve_figure import AxisScale, band_between, scale_of
from foresail.reports.figure import Figure, packed

_COLOURS: Final = ("@policy1", "@policy2", "@policy3", "@policy4", "@policy5", "@policy6")
_GREY: Final = "@policy0"
_SYMBOLS: Final = ("circle", "diamond", "square", "triangle-up", "cross", "x")
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")

_HEIGHT: Final = 320
_PANEL_HEIGHT: Final = 170
_PALE: Final = 0.5
_PALEST: Final = 0.25
_NEARLY_ALL: Final = 0.9
_BOX: Final = ("lower_whisker", "quartile_1", "median", "quartile_3", "upper_whisker")


def log_styles(logs: Sequence[str]) -> tuple[looks.PolicyStyle, ...]:
    """A style per log: six hues, grey, and then the same again with other dashes."""
    colours = (*_COLOURS, _GREY)
    return tuple(
        looks.PolicyStyle(
            policy=log,
            label=log,
            drawn=looks.literal(log),
            colour=colours[position % len(colours)],
            dash=DASHES[position // len(colours) % len(DASHES)],
            symbol=_SYMBOLS[position % len(_SYMBOLS)],
        )
        for position, log in enumerate(logs)
    )


PlotKind: TypeAlias = Literal["line", "steps", "points", "bars", "rows", "band", "box", "heat"]


def plot_of(kind: PlotKind, x: str, y: str, x_label: str, y_label: str, **more: Any) -> Plot:
    """A plot of a table that is at hand, which other sentences tell of."""
    return Plot(kind, "", x, y, x_label, y_label, "", **more)


@dataclass(frozen=True)
class PlottedTable:
    """A plot of one table, in the looks of the log or policy whose table it is."""

    style: looks.PolicyStyle
    plot: Plot
    table: pl.DataFrame

    def series(self) -> list[tuple[str | None, pl.DataFrame]]:
        """The rows by series, in order of appearance."""
        if self.plot.series is None:
            return [(None, self.table)]
        parts = self.table.partition_by(self.plot.series, maintain_order=True)
        return [(str(part[self.plot.series][0]), part) for part in parts]

    def lines(self) -> list[int]:
        """Rows of each line; nothing for a heat map, which is an image."""
        return [] if self.plot.kind == "heat" else [part.height for _, part in self.series()]

    @property
    def names_places(self) -> bool:
        """Return whether x are names, and not numbers."""
        return self.plot.x_kind == "category" or self.table.schema[self.plot.x] == pl.String


def stacked(parts: Sequence[PlottedTable], by: str) -> pl.DataFrame:
    """All rows of some parts, with whose they are as the first column."""
    return pl.concat(
        [part.table.select(pl.lit(part.style.policy).alias(by), pl.all()) for part in parts],
        how="diagonal_relaxed",
    )


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
    title: str,
    findings: Sequence[str],
    panels: Sequence[Sequence[PlottedTable]],
    *,
    table: pl.DataFrame,
    note: str = "",
    rows: int | None = None,
    longest: float = 0.0,
    **settings: Any,
) -> Figure:
    """One figure: panels above one another, in each the same plot of at least one table.

    Panels that say the same of x share its axis; rows of several series are stacked. Lines have at
    most so many ``rows``, evenly thinned beyond; ``longest`` is the longest duration of the page in
    seconds. Further settings are those of ``layout``, the others as in ``Figure``.
    """
    if panels[0][0].plot.kind == "heat":
        panels = [[part] for parts in panels for part in parts]
    every = [part for parts in panels for part in parts]
    shared = len({part.plot.x_label for part in every}) == 1 and every[0].plot.kind != "heat"
    gap = 0.0 if len(panels) == 1 else (0.06 if shared else 0.28 / len(panels))
    tall = (1.0 - gap * (len(panels) - 1)) / len(panels)
    axes: dict[str, Any] = {}
    traces: list[dict[str, Any]] = []
    shapes, captions = [*settings.pop("shapes", ())], [*settings.pop("annotations", ())]
    for place, parts in enumerate(panels):
        number, plot, top = (
            str(place + 1) if place else "",
            parts[0].plot,
            1.0 - place * (tall + gap),
        )
        across, up = _across(every if shared else parts, longest), _up(parts, longest)
        at = "" if shared else number
        domain = {"domain": [max(top - tall, 0.0), top]} if len(panels) > 1 else {}
        x_axis, y_axis = across.axis, up.axis
        if plot.kind == "rows":
            names = looks.axis("", type="category", autorange="reversed", showgrid=False)
            x_axis, y_axis = up.axis, names
        if plot.kind == "heat":
            look = {"rangemode": "normal", "showgrid": False}
            x_axis, y_axis = x_axis | look, y_axis | look
            if len(panels) > 1:
                captions.append(looks.caption(parts[0].style.drawn, top, parts[0].style.colour))
        anchor = len(panels) if shared else place + 1
        axes[f"xaxis{at}"] = x_axis | {"anchor": f"y{anchor}" if anchor > 1 else "y"}
        axes[f"yaxis{number}"] = y_axis | domain | {"anchor": f"x{at}"}
        if plot.level is not None:
            height = float(up.drawn(np.array([plot.level]))[0])
            shapes.append(looks.level_at(height, yref=f"y{number}", layer="below"))
        for part in parts:
            for trace in _traces(part, across, up, rows, len(parts) > 1):
                labels = trace["showlegend"] and trace["name"] not in {
                    each["name"] for each in traces if each["showlegend"]
                }
                traces.append(
                    trace | {"showlegend": labels, "xaxis": f"x{at}", "yaxis": f"y{number}"}
                )
    if rows is not None and any(count > rows for part in every for count in part.lines()):
        note = f"{note} Lines are drawn through {rows} of their points.".strip()
    tallest = max(_HEIGHT, _PANEL_HEIGHT * len(panels))
    drawing = looks.layout(
        settings.pop("height", tallest),
        barmode="stack" if every[-1].plot.kind == "rows" and every[-1].plot.series else "group",
        boxmode="group",
        hovermode="closest",
        shapes=shapes,
        annotations=captions,
        **axes,
        **settings,
    )
    return Figure(name, title, list(findings), traces, drawing, table, note)


def _known(parts: Sequence[PlottedTable], columns: Callable[[Plot], Sequence[str]]) -> Floats:
    """All finite values of columns that each part's plot names."""
    found = [_numbers(part.table, name) for part in parts for name in columns(part.plot)]
    values: Floats = np.concatenate(found)
    return values[np.isfinite(values)]


def _heights(plot: Plot) -> Sequence[str]:
    if plot.kind == "box":
        return _BOX
    return (plot.y, "low", "high") if plot.kind == "band" else (plot.y,)


def _across(parts: Sequence[PlottedTable], longest: float) -> AxisScale:
    plot = parts[0].plot
    if parts[0].names_places:
        across = scale_of(plot.x_label, "number", np.zeros(1), log=False)
        across.axis.update(type="category", rangemode="normal", showgrid=False)
        del across.axis["tickformat"]
        return across
    values = _known(parts, lambda plot: [plot.x])
    across = scale_of(plot.x_label, plot.x_kind, values, log=plot.log_x, longest=longest)
    if plot.kind not in ("bars", "box") and plot.x_kind != "hour" and not plot.log_x:
        across.axis["rangemode"] = "normal"
    return across


def _up(parts: Sequence[PlottedTable], longest: float) -> AxisScale:
    plot = parts[0].plot
    values = _known(parts, _heights)
    up = scale_of(plot.y_label, plot.y_kind, values, log=plot.log_y, longest=longest)
    if plot.kind == "steps" and plot.y_kind == "share" and values.max(initial=0.0) > _NEARLY_ALL:
        up.axis["range"] = [0, 1.02]
    return up


def _traces(
    part: PlottedTable, across: AxisScale, up: AxisScale, rows: int | None, overlaid: bool
) -> Iterator[dict[str, Any]]:
    """Colours distinguish tables, dashes their series; of a single table, colours its series."""
    plot = part.plot
    for position, (series, table) in enumerate(part.series()):
        style, known = part.style, {"legendgroup": part.style.drawn, "meta": None}
        if series is not None:
            said, dash = looks.literal(series), DASHES[position % len(DASHES)]
            known["meta"] = said
            style = (
                replace(style, drawn=f"{style.drawn}: {said}", dash=dash)
                if overlaid
                else replace(
                    style, drawn=said, colour=_COLOURS[position % len(_COLOURS)], dash=dash
                )
            )
        if plot.kind == "heat":
            yield known | _heat(plot, table, style, across, up)
            continue
        if plot.kind == "box":
            yield known | _boxes(plot, table, style, up)
            continue
        shown = _thinned(_complete(table, plot), rows)
        if plot.kind == "band":
            x = across.drawn(_numbers(shown, plot.x))
            low, high = (up.drawn(_numbers(shown, column)) for column in ("low", "high"))
            yield band_between(style.colour, x, low, high) | {"name": style.drawn}
        opacity = max(_PALE**position, _PALEST) if overlaid else 1.0
        yield known | _marks(part, shown, style, across, up, opacity)


def _marks(
    part: PlottedTable,
    table: pl.DataFrame,
    style: looks.PolicyStyle,
    across: AxisScale,
    up: AxisScale,
    opacity: float,
) -> dict[str, Any]:
    """A line, points or bars, with what is said of each of them."""
    plot, x, said = part.plot, *_positions(part, table, across)
    heights = _numbers(table, plot.y)
    y, hover = packed(up.drawn(heights)), f"%{{customdata}}<extra>{style.drawn}</extra>"
    labels = [f"{at}: {up.said(value)}" for at, value in zip(said, heights.tolist(), strict=True)]
    more: dict[str, Any] = {"customdata": labels, "hovertemplate": hover}
    marker = {"color": style.colour, "symbol": style.symbol, "size": 6, "opacity": 0.75}
    if plot.kind in ("bars", "rows"):
        more |= {"type": "bar", "marker": {"color": style.colour, "opacity": opacity}}
        if plot.kind == "rows":
            series = f" {table[plot.series][0]}" if plot.series and table.height else ""
            words = [up.said(value) + series for value in heights.tolist()]
            more |= {"orientation": "h", "text": words, "textposition": "auto"}
            more["insidetextfont"] = {"color": "@paper" if opacity == 1.0 else "@ink"}
            x, y = y, x
        bars = looks.marks_of(style, x, y, **more)
        del bars["mode"]
        return bars
    if plot.kind == "points":
        return looks.marks_of(style, x, y, **more, marker=marker, cliponaxis=False)
    width = 1.6 if table.height > 200 and plot.kind == "line" else 2.2
    shape = "hv" if plot.kind == "steps" else "linear"
    mode = "lines+markers" if table.height == 1 else "lines"
    more |= {"mode": mode, "marker": marker, "cliponaxis": False}
    return looks.line_of(style, x, y, "", width=width, shape=shape, **more)


def _boxes(
    plot: Plot, table: pl.DataFrame, style: looks.PolicyStyle, up: AxisScale
) -> dict[str, Any]:
    lower, first, median, third, upper = (
        up.drawn(_numbers(table, column)).tolist() for column in _BOX
    )
    return {
        "type": "box",
        "name": style.drawn,
        "x": [looks.literal(name) for name in table[plot.x].cast(pl.String).to_list()],
        "q1": first,
        "median": median,
        "q3": third,
        "lowerfence": lower,
        "upperfence": upper,
        "line": {"color": style.colour, "dash": "solid", "width": 1.8},
        "marker": {"color": style.colour, "symbol": style.symbol},
        "offsetgroup": style.drawn,
        "showlegend": True,
    }


def _heat(
    plot: Plot, table: pl.DataFrame, style: looks.PolicyStyle, across: AxisScale, up: AxisScale
) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "name": style.drawn,
        "x": packed(across.drawn(_numbers(table, plot.x))),
        "y": packed(up.drawn(_numbers(table, plot.y))),
        "z": packed(_numbers(table, plot.shade or plot.y)),
        "colorscale": [[0, "@cell"], [1, style.colour]],
        "showscale": False,
        "showlegend": False,
        "hovertemplate": f"%{{x:.4~g}}, %{{y:.4~g}}: %{{z:.4~g}}<extra>{style.drawn}</extra>",
    }


def _positions(part: PlottedTable, table: pl.DataFrame, across: AxisScale) -> tuple[Any, list[str]]:
    """Return where marks lie along x, and what that is called."""
    if part.names_places:
        names = [looks.literal(name) for name in table[part.plot.x].cast(pl.String).to_list()]
        return names, names
    values = _numbers(table, part.plot.x)
    return packed(across.drawn(values)), [across.said(value) for value in values.tolist()]


def _complete(table: pl.DataFrame, plot: Plot) -> pl.DataFrame:
    known = pl.col(plot.y).is_not_null()
    if table.schema[plot.y].is_float():
        known &= pl.col(plot.y).is_finite()
    return table.filter(known & pl.col(plot.x).is_not_null())


def _thinned(table: pl.DataFrame, rows: int | None) -> pl.DataFrame:
    if rows is None or table.height <= rows:
        return table
    return table[np.unique(np.linspace(0, table.height - 1, rows).round().astype(np.int64))]


def _numbers(table: pl.DataFrame, column: str) -> Floats:
    return table[column].cast(pl.Float64).to_numpy().astype(np.float64)
