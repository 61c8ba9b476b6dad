"""How waits and slowdowns are spread over the jobs: cumulative shares on a log axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.words import duration, number, percent
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure, MissingFigure, packed
from foresail.reports.style import PolicyStyle, axis, duration_axis, layout, line_of

_POINTS: Final = 400
_DIRECT_LABELS: Final = 4


def wait_distribution(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs that waited at most so long, per policy."""
    title = "How long do jobs wait?"
    waits = [jobs["wait_seconds"].to_numpy() for jobs in view.jobs]
    if not any(values.size for values in waits):
        return MissingFigure(title, "No job has started.", "Replay a log that has jobs.")
    longest = max(float(values.max()) for values in waits if values.size)
    if longest <= 0:
        return MissingFigure(
            title,
            "No job waited under any policy: every job started the moment it was submitted.",
            "A busier log, or fewer processors, would show a difference.",
        )
    shapes = _shares(waits, 1.0, max(longest, 60.0))
    findings = [
        f"{style.label}: {percent(float((values < 1).mean()))} of the jobs start at once, "
        f"{_half(values)}nine in ten within {duration(float(np.quantile(values, 0.9)))}."
        for style, values in zip(view.styles, waits, strict=True)
        if values.size
    ]
    return Figure(
        name="wait-distribution",
        title=title,
        findings=findings,
        traces=_lines(view.styles, shapes, "%{customdata}: %{y:.1%} of jobs wait no longer"),
        layout=_drawing(
            view.styles,
            duration_axis("wait (log scale)", longest),
            "share of jobs that wait no longer",
        ),
        table=_table(view.styles, shapes, "wait_seconds"),
        note="Jobs that wait less than a second, which a log axis cannot show, are what each curve "
        "has at its left edge.",
    )


def slowdown_distribution(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs slowed down at most so much, per policy."""
    title = "How much are jobs slowed down?"
    slowdowns = [jobs["bounded_slowdown"].to_numpy() for jobs in view.jobs]
    if not any(values.size for values in slowdowns):
        return MissingFigure(title, "No job has started.", "Replay a log that has jobs.")
    most = max(float(values.max()) for values in slowdowns if values.size)
    if most <= 1.0:
        return MissingFigure(title, "No job was slowed down: bounded slowdown is 1 throughout.")
    shapes = _shares(slowdowns, 1.0, max(most, 10.0))
    findings = [
        f"{style.label}: {percent(float((values <= 1).mean()))} of the jobs are not slowed down, "
        f"{percent(float((values > 10).mean()))} more than tenfold, "
        f"{percent(float((values > 100).mean()))} more than a hundredfold."
        for style, values in zip(view.styles, slowdowns, strict=True)
        if values.size
    ]
    powers = range(int(np.ceil(np.log10(max(most, 10.0)))) + 1)
    return Figure(
        name="slowdown-distribution",
        title=title,
        findings=findings,
        traces=_lines(view.styles, shapes, "%{x:.3~s}: %{y:.1%} of jobs are slowed down no more"),
        layout=_drawing(
            view.styles,
            axis(
                "bounded slowdown (log scale)",
                type="log",
                range=[-0.04, float(np.log10(max(most, 10.0))) + 0.05],
                tickvals=[10.0**power for power in powers],
                ticktext=[number(10.0**power) for power in powers],
                tickangle=0,
            ),
            "share of jobs slowed down no more",
        ),
        table=_table(view.styles, shapes, "bounded_slowdown"),
        note="Bounded slowdown: (wait + runtime) / runtime, a runtime under 10 s counting as 10 s, "
        "and never below 1.",
    )


def _half(waits: NDArray[np.float64]) -> str:
    median = float(np.median(waits))
    return f"half within {duration(median)}, " if median >= 1 else ""


Shape = tuple[NDArray[np.float64], NDArray[np.float64]]


def _shares(values: Sequence[NDArray[np.float64]], least: float, most: float) -> list[Shape]:
    grid = np.geomspace(least, most, _POINTS)
    shapes = []
    for sample in values:
        ordered = np.sort(sample)
        share = np.searchsorted(ordered, grid, side="right") / max(ordered.size, 1)
        shapes.append((grid, share))
    return shapes


def _lines(
    styles: Sequence[PolicyStyle], shapes: Sequence[Shape], hover: str
) -> list[dict[str, Any]]:
    return [
        line_of(
            style,
            packed(x),
            packed(y),
            hover,
            width=2.4,
            customdata=[duration(float(value)) for value in x],
            showlegend=len(styles) > _DIRECT_LABELS,
        )
        for style, (x, y) in zip(styles, shapes, strict=True)
    ]


def _drawing(
    styles: Sequence[PolicyStyle], horizontal: dict[str, Any], vertical: str
) -> dict[str, Any]:
    """Up to four policies are named in the corner that cumulative curves leave free."""
    labels = [
        {
            "text": style.drawn,
            **({"hovertext": style.hover} if style.is_cut else {}),
            "xref": "paper",
            "yref": "paper",
            "x": 0.985,
            "y": 0.03 + 0.075 * (len(styles) - 1 - position),
            "xanchor": "right",
            "yanchor": "bottom",
            "showarrow": False,
            "bgcolor": "@paper",
            "borderpad": 1,
            "font": {"color": style.colour, "size": 13},
        }
        for position, style in enumerate(styles)
    ]
    return layout(
        380,
        xaxis=horizontal,
        yaxis=axis(vertical, tickformat=".0%", range=[0, 1.01]),
        annotations=labels if len(styles) <= _DIRECT_LABELS else [],
    )


def _table(styles: Sequence[PolicyStyle], shapes: Sequence[Shape], quantity: str) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame({"policy": style.policy, quantity: x, "share_of_jobs": y})
        for style, (x, y) in zip(styles, shapes, strict=True)
    )
