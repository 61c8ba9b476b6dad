"""Cluster, partition and node: what exists and what it offers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from foresail.model.errors import InputError
from foresail.model.resources import Resources


def _require_speed(speed: float) -> None:
    if not 0.0 < speed < math.inf:
        raise InputError("not a speed", field="speed", value=speed, expected="a number above 0")


@dataclass(frozen=True, slots=True)
class Node:
    """One machine and what it offers (gpu model, rack, price class) as attributes.

    What takes t seconds at speed 1 takes t / ``speed`` here.

    Raises
    ------
    InputError
        If the speed is not a number above 0.
    """

    name: str
    total: Resources
    attributes: Mapping[str, str] = field(default_factory=dict)
    speed: float = 1.0

    def __post_init__(self) -> None:
        _require_speed(self.speed)


@dataclass(frozen=True, slots=True)
class Partition:
    """A class of nodes that no pending job tells apart.

    Raises
    ------
    InputError
        If the speed is not a number above 0.
    """

    name: str
    """Unique within the cluster; ``a,b`` of nodes that belong to two partitions as jobs name them
    (``foresail.model.named_partitions``)."""
    total: Resources
    """Resources of all its nodes together."""
    nodes: tuple[Node, ...] = ()
    """The nodes, or nothing where a count of processors is all that is known (HPC logs)."""
    speed: float = 1.0
    """Of these processors, where there are no nodes; nodes have their own."""

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
        """Whether anything in it is slower or faster than speed 1."""
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
