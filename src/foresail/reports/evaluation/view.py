"""Everything the report of an evaluation looks at, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from foresail.evaluation.replaying import Evaluation
from foresail.evaluation.scores import Scores, scores
from foresail.evaluation.tables import coverage_over_time, detail, learning_curve
from foresail.metrics.statistics import DAY_SECONDS, WEEK_SECONDS
from foresail.model.errors import InputError
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
        """Whether this predictor stated ranges, and not one number a job."""
        return self.told[position].ranges > 0

    def stacked(self, name: str) -> pl.DataFrame:
        """One table of the details of all predictors, with the predictor as its first column."""
        return pl.concat(
            each[name].select(pl.lit(style.policy).alias("predictor"), pl.all())
            for style, each in zip(self.styles, self.details, strict=True)
        )


def evaluation_view(evaluations: Sequence[Evaluation]) -> EvaluationView:
    """Compute what a report needs.

    Raises
    ------
    InputError
        If there is no evaluation, or one of another log or quantity than the first.
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
