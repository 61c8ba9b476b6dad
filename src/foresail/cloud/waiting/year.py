"""A year of jobs with the published figures of a university's shared cluster (section 6.7).

Fourteen million jobs: 0.4527 a second, 90 % of gaps below a second, a mean runtime of 6,225 s, 60 %
below three minutes, 4 % above six hours, 0.11 % above 96 hours, and as much work as makes 225
machines of 64 cores cost 0.60 of renting at a fixed price of 0.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.jobs import TraceJobs

YEAR_SECONDS: Final = 365.0 * 86400.0
ARRIVALS_PER_SECOND: Final = 0.4527
MEAN_RUNTIME_SECONDS: Final = 6225.0
MEAN_CORES: Final = 0.4 / 0.6 * 225 * 64 / (ARRIVALS_PER_SECOND * MEAN_RUNTIME_SECONDS)
"""Per job, weighted by runtime: what the published price at 225 machines implies."""

_SHORT_SHARE: Final = 0.60
_LONG_SHARE: Final = 0.04
_SHORT_LIMIT: Final = 180.0
_LONG_LIMIT: Final = 6.0 * 3600.0
_SHORT_MEAN: Final = 60.0
_LONG_MEAN_BEYOND: Final = 25.0 * 3600.0
_CORES: Final = np.array([1, 2, 4, 8, 16, 32], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Bursts:
    """How jobs come in bursts, which nobody published; chosen so that waits are near.

    Parameters
    ----------
    mean_jobs
        Per burst: 10 make 90 % of gaps short.
    tail
        Pareto exponent of the number of jobs in a burst; smaller is burstier.
    most_jobs
        In one burst.
    likeness
        Share of jobs that run about as long as the burst's first job.
    week_spread
        Standard deviation of the logarithm of a week's submissions.
    """

    mean_jobs: float = 10.0
    tail: float = 1.2
    most_jobs: int = 20_000
    likeness: float = 0.8
    week_spread: float = 0.25


def university_year(
    jobs: int | None = None, seed: int = 0, bursts: Bursts | None = None
) -> TraceJobs:
    """Jobs of a year, or so many of its first ones.

    Arrivals follow days and weeks; bursts are arrays of like jobs.
    """
    shape = bursts or Bursts()
    count = round(YEAR_SECONDS * ARRIVALS_PER_SECOND) if jobs is None else jobs
    random = np.random.default_rng(seed)
    burst = _burst_of_jobs(random, count, shape)
    number = int(burst[-1]) + 1
    begins = _busy_times(random, number, count / ARRIVALS_PER_SECOND, shape.week_spread)
    within = random.exponential(0.1, count)
    first = np.flatnonzero(np.diff(burst, prepend=-1))
    offset = np.cumsum(within)
    submit = begins[burst] + offset - offset[first][burst]
    order = np.argsort(submit, kind="stable")
    own = random.random(count) >= shape.likeness
    level = np.where(own, random.random(count), random.random(number)[burst])
    runtime = _runtimes(random, level)
    cores = _cores(random, number)[burst]
    return TraceJobs(submit[order], runtime[order], cores[order])


def _burst_of_jobs(random: np.random.Generator, count: int, shape: Bursts) -> NDArray[np.int64]:
    """Number of the burst that each job belongs to."""
    draws = int(2.0 * count / shape.mean_jobs) + 10
    raw = np.minimum((1.0 - random.random(draws)) ** (-1.0 / shape.tail), shape.most_jobs)
    # Stretching the sizes moves their mean to where it is wanted; most are a few jobs.
    sizes = np.maximum(np.rint(raw * shape.mean_jobs / raw.mean()), 1).astype(np.int64)
    while sizes.sum() < count:
        sizes = np.concatenate((sizes, sizes))
    return np.repeat(np.arange(sizes.size), sizes)[:count]


def _busy_times(
    random: np.random.Generator, number: int, period_seconds: float, week_spread: float
) -> NDArray[np.float64]:
    """Ascending times of bursts: more by day and on workdays, and in busy weeks."""
    hours = np.arange(int(np.ceil(period_seconds / 3600.0)))
    by_day = 1.0 + 0.5 * np.sin(2.0 * np.pi * (hours % 24 - 9.0) / 24.0)
    by_week = np.where(hours // 24 % 7 < 5, 1.15, 0.625)
    weeks = random.lognormal(0.0, week_spread, hours.size // 168 + 1)
    weight = by_day * by_week * weeks[hours // 168]
    edges = np.concatenate(([0.0], np.cumsum(weight)))
    at = np.sort(random.random(number)) * edges[-1]
    times: NDArray[np.float64] = np.interp(at, edges, np.arange(edges.size) * 3600.0)
    return np.minimum(times, period_seconds)


def _runtimes(random: np.random.Generator, level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds by the share of jobs that run for less; like levels run alike, give or take."""
    middle_share = 1.0 - _SHORT_SHARE - _LONG_SHARE
    middle_mean = (
        MEAN_RUNTIME_SECONDS
        - _SHORT_SHARE * _SHORT_MEAN
        - _LONG_SHARE * (_LONG_LIMIT + _LONG_MEAN_BEYOND)
    ) / middle_share
    noisy = np.abs(level + random.normal(0.0, 0.01, level.size))
    noisy = 1.0 - np.abs(1.0 - noisy)  # reflected at both ends, so that it stays uniform
    short = _SHORT_LIMIT * (noisy / _SHORT_SHARE) ** (_SHORT_LIMIT / _SHORT_MEAN - 1.0)
    place = np.clip((noisy - _SHORT_SHARE) / middle_share, 0.0, 1.0)
    exponent = (_LONG_LIMIT - _SHORT_LIMIT) / (middle_mean - _SHORT_LIMIT) - 1.0
    middle = _SHORT_LIMIT + (_LONG_LIMIT - _SHORT_LIMIT) * place**exponent
    beyond = np.clip((1.0 - noisy) / _LONG_SHARE, 1e-9, 1.0)
    long = _LONG_LIMIT - _LONG_MEAN_BEYOND * np.log(beyond)
    runtime = np.where(noisy < _SHORT_SHARE, short, middle)
    return np.where(noisy >= 1.0 - _LONG_SHARE, long, runtime)


def _cores(random: np.random.Generator, number: int) -> NDArray[np.int64]:
    """Cores by burst: half ask for one, and the mean is the published load's."""
    rest = 0.6 ** np.arange(_CORES.size - 1, dtype=np.float64)
    low, high = 0.0, 1.0
    for _ in range(60):
        share = (low + high) / 2.0
        if share * _mean(rest) + 1.0 - share < MEAN_CORES:
            low = share
        else:
            high = share
    probabilities = np.concatenate(([1.0 - low], low * rest / rest.sum()))
    return random.choice(_CORES, size=number, p=probabilities)


def _mean(weights: NDArray[np.float64]) -> float:
    return float(weights @ _CORES[1:] / weights.sum())
