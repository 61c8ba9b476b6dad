"""Cluster, partition and node: what exists and what it offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foresail.model.resources import Resources


@dataclass(frozen=True, slots=True)
class Node:
    """One machine and what it offers (gpu model, rack, price class) as attributes."""

    name: str
    total: Resources
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Partition:
    """A class of nodes that no pending job tells apart.

    Parameters
    ----------
    name
        Unique within the cluster.
    total
        Resources of all its nodes together.
    nodes
        The nodes, or nothing where a count of processors is all that is known (HPC logs).
    """

    name: str
    total: Resources
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """All partitions; immutable (what is free is state, and lives in ``control``).

    Parameters
    ----------
    partitions
        Whatever there is.
    shared
        Tasks share what their node has by what they really use, so that more may run there than
        there is room for by what they ask for.
    """

    partitions: tuple[Partition, ...]
    shared: bool = False

    @property
    def total(self) -> Resources:
        """Resources of all partitions together."""
        return sum((p.total for p in self.partitions), Resources())

    @classmethod
    def of_processors(cls, processors: int) -> Cluster:
        """A single partition ``all`` of identical processors, as HPC logs describe a machine."""
        return cls((Partition("all", Resources(cpus=float(processors))),))
