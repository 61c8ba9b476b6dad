"""What there would be room for if nothing ran: how wide a start may be, and how way is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from foresail.schedulers._packing.machines import PackedMachines
from foresail.schedulers._packing.plan import Candidate, Choice, Risks, choose
from foresail.schedulers._packing.task_use import TaskUse
from foresail.schedulers.kernels import packing as kernel

_ANY_RISK: Final[Risks] = (2.0, 2.0)


def most_at_once(empty: PackedMachines, use: TaskUse, tasks: int, most_risks: Risks) -> int:
    """How many of some tasks there is room for on empty machines, at least one."""
    capacities, counts = np.unique(empty.capacities, axis=0, return_counts=True)
    room = 0
    for capacity, count in zip(capacities, counts, strict=True):
        machine = PackedMachines(capacity[np.newaxis], empty.bins)
        (table,), (masses,) = machine.table, machine.masses
        each = kernel.tasks_that_fit(
            table,
            masses,
            np.zeros_like(masses),
            use.row,
            use.masses,
            tasks,
            np.array(most_risks),
            empty.steps,
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
