"""The pictures of an evaluation of predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.analysis.prediction_errors import BUCKETS, TAIL
from foresail.evaluation.tables import STATED
from foresail.model.words import count, number, percent
from foresail.reports.evaluation.view import EvaluationView, words_of
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import (
    PolicyStyle,
    axis,
    end_note,
    layout,
    level_at,
    line_of,
    literal,
    marks_of,
)

_STUDY_WITHIN: Final = (0.77, 0.92)
"""Within a factor of two in the study's traces: dissertation 4.1.1."""

_MOST_EXPERTS: Final = 10
_FEWEST_STRETCHES: Final = 3
_MOST_MARKERS: Final = 80
_GAP: Final = 0.06


def figures(view: EvaluationView) -> tuple[Figure | MissingFigure, ...]:
    """All pictures of the report, in the order in which they are shown."""
    parts: list[Figure | MissingFigure] = [
        reliability_diagram(view),
        coverage_over_time(view),
        error_deciles(view),
        learning_curves(view),
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
        return _without_ranges(title)
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


@dataclass(frozen=True, slots=True)
class _Panel:
    """A column of a table by stretch of submission, drawn over time."""

    column: str
    label: str
    hover: str
    """Texts about a value and its number of jobs."""
    stated: float | None = None
    """A level to compare with."""
    is_share: bool = False
    of_ranges: bool = False
    """Only of predictors that state ranges."""


def coverage_over_time(view: EvaluationView) -> Figure | MissingFigure:
    """The share of truths inside each stated range by stretch of submission, a band per range."""
    title = "Do the ranges hold all the time?"
    stating = [i for i in range(len(view.told)) if view.has_ranges(i)]
    if not stating:
        return _without_ranges(title)
    inside = "%{y:.1%} of %{customdata:,} jobs in the range"
    panels = [
        _Panel(f"covered_{stated}", f"{stated} % range", inside, stated / 100.0, is_share=True)
        for stated in STATED
    ]
    findings = []
    for i in stating:
        held = ", ".join(
            f"{stated} %: {percent(view.told[i].coverage[stated].value)}" for stated in STATED
        )
        off = ((view.coverage[i]["covered_90"] - 0.9).abs() > 0.1).sum()
        findings.append(
            f"{view.styles[i].label}: its ranges hold {held}; the 90 % range is more than ten "
            f"points off in {off} of {view.coverage[i].height} {view.stretch}s."
        )
    note = (
        "the share of truths inside the range, ends included. Grey: what is stated. How wide the "
        "ranges are is in the CSV too."
    )
    curves = {i: view.coverage[i] for i in stating}
    return _over_time(view, "coverage", title, curves, panels, findings, note)


def learning_curves(view: EvaluationView) -> Figure | MissingFigure:
    """Share within a factor of two, CRPS over the mean, and width of ranges, over time."""
    findings = []
    for i, (style, curve) in enumerate(zip(view.styles, view.curves, strict=True)):
        steady = curve.tail(max(curve.height - 1, 1))
        words = [
            f"{style.label}: {percent(curve['within_factor_two'][0])} within a factor of two in "
            f"the first {view.stretch}, {percent(_median(steady, 'within_factor_two'))} in the "
            "median later one",
            f"CRPS {number(curve['relative_crps'][0])} and "
            f"{number(_median(steady, 'relative_crps'))} of the mean",
        ]
        if view.has_ranges(i):
            words.append(
                f"the 80 % range {number(curve['relative_width'][0])} and "
                f"{number(_median(steady, 'relative_width'))} times as wide as the estimate is long"
            )
        findings.append("; ".join(words) + ".")
    jobs = "%{customdata:,} jobs"
    panels = [
        _Panel("within_factor_two", "within a factor of two", f"%{{y:.1%}}, {jobs}", is_share=True),
        _Panel("relative_crps", "CRPS / mean truth", f"%{{y:.3~g}}, {jobs}"),
    ]
    if any(view.has_ranges(i) for i in range(len(view.told))):
        width = f"%{{y:.3~g}}, {jobs}"
        panels.append(_Panel("relative_width", "80 % width / estimate", width, of_ranges=True))
    return _over_time(
        view,
        "learning-curve",
        "How fast does it learn, and does it last?",
        dict(enumerate(view.curves)),
        panels,
        findings,
        "CRPS is the error of a whole distribution (that of a single number is its absolute "
        "error): less is better, and narrower ranges say more if they hold. What lies far above "
        "the others is cut off; the CSV has it.",
    )


def _over_time(
    view: EvaluationView,
    name: str,
    title: str,
    curves: Mapping[int, pl.DataFrame],
    panels: Sequence[_Panel],
    findings: Sequence[str],
    note: str,
) -> Figure | MissingFigure:
    """Panels above one another on one axis of time; the curves by the place of the predictor."""
    if max(curve.height for curve in curves.values()) < _FEWEST_STRETCHES:
        return MissingFigure(
            title,
            f"The log has fewer than {_FEWEST_STRETCHES} {view.stretch}s with jobs, so there is "
            "nothing to follow over time.",
            "A longer log would show it.",
        )
    height = (1.0 + _GAP) / len(panels)
    drawing = layout(120 + 150 * len(panels), shapes=[])
    traces: list[dict[str, Any]] = []
    for place, panel in enumerate(panels):
        at = f"y{place + 1}" if place else "y"
        lines = [
            _line_over_time(view, curve, panel, view.styles[i], at)
            for i, curve in curves.items()
            if view.has_ranges(i) or not panel.of_ranges
        ]
        values = [y for line in lines for y in line["y"] if y is not None]
        top = 1.0 - place * height
        drawing[f"yaxis{place + 1}" if place else "yaxis"] = axis(
            panel.label,
            tickformat=".0%" if panel.is_share else ",.2~r",
            range=[0, 1.02 if panel.is_share else _top(values)],
            domain=[max(top - height + _GAP, 0.0), top],
            nticks=5,
        )
        if panel.stated is not None:
            drawing["shapes"].append(level_at(panel.stated, yref=at, layer="below"))
        traces += lines
    drawing["xaxis"] = axis(
        f"{view.stretch} since the first submission",
        anchor=f"y{len(panels)}" if len(panels) > 1 else "y",
        tickangle=0,
        tickformat="d",
    )
    table = pl.concat(
        curve.rename({"stretch": view.stretch}).select(
            pl.lit(view.styles[i].policy).alias("predictor"), pl.all()
        )
        for i, curve in curves.items()
    )
    said = f"By {view.stretch} of submission: {note}"
    return Figure(name, title, findings, traces, drawing, table, said)


def _line_over_time(
    view: EvaluationView, curve: pl.DataFrame, panel: _Panel, style: PolicyStyle, at: str
) -> dict[str, Any]:
    return line_of(
        style,
        curve["stretch"].to_list(),
        [None if y is None else round(float(y), 5) for y in curve[panel.column]],
        f"{view.stretch} %{{x}}: {panel.hover}",
        mode="lines+markers" if curve.height <= _MOST_MARKERS else "lines",
        yaxis=at,
        marker={"size": 4, "symbol": style.symbol},
        customdata=curve["jobs"].to_list(),
        showlegend=at == "y",
    )


def _top(values: Sequence[float]) -> float:
    """End of an axis that shows nearly all values, but not what lies far above them."""
    if not values:
        return 1.0
    return float(min(max(values), 2.5 * float(np.quantile(values, 0.8)))) * 1.08 or 1.0


def _without_ranges(title: str) -> MissingFigure:
    """Say that no predictor of the view has stated more than a number."""
    return MissingFigure(
        title,
        "These predictors name one number for each job, so no probability was stated.",
        "Evaluate one that keeps the whole distribution, such as similar or quantile_regression.",
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
