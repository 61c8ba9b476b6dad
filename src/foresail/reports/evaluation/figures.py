"""The pictures of an evaluation of predictors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from foresail.analysis.prediction_errors import BUCKETS, TAIL
from foresail.model.words import count, number, percent
from foresail.reports.evaluation.coverage_figures import (
    coverage_over_time_figure,
    line_over_time,
    stretch_axis,
    without_ranges,
)
from foresail.reports.evaluation.view import EvaluationView, words_of
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import PolicyStyle, axis, end_note, layout, line_of, literal, marks_of

_STUDY_WITHIN: Final = (0.77, 0.92)
"""Within a factor of two in the study's traces: dissertation 4.1.1."""

_MOST_EXPERTS: Final = 10
_FEWEST_STRETCHES: Final = 3


def figures(view: EvaluationView) -> tuple[Figure | MissingFigure, ...]:
    """All pictures of the report, in the order in which they are shown."""
    parts: list[Figure | MissingFigure] = [
        reliability_diagram(view),
        coverage_over_time_figure(view),
        error_deciles(view),
        learning_curves(view),
        range_widths(view),
    ]
    if any(each.experts for each in view.evaluations):
        parts.append(followed_experts(view))
    return tuple(parts)


def reliability_diagram(view: EvaluationView) -> Figure | MissingFigure:
    """Stated against observed shares, and how many truths lie between two stated levels."""
    title = "Do the stated probabilities hold?"
    traces: list[dict[str, Any]] = []
    findings = []
    points = []
    tables = []
    for position, (style, told, details) in enumerate(
        zip(view.styles, view.told, view.details, strict=True)
    ):
        if not view.has_ranges(position):
            points.append(style.label)
            continue
        table = details["reliability"]
        tables.append(table.select(pl.lit(style.policy).alias("predictor"), pl.all()))
        gap = (table["observed"] - table["stated"]).abs()
        worst = table.row(int(gap.arg_max() or 0), named=True)
        findings.append(
            f"{style.label}: its 80 % ranges hold {percent(told.coverage[80].value)} of the truths"
            f"{_interval(told.coverage[80])}; farthest off, the {percent(worst['stated'])} quantile"
            f" was not exceeded by {percent(worst['observed'])} of {count(told.jobs, 'job')}."
        )
        traces.append(
            line_of(
                style,
                table["stated"].to_list(),
                [round(float(y), 5) for y in table["observed"]],
                "stated %{x:.0%}: observed %{y:.1%} (%{customdata:,} jobs)",
                mode="lines+markers",
                marker={"size": 5, "symbol": style.symbol, "color": style.colour},
                customdata=table["jobs"].cum_sum().to_list(),
            )
        )
        traces.append(_between_levels(table, told.jobs, style))
    if not traces:
        return MissingFigure(
            title,
            "These predictors name one number for each job, so no probability was stated.",
            "Evaluate one that keeps the whole distribution, such as similar or "
            "quantile_regression.",
        )
    if points:
        findings.append(f"{', '.join(points)}: one number a job, no stated probability; not drawn.")
    drawing = layout(
        560,
        xaxis=axis("stated probability", tickformat=".0%", range=[0, 1], anchor="y2", tickangle=0),
        yaxis=axis("observed share", tickformat=".0%", range=[0, 1], domain=[0.36, 1]),
        yaxis2=axis("jobs in each 5 %", tickformat=".0%", rangemode="tozero", domain=[0, 0.26]),
        shapes=[
            _grey_line({"x0": 0, "y0": 0, "x1": 1, "y1": 1, "yref": "y"}),
            _grey_line({"x0": 0, "y0": 0.05, "x1": 1, "y1": 0.05, "yref": "y2"}),
        ],
        annotations=[end_note("above the grey line: the truth was less than stated", "left")],
    )
    return Figure(
        name="reliability",
        title=title,
        findings=findings,
        traces=traces,
        layout=drawing,
        table=pl.concat(tables),
        note="Above: how many of the truths were at or below each stated quantile; on the grey "
        "line a predictor keeps its word. Below: the share of jobs whose truth lay between two "
        "stated levels; 5 % each if it does. A truth that equals a value with probability of its "
        "own counts for the levels that this value spans.",
    )


def _between_levels(table: pl.DataFrame, jobs: int, style: PolicyStyle) -> dict[str, Any]:
    counts = [*table["jobs"].to_list(), jobs - int(table["jobs"].sum())]
    x = [round(0.05 * place + 0.025, 3) for place in range(len(counts))]
    y = [round(each / max(jobs, 1), 5) for each in counts]
    below = {"yaxis": "y2", "shape": "hvh", "customdata": counts, "showlegend": False}
    return line_of(style, x, y, "%{customdata:,} jobs, %{y:.1%}", **below)


def error_deciles(view: EvaluationView) -> Figure | MissingFigure:
    """Share of jobs by estimate error in the study's buckets, the tail named."""
    title = "How far off are the estimates?"
    if not view.first.errors.jobs:
        return MissingFigure(
            title,
            f"Every {view.first.quantity} is zero, so no error can be told in per cent.",
            "The absolute errors are in the table.",
        )
    traces: list[dict[str, Any]] = []
    findings = []
    for style, told, details in zip(view.styles, view.told, view.details, strict=True):
        table = details["error_histogram"]
        shares = told.errors
        findings.append(
            f"{style.label}: {percent(shares.within_factor_two)} within a factor of two"
            f"{_interval(told.within_factor_two)}; {percent(shares.under)} under-estimated, "
            f"{percent(shares.under_by_half)} by more than half; {percent(shares.tail)} in the "
            "tail, over by more than 95 %."
        )
        traces.append(
            line_of(
                style,
                [*(bucket - 5 for bucket in BUCKETS), TAIL + 5],
                [round(float(y), 6) for y in [*table["share"], table["share"][-1]]],
                "%{text}: %{y:.1%}, %{customdata:,} jobs",
                shape="hv",
                text=[_bucket(each) for each in [*BUCKETS, TAIL]],
                customdata=[*table["jobs"], table["jobs"][-1]],
            )
        )
    low, high = _STUDY_WITHIN
    drawing = layout(
        380,
        top=66,
        xaxis=axis(
            f"estimate against the real {words_of(view.first.quantity)}",
            tickvals=[-100, -50, 0, 50, TAIL],
            ticktext=["−100 %", "−50 %", "exact", "+50 %", "tail:<br>over +95 %"],
            range=[-107, 107],
            tickangle=0,
        ),
        yaxis=axis("share of jobs", tickformat=".0%", rangemode="tozero"),
        shapes=[
            {
                "type": "rect",
                "x0": -50,
                "x1": 95,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "fillcolor": "@cell",
                "line": {"width": 0},
                "layer": "below",
            }
        ],
        annotations=[
            end_note("← under-estimated", "left"),
            end_note("over-estimated →", "right"),
            {
                **end_note(f"about a factor of two: {low:.0%} to {high:.0%} in the study", "left"),
                "x": 22,
                "xref": "x",
                "xanchor": "center",
                "yshift": 18,
            },
        ],
    )
    return Figure(
        name="error-histogram",
        title=title,
        findings=findings,
        traces=traces,
        layout=drawing,
        table=view.stacked("error_histogram"),
        note="Error in per cent of the truth, to the nearest ten; the last step holds everything "
        "above +95 %. Grey: about a factor of two, where the 3Sigma study has 77 to 92 % of the "
        "estimates that JVuPredict made for its four traces, and a heavy tail besides.",
    )


def learning_curves(view: EvaluationView) -> Figure | MissingFigure:
    """Share within a factor of two, and CRPS over the mean, over time."""
    title = "How fast does it learn, and does it last?"
    if max(curve.height for curve in view.curves) < _FEWEST_STRETCHES:
        return _too_short(title, view)
    traces: list[dict[str, Any]] = []
    findings = []
    for style, curve in zip(view.styles, view.curves, strict=True):
        steady = curve.tail(max(curve.height - 1, 1))
        findings.append(
            f"{style.label}: {percent(curve['within_factor_two'][0])} within a factor of two in "
            f"the first {view.stretch}, {percent(_median(steady, 'within_factor_two'))} in the "
            f"median later one; CRPS {number(curve['relative_crps'][0])} and "
            f"{number(_median(steady, 'relative_crps'))} of the mean."
        )
        jobs = "%{customdata:,} jobs"
        shares, errors = f"%{{y:.1%}}, {jobs}", f"%{{y:.3~g}}, {jobs}"
        traces.append(line_over_time(view, curve, "within_factor_two", style, "y", shares))
        traces.append(line_over_time(view, curve, "relative_crps", style, "y2", errors))
    crps = [y for trace in traces[1::2] for y in trace["y"] if y is not None]
    return Figure(
        name="learning-curve",
        title=title,
        findings=findings,
        traces=traces,
        layout=layout(
            520,
            xaxis=stretch_axis(view, "y2"),
            yaxis=axis(
                "within a factor of two",
                tickformat=".0%",
                rangemode="tozero",
                domain=[0.55, 1],
            ),
            yaxis2=axis(
                "CRPS / mean truth", range=[0, _top(crps)], domain=[0, 0.45], tickformat=",.2~r"
            ),
        ),
        table=_stacked_curves(view),
        note=f"By {view.stretch} of submission. CRPS is the error of a whole distribution (that of "
        "a single number is its absolute error): less is better. What lies far above the others "
        "is cut off; the CSV has it.",
    )


def range_widths(view: EvaluationView) -> Figure | MissingFigure:
    """Median width of the 80 % intervals relative to the median prediction, over time."""
    title = "How wide are the stated ranges?"
    stating = [i for i in range(len(view.told)) if view.has_ranges(i)]
    if not stating:
        return without_ranges(title)
    if max(curve.height for curve in view.curves) < _FEWEST_STRETCHES:
        return _too_short(title, view)
    traces = []
    findings = []
    for position in stating:
        style, curve = view.styles[position], view.curves[position]
        findings.append(
            f"{style.label}: in the median {view.stretch} the 80 % range is "
            f"{number(_median(curve, 'relative_width'))} times as wide as the estimate is long; "
            f"{number(curve['relative_width'][0])} times in the first, "
            f"{number(curve['relative_width'][-1])} in the last."
        )
        hover = "%{y:.3~g}, %{customdata:,} jobs"
        traces.append(line_over_time(view, curve, "relative_width", style, "y", hover))
    values = [y for trace in traces for y in trace["y"] if y is not None]
    return Figure(
        name="sharpness",
        title=title,
        findings=findings,
        traces=traces,
        layout=layout(
            300,
            xaxis=stretch_axis(view),
            yaxis=axis("width / estimate", range=[0, _top(values)]),
        ),
        table=_stacked_curves(view).select("predictor", view.stretch, "jobs", "relative_width"),
        note=f"By {view.stretch} of submission: median width between the 10 % and the 90 % "
        "quantile, over the median estimate. Narrower says more, if the ranges keep their word.",
    )


def followed_experts(view: EvaluationView) -> Figure:
    """Draw how often each expert was followed, and how good it was then."""
    wins = [
        (style, details["experts"])
        for style, details, each in zip(view.styles, view.details, view.evaluations, strict=True)
        if each.experts
    ]
    findings = []
    for style, table in wins:
        top = table.row(0, named=True)
        findings.append(
            f"{style.label}: most often {_expert(top['expert'])}, for {percent(top['share'])} of "
            f"the jobs, {percent(top['within_factor_two'])} of them within a factor of two; "
            f"{count(table.height, 'expert')} followed in all."
        )
    total = (
        pl.concat([table for _, table in wins])
        .group_by("expert")
        .agg(pl.col("share").sum())
        .sort("share", "expert", descending=[True, False], nulls_last=True)
    )
    shown = [_expert(name) for name in total["expert"].head(_MOST_EXPERTS)]
    traces = []
    for style, table in wins:
        rows = [row for row in table.iter_rows(named=True) if _expert(row["expert"]) in set(shown)]
        traces.append(
            marks_of(
                style,
                [round(row["share"], 6) for row in rows],
                [literal(_expert(row["expert"])) for row in rows],
                f"{style.drawn}: %{{y}}: %{{x:.1%}}, %{{text}}",
                text=[
                    f"{row['jobs']:,} jobs, {percent(row['within_factor_two'])} within 2×"
                    for row in rows
                ],
            )
        )
    left_out = total.height - len(shown)
    rest = f" The {left_out} rarest are in the CSV only." if left_out else ""
    return Figure(
        name="experts",
        title="Which expert won?",
        findings=findings,
        traces=traces,
        layout=layout(
            110 + 30 * len(shown),
            xaxis=axis("share of jobs", tickformat=".0%", rangemode="tozero", tickangle=0),
            yaxis=axis(
                "",
                categoryorder="array",
                categoryarray=[literal(name) for name in reversed(shown)],
                range=[-0.6, len(shown) - 0.4],
            ),
        ),
        table=view.stacked("experts"),
        note="An expert is what a predictor follows for a job: the one that was best on the jobs "
        f"like it that had ended.{rest}",
    )


def _stacked_curves(view: EvaluationView) -> pl.DataFrame:
    return pl.concat(
        curve.rename({"stretch": view.stretch}).select(
            pl.lit(style.policy).alias("predictor"), pl.all()
        )
        for style, curve in zip(view.styles, view.curves, strict=True)
    )


def _too_short(title: str, view: EvaluationView) -> MissingFigure:
    return MissingFigure(
        title,
        f"The log has fewer than {_FEWEST_STRETCHES} {view.stretch}s with jobs, so there is "
        "nothing to follow over time.",
        "A longer log would show it.",
    )


def _top(values: list[float]) -> float:
    """End of an axis that shows nearly all values, but not what lies far above them."""
    if not values:
        return 1.0
    return float(min(max(values), 2.5 * float(np.quantile(values, 0.8)))) * 1.08 or 1.0


def _median(curve: pl.DataFrame, column: str) -> float:
    values = curve[column].drop_nulls().to_numpy()
    return float(np.median(values)) if values.size else float("nan")


def _grey_line(ends: dict[str, Any]) -> dict[str, Any]:
    return {"type": "line", "line": {"color": "@muted", "width": 1}, "layer": "below", **ends}


def _interval(interval: Any) -> str:
    if not interval.is_known:
        return ""
    return f" (95 % interval {percent(interval.low)} to {percent(interval.high)})"


def _bucket(bucket: int) -> str:
    if bucket == TAIL:
        return "tail, over by more than 95 %"
    if bucket == 0:
        return "within 5 %"
    return f"about {abs(bucket)} % too {'short' if bucket < 0 else 'long'}"


def _expert(name: str | None) -> str:
    return "no expert" if name is None else name
