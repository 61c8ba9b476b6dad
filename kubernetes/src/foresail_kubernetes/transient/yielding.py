"""Room for services: work that fills what they leave yields to them, and few nines to many.

Pods are given as those of a service, by how available it has to be, or of none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from foresail_kubernetes import wire
from foresail_kubernetes.quantities import Amounts, added
from foresail_kubernetes.records import KubernetesNode, Pod, allows, pod_of
from foresail_kubernetes.transient.settings import Service

BATCH: Final = 0.0
"""Rank of what belongs to no service."""


@dataclass(frozen=True, slots=True)
class RankedPod:
    """A pod and its rank: the nines of its service, or ``BATCH``."""

    pod: Pod
    rank: float


def ranked(of: wire.WirePod, services: Iterable[Service]) -> RankedPod:
    """Return a pod with its rank: the highest, where several services have it."""
    labels = of.metadata.labels or {}
    ranks = [
        each.nines
        for each in services
        if each.namespace == of.metadata.namespace and each.labels.items() <= labels.items()
    ]
    return RankedPod(pod_of(of), max(ranks, default=BATCH))


def yielding(
    pods: Iterable[RankedPod],
    nodes: Sequence[KubernetesNode],
    spared: Collection[str] = (),
) -> list[RankedPod]:
    """Return pods to evict so that those of services that wait have room.

    Where a pod that waits fits beside what stays, with the room of all that is leaving, nothing
    yields. Else it is the node on which the lowest ranks, and then the fewest pods, yield; of these
    those that were bound last go first. A pod yields only to a higher rank.

    ``spared`` are uids of pods that may not be evicted now.
    """
    held: dict[str, list[RankedPod]] = {each.name: [] for each in nodes}
    waiting: list[RankedPod] = []
    for each in pods:
        pod = each.pod
        if pod.has_ended or pod.is_leaving:
            continue
        if pod.node in held:
            held[pod.node].append(each)
        elif not pod.node and each.rank > BATCH and not pod.aside:
            waiting.append(each)
    victims: list[RankedPod] = []
    for one in sorted(waiting, key=lambda each: (-each.rank, each.pod.place, each.pod.uid)):
        places = [
            (found, node.name)
            for node in nodes
            if node.is_usable and allows(one.pod, node)
            if (found := _in_the_way(one, node, held[node.name], spared)) is not None
        ]
        if not places:
            continue
        found, name = min(places, key=lambda each: (_cost(each[0]), each[1]))
        gone = {each.pod.uid for each in found}
        held[name] = [each for each in held[name] if each.pod.uid not in gone] + [one]
        victims += (each for each in found if each.pod.node)
    return victims


def _cost(victims: Sequence[RankedPod]) -> tuple[float, int]:
    return max((each.rank for each in victims), default=-1.0), len(victims)


def _in_the_way(
    one: RankedPod, node: KubernetesNode, held: Sequence[RankedPod], spared: Collection[str]
) -> list[RankedPod] | None:
    """Return the pods of a node that have to yield to one; None if that is not enough."""
    lacks = _lacking(one.pod, node, held)
    if not lacks:
        return []
    lower = [
        each
        for each in held
        if each.rank < one.rank and each.pod.uid not in spared and not each.pod.is_of_node
    ]
    lower.sort(key=lambda each: (each.rank, -(each.pod.bound_seconds or 0.0), each.pod.uid))
    taken: list[RankedPod] = []
    for each in lower:
        taken.append(each)
        lacks = _lacking(one.pod, node, [kept for kept in held if kept not in taken])
        if not lacks:
            break
    if lacks:
        return None
    for each in list(taken):  # what turned out not to be in the way
        fewer = [other for other in taken if other is not each]
        if not _lacking(one.pod, node, [kept for kept in held if kept not in fewer]):
            taken = fewer
    return taken


def _lacking(pod: Pod, node: KubernetesNode, beside: Sequence[RankedPod]) -> Mapping[str, Fraction]:
    """Return how much of what a pod needs is missing on a node beside others."""
    held: Amounts = added(each.pod.needs for each in beside)
    wanted = {**pod.needs, "pods": Fraction(1)}
    taken = {**held, "pods": Fraction(len(beside))}
    short = {
        name: amount + taken.get(name, Fraction()) - node.has.get(name, Fraction())
        for name, amount in wanted.items()
        if amount
    }
    return {name: amount for name, amount in short.items() if amount > 0}
