"""Capacity: what is free in every partition and on every named node, and what a placement takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.resources import Resources

_ROUNDING = 1e-9
"""Share of a place's total that repeated additions of fractions may have lost."""


class Misplacement(StrEnum):
    """The kinds of placement that cannot be."""

    NO_SUCH_PLACE = "no_such_place"
    NOT_WHOLE = "not_whole"
    NO_ROOM = "no_room"


class _Place(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


class Capacity:
    """What is free, by partition and by node.

    Nodes are accounted where a placement names them; partitions always are. Where a node is down,
    its partition has less room, even for placements that name no nodes. A job of one stage
    holds its request once per task; a job of several holds ``Job.total`` in one partition.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._total = {_Place("partition", p.name): p.total for p in cluster.partitions}
        self._partition_of = {node.name: p.name for p in cluster.partitions for node in p.nodes}
        self._rooms = [  # the smallest places known: one task never spans two of them
            total
            for p in cluster.partitions
            for total in ([node.total for node in p.nodes] or [p.total])
        ]
        self._total.update(
            {_Place("node", node.name): node.total for p in cluster.partitions for node in p.nodes}
        )
        self._free = dict(self._total)
        self._down: frozenset[str] = frozenset()

    def copy(self) -> Capacity:
        """An independent account with the same amounts free."""
        twin = object.__new__(Capacity)
        twin.__dict__.update(self.__dict__)
        twin._free = dict(self._free)
        return twin

    def free_by_partition(self) -> dict[str, Resources]:
        """Unused resources by partition name, as they are now (a copy)."""
        return {place.name: room for place, room in self._free.items() if place.kind == "partition"}

    def free_by_node(self) -> dict[str, Resources]:
        """Unused resources by node name, of nodes that are up, as they are now (a copy)."""
        return {
            place.name: room
            for place, room in self._free.items()
            if place.kind == "node" and place.name not in self._down
        }

    def close(self, node: str) -> None:
        """Take a node out: nothing can be placed there until it is opened again.

        Raises
        ------
        KeyError
            If there is no such node; so does ``open``.
        """
        if node not in self._down:
            self._down |= {node}
            self._change_room(node, -1)

    def open(self, node: str) -> None:
        """Put a node back."""
        if node in self._down:
            self._down -= {node}
            self._change_room(node, 1)

    def _change_room(self, node: str, sign: int) -> None:
        total = self._total[_Place("node", node)] * sign
        self._free[_Place("node", node)] += total
        self._free[_Place("partition", self._partition_of[node])] += total

    def take(self, job: Job, placement: Placement) -> None:
        """Hold what the job needs there; that it fits is for the caller to have checked."""
        for place, amount in _claims(job, placement):
            self._free[place] -= amount

    def give_back(self, job: Job, placement: Placement) -> None:
        """Release what the job held there."""
        for place, amount in _claims(job, placement):
            self._free[place] += amount

    def misplacement(self, job: Job, placement: Placement) -> tuple[Misplacement, str] | None:
        """Why the job cannot be placed like this now, as kind and sentence; None if it can."""
        return (
            self._unknown_place(placement)
            or self._broken_gang(job, placement)
            or self._lack_of_room(job, placement)
        )

    def could_hold(self, job: Job) -> bool:
        """Whether the empty cluster has room for all of the job's tasks at once."""
        if len(job.stages) > 1:
            return any(
                job.total.fits_in(total)
                for place, total in self._total.items()
                if place.kind == "partition"
            )
        request = job.stages[0].request
        return sum(_tasks_within(request, room) for room in self._rooms) >= job.tasks

    def _unknown_place(self, placement: Placement) -> tuple[Misplacement, str] | None:
        for place in _places(placement):
            if place not in self._total:
                return Misplacement.NO_SUCH_PLACE, f"the cluster has no {place}"
        return None

    def _broken_gang(self, job: Job, placement: Placement) -> tuple[Misplacement, str] | None:
        counts = [*placement.tasks_by_partition, *placement.tasks_by_node]
        if any(tasks <= 0 for _, tasks in counts):
            return Misplacement.NOT_WHOLE, "a place is given no tasks"
        if len({*_places(placement)}) < len(counts):
            return Misplacement.NOT_WHOLE, "a place is named twice"
        placed = sum(tasks for _, tasks in placement.tasks_by_partition)
        if placed != job.tasks:
            return Misplacement.NOT_WHOLE, f"{placed} of its {job.tasks} tasks are placed"
        if len(job.stages) > 1 and len(counts) > 1:
            return Misplacement.NOT_WHOLE, "a job of several stages stays in one partition"
        if placement.tasks_by_node:
            by_partition = dict.fromkeys((name for name, _ in placement.tasks_by_partition), 0)
            for node, tasks in placement.tasks_by_node:
                partition = self._partition_of[node]
                by_partition[partition] = by_partition.get(partition, 0) + tasks
            if by_partition != dict(placement.tasks_by_partition):
                return Misplacement.NOT_WHOLE, "its nodes and its partitions disagree"
        return None

    def _lack_of_room(self, job: Job, placement: Placement) -> tuple[Misplacement, str] | None:
        for place, amount in _claims(job, placement):
            free = self._free[place]
            if not (amount.fits_in(free) or _fits_but_for_rounding(amount, free)):
                return Misplacement.NO_ROOM, (
                    f"{place} has {_words(free)} free and the job needs {_words(amount)} there"
                )
        return None


def _places(placement: Placement) -> Iterator[_Place]:
    for name, _ in placement.tasks_by_partition:
        yield _Place("partition", name)
    for name, _ in placement.tasks_by_node:
        yield _Place("node", name)


def _claims(job: Job, placement: Placement) -> Iterator[tuple[_Place, Resources]]:
    """What the job holds at each place of a placement that names each place once."""
    if len(job.stages) > 1:
        yield _Place("partition", placement.tasks_by_partition[0][0]), job.total
        return
    request = job.stages[0].request
    for name, tasks in placement.tasks_by_partition:
        yield _Place("partition", name), request * tasks
    for name, tasks in placement.tasks_by_node:
        yield _Place("node", name), request * tasks


def _tasks_within(request: Resources, room: Resources) -> float:
    amounts = (
        (request.cpus, room.cpus),
        (request.memory_bytes, room.memory_bytes),
        (request.gpus, room.gpus),
    )
    counts = [math.floor(have / need * (1 + _ROUNDING)) for need, have in amounts if need > 0]
    return min(counts, default=math.inf)


def _fits_but_for_rounding(amount: Resources, free: Resources) -> bool:
    return amount.fits_in(free + amount * _ROUNDING)


def _words(amount: Resources) -> str:
    words = [f"{amount.cpus:g} cpus"]
    if amount.memory_bytes:
        words.append(f"{amount.memory_bytes:g} bytes of memory")
    if amount.gpus:
        words.append(f"{amount.gpus:g} gpus")
    return ", ".join(words)
