"""A figure of curves: one quantity against another, a line each for what is compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from foresail.model.distribution import Floats
from foresail.model.words import duration, number, percent
from foresail.reports import style as looks
from foresail.reports.figure import Figure, packed

_LEAST_SECONDS: Final = 1.0
_MOST_POWERS: Final = 8
_FEW_POWERS: Final = 2.2
_ONE_POWER: Final = 1.0
_DAY_HOURS: Final = 23
_FEW_WHOLE: Final = 12


@dataclass(frozen=True)
class AxisScale:
    """Scale and units of one axis."""

    axis: dict[str, Any]
    """Axis as Plotly takes it."""
    divisor: float = 1.0
    """Divisor of values."""
    least: float | None = None
    """Smaller values are drawn here; None without a limit."""
    kind: str = field(default="number")

    def drawn(self, values: Floats) -> Floats:
        """Values as they are drawn."""
        scaled = values / self.divisor
        return scaled if self.least is None else np.maximum(scaled, self.least)

    def said(self, value: float) -> str:
        """A value in words."""
        if self.kind == "duration":
            return duration(value)
        return percent(value) if self.kind == "share" else number(value)


def scale_of(
    label: str, kind: str, values: Floats, *, log: bool, longest: float = 0.0
) -> AxisScale:
    """The axis for some values: all finite ones that are drawn on it.

    The kind is ``number``, ``duration`` (seconds), ``share`` or ``hour``. ``longest`` is the
    longest duration of the page in seconds: logarithmic axes of durations all reach that far.
    """
    if log and kind == "duration":
        far = max(longest, float(values.max(initial=0.0)))
        return AxisScale(looks.duration_axis(label, far), least=_LEAST_SECONDS, kind=kind)
    if log:
        return _logarithmic(label, kind, values)
    if kind == "duration":
        unit, seconds = looks.time_unit(float(values.max(initial=0.0)))
        shape = looks.axis(f"{label}, {unit}", rangemode="tozero", tickformat=",~r", tickangle=0)
        return AxisScale(shape, divisor=seconds, kind=kind)
    if kind == "share":
        shape = looks.axis(label, tickformat=".0%", rangemode="tozero", nticks=6, tickangle=0)
        return AxisScale(shape, kind=kind)
    if kind == "hour":
        shape = looks.axis(label, range=[-0.5, _DAY_HOURS + 0.5], dtick=3, tick0=0, tickangle=0)
        return AxisScale(shape, kind=kind)
    smallest = float(values.min(initial=0.0))
    mode = "tozero" if smallest >= 0 else "normal"
    few = values.size > 0 and np.ptp(values) <= _FEW_WHOLE and bool((values % 1 == 0).all())
    ticks = {"dtick": 1} if few else {"nticks": 7}
    shape = looks.axis(label, rangemode=mode, tickformat=",~r", tickangle=0, **ticks)
    return AxisScale(shape, kind=kind)


def _logarithmic(label: str, kind: str, values: Floats) -> AxisScale:
    positive = values[values > 0]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 10.0)
    low, high = (low / 1.3, high * 1.3) if high / low < 1.7 else (low, high)
    reach = math.log10(high / low)
    margin = 0.03 * reach
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if reach <= _ONE_POWER:
        ticks = [step * 10.0**power for power in powers for step in (1, 1.5, 2, 3, 4, 5, 6, 8)]
    elif reach <= _FEW_POWERS:
        ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    else:
        each = max(1, math.ceil(len(powers) / _MOST_POWERS))
        ticks = [10.0**power for power in powers if power % each == 0]
    kept = [tick for tick in ticks if low * 0.93 <= tick <= high * 1.07]
    say = percent if kind == "share" else _short
    shape = looks.axis(
        label,
        type="log",
        range=[math.log10(low) - margin, math.log10(high) + margin],
        tickvals=kept,
        ticktext=[say(tick) for tick in kept],
        tickangle=0,
    )
    return AxisScale(shape, least=low, kind=kind)


def _short(value: float) -> str:
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M")):
        if value >= size:
            return number(value / size) + letter
    return number(value)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis as it is declared; its scale follows from what is drawn."""

    label: str
    kind: Literal["number", "duration", "share", "hour"] = "number"
    log: bool = False
    from_zero: bool = True
    room: float = 1.0
    """Times the largest value that an axis of durations reaches: for words at the last point."""

    def scale(self, values: Sequence[Floats]) -> AxisScale:
        """The scale for all of these values."""
        shown = np.concatenate(values)
        longest = self.room * float(shown.max(initial=0.0))
        found = scale_of(self.label, self.kind, shown, log=self.log, longest=longest)
        if not self.from_zero or (self.kind == "share" and shown.min(initial=0.0) < 0.0):
            found.axis["rangemode"] = "normal"
        return found


_HEIGHT: Final = 340
_FAINT: Final = 0.16
_SIDES: Final = ("top center", "bottom center")


@dataclass(frozen=True)
class Curve:
    """One line."""

    style: looks.PolicyStyle
    """Its looks and name."""
    x: Floats
    y: Floats
    """Shape (points,)."""
    marked: Sequence[int] = ()
    """Places of the points that are marked, and named by the text."""
    text: Sequence[str] = ()
    """Labels of the marked points."""
    low: Floats | None = None
    high: Floats | None = None
    """Shape (points,): a band around it, if there is one."""
    shape: Literal["linear", "vh"] = "linear"
    """Line between points: straight, or (``vh``) in steps that hold up to each point."""


def curve_figure(
    name: str,
    title: str,
    findings: Sequence[str],
    curves: Sequence[Curve],
    x_axis: Axis,
    y_axis: Axis,
    *,
    table: pl.DataFrame,
    note: str = "",
    level: tuple[float, str] | None = None,
) -> Figure:
    """At least one curve on one pair of axes, named in a key above where there are several.

    ``level`` is a height that curves are compared with, and what it is called; the others are as in
    ``Figure``.
    """
    heights = [each for curve in curves for each in (curve.y, curve.low, curve.high)]
    drawn_heights = [each for each in heights if each is not None]
    across = x_axis.scale([curve.x for curve in curves])
    up = y_axis.scale([*drawn_heights, np.array([] if level is None else [level[0]])])
    traces: list[dict[str, Any]] = []
    for position, curve in enumerate(curves):
        if curve.low is not None and curve.high is not None:
            x, low, high = across.drawn(curve.x), up.drawn(curve.low), up.drawn(curve.high)
            traces.append(band_between(curve.style.colour, x, low, high))
        traces.append(_line(curve, across, up))
        if curve.marked:
            traces.append(_marks(curve, across, up, _SIDES[position % len(_SIDES)]))
    drawing = looks.layout(_HEIGHT, xaxis=across.axis, yaxis=up.axis, hovermode="closest")
    if level is not None:
        at = float(up.drawn(np.array([level[0]]))[0])
        words = looks.caption(
            looks.literal(level[1]), math.log10(at) if y_axis.log else at, "@muted"
        )
        drawing["shapes"] = [looks.level_at(at, line=looks.DOTTED, layer="below")]
        drawing["annotations"] = [words | {"yref": "y", "x": 1, "xanchor": "right"}]
    return Figure(name, title, list(findings), traces, drawing, table, note)


def _line(curve: Curve, across: AxisScale, up: AxisScale) -> dict[str, Any]:
    points = zip(curve.x.tolist(), curve.y.tolist(), strict=True)
    return looks.line_of(
        curve.style,
        packed(across.drawn(curve.x)),
        packed(up.drawn(curve.y)),
        "%{customdata}",
        width=2.2,
        shape=curve.shape,
        mode="lines" if curve.x.size > 1 else "markers",
        marker={"color": curve.style.colour, "symbol": curve.style.symbol, "size": 8},
        customdata=[f"{across.said(x)}: {up.said(y)}" for x, y in points],
        cliponaxis=False,
    )


def _marks(curve: Curve, across: AxisScale, up: AxisScale, side: str) -> dict[str, Any]:
    places = list(curve.marked)
    return {
        **looks.marks_of(
            curve.style, across.drawn(curve.x[places]).tolist(), up.drawn(curve.y[places]).tolist()
        ),
        "mode": "markers+text",
        "text": [looks.literal(text) for text in curve.text],
        "textposition": side,
        "textfont": {"color": curve.style.colour, "size": 12},
        "marker": {"color": curve.style.colour, "symbol": curve.style.symbol, "size": 8},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }


def band_between(colour: str, x: Floats, low: Floats, high: Floats) -> dict[str, Any]:
    """A faint area between two lines, which is not named in the key."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": packed(np.concatenate((x, x[::-1]))),
        "y": packed(np.concatenate((high, low[::-1]))),
        "fill": "toself",
        "fillcolor": colour,
        "line": {"color": colour, "dash": "solid", "width": 0},
        "opacity": _FAINT,
        "hoverinfo": "skip",
        "showlegend": False,
    }
