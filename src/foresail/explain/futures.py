"""When waiting jobs start in futures of which the runtimes are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.explain.arrivals import (
    AMOUNTS,
    COLUMNS,
    HOME,
    HOUR,
    LIKELY,
    OTHERS,
    PLACE,
    PLANNED,
    READY,
    RUNTIME,
    WIDTH,
    arrivals_of,
)
from foresail.explain.kernels.forward import ANYWHERE, Futures, blank_scratch, fill_starts
from foresail.explain.outlook import Outlook, QueuedJob
from foresail.model.arrays import Floats
from foresail.model.cluster import Resources
from foresail.model.job import DependencyKind
from foresail.model.view import RunningJob

_LONGEST_HORIZON: Final = 7 * 24 * HOUR
_THREADS: Final = 2
_MOST_AT_ONCE: Final = 150_000
"""Jobs times futures that there is a table of at a time."""


def starts_in_futures(
    outlook: Outlook, lasting: Floats, running_ends: Floats, random: np.random.Generator
) -> Floats:
    """Return when waiting jobs start (seconds, infinite for never), shape (futures, jobs).

    Parameters
    ----------
    outlook
        How things stand.
    lasting
        How long each waiting job runs once it has started (seconds), shape (futures, jobs).
    running_ends
        When each running job ends (seconds), shape (futures, jobs).
    random
        Jobs to come are drawn by it, if the outlook has any to draw from.
    """
    return _Simulated(outlook, lasting, running_ends, random).starts()


class _Simulated:
    """Futures of an outlook, by their runtimes."""

    def __init__(
        self, outlook: Outlook, lasting: Floats, running_ends: Floats, random: np.random.Generator
    ) -> None:
        self._outlook, self._random = outlook, random
        self._waiting, self._running = outlook.waiting, outlook.running
        self._lasting, self._running_ends = lasting, running_ends
        names: list[str | None] = [*outlook.cpus]
        self._number = {name: number for number, name in enumerate(names)} | {None: ANYWHERE}
        self._known = self._columns()
        self._arrivals = arrivals_of(outlook, self._number, self._horizon())

    def _columns(self) -> Floats:
        """Return what all futures share of the waiting jobs, shape (columns, 1, jobs)."""
        columns = np.zeros((len(COLUMNS), 1, len(self._waiting)))
        columns[HOME] = [self._number[each.partition] for each in self._waiting]
        asked = [each.pending.job.total for each in self._waiting]
        for column, name in zip((WIDTH, *OTHERS), AMOUNTS, strict=True):
            columns[column] = [getattr(each, name) for each in asked]
        columns[PLANNED] = [each.pending.planned_seconds for each in self._waiting]
        columns[LIKELY] = [each.likely_seconds for each in self._waiting]
        columns[READY] = [each.ready_seconds for each in self._waiting]
        columns[PLACE] = [each.place for each in self._waiting]
        return columns

    def starts(self) -> Floats:
        """Return when waiting jobs start; shape (futures, jobs)."""
        starts = np.empty_like(self._lasting)
        at_once = max(_THREADS, _MOST_AT_ONCE // len(self._waiting))
        for begin in range(0, len(starts), at_once):
            lot = slice(begin, begin + at_once)
            starts[lot] = self._starts_in(lot)
        return starts

    def _starts_in(self, lot: slice) -> Floats:
        """The same, in some of the futures."""
        futures = self._futures(lot)
        count, jobs = futures.widths.shape
        starts = np.empty((count, jobs))
        bounds = np.linspace(0, count, _THREADS + 1).astype(int)
        wanted = len(self._waiting)

        def work(part: int) -> None:
            scratch = blank_scratch(len(futures.cpus), jobs, len(self._running), len(futures.room))
            fill_starts(futures, int(bounds[part]), int(bounds[part + 1]), wanted, scratch, starts)

        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(work, range(_THREADS)))
        return starts[:, :wanted]

    def _futures(self, lot: slice) -> Futures:
        outlook, waiting, running = self._outlook, self._waiting, self._running
        count = len(self._lasting[lot])
        of_arrivals = [self._arrivals.one(self._random) for _ in range(count)]
        most = max(len(each) for each in of_arrivals)
        known = len(waiting)
        columns = np.zeros((len(COLUMNS), count, known + most))
        columns[READY] = columns[PLACE] = math.inf
        columns[:, :, :known] = self._known
        columns[RUNTIME, :, :known] = self._lasting[lot]
        due = np.full(known + most, math.inf)  # those to come go first never
        due[:known] = [each.due_seconds for each in waiting]
        for future, each in enumerate(of_arrivals):
            columns[:, future, known : known + len(each)] = each.T
        counted = [other for other in OTHERS if columns[other].any()]
        return Futures(
            now=outlook.now,
            cpus=np.array([*outlook.cpus.values()], dtype=np.float64),
            backfills=outlook.backfills,
            home=columns[HOME],
            widths=columns[WIDTH],
            planned=columns[PLANNED],
            likely=columns[LIKELY],
            ready=columns[READY],
            runtimes=columns[RUNTIME],
            order=np.argsort(columns[PLACE], axis=1, kind="stable"),
            running_home=np.array(
                [self._number[each.placement.tasks_by_partition[0][0]] for each in running],
                dtype=np.int64,
            ),
            running_widths=np.array([each.cpus for each in outlook.taken], dtype=np.float64),
            running_planned=np.array(
                [each.expected_end_seconds for each in running], dtype=np.float64
            ),
            running_ends=self._running_ends[lot],
            due=due,
            room=_amounts(counted, outlook.room.values()),
            needs=columns[counted],
            running_needs=_amounts(counted, outlook.taken),
            by_due=np.argsort(due, kind="stable")[: np.count_nonzero(np.isfinite(due))],
            **_predecessors(waiting, running, known + most),
        )

    def _horizon(self) -> float:
        """Return how far ahead arrivals matter (seconds): twice the time that all work takes."""
        lasting = self._lasting.mean(axis=0)
        asked = [each.pending.job.total for each in self._waiting]
        room = sum(self._outlook.room.values(), Resources())
        taken = [
            float(lasting @ np.array([getattr(each, name) for each in asked])) / there
            for name in AMOUNTS
            if (there := getattr(room, name)) > 0.0
        ]
        ends = self._running_ends.mean(axis=0) if self._running else np.zeros(1)
        left = max(0.0, float(ends.max()) - self._outlook.now)
        return min(_LONGEST_HORIZON, HOUR + left + 2.0 * max(taken, default=0.0))


def _amounts(columns: Sequence[int], of: Iterable[Resources]) -> Floats:
    """Return requests or totals of resources beside cpus, shape (columns, those)."""
    rows = [(each.memory_bytes, each.gpus) for each in of]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(OTHERS))
    return np.ascontiguousarray(table.T[[OTHERS.index(column) for column in columns]])


def _predecessors(
    waiting: Sequence[QueuedJob], running: Sequence[RunningJob], jobs: int
) -> dict[str, NDArray[np.int64]]:
    """Return the predecessors of each job that have not ended."""
    number = {each.pending.job.job_id: at for at, each in enumerate(waiting)}
    number.update((each.job.job_id, jobs + at) for at, each in enumerate(running))
    before = [
        [number[job_id] for job_id in each.pending.job.after if job_id in number]
        for each in waiting
    ]
    _add_conditions(before, waiting, running, number)
    counts = np.zeros(jobs + 1, np.int64)
    counts[1 : len(before) + 1] = [len(each) for each in before]
    flat = [each for several in before for each in several]
    return {"first_before": np.cumsum(counts), "before": np.array(flat, np.int64)}


def _add_conditions(
    before: list[list[int]],
    waiting: Sequence[QueuedJob],
    running: Sequence[RunningJob],
    number: Mapping[str, int],
) -> None:
    """Apply the conditions of jobs, for futures in which each job waits for ends.

    Whoever waits for a begin waits for nothing. A member of an array with a limit waits for the one
    that so many came before it; a singleton for all that have come since the last one.
    """
    arrays: dict[str, list[int]] = {}
    namesakes: dict[tuple[str | None, str | None], list[int]] = {}
    jobs = [(each.job, -1) for each in running]
    jobs += [(each.pending.job, at) for at, each in enumerate(waiting)]
    for job, at in jobs:
        own, conditions = number[job.job_id], job.conditions
        alike = namesakes.setdefault((job.user, job.name), [])
        if conditions is not None and conditions.singleton:
            if at >= 0:
                before[at] += alike
            alike.clear()
        alike.append(own)
        if conditions is None:
            continue
        if conditions.most_at_once is not None:
            members = arrays.setdefault(conditions.array, [])
            if at >= 0 and len(members) >= conditions.most_at_once:
                before[at].append(members[-conditions.most_at_once])
            members.append(own)
        for each in conditions.dependencies:
            if at >= 0 and each.kind is DependencyKind.AFTER:
                begun = {number.get(job_id) for job_id in each.job_ids}
                before[at] = [other for other in before[at] if other not in begun]
