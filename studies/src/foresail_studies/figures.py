"""The pictures of a study: a measure against the study's axis, or by system, with intervals."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.model.words import number
from foresail.reports.figure import Figure
from foresail.reports.style import PolicyStyle, axis, layout, named_styles
from foresail_studies.study import Measure, Study

_MOST: Final = {"share": 1.0, "duration": math.inf, "number": math.inf}
"""Intervals are drawn no further than a measure can reach, and not below 0."""
_SIDEWAYS: Final = 0.012
"""Systems are drawn beside each other by so much of the axis, so that intervals do not overlap."""


def figures_of(study: Study, summary: pl.DataFrame) -> tuple[Figure, ...]:
    """A figure per group and drawn measure that has any value."""
    figures = []
    for group in study.groups:
        for name in study.drawn:
            rows = summary.filter(pl.col("group") == group, pl.col("measure") == name)
            if rows.height:
                figures.append(_figure(study, group, study.measure(name), rows))
    return tuple(figures)


def _figure(study: Study, group: str, measure: Measure, rows: pl.DataFrame) -> Figure:
    styles = [
        style
        for style in named_styles(study.systems)
        if style.policy in set(rows["system"].to_list())
    ]
    along = rows["x"].null_count() == 0
    drawn = _lines(study, measure, rows, styles) if along else _dots(measure, rows, styles)
    subject = f"{measure.label}, {group}" if len(study.groups) > 1 else measure.label
    return Figure(
        name=_stem(f"{group}-{measure.name}" if len(study.groups) > 1 else measure.name),
        title=subject[0].upper() + subject[1:],
        findings=[_finding(measure, rows, style) for style in styles],
        traces=drawn[0],
        layout=drawn[1],
        table=rows,
        note=f"Means over {_seeds(rows)} seeds with 95 % intervals (Student's t).",
    )


def _lines(
    study: Study, measure: Measure, rows: pl.DataFrame, styles: list[PolicyStyle]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    points = sorted(set(rows["x"].to_list()))
    step = _SIDEWAYS * (points[-1] - points[0])
    traces = []
    for position, style in enumerate(styles):
        part = rows.filter(pl.col("system") == style.policy).sort("x")
        aside = step * (position - (len(styles) - 1) / 2.0)
        traces.append(
            _trace(measure, style, part)
            | {
                "mode": "lines+markers",
                "x": [x + aside for x in part["x"].to_list()],
                "y": _values(measure, part["mean"]),
                "error_y": _reach(measure, style, part),
            }
        )
    shape = layout(
        380,
        xaxis=axis(study.axis, tickvals=points, ticktext=[number(x) for x in points], tickangle=0),
        yaxis=axis(_unit(measure), rangemode="tozero", nticks=7),
    )
    return traces, shape


def _dots(
    measure: Measure, rows: pl.DataFrame, styles: list[PolicyStyle]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    traces = []
    for position, style in enumerate(styles):
        part = rows.filter(pl.col("system") == style.policy)
        traces.append(
            _trace(measure, style, part)
            | {
                "mode": "markers",
                "x": _values(measure, part["mean"]),
                "y": [position] * part.height,
                "error_x": _reach(measure, style, part),
                "showlegend": False,
            }
        )
    shape = layout(
        100 + 34 * len(styles),
        xaxis=axis(_unit(measure), rangemode="tozero", nticks=7, tickangle=0),
        yaxis=axis(
            "",
            tickvals=list(range(len(styles))),
            ticktext=[style.drawn for style in styles],
            range=[len(styles) - 0.5, -0.5],
            showgrid=False,
        ),
    )
    return traces, shape


def _trace(measure: Measure, style: PolicyStyle, part: pl.DataFrame) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": style.drawn,
        "line": {"color": style.colour, "dash": style.dash, "width": 2},
        "marker": {"color": style.colour, "symbol": style.symbol, "size": 9},
        "text": [measure.said(value) for value in part["mean"].to_list()],
        "hovertemplate": f"{style.drawn}: %{{text}}<extra></extra>",
        "showlegend": True,
    }


def _reach(measure: Measure, style: PolicyStyle, part: pl.DataFrame) -> dict[str, Any]:
    known = part.with_columns(
        low=pl.coalesce("low", "mean").clip(pl.min_horizontal("mean", 0.0)),
        high=pl.coalesce("high", "mean").clip(
            upper_bound=pl.max_horizontal("mean", _MOST[measure.kind])
        ),
    )
    return {
        "type": "data",
        "symmetric": False,
        "array": _values(measure, known["high"] - known["mean"]),
        "arrayminus": _values(measure, known["mean"] - known["low"]),
        "color": style.colour,
        "thickness": 1.2,
        "width": 3,
    }


def _values(measure: Measure, values: pl.Series) -> list[float]:
    factor = 100.0 if measure.kind == "share" else 1.0
    return [float(f"{value:.6g}") for value in np.asarray(values, np.float64) * factor]


def _unit(measure: Measure) -> str:
    unit = {"share": " (%)", "duration": " (s)", "number": ""}[measure.kind]
    return measure.label + unit


def _finding(measure: Measure, rows: pl.DataFrame, style: PolicyStyle) -> str:
    part = rows.filter(pl.col("system") == style.policy).sort("x")
    if part["x"].null_count():
        mean, high = part["mean"][0], part["high"][0]
        reach = "" if high is None else f" ± {measure.said(high - mean)}"
        return f"{style.label}: {measure.said(mean)}{reach}."
    said = ", ".join(
        f"{measure.said(mean)} at {number(x)}" for x, mean in part.select("x", "mean").iter_rows()
    )
    return f"{style.label}: {said}."


def _seeds(rows: pl.DataFrame) -> str:
    counts = sorted(set(rows["seeds"].to_list()))
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _stem(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
