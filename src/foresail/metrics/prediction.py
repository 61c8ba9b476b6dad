"""Quality of predictions: error, tails, and whether stated intervals hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class PredictionQuality:
    """The initial predictions of a schedule against the runtimes; NaN where there are none."""

    predicted_jobs: int
    """Jobs with a prediction."""
    mean_absolute_error_seconds: float
    """Mean of abs(prediction - runtime), corrections left out (spec section 9)."""
    within_factor_two: float
    under_predicted: float
    over_predicted: float
    """Shares of the jobs with a prediction: between half and double the runtime; below it;
    above."""
    interval_jobs: int
    """Jobs whose 10 % and 90 % quantile were stated and differ."""
    covered: float
    below_interval: float
    above_interval: float
    """Shares of those whose runtime lay inside, below and above; stated: 80 %, 10 %, 10 %."""


def sharpness(jobs: pl.DataFrame, begin_seconds: float, step_seconds: float) -> pl.DataFrame:
    """Tabulate the width of the stated intervals of a table of ``per_job`` over time.

    A row per stretch of ``step_seconds`` in which a job with a stated interval was submitted:
    ``from_seconds``, ``jobs``, ``median_width_seconds`` (between the 10 % and the 90 % quantile),
    ``median_prediction_seconds``, and ``relative_width``, the former over the latter.
    """
    return (
        _stated(jobs)
        .group_by(
            (
                ((pl.col("submit_seconds") - begin_seconds) / step_seconds).floor() * step_seconds
                + begin_seconds
            ).alias("from_seconds")
        )
        .agg(
            pl.len().alias("jobs"),
            (pl.col("predicted_high_seconds") - pl.col("predicted_low_seconds"))
            .median()
            .alias("median_width_seconds"),
            pl.col("predicted_seconds").median().alias("median_prediction_seconds"),
        )
        .with_columns(
            relative_width=pl.col("median_width_seconds")
            / pl.col("median_prediction_seconds").clip(lower_bound=1.0)
        )
        .sort("from_seconds")
    )


def worst_predicted_users(jobs: pl.DataFrame, most: int = 10) -> pl.DataFrame:
    """The users whose jobs with a stated interval were farthest off in sum, worst first.

    Columns: ``user`` (null: unknown), ``jobs``, ``absolute_error_seconds`` (summed),
    ``share_of_error`` (of all users'), ``too_short`` (share of the jobs predicted shorter than they
    ran), ``median_runtime_seconds``, ``median_prediction_seconds``.
    """
    predicted, runtime = pl.col("predicted_seconds"), pl.col("runtime_seconds")
    error = pl.col("absolute_error_seconds")
    return (
        _stated(jobs)
        .group_by("user")
        .agg(
            pl.len().alias("jobs"),
            (predicted - runtime).abs().sum().alias("absolute_error_seconds"),
            (predicted < runtime).mean().alias("too_short"),
            runtime.median().alias("median_runtime_seconds"),
            predicted.median().alias("median_prediction_seconds"),
        )
        .with_columns(share_of_error=error / error.sum())
        .sort("absolute_error_seconds", "user", descending=[True, False], nulls_last=True)
        .head(most)
    )


def _stated(jobs: pl.DataFrame) -> pl.DataFrame:
    return jobs.filter(
        pl.col("predicted_seconds").is_finite()
        & (pl.col("predicted_low_seconds") < pl.col("predicted_high_seconds"))
    )


def prediction_quality(jobs: pl.DataFrame) -> PredictionQuality:
    """Quality of the predictions in a table of ``per_job``."""
    predicted = pl.col("predicted_seconds")
    runtime = pl.col("runtime_seconds")
    low, high = pl.col("predicted_low_seconds"), pl.col("predicted_high_seconds")
    known = jobs.filter(predicted.is_not_null() & predicted.is_finite())
    stated = known.filter(low < high)
    point = known.select(
        error=(predicted - runtime).abs().mean(),
        within=((predicted <= 2 * runtime) & (runtime <= 2 * predicted)).mean(),
        under=(predicted < runtime).mean(),
        over=(predicted > runtime).mean(),
    ).row(0)
    interval = stated.select(
        covered=((low <= runtime) & (runtime <= high)).mean(),
        below=(runtime < low).mean(),
        above=(runtime > high).mean(),
    ).row(0)
    error, within, under, over = (math.nan if v is None else float(v) for v in point)
    covered, below, above = (math.nan if v is None else float(v) for v in interval)
    return PredictionQuality(
        known.height, error, within, under, over, stated.height, covered, below, above
    )
