"""Pools of nodes, where pods may go and tasks are, and what else nodes hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache

from foresail.model import event as news
from foresail.model.cluster import Cluster, Node, Partition, Placement, Resources
from foresail_kubernetes.groups import Bundles
from foresail_kubernetes.records import KubernetesNode, Pod, allows


class Places:
    """Pools of nodes, and where pods may go."""

    def __init__(self, nodes: Mapping[str, KubernetesNode]) -> None:
        self._pools: dict[str, list[KubernetesNode]] = {}
        for name in sorted(nodes):
            self._pools.setdefault(nodes[name].pool, []).append(nodes[name])
        self.rooms = [each.total for each in nodes.values()]
        self._homes = {name: node.pool for name, node in nodes.items()}
        self._found = lru_cache(maxsize=1024)(self._places)
        self.cluster = Cluster(
            tuple(
                Partition(
                    pool,
                    sum((each.total for each in some), Resources()),
                    tuple(Node(each.name, each.total) for each in some),
                )
                for pool, some in sorted(self._pools.items())
            )
        )

    def pool_of(self, node: str) -> str | None:
        """Return the pool of a node, if that is known."""
        return self._homes.get(node)

    def of(self, pods: Sequence[Pod]) -> tuple[str | None, str]:
        """Return the pools that all pods may go to, None for all, and why that cannot be said."""
        found = [self._found(each) for each in {_Wishes(each) for each in pods}]
        why = next((why for _, why in found if why), "")
        some = [names for names, _ in found if names is not None]
        if why or not some:
            return None, why
        together = set[str](some[0]).intersection(*some[1:])
        return ",".join(sorted(together)), "" if together else "its pods may share no pool"

    def _places(self, wishes: _Wishes) -> tuple[tuple[str, ...] | None, str]:
        names, part = list[str](), ""
        for pool, some in self._pools.items():
            count = sum(allows(wishes.pod, each) for each in some)
            if count == len(some):
                names.append(pool)
            elif count:
                part = part or f"may use some of the nodes of {pool} only"
        if part or not names:
            return None, part or "may run on no node that there is"
        return (None if len(names) == len(self._pools) else tuple(names)), ""


class _Wishes:
    """Wishes of a pod for its place, alike for pods that have the same."""

    __slots__ = ("_key", "pod")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self._key = pod.selector, pod.tolerations

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wishes) and self._key == other._key


def placement(
    bundles: Bundles, pods: Mapping[str, Pod], homes: Mapping[str, str | None]
) -> Placement | None:
    """Return where tasks are: each with the first of its pods that is known."""
    at = [next((uid for uid in bundle if uid in pods), None) for bundle in bundles]
    places = Counter((homes[uid] or "", pods[uid].node) for uid in at if uid is not None)
    if not places:
        return None
    pools = Counter[str]()
    for (pool, _), tasks in places.items():
        pools[pool] += tasks
    by_node = tuple((node, tasks) for (_, node), tasks in sorted(places.items()))
    return Placement(tuple(sorted(pools.items())), by_node)


class Loads:
    """Requests of pods that are no jobs, by node; news are those that differ from what was said."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, Resources]] = {}
        self._said: dict[str, Resources] = {}

    def count(self, pod: Pod, *, is_there: bool) -> None:
        """Count a pod among the load of its node, or no more."""
        loads = self._by_node.setdefault(pod.node, {})
        if is_there and pod.node:
            loads[pod.uid] = pod.request
        else:
            loads.pop(pod.uid, None)

    def events(self, nodes: Container[str], now: float) -> Iterator[news.Occupied]:
        """Yield what of each of some nodes is held by what is no job, where that is new."""
        for name, loads in self._by_node.items():
            if name not in nodes:
                self._said.pop(name, None)
                continue
            total = sum(loads.values(), Resources())
            if total != self._said.get(name, Resources()):
                self._said[name] = total
                yield news.Occupied(now, name, total)
