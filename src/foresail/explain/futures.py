"""Starts of waiting jobs in futures of which the runtimes are drawn."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import numpy as np

from foresail.distributions.basic import Point
from foresail.explain.arrivals import HOUR, DrawnArrivals, draw_arrivals
from foresail.explain.job_columns import JobColumns
from foresail.explain.kernels.forward import ANYWHERE, Futures, blank_scratch, fill_starts
from foresail.explain.outlook import Outlook
from foresail.explain.replayed_futures import ReplayedFutures, affordable_futures, unknown_to_replay
from foresail.model.cluster import Resources
from foresail.model.decision import Placement
from foresail.model.distribution import Floats, Integers
from foresail.model.job import DependencyKind, Job, Stage
from foresail.model.view import PendingJob, RunningJob
from foresail.schedulers.kernels.backfill import OVERDUE

_LONGEST_HORIZON: Final = 7 * 24 * HOUR
_THREADS: Final = 2
_NICENESS: Final = 10
_FEWEST_TRIED: Final = 50
_MOST_TRIED: Final = 1_000
_TRIED: Final = 125_000_000
"""Jobs that are tried behind the first that has no room, each time, and all of them in all futures:
the rest of a long queue hardly ever fits."""

_MOST_AT_ONCE: Final = 150_000
"""Jobs times futures that there is a table of at a time."""


def starts_in_futures(
    outlook: Outlook, lasting: Floats, running_ends: Floats, random: np.random.Generator
) -> Floats:
    """Return when waiting jobs start (seconds, infinite for never), shape (futures, jobs).

    These are the first of the futures that are given, as many as can be simulated in a second or
    two: all but for long queues.

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
    outlook, running_ends = _with_returns(outlook, running_ends)
    running_ends = np.ascontiguousarray(running_ends)  # the only layout that is compiled ahead
    horizon = _horizon(outlook, lasting, running_ends)
    arrivals = draw_arrivals(outlook, len(lasting), horizon, random)
    come = math.ceil(np.isfinite(arrivals.seconds).sum() / len(lasting))
    if stand_in_reason(outlook, come) is None:
        count = affordable_futures(outlook, come)
        lasting, running_ends = lasting[:count], running_ends[:count]
        arrivals = DrawnArrivals(arrivals.seconds[:count], arrivals.numbers[:count])
        comes = _runtimes(outlook, arrivals, lasting, running_ends)
        replayed = ReplayedFutures(outlook, arrivals, comes)
        return _in_threads(
            len(lasting), lambda first, last: replayed.starts(lasting, running_ends, first, last)
        )
    jobs = len(outlook.waiting) + arrivals.seconds.shape[1]
    predecessors = _predecessors(outlook.waiting.jobs, outlook.running, jobs)
    return _Simulated(outlook, lasting, running_ends, arrivals, predecessors).starts()


def _with_returns(outlook: Outlook, running_ends: Floats) -> tuple[Outlook, Floats]:
    """Let what is out of use until some time be there, and taken until then by a job of its own."""
    if not outlook.returns:
        return outlook, running_ends
    room, rule, now, runs = dict(outlook.room), outlook.rule, outlook.now, []
    for at, each in enumerate(outlook.returns):
        room[each.partition] += each.total
        out, left = Job(f"out of use {at}", now, (Stage(1, each.total),)), Point(each.seconds - now)
        place = Placement.whole(each.partition, 1)
        runs.append(RunningJob(out, now, at, place, left, each.seconds))
    ends = [each.seconds for each in outlook.returns]
    if rule is not None:
        initial = (*rule.initial_seconds, *(end - now for end in ends))
        rule = replace(rule, initial_seconds=initial)
    running = (*outlook.running, *runs)
    taken = (*outlook.taken, *(each.total for each in outlook.returns))
    whole = np.broadcast_to(ends, (len(running_ends), len(ends)))
    outlook = replace(outlook, room=room, running=running, taken=taken, rule=rule)
    return outlook, np.concatenate((running_ends, whole), axis=1)


def stand_in_words(outlook: Outlook) -> str | None:
    """Return why forecasts may be off: jobs do not start by the policy's own passes; or None."""
    if outlook.is_external:
        return None
    if not outlook.has_order:
        return "this policy plans by no order of a queue that could be carried on"
    reason = stand_in_reason(outlook)
    if reason is None:
        return None
    return (
        "jobs start in the queue's order and by backfilling in the futures; the policy's own "
        f"passes are not carried on with {reason}"
    )


def stand_in_reason(outlook: Outlook, to_come: int = 0) -> str | None:
    """Return why jobs start by their places and backfilling; None: by the scheduler's own passes.

    ``to_come`` is how many jobs come in a future, in the mean.
    """
    if not affordable_futures(outlook, to_come):
        return "so many jobs"
    if _predecessors(outlook.waiting.jobs, outlook.running, len(outlook.waiting))["before"].size:
        return "jobs that wait for others"
    return unknown_to_replay(outlook)


def _in_threads(futures: int, starts: Callable[[int, int], Floats]) -> Floats:
    """Return the starts in all futures, some in each thread."""
    bounds = np.linspace(0, futures, _THREADS + 1).astype(int).tolist()
    with ThreadPoolExecutor(_THREADS, initializer=_let_others_first) as threads:
        return np.concatenate([*threads.map(starts, bounds[:-1], bounds[1:])])


def _let_others_first() -> None:
    """Lower the priority of this thread, which draws: what answers meanwhile takes little."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, 0)  # none may raise it again
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), max(own, _NICENESS))


def _runtimes(
    outlook: Outlook, arrivals: DrawnArrivals, lasting: Floats, running_ends: Floats
) -> Floats:
    """Return how long jobs that come run: as long as the like, in the same future."""
    begun = np.array([each.start_seconds for each in outlook.running])
    known = np.array([each.runtime_seconds for each in outlook.recent], dtype=np.float64)
    drawn = np.concatenate((lasting, running_ends - begun), axis=1)
    waits, count = outlook.waiting.jobs.places, len(outlook.waiting)
    runs = {each.job.job_id: count + at for at, each in enumerate(outlook.running)}
    ids = (each.pending.job.job_id for each in outlook.recent)
    same = np.array([runs.get(job_id, waits.get(job_id, 0)) for job_id in ids], np.int64)
    if not arrivals.numbers.size:
        return np.zeros(arrivals.numbers.shape)
    alike = np.take_along_axis(drawn, same[arrivals.numbers], axis=1)
    found = known[arrivals.numbers]
    return np.where(np.isnan(found), alike, found)


def _horizon(outlook: Outlook, lasting: Floats, running_ends: Floats) -> float:
    """Return how far ahead arrivals matter (seconds): twice the time that all work takes."""
    mean = lasting.mean(axis=0)
    asked = outlook.waiting.jobs.by_kind(lambda job: _amounts_of(job.total)).T
    room = _amounts_of(sum(outlook.room.values(), Resources()))
    taken = [
        float(mean @ of_jobs) / there
        for of_jobs, there in zip(np.ascontiguousarray(asked), room, strict=True)
        if there > 0.0
    ]
    ends = running_ends.mean(axis=0) if outlook.running else np.zeros(1)
    left = max(0.0, float(ends.max()) - outlook.now)
    return min(_LONGEST_HORIZON, HOUR + left + 2.0 * max(taken, default=0.0))


_HOME, _PLANNED, _LIKELY, _READY, _PLACE, _RUNTIME, *_NEEDS = range(9)
_COLUMNS: Final = 9
"""Columns of jobs: the last are what they need of cpus, memory and gpus."""


class _Simulated:
    """Futures of an outlook, by their runtimes."""

    def __init__(
        self,
        outlook: Outlook,
        lasting: Floats,
        running_ends: Floats,
        arrivals: DrawnArrivals,
        predecessors: Mapping[str, Integers],
    ) -> None:
        self._outlook, self._arrivals, self._predecessors = outlook, arrivals, predecessors
        self._waiting, self._running = outlook.waiting, outlook.running
        self._lasting, self._running_ends = lasting, running_ends
        names: list[str | None] = [*outlook.room]
        self._number = {name: number for number, name in enumerate(names)} | {None: ANYWHERE}
        jobs, recent = outlook.waiting.jobs, outlook.recent
        self._known = np.zeros((_COLUMNS, len(jobs)))
        self._known[_NEEDS] = jobs.by_kind(lambda job: _amounts_of(job.total)).T
        self._known[_PLANNED] = jobs.table["planned"]
        self._known[_HOME] = self._waiting.home
        self._known[_PLACE] = self._waiting.place
        self._known[_LIKELY] = self._waiting.likely
        self._known[_READY] = self._waiting.ready
        self._past = np.zeros((_COLUMNS, len(recent)))
        self._past[_NEEDS] = _amounts(each.pending.job.total for each in recent)
        self._past[[_PLANNED, _LIKELY]] = [each.pending.planned_seconds for each in recent]
        self._past[_HOME] = [self._number[each.partition] for each in recent]
        self._past[_PLACE] = [each.place for each in recent]
        self._to_come = _runtimes(outlook, arrivals, lasting, running_ends)

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
        starts = np.empty(futures.home.shape)

        def some_starts(first: int, last: int) -> Floats:
            fill_starts(futures, first, last, blank_scratch(futures), starts)
            return starts[first:last, : len(self._waiting)]

        return _in_threads(len(starts), some_starts)

    def _futures(self, lot: slice) -> Futures:
        outlook, waiting, running = self._outlook, self._waiting, self._running
        numbers, seconds = self._arrivals.numbers[lot], self._arrivals.seconds[lot]
        count, most = numbers.shape
        known = len(waiting)
        columns = np.zeros((_COLUMNS, count, known + most))
        columns[:, :, :known] = self._known[:, None, :]
        columns[_RUNTIME, :, :known] = self._lasting[lot]
        if most:
            columns[:, :, known:] = self._past[:, numbers]
            columns[_READY, :, known:] = seconds
            columns[_RUNTIME, :, known:] = self._to_come[lot]
        due = np.full(known + most, math.inf)  # those to come go first never
        due[:known] = waiting.due
        overdue = due.copy()
        overdue[:known] += OVERDUE * (waiting.due - waiting.jobs.table["submitted"])
        later = self._known[_READY, self._known[_READY] > outlook.now]
        tried = _TRIED / (len(self._lasting) * (known + most))
        by_ready = np.concatenate((np.broadcast_to(later, (count, later.size)), seconds), axis=1)
        counted = [at for at, each in enumerate(_NEEDS) if not at or columns[each].any()]
        return Futures(
            now=outlook.now,
            backfills=outlook.backfills,
            home=columns[_HOME],
            planned=columns[_PLANNED],
            likely=columns[_LIKELY],
            ready=columns[_READY],
            runtimes=columns[_RUNTIME],
            order=np.argsort(columns[_PLACE], axis=1, kind="stable"),
            running_home=np.array(
                [self._number[each.placement.tasks_by_partition[0][0]] for each in running],
                dtype=np.int64,
            ),
            running_planned=np.array(
                [each.expected_end_seconds for each in running], dtype=np.float64
            ),
            running_ends=self._running_ends[lot],
            running_first=np.array([each.went_first for each in running], dtype=np.int64),
            due=due,
            overdue=overdue,
            room=np.ascontiguousarray(_amounts(outlook.room.values())[counted]),
            needs=columns[[_NEEDS[at] for at in counted]],
            running_needs=np.ascontiguousarray(_amounts(outlook.taken)[counted]),
            by_due=np.argsort(due, kind="stable")[: np.count_nonzero(np.isfinite(due))],
            by_ready=np.sort(by_ready, axis=1),
            wanted=known,
            most_tried=int(np.clip(tried, _FEWEST_TRIED, _MOST_TRIED)),
            **self._predecessors,
        )


def _amounts_of(resources: Resources) -> tuple[float, float, float]:
    """Return amounts of cpus, memory and gpus."""
    return resources.cpus, resources.memory_bytes, resources.gpus


def _amounts(of: Iterable[Resources]) -> Floats:
    """Return requests or totals, shape (resources, those)."""
    return np.array([*map(_amounts_of, of)], np.float64).reshape(-1, len(_NEEDS)).T


def _predecessors(
    waiting: JobColumns, running: Sequence[RunningJob], jobs: int
) -> dict[str, Integers]:
    """Return the predecessors of each job that have not ended."""
    before: dict[int, list[int]] = {}
    dependent = np.flatnonzero(waiting.table["waits_for_others"]).tolist()
    if dependent:
        number = dict(waiting.places)
        number.update((each.job.job_id, jobs + at) for at, each in enumerate(running))
        for at in dependent:
            after = waiting.pending[at].job.after
            before[at] = [number[job_id] for job_id in after if job_id in number]
        _add_conditions(before, waiting.pending, running, number)
    counts = np.zeros(jobs + 1, np.int64)
    for at, several in before.items():
        counts[at + 1] = len(several)
    flat = [each for several in before.values() for each in several]
    return {"first_before": np.cumsum(counts), "before": np.array(flat, np.int64)}


def _add_conditions(
    before: dict[int, list[int]],
    waiting: Sequence[PendingJob],
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
    jobs += [(each.job, at) for at, each in enumerate(waiting)]
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
