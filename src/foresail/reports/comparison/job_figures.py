"""Waits and slowdowns over the jobs as cumulative shares, and deadlines met and missed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.summary import Summary
from foresail.model.words import count, duration, number, percent
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure, MissingFigure, packed
from foresail.reports.style import PolicyStyle, axis, duration_axis, layout, line_of, rows_axis

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


_PARTS: Final = (
    ("slo_on_time_goodput_hours", "on time", 1.0),
    ("slo_late_goodput_hours", "late", 0.6),
    ("best_effort_goodput_hours", "best effort", 0.3),
)
"""What goodput is made of: column of the table, what it is called, and how dense its bar is."""


def has_deadlines(view: ReportView) -> bool:
    """Return whether any job of the schedules has a deadline."""
    return any(summary.slo_jobs for summary in view.summaries)


def deadlines_and_goodput(view: ReportView) -> Figure:
    """A bar per policy: the share of deadlines missed, and beside it the work that was done.

    The view's jobs have deadlines.
    """
    rows = [_row(summary) for summary in view.summaries]
    traces: list[dict[str, Any]] = []
    for position, (style, row) in enumerate(zip(view.styles, rows, strict=True)):
        traces += _bars(position, style, row)
    worst = max(row["slo_miss_rate"] or 0.0 for row in rows)
    most = max(row["goodput_hours"] for row in rows)
    drawing = layout(
        110 + 44 * len(rows),
        barmode="stack",
        uniformtext={"minsize": 10, "mode": "hide"},
        xaxis=axis(
            "deadlines missed (%)", domain=[0.0, 0.36], range=[0, 100 * worst * 1.25 or 1.0]
        ),
        xaxis2=axis(
            "goodput (cpu hours)", domain=[0.44, 1.0], range=[0, most * 1.02 or 1.0], anchor="y"
        ),
        yaxis=rows_axis([style.drawn for style in view.styles]),
    )
    return Figure(
        name="deadlines",
        title="Are deadlines met, and how much gets done?",
        findings=[
            f"{style.label}: {said_misses(summary)}; {said_goodput(summary)}."
            for style, summary in zip(view.styles, view.summaries, strict=True)
        ],
        traces=traces,
        layout=drawing,
        table=pl.DataFrame(rows),
        note="Goodput: cpu hours of jobs that completed, counted with the runtime that they have "
        "where they run best. Dense: jobs that met their deadline; lighter: late ones; lightest: "
        "jobs without a deadline. One run each: how much of a difference is luck, only further "
        "seeds can say.",
    )


def said_misses(summary: Summary) -> str:
    """Say how many deadlines were missed, in words."""
    if not summary.slo_jobs:
        return "no job has a deadline"
    never = (
        f", {summary.slo_never_started:,} of them without ever starting"
        if summary.slo_never_started
        else ""
    )
    return (
        f"{summary.slo_missed:,} of {count(summary.slo_jobs, 'job')} with a deadline miss it "
        f"({percent(summary.slo_miss_rate)}){never}"
    )


def said_goodput(summary: Summary) -> str:
    """Say what was done and lost, in words."""
    words = (
        f"goodput is {number(summary.goodput_hours)} cpu hours "
        f"({number(summary.slo_on_time_goodput_hours)} on time, "
        f"{number(summary.best_effort_goodput_hours)} best effort)"
    )
    if math.isfinite(summary.best_effort_latency_seconds):
        words += (
            f", and best-effort jobs take {duration(summary.best_effort_latency_seconds)} on "
            "average from submission to end"
        )
    if summary.preemptions or summary.lost_attempts:
        words += (
            f"; {count(summary.preemptions, 'attempt')} stopped for other jobs, "
            f"{summary.lost_attempts:,} lost with a node"
        )
    return words


def _row(summary: Summary) -> dict[str, Any]:
    known = summary.as_json()
    names = ("policy", "slo_jobs", "slo_missed", "slo_miss_rate", "slo_never_started")
    late = summary.slo_goodput_hours - summary.slo_on_time_goodput_hours
    return {
        **{name: known[name] for name in names},
        "goodput_hours": summary.goodput_hours,
        "slo_on_time_goodput_hours": summary.slo_on_time_goodput_hours,
        "slo_late_goodput_hours": late,
        "best_effort_goodput_hours": summary.best_effort_goodput_hours,
        "best_effort_latency_seconds": known["best_effort_latency_seconds"],
        "effective_load": known["effective_load"],
        "preemptions": summary.preemptions,
        "lost_attempts": summary.lost_attempts,
    }


def _bars(position: int, style: PolicyStyle, row: dict[str, Any]) -> list[dict[str, Any]]:
    missed = row["slo_miss_rate"] or 0.0
    share = _bar(position, style, 100 * missed, percent(missed), 1.0)
    share |= {"name": style.drawn, "textposition": "outside", "cliponaxis": False}
    parts = [
        _bar(position, style, row[column], f"{number(row[column])} {name}", density)
        | {"xaxis": "x2", "textposition": "inside", "insidetextanchor": "middle"}
        for column, name, density in _PARTS
    ]
    return [share, *parts]


def _bar(
    position: int, style: PolicyStyle, length: float, text: str, density: float
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "x": [length],
        "y": [position],
        "width": 0.62,
        "text": [text],
        "textangle": 0,
        "insidetextfont": {"color": "@paper" if density == 1.0 else "@ink"},
        "marker": {"color": style.colour, "opacity": density, "line": {"width": 0}},
        "hovertemplate": f"{style.hover}<br>{text}<extra></extra>",
        "showlegend": False,
    }
