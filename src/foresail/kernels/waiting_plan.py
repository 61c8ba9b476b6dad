"""The plan of a queue in which nobody overtakes and all runtimes are known: it is only extended.

Who comes later changes nothing for those who wait, so that a job's start follows from what the
plan leaves free behind the last of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part
from foresail.kernels.packing import Machines, best_fit, machines_of, take


class Ends(NamedTuple):
    """Jobs by the time they end, then by number: those from ``span[0]`` to before ``span[1]``."""

    times: NDArray[np.float64]
    jobs: NDArray[np.int32]
    span: NDArray[np.int64]


class Plan(NamedTuple):
    """The machines as they will be when the last job of the queue has started, or left.

    Parameters
    ----------
    runtime
        Seconds by job that it runs for.
    wait
        Seconds by job that it was said to wait for when it came, infinite where that is beyond
        what its policy asks for; NaN where nobody asked.
    until
        One number: when the last job starts or leaves.
    machines, machine, ends
        What is free then, where each job runs, and when those that still do will end.
    more_cores, more_memory, more_gpus
        By machine, to add up what ends: zero between the calls.
    """

    runtime: NDArray[np.float64]
    wait: NDArray[np.float64]
    until: NDArray[np.float64]
    machines: Machines
    machine: NDArray[np.int32]
    ends: Ends
    more_cores: NDArray[np.int64]
    more_memory: NDArray[np.float64]
    more_gpus: NDArray[np.float64]


def empty_plan(
    runtime: NDArray[np.float64],
    cores: NDArray[np.int64],
    memory: NDArray[np.float64],
    gpus: NDArray[np.float64],
) -> Plan:
    """Nobody waits yet, and the machines with these cores, memory and gpus are idle."""
    count = runtime.size
    room = 2 * min(count, int(cores.sum())) + 4
    return Plan(
        runtime=runtime,
        wait=np.full(count, np.nan),
        until=np.full(1, -np.inf),
        machines=machines_of(cores, memory, gpus),
        machine=np.empty(count, np.int32),
        ends=Ends(np.empty(room), np.empty(room, np.int32), np.full(2, room // 2)),
        more_cores=np.zeros(cores.size, np.int64),
        more_memory=np.zeros(cores.size),
        more_gpus=np.zeros(cores.size),
    )


@part
def catch_up(
    now: float,
    shape: NDArray[np.int32],
    cores: NDArray[np.int64],
    memory: NDArray[np.float64],
    gpus: NDArray[np.float64],
    plan: Plan,
) -> None:
    """Bring a plan for which nobody waits to the present.

    As in all of these, ``shape`` is each job's row in ``cores``, ``memory`` and ``gpus``.
    """
    ends = plan.ends
    while ends.span[0] < ends.span[1] and ends.times[ends.span[0]] <= now:
        _end_first(shape, cores, memory, gpus, plan)
    plan.until[0] = now


@part
def start_behind(
    kind: int,
    latest: float,
    shape: NDArray[np.int32],
    cores: NDArray[np.int64],
    memory: NDArray[np.float64],
    gpus: NDArray[np.float64],
    plan: Plan,
) -> float:
    """When a job with the request ``kind`` would start if it were the last in the queue.

    Infinite if that is after ``latest``. The plan remains as it is.
    """
    if plan.until[0] > latest:
        return np.inf
    machines, ends = plan.machines, plan.ends
    if best_fit(machines, cores[kind], memory[kind], gpus[kind]) >= 0:
        return float(plan.until[0])
    begins = np.inf
    at = ends.span[0]
    while at < ends.span[1] and ends.times[at] <= latest:
        job = ends.jobs[at]
        on, other = plan.machine[job], shape[job]
        plan.more_cores[on] += cores[other]
        plan.more_memory[on] += memory[other]
        plan.more_gpus[on] += gpus[other]
        at += 1
        if (
            machines.free_cores[on] + plan.more_cores[on] >= cores[kind]
            and machines.free_memory[on] + plan.more_memory[on] >= memory[kind]
            and machines.free_gpus[on] + plan.more_gpus[on] >= gpus[kind]
        ):
            begins = ends.times[at - 1]
            break
    for k in range(ends.span[0], at):
        on = plan.machine[ends.jobs[k]]
        plan.more_cores[on] = 0
        plan.more_memory[on] = 0.0
        plan.more_gpus[on] = 0.0
    return float(begins)


@part
def extend(
    job: int,
    leaving: float,
    shape: NDArray[np.int32],
    cores: NDArray[np.int64],
    memory: NDArray[np.float64],
    gpus: NDArray[np.float64],
    plan: Plan,
) -> None:
    """Add a job that starts as soon as it can, or else leaves at ``leaving``."""
    if leaving < plan.until[0]:
        return
    kind, ends = shape[job], plan.ends
    while True:
        on = best_fit(plan.machines, cores[kind], memory[kind], gpus[kind])
        if on >= 0:
            take(plan.machines, on, cores[kind], memory[kind], gpus[kind])
            plan.machine[job] = on
            _enter(ends, plan.until[0] + plan.runtime[job], job)
            return
        if ends.span[0] == ends.span[1] or ends.times[ends.span[0]] > leaving:
            plan.until[0] = leaving
            return
        now = ends.times[ends.span[0]]
        plan.until[0] = now
        while ends.span[0] < ends.span[1] and ends.times[ends.span[0]] == now:
            _end_first(shape, cores, memory, gpus, plan)


@part
def _end_first(
    shape: NDArray[np.int32],
    cores: NDArray[np.int64],
    memory: NDArray[np.float64],
    gpus: NDArray[np.float64],
    plan: Plan,
) -> None:
    ends = plan.ends
    job = ends.jobs[ends.span[0]]
    ends.span[0] += 1
    kind = shape[job]
    take(plan.machines, plan.machine[job], -cores[kind], -memory[kind], -gpus[kind])


@part
def _enter(ends: Ends, time: float, job: int) -> None:
    """Put an end into its place, by moving those on the shorter side of it."""
    times, jobs = ends.times, ends.jobs
    if ends.span[0] == 0 or ends.span[1] == times.size:
        _centre(ends)
    first, last = ends.span[0], ends.span[1]
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time or (times[middle] == time and jobs[middle] < job):
            low = middle + 1
        else:
            high = middle
    if low - first < last - low:
        for k in range(first, low):
            times[k - 1] = times[k]
            jobs[k - 1] = jobs[k]
        ends.span[0] = first - 1
        low -= 1
    else:
        for k in range(last, low, -1):
            times[k] = times[k - 1]
            jobs[k] = jobs[k - 1]
        ends.span[1] = last + 1
    times[low] = time
    jobs[low] = job


@part
def _centre(ends: Ends) -> None:
    """Move all to the middle of the arrays, which hold twice as many as ever run at once."""
    times, jobs = ends.times, ends.jobs
    first, last = ends.span[0], ends.span[1]
    begin = (times.size - (last - first)) >> 1
    if begin < first:
        for k in range(last - first):
            times[begin + k] = times[first + k]
            jobs[begin + k] = jobs[first + k]
    else:
        for k in range(last - first - 1, -1, -1):
            times[begin + k] = times[first + k]
            jobs[begin + k] = jobs[first + k]
    ends.span[0] = begin
    ends.span[1] = begin + last - first
