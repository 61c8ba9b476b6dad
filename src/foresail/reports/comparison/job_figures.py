"""Figures over the jobs: waits, slowdowns, deadlines, and how far off predictions were."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.metrics.jobs import prediction_quality
from foresail.metrics.summary import Summary
from foresail.model.arrays import Floats
from foresail.model.words import count, duration, number, percent
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure, MissingFigure, packed
from foresail.reports.style import (
    PolicyStyle,
    axis,
    caption,
    duration_axis,
    end_note,
    layout,
    line_of,
    mark_at,
    rows_axis,
)

_POINTS: Final = 400
_DIRECT_LABELS: Final = 4


@dataclass(frozen=True)
class _Quantity:
    """A number of each job, drawn as the share of jobs that have at most so much."""

    name: str
    title: str
    column: str
    nothing: MissingFigure
    """Sentence for when no job has more than the least."""
    least: float
    reach: float
    """The axis begins at 1, and reaches so far at least."""
    across: Callable[[float], Mapping[str, Any]]
    """The axis up to the most."""
    up: str
    hover: str
    finding: Callable[[Floats], str]
    note: str

    def drawn(self, view: ReportView) -> Figure | MissingFigure:
        """The curve of each policy."""
        samples = [np.sort(jobs[self.column].to_numpy()) for jobs in view.jobs]
        most = max((float(values[-1]) for values in samples if values.size), default=math.nan)
        if math.isnan(most):
            return MissingFigure(self.title, "No job has started.", "Replay a log that has jobs.")
        if most <= self.least:
            return self.nothing
        grid = np.geomspace(1.0, max(most, self.reach), _POINTS)
        shares = [np.searchsorted(v, grid, side="right") / max(v.size, 1) for v in samples]
        named = len(view.styles) <= _DIRECT_LABELS
        return Figure(
            name=self.name,
            title=self.title,
            findings=[
                f"{style.label}: {self.finding(values)}."
                for style, values in zip(view.styles, samples, strict=True)
                if values.size
            ],
            traces=[
                line_of(
                    style,
                    packed(grid),
                    packed(share),
                    self.hover,
                    width=2.4,
                    customdata=[duration(value) for value in grid.tolist()],
                    showlegend=not named,
                )
                for style, share in zip(view.styles, shares, strict=True)
            ],
            layout=layout(
                380,
                xaxis=self.across(max(most, self.reach)),
                yaxis=axis(self.up, tickformat=".0%", range=[0, 1.01]),
                annotations=_names(view.styles) if named else [],
            ),
            table=pl.concat(
                pl.DataFrame({"policy": each.policy, self.column: grid, "share_of_jobs": share})
                for each, share in zip(view.styles, shares, strict=True)
            ),
            note=self.note,
        )


def _names(styles: Sequence[PolicyStyle]) -> list[dict[str, Any]]:
    """Policies are named in the corner that cumulative curves leave free."""
    return [
        caption(style.drawn, 0.03 + 0.075 * (len(styles) - 1 - place), style.colour)
        | {"x": 0.985, "xanchor": "right", "bgcolor": "@paper", "borderpad": 1}
        | ({"hovertext": style.hover} if style.is_cut else {})
        for place, style in enumerate(styles)
    ]


def _said_waits(waits: Floats) -> str:
    median, most = (float(each) for each in np.quantile(waits, (0.5, 0.9)))
    half = f"half within {duration(median)}, " if median >= 1 else ""
    at_once = percent(float((waits < 1).mean()))
    return f"{at_once} of the jobs start at once, {half}nine in ten within {duration(most)}"


def _said_slowdowns(slowdowns: Floats) -> str:
    none, ten, hundred = (
        percent(float(part.mean())) for part in (slowdowns <= 1, slowdowns > 10, slowdowns > 100)
    )
    return (
        f"{none} of the jobs are not slowed down, {ten} more than tenfold, {hundred} more than a "
        "hundredfold"
    )


def _slowdown_axis(most: float) -> dict[str, Any]:
    powers = [10.0**power for power in range(math.ceil(math.log10(most)) + 1)]
    return axis(
        "bounded slowdown (log scale)",
        type="log",
        range=[-0.04, math.log10(most) + 0.05],
        tickvals=powers,
        ticktext=[number(power) for power in powers],
        tickangle=0,
    )


_WAITS: Final = _Quantity(
    "wait-distribution",
    "How long do jobs wait?",
    "wait_seconds",
    MissingFigure(
        "How long do jobs wait?",
        "No job waited under any policy: every job started the moment it was submitted.",
        "A busier log, or fewer processors, would show a difference.",
    ),
    least=0.0,
    reach=60.0,
    across=partial(duration_axis, "wait (log scale)"),
    up="share of jobs that wait no longer",
    hover="%{customdata}: %{y:.1%} of jobs wait no longer",
    finding=_said_waits,
    note="Jobs that wait less than a second, which a log axis cannot show, are what each curve "
    "has at its left edge.",
)
_SLOWDOWNS: Final = _Quantity(
    "slowdown-distribution",
    "How much are jobs slowed down?",
    "bounded_slowdown",
    MissingFigure(
        "How much are jobs slowed down?",
        "No job was slowed down: bounded slowdown is 1 throughout.",
    ),
    least=1.0,
    reach=10.0,
    across=_slowdown_axis,
    up="share of jobs slowed down no more",
    hover="%{x:.3~s}: %{y:.1%} of jobs are slowed down no more",
    finding=_said_slowdowns,
    note="Bounded slowdown: (wait + runtime) / runtime, a runtime under 10 s counting as 10 s, "
    "and never below 1.",
)


def wait_distribution(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs that waited at most so long, per policy."""
    return _WAITS.drawn(view)


def slowdown_distribution(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs slowed down at most so much, per policy."""
    return _SLOWDOWNS.drawn(view)


_PARTS: Final = (
    ("slo_on_time_goodput_hours", "on time", 1.0),
    ("slo_late_goodput_hours", "late", 0.6),
    ("best_effort_goodput_hours", "best effort", 0.3),
)
"""What goodput is made of: column of the table, what it is called, and how dense its bar is."""


_COLUMNS: Final = (
    *("policy", "slo_jobs", "slo_missed", "slo_miss_rate", "slo_never_started", "goodput_hours"),
    *("slo_on_time_goodput_hours", "best_effort_goodput_hours", "best_effort_latency_seconds"),
    *("effective_load", "preemptions", "lost_attempts"),
)


def has_deadlines(view: ReportView) -> bool:
    """Return whether any job of the schedules has a deadline."""
    return any(summary.slo_jobs for summary in view.summaries)


def deadlines_and_goodput(view: ReportView) -> Figure:
    """A bar per policy: the share of deadlines missed, and beside it the work that was done.

    The view's jobs have deadlines.
    """
    rows: list[dict[str, Any]] = [
        {name: summary.as_json().get(name) for name in _COLUMNS}
        | {"slo_late_goodput_hours": summary.slo_goodput_hours - summary.slo_on_time_goodput_hours}
        for summary in view.summaries
    ]
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


_STEP: Final = 0.1
_REACH: Final = 4.0
_REACH_OF_EVERY_POWER: Final = 2.5


def prediction_error(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs by predicted over real runtime, with the two tails named."""
    title = "Can I trust the predictions?"
    middle = np.round(np.arange(-_REACH, _REACH + _STEP / 2, _STEP), 9)
    edges = np.append(middle - _STEP / 2, middle[-1] + _STEP / 2)
    traces: list[dict[str, Any]] = []
    tables = []
    findings = []
    exact = []
    drawn_before: dict[bytes, str] = {}
    for style, jobs in zip(view.styles, view.jobs, strict=True):
        known = jobs.filter(pl.col("predicted_seconds").is_finite())
        if not known.height:
            continue
        predicted = np.maximum(known["predicted_seconds"].to_numpy(), 1.0)
        runtime = np.maximum(known["runtime_seconds"].to_numpy(), 1.0)
        ratio = np.log10(predicted / runtime)
        if not np.any(np.abs(ratio) > 1e-9):
            exact.append(style.label)
            continue
        counts, _ = np.histogram(np.clip(ratio, edges[0], edges[-1] - 1e-9), bins=edges)
        quality = prediction_quality(jobs)
        tables.append(
            pl.DataFrame(
                {
                    "policy": style.policy,
                    "predicted_over_runtime_from": 10.0 ** edges[:-1],
                    "predicted_over_runtime_to": 10.0 ** edges[1:],
                    "jobs": counts,
                }
            )
        )
        same_as = drawn_before.setdefault(counts.tobytes(), style.label)
        if same_as != style.label:
            findings.append(f"{style.label}: the same predictions as {same_as}.")
            continue
        findings.append(
            f"{style.label}: {percent(quality.within_factor_two)} of the predictions are within a "
            f"factor of two; {percent(quality.under_predicted)} are too short, "
            f"{percent(quality.over_predicted)} too long; mean absolute error "
            f"{duration(quality.mean_absolute_error_seconds)}."
        )
        x = [round(float(x), 4) for x in middle]
        y = [round(float(c) / known.height, 6) for c in counts]
        said = [_times(10.0**x) for x in middle]
        hover = "prediction %{text}: %{y:.1%} of jobs"
        traces.append(line_of(style, x, y, hover, shape="hvh", text=said))
    if not traces:
        return _missing(title, exact)
    shown = _range(traces)
    step = 1 if shown[1] <= _REACH_OF_EVERY_POWER else 2
    powers = range(-int(_REACH), int(_REACH) + 1, step)
    drawing = layout(
        360,
        top=52,
        xaxis=axis(
            "prediction relative to the runtime (log scale)",
            tickvals=list(powers),
            ticktext=["exact" if p == 0 else _factor(p) for p in powers],
            range=shown,
            tickangle=0,
        ),
        yaxis=axis("share of jobs", tickformat=".0%", rangemode="tozero"),
        shapes=[mark_at(0)],
        annotations=[
            end_note("← too short: under-predicted", "left"),
            end_note("too long: over-predicted →", "right"),
        ],
    )
    if exact:
        findings.append(f"{'; '.join(exact)}: exact, being told the runtimes; not drawn.")
    return Figure(
        name="prediction-error",
        title=title,
        findings=findings,
        traces=traces,
        layout=drawing,
        table=pl.concat(tables),
        note="Predictions at submission, before any correction; both counted as at least 1 s. "
        "The outermost bins hold all that is farther off.",
    )


def coverage(view: ReportView) -> pl.DataFrame:
    """Stated against observed shares, a row for each policy whose predictions came with quantiles.

    Columns: ``policy``, ``jobs``, ``below``, ``inside``, ``above`` (stated: 10 %, 80 %, 10 %).
    """
    rows = []
    for style, jobs in zip(view.styles, view.jobs, strict=True):
        quality = prediction_quality(jobs)
        if quality.interval_jobs:
            rows.append(
                {
                    "policy": style.policy,
                    "jobs": quality.interval_jobs,
                    "below": quality.below_interval,
                    "inside": quality.covered,
                    "above": quality.above_interval,
                }
            )
    return pl.DataFrame(rows)


def _missing(title: str, exact: list[str]) -> MissingFigure:
    if exact:
        return MissingFigure(
            title,
            "Every prediction equals the runtime: the policies shown were told the truth.",
            "Use a predictor that learns, such as recent or regression, to see its errors.",
        )
    return MissingFigure(
        title,
        "The schedules hold no predictions.",
        "Use a policy with a predictor, or a log with requested times.",
    )


def _range(traces: list[dict[str, Any]]) -> list[float]:
    used = [
        x for trace in traces for x, y in zip(trace["x"], trace["y"], strict=True) if y > 0.0002
    ]
    reach = max(1.0, *(abs(x) for x in used)) + _STEP if used else 1.0
    return [-math.ceil(2 * reach) / 2, math.ceil(2 * reach) / 2]


def _factor(power: int) -> str:
    return f"{10**power:,}×" if power > 0 else f"1/{10**-power:,}"


def _times(ratio: float) -> str:
    if ratio == 1:
        return "about exact"
    if ratio >= 1:
        return f"{ratio:.2g}× too long"
    return f"{1 / ratio:.2g}× too short"
