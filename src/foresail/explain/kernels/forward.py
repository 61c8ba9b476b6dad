"""List scheduling with backfilling, carried on from a moment in many drawn futures at once."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part, unlocked_kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ANYWHERE: Final = -1
"""The home of a job that may run in any partition that has the cpus."""

_FREE, _BLOCKED, _SHADOW, _EXTRA, _DUE_BLOCKED, _DUE_SHADOW, _DUE_EXTRA = range(7)
_PARTITION_COLUMNS = 7


class Futures(NamedTuple):
    """What is known at a moment, and what is drawn of its futures.

    There are ``cpus[p]`` to use in partition p, of which what runs holds some; job i is for
    partition ``home[f, i]``, or for any (ANYWHERE). In each future f jobs are tried in its row of ``order``. Job i
    asks for ``widths[f, i]`` cpus from ``ready[f, i]`` on (seconds), runs for ``runtimes[f,
    i]``, and is planned to run for ``planned[f, i]``. It waits for the jobs
    ``before[first_before[i] : first_before[i + 1]]``; those that run already are counted behind
    the jobs. These hold ``running_widths`` of ``running_home`` until ``running_ends[f]``, and
    are planned to end at ``running_planned``. From ``due[i]`` on a job goes before all that are
    not, those that are due first ahead; ``by_due`` are the jobs with such a time, in its order.
    Behind a job that does not fit and is not due, others are tried with ``likely[f, i]``, and
    start if either that or the plan lets them.
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
    due: Floats
    by_due: Integers


class Scratch(NamedTuple):
    """What a call works on: rows for jobs and those that run, as ``blank_scratch`` makes them."""

    ends: Floats
    line: Integers
    reordered: Integers
    heap_times: Floats
    heap_jobs: Integers
    planned_ends: Floats
    planned_widths: Floats
    planned_jobs: Integers
    planned_home: Integers
    home: Integers
    by_partition: Floats


def blank_scratch(partitions: int, jobs: int, running: int) -> Scratch:
    """Room for a call of ``fill_starts``."""
    times, numbers = np.empty((4, jobs + running)), np.empty((6, jobs + running), np.int64)
    return Scratch(
        times[0],
        numbers[0],
        numbers[4],
        times[1],
        numbers[1],
        times[2],
        times[3],
        numbers[2],
        numbers[3],
        numbers[5],
        np.empty((_PARTITION_COLUMNS, partitions)),
    )


@part
def _push(times: Floats, jobs: Integers, count: int, time: float, job: int) -> int:
    """Put a job into a heap by its time; returns how many are in it then."""
    at = count
    while at and times[(at - 1) // 2] > time:
        times[at], jobs[at] = times[(at - 1) // 2], jobs[(at - 1) // 2]
        at = (at - 1) // 2
    times[at], jobs[at] = time, job
    return count + 1


@part
def _pop(times: Floats, jobs: Integers, count: int) -> int:
    """Take the first out of a heap; returns how many are in it then."""
    count -= 1
    time, job = times[count], jobs[count]
    at = 0
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[at], jobs[at] = times[child], jobs[child]
        at = child
    times[at], jobs[at] = time, job
    return count


@part
def _plan(scratch: Scratch, held: int, end: float, width: float, job: int, home: int) -> int:
    """Note when a job is planned to end, in order; returns of how many that is known."""
    ends, widths = scratch.planned_ends, scratch.planned_widths
    jobs, homes = scratch.planned_jobs, scratch.planned_home
    at = held
    while at and ends[at - 1] > end:
        ends[at], widths[at] = ends[at - 1], widths[at - 1]
        jobs[at], homes[at] = jobs[at - 1], homes[at - 1]
        at -= 1
    ends[at], widths[at], jobs[at], homes[at] = end, width, job, home
    return held + 1


@part
def _unplan(scratch: Scratch, held: int, job: int) -> int:
    """Forget a job that has ended; returns of how many an end is planned."""
    ends, widths = scratch.planned_ends, scratch.planned_widths
    jobs, homes = scratch.planned_jobs, scratch.planned_home
    at = 0
    while jobs[at] != job:
        at += 1
    for place in range(at, held - 1):
        ends[place], widths[place] = ends[place + 1], widths[place + 1]
        jobs[place], homes[place] = jobs[place + 1], homes[place + 1]
    return held - 1


@part
def _shadow(
    scratch: Scratch, held: int, free: float, width: float, home: int
) -> tuple[float, float]:
    """When so many cpus of a partition should be free, and how many more then are."""
    ends, widths, homes = scratch.planned_ends, scratch.planned_widths, scratch.planned_home
    at = 0
    while at < held:
        end = ends[at]
        while at < held and ends[at] == end:
            if homes[at] == home:
                free += widths[at]
            at += 1
        if free >= width:
            return end, free - width
    return math.inf, 0.0


@part
def _could_hold(cpus: Floats, home: int, width: float) -> bool:
    """Whether a partition, or any of them, has so many cpus."""
    if home != ANYWHERE:
        return bool(width <= cpus[home])
    for each in range(cpus.shape[0]):
        if width <= cpus[each]:
            return True
    return False


@part
def _is_closed(futures: Futures, scratch: Scratch, home: int) -> bool:
    """Whether nothing more starts in a partition now."""
    parts = scratch.by_partition
    if parts[_BLOCKED, home] == 0.0 and parts[_DUE_BLOCKED, home] == 0.0:
        return False
    return bool(parts[_FREE, home] <= 0.0 or not futures.backfills)


@part
def _starts_in(
    futures: Futures, scratch: Scratch, home: int, width: float, end: float, likely_end: float
) -> bool:
    """Take cpus of a partition for a job if it delays none there that goes before it."""
    parts = scratch.by_partition
    if _is_closed(futures, scratch, home) or width > parts[_FREE, home]:
        return False
    puts_off_due = end > parts[_DUE_SHADOW, home]
    if puts_off_due and width > parts[_DUE_EXTRA, home]:
        return False
    puts_off = end > parts[_SHADOW, home] and likely_end > parts[_SHADOW, home]
    if puts_off and width > parts[_EXTRA, home]:
        return False
    if puts_off_due:
        parts[_DUE_EXTRA, home] -= width
    if puts_off:
        parts[_EXTRA, home] -= width
    parts[_FREE, home] -= width
    return True


@part
def _block(
    futures: Futures, scratch: Scratch, held: int, home: int, width: float, is_due: bool
) -> None:
    """Keep later jobs from delaying one without room, where it is the first that has none.

    Of several partitions that is the one in which it can start the earliest; if none may overtake
    it, all of them.
    """
    parts = scratch.by_partition
    blocked = _DUE_BLOCKED if is_due else _BLOCKED
    shadow, extra = (_DUE_SHADOW, _DUE_EXTRA) if is_due else (_SHADOW, _EXTRA)
    first, last = (0, futures.cpus.shape[0]) if home == ANYWHERE else (home, home + 1)
    best = -1
    best_time, best_extra = math.inf, 0.0
    for each in range(first, last):
        free = parts[_FREE, each]
        if parts[blocked, each] != 0.0 or width > futures.cpus[each] or width <= free:
            continue
        time, more = _shadow(scratch, held, free, width, each)
        if not futures.backfills:
            parts[blocked, each] = 1.0
            parts[shadow, each], parts[extra, each] = time, more
        elif best < 0 or time < best_time:
            best, best_time, best_extra = each, time, more
    if best >= 0:
        parts[blocked, best] = 1.0
        parts[shadow, best], parts[extra, best] = best_time, best_extra


@part
def _let_ahead(
    futures: Futures,
    scratch: Scratch,
    waiting: int,
    first: int,
    known: int,
    starts: Floats,
    now: float,
) -> tuple[int, int]:
    """Put jobs that have come to be due behind the ``first`` that were, before all others.

    ``known`` of ``by_due`` have been looked at; returns how many are due, and looked at, now.
    """
    line, reordered = scratch.line, scratch.reordered
    count = first
    while known < futures.by_due.shape[0] and futures.due[futures.by_due[known]] <= now:
        job = futures.by_due[known]
        known += 1
        if starts[job] == math.inf:
            reordered[count] = job
            count += 1
    due = count
    for place in range(first, waiting):
        if futures.due[line[place]] > now:
            reordered[count] = line[place]
            count += 1
    for place in range(first, waiting):
        line[place] = reordered[place]
    return due, known


@unlocked_kernel
def fill_starts(
    futures: Futures, first: int, last: int, wanted: int, scratch: Scratch, starts: Floats
) -> None:
    """Find when jobs start in the futures from ``first`` to before ``last``.

    Parameters
    ----------
    futures
        What is known and drawn.
    first, last
        Which of them.
    wanted
        Only of the first so many jobs the start is asked for; it is over once these have started.
    scratch
        Is worked on.
    starts
        Is given the starts (seconds, infinite for never), shape (futures, jobs).
    """
    jobs = futures.widths.shape[1]
    ends, line = scratch.ends, scratch.line
    heap_time, heap_job = scratch.heap_times, scratch.heap_jobs
    free, blocked = scratch.by_partition[_FREE], scratch.by_partition[_BLOCKED]
    shadow, extra = scratch.by_partition[_SHADOW], scratch.by_partition[_EXTRA]
    due_blocked = scratch.by_partition[_DUE_BLOCKED]
    due_shadow, due_extra = scratch.by_partition[_DUE_SHADOW], scratch.by_partition[_DUE_EXTRA]
    for future in range(first, last):
        ready, runtimes = futures.ready[future], futures.runtimes[future]
        widths, planned = futures.widths[future], futures.planned[future]
        likely = futures.likely[future]
        homes = futures.home[future]
        starts[future] = math.inf
        ends[:jobs] = math.inf
        for home in range(futures.cpus.shape[0]):
            free[home] = futures.cpus[home]
        count = held = 0
        for each in range(futures.running_widths.shape[0]):
            end = max(futures.running_ends[future, each], futures.now)
            ends[jobs + each] = end
            width, home = futures.running_widths[each], futures.running_home[each]
            free[home] -= width
            count = _push(heap_time, heap_job, count, end, jobs + each)
            plan = max(futures.running_planned[each], futures.now)
            held = _plan(scratch, held, plan, width, jobs + each, home)
        waiting = left = 0
        for place in range(jobs):
            job = futures.order[future, place]
            if ready[job] < math.inf and _could_hold(futures.cpus, int(homes[job]), widths[job]):
                line[waiting] = job
                waiting += 1
                left += job < wanted
        now = futures.now
        due = known = 0
        while left:
            if known < futures.by_due.shape[0] and futures.due[futures.by_due[known]] <= now:
                due, known = _let_ahead(futures, scratch, waiting, due, known, starts[future], now)
            soonest = math.inf
            kept = 0
            was_due = due
            blocked[:] = 0.0
            shadow[:] = math.inf
            due_blocked[:] = 0.0
            due_shadow[:] = math.inf
            for place in range(waiting):
                job = line[place]
                line[kept] = job
                kept += 1
                home = int(homes[job])
                first_home, last_home = home, home + 1
                if home == ANYWHERE:
                    first_home, last_home = 0, futures.cpus.shape[0]
                is_open = False
                for each in range(first_home, last_home):
                    is_open = is_open or not _is_closed(futures, scratch, each)
                if not is_open:
                    if ready[job] > now:
                        soonest = min(soonest, ready[job])
                    continue
                since = ready[job]
                for at in range(futures.first_before[job], futures.first_before[job + 1]):
                    since = max(since, ends[futures.before[at]])
                if since > now:
                    soonest = min(soonest, since)
                    continue
                width, end = widths[job], now + planned[job]
                found = -1
                for each in range(first_home, last_home):
                    if found < 0 and width <= futures.cpus[each]:
                        if _starts_in(futures, scratch, each, width, end, now + likely[job]):
                            found = each
                if found < 0:
                    _block(futures, scratch, held, home, width, place < was_due)
                    continue
                due -= place < was_due
                scratch.home[job] = found
                starts[future, job] = now
                ends[job] = now + runtimes[job]
                left -= job < wanted
                kept -= 1
                count = _push(heap_time, heap_job, count, ends[job], job)
                held = _plan(scratch, held, now + planned[job], width, job, found)
            waiting = kept
            soonest = min(soonest, heap_time[0] if count else math.inf)
            while known < futures.by_due.shape[0]:
                job = futures.by_due[known]
                if starts[future, job] == math.inf:
                    soonest = min(soonest, futures.due[job])
                    break
                known += 1
            if soonest == math.inf:
                break
            now = max(now, soonest)
            while count and heap_time[0] <= now:
                job = heap_job[0]
                count = _pop(heap_time, heap_job, count)
                if job < jobs:
                    free[scratch.home[job]] += widths[job]
                else:
                    free[futures.running_home[job - jobs]] += futures.running_widths[job - jobs]
                held = _unplan(scratch, held, job)
