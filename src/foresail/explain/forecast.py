"""Forecasts: when jobs start and end, by carrying a run on in many drawn futures.

Every future draws the runtimes of all jobs from what is believed of them (of those that run, given
how long they have), and starts jobs in the order of the scheduler's queue, later ones ahead if they
delay the first that waits by no planned time (EASY). That is what queue schedulers do, but for
what changes their order later on: jobs whose turn comes by age, guards, probes. ``docs/concepts/
forecasts.md`` says how well it fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.explain.chances import still_running
from foresail.explain.futures import starts_in_futures
from foresail.explain.outlook import Outlook
from foresail.model.arrays import Floats
from foresail.model.view import PendingJob, RunningJob
from foresail.simulator.driver import draw_runtimes

SCENARIOS: Final = 300
"""Futures that are drawn unless more are asked for."""

LEVELS: Final = (0.1, 0.5, 0.9)
"""Of the stated quantiles."""

_COLUMNS_AT_ONCE: Final = 5_000


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
    start, end
        When it starts and ends.
    never
        Share of futures in which it does not start.
    misses
        Probability that it ends after its deadline; None without one.
    """

    start: Range
    end: Range
    never: float
    misses: float | None


class WaitingForecasts(Mapping[str, WaitingForecast]):
    """Forecasts of jobs by id, of which there may be many: each is made when it is asked for.

    To be read by others, a column for each job: ``starts`` and ``ends`` have the three quantiles
    of a ``Range``, ``never`` and ``misses`` a share, that of misses nan without a deadline.
    """

    def __init__(
        self, places: Mapping[str, int], starts: Floats, ends: Floats, never: Floats, misses: Floats
    ) -> None:
        self.places, self.starts, self.ends = places, starts, ends
        self.never, self.misses = never, misses

    def __getitem__(self, job_id: str) -> WaitingForecast:
        at = self.places[job_id]
        start, end = Range(*self.starts[:, at].tolist()), Range(*self.ends[:, at].tolist())
        misses = self.misses.item(at)
        return WaitingForecast(
            start, end, self.never.item(at), None if math.isnan(misses) else misses
        )

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


def forecast_waiting(
    outlook: Outlook, *, scenarios: int = SCENARIOS, seed: int = 0
) -> WaitingForecasts:
    """Forecast start and end of every waiting job, those that are held last: they never do.

    Jobs that run into the time they requested are ended there. Futures have arrivals if the
    outlook has jobs to draw them from: each hour to come is as the same hour of one of the last
    days was, or as any earlier one while the run is young.

    Parameters
    ----------
    outlook
        How things stand.
    scenarios
        Futures to draw.
    seed
        Equal seeds draw equal runtimes for equal jobs, so that outlooks can be compared.
    """
    waiting, held = outlook.waiting, len(outlook.held)
    job_ids = [*(each.pending.job.job_id for each in waiting), *outlook.held]
    columns = [np.full((len(LEVELS), held), math.inf)] * 2 + [
        np.ones(held),
        np.full(held, math.nan),
    ]
    if waiting:
        drawn = _Drawn(outlook, scenarios, seed).forecasts()
        columns = [np.concatenate(both, axis=-1) for both in zip(drawn, columns, strict=True)]
    return WaitingForecasts(dict(zip(job_ids, range(len(job_ids)), strict=True)), *columns)


def forecast_running(running: RunningJob, now: float) -> RunningForecast:
    """Forecast the end of a running job, and whether that is later than it should."""
    job, slowdown = running.job, running.slowdown
    elapsed = max(running.elapsed_seconds(now), 0.0) / slowdown
    begin, belief = running.start_seconds, running.prediction
    if float(belief.survival(elapsed)) > 0.0:
        left = belief.given(elapsed)
        ends = [max(now, begin + slowdown * left.quantile(level)) for level in LEVELS]
    else:
        ends = [max(now, running.expected_end_seconds)] * len(LEVELS)

    def later_than(time: float | None) -> float | None:
        return None if time is None else float(still_running(running, np.array([time]), now)[0])

    requested = job.requested_seconds
    if requested is not None:
        ends = [min(end, max(now, begin + requested)) for end in ends]
    return RunningForecast(
        Range(*ends),
        later_than(None if requested is None else begin + requested),
        later_than(job.deadline_seconds),
    )


def suggested_request(pending: PendingJob, risk: float) -> float:
    """Return the time to ask for (seconds) so that the job outlives it with this probability.

    Raises
    ------
    ValueError
        If the risk is not between 0 and 1.
    """
    if not 0.0 < risk < 1.0:
        raise ValueError(risk)
    return pending.prediction.quantile(1.0 - risk)


class _Drawn:
    """Futures of an outlook."""

    def __init__(self, outlook: Outlook, scenarios: int, seed: int) -> None:
        self._outlook = outlook
        self._waiting, self._running = outlook.waiting, outlook.running
        self._drawn = scenarios, seed
        runtimes = draw_runtimes((), self._running, outlook.now, *self._drawn)
        self._running_ends = np.zeros((scenarios, len(self._running)))
        for at, each in enumerate(self._running):
            lasting = each.slowdown * runtimes[each.job.job_id]
            requested = each.job.requested_seconds
            if requested is not None:
                lasting = np.minimum(lasting, requested)
            self._running_ends[:, at] = each.start_seconds + lasting
        self._lasting = np.empty((scenarios, len(self._waiting)))
        for at, queued in enumerate(self._waiting):  # of one after the other: there may be many
            self._lasting[:, at] = self._lasts(queued.pending)

    def _lasts(self, pending: PendingJob) -> Floats:
        runtimes = draw_runtimes((pending,), (), self._outlook.now, *self._drawn)
        requested = pending.job.requested_seconds
        lasting = runtimes[pending.job.job_id]
        return lasting if requested is None else np.minimum(lasting, requested)

    def forecasts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the futures of the waiting jobs, as ``WaitingForecasts`` has them."""
        random = np.random.default_rng([*self._drawn])
        starts = starts_in_futures(self._outlook, self._lasting, self._running_ends, random)
        ends = np.add(starts, self._lasting, out=self._lasting)
        jobs = [each.pending.job for each in self._waiting]
        due = np.array([each.deadline_seconds for each in jobs], dtype=np.float64)
        misses = np.where(np.isnan(due), math.nan, (ends > due).mean(axis=0))
        never = np.isinf(starts).mean(axis=0)
        return _quantiles(starts), _quantiles(ends), never, misses


def ranges_of(times: Floats) -> list[Range]:
    """Quantiles of each column, shape (futures, columns): each is a value that there is."""
    return [Range(*column) for column in _quantiles(times).T.tolist()]


def _quantiles(times: Floats) -> Floats:
    """The same as a table, some columns after the other: each lot of them is copied."""
    lots = np.array_split(times, range(_COLUMNS_AT_ONCE, times.shape[1], _COLUMNS_AT_ONCE), axis=1)
    of_lots = [np.quantile(lot, LEVELS, axis=0, method="inverted_cdf") for lot in lots]
    return np.concatenate(of_lots, axis=1)
