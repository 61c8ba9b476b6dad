"""Resources that are free, what a placement takes of them, and how much longer a job runs there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from foresail.model.cluster import Cluster, NamedPartitions, Resources, belongs
from foresail.model.decision import Placement, RefusalCode
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.preference import PreferenceKind, option_of

_ROUNDING = 1e-9
"""Share of a place's total that repeated additions of fractions may have lost."""

_PARTITION: Final = "partition"
_NODE: Final = "node"

Claim: TypeAlias = tuple[dict[str, Resources], str, Resources]
"""The account of partitions or of nodes, a name in it, and an amount."""


def _node_twice(cluster: Cluster) -> InputError:
    homes: dict[str, list[str]] = {}
    for each in cluster.partitions:
        for node in each.nodes:
            homes.setdefault(node.name, []).append(each.name)
    name, some = next((name, some) for name, some in homes.items() if len(some) > 1)
    called = ",".join(dict.fromkeys(some))
    return InputError(
        f"node {name} would count more than once",
        field="partitions",
        value=" and ".join(some),
        expected=f"one record of the nodes that belong to several, called {called}",
    )


class FreeResources:
    """Free resources, by partition and by node.

    Nodes are accounted where a placement names them; partitions always are. What was free on a node
    that is down is taken off its partition, even for placements that name no nodes; what is held
    there is nothing to the partition until the node is up again. A partition without nodes is out
    of use as a whole. Where nodes are shared, less than nothing may be free, and there is room on
    every node that is up. A job of one stage holds its request once per task; a job of several
    holds ``Job.total`` in one partition.

    Raises ``InputError`` if a node is in two records of partitions: what it has would count twice.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._partition_of: dict[str, str] = {}  # of all nodes that there ever were
        self._consist_of(cluster)
        self._partitions = {p.name: p.total for p in cluster.partitions}
        self._nodes = {name: node.total for name, (_, node) in self._home.items()}
        self._down: dict[str, Resources] = {}
        self._closed: frozenset[str] = frozenset()  # partitions without nodes, less their totals
        self._shown_partitions: Mapping[str, Resources] | None = None
        self._shown_nodes: Mapping[str, Resources] | None = None

    def _consist_of(self, cluster: Cluster) -> None:
        self._shared = cluster.shared
        self._home = {node.name: (p.name, node) for p in cluster.partitions for node in p.nodes}
        if len(self._home) < sum(len(each.nodes) for each in cluster.partitions):
            raise _node_twice(cluster)
        self._partition_of |= {name: home for name, (home, _) in self._home.items()}
        self._largest = {p.name: p.total for p in cluster.partitions}
        self._rooms = {  # the smallest places known: one task never spans two of them
            p.name: Counter([node.total for node in p.nodes] or [p.total])
            for p in cluster.partitions
        }
        self._most_tasks: dict[tuple[object, ...], float] = {}
        self._named = NamedPartitions(cluster)

    def copy(self) -> FreeResources:
        """An independent account with the same amounts free."""
        self.by_partition()  # what has been shown is changed by neither
        self.by_node()
        twin = object.__new__(FreeResources)
        twin.__dict__.update(self.__dict__)
        return twin

    def by_partition(self) -> Mapping[str, Resources]:
        """Unused resources by partition name, as they are now.

        What is returned never changes; so it is with ``by_node``.
        """
        if self._shown_partitions is None:
            shown = self._partitions
            if self._closed:
                shown = shown | dict.fromkeys(self._closed, Resources())
            self._shown_partitions = MappingProxyType(shown)
        return self._shown_partitions

    def of_named(self, partition: str | None) -> list[Resources]:
        """Unused resources of each partition that a job names."""
        records = [self._named.records[name] for name in self._named.asked(partition)]
        free = self.by_partition()
        return [sum((free[each] for each in some), Resources()) for some in records]

    def records_of(self, partition: str | None) -> list[str]:
        """Names of all that the partitions which a job names consist of."""
        asked = self._named.asked(partition)
        return [each for name in asked for each in self._named.records[name]]

    def by_node(self) -> Mapping[str, Resources]:
        """Unused resources by node name, of nodes that are up, in the cluster's order."""
        if self._shown_nodes is None:
            self._shown_nodes = MappingProxyType(self._nodes)
        return self._shown_nodes

    @property
    def cpus(self) -> float:
        """Unused cpus in all."""
        return sum(free.cpus for free in self.by_partition().values())

    def _before_change(self) -> None:
        """Leave to others what they have been shown."""
        if self._shown_partitions is not None:
            self._partitions = self._partitions.copy()
        if self._shown_nodes is not None:
            self._nodes = self._nodes.copy()
            self._down = self._down.copy()
        self._shown_partitions = self._shown_nodes = None

    def close(self, node: str) -> None:
        """Take a node, or a partition without nodes, out: nothing can be placed there until opened.

        Raises ``KeyError`` if there is no such place; so does ``open``.
        """
        if node not in self._home:
            total = self._largest[node]
            if node not in self._closed:
                self._before_change()
                self._closed |= {node}
                self._partitions[node] -= total
            return
        partition, known = self._home[node]
        if node in self._down:
            return
        self._before_change()
        free = self._nodes.pop(node)
        self._down[node] = free - known.total
        self._partitions[partition] -= free

    def occupy(self, node: str, amount: Resources) -> None:
        """Hold so much more of a node for what is no job; less, where it is negative.

        Raises ``KeyError`` if there is no such node.
        """
        partition, _ = self._home[node]
        self._before_change()
        if node in self._down:
            self._down[node] -= amount
            return
        self._nodes[node] -= amount
        self._partitions[partition] -= amount

    def open(self, node: str) -> None:
        """Put a node, or a partition without nodes, back."""
        if node not in self._home:
            total = self._largest[node]
            if node in self._closed:
                self._before_change()
                self._closed -= {node}
                self._partitions[node] += total
            return
        partition, known = self._home[node]
        if node not in self._down:
            return
        self._before_change()
        free = {**self._nodes, node: self._down.pop(node) + known.total}
        self._nodes = {name: free[name] for name in self._home if name in free}
        self._partitions[partition] += free[node]

    def change(self, cluster: Cluster) -> None:
        """Go over to a cluster with other nodes: what is held is held, what is down stays down.

        What is held on a node that is gone is given back as on one that is down.
        """
        self._before_change()
        before = self._home
        self._consist_of(cluster)
        after = self._home
        free = {p.name: self._partitions.get(p.name, Resources()) for p in cluster.partitions}
        for name, (home, old) in before.items():
            new = after[name][1] if name in after else None
            if new is old or (new is not None and name in self._down):
                continue
            if new is not None:
                self._nodes[name] += new.total - old.total
                free[home] += new.total - old.total
                continue
            if name not in self._down:
                unused = self._nodes.pop(name)
                self._down[name] = unused - old.total
                free[home] -= unused
            if self._down[name] == Resources():
                del self._down[name]
        for name, (home, new) in after.items():
            if name not in before:
                self._nodes[name] = new.total + self._down.pop(name, Resources())
                free[home] += self._nodes[name]
        self._partitions = free
        self._nodes = {name: self._nodes[name] for name in after if name in self._nodes}

    def frees_nothing(self, placement: Placement) -> bool:
        """Return whether the end of this placement frees nothing: all its places are closed."""
        nodes = placement.tasks_by_node if self._down else ()
        if self._closed and not placement.tasks_by_node:
            return all(name in self._closed for name, _ in placement.tasks_by_partition)
        return bool(nodes) and all(name in self._down for name, _ in nodes)

    @property
    def down(self) -> frozenset[str]:
        """Names of the nodes that are down."""
        if not self._down:  # asked at every pass
            return frozenset()
        return frozenset(name for name in self._down if name in self._home)

    def has_room(self, job: Job, placement: Placement) -> bool:
        """Return whether the job's need there is free, be it all of the job's tasks or some."""
        return not (self._unknown_place(placement) or self._lack_of_room(job, placement))

    def take(self, job: Job, placement: Placement) -> None:
        """Hold what the job needs there; that it fits is for the caller to have checked."""
        self._add(job, placement, -1)

    def give_back(self, job: Job, placement: Placement) -> None:
        """Release what the job held there."""
        self._add(job, placement, 1)

    def _add(self, job: Job, placement: Placement, sign: int) -> None:
        places = placement.tasks_by_partition
        if len(places) == len(job.stages) == 1 and not placement.tasks_by_node:
            if self._shown_partitions is not None:
                self._partitions = self._partitions.copy()
                self._shown_partitions = None
            name, tasks = places[0]  # as nearly all are
            free, request, times = self._partitions[name], job.stages[0].request, sign * tasks
            self._partitions[name] = Resources(
                free.cpus + request.cpus * times,
                free.memory_bytes + request.memory_bytes * times,
                free.gpus + request.gpus * times,
            )
            return
        self._before_change()
        for account, name, amount in self._claims(job, placement):
            account[name] += amount * sign

    def misplacement(self, job: Job, placement: Placement) -> tuple[RefusalCode, str] | None:
        """Return why the job cannot be placed like this now, kind and sentence; None if it can."""
        places = placement.tasks_by_partition
        if len(places) == len(job.stages) == 1 and not placement.tasks_by_node:
            name, tasks = places[0]
            stage, room = job.stages[0], self._partitions.get(name)
            fits = job.partition is None or self._named.allows(job.partition, name)
            if room is not None and tasks == stage.tasks > 0 and fits:
                request = stage.request
                if (
                    request.cpus * tasks <= room.cpus
                    and request.memory_bytes * tasks <= room.memory_bytes
                    and request.gpus * tasks <= room.gpus
                ):
                    return None  # as nearly all are
        return (
            self._unknown_place(placement)
            or self._other_partition(job, placement)
            or self._broken_gang(job, placement)
            or self._lack_of_room(job, placement)
        )

    def could_hold(self, job: Job) -> bool:
        """Return whether the empty cluster has room for all of the job's tasks at once."""
        if len(job.stages) > 1:
            largest = self._largest.items()
            return any(
                job.total.fits_in(total) and self._named.allows(job.partition, name)
                for name, total in largest
            )
        request = job.stages[0].request
        key = (request.cpus, request.memory_bytes, request.gpus, job.partition)
        most = self._most_tasks.get(key)
        if most is None:
            asked = self._named.asked(job.partition)
            whole = [self._named.records[name] for name in asked] or [tuple(self._rooms)]
            most = max(
                sum(
                    count * tasks_within(request, room)
                    for record in records
                    for room, count in self._rooms[record].items()
                )
                for records in whole
            )
            most = math.inf if self._shared and most else most
            self._most_tasks[key] = most
        return most >= job.tasks

    def _unknown_place(self, placement: Placement) -> tuple[RefusalCode, str] | None:
        for name, _ in placement.tasks_by_partition:
            if name not in self._partitions:
                return RefusalCode.NO_SUCH_PLACE, f"the cluster has no {_PARTITION} {name!r}"
        for name, _ in placement.tasks_by_node:
            if name not in self._home:
                return RefusalCode.NO_SUCH_PLACE, f"the cluster has no {_NODE} {name!r}"
        return None

    def _other_partition(self, job: Job, placement: Placement) -> tuple[RefusalCode, str] | None:
        records = [name for name, _ in placement.tasks_by_partition]
        if self._named.allows(job.partition, *records):
            return None
        return RefusalCode.NO_SUCH_PLACE, f"the job is for {_PARTITION} {job.partition}"

    def _broken_gang(self, job: Job, placement: Placement) -> tuple[RefusalCode, str] | None:
        tasks = job.tasks
        partitions = dict(placement.tasks_by_partition)
        nodes = dict(placement.tasks_by_node)
        counts = [*placement.tasks_by_partition, *placement.tasks_by_node]
        if any(count <= 0 for _, count in counts):
            return RefusalCode.NOT_WHOLE, "a place is given no tasks"
        if len(partitions) + len(nodes) < len(counts):
            return RefusalCode.NOT_WHOLE, "a place is named twice"
        placed = sum(partitions.values())
        if placed != tasks:
            return RefusalCode.NOT_WHOLE, f"{placed} of its {tasks} tasks are placed"
        if len(job.stages) > 1 and len(counts) > 1:
            return RefusalCode.NOT_WHOLE, "a job of several stages stays in one partition"
        if nodes:
            by_partition = dict.fromkeys(partitions, 0)
            for node, count in nodes.items():
                partition = self._home[node][0]
                by_partition[partition] = by_partition.get(partition, 0) + count
            if by_partition != partitions:
                return RefusalCode.NOT_WHOLE, "its nodes and its partitions disagree"
        return None

    def _lack_of_room(self, job: Job, placement: Placement) -> tuple[RefusalCode, str] | None:
        for account, name, amount in self._claims(job, placement):
            free = account[name]
            if self._shared and account is not self._down and name not in self._closed:
                continue
            if not amount.fits_in(free + amount * _ROUNDING):
                kind = _PARTITION if account is self._partitions else _NODE
                return RefusalCode.NO_ROOM, (
                    f"{kind} {name!r} has {_words(free)} free and the job needs "
                    f"{_words(amount)} there"
                )
        return None

    def _claims(self, job: Job, placement: Placement) -> list[Claim]:
        """Return what the job holds at each place of a placement that names each place once."""
        if len(job.stages) > 1:
            return [(self._partitions, placement.tasks_by_partition[0][0], job.total)]
        request = job.stages[0].request
        counts = dict(placement.tasks_by_partition)
        for name, tasks in placement.tasks_by_node if self._down else ():
            counts[self._partition_of[name]] -= tasks if name in self._down else 0
        claims: list[Claim] = [
            (self._partitions, name, request if tasks == 1 else request * tasks)
            for name, tasks in counts.items()
        ]
        for name, tasks in placement.tasks_by_node:
            account = self._down if name in self._down else self._nodes
            claims.append((account, name, request if tasks == 1 else request * tasks))
        return claims


def tasks_within(request: Resources, room: Resources) -> float:
    """Return how many tasks of this size have room."""
    amounts = (
        (request.cpus, room.cpus),
        (request.memory_bytes, room.memory_bytes),
        (request.gpus, room.gpus),
    )
    counts = [math.floor(have / need * (1 + _ROUNDING)) for need, have in amounts if need > 0]
    return min(counts, default=math.inf)


def _words(amount: Resources) -> str:
    words = [f"{amount.cpus:g} cpus"]
    if amount.memory_bytes:
        words.append(f"{amount.memory_bytes:g} bytes of memory")
    if amount.gpus:
        words.append(f"{amount.gpus:g} gpus")
    return ", ".join(words)


class Slowdowns:
    """The slowdowns of placements on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes: Final = {
            node.name: (node, partition.name)
            for partition in cluster.partitions
            for node in partition.nodes
        }
        self._slowest: Final = {
            partition.name: min([node.speed for node in partition.nodes] or [partition.speed])
            for partition in cluster.partitions
        }
        self._has_speeds: Final = cluster.has_speeds

    def factor(self, job: Job, placement: Placement) -> float:
        """Return the factor of the place, over the speed of the slowest machine it is given.

        A gang waits for its slowest task. What has a place in a partition, and on no particular
        nodes, is taken to be on the slowest of them.
        """
        likes_some = job.options or job.preference is not None
        own = self._of_place(job, placement) if likes_some else 1.0
        return own * (1.0 / self._speed(placement)) if self._has_speeds else own

    def _speed(self, placement: Placement) -> float:
        if placement.tasks_by_node:
            return min(self._nodes[name][0].speed for name, _ in placement.tasks_by_node)
        return min(self._slowest[name] for name, _ in placement.tasks_by_partition)

    def _of_place(self, job: Job, placement: Placement) -> float:
        """The job's own slowdown, or 1 where its preference is given; that of its option if it has.

        A pool of processors without named nodes is all alike to every job.
        """
        if job.options:
            option = option_of(job.options, placement.places)
            return 1.0 if option is None else option.slowdown
        if job.preference is None or not self._nodes:
            return 1.0
        placed = [(*self._nodes[name], tasks) for name, tasks in placement.tasks_by_node]
        if not placed and job.preference.kind is PreferenceKind.PARTITION:
            held = all(
                belongs(name, job.preference.names) for name, _ in placement.tasks_by_partition
            )
        else:
            held = bool(placed) and job.preference.holds(placed)
        return 1.0 if held else job.preference.slowdown
