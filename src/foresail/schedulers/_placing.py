"""Finding nodes for a gang: preferred ones first, any others after; the fullest fitting node first.

Where a cluster knows no nodes, a partition with room for the whole gang is as good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from foresail.model.cluster import Cluster, Node
from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.preference import Preference, PreferenceKind
from foresail.model.resources import Resources
from foresail.model.view import ClusterView

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Room:
    """A node with what is free on it."""

    node: Node
    partition: str
    free: Resources


class FreeRoom:
    """What is free at one moment, and what is left of it as gangs are placed."""

    def __init__(self, view: ClusterView) -> None:
        self._cluster: Cluster = view.cluster
        self._partitions: dict[str, Resources] = dict(view.free)
        self._nodes: dict[str, Resources] = dict(view.free_nodes)
        self._cpus = sum(room.cpus for room in view.free.values())
        self._places = {
            node.name: (node, partition.name)
            for partition in view.cluster.partitions
            for node in partition.nodes
        }

    def add(self, job: Job, placement: Placement) -> None:
        """Give back what a job holds: what would be free if it were gone."""
        request = job.stages[0].request
        self._cpus += job.cpus
        for name, tasks in placement.tasks_by_partition:
            self._partitions[name] += request * tasks
        for name, tasks in placement.tasks_by_node:
            if name in self._nodes:
                self._nodes[name] += request * tasks

    def take(self, job: Job, placement: Placement) -> None:
        """Hold what a job needs there."""
        request = job.stages[0].request
        self._cpus -= job.cpus
        for name, tasks in placement.tasks_by_partition:
            self._partitions[name] -= request * tasks
        for name, tasks in placement.tasks_by_node:
            self._nodes[name] -= request * tasks

    def placement(self, job: Job) -> Placement | None:
        """Where the gang can start now: preferred nodes if it fits there, else any; None if not."""
        if job.cpus > self._cpus * (1.0 + _ROUNDING):
            return None
        if not self._places:
            return self._whole_partition(job)
        if job.preference is not None:
            for rooms in self._preferred(job.preference):
                spread = job.preference.kind is PreferenceKind.SPREAD
                found = _spread(job, rooms) if spread else _packed(job, rooms)
                if found is not None:
                    return found
        return _packed(job, self._rooms(_anywhere))

    def _whole_partition(self, job: Job) -> Placement | None:
        for name, free in self._partitions.items():
            if (job.partition is None or job.partition == name) and job.total.fits_in(free):
                return Placement.whole(name, job.tasks)
        return None

    def _rooms(self, wanted: Callable[[Node, str], bool]) -> list[_Room]:
        rooms = []
        for name, free in self._nodes.items():
            node, partition = self._places[name]
            if wanted(node, partition):
                rooms.append(_Room(node, partition, free))
        return sorted(rooms, key=lambda room: room.free.cpus)

    def _preferred(self, preference: Preference) -> Iterator[list[_Room]]:
        """The sets of nodes within which a placement is a preferred one."""
        names = preference.names
        match preference.kind:
            case PreferenceKind.PARTITION:
                yield self._rooms(lambda _, partition: partition in names)
            case PreferenceKind.ATTRIBUTE:
                yield self._rooms(lambda node, _: any(name in node.attributes for name in names))
            case PreferenceKind.SPREAD:
                yield self._rooms(lambda node, _: names[0] in node.attributes)
            case PreferenceKind.SAME:
                yield from self._racks(names[0])

    def _racks(self, attribute: str) -> Iterator[list[_Room]]:
        rooms = self._rooms(lambda node, _: attribute in node.attributes)
        rooms.sort(key=lambda room: room.node.attributes[attribute])
        for _, rack in groupby(rooms, key=lambda room: room.node.attributes[attribute]):
            yield sorted(rack, key=lambda room: room.free.cpus)


def _anywhere(node: Node, partition: str) -> bool:
    del node, partition
    return True


def _fitting(request: Resources, free: Resources) -> int:
    """How many tasks fit."""
    pairs = (
        (request.cpus, free.cpus),
        (request.memory_bytes, free.memory_bytes),
        (request.gpus, free.gpus),
    )
    counts = [have / need * (1.0 + _ROUNDING) for need, have in pairs if need > 0.0]
    return max(math.floor(min(counts, default=0.0)), 0)


def _packed(job: Job, rooms: Iterable[_Room]) -> Placement | None:
    """The whole gang on these nodes, filled one after the other."""
    request, left = job.stages[0].request, job.tasks
    placed: list[tuple[_Room, int]] = []
    for room in rooms:
        tasks = min(_fitting(request, room.free), left)
        if tasks:
            placed.append((room, tasks))
            left -= tasks
        if not left:
            return _placement(placed)
    return None


def _spread(job: Job, rooms: Iterable[_Room]) -> Placement | None:
    """One task in each of as many different places."""
    preference = job.preference
    attribute = preference.names[0] if preference is not None else ""
    used: dict[str, tuple[_Room, int]] = {}
    for room in rooms:
        value = room.node.attributes[attribute]
        if value not in used and _fitting(job.stages[0].request, room.free):
            used[value] = (room, 1)
        if len(used) == job.tasks:
            return _placement(used.values())
    return None


def _placement(placed: Iterable[tuple[_Room, int]]) -> Placement:
    by_partition: dict[str, int] = {}
    by_node: list[tuple[str, int]] = []
    for room, tasks in placed:
        by_partition[room.partition] = by_partition.get(room.partition, 0) + tasks
        by_node.append((room.node.name, tasks))
    return Placement(tuple(by_partition.items()), tuple(sorted(by_node, key=itemgetter(0))))
