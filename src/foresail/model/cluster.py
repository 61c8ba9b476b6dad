"""Resources, nodes, partitions and clusters: what exists, what it offers, how jobs name it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from foresail.model.containers import quickly_made
from foresail.model.errors import InputError


@quickly_made
@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of cpus (cores), memory (bytes) and gpus (count)."""

    cpus: float = 0.0
    memory_bytes: float = 0.0
    gpus: float = 0.0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.cpus + other.cpus, self.memory_bytes + other.memory_bytes, self.gpus + other.gpus
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.cpus - other.cpus, self.memory_bytes - other.memory_bytes, self.gpus - other.gpus
        )

    def __mul__(self, times: float) -> Resources:
        return Resources(self.cpus * times, self.memory_bytes * times, self.gpus * times)

    def fits_in(self, room: Resources) -> bool:
        """Return whether this much can be taken from ``room`` without going below zero anywhere."""
        return (
            self.cpus <= room.cpus
            and self.memory_bytes <= room.memory_bytes
            and self.gpus <= room.gpus
        )


def _require_speed(speed: float) -> None:
    if not 0.0 < speed < math.inf:
        raise InputError("not a speed", field="speed", value=speed, expected="a number above 0")


@quickly_made
@dataclass(frozen=True, slots=True)
class Placement:
    """Placement of a job's tasks: by partition, and by node once nodes are named."""

    tasks_by_partition: tuple[tuple[str, int], ...]
    tasks_by_node: tuple[tuple[str, int], ...] = ()

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """Names of nodes, or of partitions where no nodes are named, each with its tasks."""
        return self.tasks_by_node or self.tasks_by_partition

    @classmethod
    def whole(cls, partition: str, tasks: int) -> Placement:
        """All tasks in one partition."""
        return cls(((partition, tasks),))


@dataclass(frozen=True, slots=True)
class Node:
    """One machine and what it offers (gpu model, rack, price class) as attributes.

    What takes t seconds at speed 1 takes t / ``speed`` here.

    Raises ``InputError`` if the speed is not a number above 0.
    """

    name: str
    total: Resources
    attributes: Mapping[str, str] = field(default_factory=dict)
    speed: float = 1.0

    def __post_init__(self) -> None:
        _require_speed(self.speed)


@dataclass(frozen=True, slots=True)
class Partition:
    """A class of nodes that no pending job distinguishes.

    Raises ``InputError`` if the speed is not a number above 0.
    """

    name: str
    """Unique within the cluster; ``a,b`` of nodes that belong to two partitions as jobs name them
    (``foresail.model.cluster``)."""
    total: Resources
    """Resources of all its nodes together."""
    nodes: tuple[Node, ...] = ()
    """The nodes, or nothing where a count of processors is all that is known (HPC logs)."""
    speed: float = 1.0
    """Speed of these processors, where there are no nodes; nodes have their own."""

    def __post_init__(self) -> None:
        _require_speed(self.speed)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All partitions; immutable (what is free is state, and lives in ``control``)."""

    partitions: tuple[Partition, ...]
    """Whatever there is."""
    shared: bool = False
    """Tasks share what their node has by what they really use, so that more may run there than
    there is room for by what they ask for."""

    @property
    def total(self) -> Resources:
        """Resources of all partitions together."""
        return sum((p.total for p in self.partitions), Resources())

    @property
    def has_speeds(self) -> bool:
        """Return whether anything in it is slower or faster than speed 1."""
        speeds = (each.speed for p in self.partitions for each in p.nodes or (p,))
        return any(speed != 1.0 for speed in speeds)

    @classmethod
    def of_processors(cls, processors: int) -> Cluster:
        """A single partition ``all`` of identical processors, as HPC logs describe a machine."""
        return cls((Partition("all", Resources(cpus=float(processors))),))

    @classmethod
    def of_partitions(cls, processors: Mapping[str, int]) -> Cluster:
        """Identical processors, so many by name of the partition."""
        return cls(tuple(Partition(name, Resources(float(n))) for name, n in processors.items()))


_BETWEEN = ","


def names_in(text: str | None) -> tuple[str, ...]:
    """The partitions that a job or a node names: ``a,b`` is two of them, and ``b*`` is ``b``.

    By a star Slurm marks the partition of jobs that name none.
    """
    names = () if text is None else (name.strip(" *") for name in text.split(_BETWEEN))
    return tuple(dict.fromkeys(name for name in names if name))


def belongs(record: str, names: Iterable[str]) -> bool:
    """Return whether nodes of a record belong to any of these partitions."""
    return not {record, *names_in(record)}.isdisjoint(names)


class NamedPartitions:
    """Partitions that jobs may name, each made up of ``Partition`` records of a cluster.

    Nodes that belong to several have a record of their own, called ``a,b``: partition ``a`` is that
    one and the one called ``a``.
    """

    def __init__(self, cluster: Cluster) -> None:
        records: dict[str, list[str]] = {}
        for each in cluster.partitions:
            for name in names_in(each.name) or (each.name,):
                records.setdefault(name, []).append(each.name)
        self.records: Mapping[str, tuple[str, ...]] = {
            name: tuple(sorted(some, key=lambda record: len(names_in(record))))
            for name, some in records.items()
        }
        """Names of records by name of the partition, those that belong to the fewest first."""
        self._asked: dict[str | None, tuple[str, ...]] = {None: ()}

    def whole(self, cluster: Cluster) -> Iterator[Partition]:
        """Each partition as a record of its own: what all of its nodes have."""
        known = {each.name: each for each in cluster.partitions}
        for name, records in self.records.items():
            if records == (name,):
                yield known[name]
            else:
                total = sum((known[each].total for each in records), Resources())
                yield Partition(name, total, tuple(n for r in records for n in known[r].nodes))

    def asked(self, text: str | None) -> tuple[str, ...]:
        """The partitions in any one of which a job is to run; none if it names none there is."""
        known = self._asked.get(text)
        if known is None:
            known = tuple(name for name in names_in(text) if name in self.records)
            self._asked[text] = known
        return known

    def allows(self, text: str | None, *records: str) -> bool:
        """Return whether a job that names these partitions may run on these records at once."""
        asked = self.asked(text)
        return not asked or any({*self.records[name]}.issuperset(records) for name in asked)


def require_same_processors(before: Cluster, there: Cluster) -> None:
    """Refuse other processors than a run's where they belong to no nodes, which alone may change.

    Memory may be off by a twentieth, as a machine's is under another kernel.
    """
    undivided = [
        {
            each.name: each.total
            for each in cluster.partitions
            if not each.nodes and each.total != Resources()
        }
        for cluster in (before, there)
    ]
    was, found = undivided
    if was.keys() == found.keys() and all(
        (total.cpus, total.gpus) == (found[name].cpus, found[name].gpus)
        and math.isclose(total.memory_bytes, found[name].memory_bytes, rel_tol=0.05)
        for name, total in was.items()
    ):
        return
    value, expected = (
        ", ".join(map(_amount, each.values())) or "named nodes" for each in (found, was)
    )
    raise InputError(
        "is not what this state was begun with, and processors that belong to no nodes stay",
        field="cluster",
        value=value,
        expected=f"{expected}, or another state folder; nodes of local(nodes=1) may change later",
    )


def _amount(total: Resources) -> str:
    gib = total.memory_bytes / 2**30
    return f"{total.cpus:g} cpus, {gib:.3g} GiB and {total.gpus:g} gpus without nodes"
