"""Reference schedule of EASY with the same jobs, as far as it can be known while they run.

A schedule by itself, of first come, first served with EASY backfilling and requested times, over a
count of cpus. It takes each job when that may start, and learns its runtime when it has ended in
the run itself. A job that starts here before that runs until its likely end; if it runs in the run
by then, it is expected to run on as long as it has run there, as often as needed, but not beyond
its request. One whose runtime becomes known afterwards ends at once: what is past stays as it was.

Times before a moment are settled by what happened before it, so that neither the order of things
within an instant nor when it is asked makes a difference.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import types

from foresail.kernels import waiting_jobs
from foresail.kernels.compile import bare_kernel, merged_part, part, unlocked_kernel
from foresail.kernels.heaps import drop, move, put
from foresail.kernels.steps import Shares
from foresail.model.distribution import Floats, Integers
from foresail.schedulers.kernels.backfill import shadow_of

CPUS_HELD: Final = 0
SINCE: Final = 1
REQUEST: Final = 2
LIKELY_SECONDS: Final = 3
STARTED: Final = 4
RUNTIME: Final = 5
BEGUN: Final = 6
ENDS: Final = 7
TURN: Final = 8
DUE_SECONDS: Final = 9
LATEST_SECONDS: Final = 10
PLACE: Final = 11
COLUMNS: Final = 12
"""A job's row. In the run: cpus; when it could start; the runtime planned with and the likely one;
when it started, and what it took (nan as long as these are not known; -1 for one that left without
having run). Here: when it starts and is to end (nan before, inf once it has); when it is its turn,
when it is due, and beyond when it should not be put off (nan before); where it is in ``ends``."""

TIME: Final = 0
WHAT: Final = 1
NUMBER: Final = 2
PASSAGE_COLUMNS: Final = 3
ENTERS: Final = 0.0
LEAVES: Final = 1.0
"""A row of the passages that are still to be taken: when (seconds), one of these, and which row."""

WHO: Final = 0
QUEUE_COLUMNS: Final = 4
"""A row of the queue: the row of a job, and as in orders of ``foresail.kernels.waiting_jobs``
behind it, its cpus, its request and its likely runtime, so that many are looked over at once."""

CPUS: Final = 0
FREE: Final = 1
WORK: Final = 2
LONGEST: Final = 3
PATIENCE: Final = 4
BOUND: Final = 5
NUMBERS: Final = 6
"""Cpus, and those that are free; what jobs that wait here are likely to need (cpu-seconds); the
longest wait of those that have started (seconds); the shares of it."""

PASSAGES: Final = 0
TAKEN: Final = 1
WAITING: Final = 2
RUNNING: Final = 3
FOUND: Final = 4
ENTERED: Final = 5
PASSED_OVER: Final = 6
FRONT: Final = 7
GAPS: Final = 8
COUNTERS: Final = 9
"""Counts of passages and of those taken; of jobs that wait and run here; of those that have had
their turn; of those that have entered, where rows are numbered so; of places in front of which none
can start until a job leaves or ends; the place in ``queue`` of the first one that waits, and how
many places between it and the last one are gaps."""

_FEWEST_GAPS: Final = 32
_PLACES_PER_GAP: Final = 8
"""Gaps left in the queue at least, and waiting jobs for which there is one more."""


class ReferenceTables(NamedTuple):
    """The tables of the schedule.

    ``queue`` has those that wait here, in order, from ``FRONT`` on, with gaps; ``releases`` are
    those that run here by request (columns of ``foresail.kernels.waiting_jobs``), ``ends`` a heap
    of them by likely end; ``found`` lists the rows whose turn has come.
    """

    jobs: Floats
    passages: Floats
    queue: Floats
    releases: Floats
    ends: Integers
    found: Integers
    numbers: Floats
    counters: Integers


_M = types.float64[:, ::1]
_I = types.int64[::1]
_T = types.float64[::1, :]
REFERENCE = types.NamedTuple((_M, _M, _T, _M, _I, _I, types.float64[::1], _I), ReferenceTables)


@merged_part
def note(at: ReferenceTables, now: float, what: float, number: int) -> None:
    """Note what happens now; times ascend."""
    row = at.passages[at.counters[PASSAGES]]
    row[TIME] = now
    row[WHAT] = what
    row[NUMBER] = number
    at.counters[PASSAGES] += 1


@part
def _likely_seconds(job: Floats) -> float:
    """Return what a job is likely to take that has not ended."""
    return float(min(job[REQUEST], job[LIKELY_SECONDS]))


@part
def _likely_work(job: Floats) -> float:
    """Cpu-seconds that a job is likely to need."""
    return float(job[CPUS_HELD] * _likely_seconds(job))


@part
def _longest_wait(at: ReferenceTables, now: float) -> float:
    """The longest wait (seconds) of those that have started or are in line, as far as known.

    The first in line has waited so far; the last is likely to wait until the work ahead is done.
    """
    front = at.counters[FRONT]
    first = at.jobs[int(at.queue[front, WHO])]
    last = at.jobs[int(at.queue[front + _places(at.counters) - 1, WHO])]
    ahead = (at.numbers[WORK] - _likely_work(last)) / at.numbers[CPUS]
    return float(max(at.numbers[LONGEST], now - first[SINCE], now - last[SINCE] + ahead))


@part
def _take_turn(at: ReferenceTables, number: int, now: float) -> None:
    """Note that it is a job's turn, and until when others may go first; it is in line."""
    job = at.jobs[number]
    if not math.isnan(job[TURN]):
        return
    job[TURN] = now
    longest = _longest_wait(at, now)
    job[DUE_SECONDS] = math.floor(max(now, job[SINCE] + at.numbers[PATIENCE] * longest)) + 1.0
    job[LATEST_SECONDS] = max(job[DUE_SECONDS], job[SINCE] + at.numbers[BOUND] * longest)
    at.found[at.counters[FOUND]] = number
    at.counters[FOUND] += 1


@merged_part
def _start(at: ReferenceTables, number: int, now: float) -> None:
    job, running = at.jobs[number], at.counters[RUNNING]
    _take_turn(at, number, now)
    at.numbers[WORK] -= _likely_work(job)
    at.numbers[FREE] -= job[CPUS_HELD]
    at.numbers[LONGEST] = max(at.numbers[LONGEST], now - job[SINCE])
    seconds = job[RUNTIME]
    if math.isnan(seconds):
        seconds = _likely_seconds(job)
    job[BEGUN] = now
    job[ENDS] = now + seconds
    waiting_jobs.hold(at.releases, running, now + job[REQUEST], job[CPUS_HELD], number)
    put(at.ends, running, at.jobs, ENDS, PLACE, number)
    at.counters[RUNNING] += 1


@part
def _move_end(at: ReferenceTables, number: int, end: float) -> None:
    """Let a running job end at another time."""
    running = at.counters[RUNNING]
    at.jobs[number, ENDS] = end
    move(at.ends, running, at.jobs, ENDS, PLACE, int(at.jobs[number, PLACE]))


@merged_part
def _leave(at: ReferenceTables, number: int, now: float) -> None:
    """Learn a runtime; one that never ran waits here no more either."""
    job = at.jobs[number]
    gone = math.isnan(job[STARTED])
    job[RUNTIME] = -1.0 if gone else now - job[STARTED]
    if not math.isnan(job[BEGUN]):
        if job[ENDS] != math.inf:
            _move_end(at, number, max(now, job[BEGUN] + job[RUNTIME]))
    elif gone:
        front = at.counters[FRONT]
        for place in range(front, front + _places(at.counters)):
            if at.queue[place, WHO] == number and not waiting_jobs.is_gap(at.queue, WHO, place):
                _leave_gap(at, place)
                at.numbers[WORK] -= _likely_work(job)
        _trim(at)
        at.counters[PASSED_OVER] = 0


@part
def _expect_longer(job: Floats, now: float) -> float:
    """Return when a job that was likely to end now is to end."""
    if not math.isnan(job[RUNTIME]) or math.isnan(job[STARTED]) or job[STARTED] > now:
        return now
    seconds = max(2.0 * (now - job[STARTED]), 1.1 * (now - job[BEGUN]), 60.0)
    return float(max(now, min(job[BEGUN] + job[REQUEST], job[BEGUN] + seconds)))


@merged_part
def _end_jobs(at: ReferenceTables, now: float) -> None:
    """Free what jobs hold that end by now."""
    while at.counters[RUNNING] > 0 and at.jobs[at.ends[0], ENDS] <= now:
        number = at.ends[0]
        job, running = at.jobs[number], at.counters[RUNNING]
        longer = _expect_longer(job, now)
        if longer > now:
            _move_end(at, number, longer)
            continue
        drop(at.ends, running, at.jobs, ENDS, PLACE, number)
        waiting_jobs.let_go(at.releases, running, job[BEGUN] + job[REQUEST], number)
        at.counters[RUNNING] -= 1
        at.numbers[FREE] += job[CPUS_HELD]
        job[ENDS] = math.inf
        at.counters[PASSED_OVER] = 0


@merged_part
def _pass(at: ReferenceTables, now: float) -> None:
    """Start in order; reserve for the head; start others that do not delay it.

    Those that were skipped since room was last freed are again: nothing is more for them.
    """
    jobs, numbers, counters, queue = at.jobs, at.numbers, at.counters, at.queue
    front = counters[FRONT]
    last = front + _places(counters)
    place = front + counters[PASSED_OVER]
    head = int(queue[front, WHO]) if place > front else -1
    shadow, extra = math.inf, 0.0
    while place < last:
        if head >= 0:
            place = waiting_jobs.first_to_fit(
                queue, WHO, place, last, numbers[FREE], now, shadow, extra, math.inf, 0.0
            )
            if place == last:
                break
        if waiting_jobs.is_gap(queue, WHO, place):
            place += 1
            continue
        number = int(queue[place, WHO])
        needed = jobs[number, CPUS_HELD]
        fits = needed <= numbers[FREE]
        if head < 0 and not fits:
            head = number
            _take_turn(at, number, now)
        elif fits and head >= 0:
            if shadow == math.inf:
                shadow, extra = shadow_of(
                    numbers[FREE], jobs[head, CPUS_HELD], at.releases, counters[RUNNING]
                )
                shadow = max(shadow, now + 1.0)  # whatever runs on is about to end
            if now + jobs[number, REQUEST] > shadow:
                fits = needed <= extra
                if fits:
                    extra -= needed
        if fits:
            _start(at, number, now)
            _leave_gap(at, place)
        place += 1
    _trim(at)
    counters[PASSED_OVER] = _places(counters)
    if counters[GAPS] > _FEWEST_GAPS + counters[WAITING] // _PLACES_PER_GAP:
        _close(at)


@part
def _places(counters: Integers) -> int:
    """Return how many places there are from the first that waits to the last, gaps among them."""
    return int(counters[WAITING] + counters[GAPS])


@part
def _leave_gap(at: ReferenceTables, place: int) -> None:
    """Take the job at a place out of the queue."""
    waiting_jobs.leave_gap(at.queue, WHO, place)
    at.counters[WAITING] -= 1
    at.counters[GAPS] += 1


@part
def _trim(at: ReferenceTables) -> None:
    """Let the queue begin and end with jobs."""
    counters = at.counters
    while counters[GAPS] > 0 and waiting_jobs.is_gap(at.queue, WHO, counters[FRONT]):
        counters[FRONT] += 1
        counters[GAPS] -= 1
    while counters[GAPS] > 0 and waiting_jobs.is_gap(
        at.queue, WHO, counters[FRONT] + _places(counters) - 1
    ):
        counters[GAPS] -= 1


@part
def _close(at: ReferenceTables) -> None:
    """Close all gaps."""
    front, passed = at.counters[FRONT], 0
    for place in range(front, front + at.counters[PASSED_OVER]):
        passed += not waiting_jobs.is_gap(at.queue, WHO, place)
    waiting_jobs.close_gaps(at.queue, WHO, front, front + _places(at.counters))
    at.counters[PASSED_OVER], at.counters[GAPS] = passed, 0


@part
def _enter(at: ReferenceTables, number: int) -> None:
    """Put a job behind all that wait."""
    counters = at.counters
    if counters[FRONT] + _places(counters) == len(at.queue):
        for place in range(counters[FRONT]):
            waiting_jobs.leave_gap(at.queue, WHO, place)
        counters[GAPS] += counters[FRONT]
        counters[PASSED_OVER] += counters[FRONT]
        counters[FRONT] = 0
        _close(at)
    job, place = at.jobs[number], at.queue[counters[FRONT] + _places(counters)]
    place[WHO] = number
    place[1:] = job[CPUS_HELD], job[REQUEST], job[LIKELY_SECONDS]
    counters[WAITING] += 1


@part
def _take_passages(at: ReferenceTables, what: float, now: float) -> int:
    """Take the passages of one kind until now; returns the first that is later."""
    row = int(at.counters[TAKEN])
    while row < at.counters[PASSAGES] and at.passages[row, TIME] <= now:
        if at.passages[row, WHAT] == what:
            number = int(at.passages[row, NUMBER])
            if what == LEAVES:
                _leave(at, number, now)
            else:
                if at.counters[WAITING] == 0:
                    at.numbers[WORK] = 0.0  # what was added and taken away again is not always
                _enter(at, number)
                at.numbers[WORK] += _likely_work(at.jobs[number])
        row += 1
    return row


@merged_part
def settle(at: ReferenceTables, now: float) -> None:
    """Settle all that lies before now."""
    counters = at.counters
    while True:
        time = math.inf
        if counters[TAKEN] < counters[PASSAGES]:
            time = at.passages[counters[TAKEN], TIME]
        if counters[RUNNING] > 0:
            time = min(time, at.jobs[at.ends[0], ENDS])
        if not time < now:
            return
        _take_passages(at, LEAVES, time)
        _end_jobs(at, time)
        counters[TAKEN] = _take_passages(at, ENTERS, time)
        if counters[PASSED_OVER] < _places(counters):
            _pass(at, time)


@unlocked_kernel
def settle_before(at: ReferenceTables, now: float) -> None:
    """Call ``settle`` from Python."""
    settle(at, now)


@bare_kernel
def next_turn(at: ReferenceTables) -> float:
    """Return when it may be known next that a job is due which waits in the run (seconds).

    A turn comes when something happens here: what has been noted is taken, or a job is likely to
    end. No job is due then before the first in line of those that wait in the run has been patient,
    and dues are known a second later (see ``_take_turn``).
    """
    taken, passages = at.counters[TAKEN], at.counters[PASSAGES]
    waiting, running = _places(at.counters), at.counters[RUNNING]
    time = at.passages[taken, TIME] if taken < passages else math.inf
    if running > 0:
        time = min(time, at.jobs[at.ends[0], ENDS])
    for i in range(waiting + passages - taken):  # its queue, then what comes to it
        if i < waiting:
            if waiting_jobs.is_gap(at.queue, WHO, at.counters[FRONT] + i):
                continue
            number = int(at.queue[at.counters[FRONT] + i, WHO])
        elif at.passages[taken + i - waiting, WHAT] == ENTERS:
            number = int(at.passages[taken + i - waiting, NUMBER])
        else:
            continue
        job = at.jobs[number]
        if math.isnan(job[TURN]) and math.isnan(job[STARTED]) and math.isnan(job[RUNTIME]):
            patient = job[SINCE] + at.numbers[PATIENCE] * at.numbers[LONGEST]
            return float(math.floor(max(time, patient)) + 1.0)
    return math.inf


def blank_rows(jobs: int) -> Floats:
    """Rows of so many jobs of which nothing is known."""
    return np.full((jobs, COLUMNS), math.nan)


def blank_queue(jobs: int) -> Floats:
    """Room for so many jobs that wait, and one more: a single row would lie in either order."""
    return np.zeros((jobs + 1, QUEUE_COLUMNS), order="F")


def blank_reference(jobs: int, passages: int, cpus: float, shares: Shares) -> ReferenceTables:
    """A machine of so many cpus without jobs, with room for so many, and for so many passages."""
    numbers = np.zeros(NUMBERS)
    numbers[CPUS] = numbers[FREE] = cpus
    numbers[PATIENCE : BOUND + 1] = shares
    return ReferenceTables(
        jobs=blank_rows(jobs),
        passages=np.zeros((passages, PASSAGE_COLUMNS)),
        queue=blank_queue(jobs),
        releases=np.zeros((jobs + 1, waiting_jobs.RELEASE_COLUMNS)),
        ends=np.zeros(jobs + 1, np.int64),
        found=np.zeros(jobs, np.int64),
        numbers=numbers,
        counters=np.zeros(COUNTERS, np.int64),
    )
