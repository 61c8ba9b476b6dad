"""Answers that look at all jobs, made beside the daemon: counts, use, forecasts of the queue."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from foresail.control.loop import Controller
from foresail.explain.compiling import CompilerApart
from foresail.explain.forecast import LEVELS, Range, RunningForecast, forecast_running
from foresail.explain.job_columns import NO_JOBS, limit_of
from foresail.explain.outlook import Outlook, front_of, outlook_maker
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.distribution import Floats
from foresail.model.errors import ForesailError, InputError
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.record.job_life import JobHistory
from foresail.service.metrics import give_back_free_memory
from foresail.service.queue_forecasts import (
    MOST_OUTCOMES,
    Forecasts,
    PastForecasts,
    drawn_forecasts,
    due_times,
)
from foresail.service.snapshots import DaemonBusy, SnapshotCache
from foresail.service.store.sql_store import SqlStore

FRESH_SECONDS: Final = 2.0


class JobCounts:
    """Counts that are asked for at every call, and would cost the store a look at all jobs each."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[float, int]] = {}

    def knows(self, user: str) -> bool:
        """Return whether a user's jobs have been counted."""
        return user in self._waiting

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

_SHARE: Final = 50.0
"""A value is made anew no sooner than so many times as long after it was as making it took."""

_SOON_SECONDS: Final = 0.02
_OLDEST_SECONDS: Final = 600.0
"""One that takes longer to make is waited for only if the last is so old."""

_READER_SECONDS: Final = 0.25
"""Time that a reader waits for something new where there is an older one."""

_SLOW: Final = ThreadPoolExecutor(2, thread_name_prefix="slow")
"""Threads for questions that look at all jobs, so that no short question waits behind them."""


async def slowly(
    function: Callable[Given, Value], *args: Given.args, **kwargs: Given.kwargs
) -> Value:
    """Have something done that takes long, beside everything else."""
    return await asyncio.wrap_future(_SLOW.submit(function, *args, **kwargs))


class Lately(Generic[Value]):
    """A value as it was not long ago.

    One that is made soon is waited for if the last is older than ``fresh_seconds``, though not long
    where it takes longer than it did.
    """

    def __init__(self, make: Callable[[], Awaitable[Value]], fresh_seconds: float = 0.0) -> None:
        self._make = make
        self._fresh_seconds = fresh_seconds
        self._latest: asyncio.Task[Value] | None = None
        self._making: asyncio.Task[Value] | None = None
        self._made_monotonic = -float("inf")
        self._cost_seconds = 0.0

    async def get(self) -> Value:
        """The last value, if it is fresh, or takes long to make and is not old; or a new one."""
        age = time.monotonic() - self._made_monotonic
        least = max(0.5 * self._fresh_seconds, _SHARE * self._cost_seconds)
        if self._making is None and age > least:
            self._making = asyncio.create_task(self._remake())
        takes_long = self._cost_seconds >= _SOON_SECONDS
        is_old = age > (_OLDEST_SECONDS if takes_long else self._fresh_seconds)
        task = self._making if is_old and self._making is not None else self._latest
        assert task is not None
        if self._latest is not None and not task.done() and age <= _OLDEST_SECONDS:
            done, _ = await asyncio.wait({task}, timeout=_READER_SECONDS)
            task = task if done else self._latest
        return task.result() if task.done() else await asyncio.shield(task)

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
    """Begin of the first one (Unix seconds), and length of each."""
    used_cpus: NDArray[np.float64]
    """Held by jobs that ran, in the mean."""
    started: NDArray[np.int64]
    """Number of jobs that started."""
    wait_seconds: NDArray[np.float64]
    """Mean wait of these; NaN where none started."""


def use_over_time(
    store: SqlStore, begin_seconds: float, end_seconds: float, bins: int
) -> UseOverTime:
    """Return the use between two times, by the last attempt of each job."""
    length = (end_seconds - begin_seconds) / bins
    edges = length * np.arange(bins + 1, dtype=np.float64)
    held = np.zeros(bins + 1)
    started, ended = store.use(begin_seconds, length, bins)
    for sign, some in ((1.0, started), (-1.0, ended)):  # were nothing given back, but what was
        for each in (each for each in some if each.number <= bins):
            since = edges[each.number :]
            held[each.number :] += sign * (each.cpus * since - each.cpus_times_seconds)
    count, waited = np.zeros(bins, np.int64), np.zeros(bins)
    for each in started:
        if 1 <= each.number <= bins:
            count[each.number - 1], waited[each.number - 1] = each.jobs, each.waited_seconds
    with np.errstate(invalid="ignore"):
        means = waited / count
    return UseOverTime(begin_seconds, length, np.diff(held) / length, count, means)


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
        reasons = await snapshots.ask(lambda controller, _: controller.reasons_of(some))  # noqa: B023
        counts.update(str(each.code) for each in reasons.values())
    return counts


_REASONS_AT_ONCE: Final = 1_000
_LEAST_SECONDS: Final = 600.0
_MOST_USES: Final = 50


class Overview:
    """Answers that take a look at all jobs; none waits for one that others have asked for."""

    def __init__(self, store: SqlStore, snapshots: SnapshotCache, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self.by_state = Lately(lambda: asyncio.to_thread(store.counts))
        self.by_reason = Lately(lambda: _count_reasons(snapshots), FRESH_SECONDS)
        """Counts of jobs in each state, and of those that wait for each reason."""
        self.judged_runtimes = Lately(lambda: slowly(store.judged_runtimes), FRESH_SECONDS)
        self.judged_ends = Lately(lambda: slowly(store.judged_ends, now()), FRESH_SECONDS)
        self.judged_starts = Lately(lambda: slowly(store.judged_forecasts, now()), FRESH_SECONDS)
        """Accuracy of past ranges."""
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
        first = self._store.first_submission(begin)
        begin = max(begin, min(now if first is None else first, now - _LEAST_SECONDS))
        return use_over_time(self._store, begin, now, bins)


_LOG: Final = logging.getLogger("foresail.service")

_FORECAST_SECONDS: Final = 2.0
_REST: Final = 10.0
"""Forecasts that nobody asked for are made no sooner than this, and than so many times as long
after the last ones as these took."""

_PAUSE_SECONDS: Final = 10.0
"""Pause after forecasts that failed."""

_MANY: Final = 2_000
"""Number of jobs below which forecasts take no time that counts, but to load kernels."""

_REST_ASKED: Final = 5.0
_FEW_SECONDS: Final = 0.1
"""Forecasts that are asked for are made no sooner than so many times as long after the last ones as
these took; of few jobs, as these take at most."""

_IN_FRONT: Final = 1_000
"""Number of jobs in front that are forecast first, by themselves: those of all follow."""

_LONGEST_SECONDS: Final = 8.0
"""Nobody waits for longer."""

_QUICK_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 1.5
"""Forecasts that take longer than the former are made beside the question, which is answered by
those of before, or waits for the first ones for so long."""

_CALIBRATION_SECONDS: Final = 10.0

_DRAWING: Final = ThreadPoolExecutor(2, thread_name_prefix="forecasts")
"""Kernels may be compiled here first, for minutes: nothing else waits for these threads."""


class QueueForecaster:
    """Makes forecasts in threads of their own, one of the whole queue at a time.

    The store keeps each job's forecast at its submission and at each doubling of its wait, asked
    for or not, so that they can be judged.
    """

    def __init__(self, snapshots: SnapshotCache, store: SqlStore, compiler: CompilerApart) -> None:
        self._snapshots = snapshots
        self._store = store
        self._compiler = compiler
        self._starts = StartForecaster()
        self._latest: Forecasts | None = None
        self._made_monotonic = -float("inf")
        self._begun_monotonic = 0.0
        self._seconds = self._cost_seconds = self._rest_seconds = 0.0
        self._making: asyncio.Task[Forecasts] | None = None
        self._problem: InputError | None = None
        self._kept: Mapping[str, float] | None = None
        self._columns = NO_JOBS
        self._ends: tuple[Sequence[RunningJob], float, Mapping[str, RunningForecast]] = (), 0.0, {}
        self._ending: asyncio.Task[None] | None = None
        self._past = PastForecasts.from_outcomes(())
        self._past_monotonic = -float("inf")

    async def keep_all(self) -> None:
        """Keep forecasts of jobs that wait, whether anybody asks for them or not; for ever."""
        submissions, due_seconds = -1, math.inf
        while True:
            await asyncio.sleep(max(_FORECAST_SECONDS, _REST * self._seconds))
            try:
                now, latest, pending = await self._snapshots.ask(self._standing)
                if pending and (latest != submissions or now >= due_seconds):
                    submissions, due_seconds = latest, math.inf
                    due_seconds = await slowly(self._keep, await self._begun())
            except DaemonBusy:
                submissions = -1
            except Exception:  # it has been logged where it was made
                await asyncio.sleep(_PAUSE_SECONDS)

    def _standing(self, controller: Controller, history: JobHistory) -> tuple[float, int, int]:
        """Return the time, how many jobs were ever submitted, and how many wait."""
        self._starts.catch_up(history)
        state = controller.state
        pending = sum(len(each.by_id) for each in state.pending_rosters)
        return controller.now, state.submissions, pending

    async def latest(
        self, waiting: Collection[str], patience_seconds: float = 0.5
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
        rest = max(0.0 if lacks else _FORECAST_SECONDS, self._rest_seconds) - age
        if self._making is None and lacks and 0.0 < rest < patience_seconds:
            await asyncio.sleep(rest)
            patience_seconds -= rest
            rest = 0.0
        if self._making is None and rest <= 0.0:
            self._begun()
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

        Raises ``InputError`` if jobs of this policy and cluster cannot be forecast.
        """
        if self._making is not None and self._cost_seconds < _QUICK_SECONDS:
            await asyncio.wait({self._making}, timeout=_PATIENCE_SECONDS)
        is_quick = self._making is None and self._cost_seconds < _QUICK_SECONDS
        if self._latest is not None and is_quick:
            drawn, _ = await asyncio.wait(
                {asyncio.create_task(self.ahead())}, timeout=_PATIENCE_SECONDS
            )
            if drawn:  # else kernels are being compiled
                return drawn.pop().result()
        latest = await self.latest([job_id], _PATIENCE_SECONDS)
        if self._problem is not None:
            raise self._problem
        return latest if latest is not None and job_id in latest.waiting else None

    async def ahead(
        self,
        jobs: Sequence[Job] = (),
        *,
        arrivals: bool = True,
        alike: Mapping[str, Job] = MappingProxyType({}),
    ) -> Forecasts:
        """The forecasts of all jobs that wait, made now, as if ``jobs`` were among them.

        Those of some ids are believed to run like others.

        Raises ``InputError`` if jobs of this policy and cluster cannot be forecast; ``DaemonBusy``
        if nobody says how things stand, or they take long: kernels are being compiled.
        """
        drawing = asyncio.create_task(self._draw(jobs, alike, arrivals=arrivals))
        done, _ = await asyncio.wait({drawing}, timeout=_LONGEST_SECONDS)
        if not done:
            raise DaemonBusy("what draws forecasts is being compiled; ask again in a while")
        return drawing.result()

    async def _draw(
        self, jobs: Sequence[Job], alike: Mapping[str, Job], *, arrivals: bool
    ) -> Forecasts:
        def stands(
            controller: Controller, history: JobHistory
        ) -> tuple[float, Callable[[], Outlook]]:
            self._starts.catch_up(history)
            maker = outlook_maker(controller, jobs, history if arrivals else None, self._columns)
            return controller.now, maker

        now, outlook = await self._snapshots.ask(stands)
        await self._look_back(now)

        def drawn(past: PastForecasts) -> Forecasts:
            self._compiler.compile()
            if self._compiler.is_stopped:
                raise DaemonBusy("the service ends")
            whole = outlook()
            if not jobs:
                self._columns = whole.waiting.jobs
            if self._latest is None and len(whole.waiting) > _MANY and not jobs:
                self._latest = drawn_forecasts(front_of(whole, _IN_FRONT), self._starts, past)
            return drawn_forecasts(whole, self._starts, past, alike)

        return await asyncio.wrap_future(_DRAWING.submit(drawn, self._past))

    async def ends(
        self, running: Sequence[RunningJob], now: float
    ) -> Mapping[str, RunningForecast]:
        """Forecast when running jobs end; those of one snapshot are drawn once in a while.

        Where drawing takes long the ends of before are given, and of new jobs those that the policy
        believes in.
        """
        until = time.monotonic() + _READER_SECONDS
        while self._ends[0] is not running or now - self._ends[1] > FRESH_SECONDS:
            if self._ending is None:
                self._ending = asyncio.create_task(self._draw_ends(running, now))
            done, _ = await asyncio.wait({self._ending}, timeout=until - time.monotonic())
            if not done:
                break
            done.pop().result()
        found = self._ends[2]
        new = [each for each in running if each.job.job_id not in found]
        return {**found, **{each.job.job_id: _as_believed(each, now) for each in new}}

    async def _draw_ends(self, running: Sequence[RunningJob], now: float) -> None:
        try:
            found = await asyncio.to_thread(forecast_running, running, now, self._starts.draw)
            self._ends = running, now, found
        finally:
            self._ending = None

    async def needed_seconds(self, job: Job, now: float) -> Floats:
        """Draw how long a job would need if no limit ended it."""
        return await slowly(self._starts.needed_seconds, job, now)

    async def _look_back(self, now: float) -> None:
        """Know how earlier forecasts have held, as of not long ago."""
        if time.monotonic() - self._past_monotonic > _CALIBRATION_SECONDS:
            self._past_monotonic = time.monotonic()
            outcomes = await slowly(self._store.forecast_outcomes, MOST_OUTCOMES, now)
            self._past = PastForecasts.from_outcomes(outcomes)

    def _begun(self) -> asyncio.Task[Forecasts]:
        """Begin to make forecasts that are kept, if they are not being made."""
        if self._making is None:
            self._begun_monotonic = time.monotonic()
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        return self._making

    async def _make(self) -> Forecasts:
        made = await self._draw((), {}, arrivals=True)
        self._seconds = time.monotonic() - self._begun_monotonic
        many = len(made.waiting) > _MANY
        self._cost_seconds = self._seconds if many else 0.0
        self._rest_seconds = _REST_ASKED * (
            self._seconds if many else min(self._seconds, _FEW_SECONDS)
        )
        return made

    def _keep(self, made: Forecasts) -> float:
        """Keep the forecasts that are due; returns when the next one is."""
        before = self._store.last_forecasts() if self._kept is None else self._kept
        kept = {each: before[each] for each in made.waiting if each in before}
        for rows in made.due_rows(before, self._snapshots.estimates):  # others write in between
            self._store.keep_forecasts(rows)
            kept.update((row.job_id, row.made_seconds) for row in rows)
        if len(made.waiting) > _MANY:
            give_back_free_memory()  # that drawing took
        self._kept = kept
        due: float = due_times(made.outlook.waiting.jobs, kept).min(initial=math.inf)
        return due

    def _made(self, task: asyncio.Task[Forecasts]) -> None:
        self._making = None
        self._made_monotonic = time.monotonic()
        if task.cancelled():
            return
        error = task.exception()
        self._problem = error if isinstance(error, InputError) else None
        if error is None:
            self._latest = task.result()
        elif isinstance(error, ForesailError):
            _LOG.info("no forecast is made now: %s", error)
        else:
            _LOG.error("no forecast could be made", exc_info=error)


def _as_believed(running: RunningJob, now: float) -> RunningForecast:
    """Return when a job ends that has just begun, as the policy believes."""
    seconds = (running.slowdown * running.prediction.quantile(level) for level in LEVELS)
    begun, limit = running.start_seconds, limit_of(running.job)
    ends = [max(now, begun + min(each, limit)) for each in seconds]
    return RunningForecast(Range(*ends), None, None)
