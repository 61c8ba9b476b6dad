"""Forecast waits if no other job came: the schedule, simulated forward from beliefs."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels.placing import (
    CORES,
    Machines,
    Timetable,
    best_fit,
    enter,
    entries,
    first_time,
    highest,
    leave_first,
    machines_of,
    take,
    timetable,
)
from foresail.kernels.compile import part

QUEUED: Final = 8
"""A job whose place has this code or a higher one is waiting."""


class Forecaster(NamedTuple):
    """Inputs and working arrays of forecasts; the simulation itself reads only ``wait``."""

    runtime: NDArray[np.float64]
    """Seconds by job that it is believed to run for."""
    wait: NDArray[np.float64]
    """Seconds by job that it was said to wait for when it came, infinite where that is beyond what
    its policy asks for; NaN where it was not asked."""
    leaving: NDArray[np.float64]
    """By waiting job: when its patience is over."""
    line: NDArray[np.int64]
    standing: NDArray[np.int64]
    """Jobs by their order in the queue, and how many: all that wait, and some that did."""
    lane: NDArray[np.int64]
    head: NDArray[np.int64]
    last: NDArray[np.int64]
    """The waiting jobs' places in the line, request by request: those of each that are left lie
    from its ``head`` to before its ``last``."""
    machines: Machines
    machine: NDArray[np.int64]
    ends: Timetable
    """The machines ahead: their state, where each job runs, and when it is believed to end."""


def forecaster(
    runtime: NDArray[np.float64],
    shapes: int,
    cores: NDArray[np.int64],
    memory: NDArray[np.float64],
    gpus: NDArray[np.float64],
) -> Forecaster:
    """One for jobs of these believed runtimes, so many distinct requests, and these machines."""
    count = runtime.size
    return Forecaster(
        runtime=runtime,
        wait=np.full(count, np.nan),
        leaving=np.empty(count),
        line=np.empty(count + 1, np.int64),
        standing=np.zeros(1, np.int64),
        lane=np.empty(count + 1, np.int64),
        head=np.empty(shapes, np.int64),
        last=np.empty(shapes, np.int64),
        machines=machines_of(cores, memory, gpus),
        machine=np.empty(count, np.int64),
        ends=timetable(min(count, int(cores.sum()))),
    )


@part
def join_line(job: int, leaving: float, rank: NDArray[np.float64], ahead: Forecaster) -> int:
    """Put a job into the line, by rank and then number; returns its place."""
    at = ahead.standing[0]
    ahead.standing[0] = at + 1
    ahead.leaving[job] = leaving
    while at > 0:
        other = ahead.line[at - 1]
        if rank[other] < rank[job] or (rank[other] == rank[job] and other < job):
            break
        ahead.line[at] = other
        at -= 1
    ahead.line[at] = job
    return int(at)


@part
def forecast(
    job: int,
    now: float,
    limit: float,
    strict: bool,
    rank: NDArray[np.float64],
    shape: NDArray[np.int32],
    asked: NDArray[np.float64],
    place: NDArray[np.int8],
    start: NDArray[np.float64],
    machine: NDArray[np.int64],
    machines: Machines,
    running: Timetable,
    ahead: Forecaster,
) -> float:
    """Seconds that a job which finds no machine would wait; infinite beyond ``limit``.

    What runs for longer than believed is taken to end any moment. Jobs in the queue leave when
    their patience is over. Jobs that are being tried elsewhere do not come back.

    ``rank`` orders the queue; ``shape`` is each job's row in ``asked``; ``place``, ``start``,
    ``machine``, ``machines`` and ``running`` are the simulation's state.
    """
    _drop_gone(place, ahead)
    _look_ahead(now, start, machine, machines, running, ahead)
    at = join_line(job, np.inf, rank, ahead)
    if strict:
        begins = _begin_in_order(job, now, now + limit, shape, asked, ahead)
    else:
        _sort_lanes(shape, ahead)
        begins = _begin_overtaking(job, now + limit, shape, asked, ahead)
    # The job was only tried in the line: what it is to do is not decided yet.
    ahead.standing[0] -= 1
    for k in range(at, ahead.standing[0]):
        ahead.line[k] = ahead.line[k + 1]
    return begins - now


@part
def _drop_gone(place: NDArray[np.int8], ahead: Forecaster) -> None:
    """Leave only those in the line that still wait."""
    kept = 0
    for k in range(ahead.standing[0]):
        job = ahead.line[k]
        if place[job] >= QUEUED:
            ahead.line[kept] = job
            kept += 1
    ahead.standing[0] = kept


@part
def _look_ahead(
    now: float,
    start: NDArray[np.float64],
    machine: NDArray[np.int64],
    machines: Machines,
    running: Timetable,
    ahead: Forecaster,
) -> None:
    """Begin with the machines as they are, and the believed ends of what runs there."""
    _copy(machines, ahead.machines)
    ahead.ends[0, 0] = 0.0
    for row in range(1, entries(running) + 1):
        job = int(running[row, 1])
        ahead.machine[job] = machine[job]
        enter(ahead.ends, max(start[job] + ahead.runtime[job], now), job)


@part
def _copy(source: Machines, target: Machines) -> None:
    for machine in range(source.free.shape[0]):
        for column in range(source.free.shape[1]):
            target.free[machine, column] = source.free[machine, column]
        target.beside[machine, 0] = source.beside[machine, 0]
        target.beside[machine, 1] = source.beside[machine, 1]
    for level in range(source.first.size):
        target.first[level] = source.first[level]
    for level in range(source.most_memory.size):
        target.most_memory[level] = source.most_memory[level]


@part
def _start_ahead(
    job: int, on: int, now: float, asked: NDArray[np.float64], ahead: Forecaster
) -> None:
    take(ahead.machines, on, asked, 1.0)
    ahead.machine[job] = on
    enter(ahead.ends, now + ahead.runtime[job], job)


@part
def _end_ahead(
    now: float,
    shape: NDArray[np.int32],
    asked: NDArray[np.float64],
    ahead: Forecaster,
) -> None:
    """Release what ends at this instant."""
    while first_time(ahead.ends) == now:
        job = leave_first(ahead.ends)
        take(ahead.machines, ahead.machine[job], asked[shape[job]], -1.0)


@part
def _begin_in_order(
    job: int,
    now: float,
    latest: float,
    shape: NDArray[np.int32],
    asked: NDArray[np.float64],
    ahead: Forecaster,
) -> float:
    """Start of a job in the line if none overtakes; infinite if that is after ``latest``."""
    at = 0
    while True:
        first = ahead.line[at]
        # Its patience is over before its turn comes.
        if ahead.leaving[first] < now:
            at += 1
            continue
        kind = asked[shape[first]]
        on = best_fit(ahead.machines, kind)
        if on >= 0:
            if first == job:
                return now
            _start_ahead(first, on, now, kind, ahead)
            at += 1
            continue
        release = first_time(ahead.ends)
        now = min(release, ahead.leaving[first])
        if now == np.inf or now > latest:
            return np.inf
        if release == now:
            _end_ahead(now, shape, asked, ahead)
        else:
            at += 1


@part
def _sort_lanes(shape: NDArray[np.int32], ahead: Forecaster) -> None:
    """A lane for each request, in the order of the line."""
    head, last = ahead.head, ahead.last
    for kind in range(head.size):
        last[kind] = 0
    for k in range(ahead.standing[0]):
        last[shape[ahead.line[k]]] += 1
    total = 0
    for kind in range(head.size):
        head[kind] = total
        total += last[kind]
        last[kind] = head[kind]
    for k in range(ahead.standing[0]):
        kind = shape[ahead.line[k]]
        ahead.lane[last[kind]] = k
        last[kind] += 1


@part
def _begin_overtaking(
    job: int,
    latest: float,
    shape: NDArray[np.int32],
    asked: NDArray[np.float64],
    ahead: Forecaster,
) -> float:
    """Start of a job in the line if the first that fits goes; infinite if after ``latest``."""
    while entries(ahead.ends) > 0:
        now = first_time(ahead.ends)
        if now > latest:
            break
        _end_ahead(now, shape, asked, ahead)
        while True:
            chosen, on = _first_that_fits(now, asked, ahead)
            if on < 0:
                break
            if chosen == job:
                return now
            kind = shape[chosen]
            ahead.head[kind] += 1
            _start_ahead(chosen, on, now, asked[kind], ahead)
    return np.inf


@part
def _first_that_fits(now: float, asked: NDArray[np.float64], ahead: Forecaster) -> tuple[int, int]:
    """The first job in the line for which a machine has room, and that machine; -1 if none."""
    best = ahead.standing[0]
    on = -1
    for kind in range(asked.shape[0]):
        if asked[kind, CORES] > highest(ahead.machines):
            break
        head, last = ahead.head[kind], ahead.last[kind]
        while head < last and ahead.leaving[ahead.line[ahead.lane[head]]] < now:
            head += 1
        ahead.head[kind] = head
        if head == last or ahead.lane[head] > best:
            continue
        machine = best_fit(ahead.machines, asked[kind])
        if machine >= 0:
            best, on = ahead.lane[head], machine
    return (ahead.line[best] if on >= 0 else -1), on
