"""Answers about all jobs, shared while fresh: counts, use over time, forecasts of the queue."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Final, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from foresail.control.loop import Controller
from foresail.explain.forecast import SCENARIOS, Range, WaitingForecast, forecast_waiting
from foresail.explain.outlook import Outlook, outlook_of, with_arrivals
from foresail.explain.start_calibration import MOST, AskedStart, StartCalibration
from foresail.model.job import Job
from foresail.model.reason import Reason
from foresail.record.job_life import JobHistory
from foresail.service.snapshots import DaemonBusy, SnapshotCache
from foresail.service.store.protocol import ForecastRow, JobSpan
from foresail.service.store.sql_store import SqlStore

FRESH_SECONDS: Final = 2.0


class JobCounts:
    """Counts that are asked for at every call, and would cost the store a look at all jobs each."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[float, int]] = {}

    def reserve(self, user: str, jobs: int, most: int) -> int | None:
        """Let so many more jobs of a user wait; how many do, if that would be too many.

        Calls at the same time cannot all have the last places. They are counted when a user first
        submits; that some wait no more is looked for only when there would be too many.
        """
        with self._lock:
            now = time.monotonic()
            counted, waiting = self._waiting.get(user, (-float("inf"), most))
            if waiting + jobs > most and now - counted > FRESH_SECONDS:
                counts = self._store.counts(user)
                counted, waiting = now, counts.get("pending", 0) + counts.get("held", 0)
            if waiting + jobs > most:
                self._waiting[user] = counted, waiting
                return waiting
            self._waiting[user] = counted, waiting + jobs
            return None


Value = TypeVar("Value")
Given = ParamSpec("Given")

_SHARE: Final = 20.0
"""A value is made anew no sooner than so many times as long after it was as making it took."""

_SOON_SECONDS: Final = 0.02
_OLDEST_SECONDS: Final = 600.0
"""One that is made so soon is always waited for, and so is one of which the last is so old."""

_SLOW: Final = ThreadPoolExecutor(2, thread_name_prefix="slow")
"""What looks at all jobs works here, so that no short question waits behind it for a thread."""


async def slowly(
    function: Callable[Given, Value], *args: Given.args, **kwargs: Given.kwargs
) -> Value:
    """Have something done that takes long, beside everything else."""
    return await asyncio.wrap_future(_SLOW.submit(function, *args, **kwargs))


class Lately(Generic[Value]):
    """A value as it was not long ago."""

    def __init__(self, make: Callable[[], Awaitable[Value]]) -> None:
        self._make = make
        self._latest: asyncio.Task[Value] | None = None
        self._making: asyncio.Task[Value] | None = None
        self._made_monotonic = -float("inf")
        self._cost_seconds = 0.0

    async def get(self) -> Value:
        """The value made last, if it takes long to make and is not old; else one made now."""
        age = time.monotonic() - self._made_monotonic
        if self._making is None and age > _SHARE * self._cost_seconds:
            self._making = asyncio.create_task(self._remake())
        is_old = self._cost_seconds < _SOON_SECONDS or age > _OLDEST_SECONDS
        task = self._making if is_old and self._making is not None else self._latest
        assert task is not None
        return await asyncio.shield(task)

    async def _remake(self) -> Value:
        begin, task = time.monotonic(), self._making
        try:
            value = await self._make()
            self._latest, self._made_monotonic = task, time.monotonic()
            self._cost_seconds = self._made_monotonic - begin
            return value
        finally:
            self._making = None


@dataclass(frozen=True, slots=True)
class UseOverTime:
    """Bins of equal length; arrays of shape (bins,)."""

    begin_seconds: float
    bin_seconds: float
    """Where the first one begins (Unix seconds), and how long each is."""
    used_cpus: NDArray[np.float64]
    """Held by jobs that ran, in the mean."""
    started: NDArray[np.int64]
    """How many jobs started."""
    wait_seconds: NDArray[np.float64]
    """How long these had waited, in the mean; NaN where none started."""


def use_over_time(
    spans: Sequence[JobSpan], begin_seconds: float, end_seconds: float, bins: int
) -> UseOverTime:
    """The use between two times by the jobs of these spans; of attempts, the last of each job."""
    length = (end_seconds - begin_seconds) / bins
    ran = [each for each in spans if each.start_seconds is not None]
    cpus = np.array([each.cpus for each in ran], dtype=np.float64)
    start = np.array([each.start_seconds for each in ran], dtype=np.float64)
    end = np.array(
        [end_seconds if each.end_seconds is None else each.end_seconds for each in ran],
        dtype=np.float64,
    )
    edges = begin_seconds + length * np.arange(bins + 1, dtype=np.float64)
    held = _held_before(edges, start, cpus) - _held_before(edges, end, cpus)
    waits = start - np.array([each.submit_seconds for each in ran], dtype=np.float64)
    started, _ = np.histogram(start, edges)
    waited, _ = np.histogram(start, edges, weights=waits)
    with np.errstate(invalid="ignore"):
        means = waited / started
    return UseOverTime(begin_seconds, length, np.diff(held) / length, started, means)


def _held_before(
    edges: NDArray[np.float64], since: NDArray[np.float64], cpus: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Cpu seconds up to each edge, were nothing given back; shape of the edges."""
    order = np.argsort(since)
    since, cpus = since[order], cpus[order]
    count = np.searchsorted(since, edges)
    total = np.concatenate(([0.0], np.cumsum(cpus)))[count]
    moment = np.concatenate(([0.0], np.cumsum(cpus * since)))[count]
    result: NDArray[np.float64] = total * edges - moment
    return result


def _reasons_of(
    job_ids: Sequence[str], controller: Controller, _: JobHistory
) -> Mapping[str, Reason]:
    return controller.reasons_of(job_ids)


async def _count_reasons(snapshots: SnapshotCache) -> Mapping[str, int]:
    """Count pending jobs by why they wait: some at a time, so that the daemon is never away long.

    Raises ``DaemonBusy`` if it does not come by for some seconds.
    """
    pending = await snapshots.ask(
        lambda controller, _: [each.job.job_id for each in controller.state.pending()]
    )
    counts: Counter[str] = Counter()
    for begin in range(0, len(pending), _REASONS_AT_ONCE):
        some = pending[begin : begin + _REASONS_AT_ONCE]
        reasons = await snapshots.ask(partial(_reasons_of, some))
        counts.update(str(each.code) for each in reasons.values())
    return counts


_REASONS_AT_ONCE: Final = 1_000
_MOST_SPANS: Final = 200_000
_LEAST_SECONDS: Final = 600.0
_MOST_USES: Final = 50


class Overview:
    """Answers that take a look at all jobs; none waits for one that others have asked for."""

    def __init__(self, store: SqlStore, snapshots: SnapshotCache, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self.by_state = Lately(lambda: slowly(store.counts))
        self.by_reason = Lately(lambda: _count_reasons(snapshots))
        """How many jobs are in each state, and wait for which reason."""
        self.judged_runtimes = Lately(lambda: slowly(store.judged_runtimes))
        self.judged_starts = Lately(lambda: slowly(store.judged_forecasts))
        """How well past ranges have held."""
        self._uses: dict[tuple[float, int], Lately[UseOverTime]] = {}

    async def use(self, hours: float, bins: int) -> UseOverTime:
        """Return the use of the cluster over the last hours; of a young service, its whole life."""
        use = self._uses.get((hours, bins))
        if use is None:
            if len(self._uses) >= _MOST_USES:
                self._uses.clear()
            use = self._uses[hours, bins] = Lately(lambda: slowly(self._use, hours, bins))
        return await use.get()

    def _use(self, hours: float, bins: int) -> UseOverTime:
        now = self._now()
        begin = now - 3600.0 * hours
        spans = self._store.spans(begin, _MOST_SPANS)
        if len(spans) < _MOST_SPANS:  # of a young service, no more than there has been
            first = min((each.submit_seconds for each in spans), default=now)
            begin = max(begin, min(first, now - _LEAST_SECONDS))
        return use_over_time(spans, begin, now, bins)


_LOG: Final = logging.getLogger("foresail.service")

_FORECAST_SECONDS: Final = 2.0
_FEWEST_SCENARIOS: Final = 30
_MOST_WORK: Final = SCENARIOS * 2_000
"""Jobs times futures at most, unless there are fewer futures than the fewest."""

_MANY: Final = 2_000
"""Of fewer jobs forecasts take no time that counts: what took long has loaded kernels."""

_QUICK_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 1.5
"""Forecasts that take longer than the former are made beside the question, which is answered by
those of before, or waits for the first ones for so long."""

_ROWS_AT_ONCE: Final = 1_000
_CALIBRATION_SECONDS: Final = 10.0

_DRAWING: Final = ThreadPoolExecutor(2, thread_name_prefix="forecasts")
"""Kernels may be compiled here first, for minutes: nothing else waits for these threads."""


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts made at a moment."""

    outlook: Outlook
    """How things stood."""
    drawn: Mapping[str, WaitingForecast]
    """What was expected of jobs that waited, by id, as it came out."""
    waiting: Mapping[str, WaitingForecast]
    """The same, corrected by how earlier forecasts have held."""
    soonest: Mapping[str, Job]
    """Those that should start at some time by id, in order of expected start."""


class QueueForecaster:
    """Makes forecasts in threads of their own, one of the whole queue at a time.

    The store keeps the first forecast of each job, so that it can be judged.
    """

    def __init__(self, snapshots: SnapshotCache, store: SqlStore) -> None:
        self._snapshots = snapshots
        self._store = store
        self._latest: Forecasts | None = None
        self._made_monotonic = -float("inf")
        self._begun_monotonic = 0.0
        self._cost_seconds = 0.0
        self._making: asyncio.Task[Forecasts] | None = None
        self._kept: Collection[str] = ()
        self._calibration = StartCalibration()
        self._calibrated_monotonic = -float("inf")

    async def latest(
        self, waiting: Collection[str], patience_seconds: float = 1.0
    ) -> Forecasts | None:
        """The forecasts of all jobs that wait, if there are fresh ones, or can be soon.

        Under a long queue they are made less often than every ``_FORECAST_SECONDS``; then the ones
        of before are given. They are waited for a while if some of these jobs are not among them,
        and the last ones were made, or these are being made, in so short a time. None: there are
        none in time.
        """
        age = time.monotonic() - self._made_monotonic
        latest = self._latest
        lacks = latest is None or any(job_id not in latest.waiting for job_id in waiting)
        least = 0.0 if lacks else _FORECAST_SECONDS
        if self._making is None and age > max(least, 5.0 * self._cost_seconds):
            self._begun_monotonic = time.monotonic()
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        hopeless = self._cost_seconds > patience_seconds
        if self._making is not None:
            patience_seconds -= time.monotonic() - self._begun_monotonic
            hopeless = hopeless or patience_seconds <= 0.0
        if self._making is not None and (lacks or age > 10.0 * _FORECAST_SECONDS) and not hopeless:
            await asyncio.wait({self._making}, timeout=patience_seconds)
        return self._latest

    async def of_job(self, job_id: str) -> Forecasts | None:
        """The forecasts of all jobs that wait, made now where that takes little.

        Else those made last, which say when that was; None if the job is in none of them
        in time.
        """
        if self._latest is not None and self._cost_seconds < _QUICK_SECONDS:
            return await self.ahead(arrivals=False)
        latest = await self.latest([job_id], _PATIENCE_SECONDS)
        return latest if latest is not None and job_id in latest.waiting else None

    async def ahead(self, *, arrivals: bool) -> Forecasts:
        """The forecasts of all jobs that wait, made now; with jobs to come, if that is asked."""
        return await self._of(await self._outlook((), arrivals=arrivals))

    async def with_others(self, jobs: Sequence[Job], *, arrivals: bool) -> Forecasts:
        """Forecast if there were other jobs, or some were others."""
        return await self._of(await self._outlook(jobs, arrivals=arrivals))

    async def _outlook(self, jobs: Sequence[Job], *, arrivals: bool) -> Outlook:
        def stands(controller: Controller, fold: JobHistory) -> Outlook:
            outlook = outlook_of(controller, jobs)
            return with_arrivals(outlook, controller, fold) if arrivals else outlook

        return await self._snapshots.ask(stands)

    async def _of(self, outlook: Outlook) -> Forecasts:
        calibration = await self._up_to_date()
        return await asyncio.wrap_future(_DRAWING.submit(_drawn, outlook, calibration))

    async def _up_to_date(self) -> StartCalibration:
        """Return the calibration by earlier forecasts, as of not long ago."""
        now = time.monotonic()
        if now - self._calibrated_monotonic > _CALIBRATION_SECONDS:
            self._calibrated_monotonic = now
            rows = await slowly(self._store.started_forecasts, MOST)
            asked = []
            for row, start_seconds in rows:
                low, high = row.drawn_low_seconds, row.drawn_high_seconds
                drawn = Range(low, row.median_seconds, high)
                asked.append(AskedStart(row.made_seconds, drawn, 0, start_seconds))
            asked.sort(key=attrgetter("made_seconds"))
            self._calibration = StartCalibration(asked)
        return self._calibration

    async def _make(self) -> Forecasts:
        begin = time.monotonic()
        made = await self.ahead(arrivals=False)
        is_long = len(made.waiting) > _MANY
        self._cost_seconds = time.monotonic() - begin if is_long else 0.0
        first = (
            ForecastRow(
                job_id,
                made.outlook.now,
                each.start.low,
                each.start.median,
                each.start.high,
                made.drawn[job_id].start.low,
                made.drawn[job_id].start.high,
            )
            for job_id, each in made.waiting.items()
            if job_id not in self._kept and each.never == 0.0
        )
        while some := list(islice(first, _ROWS_AT_ONCE)):  # others write in between
            await slowly(self._store.keep_forecasts, some)
        self._kept = made.waiting.keys()
        return made

    def _made(self, task: asyncio.Task[Forecasts]) -> None:
        self._making = None
        self._made_monotonic = time.monotonic()
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._latest = replace(task.result(), drawn={})
        elif isinstance(error, DaemonBusy):
            _LOG.info("no forecast is made now: %s", error)
        else:
            _LOG.error("no forecast could be made", exc_info=error)


def _drawn(outlook: Outlook, calibration: StartCalibration) -> Forecasts:
    """The forecasts of an outlook, of fewer futures the more jobs wait."""
    scenarios = max(_FEWEST_SCENARIOS, min(SCENARIOS, _MOST_WORK // (1 + len(outlook.waiting))))
    drawn = forecast_waiting(outlook, scenarios=scenarios)
    waiting = calibration.corrected(outlook.now, drawn)
    medians = waiting.starts[1]
    expected = np.argsort(medians, kind="stable")[: np.count_nonzero(np.isfinite(medians))]
    jobs = [outlook.waiting[at].pending.job for at in expected.tolist()]
    return Forecasts(outlook, drawn, waiting, {job.job_id: job for job in jobs})
