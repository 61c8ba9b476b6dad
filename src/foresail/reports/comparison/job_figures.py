"""Figures over the jobs: waits, slowdowns, deadlines, and how far off predictions were."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.analysis.finding import Plot
from foresail.metrics.jobs import prediction_quality
from foresail.metrics.summary import Summary
from foresail.model.distribution import Floats
from foresail.model.words import count, duration, number, percent
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.plots import PlottedTable, drawn, plot_of, stacked
from foresail.reports.style import PolicyStyle, caption, end_note, mark_at

_POINTS: Final = 400
_NAMED_CURVES: Final = 4
_LEAST_APART: Final = 0.05
"""Most curves that are named where they are drawn, and how far they must be from each other."""

_WAITS: Final = plot_of(
    "steps",
    "wait_seconds",
    "share_of_jobs",
    "wait (log scale)",
    "share of jobs that wait no longer",
    x_kind="duration",
    log_x=True,
    y_kind="share",
)
_SLOWDOWNS: Final = plot_of(
    "steps",
    "bounded_slowdown",
    "share_of_jobs",
    "bounded slowdown (log scale)",
    "share of jobs slowed down no more",
    log_x=True,
    y_kind="share",
)
_MISSED: Final = plot_of("rows", "policy", "slo_miss_rate", "", "deadlines missed", y_kind="share")
_DONE: Final = plot_of("rows", "policy", "hours", "goodput", "goodput (cpu hours)", series="part")
_ERRORS: Final = plot_of(
    "steps",
    "predicted_over_runtime_from",
    "share",
    "prediction over runtime (log scale)",
    "share of jobs",
    log_x=True,
    y_kind="share",
)


def wait_distribution(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs that waited at most so long, per policy."""
    title = "How long do jobs wait?"
    nothing = MissingFigure(
        title,
        "No job waited under any policy: every job started the moment it was submitted.",
        "A busier log, or fewer processors, would show a difference.",
    )
    note = (
        "Jobs that wait less than a second, which a log axis cannot show, are what each curve has "
        "at its left edge."
    )
    return _distribution(view, "wait-distribution", title, _WAITS, _said_waits, nothing, note)


def slowdown_distribution(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs slowed down at most so much, per policy."""
    title = "How much are jobs slowed down?"
    nothing = MissingFigure(title, "No job was slowed down: bounded slowdown is 1 throughout.")
    note = (
        "Bounded slowdown: (wait + runtime) / runtime, a runtime under 10 s counting as 10 s, and "
        "never below 1."
    )
    name = "slowdown-distribution"
    return _distribution(view, name, title, _SLOWDOWNS, _said_slowdowns, nothing, note, least=1.0)


def _distribution(
    view: ReportView,
    name: str,
    title: str,
    plot: Plot,
    finding: Callable[[Floats], str],
    nothing: MissingFigure,
    note: str,
    least: float = 0.0,
) -> Figure | MissingFigure:
    """The share of jobs that have at most so much of a column, a curve per policy."""
    samples = [np.sort(jobs[plot.x].to_numpy()) for jobs in view.jobs]
    most = max((float(values[-1]) for values in samples if values.size), default=math.nan)
    if math.isnan(most):
        return MissingFigure(title, "No job has started.", "Replay a log that has jobs.")
    if most <= least:
        return nothing
    grid = np.geomspace(1.0, max(most, 60.0), _POINTS)
    parts = []
    for style, values in zip(view.styles, samples, strict=True):
        shares = np.searchsorted(values, grid, side="right") / max(values.size, 1)
        parts.append(
            PlottedTable(style, plot, pl.DataFrame({plot.x: grid, "share_of_jobs": shares}))
        )
    findings = [
        f"{style.label}: {finding(values)}."
        for style, values in zip(view.styles, samples, strict=True)
        if values.size
    ]
    names = _names_at(grid, [part.table["share_of_jobs"].to_numpy() for part in parts], view.styles)
    table = stacked(parts, "policy")
    figure = drawn(name, title, findings, [parts], table=table, note=note, annotations=names)
    if not names:
        return figure
    return replace(figure, traces=[{**trace, "showlegend": False} for trace in figure.traces])


def _names_at(
    x: Floats, curves: Sequence[Floats], styles: Sequence[PolicyStyle]
) -> list[dict[str, Any]]:
    """Names at curves that rise along a logarithmic axis, each where it is farthest from others.

    The highest is named above it, the others below. Nothing where there are too many curves, two
    are nowhere apart, or a name has to be cut: these have a key.
    """
    if not 2 <= len(curves) <= _NAMED_CURVES or any(style.is_cut for style in styles):
        return []
    names = []
    for own, style in zip(curves, styles, strict=True):
        apart = np.min([np.abs(own - other) for other in curves if other is not own], axis=0)
        above = all((own >= other)[apart.argmax()] for other in curves)
        sides = ("right", "bottom", 0.3, 0.95) if above else ("left", "top", 0.05, 0.7)
        begin, end = (int(share * x.size) for share in sides[2:])
        at = begin + int(apart[begin:end].argmax())
        if apart[at] < _LEAST_APART:
            return []
        place = {"xref": "x", "x": math.log10(x[at]), "y": float(own[at]), "yref": "y"}
        anchors = {"xanchor": sides[0], "yanchor": sides[1]}
        names.append(caption(style.drawn, 0.0, style.colour) | place | anchors)
    return names


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


_COLUMNS: Final = (
    *("policy", "slo_jobs", "slo_missed", "slo_miss_rate", "slo_never_started", "goodput_hours"),
    *("slo_on_time_goodput_hours", "best_effort_goodput_hours", "best_effort_latency_seconds"),
    *("effective_load", "preemptions", "lost_attempts"),
)
_GOODPUT: Final = {
    "slo_on_time_goodput_hours": "on time",
    "slo_late_goodput_hours": "late",
    "best_effort_goodput_hours": "best effort",
}
"""Parts of goodput: column of the table, and name."""


def has_deadlines(view: ReportView) -> bool:
    """Return whether any job of the schedules has a deadline."""
    return any(summary.slo_jobs for summary in view.summaries)


def deadlines_and_goodput(view: ReportView) -> Figure:
    """A bar per policy: the share of deadlines missed, and below it the work that was done.

    The view's jobs have deadlines.
    """
    table = pl.DataFrame(
        [
            {name: summary.as_json().get(name) for name in _COLUMNS}
            | {
                "slo_late_goodput_hours": summary.slo_goodput_hours
                - summary.slo_on_time_goodput_hours
            }
            for summary in view.summaries
        ]
    )
    missed, done = [], []
    for place, style in enumerate(view.styles):
        row = table[place].with_columns(policy=pl.lit(style.label))
        parts = row.unpivot(
            list(_GOODPUT), index="policy", variable_name="part", value_name="hours"
        )
        missed.append(PlottedTable(style, _MISSED, row.fill_null(0.0)))
        named = parts.filter(pl.col("hours") > 0).with_columns(pl.col("part").replace(_GOODPUT))
        done.append(PlottedTable(style, _DONE, named))
    return drawn(
        "deadlines",
        "Are deadlines met, and how much gets done?",
        [
            f"{style.label}: {said_misses(summary)}; {said_goodput(summary)}."
            for style, summary in zip(view.styles, view.summaries, strict=True)
        ],
        [missed, done],
        table=table,
        note="Goodput: cpu hours of jobs that completed, counted with the runtime that they have "
        "where they run best. Dense: jobs that met their deadline; lighter: late ones; lightest: "
        "jobs without a deadline. One run each: only further seeds can say how much is luck.",
        height=160 + 110 * len(view.styles),
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


_STEP: Final = 0.1
_REACH: Final = 4.0


def prediction_error(view: ReportView) -> Figure | MissingFigure:
    """Share of jobs by predicted over real runtime, with the two tails named."""
    title = "Can I trust the predictions?"
    middle = np.round(np.arange(-_REACH, _REACH + _STEP / 2, _STEP), 9)
    edges = np.append(middle - _STEP / 2, middle[-1] + _STEP / 2)
    every, parts, findings, exact = [], [], [], []
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
        columns = {
            "predicted_over_runtime_from": 10.0 ** edges[:-1],
            "predicted_over_runtime_to": 10.0 ** edges[1:],
            "jobs": counts,
            "share": counts / known.height,
        }
        every.append(PlottedTable(style, _ERRORS, pl.DataFrame(columns)))
        same_as = drawn_before.setdefault(counts.tobytes(), style.label)
        if same_as != style.label:
            findings.append(f"{style.label}: the same predictions as {same_as}.")
            continue
        parts.append(every[-1])
        findings.append(
            f"{style.label}: {percent(quality.within_factor_two)} of the predictions are within a "
            f"factor of two; {percent(quality.under_predicted)} are too short, "
            f"{percent(quality.over_predicted)} too long; mean absolute error "
            f"{duration(quality.mean_absolute_error_seconds)}."
        )
    if not parts:
        return _missing(title, exact)
    if exact:
        findings.append(f"{'; '.join(exact)}: exact, since they know the runtimes; not drawn.")
    return drawn(
        "prediction-error",
        title,
        findings,
        [parts],
        table=stacked(every, "policy"),
        note="Predictions at submission, before any correction; both counted as at least 1 s. "
        "The outermost bins hold all that is farther off.",
        top=52,
        shapes=[mark_at(1)],
        annotations=[
            end_note("← too short: under-predicted", "left"),
            end_note("too long: over-predicted →", "right"),
        ],
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
            "Every prediction equals the runtime: the policies shown know the truth.",
            "Use a predictor that learns, such as recent or regression, to see its errors.",
        )
    return MissingFigure(
        title,
        "The schedules hold no predictions.",
        "Use a policy with a predictor, or a log with requested times.",
    )
