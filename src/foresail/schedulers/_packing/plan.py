"""One decision: which jobs start now, where their tasks run, and how room is made for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.schedulers._packing.machines import PackedMachines
from foresail.schedulers.kernels import packing as kernel
from foresail.schedulers.kernels.packing import TaskUse

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

    The machines are as they are now, and stay so; ``most_risks`` are those of cpus and of memory.
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
    at = kernel.MachineTables(table, masses, reached)
    kept = kernel.MachineTables(
        np.zeros((widest, *table.shape[1:])),
        np.zeros((widest, *masses.shape[1:])),
        np.zeros((widest, *masses.shape[1:])),
    )
    started = kernel.plan(
        at,
        machines.ranks,
        jobs,
        kernel.TaskUse(rows, task_masses),
        bounds,
        np.argsort(-bounds, kind="stable"),
        kernel.RiskLimits(np.array(most_risks), machines.steps),
        np.zeros((count, machine_count, kernel.RESOURCES), np.int32),
        np.zeros(count, np.int64),
        np.zeros(machine_count, np.int64),
        np.zeros(count, np.int64),
        worth,
        places,
        order,
        kernel.PlacingRoom(
            np.zeros(widest, np.int64),
            np.zeros(widest, np.int64),
            kept,
            np.zeros((widest, kernel.RESOURCES), np.int32),
            np.zeros((widest, 4)),
        ),
    )
    return [
        Choice(int(job), tuple(places[job, : candidates[job].tasks].tolist()), float(worth[job]))
        for job in order[:started]
    ]


_ANY_RISK: Final[Risks] = (2.0, 2.0)


def most_at_once(empty: PackedMachines, use: TaskUse, tasks: int, most_risks: Risks) -> int:
    """Return how many of some tasks there is room for on empty machines, at least one."""
    capacities, counts = np.unique(empty.capacities, axis=0, return_counts=True)
    room = 0
    for capacity, count in zip(capacities, counts, strict=True):
        machine = PackedMachines(capacity[np.newaxis], empty.bins)
        each = kernel.tasks_that_fit(
            kernel.MachineTables(machine.table, machine.masses, np.zeros_like(machine.masses)),
            use,
            tasks,
            kernel.RiskLimits(np.array(most_risks), empty.steps),
            np.zeros((1, kernel.RESOURCES), np.int32),
        )
        room += int(count) * int(each)
    return max(1, min(tasks, room))


def make_way(
    machines: PackedMachines, urgent: Sequence[Candidate], most_risks: Risks
) -> tuple[set[int], Sequence[Choice]]:
    """Machines on which nothing else may start, and which of the urgent start there at any risk.

    The first that does not fit now is to run where it would run if nothing else did. If the risks
    leave no room for it even then, it starts once nothing runs there.
    """
    placed = choose(machines, urgent, most_risks)
    waits = sorted(set(range(len(urgent))) - {each.candidate for each in placed})
    if not waits:
        return set(), ()
    first, empty = waits[0], machines.empty()
    choices = choose(empty, [urgent[first]], most_risks)
    fits = bool(choices)
    choices = choices or choose(empty, [urgent[first]], _ANY_RISK)
    there = {machine for choice in choices for machine in choice.machines}
    if not fits and not any(machines.tasks_on(machine) for machine in there):
        return there, [Choice(first, each.machines, each.worth) for each in choices]
    return there - {machine for each in placed for machine in each.machines}, ()
