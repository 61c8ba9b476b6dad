"""Can I trust the predictions: how far off they were, and on which side."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.metrics.prediction import prediction_quality
from foresail.model.words import duration, percent
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import axis, end_note, layout, line_of, mark_at

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
