"""The estimate error as the study defines it: deciles around the truth, and a tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from foresail.model.distribution import Booleans, Floats, Integers

TAIL: Final = 100
"""The bucket of errors above +95 %."""

BUCKETS: Final = tuple(range(-100, TAIL + 1, 10))

TAIL_BEGINS: Final = 95.0
_BY_HALF: Final = 50.0


@dataclass(frozen=True, slots=True)
class ErrorShares:
    """Shares of the jobs whose amount is above zero; NaN where there are none."""

    jobs: int
    """Number of jobs."""
    zero_jobs: int
    """Jobs whose amount was 0, which have no relative error and are left out."""
    within_factor_two: float
    """Estimates between half and double the truth."""
    under: float
    under_by_half: float
    over: float
    tail: float
    """Estimates below the truth, below half of it, above it, and above it by more than 95 %."""


def percentage_errors(estimate: ArrayLike, actual: ArrayLike) -> Floats:
    """100 (estimate - actual) / actual, for amounts above zero."""
    real = np.asarray(actual, dtype=np.float64)
    return np.asarray(100.0 * (np.asarray(estimate, dtype=np.float64) - real) / real)


def error_bucket(errors: ArrayLike) -> Integers:
    """Nearest decile of each percentage error, or ``TAIL`` (Park's dissertation, 3.6 and 4.1.1).

    10 floor((e + 5) / 10) up to +95 %, where +95 % counts for 90; all above is the tail.
    """
    error = np.asarray(errors, dtype=np.float64)
    decile = np.minimum(10.0 * np.floor((error + 5.0) / 10.0), 90.0)
    return np.where(error > TAIL_BEGINS, TAIL, decile).astype(np.int64)


def error_histogram(estimate: ArrayLike, actual: ArrayLike) -> pl.DataFrame:
    """Jobs by estimate error; jobs whose amount is 0 are left out.

    Returns
    -------
    DataFrame
        A row per bucket of ``BUCKETS``: ``bucket_percent`` (``TAIL`` is everything above +95 %),
        ``jobs`` and ``share``.
    """
    estimated, real = _above_zero(estimate, actual)
    bucket = error_bucket(percentage_errors(estimated, real))
    jobs = np.bincount((bucket - BUCKETS[0]) // 10, minlength=len(BUCKETS))
    return pl.DataFrame(
        {"bucket_percent": BUCKETS, "jobs": jobs, "share": jobs / max(real.size, 1)}
    )


def error_shares(estimate: ArrayLike, actual: ArrayLike) -> ErrorShares:
    """Count the estimates by how far off they were."""
    estimated, real = _above_zero(estimate, actual)
    error = percentage_errors(estimated, real)
    within = (estimated >= 0.5 * real) & (estimated <= 2.0 * real)
    return ErrorShares(
        jobs=real.size,
        zero_jobs=int((np.asarray(actual) == 0).sum()),
        within_factor_two=_share(within),
        under=_share(error < 0),
        under_by_half=_share(error < -_BY_HALF),
        over=_share(error > 0),
        tail=_share(error > TAIL_BEGINS),
    )


def _above_zero(estimate: ArrayLike, actual: ArrayLike) -> tuple[Floats, Floats]:
    estimated, real = (np.asarray(each, dtype=np.float64) for each in (estimate, actual))
    return estimated[real > 0], real[real > 0]


def _share(holds: Booleans) -> float:
    return float(holds.mean()) if holds.size else float("nan")
