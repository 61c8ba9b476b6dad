"""What a task uses by its age, on the steps that packing counts in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.discretisation import Atoms, atoms_of
from foresail.model.distribution import Distribution
from foresail.schedulers._packing.task_use import NODES, TaskUse, masses_on_steps, within
from foresail.schedulers.kernels import packing
from foresail.schedulers.kernels import use_by_age as kernel

Floats = NDArray[np.float64]
_ALWAYS: Final = np.zeros((1, kernel.LIFE_COLUMNS))


class UseByAge(NamedTuple):
    """What a task uses in each of some equal parts of its life, and how long that may last.

    ``row`` is one of ``kernels.packing``'s tasks: the least of all parts, and the highest step
    above that. Shapes (parts, resources, bins), (parts, resources), and (atoms, 2): seconds and
    probabilities.
    """

    row: Floats
    masses: Floats
    expected: Floats
    lives: Floats


def use_by_age(
    cpus: Sequence[Distribution],
    memory_bytes: Sequence[Distribution],
    life: Distribution,
    cpu_request: float,
    steps: Floats,
    bins: int,
) -> UseByAge:
    """What is believed of a task's use by part of its life, as ``task_use`` has it of all of it.

    Parameters
    ----------
    cpus, memory_bytes
        Beliefs about each part, as many of both.
    life
        Belief about how many seconds it runs in all.
    cpu_request, steps, bins
        As of ``task_use``.
    """
    row = np.zeros(packing.TASK_COLUMNS)
    row[packing.TASK_REQUEST] = cpu_request
    masses = np.zeros((len(cpus), packing.RESOURCES, bins))
    expected = np.zeros((len(cpus), packing.RESOURCES))
    for resource, beliefs in ((packing.CPU, cpus), (packing.MEMORY, memory_bytes)):
        parts = [atoms_of(each, NODES) for each in beliefs]
        parts = [Atoms(within(each.values, steps[resource], bins), each.masses) for each in parts]
        least = min(float(each.values[0]) for each in parts)
        for number, each in enumerate(parts):
            masses[number, resource] = masses_on_steps(each, least, steps[resource], bins)
            expected[number, resource] = each.mean()
        row[packing.TASK_LEAST + resource] = least
        row[packing.TASK_HIGHEST + resource] = np.flatnonzero(masses[:, resource].any(axis=0))[-1]
    return UseByAge(row, masses, expected, np.column_stack(atoms_of(life, NODES)))


def at_any_age(use: TaskUse) -> UseByAge:
    """Of a task of which it is only known what it uses, now and for as long as it is there."""
    columns = slice(packing.TASK_EXPECTED, packing.TASK_EXPECTED + packing.RESOURCES)
    return UseByAge(use.row, use.masses[np.newaxis], use.row[np.newaxis, columns], _ALWAYS)


def at_some_age(by_age: UseByAge) -> TaskUse:
    """What a task may use at one time or another, all parts of its life alike."""
    row = by_age.row.copy()
    columns = slice(packing.TASK_EXPECTED, packing.TASK_EXPECTED + packing.RESOURCES)
    row[columns] = by_age.expected.mean(axis=0)
    return TaskUse(row, by_age.masses.mean(axis=0))


def at_start(by_age: UseByAge, ahead_seconds: Floats, steps: Floats) -> tuple[TaskUse, ...]:
    """What a task that starts now uses at each instant ahead."""
    rows = np.zeros((ahead_seconds.size, packing.TASK_COLUMNS))
    masses = np.zeros((ahead_seconds.size, *by_age.masses.shape[1:]))
    room = np.empty(len(by_age.masses))
    kernel.use_ahead(*by_age, 0.0, ahead_seconds, steps, room, rows, masses)
    return tuple(TaskUse(*each) for each in zip(rows, masses, strict=True))
