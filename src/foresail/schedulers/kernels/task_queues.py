"""Queues of jobs whose tasks start apart: which job's task starts next in a slot that is free.

Queues have thresholds that grow exponentially, and share the slots by weights. Within a queue the
first job that has a task to start gets all that the queue is offered. A job's queue follows from
the seconds that its tasks take together: as estimated before (``enter``), or as it has got so far
(``demote``). While a job is being sampled only its first tasks, the pilots, may start, unless slots
would be idle.

Each call takes logarithmic time in the jobs and linear time in the (few) queues.

Source: Jajoo et al., SLearn (NSDI 2022).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import types

from foresail.kernels.compile import bare_kernel, part
from foresail.kernels.heaps import drop, move, put
from foresail.model.distribution import Floats, Integers

FIRST_THRESHOLD: Final = 0
GROWTH: Final = 1
SAMPLING_QUEUE: Final = 2
BY_SERVICE: Final = 3
BY_DUE: Final = 4
RULE_NUMBERS: Final = 5
"""The rules: seconds at which the first queue ends; how many times longer the next one reaches;
which queue has the jobs that are sampled; 1 if queues follow from the service that jobs have got; 1
if a job that is due at some time waits in its queue as if it had entered it then."""

SUBMITTED: Final = 0
KEY: Final = 1
QUEUE: Final = 2
HEAP: Final = 3
PLACE: Final = 4
READY: Final = 5
LAUNCHED: Final = 6
OPEN: Final = 7
RUNNING: Final = 8
STARTS: Final = 9
SERVED: Final = 10
CROSSES: Final = 11
CROSSING_PLACE: Final = 12
MEANWHILE: Final = 13
DUE: Final = 14
QUEUE_COLUMNS: Final = 15
"""A job's row: when it came; what orders it in its queue, which that is, which heap it is in
(``NOWHERE``, a queue's, or the last one, of sampled jobs with tasks beyond the pilots) and where;
how many of its tasks may start as far as its stages go, how many have started, and how many may
before it has been sampled (infinite: all); how many run, the sum of their starts, and the seconds
of those that have ended; when its service will be too much for its queue, and its place among those
of whom that is expected (``NOWHERE``: it is not); in which queue the others wait once the pilots
have started (``NOWHERE``: in none, until these have ended); when it is due (nan: never), which who
submits it says."""

NOWHERE: Final = -1
_ROUNDING: Final = 1e-9
"""Seconds per second by which the service of jobs is looked at too early."""


class TaskQueues(NamedTuple):
    """The queues, and the jobs in them."""

    rules: Floats
    """Shape (RULE_NUMBERS,)."""
    costs: Floats
    """Cost of a slot for each queue, the inverse of its weight; shape (queues,)."""
    used: Integers
    """Slots charged to each queue; shape (queues,)."""
    waiting: Integers
    """Jobs in each heap: one per queue, one of sampled jobs with tasks beyond the pilots, one of
    jobs that are going to have had too much service; shape (queues + 2,)."""
    heaps: Integers
    """Shape (queues + 2, jobs)."""
    jobs: Floats
    """Shape (jobs, at least QUEUE_COLUMNS)."""


TASK_QUEUES = types.NamedTuple(
    (
        types.float64[::1],
        types.float64[::1],
        types.int64[::1],
        types.int64[::1],
        types.int64[:, ::1],
        types.float64[:, ::1],
    ),
    TaskQueues,
)


def empty_queues(rules: Floats, costs: Floats, jobs: Floats) -> TaskQueues:
    """Queues without jobs, for as many as ``jobs`` has rows."""
    heaps = costs.size + 2
    return TaskQueues(
        rules,
        costs,
        np.zeros(costs.size, dtype=np.int64),
        np.zeros(heaps, dtype=np.int64),
        np.zeros((heaps, len(jobs)), dtype=np.int64),
        jobs,
    )


@bare_kernel
def queue_of(rules: Floats, queues: int, seconds: float) -> int:
    """The queue for so many seconds of tasks; the first if they are unknown (nan).

    A queue reaches from its lower threshold, included, to the next one's.
    """
    queue = 0
    threshold = rules[FIRST_THRESHOLD]
    while seconds >= threshold and queue < queues - 1:
        threshold *= rules[GROWTH]
        queue += 1
    return queue


@part
def _leave(at: TaskQueues, job: int) -> None:
    heap = int(at.jobs[job, HEAP])
    if heap == NOWHERE:
        return
    key = KEY if heap < at.costs.size else SUBMITTED
    drop(at.heaps[heap], at.waiting[heap], at.jobs, key, PLACE, job)
    at.waiting[heap] -= 1
    at.jobs[job, HEAP] = NOWHERE


@part
def _settle(at: TaskQueues, job: int) -> None:
    """Let a job be in the heap that it belongs to now."""
    row = at.jobs[job]
    heap = NOWHERE
    if row[LAUNCHED] < min(row[READY], row[OPEN]):
        heap = int(row[QUEUE])
    elif row[LAUNCHED] < row[READY]:
        heap = at.costs.size
    if heap == int(row[HEAP]):
        return
    _leave(at, job)
    if heap != NOWHERE:
        key = KEY if heap < at.costs.size else SUBMITTED
        put(at.heaps[heap], at.waiting[heap], at.jobs, key, PLACE, job)
        at.waiting[heap] += 1
        row[HEAP] = heap


@part
def enter(at: TaskQueues, job: int, queue: int, now: float) -> None:
    """Let a job wait at the end of a queue, whatever queue it was in."""
    _leave(at, job)
    row = at.jobs[job]
    row[QUEUE] = queue
    row[KEY] = now
    if at.rules[BY_DUE] != 0.0 and not math.isnan(row[DUE]):
        row[KEY] = row[DUE]
    _settle(at, job)


@part
def submit(at: TaskQueues, job: int, queue: int, opened: float, meanwhile: int, now: float) -> None:
    """A job without tasks yet comes into a queue.

    ``opened`` tasks may start for the time being; once they have, the others wait in the queue
    ``meanwhile``, or in none (``NOWHERE``).
    """
    row = at.jobs[job]
    for column in range(DUE):
        row[column] = 0.0
    row[SUBMITTED] = now
    row[HEAP] = NOWHERE
    row[CROSSES] = math.inf
    row[CROSSING_PLACE] = NOWHERE
    row[OPEN] = opened
    row[MEANWHILE] = meanwhile
    enter(at, job, queue, now)


@bare_kernel
def make_ready(at: TaskQueues, job: int, tasks: int) -> None:
    """So many more tasks of a job may start as far as its stages go."""
    at.jobs[job, READY] += tasks
    _settle(at, job)


@part
def end_sampling(at: TaskQueues, job: int, estimate: float, now: float) -> None:
    """All tasks of a job may start, from the queue for its estimated seconds.

    One that waits there already keeps its place.
    """
    row = at.jobs[job]
    queue = queue_of(at.rules, at.costs.size, estimate)
    waits_there = row[OPEN] == math.inf and row[QUEUE] == queue
    row[OPEN] = math.inf
    if not waits_there:
        enter(at, job, queue, now)


@part
def _best_queue(at: TaskQueues) -> int:
    """The queue that a free slot is offered to; NOWHERE if none has a task to start."""
    best = NOWHERE
    least = math.inf
    for queue in range(at.costs.size):
        if at.waiting[queue] > 0:
            share = at.used[queue] * at.costs[queue]
            if best == NOWHERE or share < least:
                best, least = queue, share
    return best


@part
def offered(at: TaskQueues) -> tuple[int, int]:
    """The job whose next task is to start in a free slot, and the queue it would be charged to.

    NOWHERE, twice, if no task may start.
    """
    queue = _best_queue(at)
    if queue != NOWHERE:
        return at.heaps[queue, 0], queue
    beyond = at.costs.size
    if at.waiting[beyond] == 0:
        return NOWHERE, NOWHERE
    return at.heaps[beyond, 0], int(at.rules[SAMPLING_QUEUE])


@bare_kernel
def launch(at: TaskQueues, job: int, queue: int, now: float) -> int:
    """Start the next task of a job, charged to a queue; the how manieth of the job's it is."""
    row = at.jobs[job]
    place = int(row[LAUNCHED])
    row[LAUNCHED] += 1.0
    row[RUNNING] += 1.0
    row[STARTS] += now
    at.used[queue] += 1
    if row[LAUNCHED] == row[OPEN] and row[MEANWHILE] != NOWHERE:
        row[OPEN] = math.inf
        enter(at, job, int(row[MEANWHILE]), now)
    else:
        _settle(at, job)
    if at.rules[BY_SERVICE] != 0.0:
        _expect(at, job, now)
    return place


@part
def end_task(at: TaskQueues, job: int, queue: int, start: float, now: float) -> None:
    """A task of a job has ended that was charged to a queue."""
    at.used[queue] -= 1
    row = at.jobs[job]
    row[RUNNING] -= 1.0
    row[STARTS] = row[STARTS] - start if row[RUNNING] > 0.0 else 0.0
    row[SERVED] += now - start
    if at.rules[BY_SERVICE] != 0.0:
        _expect(at, job, now)


@part
def _service(row: Floats, now: float) -> float:
    """Seconds that a job's tasks have run, those that still run included."""
    return float(row[SERVED] + (row[RUNNING] * now - row[STARTS]))


@part
def _expect(at: TaskQueues, job: int, now: float) -> None:
    """Note when a job will have had too much service for its queue."""
    row = at.jobs[job]
    expected = at.costs.size + 1
    if row[CROSSING_PLACE] != NOWHERE:
        drop(at.heaps[expected], at.waiting[expected], at.jobs, CROSSES, CROSSING_PLACE, job)
        at.waiting[expected] -= 1
        row[CROSSING_PLACE] = NOWHERE
    queue = int(row[QUEUE])
    if queue == at.costs.size - 1:
        return
    limit = at.rules[FIRST_THRESHOLD]
    for _ in range(queue):
        limit *= at.rules[GROWTH]
    if _service(row, now) >= limit:
        row[CROSSES] = now
    elif row[RUNNING] > 0.0:
        row[CROSSES] = (limit - row[SERVED] + row[STARTS]) / row[RUNNING]
    else:
        return
    put(at.heaps[expected], at.waiting[expected], at.jobs, CROSSES, CROSSING_PLACE, job)
    at.waiting[expected] += 1


@bare_kernel
def demote(at: TaskQueues, now: float) -> None:
    """Let every job that has had too much service for its queue wait in the one for it.

    Only if a task waits: what happens when there is nothing to decide changes no order.
    """
    expected = at.costs.size + 1
    if at.rules[BY_SERVICE] == 0.0 or _best_queue(at) == NOWHERE:
        return
    soon = now + _ROUNDING * max(1.0, abs(now))
    while at.waiting[expected] > 0:
        job = at.heaps[expected, 0]
        if at.jobs[job, CROSSES] > soon:
            return
        queue = queue_of(at.rules, at.costs.size, _service(at.jobs[job], now))
        if queue > at.jobs[job, QUEUE]:
            enter(at, job, queue, now)
            _expect(at, job, now)
        else:  # rounding: looked at again at the next instant after this one
            at.jobs[job, CROSSES] = np.nextafter(soon, math.inf)
            move(at.heaps[expected], at.waiting[expected], at.jobs, CROSSES, CROSSING_PLACE, 0)
