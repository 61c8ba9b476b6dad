"""From a choice to nodes: tasks of those that start now by cell, then by node.

Jobs take the tightest nodes of their sets, so that large ones stay free, where all fit so. That
every union of sets has room for the jobs within it means that all of them fit together
(Hall's theorem); which cells each takes is a small program if taking them in turn does not do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from foresail.milp.solver import Limits, ProgramBuilder, find_solver
from foresail.model.decision import Placement
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.job import Job
from foresail.model.placing import FreeRoom
from foresail.model.view import ClusterView
from foresail.schedulers._planning.cell_map import AMOUNTS, CellMap, Space, bits, membership
from foresail.schedulers._planning.demands import Demands
from foresail.schedulers._planning.problem import PlanChoice, improved, needed_now
from foresail.schedulers.kernels.plan_filling import grant, take_in_turn

_ROUNDING = 1e-7
_MOST_COLUMNS = 20_000
"""Columns of a program of cells that jobs take; one of more is not solved within a second."""


def likely_placement(job: Job, space: Space, places: CellMap) -> Placement:
    """Partitions that a planned job may be given: the larger cells of its set first."""
    if len(job.stages) > 1:
        return Placement.whole(places.partitions[next(bits(space.cells))], job.tasks)
    left = job.tasks
    fitting = places.tasks(job.stages[0].request)
    tasks_by_partition: dict[str, int] = {}
    for part in space.parts:
        name = places.partitions[next(bits(part))]
        tasks_by_partition[name] = tasks_by_partition.get(name, 0) + 1
        left -= 1
    for cell in places.largest_first:
        if not left:
            break
        some = min(left, fitting[cell]) if space.cells >> cell & 1 else 0
        if some:
            name = places.partitions[cell]
            tasks_by_partition[name] = tasks_by_partition.get(name, 0) + some
            left -= some
    return Placement(tuple(tasks_by_partition.items()))


_Asked: TypeAlias = Sequence[tuple[Sequence[int], int]]
"""Sets of cells, and how many tasks on the nodes of each."""


def _by_cell(share: Integers) -> _Asked:
    return [([cell], int(share[cell])) for cell in np.flatnonzero(share).tolist()]


def _anywhere(job: Job, space: Space, share: Integers) -> _Asked:
    """All cells at once, so that the tightest node of any of them is found."""
    return _by_cell(share) if space.parts else [(list(bits(space.cells)), job.tasks)]


def _placement(
    job: Job, space: Space, share: Integers, asked: _Asked, room: FreeRoom, places: CellMap
) -> Placement | None:
    if not places.has_nodes or len(job.stages) > 1:
        return room.in_partition(job, places.partitions[int(np.argmax(share))])
    found = room.within(job, asked)
    if found is None and space.parts:
        spread, preference = room.placement(job), job.preference
        if spread is None or preference is None or not places.prefers(preference, spread):
            return None
        return spread
    if found is None:
        found = room.within(job, [(list(bits(space.cells)), job.tasks)])
    return found


def _needs_of_tasks(jobs: Sequence[Job], places: CellMap) -> Floats:
    """Return what a task of each job needs, if all need the same; shape (jobs, all resources)."""
    totals = [job.total for job in jobs]
    amounts = np.array([[amount(total) for amount in AMOUNTS] for total in totals])
    tasks = np.array([job.tasks for job in jobs])
    needs: Floats = amounts.reshape(-1, len(AMOUNTS)) / places.units / tasks[:, np.newaxis]
    return needs


def _shares(
    jobs: Sequence[Job], spaces: Sequence[Space], each: Floats, worth: Floats, free_cells: Floats
) -> Integers:
    """Tasks of every job on every cell, none for those that have to wait; shape (jobs, cells).

    ``each`` is what one task of a job needs; shape (jobs, resources).
    """
    parts = [
        (at, 1 if space.parts else job.tasks, cells)
        for at, (job, space) in enumerate(zip(jobs, spaces, strict=True))
        for cells in space.parts or (space.cells,)
    ]
    job_of = np.array([at for at, _, _ in parts], np.int64)
    tasks = np.array([count for _, count, _ in parts], np.int64)
    sets = {cells: at for at, cells in enumerate(dict.fromkeys(cells for _, _, cells in parts))}
    allowed = membership(sets, free_cells.shape[1])[[sets[cells] for _, _, cells in parts]]
    of_parts = _in_turn(each[job_of], tasks, allowed, free_cells)
    if (of_parts.sum(axis=1) < tasks).any() and np.count_nonzero(allowed) <= _MOST_COLUMNS:
        better = _by_program(each[job_of], tasks, allowed, job_of, worth, free_cells)
        of_parts = of_parts if better is None else better
    shares = np.zeros((len(jobs), free_cells.shape[1]), np.int64)
    np.add.at(shares, job_of, of_parts)
    return shares


def _in_turn(each: Floats, tasks: Integers, allowed: Booleans, free_cells: Floats) -> Integers:
    """The least choosy last, each from the cells that fewest others may use."""
    shares = np.zeros(allowed.shape, np.int64)
    take_in_turn(
        np.argsort(allowed.sum(axis=1), kind="stable"),
        each,
        tasks,
        allowed,
        allowed.T @ (each[:, 0] * tasks),
        free_cells.copy(),
        np.arange(free_cells.shape[1]),
        shares,
    )
    return shares


def _by_program(
    each: Floats,
    tasks: Integers,
    allowed: Booleans,
    job_of: Integers,
    worth: Floats,
    free_cells: Floats,
) -> Integers | None:
    """Tasks of every part of a job on every cell: all parts of it or none; None if not found."""
    part, cell = np.nonzero(allowed)
    builder = ProgramBuilder()
    starts = builder.add_columns(0.0, np.ones(worth.size), True, worth)
    placed = builder.add_columns(0.0, tasks[part].astype(np.float64), True)
    whole = builder.add_rows(0.0, np.zeros(tasks.size))
    builder.add_entries(whole, starts[job_of], -tasks.astype(np.float64))
    builder.add_entries(whole[part], placed, np.ones(placed.size))
    for of_resource, free in zip(each.T, free_cells, strict=True):
        room = builder.add_rows(-np.inf, np.maximum(free, 0.0))
        builder.add_entries(room[cell], placed, of_resource[part])
    found = find_solver("highs").solve(builder.build(), Limits(1.0))
    if found.values is None:
        return None
    shares = np.zeros(allowed.shape, np.int64)
    shares[part, cell] = np.round(found.values[placed]).astype(np.int64)
    return shares


_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Starting:
    """Starts and stops that a choice comes to now."""

    choice: PlanChoice
    """Start of each job."""
    jobs: Sequence[int]
    found: Sequence[Placement | None]
    """Numbers of the jobs that are to start now, and where; None where there is no room yet."""
    stopped: Sequence[str]
    """Ids of the running jobs that are stopped for them."""


def starting(view: ClusterView, demands: Demands, places: CellMap, choice: PlanChoice) -> Starting:
    """Return which jobs start now, and where.

    If no nodes are found for some, though none are waited for, these start later or elsewhere, and
    others are planned on what that leaves; a few times, until all have nodes.
    """
    result = _starting(view, demands, places, choice)
    for _ in range(_ROUNDS):
        lacking = [
            job for job, found in zip(result.jobs, result.found, strict=True) if found is None
        ]
        if not lacking or result.stopped:
            break
        worth = demands.problem.worth.copy()
        worth[result.choice.group[lacking], 0] = 0.0
        demands = replace(demands, problem=replace(demands.problem, worth=worth))
        group, slot = result.choice.group.copy(), result.choice.slot.copy()
        group[lacking] = slot[lacking] = -1
        kept = PlanChoice(group, slot, result.choice.stopped)
        result = _starting(view, demands, places, improved(demands.problem, kept))
    return result


def _freedom(job: Job, space: Space) -> tuple[int, float]:
    """Order of jobs that are placed on the tightest nodes: the choosiest, of these the widest."""
    return space.cells.bit_count(), -job.cpus / job.tasks


def _placements(
    view: ClusterView,
    jobs: Sequence[Job],
    spaces: Sequence[Space],
    shares: Integers,
    asked: Mapping[int, _Asked],
    places: CellMap,
) -> list[Placement | None]:
    """Placements of the jobs that ask for cells, in their order; None where there is no room."""
    room = FreeRoom(view, places.named)
    found: list[Placement | None] = [None] * len(jobs)
    for at, cells in asked.items():
        placement = _placement(jobs[at], spaces[at], shares[at], cells, room, places)
        if placement is not None:
            room.take(jobs[at], placement)
            found[at] = placement
    return found


def _starting(view: ClusterView, demands: Demands, places: CellMap, choice: PlanChoice) -> Starting:
    """Starts and stops; who is to have what stopped jobs hold waits for it.

    Each has the tightest nodes of its set if all have room so; else, the worthiest first, those of
    the cells that were found for it.
    """
    now = [job for job in choice.planned.tolist() if choice.slot[job] == 0]
    groups = choice.group[now]
    stopped = [
        demands.victims[at].job.job_id
        for at in np.flatnonzero(needed_now(demands.problem, choice)).tolist()
    ]
    freed = [
        places.held(each.job, each.placement) for each in view.running if each.job.job_id in stopped
    ]
    resources, free_cells = list(demands.resources), demands.free_cells
    stopped_cells = np.sum([np.zeros(places.amounts.shape), *freed], axis=0)[resources]
    jobs = [demands.pending[job].job for job in now]
    spaces = [demands.spaces[group] for group in groups]
    worth = demands.problem.worth[groups, 0]
    each_task = np.ascontiguousarray(_needs_of_tasks(jobs, places)[:, resources])
    shares = _shares(jobs, spaces, each_task, worth, free_cells + stopped_cells)
    worthiest = np.argsort(-worth, kind="stable")
    granted = np.zeros(len(jobs), np.bool_)
    grant(worthiest, each_task, shares, free_cells + _ROUNDING, granted)
    if granted.all():
        choosiest = sorted(range(len(jobs)), key=lambda at: _freedom(jobs[at], spaces[at]))
        asked = {at: _anywhere(jobs[at], spaces[at], shares[at]) for at in choosiest}
        found = _placements(view, jobs, spaces, shares, asked, places)
        if None not in found:
            return Starting(choice, now, found, stopped)
    asked = {at: _by_cell(shares[at]) for at in worthiest[granted[worthiest]].tolist()}
    found = _placements(view, jobs, spaces, shares, asked, places)
    return Starting(choice, now, found, stopped)
