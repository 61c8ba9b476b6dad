"""The plan of a queue in which no job overtakes and all runtimes are known: it is only extended.

A later job changes nothing for those that wait, so that a job's start follows from what the
plan leaves free behind the last of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels.placing import Machines, best_fit, machines_of, take
from foresail.kernels.compile import Floats, Integers, part


class MachinePlan(NamedTuple):
    """The machines as they will be when the last job of the queue has started, or left."""

    runtime: Floats
    """Seconds by job that it runs for."""
    wait: Floats
    """Seconds by job that it was said to wait for when it came, infinite where that is beyond what
    its policy asks for; NaN where it was not asked."""
    until: Floats
    """One number: when the last job starts or leaves."""
    machines: Machines
    machine: Integers
    """Machines and what is free on them then, and where each job runs."""
    ends: Floats
    span: Integers
    """Times at which jobs end and those jobs, by time and then by number: the rows from ``span[0]``
    to before ``span[1]``."""
    more: Floats
    """By machine, to add up what ends to what is free; shape (machines, 3)."""


_TIME: Final = 0
_JOB: Final = 1


def empty_plan(runtime: Floats, cores: Integers, memory: Floats, gpus: Floats) -> MachinePlan:
    """No job waits yet, and the machines with these cores, memory and gpus are idle."""
    count = runtime.size
    room = 2 * min(count, int(cores.sum())) + 4
    return MachinePlan(
        runtime=runtime,
        wait=np.full(count, np.nan),
        until=np.full(1, -np.inf),
        machines=machines_of(cores, memory, gpus),
        machine=np.empty(count, np.int64),
        ends=np.empty((room, 2)),
        span=np.full(2, room // 2),
        more=np.zeros((cores.size, 3)),
    )


@part
def catch_up(now: float, shape: NDArray[np.int32], asked: Floats, plan: MachinePlan) -> None:
    """Bring a plan for which no job waits to the present.

    As in all of these, ``shape`` is each job's row in ``asked``.
    """
    while plan.span[0] < plan.span[1] and plan.ends[plan.span[0], _TIME] <= now:
        _end_first(shape, asked, plan)
    plan.until[0] = now


@part
def start_behind(
    own: Floats, latest: float, shape: NDArray[np.int32], asked: Floats, plan: MachinePlan
) -> float:
    """Start of a job that asks for ``own`` if it were the last in the queue.

    Infinite if that is after ``latest``. The plan remains as it is.
    """
    if plan.until[0] > latest:
        return np.inf
    if best_fit(plan.machines, own) >= 0:
        return float(plan.until[0])
    begins = np.inf
    at = plan.span[0]
    while at < plan.span[1] and plan.ends[at, _TIME] <= latest:
        job = int(plan.ends[at, _JOB])
        on = plan.machine[job]
        at += 1
        for column in range(plan.more.shape[1]):
            plan.more[on, column] += asked[shape[job], column]
        if _holds_then(plan, on, own):
            begins = plan.ends[at - 1, _TIME]
            break
    # What was added up to find out is taken off again.
    for row in range(plan.span[0], at):
        on = plan.machine[int(plan.ends[row, _JOB])]
        for column in range(plan.more.shape[1]):
            plan.more[on, column] = 0.0
    return float(begins)


@part
def _holds_then(plan: MachinePlan, on: int, own: Floats) -> bool:
    """True if a machine has enough of all together with what ends on it."""
    for column in range(plan.more.shape[1]):
        if plan.machines.free[on, column] + plan.more[on, column] < own[column]:
            return False
    return True


@part
def extend(
    job: int, leaving: float, shape: NDArray[np.int32], asked: Floats, plan: MachinePlan
) -> None:
    """Add a job that starts as soon as it can, or else leaves at ``leaving``."""
    if leaving < plan.until[0]:
        return
    own, ends, span = asked[shape[job]], plan.ends, plan.span
    while True:
        on = best_fit(plan.machines, own)
        if on >= 0:
            take(plan.machines, on, own, 1.0)
            plan.machine[job] = on
            _enter(plan, plan.until[0] + plan.runtime[job], float(job))
            return
        if span[0] == span[1] or ends[span[0], _TIME] > leaving:
            plan.until[0] = leaving
            return
        now = ends[span[0], _TIME]
        plan.until[0] = now
        while span[0] < span[1] and ends[span[0], _TIME] == now:
            _end_first(shape, asked, plan)


@part
def _end_first(shape: NDArray[np.int32], asked: Floats, plan: MachinePlan) -> None:
    job = int(plan.ends[plan.span[0], _JOB])
    plan.span[0] += 1
    take(plan.machines, plan.machine[job], asked[shape[job]], -1.0)


@part
def _enter(plan: MachinePlan, time: float, job: float) -> None:
    """Put an end into its place, by moving those on the shorter side of it."""
    ends, span = plan.ends, plan.span
    if span[0] == 0 or span[1] == ends.shape[0]:
        _move(ends, span, (ends.shape[0] - (span[1] - span[0])) >> 1)
    first, last = span[0], span[1]
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        at = ends[middle, _TIME]
        if at < time or (at == time and ends[middle, _JOB] < job):
            low = middle + 1
        else:
            high = middle
    # The ends lie in the middle of a longer array, so that either side can move by one.
    if low - first < last - low:
        for row in range(first, low):
            ends[row - 1, _TIME] = ends[row, _TIME]
            ends[row - 1, _JOB] = ends[row, _JOB]
        span[0] = first - 1
        low -= 1
    else:
        for row in range(last, low, -1):
            ends[row, _TIME] = ends[row - 1, _TIME]
            ends[row, _JOB] = ends[row - 1, _JOB]
        span[1] = last + 1
    ends[low, _TIME] = time
    ends[low, _JOB] = job


@part
def _move(ends: Floats, span: Integers, begin: int) -> None:
    """Move all to the middle of the rows, which are twice as many as ever run at once."""
    first, count = span[0], span[1] - span[0]
    for k in range(count):
        row = k if begin < first else count - 1 - k
        ends[begin + row, _TIME] = ends[first + row, _TIME]
        ends[begin + row, _JOB] = ends[first + row, _JOB]
    span[0] = begin
    span[1] = begin + count
