"""Best fit of jobs onto machines: a list of machines for every number of free cores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part


class Machines(NamedTuple):
    """What is free on each machine, and the machines by free cores.

    ``first[c]`` is the machine with ``c`` free cores that changed last (-1 for none), ``after`` and
    ``before`` its neighbours in that list. ``highest[0]`` is the most free cores of any machine.
    No machine with ``c`` free cores has more memory free than ``most_memory[c]``.
    Memory is in bytes, and infinite where nobody asks for it; gpus are in thousandths. Both are
    whole numbers, so that nothing is lost when they are given back.
    """

    free_cores: NDArray[np.int64]
    free_memory: NDArray[np.float64]
    free_gpus: NDArray[np.float64]
    first: NDArray[np.int64]
    after: NDArray[np.int64]
    before: NDArray[np.int64]
    highest: NDArray[np.int64]
    most_memory: NDArray[np.float64]


def machines_of(
    cores: NDArray[np.int64], memory: NDArray[np.float64], gpus: NDArray[np.float64]
) -> Machines:
    """Idle machines with these cores, memory and gpus."""
    count = cores.size
    machines = Machines(
        free_cores=cores.copy(),
        free_memory=memory.copy(),
        free_gpus=gpus.copy(),
        first=np.full(int(cores.max(initial=0)) + 1, -1, dtype=np.int64),
        after=np.full(count, -1, dtype=np.int64),
        before=np.full(count, -1, dtype=np.int64),
        highest=np.array([-1], dtype=np.int64),
        most_memory=np.full(int(cores.max(initial=0)) + 1, -1.0),
    )
    _link_all(machines)
    return machines


@bare_kernel
def _link_all(machines: Machines) -> None:
    for machine in range(machines.free_cores.size):
        _link(machines, machine)


@part
def best_fit(machines: Machines, cores: int, memory: float, gpus: float) -> int:
    """The machine with the fewest free cores that has enough of all; -1 for none.

    Among equals, the one that changed last.
    """
    if machines.free_cores.size == 1:  # perhaps a pool, with thousands of numbers to look through
        holds = (
            machines.free_cores[0] >= cores
            and machines.free_memory[0] >= memory
            and machines.free_gpus[0] >= gpus
        )
        return 0 if holds else -1
    for level in range(cores, machines.highest[0] + 1):
        if machines.most_memory[level] < memory:
            continue
        most = -1.0
        machine = machines.first[level]
        while machine >= 0:
            free = machines.free_memory[machine]
            if free >= memory and machines.free_gpus[machine] >= gpus:
                return int(machine)
            most = max(most, free)
            machine = machines.after[machine]
        machines.most_memory[level] = most
    return -1


@part
def take(machines: Machines, machine: int, cores: int, memory: float, gpus: float) -> None:
    """Give cores, memory and gpus of a machine to a job; negative amounts give them back."""
    level = machines.free_cores[machine]
    before, after = machines.before[machine], machines.after[machine]
    if before >= 0:
        machines.after[before] = after
    else:
        machines.first[level] = after
    if after >= 0:
        machines.before[after] = before
    machines.free_cores[machine] = level - cores
    machines.free_memory[machine] -= memory
    machines.free_gpus[machine] -= gpus
    _link(machines, machine)
    while machines.first[machines.highest[0]] < 0:
        machines.highest[0] -= 1


@part
def _link(machines: Machines, machine: int) -> None:
    level = machines.free_cores[machine]
    first = machines.first[level]
    machines.before[machine] = -1
    machines.after[machine] = first
    if first >= 0:
        machines.before[first] = machine
    machines.first[level] = machine
    machines.highest[0] = max(machines.highest[0], level)
    machines.most_memory[level] = max(machines.most_memory[level], machines.free_memory[machine])
