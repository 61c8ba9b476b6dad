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
