"""An evaluation in more detail: over levels, over time, by expert and by user."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis.prediction_errors import error_histogram
from foresail.evaluation.coverage import coverage_by_user, coverage_over_time
from foresail.evaluation.replaying import Evaluation
from foresail.metrics.bootstrap import WEEK_SECONDS

_STATED_LEVELS: Final = tuple(round(0.05 * step, 2) for step in range(1, 20))

_ERROR: Final = (pl.col("predicted") - pl.col("actual")).abs()
_ACTUAL: Final = pl.col("actual").sum()
_KNOWN: Final = pl.col("actual") > 0
_WITHIN: Final = (
    (pl.col("predicted") >= 0.5 * pl.col("actual"))
    & (pl.col("predicted") <= 2.0 * pl.col("actual"))
).filter(_KNOWN)


def _over(above: pl.Expr, below: pl.Expr) -> pl.Expr:
    """A ratio, unknown where nothing is below."""
    return pl.when(below > 0).then(above / below)


def reliability(evaluation: Evaluation) -> pl.DataFrame:
    """Stated against observed: how often the truth was at or below each stated quantile.

    Columns: ``stated`` (level), ``observed`` (share of the jobs), and ``jobs`` whose truth lay
    between the level before and this one.
    """
    level = np.sort(evaluation.jobs["level"].to_numpy())
    reached = np.searchsorted(level, _STATED_LEVELS, side="right")
    return pl.DataFrame(
        {
            "stated": _STATED_LEVELS,
            "observed": reached / max(level.size, 1),
            "jobs": np.diff(reached, prepend=0),
        }
    )


def learning_curve(evaluation: Evaluation, stretch_seconds: float = WEEK_SECONDS) -> pl.DataFrame:
    """How good the predictions were over time since the first submission.

    Returns
    -------
    DataFrame
        A row per stretch (a week) with jobs: ``stretch`` (1 is the first), ``jobs``,
        ``within_factor_two``, ``nmae``, ``relative_crps``, and ``relative_width`` (median width of
        the 80 % interval over the median prediction); null where not defined.
    """
    begin = pl.col("submit_seconds").min()
    stretch = ((pl.col("submit_seconds") - begin) / stretch_seconds).floor().cast(pl.Int64) + 1
    return (
        evaluation.jobs.with_columns(stretch=stretch)
        .group_by("stretch")
        .agg(
            jobs=pl.len(),
            within_factor_two=_WITHIN.mean(),
            nmae=_over(_ERROR.sum(), _ACTUAL),
            relative_crps=_over(pl.col("crps").sum(), _ACTUAL),
            relative_width=_over(
                (pl.col("q90") - pl.col("q10")).median(), pl.col("predicted").median()
            ),
        )
        .sort("stretch")
    )


def expert_wins(evaluation: Evaluation) -> pl.DataFrame:
    """How often each expert was followed, most often first, and how good it was then.

    Columns: ``expert`` (null: none had a history), ``jobs``, ``share``, ``within_factor_two``,
    ``nmae``. Empty for a predictor that has no experts.
    """
    jobs = evaluation.jobs if evaluation.experts else evaluation.jobs.head(0)
    return (
        jobs.group_by("expert")
        .agg(
            jobs=pl.len(),
            within_factor_two=_WITHIN.mean(),
            nmae=_over(_ERROR.sum(), _ACTUAL),
        )
        .with_columns(share=pl.col("jobs") / max(jobs.height, 1))
        .select("expert", "jobs", "share", "within_factor_two", "nmae")
        .sort("jobs", "expert", descending=[True, False], nulls_last=True)
    )


def worst_users(evaluation: Evaluation, most: int = 10) -> pl.DataFrame:
    """The users whose predictions were farthest off in sum, worst first.

    Columns: ``user`` (null: unknown), ``jobs``, ``absolute_error`` (summed, in the quantity's
    unit), ``share_of_error``, ``under`` (share predicted below the truth), ``within_factor_two``,
    ``median_actual``, ``median_predicted``.
    """
    error = pl.col("absolute_error")
    return (
        evaluation.jobs.group_by("user")
        .agg(
            jobs=pl.len(),
            absolute_error=_ERROR.sum(),
            under=(pl.col("predicted") < pl.col("actual")).mean(),
            within_factor_two=_WITHIN.mean(),
            median_actual=pl.col("actual").median(),
            median_predicted=pl.col("predicted").median(),
        )
        .with_columns(share_of_error=_over(error, error.sum()))
        .sort("absolute_error", "user", descending=[True, False], nulls_last=True)
        .head(most)
    )


def detail(evaluation: Evaluation) -> dict[str, pl.DataFrame]:
    """All tables of this module, the error histogram, and what ranges cover, by name."""
    return {
        "error_histogram": error_histogram(
            evaluation.jobs["predicted"].to_numpy(), evaluation.jobs["actual"].to_numpy()
        ),
        "reliability": reliability(evaluation),
        "learning_curve": learning_curve(evaluation),
        "experts": expert_wins(evaluation),
        "worst_users": worst_users(evaluation),
        "coverage_by_week": coverage_over_time(evaluation),
        "coverage_by_user": coverage_by_user(evaluation),
    }
