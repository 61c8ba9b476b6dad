"""One decision: which jobs start now, and on which machines their tasks run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foresail.schedulers._packing.machines import PackedMachines
from foresail.schedulers._packing.task_use import TaskUse
from foresail.schedulers.kernels import packing as kernel

Risks = tuple[float, float]
"""With what probability cpus and memory may be too few once a task has come: below these. Nothing
at all counts as below 0."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may start, or what of it may."""

    use: TaskUse
    """What each of its tasks uses."""
    tasks: int
    """How many there are to place."""
    work: float
    """Cpu seconds of each."""
    value: float
    full_seconds: float
    zero_seconds: float
    least_value: float = 0.0
    """What it is worth if it ends within some seconds from now, when that has fallen to zero, and
    what is left of it in any case."""

    @property
    def row(self) -> tuple[float, ...]:
        """A row of ``kernels.packing``'s jobs."""
        span = (self.full_seconds, self.zero_seconds)
        return (self.work, self.tasks, self.value, *span, self.least_value)


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate (its number) that starts, the machine of each of its tasks, and its worth."""

    candidate: int
    machines: tuple[int, ...]
    worth: float


def choose(
    machines: PackedMachines, candidates: Sequence[Candidate], most_risks: Risks
) -> list[Choice]:
    """The candidates that start, the one that is worth most first.

    Parameters
    ----------
    machines
        As they are now; not changed.
    candidates
        What may start.
    most_risks
        Of cpus and of memory.
    """
    if not candidates or not len(machines.table):
        return []
    jobs = np.array([each.row for each in candidates])
    count, machine_count = len(candidates), len(machines.table)
    widest = max(each.tasks for each in candidates)
    table, masses = machines.table.copy(), machines.masses.copy()
    reached = np.zeros_like(masses)
    kernel.accumulate(table, masses, reached)
    rows = np.array([each.use.row for each in candidates])
    task_masses = np.array([each.use.masses for each in candidates])
    bounds = np.zeros(count)
    kernel.most_worth(jobs, rows, task_masses, machines.steps, bounds)
    worth = np.zeros(count)
    places = np.full((count, widest), kernel.NOWHERE)
    order = np.zeros(count, np.int64)
    started = kernel.plan(
        table,
        masses,
        reached,
        machines.ranks,
        jobs,
        rows,
        task_masses,
        bounds,
        np.argsort(-bounds, kind="stable"),
        np.array(most_risks),
        machines.steps,
        np.zeros((count, machine_count, kernel.RESOURCES), np.int32),
        np.zeros(count, np.int64),
        np.zeros(machine_count, np.int64),
        np.zeros(count, np.int64),
        worth,
        places,
        order,
        np.zeros(widest, np.int64),
        np.zeros(widest, np.int64),
        np.zeros((widest, *table.shape[1:])),
        np.zeros((widest, *masses.shape[1:])),
        np.zeros((widest, *masses.shape[1:])),
        np.zeros((widest, kernel.RESOURCES), np.int32),
        np.zeros((widest, 4)),
    )
    return [
        Choice(int(job), tuple(places[job, : candidates[job].tasks].tolist()), float(worth[job]))
        for job in order[:started]
    ]
