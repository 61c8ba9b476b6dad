"""The five numbers that every distribution of a metric is told by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean, median, 90 % and 99 % quantile and maximum; all NaN where there are no values."""

    mean: float
    median: float
    p90: float
    p99: float
    max: float


def statistics(values: ArrayLike | pl.Series) -> Statistics:
    """The five numbers of some values; quantiles are interpolated linearly."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return Statistics(*[float("nan")] * 5)
    median, p90, p99, largest = np.quantile(array, [0.5, 0.9, 0.99, 1.0])
    return Statistics(float(array.mean()), float(median), float(p90), float(p99), float(largest))
