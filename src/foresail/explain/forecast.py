"""Forecasts: when jobs start and end, by carrying a run on in many drawn futures.

Every future draws the runtimes of all jobs from what is believed of them (of those that run, given
how long they have), and starts jobs in the order of the scheduler's queue, later ones ahead if they
delay the first that waits by no planned time (EASY). That is what queue schedulers do, but for
what changes their order later on: jobs whose turn comes by age, guards, probes. ``docs/concepts/
forecasts.md`` says how well it fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from foresail.explain.futures import starts_in_futures
from foresail.explain.job_columns import NO_JOBS, JobColumns, limit_of
from foresail.explain.outlook import Outlook
from foresail.model.distribution import Floats
from foresail.model.view import RunningJob

SCENARIOS: Final = 300
"""Futures that are drawn unless more are asked for."""

LEVELS: Final = (0.1, 0.5, 0.9)
"""Levels of the stated quantiles."""

_FEWEST_SCENARIOS: Final = 30
_MOST_DRAWN: Final = SCENARIOS * 1_000
"""Most ends drawn in all: of many running jobs there are fewer futures."""

_AT_LIMIT_SECONDS: Final = 1e-6

_COLUMNS_AT_ONCE: Final = 5_000

_NOBODY: Final = -1.0
_MOSTLY: Final = 0.5
_MOST_COMPARED: Final = 100_000_000
_FURTHEST_SECONDS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Range:
    """Quantiles at 10, 50 and 90 %; infinite where it is never in so many futures."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class WaitingForecast:
    """Forecast of a waiting job; times in seconds on the run's clock.

    Parameters
    ----------
    start, end, runtime
        When it starts and ends, and how long it runs (seconds).
    never
        Share of futures in which it does not start.
    misses
        Probability that it ends after its deadline; None without one.
    """

    start: Range
    end: Range
    runtime: Range
    never: float
    misses: float | None


@dataclass(frozen=True, eq=False)
class WaitingForecasts(Mapping[str, WaitingForecast]):
    """Forecasts of jobs by id, of which there may be many: each is made when it is asked for.

    To be read by others, a column for each job: ``starts``, ``ends`` and ``runtimes`` have the
    three quantiles of a ``Range``, ``never`` and ``misses`` a share, that of misses nan without a
    deadline; ``causes`` has the number of the running job on whose end most of what is open of the
    start depends, _NOBODY where there is none; ``submitted`` when the job came, ``earliest`` before
    when it cannot start.
    """

    places: Mapping[str, int]
    starts: Floats
    ends: Floats
    runtimes: Floats
    never: Floats
    misses: Floats
    causes: Floats
    submitted: Floats
    earliest: Floats

    def __getitem__(self, job_id: str) -> WaitingForecast:
        at = self.places[job_id]
        tables = self.starts, self.ends, self.runtimes
        start, end, runtime = (Range(*table[:, at].tolist()) for table in tables)
        never, misses = self.never.item(at), self.misses.item(at)
        return WaitingForecast(start, end, runtime, never, None if math.isnan(misses) else misses)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True)
class RunningForecast:
    """Forecast of a running job.

    Parameters
    ----------
    end
        When it ends (seconds on the run's clock).
    overruns
        Probability that it needs longer than was requested; None if nothing was.
    misses
        Probability that it ends after its deadline; None without one.
    """

    end: Range
    overruns: float | None
    misses: float | None


Draw: TypeAlias = Callable[
    [JobColumns, Sequence[RunningJob], float, int, int], tuple[Floats, Floats]
]
"""Draws runtimes of waiting and of running jobs now: how many of each, and by which seed; shapes
(futures, waiting) and (futures, running)."""


def forecast_waiting(
    outlook: Outlook, draw: Draw, *, scenarios: int = SCENARIOS, seed: int = 0
) -> WaitingForecasts:
    """Forecast start and end of every waiting job, those that are held last: they never do.

    Jobs that run into the time they requested are ended there. Futures have arrivals if the
    outlook has jobs to draw them from: each hour to come is as the same hour of one of the last
    days was, or as any earlier one while the run is young. Equal seeds draw equal runtimes for
    equal jobs, so that outlooks can be compared.
    """
    jobs, held = outlook.waiting.jobs, len(outlook.held)
    columns = [np.full((len(LEVELS), held), math.inf)] * 3 + [
        np.ones(held),
        np.full(held, math.nan),
        np.full(held, _NOBODY),
    ]
    if len(jobs):
        runtimes = draw(jobs, outlook.running, outlook.now, scenarios, seed)
        drawn = _forecast_columns(outlook, *runtimes, np.random.default_rng([scenarios, seed]))
        columns = [np.concatenate(both, axis=-1) for both in zip(drawn, columns, strict=True)]
    for of_jobs in (jobs.table["submitted"], outlook.earliest):
        columns.append(np.append(of_jobs, np.full(held, outlook.now)))
    places = jobs.places
    if held:
        places = {**places, **{each: at for at, each in enumerate(outlook.held, len(jobs))}}
    return WaitingForecasts(places, *columns)


def forecast_running(
    running: Sequence[RunningJob], now: float, draw: Draw
) -> dict[str, RunningForecast]:
    """Forecast by id when running jobs end, and if that is later than it should; in one draw."""
    if not running:
        return {}
    scenarios = max(_FEWEST_SCENARIOS, min(SCENARIOS, _MOST_DRAWN // len(running)))
    _, runtimes = draw(NO_JOBS, running, now, scenarios, 0)
    ends = np.maximum(_running_ends(running, runtimes), now)
    limits = np.array([limit_of(each.job) for each in running])
    last = np.array([each.start_seconds for each in running]) + limits
    overruns = (ends >= np.maximum(last, now) - _AT_LIMIT_SECONDS).mean(axis=0)
    due = np.array([each.job.deadline_seconds for each in running], dtype=np.float64)
    misses = np.where(np.isnan(due), math.nan, (ends > due).mean(axis=0))
    shares = [
        [None if math.isnan(share) else share for share in column.tolist()]
        for column in (np.where(np.isinf(limits), math.nan, overruns), misses)
    ]
    found = map(RunningForecast, ranges_of(ends), *shares)
    return dict(zip((each.job.job_id for each in running), found, strict=True))


def _forecast_columns(
    outlook: Outlook, lasting: Floats, running: Floats, random: np.random.Generator
) -> tuple[Floats, ...]:
    """Return the futures of the waiting jobs, as ``WaitingForecasts`` has them."""
    jobs = outlook.waiting.jobs
    lasting = np.minimum(lasting, jobs.limits)
    runtimes = _quantiles(lasting)
    running_ends = _running_ends(outlook.running, running)
    if outlook.losses:
        widths = jobs.cpus
        lasting = lasting + _lost_seconds(lasting, widths * outlook.losses, random)
        left = np.maximum(running_ends - outlook.now, 0.0)
        widths = np.array([each.held.cpus for each in outlook.running], dtype=np.float64)
        running_ends = running_ends + _lost_seconds(left, widths * outlook.losses, random)
    late = outlook.latency_seconds  # a place is taken from the instruction on
    starts = starts_in_futures(outlook, lasting + late, running_ends + late, random) + late
    lasting, running_ends = lasting[: len(starts)], running_ends[: len(starts)]
    ends = np.add(starts, lasting, out=lasting)
    due = jobs.table["deadline"]
    misses = np.where(np.isnan(due), math.nan, (ends > due).mean(axis=0))
    never = np.isinf(starts).mean(axis=0)
    causes = width_causes(starts - outlook.now, running_ends - outlook.now)
    return _quantiles(starts), _quantiles(ends), runtimes, never, misses, causes


def _lost_seconds(lasting: Floats, rates: Floats, random: np.random.Generator) -> Floats:
    """Draw how long failed attempts of jobs run that fail at such rates (per second)."""
    fails = random.poisson(lasting * rates)
    lost: Floats = fails * random.random(lasting.shape) * lasting
    return lost


def width_causes(waits: Floats, lefts: Floats) -> Floats:
    """Return by column of waits the column of what is left with which it varies most.

    It is one with which more than half of the variance (of logarithms) goes; else _NOBODY.
    """
    if not lefts.shape[1] or waits.size * lefts.shape[1] > _MOST_COMPARED:
        return np.full(waits.shape[1], _NOBODY)
    values = [np.log1p(np.clip(each, 0.0, _FURTHEST_SECONDS)) for each in (waits, lefts)]
    centred = [each - each.mean(axis=0) for each in values]
    lengths = [np.maximum(np.sqrt((each**2).sum(axis=0)), 1e-9) for each in centred]
    of_waits, of_lefts = (each / length for each, length in zip(centred, lengths, strict=True))
    shared = (of_waits.T @ of_lefts) ** 2
    found: Floats = np.where(shared.max(axis=1) > _MOSTLY, shared.argmax(axis=1), _NOBODY)
    return found


def _running_ends(running: Sequence[RunningJob], runtimes: Floats) -> Floats:
    """Return when running jobs end, those that reach their limit there."""
    slowdowns = np.array([each.slowdown for each in running], dtype=np.float64)
    begun = np.array([each.start_seconds for each in running], dtype=np.float64)
    limits = np.array([limit_of(each.job) for each in running], dtype=np.float64)
    ends: Floats = begun + np.minimum(slowdowns * runtimes, limits)
    return ends


def ranges_of(times: Floats) -> list[Range]:
    """Quantiles of each column, shape (futures, columns): each is a value that there is."""
    return [Range(*column) for column in _quantiles(times).T.tolist()]


def _quantiles(times: Floats) -> Floats:
    """The same as a table, some columns after the other: each lot of them is copied."""
    lots = np.array_split(times, range(_COLUMNS_AT_ONCE, times.shape[1], _COLUMNS_AT_ONCE), axis=1)
    of_lots = [np.quantile(lot, LEVELS, axis=0, method="inverted_cdf") for lot in lots]
    return np.concatenate(of_lots, axis=1)
