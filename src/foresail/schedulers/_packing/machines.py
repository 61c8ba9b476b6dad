"""Machines and what the tasks on them use together, kept from one decision to the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from foresail.schedulers._packing.task_use import TaskUse
from foresail.schedulers.kernels import packing as kernel

Floats = NDArray[np.float64]


class PackedMachines:
    """The distribution of what is used of each machine, as tasks come and go.

    Parameters
    ----------
    capacities
        Of cpus and memory; shape (machines, 2). That of memory is where it evicts.
    bins
        Into how many steps the largest machine is divided.
    seed
        Of the order by lot of machines that are alike in all else.
    """

    def __init__(self, capacities: Floats, bins: int, seed: int = 0) -> None:
        count = len(capacities)
        self.bins = bins
        self.capacities = capacities
        self.steps = np.maximum(capacities.max(axis=0, initial=0.0), 1e-300) / (bins - 1)
        self.table = np.zeros((count, kernel.MACHINE_COLUMNS))
        self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES] = capacities
        self.masses = np.zeros((count, kernel.RESOURCES, bins))
        self.masses[:, :, 0] = 1.0
        self.ranks = np.random.default_rng(seed).permutation(count)
        self._tasks: list[dict[Hashable, TaskUse]] = [{} for _ in range(count)]

    def add(self, machine: int, task: Hashable, use: TaskUse) -> None:
        """A task runs there from now on."""
        self._tasks[machine][task] = use
        self._add(machine, use)

    def remove(self, machine: int, task: Hashable) -> None:
        """A task runs there no more: all others are added up again.

        Taking it off would leave errors that depend on what else came and went: a run that was
        recovered would decide otherwise.
        """
        del self._tasks[machine][task]
        self._make_anew(machine)

    def believe(self, changes: Iterable[tuple[int, Hashable, TaskUse]]) -> None:
        """Something else is believed of tasks that run, each on a machine."""
        changed = set()
        for machine, task, use in changes:
            self._tasks[machine][task] = use
            changed.add(machine)
        for machine in changed:
            self._make_anew(machine)

    def offer(self, up: NDArray[np.bool_]) -> None:
        """Have these machines alone taken into account; shape (machines,)."""
        offered = np.where(up[:, np.newaxis], self.capacities, -1.0)
        self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES] = offered

    def empty(self) -> PackedMachines:
        """The machines that are offered, with nothing on them; others have room for nothing."""
        offered = self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES]
        other = PackedMachines(offered, self.bins)
        other.steps, other.ranks = self.steps, self.ranks
        return other

    def use_of(self, machine: int, task: Hashable) -> TaskUse:
        """What is believed of a task that runs there."""
        return self._tasks[machine][task]

    def tasks_on(self, machine: int) -> Sequence[Hashable]:
        """What runs there, in order of start."""
        return tuple(self._tasks[machine])

    def _make_anew(self, machine: int) -> None:
        """Add up what all tasks of a machine use."""
        row, masses = self.table[machine], self.masses[machine]
        row[kernel.CAPACITY + kernel.RESOURCES :] = 0.0
        masses[:] = 0.0
        masses[:, 0] = 1.0
        for use in self._tasks[machine].values():
            self._add(machine, use)

    def _add(self, machine: int, use: TaskUse) -> None:
        kernel.add_tasks(self.table[machine], self.masses[machine], use.row, use.masses, 1)
