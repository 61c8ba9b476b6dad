"""Are deadlines met, and what gets done: the share that is missed, and goodput by kind of job."""

from __future__ import annotations

import math
from typing import Any, Final

import polars as pl

from foresail.metrics.summary import Summary
from foresail.model.words import count, duration, number, percent
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure
from foresail.reports.style import PolicyStyle, axis, layout, rows_axis

_PARTS: Final = (
    ("slo_on_time_goodput_hours", "on time", 1.0),
    ("slo_late_goodput_hours", "late", 0.6),
    ("best_effort_goodput_hours", "best effort", 0.3),
)
"""What goodput is made of: column of the table, what it is called, and how dense its bar is."""


def has_deadlines(view: ReportView) -> bool:
    """Whether any job of the schedules has a deadline."""
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
    """How many deadlines were missed, in words."""
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
    """What was done and lost, in words."""
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
