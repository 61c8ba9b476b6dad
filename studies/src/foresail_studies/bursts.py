"""Jobs that come in bursts of like jobs, more by day and on workdays, and in busy weeks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.model.arrays import Floats


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts of jobs, which are not published; chosen so that waits are near."""

    mean_jobs: float = 10.0
    """Per burst: 10 make 90 % of gaps short."""
    tail: float = 1.2
    """Pareto exponent of the number of jobs in a burst; smaller is burstier."""
    most_jobs: int = 20_000
    """In one burst."""
    likeness: float = 0.8
    """Share of jobs that run about as long as the burst's first job."""
    week_spread: float = 0.25
    """Standard deviation of the logarithm of a week's submissions."""


class Arrivals(NamedTuple):
    """Jobs by burst: when each is submitted (s), to which burst it belongs, how many there are."""

    submit: Floats
    burst: NDArray[np.int64]
    bursts: int


def arrivals(
    random: np.random.Generator, count: int, jobs_per_second: float, shape: Bursts
) -> Arrivals:
    """So many jobs at such a rate."""
    burst = _burst_of_jobs(random, count, shape)
    number = int(burst[-1]) + 1
    begins = _busy_times(random, number, count / jobs_per_second, shape.week_spread)
    within = random.exponential(0.1, count)
    first = np.flatnonzero(np.diff(burst, prepend=-1))
    offset = np.cumsum(within)
    return Arrivals(begins[burst] + offset - offset[first][burst], burst, number)


def levels(random: np.random.Generator, come: Arrivals, likeness: float) -> Floats:
    """By job, the share of all jobs that run for less: near the burst's, or one of its own."""
    own = random.random(come.burst.size) >= likeness
    level = np.where(own, random.random(come.burst.size), random.random(come.bursts)[come.burst])
    noisy = np.abs(level + random.normal(0.0, 0.01, level.size))
    reflected: Floats = 1.0 - np.abs(1.0 - noisy)  # at both ends, so that it stays uniform
    return reflected


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
