"""Leaving a machine that is about to be taken back: what is to be done next, by what is seen.

Nothing is remembered from one look to the next: each step shows in the cluster. So whoever goes on
after a crash, of itself or of the API server, goes on at the right step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from foresail_kubernetes import wire
from foresail_kubernetes.records import pod_of
from foresail_kubernetes.transient.notices import ENDS, seconds_said
from foresail_kubernetes.transient.settings import SERVING, TYPE, Leaving

OUT: Final = "foresail.io/out-of-endpoints-since"
"""Annotation of a pod that has lost the label ``SERVING``."""
_HURRY_SECONDS: Final = 10.0
"""Time before the end of a machine by which everything is to have been said."""


class TransientNode(msgspec.Struct, frozen=True):
    """A node of a pool, as far as leaving it goes."""

    name: str
    type: str
    """Name of its type, as its label says."""
    is_ready: bool
    is_cordoned: bool
    """True once nothing new starts there, and its end is annotated."""
    ends_seconds: float | None
    """Time at which its machine is taken back; None if it is not."""
    taints: tuple[str, ...]
    """Keys of its taints."""


class LeavingPod(msgspec.Struct, frozen=True):
    """A pod, as far as leaving its node goes."""

    namespace: str
    name: str
    uid: str
    node: str
    group: str
    """Object that it belongs to, with its namespace: pods of one stand in for each other."""
    is_of_node: bool
    has_ended: bool
    is_leaving: bool
    is_ready: bool
    serves: bool
    """True if a Service may select it, by the label ``SERVING``."""
    out_since: float | None
    """Time at which it lost that label, if it did."""


class Cordon(msgspec.Struct, frozen=True):
    """Let nothing new start on a node."""

    node: str
    ends_seconds: float


class TakeOut(msgspec.Struct, frozen=True):
    """Take a pod out of the endpoints of its Services."""

    pod: LeavingPod


class Evict(msgspec.Struct, frozen=True):
    """Evict a pod, as far as budgets allow."""

    pod: LeavingPod


class Delete(msgspec.Struct, frozen=True):
    """Delete a node that is empty, or gone."""

    node: str


Action: TypeAlias = Cordon | TakeOut | Evict | Delete


def transient_node(of: wire.WireNode) -> TransientNode:
    """Return a node as a record."""
    meta, conditions = of.metadata, {each.type: each.status for each in of.status.conditions or ()}
    ends = (meta.annotations or {}).get(ENDS)
    return TransientNode(
        meta.name,
        (meta.labels or {}).get(TYPE, ""),
        conditions.get("Ready") == "True",
        of.spec.unschedulable and ends is not None,
        None if ends is None else seconds_said(ends) or 0.0,
        tuple(each.key for each in of.spec.taints or ()),
    )


def leaving_pod(of: wire.WirePod) -> LeavingPod:
    """Return a pod as a record."""
    meta, pod = of.metadata, pod_of(of)
    owner = next((each for each in meta.owner_references or () if each.controller), None)
    said = (meta.annotations or {}).get(OUT)
    conditions = {each.type: each.status for each in of.status.conditions or ()}
    return LeavingPod(
        meta.namespace,
        meta.name,
        meta.uid,
        pod.node,
        f"{meta.namespace}/{owner.kind}/{owner.name}" if owner else f"{meta.namespace}/{meta.name}",
        pod.is_of_node,
        pod.has_ended,
        pod.is_leaving,
        conditions.get("Ready") == "True",
        SERVING in (meta.labels or {}),
        None if said is None else seconds_said(said) or 0.0,
    )


def noticed(
    nodes: Iterable[TransientNode],
    listed: Mapping[str, float | None],
    rules: Leaving,
    now: float,
) -> list[TransientNode]:
    """Return the nodes, with the ends that a file or a taint says of those that have none yet."""
    found = []
    for each in nodes:
        is_said = each.name in listed or any(key in rules.taints for key in each.taints)
        if each.ends_seconds is None and is_said:
            ends = listed.get(each.name)
            each = msgspec.structs.replace(
                each, ends_seconds=now + rules.warning_seconds if ends is None else ends
            )
        found.append(each)
    return found


def serving_elsewhere(
    pods: Iterable[LeavingPod], leaving: Iterable[TransientNode]
) -> Mapping[str, int]:
    """Return how many pods of each group serve on nodes that stay."""
    going = {each.name for each in leaving}
    return Counter(
        each.group
        for each in pods
        if each.serves and each.is_ready and not each.is_leaving and each.node not in going
    )


def next_steps(
    node: TransientNode,
    pods: Sequence[LeavingPod],
    elsewhere: Mapping[str, int],
    rules: Leaving,
    now: float,
) -> list[Action]:
    """Return what is to be done now to leave a node: each step once the one before was seen done.

    Cordon; out of the endpoints; wait; evict; delete. Where no other pod of a group serves, one of
    those here goes on until one does, or time is nearly over. A machine whose time is over is
    deleted once it is not ready, with whatever is on it.

    ``pods`` are those of the node, ``elsewhere`` is of ``serving_elsewhere``.
    """
    ends = node.ends_seconds
    if ends is None:
        return []
    if not node.is_cordoned:
        return [Cordon(node.name, ends)]
    there = [each for each in pods if not each.is_of_node and not each.has_ended]
    if not there or (now >= ends and not node.is_ready):
        return [Delete(node.name)]
    last_moment = ends - rules.wait_seconds - _HURRY_SECONDS
    stays = {} if now >= last_moment else _last_ones(there, elsewhere)
    actions: list[Action] = []
    for each in there:
        if each.is_leaving or stays.get(each.group) == each.uid:
            continue
        if each.serves:
            actions.append(TakeOut(each))
        elif each.out_since is None or now >= each.out_since + rules.wait_seconds:
            actions.append(Evict(each))
    return actions


def _last_ones(pods: Iterable[LeavingPod], elsewhere: Mapping[str, int]) -> dict[str, str]:
    """Return, for groups that serve nowhere else, the pod that is to go on serving."""
    found: dict[str, str] = {}
    for each in sorted(pods, key=lambda pod: pod.uid):
        if each.serves and each.is_ready and not each.is_leaving and not elsewhere.get(each.group):
            found.setdefault(each.group, each.uid)
    return found


def is_overdue(node: TransientNode, now: float) -> bool:
    """Return whether a machine is there long after it was to have gone."""
    ends = node.ends_seconds
    return ends is not None and node.is_ready and now > ends + _OVERDUE_SECONDS


_OVERDUE_SECONDS: Final = 300.0
