"""Machines and what the tasks on them use together, kept from one decision to the next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from foresail.schedulers._packing.task_use import TaskUse
from foresail.schedulers._packing.use_by_age import UseByAge, at_any_age
from foresail.schedulers.kernels import packing as kernel
from foresail.schedulers.kernels import use_by_age as ahead

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
    ahead_seconds
        How far ahead the instants are at which use by age counts; none: it does not.
    """

    def __init__(
        self,
        capacities: Floats,
        bins: int,
        seed: int = 0,
        ahead_seconds: Sequence[float] = (),
    ) -> None:
        count = len(capacities)
        self.bins = bins
        self.capacities = capacities
        self.steps = np.maximum(capacities.max(axis=0, initial=0.0), 1e-300) / (bins - 1)
        self.table = np.zeros((count, kernel.MACHINE_COLUMNS))
        self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES] = capacities
        self.masses = np.zeros((count, kernel.RESOURCES, bins))
        self.masses[:, :, 0] = 1.0
        self.ranks = np.random.default_rng(seed).permutation(count)
        self.ahead_seconds = ahead_seconds
        self._room = np.empty(bins)
        self._table_ahead, self._masses_ahead = self._nothing_ahead()
        self._tasks: list[dict[Hashable, TaskUse]] = [{} for _ in range(count)]

    def add(self, machine: int, task: Hashable, use: TaskUse) -> None:
        """A task runs there from now on."""
        tasks = self._tasks[machine]
        has_kin = use.kin is not None and any(each.kin == use.kin for each in tasks.values())
        tasks[task] = use
        if has_kin:
            self._make_anew(machine)
        else:
            self._add(machine, use, 1)

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
        other = PackedMachines(offered, self.bins, ahead_seconds=self.ahead_seconds)
        other.steps, other.ranks = self.steps, self.ranks
        return other

    def look_ahead(self, ages: Mapping[Hashable, float]) -> None:
        """Add up what all that runs will use at the instants ahead.

        ``ages`` are those of tasks now, in seconds.
        """
        self._table_ahead, self._masses_ahead = self._nothing_ahead()
        kinds: dict[int, UseByAge] = {}
        rows: list[tuple[int, int, float]] = []
        for machine, tasks in enumerate(self._tasks):
            for task, use in tasks.items():
                if id(use) not in kinds:
                    kinds[id(use)] = at_any_age(use) if use.by_age is None else use.by_age
                rows.append((id(use), machine, ages[task]))
        if not rows:
            return
        number = {identity: at for at, identity in enumerate(kinds)}
        stacked = _stacked(tuple(kinds.values()))
        instants = len(self.ahead_seconds)
        ahead.add_ahead(
            *stacked,
            np.array([number[identity] for identity, _, _ in rows]),
            np.array([age for _, _, age in rows]),
            np.array([machine for _, machine, _ in rows]),
            np.array(self.ahead_seconds),
            self.steps,
            np.empty(stacked.masses.shape[1]),
            np.zeros((instants, kernel.TASK_COLUMNS)),
            np.zeros((instants, kernel.RESOURCES, self.bins)),
            self._room,
            self._table_ahead,
            self._masses_ahead,
        )

    def moments(self) -> tuple[Floats, Floats]:
        """Copies of the table and the masses: on average, and at each instant ahead.

        Shapes (machines, moments, columns) and (machines, moments, resources, bins).
        """
        table = np.concatenate((self.table[:, np.newaxis], self._table_ahead), axis=1)
        columns = slice(kernel.CAPACITY, kernel.CAPACITY + kernel.RESOURCES)
        table[:, :, columns] = self.table[:, np.newaxis, columns]
        return table, np.concatenate((self.masses[:, np.newaxis], self._masses_ahead), axis=1)

    def _nothing_ahead(self) -> tuple[Floats, Floats]:
        """Tables and masses of machines on which nothing runs, at each instant ahead."""
        shape = len(self.table), len(self.ahead_seconds)
        masses = np.zeros((*shape, kernel.RESOURCES, self.bins))
        masses[..., 0] = 1.0
        return np.zeros((*shape, kernel.MACHINE_COLUMNS)), masses

    def use_of(self, machine: int, task: Hashable) -> TaskUse:
        """What is believed of a task that runs there."""
        return self._tasks[machine][task]

    def tasks_on(self, machine: int) -> Sequence[Hashable]:
        """What runs there, in order of start."""
        return tuple(self._tasks[machine])

    def _make_anew(self, machine: int) -> None:
        """Add up what all tasks of a machine use: those with a common factor together."""
        row, masses = self.table[machine], self.masses[machine]
        row[kernel.CAPACITY + kernel.RESOURCES :] = 0.0
        masses[:] = 0.0
        masses[:, 0] = 1.0
        for use, tasks in _counted(self._tasks[machine].values()):
            self._add(machine, use, tasks)

    def _add(self, machine: int, use: TaskUse, tasks: int) -> None:
        row, masses = self.table[machine], self.masses[machine]
        kernel.add_tasks(row, masses, use.row, use.masses, tasks, self._room)


def _counted(uses: Iterable[TaskUse]) -> Iterable[tuple[TaskUse, int]]:
    """What tasks use and how many use that, where these have a factor in common."""
    alone = itertools.count()
    alike: dict[Hashable, list[TaskUse]] = {}
    for use in uses:
        same: Hashable = next(alone)
        if use.kin is not None:
            same = use.kin, use.row.tobytes(), use.masses.tobytes()
        alike.setdefault(same, []).append(use)
    return [(each[0], len(each)) for each in alike.values()]


def _stacked(kinds: Sequence[UseByAge]) -> UseByAge:
    """The same arrays with an axis more: of kinds. All have as many parts and atoms as the most.

    Of a kind with fewer parts, each is several; atoms that there are not have no probability.
    """
    parts = math.lcm(*{len(each.masses) for each in kinds})
    atoms = max(len(each.lives) for each in kinds)
    lives = np.zeros((len(kinds), atoms, ahead.LIFE_COLUMNS))
    for number, each in enumerate(kinds):
        lives[number, : len(each.lives)] = each.lives
    return UseByAge(
        np.array([each.row for each in kinds]),
        np.array([np.repeat(each.masses, parts // len(each.masses), axis=0) for each in kinds]),
        np.array([np.repeat(each.expected, parts // len(each.masses), axis=0) for each in kinds]),
        lives,
    )
