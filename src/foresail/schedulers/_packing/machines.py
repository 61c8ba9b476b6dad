"""Use of a task on the steps that packing counts in, and machines with the tasks on them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from foresail.distributions.discretisation import Atoms, atoms_of, bin_onto_nodes
from foresail.model.arrays import Booleans, Floats
from foresail.model.distribution import Distribution
from foresail.schedulers.kernels import packing as kernel
from foresail.schedulers.kernels.packing import TaskUse

_NODES: Final = 17
_ROUNDING: Final = 1e-9


def task_use(
    cpus: Distribution, memory_bytes: Distribution, cpu_request: float, steps: Floats, bins: int
) -> TaskUse:
    """Lay out the belief about a task's use, each probability shared by the steps around its value.

    The expected use is kept, but for what lies beyond the largest machine: a task that runs at all
    uses no more than all of it. Otherwise one that may use so much would fit nowhere, ever.

    Parameters
    ----------
    cpus, memory_bytes
        Beliefs about its use.
    cpu_request
        What it asked for: shares of cpus are in proportion to it.
    steps
        Of cpus and of memory.
    bins
        How many steps an excess over the least use may have.
    """
    use = TaskUse(np.zeros(kernel.TASK_COLUMNS), np.zeros((kernel.RESOURCES, bins)))
    use.row[kernel.TASK_REQUEST] = cpu_request
    for resource, belief in ((kernel.CPU, cpus), (kernel.MEMORY, memory_bytes)):
        atoms = atoms_of(belief, _NODES)
        believe_atoms(use, resource, atoms.values, atoms.masses, steps)
    return use


def believe_atoms(
    use: TaskUse, resource: int, amounts: Floats, probabilities: Floats, steps: Floats
) -> None:
    """Replace what is believed of one resource by some amounts, in ascending order."""
    values = np.minimum(amounts, (use.masses.shape[1] - 1) * steps[resource])
    atoms, least = Atoms(values, probabilities), float(values[0])
    masses = _masses_on_steps(atoms, least, steps[resource], use.masses.shape[1])
    use.masses[resource] = masses
    use.row[kernel.TASK_LEAST + resource] = least
    use.row[kernel.TASK_EXPECTED + resource] = atoms.mean()
    use.row[kernel.TASK_HIGHEST + resource] = np.flatnonzero(masses)[-1]


def _masses_on_steps(atoms: Atoms, least: float, step: float, bins: int) -> Floats:
    """The probability of each excess above an amount that is not above the least atom's.

    What is above the last step that the largest machine has room for counts as that.
    """
    room = math.floor(((bins - 1) * step - least) / step + _ROUNDING)
    nodes = np.arange(room + 1, dtype=np.float64)
    excess = np.minimum((atoms.values - least) / step, nodes[-1])
    masses = np.zeros(bins)
    masses[: nodes.size] = bin_onto_nodes(excess, atoms.masses, nodes)
    return masses


class PackedMachines:
    """The distribution of what is used of each machine, as tasks come and go.

    Parameters
    ----------
    capacities
        Of cpus and memory; shape (machines, 2). That of memory is where it evicts.
    bins
        Into how many steps the largest machine is divided.
    """

    def __init__(self, capacities: Floats, bins: int) -> None:
        count = len(capacities)
        self.bins = bins
        self.capacities = capacities
        self.steps = np.maximum(capacities.max(axis=0, initial=0.0), 1e-300) / (bins - 1)
        self.table = np.zeros((count, kernel.MACHINE_COLUMNS))
        self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES] = capacities
        self.masses = np.zeros((count, kernel.RESOURCES, bins))
        self.masses[:, :, 0] = 1.0
        self.ranks = np.random.default_rng(0).permutation(count)
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

    def offer(self, up: Booleans) -> None:
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
        """Return what is believed of a task that runs there."""
        return self._tasks[machine][task]

    def tasks_on(self, machine: int) -> Sequence[Hashable]:
        """Return what runs there, in order of start."""
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
