"""Answers about all jobs, shared while fresh: counts, use over time, how ranges have held."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from foresail.control.loop import Controller
from foresail.model.reason import Reason
from foresail.record.job_life import JobHistory
from foresail.service.snapshots import SnapshotCache
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
        self.judged_starts = Lately(lambda: slowly(store.judged_forecasts, now()))
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
        first = self._store.first_submission(begin)
        begin = max(begin, min(now if first is None else first, now - _LEAST_SECONDS))
        return use_over_time(self._store, begin, now, bins)
