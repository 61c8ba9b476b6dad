"""A figure of curves: one quantity against another, a line each for what is compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from foresail.model.arrays import Floats
from foresail.reports.figure import Figure, packed
from foresail.reports.plot_axes import AxisScale
from foresail.reports.style import DOTTED, PolicyStyle, layout, level_at, literal

_HEIGHT: Final = 340
_FAINT: Final = 0.16
_SIDES: Final = ("top center", "bottom center")


@dataclass(frozen=True)
class Curve:
    """One line."""

    style: PolicyStyle
    """Its looks and name."""
    x: Floats
    y: Floats
    """Shape (points,)."""
    marked: Sequence[int] = ()
    """Places of the points that are marked, and named by the text."""
    text: Sequence[str] = ()
    """What stands at the marked points."""
    low: Floats | None = None
    high: Floats | None = None
    """Shape (points,): a band around it, if there is one."""
    shape: Literal["linear", "vh"] = "linear"
    """Between points: straight, or (``vh``) in steps that hold up to each point."""


def curve_figure(
    name: str,
    title: str,
    findings: Sequence[str],
    curves: Sequence[Curve],
    across: AxisScale,
    up: AxisScale,
    *,
    table: pl.DataFrame,
    note: str = "",
    level: tuple[float, str] | None = None,
) -> Figure:
    """At least one curve on one pair of axes, named in a key above where there are several.

    ``level`` is a height that curves are compared with, and what it is called; the others are as in
    ``Figure``.
    """
    traces: list[dict[str, Any]] = []
    for position, curve in enumerate(curves):
        if curve.low is not None and curve.high is not None:
            x, low, high = across.drawn(curve.x), up.drawn(curve.low), up.drawn(curve.high)
            traces.append(band_between(curve.style.colour, x, low, high))
        traces.append(_line(curve, across, up))
        if curve.marked:
            traces.append(_marks(curve, across, up, _SIDES[position % len(_SIDES)]))
    drawing = layout(_HEIGHT, xaxis=across.axis, yaxis=up.axis, hovermode="closest")
    if level is not None:
        at = float(up.drawn(np.array([level[0]]))[0])
        drawing["shapes"] = [level_at(at, line=DOTTED, layer="below")]
        drawing["annotations"] = [
            {
                "text": literal(level[1]),
                "xref": "paper",
                "x": 1,
                "y": math.log10(at) if up.axis.get("type") == "log" else at,
                "xanchor": "right",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"color": "@muted", "size": 12},
            }
        ]
    return Figure(name, title, list(findings), traces, drawing, table, note)


def _line(curve: Curve, across: AxisScale, up: AxisScale) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines" if curve.x.size > 1 else "markers",
        "name": curve.style.drawn,
        "x": packed(across.drawn(curve.x)),
        "y": packed(up.drawn(curve.y)),
        "line": {"color": curve.style.colour, "dash": curve.style.dash, "width": 2.2}
        | {"shape": curve.shape},
        "marker": {"color": curve.style.colour, "symbol": curve.style.symbol, "size": 8},
        "customdata": [
            f"{across.said(x)}: {up.said(y)}"
            for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True)
        ],
        "hovertemplate": f"%{{customdata}}<extra>{curve.style.drawn}</extra>",
        "showlegend": True,
        "cliponaxis": False,
    }


def _marks(curve: Curve, across: AxisScale, up: AxisScale, side: str) -> dict[str, Any]:
    places = list(curve.marked)
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": curve.style.drawn,
        "x": across.drawn(curve.x[places]).tolist(),
        "y": up.drawn(curve.y[places]).tolist(),
        "text": [literal(text) for text in curve.text],
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
