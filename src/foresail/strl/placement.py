"""Where a job runs best, as STRL: templates for people who never want to see the language.

Source: TetriSched (EuroSys 2016), section 4; spec tetrisched section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from foresail.model.cluster import Cluster, Node
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.job import Job
from foresail.model.preference import PreferenceKind
from foresail.strl.expression import Expression
from foresail.strl.requests import (
    Gang,
    Nodes,
    at_most_per_domain,
    either,
    elastic,
    spread,
    unconstrained,
    within,
)

Known = TypeVar("Known")


class PlacementKind(StrEnum):
    """The kinds of request: those of a job's preference, and two for jobs without one."""

    ANYWHERE = "anywhere"
    ELASTIC = "elastic"
    PARTITION = PreferenceKind.PARTITION.value
    ATTRIBUTE = PreferenceKind.ATTRIBUTE.value
    SAME = PreferenceKind.SAME.value
    SPREAD = PreferenceKind.SPREAD.value


_ONE_OR_MORE: Final = range(1, 1_000_000)
_NAMES_NEEDED: Final = MappingProxyType(
    {
        PlacementKind.ANYWHERE: (range(1), "none"),
        PlacementKind.ELASTIC: (range(1), "none"),
        PlacementKind.PARTITION: (_ONE_OR_MORE, "partitions"),
        PlacementKind.ATTRIBUTE: (_ONE_OR_MORE, "attributes"),
        PlacementKind.SAME: (range(1, 2), "one attribute, such as rack"),
        PlacementKind.SPREAD: (range(1, 2), "one attribute, such as rack"),
    }
)


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """Where a job's tasks run best, one task to a node.

    Parameters
    ----------
    kind
        ``ANYWHERE``; ``ELASTIC``: on as many nodes as there are, up to the tasks; ``PARTITION``,
        ``ATTRIBUTE``: all tasks in these partitions, on nodes with one of these attributes;
        ``SAME``: all on nodes with the same value of an attribute (a rack); ``SPREAD``: on nodes
        with different values of it.
    names
        The partitions or attributes.
    most_per_domain
        How many tasks of ``SPREAD`` may have the same value, at least 1.
    slowdown
        How many times longer the job runs anywhere else, at least 1; None if it must not run
        elsewhere.
    """

    kind: PlacementKind = PlacementKind.ANYWHERE
    names: tuple[str, ...] = ()
    most_per_domain: int = 1
    slowdown: float | None = None

    def __post_init__(self) -> None:
        needed, expected = _NAMES_NEEDED[self.kind]
        slowdown = 1.0 if self.slowdown is None else self.slowdown
        for field, holds, wanted in (
            ("names", len(self.names) in needed, f"{expected} for {self.kind}"),
            ("most_per_domain", self.most_per_domain >= 1, "at least 1"),
            ("slowdown", 1.0 <= slowdown < math.inf, "at least 1"),
        ):
            if not holds:
                value = getattr(self, field)
                raise InputError("not a placement", field=field, value=value, expected=wanted)

    @classmethod
    def of(cls, job: Job) -> PlacementRequest:
        """What a job's preference asks for; anywhere, if it has none.

        Of several attributes to be same or different in, the first counts, as in the preference.
        """
        preference = job.preference
        if preference is None:
            return cls()
        kind = PlacementKind(preference.kind.value)
        single = kind in (PlacementKind.SAME, PlacementKind.SPREAD)
        names = preference.names[:1] if single else preference.names
        return cls(kind, names, slowdown=preference.slowdown)


@dataclass(frozen=True, slots=True)
class NodeSets:
    """The node sets of a cluster that requests name; made once, used for every job.

    Parameters
    ----------
    nodes
        Names of all nodes.
    partitions
        Names of a partition's nodes, by its name.
    domains
        For each attribute, the nodes of each of its values (the racks, for ``rack``).
    """

    nodes: Nodes
    partitions: Mapping[str, Nodes]
    domains: Mapping[str, tuple[Nodes, ...]]

    @classmethod
    def of(cls, cluster: Cluster) -> NodeSets:
        """The sets of a cluster's nodes.

        Raises
        ------
        InputError
            If the cluster has no nodes, but only counts of processors.
        """
        partitions = {p.name: frozenset(n.name for n in p.nodes) for p in cluster.partitions}
        every = [node for partition in cluster.partitions for node in partition.nodes]
        if not every:
            raise InputError("the cluster has no nodes to choose from", expected="nodes by name")
        return cls(frozenset(node.name for node in every), partitions, _domains(every))


def _domains(nodes: Iterable[Node]) -> dict[str, tuple[Nodes, ...]]:
    """The nodes of each value of each attribute, by the attribute's name."""
    found: dict[str, dict[str, set[str]]] = {}
    for node in nodes:
        for name, value in node.attributes.items():
            found.setdefault(name, {}).setdefault(value, set()).add(node.name)
    return {name: tuple(map(frozenset, values.values())) for name, values in found.items()}


def expression_of(request: PlacementRequest, gang: Gang, node_sets: NodeSets) -> Expression | None:
    """What a job asks for, as STRL; None if nothing of it is possible and worth anything.

    Raises
    ------
    UnknownNameError
        If the cluster has no such partition or attribute.
    InputError
        If the value function is worth something that no value can be.
    """
    best = _best(request, gang, node_sets)
    if request.slowdown is None:
        return best
    return either((unconstrained(gang.slower(request.slowdown), node_sets.nodes), best))


def _best(request: PlacementRequest, gang: Gang, node_sets: NodeSets) -> Expression | None:
    """Where the job is as fast as it can be."""
    match request.kind:
        case PlacementKind.ANYWHERE:
            return unconstrained(gang, node_sets.nodes)
        case PlacementKind.ELASTIC:
            return elastic(gang, node_sets.nodes)
        case PlacementKind.PARTITION:
            parts = [_named("partition", name, node_sets.partitions) for name in request.names]
            return within(gang, (frozenset[str]().union(*parts),))
        case PlacementKind.ATTRIBUTE:
            kinds = [_named("attribute", name, node_sets.domains) for name in request.names]
            having = (nodes for domains in kinds for nodes in domains)
            return within(gang, (frozenset[str]().union(*having),))
        case PlacementKind.SAME:
            return within(gang, _named("attribute", request.names[0], node_sets.domains))
        case PlacementKind.SPREAD:
            domains = _named("attribute", request.names[0], node_sets.domains)
            if request.most_per_domain == 1 and len(domains) == gang.tasks:
                return spread(gang, domains)
            return at_most_per_domain(gang, domains, request.most_per_domain)


def _named(kind: str, name: str, known: Mapping[str, Known]) -> Known:
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return known[name]
