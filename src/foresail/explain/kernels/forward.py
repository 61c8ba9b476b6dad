"""List scheduling with backfilling, carried on from a moment in many drawn futures at once."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from foresail.kernels.compile import Floats, Integers, part, unlocked_kernel
from foresail.kernels.heaps import HEAP_COLUMNS, TIME, heap_pop, heap_push
from foresail.schedulers.kernels.backfill import MOST_HELD_FIRST

ANYWHERE: Final = -1
"""The home of a job that may run in any partition that has the cpus."""

_NOBODY: Final = -1
_ROUNDING: Final = 1e-9
"""Share of what is asked for that sums of shares may have lost."""

_FREE, _HEAD, _SHADOW, _EXTRA, _DUE_HEAD, _DUE_SHADOW, _DUE_EXTRA, _IS_STALE, _STARTED = range(9)
_HELD_FIRST: Final = 9
_PARTITION_COLUMNS = 10
"""Numbers of a partition: free cpus; the first job that has no room, its start and the cpus more
that are free then; the same of those that are due; whether a pass is to be made (again); how many
of those that are asked for have started; cpus that jobs hold which were due when they started."""

_RUNNING, _BEGIN, _WAITING, _DUE = range(4)
_COUNTERS: Final = 4
"""Numbers of jobs that run, with an end on the heap and a planned one; place where the line begins,
behind those that started; how many are in line, and how many of these, from its front, are due."""

_MOST_GONE: Final = 64
"""Jobs that have started stay in line until they are so many: closing ranks is looking at all."""


class Futures(NamedTuple):
    """Known state at a moment, and draws of its futures.

    There are ``cpus[p]`` to use in partition p, of which what runs holds some; job i is for
    partition ``home[f, i]``, or for any (ANYWHERE). In each future f jobs are tried in its row of
    ``order``. Job i asks for ``widths[f, i]`` cpus from ``ready[f, i]`` on (seconds), runs for
    ``runtimes[f, i]``, and is planned to run for ``planned[f, i]``. It waits for the jobs
    ``before[first_before[i] : first_before[i + 1]]``; those that run already are counted behind
    the jobs. These hold ``running_widths`` of ``running_home`` until ``running_ends[f]``, and
    are planned to end at ``running_planned``. From ``due[i]`` on a job goes before all that are
    not, those that are due first ahead; ``by_due`` are the jobs with such a time, in its order.
    While those that were due hold most of a partition (``running_first`` says who of what runs)
    it goes last, until ``overdue[i]``.
    Behind a job that does not fit and is not due, others are tried with ``likely[f, i]``, and
    start if either that or the plan lets them: at most ``most_tried``, for there may be many
    thousands that wait. ``by_ready[f]`` ascend, and have all times to come at which one is ready,
    infinite behind the last. Resource r beside cpus, of which there may be none
    that counts, has ``room[r, p]``, ``needs[r, f, i]`` and ``running_needs[r]``. A future is over
    once the first ``wanted`` jobs have started, of which alone the starts are asked for.
    """

    now: float
    cpus: Floats
    backfills: bool
    home: Floats
    widths: Floats
    planned: Floats
    likely: Floats
    ready: Floats
    runtimes: Floats
    order: Integers
    first_before: Integers
    before: Integers
    running_home: Integers
    running_widths: Floats
    running_planned: Floats
    running_ends: Floats
    running_first: Integers
    due: Floats
    overdue: Floats
    by_due: Integers
    by_ready: Floats
    most_tried: int
    room: Floats
    needs: Floats
    running_needs: Floats
    wanted: int


class Scratch(NamedTuple):
    """Work space of a call: rows for jobs and those that run, as ``blank_scratch`` makes them."""

    ends: Floats
    line: Integers
    reordered: Integers
    heap: Floats
    counters: Integers
    planned_ends: Floats
    planned_widths: Floats
    planned_jobs: Integers
    planned_home: Integers
    promised: Integers
    goes_first: Integers
    narrowest: Floats
    by_partition: Floats
    planned_needs: Floats
    unused: Floats
    spare: Floats
    due_spare: Floats


def blank_scratch(partitions: int, jobs: int, running: int, others: int) -> Scratch:
    """Room for a call of ``fill_starts``."""
    times, numbers = np.empty((3, jobs + running)), np.empty((6, jobs + running), np.int64)
    return Scratch(
        ends=times[0],
        line=numbers[0],
        reordered=numbers[1],
        heap=np.empty((jobs + running, HEAP_COLUMNS)),
        counters=np.zeros(_COUNTERS, np.int64),
        planned_ends=times[1],
        planned_widths=times[2],
        planned_jobs=numbers[2],
        planned_home=numbers[3],
        promised=numbers[4],
        goes_first=numbers[5],
        narrowest=np.empty(1),
        by_partition=np.empty((_PARTITION_COLUMNS, partitions)),
        planned_needs=np.empty((others, jobs + running)),
        unused=np.empty((others, partitions)),
        spare=np.empty((others, partitions)),
        due_spare=np.empty((others, partitions)),
    )


@part
def _run(
    futures: Futures, scratch: Scratch, future: int, job: int, home: int, plan: float, end: float
) -> None:
    """Note when a job ends, and in order when it is planned to."""
    running = scratch.counters[_RUNNING]
    heap_push(scratch.heap, running, end, job, job)
    scratch.counters[_RUNNING] += 1
    ends, needs, at = scratch.planned_ends, scratch.planned_needs, running
    while at and ends[at - 1] > plan:
        _move_plan(scratch, at - 1, at)
        at -= 1
    ends[at], scratch.planned_jobs[at], scratch.planned_home[at] = plan, job, home
    scratch.planned_widths[at] = width = _width(futures, future, job)
    scratch.by_partition[_HELD_FIRST, home] += scratch.goes_first[job] * width
    for other in range(needs.shape[0]):
        needs[other, at] = _need(futures, other, future, job)


@part
def _move_plan(scratch: Scratch, source: int, place: int) -> None:
    """Copy a row of what is planned to end."""
    scratch.planned_ends[place] = scratch.planned_ends[source]
    scratch.planned_widths[place] = scratch.planned_widths[source]
    scratch.planned_jobs[place] = scratch.planned_jobs[source]
    scratch.planned_home[place] = scratch.planned_home[source]
    for other in range(scratch.planned_needs.shape[0]):
        scratch.planned_needs[other, place] = scratch.planned_needs[other, source]


@part
def _width(futures: Futures, future: int, job: int) -> float:
    """Return how many cpus a job has, which may be one that runs already."""
    jobs = futures.widths.shape[1]
    if job < jobs:
        return float(futures.widths[future, job])
    return float(futures.running_widths[job - jobs])


@part
def _need(futures: Futures, other: int, future: int, job: int) -> float:
    """Return how much of a resource beside cpus a job needs, which may be one that runs already."""
    jobs = futures.widths.shape[1]
    if job < jobs:
        return float(futures.needs[other, future, job])
    return float(futures.running_needs[other, job - jobs])


@part
def _is_room(futures: Futures, future: int, job: int, home: int, room: Floats) -> bool:
    """Return whether a waiting job's needs beside cpus are among what a partition has."""
    for other in range(room.shape[0]):
        if futures.needs[other, future, job] * (1.0 - _ROUNDING) > room[other, home]:
            return False
    return True


@part
def _hold(futures: Futures, future: int, job: int, home: int, room: Floats, sign: float) -> None:
    """Take what a job needs beside cpus out of what a partition has, or put it back."""
    for other in range(room.shape[0]):
        room[other, home] -= sign * _need(futures, other, future, job)


@part
def _end_first(futures: Futures, scratch: Scratch, future: int) -> None:
    """Let the first that ends leave the cpus, and what else counts, to others."""
    job = heap_pop(scratch.heap, scratch.counters[_RUNNING])
    scratch.counters[_RUNNING] -= 1
    at = 0
    while scratch.planned_jobs[at] != job:
        at += 1
    home = scratch.planned_home[at]
    for place in range(at, scratch.counters[_RUNNING]):
        _move_plan(scratch, place + 1, place)
    width = _width(futures, future, job)
    scratch.by_partition[_FREE, home] += width
    scratch.by_partition[_HELD_FIRST, home] -= scratch.goes_first[job] * width
    _hold(futures, future, job, home, scratch.unused, -1.0)


@part
def _shadow(
    futures: Futures, scratch: Scratch, future: int, job: int, home: int, spare: Floats
) -> tuple[float, float]:
    """Return when a job should have room in a partition, and how many more cpus are free then.

    Of what else counts, that is put into ``spare``.
    """
    ends, widths, homes = scratch.planned_ends, scratch.planned_widths, scratch.planned_home
    free, width = scratch.by_partition[_FREE, home], futures.widths[future, job]
    for other in range(spare.shape[0]):
        spare[other, home] = scratch.unused[other, home]
    at, running = 0, scratch.counters[_RUNNING]
    while at < running:
        end = ends[at]
        while at < running and ends[at] == end:
            if homes[at] == home:
                free += widths[at]
                for other in range(spare.shape[0]):
                    spare[other, home] += scratch.planned_needs[other, at]
            at += 1
        if free >= width and _is_room(futures, future, job, home, spare):
            _hold(futures, future, job, home, spare, 1.0)
            return end, free - width
    return math.inf, 0.0


@part
def _could_hold(futures: Futures, future: int, job: int) -> bool:
    """Return whether its partition, or any of them, has so much."""
    home, width = futures.home[future, job], futures.widths[future, job]
    for each in range(futures.cpus.shape[0]):
        if (
            home in (each, ANYWHERE)
            and width <= futures.cpus[each]
            and _is_room(futures, future, job, each, futures.room)
        ):
            return True
    return False


@part
def _waits_for(futures: Futures, scratch: Scratch, future: int, job: int, home: int) -> bool:
    """Return whether a job is in the queue of a partition, and not promised to another."""
    own = int(futures.home[future, job])
    if own != ANYWHERE:
        return own == home
    is_promised_elsewhere = scratch.promised[job] not in (ANYWHERE, home)
    if futures.widths[future, job] > futures.cpus[home] or is_promised_elsewhere:
        return False
    return _is_room(futures, future, job, home, futures.room)


@part
def _ready_seconds(futures: Futures, scratch: Scratch, future: int, job: int) -> float:
    """Return when a job may start, as far as its predecessors are known."""
    since = futures.ready[future, job]
    for at in range(futures.first_before[job], futures.first_before[job + 1]):
        since = max(since, scratch.ends[futures.before[at]])
    return float(since)


@part
def _is_let_in(
    futures: Futures, scratch: Scratch, future: int, job: int, home: int, now: float
) -> bool:
    """Take room of a partition, if a job delays none there that goes before it."""
    parts, width = scratch.by_partition, futures.widths[future, job]
    end, likely_end = now + futures.planned[future, job], now + futures.likely[future, job]
    puts_off_due = end > parts[_DUE_SHADOW, home]
    if puts_off_due and not (
        width <= parts[_DUE_EXTRA, home] and _is_room(futures, future, job, home, scratch.due_spare)
    ):
        return False
    puts_off = end > parts[_SHADOW, home] and likely_end > parts[_SHADOW, home]
    if puts_off and not (
        width <= parts[_EXTRA, home] and _is_room(futures, future, job, home, scratch.spare)
    ):
        return False
    if puts_off_due:
        parts[_DUE_EXTRA, home] -= width
        _hold(futures, future, job, home, scratch.due_spare, 1.0)
    if puts_off:
        parts[_EXTRA, home] -= width
        _hold(futures, future, job, home, scratch.spare, 1.0)
    parts[_FREE, home] -= width
    _hold(futures, future, job, home, scratch.unused, 1.0)
    return True


@part
def _goes_last(
    futures: Futures, parts: Floats, job: int, width: float, home: int, now: float
) -> bool:
    """Return whether jobs that were due hold so much that one that is due goes last."""
    held = parts[_HELD_FIRST, home]
    beyond = held > 0.0 and held + width > MOST_HELD_FIRST * futures.cpus[home]
    return bool(beyond and now < futures.overdue[job])


@part
def _pass_over(
    futures: Futures, scratch: Scratch, future: int, home: int, now: float, starts: Floats
) -> None:
    """Start what can start of the line in one partition."""
    parts, line, due = scratch.by_partition, scratch.line, scratch.counters[_DUE]
    narrowest = scratch.narrowest[0] * (1.0 - 1e-6)
    free, several = parts[_FREE], futures.cpus.shape[0] > 1
    parts[_HEAD, home] = parts[_DUE_HEAD, home] = _NOBODY
    parts[_SHADOW, home] = parts[_DUE_SHADOW, home] = math.inf
    parts[_IS_STALE, home] = 0.0
    begin, last = scratch.counters[_BEGIN], scratch.counters[_WAITING]
    tried, place, some_last, is_last = 0, begin - 1, False, False
    while True:
        place += 1
        if place >= last:
            if is_last or not some_last:
                break
            is_last, place, last = True, begin - 1, due
            continue
        job = line[place]
        if starts[job] != math.inf:
            continue
        if several and not _waits_for(futures, scratch, future, job, home):
            continue
        # Behind a head only so many candidates are tried: the rest of a long queue hardly ever
        # fits.
        has_head = parts[_HEAD, home] >= 0.0 or parts[_DUE_HEAD, home] >= 0.0
        tried += has_head
        is_full = free[home] <= 0.0 or free[home] < narrowest
        if has_head and (is_full or tried > futures.most_tried or not futures.backfills):
            place = last
            continue
        if _ready_seconds(futures, scratch, future, job) > now:
            continue
        width, end = futures.widths[future, job], now + futures.planned[future, job]
        if place < due and not is_last and _goes_last(futures, parts, job, width, home, now):
            some_last = True
            continue
        if width > free[home] or not _is_room(futures, future, job, home, scratch.unused):
            head, first = (_DUE_HEAD, _DUE_SHADOW) if place < due else (_HEAD, _SHADOW)
            if parts[head, home] < 0.0 and not is_last:
                parts[head, home] = job
                spare = scratch.due_spare if place < due else scratch.spare
                time, more = _shadow(futures, scratch, future, job, home, spare)
                parts[first, home], parts[first + 1, home] = time, more
            continue
        if not _is_let_in(futures, scratch, future, job, home, now):
            continue
        starts[job] = now
        parts[_STARTED, home] += job < futures.wanted
        scratch.ends[job] = now + futures.runtimes[future, job]
        scratch.goes_first[job] = place < due
        _run(futures, scratch, future, job, home, end, scratch.ends[job])
        if several and futures.home[future, job] == ANYWHERE:
            for other in range(futures.cpus.shape[0]):
                if other != home and _waits_for(futures, scratch, future, job, other):
                    parts[_IS_STALE, other] = 1.0


@part
def _close_ranks(scratch: Scratch, starts: Floats) -> None:
    """Take jobs that have started out of the line."""
    line, counters, kept, were_due = scratch.line, scratch.counters, 0, scratch.counters[_DUE]
    for place in range(counters[_WAITING]):
        job = line[place]
        if starts[job] != math.inf:
            counters[_DUE] -= place < were_due
            continue
        line[kept] = job
        kept += 1
    counters[_BEGIN], counters[_WAITING] = 0, kept


@part
def _promise(scratch: Scratch, home: int) -> tuple[int, float]:
    """The job that a partition promises a start, and when; _NOBODY if it promises none."""
    parts = scratch.by_partition
    head, first = _HEAD, _SHADOW
    if parts[_DUE_HEAD, home] >= 0.0:
        head, first = _DUE_HEAD, _DUE_SHADOW
    job, time = int(parts[head, home]), float(parts[first, home])
    return (job if time < math.inf else _NOBODY), time


@part
def _promise_once(futures: Futures, scratch: Scratch) -> None:
    """Leave a job that several partitions promise a start to the earliest; others pass again."""
    parts, promised = scratch.by_partition, scratch.promised
    for home in range(futures.cpus.shape[0] if futures.backfills else 0):
        job, time = _promise(scratch, home)
        if job == _NOBODY:
            continue
        for other in range(home + 1, futures.cpus.shape[0]):
            same, its_time = _promise(scratch, other)
            if same == job and promised[job] in (ANYWHERE, home, other):
                is_earlier = its_time < time
                promised[job] = other if is_earlier else home
                parts[_IS_STALE, home if is_earlier else other] = 1.0
                if is_earlier:
                    break


@part
def _next_stale(scratch: Scratch) -> int:
    """The first partition whose pass is to be made again, or -1."""
    stale = scratch.by_partition[_IS_STALE]
    for home in range(stale.shape[0]):
        if stale[home] != 0.0:
            return home
    return -1


@part
def _let_ahead(futures: Futures, scratch: Scratch, known: int, starts: Floats, now: float) -> int:
    """Put jobs that have come to be due behind those that were, before all others.

    ``known`` of ``by_due`` have been looked at; returns how many are now.
    """
    line, reordered, counters = scratch.line, scratch.reordered, scratch.counters
    first, count = counters[_DUE], counters[_DUE]
    while known < futures.by_due.shape[0] and futures.due[futures.by_due[known]] <= now:
        job = futures.by_due[known]
        known += 1
        if starts[job] == math.inf:
            reordered[count] = job
            count += 1
    counters[_DUE] = count
    # Then the others, in the order in which they were.
    for place in range(first, counters[_WAITING]):
        if futures.due[line[place]] > now:
            reordered[count] = line[place]
            count += 1
    for place in range(first, counters[_WAITING]):
        line[place] = reordered[place]
    return known


@part
def _begin(futures: Futures, scratch: Scratch, future: int) -> int:
    """Let everything be as it is at the moment; returns how many of the wanted can start ever."""
    jobs, counters, widths = futures.widths.shape[1], scratch.counters, futures.widths[future]
    scratch.ends[:jobs] = math.inf
    scratch.promised[:] = ANYWHERE
    scratch.by_partition[_STARTED] = 0.0
    for home in range(futures.cpus.shape[0]):
        scratch.by_partition[_FREE, home] = futures.cpus[home]
        scratch.by_partition[_HELD_FIRST, home] = 0.0
        for other in range(futures.room.shape[0]):
            scratch.unused[other, home] = futures.room[other, home]
    counters[:] = 0
    for each in range(futures.running_widths.shape[0]):
        job, home = jobs + each, futures.running_home[each]
        scratch.ends[job] = max(futures.running_ends[future, each], futures.now)
        scratch.by_partition[_FREE, home] -= futures.running_widths[each]
        _hold(futures, future, job, home, scratch.unused, 1.0)
        plan = max(futures.running_planned[each], futures.now)
        scratch.goes_first[job] = futures.running_first[each]
        _run(futures, scratch, future, job, home, plan, scratch.ends[job])
    # In line are those that can start ever.
    left, narrowest = 0, math.inf
    for place in range(jobs):
        job = futures.order[future, place]
        if futures.ready[future, job] < math.inf and _could_hold(futures, future, job):
            scratch.line[counters[_WAITING]] = job
            counters[_WAITING] += 1
            left += job < futures.wanted
            narrowest = min(narrowest, widths[job])
    scratch.narrowest[0] = narrowest
    return left


@part
def _pass_over_all(
    futures: Futures, scratch: Scratch, future: int, now: float, starts: Floats
) -> None:
    """Make passes over the partitions until none is to be made again."""
    partitions = futures.cpus.shape[0]
    scratch.by_partition[_IS_STALE] = 1.0
    home = 0
    while home >= 0:
        _pass_over(futures, scratch, future, home, now, starts)
        home = _next_stale(scratch)
        if home < 0 and partitions > 1:
            _promise_once(futures, scratch)
            home = _next_stale(scratch)
    if partitions > 1:
        scratch.promised[:] = ANYWHERE


@unlocked_kernel
def fill_starts(futures: Futures, first: int, last: int, scratch: Scratch, starts: Floats) -> None:
    """Find when jobs start in the futures from ``first`` to before ``last``.

    ``scratch`` is worked on; ``starts`` are given (seconds, infinite for never), shape (futures,
    jobs).
    """
    counters, heap, line = scratch.counters, scratch.heap, scratch.line
    for future in range(first, last):
        starts[future] = math.inf
        left = _begin(futures, scratch, future)
        now, known, comes, gone = futures.now, 0, 0, 0
        while left > scratch.by_partition[_STARTED].sum():
            falls_due = (
                known < futures.by_due.shape[0] and futures.due[futures.by_due[known]] <= now
            )
            if gone > (0 if falls_due else _MOST_GONE):
                _close_ranks(scratch, starts[future])
                gone = 0
            if falls_due:
                known = _let_ahead(futures, scratch, known, starts[future], now)
            running = counters[_RUNNING]
            _pass_over_all(futures, scratch, future, now, starts[future])
            gone += counters[_RUNNING] - running
            while (
                counters[_BEGIN] < counters[_WAITING]
                and starts[future, line[counters[_BEGIN]]] != math.inf
            ):
                counters[_BEGIN] += 1
            while comes < futures.by_ready.shape[1] and futures.by_ready[future, comes] <= now:
                comes += 1
            soonest = heap[0, TIME] if counters[_RUNNING] else math.inf
            if comes < futures.by_ready.shape[1]:
                soonest = min(soonest, futures.by_ready[future, comes])
            while known < futures.by_due.shape[0]:
                job = futures.by_due[known]
                if starts[future, job] == math.inf:
                    soonest = min(soonest, futures.due[job])
                    break
                known += 1
            if soonest == math.inf:
                break
            now = max(now, soonest)
            while counters[_RUNNING] and heap[0, TIME] <= now:
                _end_first(futures, scratch, future)
