"""Placing jobs on machines: best fit, timed events, and queues that share two arrays."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np

from foresail.kernels.compile import Floats, Integers, bare_kernel, part

Timetable: TypeAlias = Floats
"""A binary heap of jobs by time, then by number: a row with their number, then a row for each of
them with its time and its job, which are numbers like any other to a float64."""

_TIME: Final = 0
_JOB: Final = 1


def timetable(room: int) -> Timetable:
    """An empty timetable with room for so many entries."""
    table = np.empty((max(room, 1) + 1, 2))
    table[0] = 0.0
    return table


@part
def first_time(table: Timetable) -> float:
    """Time of the first entry, infinite without one."""
    return float(table[1, _TIME]) if table[0, 0] > 0.0 else np.inf


@part
def _is_before(table: Timetable, row: int, time: float, job: float) -> bool:
    """True if an entry comes before another."""
    at = table[row, _TIME]
    return bool(at < time or (at == time and table[row, _JOB] < job))


@part
def _set(table: Timetable, row: int, time: float, job: float) -> None:
    table[row, _TIME] = time
    table[row, _JOB] = job


@part
def enter(table: Timetable, time: float, job: int) -> None:
    """Add an entry."""
    number = float(job)
    at = int(table[0, 0]) + 1
    table[0, 0] = at
    while at > 1:
        parent = at >> 1
        if _is_before(table, parent, time, number):
            break
        _set(table, at, table[parent, _TIME], table[parent, _JOB])
        at = parent
    _set(table, at, time, number)


@part
def leave_first(table: Timetable) -> int:
    """Remove the first entry and return its job."""
    found = int(table[1, _JOB])
    size = int(table[0, 0])
    table[0, 0] = size - 1
    time, job = table[size, _TIME], table[size, _JOB]
    at = 1
    while True:
        child = 2 * at
        if child >= size:
            break
        other = child + 1
        if other < size and _is_before(table, other, table[child, _TIME], table[child, _JOB]):
            child = other
        if not _is_before(table, child, time, job):
            break
        _set(table, at, table[child, _TIME], table[child, _JOB])
        at = child
    _set(table, at, time, job)
    return found


class Links(NamedTuple):
    """Pairing heaps of jobs by ``rank``, then by number.

    ``of`` has each job's first child and next sibling, or -1; shape (jobs, 2).
    """

    rank: Floats
    of: Integers


_CHILD: Final = 0
_SIBLING: Final = 1


def links_of(rank: Floats) -> Links:
    """Make links of jobs that are in no heap yet."""
    return Links(rank, np.full((rank.size, 2), -1, np.int64))


@part
def melded(links: Links, one: int, other: int) -> int:
    """Make one heap of two roots (-1 is an empty heap); returns its root."""
    if one < 0:
        return other
    if other < 0:
        return one
    if links.rank[other] < links.rank[one] or (
        links.rank[other] == links.rank[one] and other < one
    ):
        one, other = other, one
    links.of[other, _SIBLING] = links.of[one, _CHILD]
    links.of[one, _CHILD] = other
    return one


@part
def without_root(links: Links, root: int) -> int:
    """Remove the root of a heap; returns the new one, or -1."""
    pairs = -1
    rest = links.of[root, _CHILD]
    while rest >= 0:
        one = rest
        other = links.of[one, _SIBLING]
        if other >= 0:
            rest = links.of[other, _SIBLING]
            links.of[other, _SIBLING] = -1
        else:
            rest = other
        links.of[one, _SIBLING] = -1
        pair = melded(links, one, other)
        links.of[pair, _SIBLING] = pairs
        pairs = pair
    merged = rest  # which is -1; for the constant, Numba would compile ``melded`` once more
    while pairs >= 0:
        following = links.of[pairs, _SIBLING]
        links.of[pairs, _SIBLING] = -1
        merged = melded(links, merged, pairs)
        pairs = following
    return int(merged)


CORES: Final = 0
MEMORY: Final = 1
GPUS: Final = 2
"""Columns of what machines have free, and of what is asked of them: cores; bytes, infinite where
no job asks for memory; thousandths of gpus. All are whole numbers, so that nothing is lost when
they are given back."""


class Machines(NamedTuple):
    """Free capacity of each machine, and the machines by free cores."""

    free: Floats
    """Cores, memory and gpus; shape (machines, 3)."""
    beside: Integers
    """The next and the previous machine with as many free cores, or -1; shape (machines, 2)."""
    first: Integers
    """For each number of free cores, the machine that changed last, or -1; and at the end, the most
    free cores of any machine."""
    most_memory: Floats
    """For each number of free cores, no machine has more memory free than this."""


_AFTER: Final = 0
_BEFORE: Final = 1
_HIGHEST: Final = -1


def machines_of(cores: Integers, memory: Floats, gpus: Floats) -> Machines:
    """Idle machines with these cores, memory and gpus."""
    levels = int(cores.max(initial=0)) + 1
    machines = Machines(
        free=np.stack((cores.astype(np.float64), memory, gpus), axis=1),
        beside=np.full((cores.size, 2), -1, np.int64),
        first=np.full(levels + 1, -1, np.int64),
        most_memory=np.full(levels, -1.0),
    )
    _link_all(machines)
    return machines


@bare_kernel
def _link_all(machines: Machines) -> None:
    for machine in range(machines.free.shape[0]):
        _link(machines, machine)


@part
def highest(machines: Machines) -> int:
    """The most free cores of any machine, -1 without machines."""
    return int(machines.first[_HIGHEST])


@part
def holds(free: Floats, asked: Floats) -> bool:
    """True if there is enough of all."""
    return bool(
        free[CORES] >= asked[CORES] and free[MEMORY] >= asked[MEMORY] and free[GPUS] >= asked[GPUS]
    )


@part
def best_fit(machines: Machines, asked: Floats) -> int:
    """The machine with the fewest free cores that has enough of all; -1 for none.

    Among equals, the one that changed last.
    """
    if machines.free.shape[0] == 1:  # perhaps a pool, with thousands of numbers to look through
        return 0 if holds(machines.free[0], asked) else -1
    for level in range(int(asked[CORES]), machines.first[_HIGHEST] + 1):
        if machines.most_memory[level] < asked[MEMORY]:
            continue
        most = -1.0
        machine = machines.first[level]
        while machine >= 0:
            if holds(machines.free[machine], asked):
                return int(machine)
            most = max(most, machines.free[machine, MEMORY])
            machine = machines.beside[machine, _AFTER]
        machines.most_memory[level] = most
    return -1


@part
def take(machines: Machines, machine: int, asked: Floats, times: float) -> None:
    """Give ``times`` what is asked of a machine to a job; -1 gives it back."""
    level = int(machines.free[machine, CORES])
    before, after = machines.beside[machine, _BEFORE], machines.beside[machine, _AFTER]
    if before >= 0:
        machines.beside[before, _AFTER] = after
    else:
        machines.first[level] = after
    if after >= 0:
        machines.beside[after, _BEFORE] = before
    machines.free[machine, CORES] -= times * asked[CORES]
    machines.free[machine, MEMORY] -= times * asked[MEMORY]
    machines.free[machine, GPUS] -= times * asked[GPUS]
    _link(machines, machine)
    while machines.first[machines.first[_HIGHEST]] < 0:
        machines.first[_HIGHEST] -= 1


@part
def _link(machines: Machines, machine: int) -> None:
    level = int(machines.free[machine, CORES])
    first = machines.first[level]
    machines.beside[machine, _BEFORE] = -1
    machines.beside[machine, _AFTER] = first
    if first >= 0:
        machines.beside[first, _BEFORE] = machine
    machines.first[level] = machine
    machines.first[_HIGHEST] = max(machines.first[_HIGHEST], level)
    machines.most_memory[level] = max(machines.most_memory[level], machines.free[machine, MEMORY])
