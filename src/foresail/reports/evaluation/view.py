"""Everything an evaluation's report looks at, computed once, and its table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
from rich.table import Table

from foresail.evaluation.replaying import Evaluation
from foresail.evaluation.scores import Scores, scores
from foresail.evaluation.tables import coverage_over_time, detail, learning_curve
from foresail.metrics.statistics import DAY_SECONDS, WEEK_SECONDS
from foresail.model.errors import InputError
from foresail.model.words import count, duration, number, percent
from foresail.reports.document import RankedColumn, RankedTable
from foresail.reports.style import PolicyStyle, named_styles

_FEWEST_WEEKS = 4


@dataclass(frozen=True)
class EvaluationView:
    """Evaluations of one log, the first being the baseline, with all that follows from them.

    ``details`` has the tables of ``foresail.evaluation.tables.detail`` for each; ``curves`` the
    learning curve and ``coverage`` what ranges cover by ``stretch`` (``week``, or ``day`` where the
    log has fewer than four weeks).
    """

    evaluations: tuple[Evaluation, ...]
    told: tuple[Scores, ...]
    styles: tuple[PolicyStyle, ...]
    details: tuple[dict[str, pl.DataFrame], ...]
    curves: tuple[pl.DataFrame, ...]
    coverage: tuple[pl.DataFrame, ...]
    stretch: str
    span_seconds: float

    @property
    def first(self) -> Scores:
        """Scores of the baseline."""
        return self.told[0]

    def has_ranges(self, position: int) -> bool:
        """Return whether this predictor stated ranges, and not one number a job."""
        return self.told[position].ranges > 0

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
        told=tuple(scores(each) for each in evaluations),
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


def _coverage(told: Scores) -> float:
    return told.coverage[80].value if told.ranges else math.nan


def _width(told: Scores) -> float:
    return told.width[80] if told.ranges else math.nan


COLUMNS: Final[tuple[RankedColumn[Scores], ...]] = (
    RankedColumn("within\n2×", lambda told: told.within_factor_two.value, percent, 1),
    RankedColumn("too\nshort", lambda told: told.errors.under, percent),
    RankedColumn("NMAE", lambda told: told.nmae.value, number, -1),
    RankedColumn("median\nerror", lambda told: told.median_percentage_error / 100.0, percent, -1),
    RankedColumn("CRPS\n/mean", lambda told: told.relative_crps.value, number, -1),
    RankedColumn("80 %\nholds", _coverage, percent),
    RankedColumn("80 %\nwidth", _width, number),
    RankedColumn("µs\na job", lambda told: told.median_seconds, microseconds),
)
"""What is shown first; the CSV has all. ``80 % holds``: share of the truths inside the 80 %
interval; ``width``: its median width over the median prediction."""


def terminal_table(told: Sequence[Scores]) -> Table:
    """A row per predictor, at most 100 characters wide."""
    table = RankedTable("predictor", [each.predictor for each in told], told, COLUMNS)
    title = f"{told[0].source}: {words_of(told[0].quantity)}"
    return table.for_terminal(_NAME_WIDTH, _caption(told), title)


def words_of(name: str) -> str:
    """A name of the code as words: ``cpu_time`` is ``cpu time``."""
    return name.replace("_", " ")


def _caption(told: Sequence[Scores]) -> str:
    first = told[0]
    words = [count(first.jobs, "job"), f"learned {words_of(first.learning)}"]
    if first.unknown_jobs:
        words.append(f"{first.unknown_jobs:,} left out, their {words_of(first.quantity)} unknown")
    if first.errors.zero_jobs:
        words.append(f"{first.errors.zero_jobs:,} of zero not in relative errors")
    return ", ".join(words) + ("; * best of its column" if len(told) > 1 else "")
