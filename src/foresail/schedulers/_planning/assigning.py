"""From a choice to nodes: tasks of those that start now by cell, then by node.

That every union of sets has room for the jobs within it means that all of them fit together
(Hall's theorem); which cells each takes is a small program if taking them in turn does not do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foresail.milp.program import ProgramBuilder
from foresail.milp.solver import Limits, find_solver
from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.preference import PreferenceKind
from foresail.model.view import ClusterView
from foresail.schedulers._placing import FreeRoom
from foresail.schedulers._planning.cell_map import CellMap, Space, bits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROUNDING = 1e-7


def placements(
    jobs: Sequence[Job],
    spaces: Sequence[Space],
    worth: Floats,
    free_cells: Floats,
    stopped_cells: Floats,
    view: ClusterView,
    places: CellMap,
) -> list[Placement | None]:
    """Where each job that is to start now does so; None for whom there is no room yet.

    Parameters
    ----------
    jobs, spaces, worth
        The jobs, the set of places each is to run in, and what starting it is worth.
    free_cells, stopped_cells
        Cpus of every cell that are free, and that jobs hold which are about to be stopped. Who is
        to have some of these waits for them; what is free goes to the worthiest first.
    view
        What is free on nodes, in all resources.
    places
        The cells of the cluster.
    """
    room = FreeRoom(view, places.named)
    found: list[Placement | None] = [None] * len(jobs)
    shares = _shares(jobs, spaces, worth, free_cells + stopped_cells)
    free = free_cells + _ROUNDING
    for at in np.argsort(-worth, kind="stable").tolist():
        job = jobs[at]
        need = shares[at] * (job.cpus / job.tasks)
        if shares[at].any() and (need <= free).all():
            free -= need
            placement = _placement(job, spaces[at], shares[at], room, places)
            if placement is not None:
                room.take(job, placement)
                found[at] = placement
    return found


def likely_placement(job: Job, space: Space, places: CellMap) -> Placement:
    """Partitions that a planned job may be given: the larger cells of its set first."""
    left = job.tasks
    each = job.cpus / job.tasks
    tasks_by_partition: dict[str, int] = {}
    for cell in sorted(bits(space.cells), key=lambda cell: -places.totals[cell]):
        some = min(left, int(places.totals[cell] / each + _ROUNDING))
        if some:
            name = places.partitions[cell]
            tasks_by_partition[name] = tasks_by_partition.get(name, 0) + some
            left -= some
    return Placement(tuple(tasks_by_partition.items()))


def _placement(
    job: Job, space: Space, share: Integers, room: FreeRoom, places: CellMap
) -> Placement | None:
    if not places.has_nodes or len(job.stages) > 1:
        return room.in_partition(job, places.partitions[int(np.argmax(share))])
    preference = job.preference
    if preference is not None and preference.kind is PreferenceKind.SPREAD and space.slowdown == 1:
        spread = room.placement(job)
        return spread if spread is not None and places.prefers(preference, spread) else None
    cells = [(places.nodes_of(cell), int(share[cell])) for cell in np.flatnonzero(share).tolist()]
    found = room.within(job, cells)
    if found is None:
        nodes = frozenset().union(*(places.nodes_of(cell) for cell in bits(space.cells)))
        found = room.within(job, [(nodes, job.tasks)])
    return found


def _shares(
    jobs: Sequence[Job], spaces: Sequence[Space], worth: Floats, free_cells: Floats
) -> Integers:
    """Tasks of every job on every cell, none for who has to wait; shape (jobs, cells)."""
    each = np.array([job.cpus / job.tasks for job in jobs])
    tasks = np.array([job.tasks for job in jobs])
    allowed = np.zeros((len(jobs), free_cells.size), np.bool_)
    for at, space in enumerate(spaces):
        allowed[at, list(bits(space.cells))] = True
    shares = _in_turn(each, tasks, allowed, free_cells)
    if (shares.sum(axis=1) == tasks).all():
        return shares
    return _by_program(each, tasks, allowed, worth, free_cells)


def _in_turn(
    each: Floats, tasks: Integers, allowed: NDArray[np.bool_], free_cells: Floats
) -> Integers:
    """The least choosy last, each from the cells that fewest others may use."""
    shares = np.zeros(allowed.shape, np.int64)
    free = free_cells.copy()
    wanted = allowed.T @ (each * tasks)
    for job in np.argsort(allowed.sum(axis=1), kind="stable").tolist():
        left = int(tasks[job])
        for cell in np.argsort(wanted, kind="stable").tolist():
            if allowed[job, cell] and left:
                some = min(left, int(max(free[cell], 0.0) / each[job] + _ROUNDING))
                shares[job, cell] = some
                free[cell] -= some * each[job]
                left -= some
        wanted -= allowed[job] * each[job] * tasks[job]
        if left:
            shares[job] = 0
    return shares


def _by_program(
    each: Floats, tasks: Integers, allowed: NDArray[np.bool_], worth: Floats, free_cells: Floats
) -> Integers:
    job, cell = np.nonzero(allowed)
    builder = ProgramBuilder()
    starts = builder.add_columns(0.0, np.ones(tasks.size), True, worth)
    parts = builder.add_columns(0.0, tasks[job].astype(np.float64), True)
    whole = builder.add_rows(0.0, np.zeros(tasks.size))
    builder.add_entries(whole, starts, -tasks.astype(np.float64))
    builder.add_entries(whole[job], parts, np.ones(parts.size))
    room = builder.add_rows(-np.inf, np.maximum(free_cells, 0.0))
    builder.add_entries(room[cell], parts, each[job])
    found = find_solver("highs").solve(builder.build(), Limits(1.0))
    shares = np.zeros(allowed.shape, np.int64)
    if found.values is not None:
        shares[job, cell] = np.round(found.values[parts]).astype(np.int64)
    return shares
