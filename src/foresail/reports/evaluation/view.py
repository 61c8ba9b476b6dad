"""Pictures and tables of an evaluation's report, from a view computed once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from rich.table import Table

from foresail.analysis.prediction_errors import TAIL
from foresail.evaluation.replaying import Evaluation
from foresail.evaluation.scores import Scores, scores
from foresail.evaluation.tables import STATED, coverage_over_time, detail, learning_curve
from foresail.metrics.statistics import DAY_SECONDS, WEEK_SECONDS
from foresail.model.errors import InputError
from foresail.model.words import count, duration, number, percent
from foresail.reports.document import RankedColumn, RankedTable
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.plots import PlottedTable, drawn, plot_of, stacked
from foresail.reports.style import PolicyStyle, end_note, named_styles

_FEWEST_WEEKS = 4


@dataclass(frozen=True)
class EvaluationView:
    """Evaluations of one log, the first being the baseline, with all that follows from them.

    ``details`` has the tables of ``foresail.evaluation.tables.detail`` for each; ``curves`` the
    learning curve and ``coverage`` what ranges cover by ``stretch`` (``week``, or ``day`` where the
    log has fewer than four weeks).
    """

    evaluations: tuple[Evaluation, ...]
    scored: tuple[Scores, ...]
    styles: tuple[PolicyStyle, ...]
    details: tuple[dict[str, pl.DataFrame], ...]
    curves: tuple[pl.DataFrame, ...]
    coverage: tuple[pl.DataFrame, ...]
    stretch: str
    span_seconds: float

    @property
    def first(self) -> Scores:
        """Scores of the baseline."""
        return self.scored[0]

    def has_ranges(self, position: int) -> bool:
        """Return whether this predictor stated ranges, and not one number a job."""
        return self.scored[position].ranges > 0

    def stacked(self, name: str) -> pl.DataFrame:
        """One table of the details of all predictors, with the predictor as its first column."""
        return pl.concat(
            each[name].select(pl.lit(style.policy).alias("predictor"), pl.all())
            for style, each in zip(self.styles, self.details, strict=True)
        )


def evaluation_view(evaluations: Sequence[Evaluation]) -> EvaluationView:
    """Compute what a report needs.

    Raises ``InputError`` if there is no evaluation, or one of another log or quantity than the
    first.
    """
    if not evaluations:
        raise InputError("a report needs an evaluation", value=0, expected="at least one")
    subjects = {(each.source, each.quantity, each.learning) for each in evaluations}
    if len(subjects) > 1:
        raise InputError(
            "the evaluations have different subjects",
            value=len(subjects),
            expected="one log, quantity and way of learning",
        )
    submit = evaluations[0].jobs["submit_seconds"].to_numpy()
    span = float(submit[-1] - submit[0]) if submit.size else 0.0
    weekly = span >= _FEWEST_WEEKS * WEEK_SECONDS
    seconds = WEEK_SECONDS if weekly else DAY_SECONDS
    return EvaluationView(
        evaluations=tuple(evaluations),
        scored=tuple(scores(each) for each in evaluations),
        styles=named_styles([each.predictor for each in evaluations]),
        details=tuple(detail(each) for each in evaluations),
        curves=tuple(learning_curve(each, seconds) for each in evaluations),
        coverage=tuple(coverage_over_time(each, seconds) for each in evaluations),
        stretch="week" if weekly else "day",
        span_seconds=span,
    )


_NAME_WIDTH: Final = 24
_RESOLUTION_SECONDS: Final = 1e-7
_MEMORY_UNITS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_UNIT_SIGNS: Final = {"cores": " cores", "core seconds": " core s", "byte seconds": " B s"}


def amount(unit: str, value: float) -> str:
    """An amount of a quantity as people say it."""
    if unit == "seconds":
        return duration(value)
    if unit == "bytes":
        return memory(value)
    return number(value) if math.isnan(value) else number(value) + _UNIT_SIGNS.get(unit, "")


def memory(size: float) -> str:
    """An amount of memory: ``6.29 MB``."""
    if math.isnan(size):
        return number(size)
    scale, unit = next((each for each in _MEMORY_UNITS if size >= each[0]), _MEMORY_UNITS[-1])
    return f"{number(float(f'{size / scale:.3g}'))} {unit}"


def microseconds(seconds: float) -> str:
    """A cost in microseconds; what the clock cannot tell apart is below its resolution."""
    return "<0.1" if seconds < _RESOLUTION_SECONDS else number(float(f"{1e6 * seconds:.3g}"))


COLUMNS: Final[tuple[RankedColumn[Scores], ...]] = (
    RankedColumn("within\n2×", lambda scored: scored.within_factor_two.value, percent, 1),
    RankedColumn("too\nshort", lambda scored: scored.errors.under, percent),
    RankedColumn("NMAE", lambda scored: scored.nmae.value, number, -1),
    RankedColumn(
        "median\nerror", lambda scored: scored.median_percentage_error / 100.0, percent, -1
    ),
    RankedColumn("CRPS\n/mean", lambda scored: scored.relative_crps.value, number, -1),
    RankedColumn(
        "80 %\nholds", lambda each: each.coverage[80].value if each.ranges else math.nan, percent
    ),
    RankedColumn("80 %\nwidth", lambda each: each.width[80] if each.ranges else math.nan, number),
    RankedColumn("µs\na job", lambda scored: scored.median_seconds, microseconds),
)
"""Columns that are shown first; the CSV has all. ``80 % holds``: share of the truths inside the 80
% interval; ``width``: its median width over the median prediction."""


def terminal_table(scored: Sequence[Scores]) -> Table:
    """A row per predictor, at most 100 characters wide."""
    table = RankedTable("predictor", [each.predictor for each in scored], scored, COLUMNS)
    title = f"{scored[0].source}: {words_of(scored[0].quantity)}"
    return table.for_terminal(_NAME_WIDTH, _caption(scored), title)


def words_of(name: str) -> str:
    """A name of the code as words: ``cpu_time`` is ``cpu time``."""
    return name.replace("_", " ")


def _caption(scored: Sequence[Scores]) -> str:
    first = scored[0]
    words = [count(first.jobs, "job"), f"learned {words_of(first.learning)}"]
    if first.unknown_jobs:
        words.append(f"{first.unknown_jobs:,} left out, their {words_of(first.quantity)} unknown")
    if first.errors.zero_jobs:
        words.append(f"{first.errors.zero_jobs:,} of zero not in relative errors")
    return ", ".join(words) + ("; * best of its column" if len(scored) > 1 else "")


_FEWEST_STRETCHES: Final = 3

_SHARES: Final = {"x_kind": "share", "y_kind": "share"}
_STATED: Final = plot_of(
    "line", "stated", "observed", "stated probability", "observed share", **_SHARES
)
_BETWEEN: Final = plot_of(
    "steps", "from", "share", "stated probability", "jobs in each 5 %", level=0.05, **_SHARES
)


def figures(view: EvaluationView) -> tuple[Figure | MissingFigure, ...]:
    """All pictures of the report, in the order in which they are shown."""
    return (
        _reliability_diagram(view),
        _coverage_by_stretch(view),
        _error_deciles(view),
        _learning_curves(view),
    )


def _reliability_diagram(view: EvaluationView) -> Figure | MissingFigure:
    """Stated against observed shares, and how many truths lie between two stated levels."""
    title = "Do the stated probabilities hold?"
    findings, stated, between = [], [], []
    for style, scored, details in _stating(view):
        table = details["reliability"]
        worst = table.row(
            int((table["observed"] - table["stated"]).abs().arg_max() or 0), named=True
        )
        held = scored.coverage[80]
        findings.append(
            f"{style.label}: its 80 % ranges hold {percent(held.value)} of the truths"
            f"{_interval(held)}; farthest off, the {percent(worst['stated'])} quantile"
            f" was not exceeded by {percent(worst['observed'])} of {count(scored.jobs, 'job')}."
        )
        jobs = [*table["jobs"].to_list(), scored.jobs - int(table["jobs"].sum())]
        levels = pl.DataFrame({"from": [0.0, *table["stated"]], "jobs": jobs})
        shares = levels.with_columns(share=pl.col("jobs") / max(scored.jobs, 1))
        stated.append(PlottedTable(style, _STATED, table))
        between.append(PlottedTable(style, _BETWEEN, _with_end(shares, "from", 1.0)))
    if not stated:
        return _without_ranges(title)
    points = [view.styles[i].label for i in range(len(view.scored)) if not view.has_ranges(i)]
    if points:
        findings.append(f"{', '.join(points)}: one number a job, no stated probability; not drawn.")
    return drawn(
        "reliability",
        title,
        findings,
        [stated, between],
        table=stacked(stated, "predictor"),
        note="Above: how many of the truths were at or below each stated quantile; on the grey "
        "line a predictor keeps its word, and above it the truth was less than stated. Below: the "
        "share of jobs whose truth lay between two stated levels; 5 % each if it does. A truth "
        "that equals a value with probability of its own counts for the levels that this value "
        "spans.",
        height=520,
        shapes=[{"type": "line", "x0": 0, "y0": 0, "x1": 1, "y1": 1, "line": {"color": "@muted"}}],
    )


def _error_deciles(view: EvaluationView) -> Figure | MissingFigure:
    """Share of jobs by estimate error in the study's buckets, the tail named."""
    title = "How far off are the estimates?"
    if not view.first.errors.jobs:
        return MissingFigure(
            title,
            f"Every {view.first.quantity} is zero, so there is no error in per cent.",
            "The absolute errors are in the table.",
        )
    findings = []
    for style, scored in zip(view.styles, view.scored, strict=True):
        shares = scored.errors
        findings.append(
            f"{style.label}: {percent(shares.within_factor_two)} within a factor of two"
            f"{_interval(scored.within_factor_two)}; {percent(shares.under)} under-estimated, "
            f"{percent(shares.under_by_half)} by more than half; {percent(shares.tail)} in the "
            "tail, over by more than 95 %."
        )
    across = f"estimate against the real {words_of(view.first.quantity)} (%)"
    plot = plot_of("steps", "from_percent", "share", across, "share of jobs", y_kind="share")
    parts = []
    for style, details in zip(view.styles, view.details, strict=True):
        table = details["error_histogram"].with_columns(
            from_percent=pl.col("bucket_percent").cast(pl.Float64) - 5.0
        )
        parts.append(PlottedTable(style, plot, _with_end(table, "from_percent", TAIL + 5.0)))
    return drawn(
        "error-histogram",
        title,
        findings,
        [parts],
        table=view.stacked("error_histogram"),
        note="Error in per cent of the truth, to the nearest ten; the last step holds everything "
        "above +95 %. Of the estimates that JVuPredict made for its four traces, the 3Sigma study "
        "has 77 to 92 % within about a factor of two, and a heavy tail besides.",
        top=52,
        annotations=[
            end_note("← under-estimated", "left"),
            end_note("over-estimated; last: the tail →", "right"),
        ],
    )


def _coverage_by_stretch(view: EvaluationView) -> Figure | MissingFigure:
    """The share of truths inside each stated range by stretch of submission, a panel per range."""
    title = "Do the ranges hold all the time?"
    stating = [i for i in range(len(view.scored)) if view.has_ranges(i)]
    if not stating:
        return _without_ranges(title)
    findings = []
    for i in stating:
        held = ", ".join(
            f"{stated} %: {percent(view.scored[i].coverage[stated].value)}" for stated in STATED
        )
        off = ((view.coverage[i]["covered_90"] - 0.9).abs() > 0.1).sum()
        findings.append(
            f"{view.styles[i].label}: its ranges hold {held}; the 90 % range is more than ten "
            f"points off in {off} of {view.coverage[i].height} {view.stretch}s."
        )
    panels = [
        _over_time(view, view.coverage, f"covered_{stated}", f"{stated} % range", stated / 100.0)
        for stated in STATED
    ]
    note = (
        "the share of truths inside the range, ends included. Grey: what is stated. How wide the "
        "ranges are is in the CSV too."
    )
    return _by_stretch(view, "coverage", title, findings, panels, note)


def _learning_curves(view: EvaluationView) -> Figure | MissingFigure:
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
    panels = [
        _over_time(view, view.curves, "within_factor_two", "within a factor of two"),
        _over_time(view, view.curves, "relative_crps", "CRPS / mean truth"),
        _over_time(view, view.curves, "relative_width", "80 % width / estimate"),
    ]
    return _by_stretch(
        view,
        "learning-curve",
        "How fast does it learn, and does it last?",
        findings,
        [parts for parts in panels if parts],
        "CRPS is the error of a whole distribution (that of a single number is its absolute "
        "error): less is better, and narrower ranges say more if they hold.",
    )


def _over_time(
    view: EvaluationView,
    curves: Sequence[pl.DataFrame],
    column: str,
    label: str,
    level: float | None = None,
) -> list[PlottedTable]:
    """A panel of one column by stretch of submission; of ranges, for predictors that state them."""
    is_ratio = column.startswith("relative")
    plot = plot_of(
        "line",
        view.stretch,
        column,
        f"{view.stretch} since the first submission",
        label,
        y_kind="number" if is_ratio else "share",
        log_y=is_ratio,
        level=level,
    )
    return [
        PlottedTable(view.styles[i], plot, curve.rename({"stretch": view.stretch}))
        for i, curve in enumerate(curves)
        if view.has_ranges(i) or not column.startswith(("covered", "relative_width"))
    ]


def _by_stretch(
    view: EvaluationView,
    name: str,
    title: str,
    findings: Sequence[str],
    panels: Sequence[Sequence[PlottedTable]],
    note: str,
) -> Figure | MissingFigure:
    if max(part.table.height for part in panels[0]) < _FEWEST_STRETCHES:
        return MissingFigure(
            title,
            f"The log has fewer than {_FEWEST_STRETCHES} {view.stretch}s with jobs, so there is "
            "nothing to follow over time.",
            "A longer log would show it.",
        )
    said = f"By {view.stretch} of submission: {note}"
    table = stacked(panels[0], "predictor")
    return drawn(name, title, findings, panels, table=table, note=said)


def _stating(view: EvaluationView) -> list[tuple[Any, Any, dict[str, pl.DataFrame]]]:
    """Style, scores and tables of each predictor that states ranges."""
    every = zip(view.styles, view.scored, view.details, strict=True)
    return [each for i, each in enumerate(every) if view.has_ranges(i)]


def _without_ranges(title: str) -> MissingFigure:
    """Say that no predictor of the view has stated more than a number."""
    return MissingFigure(
        title,
        "These predictors name one number for each job, so no probability was stated.",
        "Evaluate one that keeps the whole distribution, such as similar or quantile_regression.",
    )


def _with_end(steps: pl.DataFrame, column: str, end: float) -> pl.DataFrame:
    """The same with a row where the last step ends."""
    return pl.concat([steps, steps.tail(1).with_columns(pl.lit(end).alias(column))])


def _median(curve: pl.DataFrame, column: str) -> float:
    values = curve[column].drop_nulls().to_numpy()
    return float(np.median(values)) if values.size else float("nan")


def _interval(interval: Any) -> str:
    if not interval.is_known:
        return ""
    return f" (95 % interval {percent(interval.low)} to {percent(interval.high)})"
