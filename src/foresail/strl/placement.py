"""Where a job wants to run, for people who never want to see STRL: ``same:rack`` and the like.

The texts are those of the column ``preferred`` of a workload's jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from foresail.model.cluster import Cluster, Node
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.job import Job
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

PREFERRED: Final = "preferred"
"""The attribute of a job that says where it runs best."""
SLOWDOWN_ELSEWHERE: Final = "slowdown_elsewhere"
"""The attribute that says how many times longer it runs where that is not given."""


class PlacementKind(Enum):
    """The kinds of request; the value is the word in front of the colon."""

    ANYWHERE = "anywhere"
    PARTITION = "partition"
    ATTRIBUTE = "attribute"
    SAME = "same"
    SPREAD = "spread"
    ELASTIC = "elastic"


_FORMS: Final = MappingProxyType(
    {
        PlacementKind.ANYWHERE: "anywhere",
        PlacementKind.PARTITION: "partition:a,b",
        PlacementKind.ATTRIBUTE: "attribute:gpu",
        PlacementKind.SAME: "same:rack",
        PlacementKind.SPREAD: "spread:rack or spread:rack,2",
        PlacementKind.ELASTIC: "elastic",
    }
)


_ONE_OR_MORE: Final = range(1, 1_000_000)
_NAMES_NEEDED: Final = MappingProxyType(
    {
        PlacementKind.ANYWHERE: range(1),
        PlacementKind.PARTITION: _ONE_OR_MORE,
        PlacementKind.ATTRIBUTE: range(1, 2),
        PlacementKind.SAME: range(1, 2),
        PlacementKind.SPREAD: range(1, 2),
        PlacementKind.ELASTIC: range(1),
    }
)


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """Where a job's tasks run best, one task to a node.

    Parameters
    ----------
    kind
        What the names are, and how the tasks lie to each other: all of them in the named
        partitions, on nodes with the named attribute, in the same domain (rack), spread over
        domains; anywhere; or on as many nodes as there are (elastic).
    names
        Partitions; one attribute; or one kind of domain. None for ``anywhere`` and ``elastic``.
    most_per_domain
        Of spread tasks, how many may share a domain.
    slowdown
        How many times longer the job runs anywhere else; None if it must not run elsewhere.
    """

    kind: PlacementKind = PlacementKind.ANYWHERE
    names: tuple[str, ...] = ()
    most_per_domain: int = 1
    slowdown: float | None = None

    def __post_init__(self) -> None:
        if len(self.names) not in _NAMES_NEEDED[self.kind] or self.most_per_domain < 1:
            raise InputError(
                "not a placement", field=PREFERRED, value=self.text, expected=_FORMS[self.kind]
            )
        if self.slowdown is not None and not 1.0 <= self.slowdown < math.inf:
            raise InputError(
                "no slowdown", field=SLOWDOWN_ELSEWHERE, value=self.slowdown, expected="at least 1"
            )

    @property
    def text(self) -> str:
        """The request as a job's ``preferred`` has it."""
        names = list(self.names)
        if self.most_per_domain != 1:
            names.append(str(self.most_per_domain))
        return f"{self.kind.value}:{','.join(names)}" if names else self.kind.value

    @classmethod
    def parse(cls, text: str, slowdown: float | None = None) -> PlacementRequest:
        """The request that a text is: ``partition:a,b``, ``attribute:gpu``, ``same:rack``, ...

        Raises
        ------
        InputError
            If the text is none of these, or the slowdown is below 1.
        """
        word, _, rest = text.strip().partition(":")
        names = tuple(name.strip() for name in rest.split(",") if name.strip())
        kind = next((kind for kind in PlacementKind if kind.value == word.strip()), None)
        if kind is None:
            expected = ", ".join(_FORMS.values())
            raise InputError("not a placement", field=PREFERRED, value=text, expected=expected)
        most = 1
        if kind is PlacementKind.SPREAD and len(names) == 2 and names[1].isdecimal():
            most = int(names[1])
            names = names[:1]
        return cls(kind, names, most, slowdown)

    @classmethod
    def of(cls, job: Job) -> PlacementRequest:
        """What a job's attributes ``preferred`` and ``slowdown_elsewhere`` ask for.

        Raises
        ------
        InputError
            If they cannot be understood.
        """
        text, slowdown = job.attributes.get(PREFERRED), job.attributes.get(SLOWDOWN_ELSEWHERE)
        try:
            times = None if slowdown is None else float(slowdown)
            return cls() if text is None else cls.parse(text, times)
        except InputError as error:
            raise InputError(
                f"job {job.job_id}: {error.problem}",
                field=error.field,
                value=error.value,
                expected=error.expected,
            ) from error
        except ValueError as error:
            raise InputError(
                f"job {job.job_id}: no slowdown",
                field=SLOWDOWN_ELSEWHERE,
                value=slowdown,
                expected="a number, at least 1",
            ) from error


@dataclass(frozen=True, slots=True)
class Grounds:
    """The node sets of a cluster that requests name; made once, used for every job.

    Parameters
    ----------
    nodes
        Names of all nodes.
    partitions
        Names of a partition's nodes, by its name.
    attributes
        Names of the nodes that have an attribute, by the attribute's name.
    domains
        Names of the nodes of each domain, by the kind of domain (``rack``).
    """

    nodes: Nodes
    partitions: Mapping[str, Nodes]
    attributes: Mapping[str, Nodes]
    domains: Mapping[str, tuple[Nodes, ...]]

    @classmethod
    def of(cls, cluster: Cluster) -> Grounds:
        """The sets of a cluster's nodes.

        A node has the attributes that it names, and ``gpu`` if it has any gpus. Nodes with the same
        value of an attribute are one domain of that kind; where no node says its ``rack``, a
        partition is a rack.

        Raises
        ------
        InputError
            If the cluster has no nodes, but only counts of processors.
        """
        partitions = {p.name: frozenset(n.name for n in p.nodes) for p in cluster.partitions}
        every = [node for partition in cluster.partitions for node in partition.nodes]
        if not every:
            raise InputError("the cluster has no nodes to choose from", expected="nodes by name")
        domains = _domains(every)
        domains["partition"] = tuple(partitions.values())
        domains.setdefault("rack", domains["partition"])
        attributes = {kind: frozenset().union(*sets) for kind, sets in _domains(every).items()}
        with_gpus = frozenset(node.name for node in every if node.total.gpus > 0)
        attributes["gpu"] = attributes.get("gpu", frozenset()) | with_gpus
        return cls(frozenset(node.name for node in every), partitions, attributes, domains)


def _domains(nodes: Iterable[Node]) -> dict[str, tuple[Nodes, ...]]:
    """The nodes of each value of each attribute, by the attribute's name."""
    found: dict[str, dict[str, set[str]]] = {}
    for node in nodes:
        for name, value in node.attributes.items():
            found.setdefault(name, {}).setdefault(value, set()).add(node.name)
    return {name: tuple(map(frozenset, values.values())) for name, values in found.items()}


def expression_of(request: PlacementRequest, gang: Gang, grounds: Grounds) -> Expression | None:
    """What a job asks for, as STRL; None if nothing of it is possible and worth anything.

    Raises
    ------
    UnknownNameError
        If the cluster has no such partition, attribute or kind of domain.
    InputError
        If the value function is worth something that no value can be.
    """
    best = _best(request, gang, grounds)
    if request.slowdown is None:
        return best
    return either((unconstrained(gang.slower(request.slowdown), grounds.nodes), best))


def _best(request: PlacementRequest, gang: Gang, grounds: Grounds) -> Expression | None:
    """Where the job is as fast as it can be."""
    match request.kind:
        case PlacementKind.ANYWHERE:
            return unconstrained(gang, grounds.nodes)
        case PlacementKind.ELASTIC:
            return elastic(gang, grounds.nodes)
        case PlacementKind.PARTITION:
            parts = [_named("partition", name, grounds.partitions) for name in request.names]
            return within(gang, (frozenset[str]().union(*parts),))
        case PlacementKind.ATTRIBUTE:
            return within(gang, (_named("attribute", request.names[0], grounds.attributes),))
        case PlacementKind.SAME:
            return within(gang, _named("kind of domain", request.names[0], grounds.domains))
        case PlacementKind.SPREAD:
            domains = _named("kind of domain", request.names[0], grounds.domains)
            if request.most_per_domain == 1 and len(domains) == gang.tasks:
                return spread(gang, domains)
            return at_most_per_domain(gang, domains, request.most_per_domain)


def _named(kind: str, name: str, known: Mapping[str, Known]) -> Known:
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return known[name]
