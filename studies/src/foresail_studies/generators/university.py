"""A year of jobs with the published figures of a university's shared cluster (section 6.7).

Fourteen million jobs: 0.4527 a second, 90 % of gaps below a second, a mean runtime of 6,225 s, 60 %
below three minutes, 4 % above six hours, 0.11 % above 96 hours, and as much work as makes 225
machines of 64 cores cost 0.60 of renting at a fixed price of 0.4. They come in bursts of like jobs,
more by day and on workdays, and in busy weeks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.waiting.jobs import TraceJobs
from foresail.model.distribution import Floats
from foresail.model.errors import InputError, require_at_least
from foresail.model.registry import register
from foresail.traces.facts import offered_load
from foresail.traces.generating import generator
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators._demands import achieved

_BURST_JOBS: Final = 10.0
"""Per burst, on average: 10 make 90 % of gaps short. Bursts are not published; chosen so that waits
are near."""
_BURST_TAIL: Final = 1.2
"""Pareto exponent of the number of jobs in a burst; smaller is burstier."""
_MOST_BURST_JOBS: Final = 20_000
_LIKENESS: Final = 0.8
"""Share of jobs that run about as long as the burst's first job."""
_WEEK_SPREAD: Final = 0.25
"""Standard deviation of the logarithm of a week's submissions."""


def _levels(random: np.random.Generator, burst: NDArray[np.int64], bursts: int) -> Floats:
    """By job, the share of all jobs that run for less: near the burst's, or one of its own."""
    own = random.random(burst.size) >= _LIKENESS
    level = np.where(own, random.random(burst.size), random.random(bursts)[burst])
    noisy = np.abs(level + random.normal(0.0, 0.01, level.size))
    reflected: Floats = 1.0 - np.abs(1.0 - noisy)  # at both ends, so that it stays uniform
    return reflected


def _burst_of_jobs(random: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Number of the burst that each job belongs to."""
    draws = int(2.0 * count / _BURST_JOBS) + 10
    raw = np.minimum((1.0 - random.random(draws)) ** (-1.0 / _BURST_TAIL), _MOST_BURST_JOBS)
    # Stretching the sizes moves their mean to where it is wanted; most are a few jobs.
    sizes = np.maximum(np.rint(raw * _BURST_JOBS / raw.mean()), 1).astype(np.int64)
    while sizes.sum() < count:
        sizes = np.concatenate((sizes, sizes))
    return np.repeat(np.arange(sizes.size), sizes)[:count]


def _busy_times(random: np.random.Generator, number: int, period_seconds: float) -> Floats:
    """Ascending times of bursts: more by day and on workdays, and in busy weeks."""
    hours = np.arange(int(np.ceil(period_seconds / 3600.0)))
    by_day = 1.0 + 0.5 * np.sin(2.0 * np.pi * (hours % 24 - 9.0) / 24.0)
    by_week = np.where(hours // 24 % 7 < 5, 1.15, 0.625)
    weeks = random.lognormal(0.0, _WEEK_SPREAD, hours.size // 168 + 1)
    weight = by_day * by_week * weeks[hours // 168]
    edges = np.concatenate(([0.0], np.cumsum(weight)))
    at = np.sort(random.random(number)) * edges[-1]
    times: Floats = np.interp(at, edges, np.arange(edges.size) * 3600.0)
    return np.minimum(times, period_seconds)


YEAR_SECONDS: Final = 365.0 * 86400.0
ARRIVALS_PER_SECOND: Final = 0.4527
MEAN_RUNTIME_SECONDS: Final = 6225.0
MEAN_CORES: Final = 0.4 / 0.6 * 225 * 64 / (ARRIVALS_PER_SECOND * MEAN_RUNTIME_SECONDS)
"""Per job, weighted by runtime: what the published price at 225 machines implies."""

_SHORT_SHARE: Final = 0.60
_LONG_SHARE: Final = 0.04
_MIDDLE_SHARE: Final = 1.0 - _SHORT_SHARE - _LONG_SHARE
_SHORT_LIMIT: Final = 180.0
_LONG_LIMIT: Final = 6.0 * 3600.0
_SHORT_MEAN: Final = 60.0
_DAYS_LONG: Final = 96.0 * 3600.0 - _LONG_LIMIT
_DAYS_LONG_SHARE: Final = _LONG_SHARE * math.exp(-3.6)
"""Of all jobs, those beyond 96 hours: 0.11 %."""
_CORES: Final = np.array([1, 2, 4, 8, 16, 32], dtype=np.int64)


@dataclass(frozen=True)
class Runtimes:
    """Runtimes of jobs: the published shares and the published mean, whatever is set here.

    Raises ``InputError`` if it is not between three minutes and what makes the longest jobs no
    longer than six hours.
    """

    middle_mean_seconds: float = 4791.666666666666
    """Mean of the 36 % between three minutes and six hours, which is not published. The less it is,
    the fewer jobs do most of the work: those beyond six hours then run for longer. By default what
    leaves those a mean of 25 hours beyond the six, so that they are exponential."""

    def __post_init__(self) -> None:
        if not (self.middle_mean_seconds > _SHORT_LIMIT and self.beyond_mean_seconds > 0.0):
            raise InputError(
                "out of range",
                field="middle_mean_seconds",
                value=self.middle_mean_seconds,
                expected="above 180 s, and work that is left for longer jobs",
            )

    @property
    def beyond_mean_seconds(self) -> float:
        """Mean of what the longest 4 % run beyond six hours."""
        short = _SHORT_SHARE * _SHORT_MEAN + _MIDDLE_SHARE * self.middle_mean_seconds
        return (MEAN_RUNTIME_SECONDS - short) / _LONG_SHARE - _LONG_LIMIT

    @cached_property
    def beyond_exponent(self) -> float:
        """Weibull exponent of that, with which 0.11 % of all run for longer than 96 hours."""
        wanted = -math.log(_DAYS_LONG_SHARE / _LONG_SHARE)
        low, high = 0.5, 10.0
        for _ in range(60):
            exponent = (low + high) / 2.0
            scale = self.beyond_mean_seconds / math.gamma(1.0 + 1.0 / exponent)
            if (_DAYS_LONG / scale) ** exponent < wanted:
                low = exponent
            else:
                high = exponent
        return high

    def at(self, level: Floats) -> Floats:
        """Seconds by the share of jobs that run for less."""
        short = _SHORT_LIMIT * (level / _SHORT_SHARE) ** (_SHORT_LIMIT / _SHORT_MEAN - 1.0)
        place = np.clip((level - _SHORT_SHARE) / _MIDDLE_SHARE, 0.0, 1.0)
        exponent = (_LONG_LIMIT - _SHORT_LIMIT) / (self.middle_mean_seconds - _SHORT_LIMIT) - 1.0
        middle = _SHORT_LIMIT + (_LONG_LIMIT - _SHORT_LIMIT) * place**exponent
        beyond = np.clip((1.0 - level) / _LONG_SHARE, 1e-9, 1.0)
        shape = 1.0 / self.beyond_exponent
        scale = self.beyond_mean_seconds / math.gamma(1.0 + shape)
        long = _LONG_LIMIT + scale * (-np.log(beyond)) ** shape
        runtime = np.where(level < _SHORT_SHARE, short, middle)
        return np.where(level >= 1.0 - _LONG_SHARE, long, runtime)


def university_year(
    jobs: int | None = None, seed: int = 0, runtimes: Runtimes | None = None
) -> TraceJobs:
    """Jobs of a year (section 6.7), or so many of its first ones.

    Arrivals follow days and weeks; bursts are arrays of like jobs.
    """
    return _year(np.random.default_rng(seed), jobs, runtimes or Runtimes())


def _year(random: np.random.Generator, jobs: int | None, runtimes: Runtimes) -> TraceJobs:
    count = round(YEAR_SECONDS * ARRIVALS_PER_SECOND) if jobs is None else jobs
    burst = _burst_of_jobs(random, count)
    bursts = int(burst[-1]) + 1
    begins = _busy_times(random, bursts, count / ARRIVALS_PER_SECOND)
    offset = np.cumsum(random.exponential(0.1, count))
    first = np.flatnonzero(np.diff(burst, prepend=-1))
    submit = begins[burst] + offset - offset[first][burst]
    runtime = runtimes.at(_levels(random, burst, bursts))
    cores = _cores(random, bursts)[burst]
    order = np.argsort(submit, kind="stable")
    return TraceJobs(submit[order], runtime[order], cores[order])


def _cores(random: np.random.Generator, bursts: int) -> NDArray[np.int64]:
    """Cores of so many bursts with the published mean: many ask for one, few for the most."""
    rest = 0.6 ** np.arange(_CORES.size - 1, dtype=np.float64)
    mean_of_rest = float(rest @ _CORES[1:] / rest.sum())
    share = (MEAN_CORES - _CORES[0]) / (mean_of_rest - _CORES[0])
    probabilities = np.concatenate(([1.0 - share], share * rest / rest.sum()))
    return random.choice(_CORES, size=bursts, p=probabilities)


@dataclass(frozen=True, slots=True)
class UniversityParameters:
    """Parameters of the generator ``university``."""

    jobs: int | None = None
    """The first so many; by default the year's 14.3 million."""
    processors: int = 14_376
    """Of the cluster."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "jobs", "processors")


@register("generator", "university", parameters=UniversityParameters)
@generator
def university(parameters: UniversityParameters, random: np.random.Generator) -> Workload:
    """A year of 14.3 million jobs with the published figures of a university's cluster.

    0.4527 jobs a second in bursts, 90 % of gaps below a second, more by day and on workdays; a mean
    runtime of 6,225 s, 60 % below three minutes and 4 % above six hours; half of the bursts ask for
    one core. How bursts come about was not published. There are no users and no requested times.
    """
    drawn = _year(random, parameters.jobs, Runtimes())
    count = len(drawn)
    jobs = jobs_table(
        {
            "job_id": pl.int_range(1, count + 1, eager=True).cast(pl.String),
            "submit_seconds": drawn.submit_seconds,
            "runtime_seconds": drawn.runtime_seconds,
            "tasks": np.ones(count, np.int64),
            "cpus_per_task": drawn.cores.astype(np.float64),
        }
    )
    seconds = max(float(np.ptp(drawn.submit_seconds)), 1.0)
    load = offered_load(drawn.cores, drawn.runtime_seconds, parameters.processors, seconds)
    header = achieved(load=load, mean_runtime_seconds=float(drawn.runtime_seconds.mean()))
    return Workload(jobs, WorkloadMeta("", "", processors=parameters.processors, header=header))
