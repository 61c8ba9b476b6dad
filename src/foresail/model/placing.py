"""Finding nodes for a gang: preferred ones first, any others after.

Of these the fastest first, of equally fast ones those with fewest gpus, and of these the fullest
that fits, so that large nodes and gpus stay free for jobs that need them.

Where a cluster knows no nodes, and for a job of several stages (which holds what its widest stages
need in one partition, whatever the nodes), a partition with room for all of it is as good.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import merge

from foresail.model.cluster import Cluster, NamedPartitions, Node, Resources, belongs
from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.preference import Preference, PreferenceKind
from foresail.model.view import ClusterView

_ROUNDING = 1e-9


class NodesByPreference:
    """A cluster's nodes and the sets of them that preferences name; found once per cluster.

    ``groups`` numbers from 0 those groups of nodes in which nodes are looked for apart from all
    others; otherwise there is one. ``order`` numbers the orders in which nodes are looked through:
    a group has one for each of the ``classes``, the fastest first, of these those with fewest gpus.
    """

    def __init__(self, cluster: Cluster, groups: Mapping[str, int] | None = None) -> None:
        self.cluster = cluster
        self._nodes: dict[str, tuple[Node, str]] = {
            node.name: (node, partition.name)
            for partition in cluster.partitions
            for node in partition.nodes
        }
        self.position = {name: number for number, name in enumerate(self._nodes)}
        classes = {(-node.speed, node.total.gpus) for node, _ in self._nodes.values()}
        number = {each: at for at, each in enumerate(sorted(classes))}
        self.classes = len(number)
        self.order = {
            name: number[-node.speed, node.total.gpus]
            + self.classes * (0 if groups is None else groups[name])
            for name, (node, _) in self._nodes.items()
        }
        self.groups = range(1 if groups is None else 1 + max(groups.values(), default=0))
        pools = sorted(cluster.partitions, key=lambda each: -each.speed)
        self.partitions = [partition.name for partition in pools]
        self.named = NamedPartitions(cluster)
        self._within: dict[tuple[str, ...], frozenset[str]] = {}
        self._sets: dict[tuple[PreferenceKind, tuple[str, ...]], tuple[frozenset[str], ...]] = {}

    def partition(self, node: str) -> str:
        """The partition that a node belongs to."""
        return self._nodes[node][1]

    def attribute(self, node: str, name: str) -> str:
        """Return what a node offers under a name that it has."""
        return self._nodes[node][0].attributes[name]

    def within(self, partitions: Iterable[str]) -> frozenset[str]:
        """The nodes that belong to any of these partitions."""
        asked = tuple(partitions)
        if asked not in self._within:
            nodes = self._nodes.items()
            self._within[asked] = frozenset(n for n, (_, home) in nodes if belongs(home, asked))
        return self._within[asked]

    def preferred(self, preference: Preference) -> tuple[frozenset[str], ...]:
        """The sets of nodes within which a placement is a preferred one."""
        key = (preference.kind, preference.names)
        if key not in self._sets:
            self._sets[key] = tuple(self._preferred(preference))
        return self._sets[key]

    def _preferred(self, preference: Preference) -> Iterator[frozenset[str]]:
        names = preference.names
        match preference.kind:
            case PreferenceKind.PARTITION:
                yield self.within(names)
            case PreferenceKind.ATTRIBUTE:
                yield self._with_any(names)
            case PreferenceKind.SPREAD:
                yield self._with_any(names[:1])
            case PreferenceKind.SAME:
                alike = self._with_any(names[:1])
                values = {name: self.attribute(name, names[0]) for name in alike}
                for value in sorted({*values.values()}):
                    yield frozenset(name for name in alike if values[name] == value)

    def _with_any(self, attributes: tuple[str, ...]) -> frozenset[str]:
        return frozenset(
            name
            for name, (node, _) in self._nodes.items()
            if any(attribute in node.attributes for attribute in attributes)
        )


_Order = list[tuple[float, int, str]]
"""Free cpus, position and name of nodes."""
_Orders = defaultdict[int, _Order]
"""By number, as ``NodesByPreference`` has them; none of those without nodes."""


class FreeRoom:
    """Resources that are free at one moment, and what is left of it as gangs are placed."""

    def __init__(self, view: ClusterView, places: NodesByPreference) -> None:
        self._places = places
        self._partitions: dict[str, Resources] = dict(view.free)
        self._nodes: Mapping[str, Resources] = view.free_nodes
        self._changed: dict[str, Resources] = {}
        self._fullest_first: _Orders | None = None
        self._leaving, self._now = view.leaving, view.now
        self.cpus = sum([room.cpus for room in self._partitions.values()])

    def has_cpus_for(self, cpus: float) -> bool:
        """Return whether so many are free in all, wherever they are."""
        return cpus <= self.cpus * (1.0 + _ROUNDING)

    def add(self, job: Job, placement: Placement) -> None:
        """Give back what a job holds: what would be free if it were gone."""
        self._change(job, placement, 1)

    def take(self, job: Job, placement: Placement) -> None:
        """Hold what a job needs there."""
        self._change(job, placement, -1)

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        self.cpus += sign * job.cpus
        if len(job.stages) > 1:
            self._partitions[placement.tasks_by_partition[0][0]] += job.total * sign
            return
        request = job.stages[0].request
        for name, tasks in placement.tasks_by_partition:
            self._partitions[name] += request * (sign * tasks)
        for name, tasks in placement.tasks_by_node:
            if name in self._nodes:
                self._set_free(name, self._free(name) + request * (sign * tasks))

    def _free(self, name: str) -> Resources:
        changed = self._changed.get(name)
        return self._nodes[name] if changed is None else changed

    def _set_free(self, name: str, free: Resources) -> None:
        if self._fullest_first is not None:
            order = self._fullest_first[self._places.order[name]]
            position, before = self._places.position[name], self._free(name).cpus
            if before > 0.0:
                del order[bisect_left(order, (before, position))]
            if free.cpus > 0.0:
                insort(order, (free.cpus, position, name))
        self._changed[name] = free

    def alike(self, job: Job) -> Hashable:
        """Return what is equal for jobs that fit, or do not, at the same moment."""
        limit = job.requested_seconds if self._leaving else None
        if len(job.stages) > 1:
            return job.stages, job.partition, job.preference, limit
        stage = job.stages[0]
        request = stage.request
        cpus, memory, gpus = request.cpus, request.memory_bytes, request.gpus
        return stage.tasks, cpus, memory, gpus, job.partition, job.preference, limit

    def placement(self, job: Job) -> Placement | None:
        """Find nodes for the gang now: preferred ones if it fits there, else any; None if not."""
        if not self.has_cpus_for(job.cpus):
            return None
        asked = self._places.named.asked(job.partition)
        if not self._places.position or len(job.stages) > 1:
            if not asked:
                return self._whole_partition(job)
            records = self._places.named.records
            every = (placed(job, records[name], self._partitions) for name in asked)
            return next((each for each in every if each is not None), None)
        self._bar(job)
        every = (self._on_nodes(job, self._places.within([name])) for name in asked)
        if asked:
            return next((each for each in every if each is not None), None)
        return self._on_nodes(job, None)

    def _on_nodes(self, job: Job, within: frozenset[str] | None) -> Placement | None:
        """On the nodes of a partition, or on any."""
        preference = job.preference
        if preference is not None:
            for names in self._places.preferred(preference):
                if within is not None:
                    names &= within
                if preference.kind is PreferenceKind.SPREAD:
                    found = self._spread(job, names, preference.names[0])
                else:
                    found = self._packed(job, names)
                if found is not None:
                    return found
        return self._packed(job, self._places.position if within is None else within)

    def has_nodes(self, partitions: Sequence[str]) -> bool:
        """Return whether any node belongs to one of some partitions."""
        return bool(self._places.within(partitions))

    def on_nodes_of(
        self, job: Job, partitions: Sequence[str], kept: Container[str]
    ) -> Placement | None:
        """Place the gang on nodes of some partitions that are not kept; None if it does not fit."""
        self._bar(job)
        names = self._places.within(partitions)
        return self._on_nodes(job, frozenset(n for n in names if n not in kept) if kept else names)

    def free_of(self, partitions: Sequence[str]) -> dict[str, Resources]:
        """Return what is free of each node in use of some partitions."""
        names = self._places.within(partitions)
        return {name: self._free(name) for name in self._nodes if name in names}

    def _bar(self, job: Job) -> None:
        """Leave out nodes that will go before the job must have ended, until the next one."""
        leaving = self._leaving.items()
        self._barred = {name for name, at in leaving if not job.ends_by(at, self._now)}

    def in_partition(self, job: Job, name: str) -> Placement | None:
        """The whole job in a partition without named nodes; None if it does not fit."""
        fits = job.total.fits_in(self._partitions[name])
        return Placement.whole(name, job.tasks) if fits else None

    def within(self, job: Job, shares: Iterable[tuple[Sequence[int], int]]) -> Placement | None:
        """The gang with so many tasks in each of some sets of groups; None if they do not fit."""
        self._bar(job)
        request = job.stages[0].request
        placed: list[tuple[str, int]] = []
        for groups, tasks in shares:
            found = self._filled(request, self._in_order(request, groups), tasks)
            if found is None:
                return None
            placed += found
        return self._placement(placed)

    def _whole_partition(self, job: Job) -> Placement | None:
        for name in self._partitions_in_order(job.preference):
            if job.total.fits_in(self._partitions[name]):
                return Placement.whole(name, job.tasks)
        return None

    def _partitions_in_order(self, preference: Preference | None) -> list[str]:
        """The preferred ones first, and of these the fastest."""
        names = self._places.partitions
        if preference is None or preference.kind is not PreferenceKind.PARTITION:
            return names
        return sorted(names, key=lambda name: not belongs(name, preference.names))

    def _in_order(self, request: Resources, groups: Sequence[int]) -> Iterator[str]:
        """Nodes of some groups with cpus for a task, in the order of this module."""
        if request.cpus <= 0.0:
            orders = self._sorted(-math.inf)
        else:
            if self._fullest_first is None:
                self._fullest_first = self._sorted(0.0)
            orders = self._fullest_first
        least = (request.cpus * (1.0 - _ROUNDING),)
        classes = self._places.classes
        for place in range(classes):
            numbers = [place + classes * group for group in groups]
            fitting = [_from(orders[each], least) for each in numbers if each in orders]
            for _, _, name in fitting[0] if len(fitting) == 1 else merge(*fitting):
                yield name

    def _rooms(self, request: Resources, names: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Yield the nodes, of some, that tasks fit on, and how many tasks.

        What jobs without nodes leave of a node's partition counts too: so many in all its nodes.
        """
        quota: dict[str, int] = {}
        for name in names:
            if name in self._barred:
                continue
            partition = self._places.partition(name)
            if partition not in quota:
                quota[partition] = tasks_within(request, self._partitions[partition])
            tasks = min(tasks_within(request, self._free(name)), quota[partition])
            if tasks:
                quota[partition] -= tasks
                yield name, tasks

    def _filled(
        self, request: Resources, names: Iterable[str], tasks: int
    ) -> list[tuple[str, int]] | None:
        """So many tasks on some nodes, filled one after the other; None if they do not fit."""
        placed: list[tuple[str, int]] = []
        left = tasks
        for name, fitting in self._rooms(request, names):
            some = min(fitting, left)
            placed.append((name, some))
            left -= some
            if not left:
                return placed
        return None

    def _sorted(self, more_than: float) -> _Orders:
        """Nodes with more cpus free than this, the fullest first, then as the cluster has them."""
        position, number = self._places.position, self._places.order
        free = {**self._nodes, **self._changed} if self._changed else self._nodes
        orders: _Orders = defaultdict(list)
        for name, room in free.items():
            if room.cpus > more_than:
                orders[number[name]].append((room.cpus, position[name], name))
        for order in orders.values():
            order.sort()
        return orders

    def _among(self, request: Resources, names: Container[str]) -> Iterator[str]:
        """Names as ``_in_order`` has them, of these nodes in all groups."""
        return (name for name in self._in_order(request, self._places.groups) if name in names)

    def _packed(self, job: Job, names: Container[str]) -> Placement | None:
        """The whole gang on these nodes, filled one after the other."""
        request = job.stages[0].request
        placed = self._filled(request, self._among(request, names), job.tasks)
        return None if placed is None else self._placement(placed)

    def _spread(self, job: Job, names: Container[str], attribute: str) -> Placement | None:
        """One task in each of as many different places."""
        used: dict[str, str] = {}
        request = job.stages[0].request
        for name, _ in self._rooms(request, self._among(request, names)):
            used.setdefault(self._places.attribute(name, attribute), name)
            if len(used) == job.tasks:
                return self._placement((name, 1) for name in used.values())
        return None

    def _placement(self, placed: Iterable[tuple[str, int]]) -> Placement:
        by_partition: dict[str, int] = {}
        by_node = list(placed)
        for name, tasks in by_node:
            partition = self._places.partition(name)
            by_partition[partition] = by_partition.get(partition, 0) + tasks
        return Placement(tuple(by_partition.items()), tuple(sorted(by_node)))


class Rooms:
    """Room at one moment after the other, on nodes that are found once per cluster."""

    def __init__(self) -> None:
        self._places = NodesByPreference(Cluster(()))

    def at(self, view: ClusterView) -> FreeRoom:
        """Return what is free at the moment of a view."""
        if self._places.cluster is not view.cluster:
            self._places = NodesByPreference(view.cluster)
        return FreeRoom(view, self._places)


def placed(job: Job, records: Sequence[str], room: Mapping[str, Resources]) -> Placement | None:
    """All tasks on what is free of some records, the first filled first; None: no room."""
    if len(job.stages) > 1:
        whole = (name for name in records if job.total.fits_in(room[name]))
        return next((Placement.whole(name, job.tasks) for name in whole), None)
    left, places = job.tasks, list[tuple[str, int]]()
    for name in records:
        tasks = min(tasks_within(job.stages[0].request, room[name]), left)
        if tasks > 0:
            places.append((name, tasks))
            left -= tasks
    return None if left else Placement(tuple(places))


def _from(order: _Order, least: tuple[float]) -> Iterator[tuple[float, int, str]]:
    """Yield what is not before this in an order, which must not change meanwhile."""
    return map(order.__getitem__, range(bisect_left(order, least), len(order)))


def tasks_within(request: Resources, free: Resources) -> int:
    """Return how many tasks fit; none of those that ask for nothing."""
    count = math.inf
    if request.cpus > 0.0:
        count = free.cpus / request.cpus
    if request.memory_bytes > 0.0:
        count = min(count, free.memory_bytes / request.memory_bytes)
    if request.gpus > 0.0:
        count = min(count, free.gpus / request.gpus)
    return max(math.floor(count * (1.0 + _ROUNDING)), 0) if count < math.inf else 0
