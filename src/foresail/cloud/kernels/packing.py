"""Best fit of jobs onto machines: a list of machines for every number of free cores."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part

CORES: Final = 0
MEMORY: Final = 1
GPUS: Final = 2
"""Columns of what machines have free, and of what is asked of them: cores; bytes, infinite where
no job asks for memory; thousandths of gpus. All are whole numbers, so that nothing is lost when
they are given back."""


class Machines(NamedTuple):
    """What is free on each machine, and the machines by free cores."""

    free: NDArray[np.float64]
    """Cores, memory and gpus; shape (machines, 3)."""
    beside: NDArray[np.int64]
    """The next and the previous machine with as many free cores, or -1; shape (machines, 2)."""
    first: NDArray[np.int64]
    """For each number of free cores, the machine that changed last, or -1; and at the end, the most
    free cores of any machine."""
    most_memory: NDArray[np.float64]
    """For each number of free cores, no machine has more memory free than this."""


_AFTER: Final = 0
_BEFORE: Final = 1
_HIGHEST: Final = -1


def machines_of(
    cores: NDArray[np.int64], memory: NDArray[np.float64], gpus: NDArray[np.float64]
) -> Machines:
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
def holds(free: NDArray[np.float64], asked: NDArray[np.float64]) -> bool:
    """Whether there is enough of all."""
    return bool(
        free[CORES] >= asked[CORES] and free[MEMORY] >= asked[MEMORY] and free[GPUS] >= asked[GPUS]
    )


@part
def best_fit(machines: Machines, asked: NDArray[np.float64]) -> int:
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
def take(machines: Machines, machine: int, asked: NDArray[np.float64], times: float) -> None:
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
