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

_CPUS: Final = 0
"""Number of the cpus among the resources."""

_HEAD, _SHADOW, _DUE_HEAD, _DUE_SHADOW, _IS_STALE, _STARTED, _HELD_FIRST = range(7)
_PARTITION_COLUMNS = 7
"""Numbers of a partition: the first job that has no room, and its start; the same of those that are
due; whether a pass is to be made (again); how many of those that are asked for have started; cpus
that jobs hold which were due when they started."""

_RUNNING, _BEGIN, _WAITING, _DUE = range(4)
_COUNTERS: Final = 4
"""Numbers of jobs that run, with an end on the heap and a planned one; place where the line begins,
behind those that started; how many are in line, and how many of these, from its front, are due."""

_MOST_GONE: Final = 64
"""Jobs that have started stay in line until they are so many: closing ranks is looking at all."""


class Futures(NamedTuple):
    """Known state at a moment, and draws of its futures.

    There is ``room[r, p]`` of resource r, first cpus, to use in partition p, of which what runs
    holds some; job i is for partition ``home[f, i]``, or for any (ANYWHERE). In each future f jobs
    are tried in its row of ``order``. Job i asks for ``needs[r, f, i]`` from ``ready[f, i]`` on
    (seconds), runs for ``runtimes[f, i]``, and is planned to run for ``planned[f, i]``. It waits
    for the jobs ``before[first_before[i] : first_before[i + 1]]``; those that run already are
    counted behind the jobs. These hold ``running_needs[r]`` of ``running_home`` until
    ``running_ends[f]``, and are planned to end at ``running_planned``. From ``due[i]`` on a job
    goes before all that are not, those that are due first ahead; ``by_due`` are the jobs with such
    a time, in its order. While those that were due hold most of a partition (``running_first`` says
    who of what runs) it goes last, until ``overdue[i]``.
    Behind a job that does not fit and is not due, others are tried with ``likely[f, i]``, and
    start if either that or the plan lets them: at most ``most_tried``, for there may be many
    thousands that wait. ``by_ready[f]`` ascend, and have all times to come at which one is ready,
    infinite behind the last. A future is over once the first ``wanted`` jobs have started, of which
    alone the starts are asked for.
    """

    now: float
    backfills: bool
    home: Floats
    planned: Floats
    likely: Floats
    ready: Floats
    runtimes: Floats
    order: Integers
    first_before: Integers
    before: Integers
    running_home: Integers
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


class _Scratch(NamedTuple):
    """Work space of a call: rows for jobs and those that run, as ``blank_scratch`` makes them."""

    ends: Floats
    plans: Floats
    homes: Integers
    by_plan: Integers
    line: Integers
    reordered: Integers
    promised: Integers
    goes_first: Integers
    heap: Floats
    counters: Integers
    narrowest: Floats
    by_partition: Floats
    unused: Floats
    spare: Floats
    due_spare: Floats


def blank_scratch(futures: Futures) -> _Scratch:
    """Room for a call of ``fill_starts``."""
    rows, shape = futures.needs.shape[2] + futures.running_home.size, futures.room.shape
    times, numbers, rooms = (
        np.empty((2, rows)),
        np.empty((6, rows), np.int64),
        np.empty((3, *shape)),
    )
    heap, counters = np.empty((rows, HEAP_COLUMNS)), np.zeros(_COUNTERS, np.int64)
    by_partition = np.empty((_PARTITION_COLUMNS, shape[1]))
    return _Scratch._make((*times, *numbers, heap, counters, np.empty(1), by_partition, *rooms))


@part
def _run(
    futures: Futures, scratch: _Scratch, future: int, job: int, home: int, plan: float, end: float
) -> None:
    """Let a job hold what it needs; note when it ends, and in order when it is planned to."""
    by_plan, plans, at = scratch.by_plan, scratch.plans, scratch.counters[_RUNNING]
    heap_push(scratch.heap, at, end, job, job)
    scratch.counters[_RUNNING] += 1
    plans[job], scratch.homes[job] = plan, home
    while at and plans[by_plan[at - 1]] > plan:
        by_plan[at] = by_plan[at - 1]
        at -= 1
    by_plan[at] = job
    _hold_place(futures, scratch, future, job, 1.0)


@part
def _hold_place(futures: Futures, scratch: _Scratch, future: int, job: int, sign: float) -> None:
    """Take what a job that runs needs out of its partition, or put it back."""
    home = scratch.homes[job]
    held_first = scratch.goes_first[job] * _need(futures, _CPUS, future, job)
    scratch.by_partition[_HELD_FIRST, home] += sign * held_first
    _hold(futures, future, job, home, scratch.unused, sign)


@part
def _need(futures: Futures, resource: int, future: int, job: int) -> float:
    """Return how much of a resource a job needs, which may be one that runs already."""
    jobs = futures.needs.shape[2]
    if job < jobs:
        return float(futures.needs[resource, future, job])
    return float(futures.running_needs[resource, job - jobs])


@part
def _is_room(futures: Futures, future: int, job: int, home: int, room: Floats) -> bool:
    """Return whether what a waiting job needs is among what a partition has."""
    for resource in range(room.shape[0]):
        if futures.needs[resource, future, job] * (1.0 - _ROUNDING) > room[resource, home]:
            return False
    return True


@part
def _hold(futures: Futures, future: int, job: int, home: int, room: Floats, sign: float) -> None:
    """Take what a job needs out of what a partition has, or put it back."""
    for resource in range(room.shape[0]):
        room[resource, home] -= sign * _need(futures, resource, future, job)


@part
def _end_first(futures: Futures, scratch: _Scratch, future: int) -> None:
    """Let the first that ends leave what it holds to others."""
    job, by_plan, at = heap_pop(scratch.heap, scratch.counters[_RUNNING]), scratch.by_plan, 0
    scratch.counters[_RUNNING] -= 1
    while by_plan[at] != job:
        at += 1
    for place in range(at, scratch.counters[_RUNNING]):
        by_plan[place] = by_plan[place + 1]
    _hold_place(futures, scratch, future, job, -1.0)


@part
def _shadow(
    futures: Futures, scratch: _Scratch, future: int, job: int, home: int, spare: Floats
) -> float:
    """Return when a job should have room in a partition; what is left then goes to ``spare``."""
    by_plan, plans, at = scratch.by_plan, scratch.plans, 0
    for resource in range(spare.shape[0]):
        spare[resource, home] = scratch.unused[resource, home]
    while at < scratch.counters[_RUNNING]:
        end = plans[by_plan[at]]
        while at < scratch.counters[_RUNNING] and plans[by_plan[at]] == end:
            if scratch.homes[by_plan[at]] == home:
                _hold(futures, future, by_plan[at], home, spare, -1.0)
            at += 1
        if _is_room(futures, future, job, home, spare):
            _hold(futures, future, job, home, spare, 1.0)
            return float(end)
    return math.inf


@part
def _could_hold(futures: Futures, future: int, job: int) -> bool:
    """Return whether its partition, or any of them, has so much."""
    home = futures.home[future, job]
    for each in range(futures.room.shape[1]):
        if home in (each, ANYWHERE) and _is_room(futures, future, job, each, futures.room):
            return True
    return False


@part
def _waits_for(futures: Futures, scratch: _Scratch, future: int, job: int, home: int) -> bool:
    """Return whether a job is in the queue of a partition, and not promised to another."""
    own = int(futures.home[future, job])
    if own != ANYWHERE:
        return own == home
    is_promised_elsewhere = scratch.promised[job] not in (ANYWHERE, home)
    return not is_promised_elsewhere and _is_room(futures, future, job, home, futures.room)


@part
def _ready_seconds(futures: Futures, scratch: _Scratch, future: int, job: int) -> float:
    """Return when a job may start, as far as its predecessors are known."""
    since = futures.ready[future, job]
    for at in range(futures.first_before[job], futures.first_before[job + 1]):
        since = max(since, scratch.ends[futures.before[at]])
    return float(since)


@part
def _is_let_in(
    futures: Futures, scratch: _Scratch, future: int, job: int, home: int, now: float
) -> bool:
    """Return whether a job delays none that goes before it; it takes of what these leave then."""
    parts = scratch.by_partition
    end, likely_end = now + futures.planned[future, job], now + futures.likely[future, job]
    puts_off_due = end > parts[_DUE_SHADOW, home]
    if puts_off_due and not _is_room(futures, future, job, home, scratch.due_spare):
        return False
    puts_off = end > parts[_SHADOW, home] and likely_end > parts[_SHADOW, home]
    if puts_off and not _is_room(futures, future, job, home, scratch.spare):
        return False
    if puts_off_due:
        _hold(futures, future, job, home, scratch.due_spare, 1.0)
    if puts_off:
        _hold(futures, future, job, home, scratch.spare, 1.0)
    return True


@part
def _pass_over(
    futures: Futures, scratch: _Scratch, future: int, home: int, now: float, starts: Floats
) -> None:
    """Start what can start of the line in one partition."""
    parts, line, due = scratch.by_partition, scratch.line, scratch.counters[_DUE]
    narrowest = scratch.narrowest[0] * (1.0 - 1e-6)
    free, several = scratch.unused[_CPUS], futures.room.shape[1] > 1
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
        width, end = futures.needs[_CPUS, future, job], now + futures.planned[future, job]
        held, most = parts[_HELD_FIRST, home], MOST_HELD_FIRST * futures.room[_CPUS, home]
        goes_last = held > 0.0 and held + width > most and now < futures.overdue[job]
        if place < due and not is_last and goes_last:
            some_last = True
            continue
        if not _is_room(futures, future, job, home, scratch.unused):
            head, first = (_DUE_HEAD, _DUE_SHADOW) if place < due else (_HEAD, _SHADOW)
            if parts[head, home] < 0.0 and not is_last:
                parts[head, home] = job
                spare = scratch.due_spare if place < due else scratch.spare
                parts[first, home] = _shadow(futures, scratch, future, job, home, spare)
            continue
        if not _is_let_in(futures, scratch, future, job, home, now):
            continue
        starts[job] = now
        parts[_STARTED, home] += job < futures.wanted
        scratch.ends[job] = now + futures.runtimes[future, job]
        scratch.goes_first[job] = place < due
        _run(futures, scratch, future, job, home, end, scratch.ends[job])
        if several and futures.home[future, job] == ANYWHERE:
            for other in range(futures.room.shape[1]):
                if other != home and _waits_for(futures, scratch, future, job, other):
                    parts[_IS_STALE, other] = 1.0


@part
def _close_ranks(scratch: _Scratch, starts: Floats) -> None:
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
def _promise(scratch: _Scratch, home: int) -> tuple[int, float]:
    """The job that a partition promises a start, and when; _NOBODY if it promises none."""
    parts = scratch.by_partition
    head, first = _HEAD, _SHADOW
    if parts[_DUE_HEAD, home] >= 0.0:
        head, first = _DUE_HEAD, _DUE_SHADOW
    job, time = int(parts[head, home]), float(parts[first, home])
    return (job if time < math.inf else _NOBODY), time


@part
def _promise_once(futures: Futures, scratch: _Scratch) -> None:
    """Leave a job that several partitions promise a start to the earliest; others pass again."""
    parts, promised = scratch.by_partition, scratch.promised
    for home in range(futures.room.shape[1] if futures.backfills else 0):
        job, time = _promise(scratch, home)
        if job == _NOBODY:
            continue
        for other in range(home + 1, futures.room.shape[1]):
            same, its_time = _promise(scratch, other)
            if same == job and promised[job] in (ANYWHERE, home, other):
                is_earlier = its_time < time
                promised[job] = other if is_earlier else home
                parts[_IS_STALE, home if is_earlier else other] = 1.0
                if is_earlier:
                    break


@part
def _next_stale(scratch: _Scratch) -> int:
    """The first partition whose pass is to be made again, or -1."""
    stale = scratch.by_partition[_IS_STALE]
    for home in range(stale.shape[0]):
        if stale[home] != 0.0:
            return home
    return -1


@part
def _let_ahead(futures: Futures, scratch: _Scratch, known: int, starts: Floats, now: float) -> int:
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
def _begin(futures: Futures, scratch: _Scratch, future: int) -> int:
    """Let everything be as it is at the moment; returns how many of the wanted can start ever."""
    counters, widths = scratch.counters, futures.needs[_CPUS, future]
    jobs = widths.size
    scratch.ends[:jobs] = math.inf
    scratch.promised[:] = ANYWHERE
    scratch.by_partition[_STARTED] = 0.0
    scratch.by_partition[_HELD_FIRST] = 0.0
    for home in range(futures.room.shape[1]):
        for resource in range(futures.room.shape[0]):
            scratch.unused[resource, home] = futures.room[resource, home]
    counters[:] = 0
    for each in range(futures.running_home.size):
        job, home = jobs + each, futures.running_home[each]
        scratch.ends[job] = max(futures.running_ends[future, each], futures.now)
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
    futures: Futures, scratch: _Scratch, future: int, now: float, starts: Floats
) -> None:
    """Make passes over the partitions until none is to be made again."""
    partitions = futures.room.shape[1]
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
def fill_starts(futures: Futures, first: int, last: int, scratch: _Scratch, starts: Floats) -> None:
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
