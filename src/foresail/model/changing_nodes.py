"""Clusters whose nodes come, change and go: what a cluster is after such an event."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.errors import InputError
from foresail.model.event import NodeAdded, NodeChange, NodeChanged, NodeRemoved


def changed(cluster: Cluster, change: NodeChange) -> Cluster:
    """The cluster with a node more, another or less; all other nodes are the same objects.

    A partition stays though its last node has gone.

    Raises ``InputError`` if there is no node to change or to remove, there already is one to add,
    or it comes to a partition that does not know its nodes.
    """
    match change:
        case NodeAdded(node=node, partition=name):
            if _home(cluster, node.name) is not None:
                raise InputError("there is such a node already", field="node", value=node.name)
            home = next((each for each in cluster.partitions if each.name == name), None)
            if home is None:
                return replace(
                    cluster, partitions=(*cluster.partitions, _partition_of(name, (node,)))
                )
            if not home.nodes and home.total != Resources():
                raise InputError(
                    "a node cannot join processors that belong to no nodes",
                    field="partition",
                    value=name,
                    expected="a partition of named nodes, or a new one",
                )
            return _with(cluster, home, (*home.nodes, node))
        case NodeChanged(node=node):
            home = _require_home(cluster, node.name)
            nodes = (node if each.name == node.name else each for each in home.nodes)
            return _with(cluster, home, tuple(nodes))
        case NodeRemoved(node=name):
            home = _require_home(cluster, name)
            return _with(cluster, home, tuple(each for each in home.nodes if each.name != name))


def with_later_nodes(cluster: Cluster, changes: Iterable[NodeChange]) -> Cluster:
    """The cluster with all nodes that ever come, as they first are; raises like ``changed``."""
    known = set(_nodes(cluster))
    for change in changes:
        if isinstance(change, NodeAdded) and change.node.name not in known:
            known.add(change.node.name)
            cluster = changed(cluster, change)
    return cluster


def without(cluster: Cluster, nodes: Collection[str]) -> Cluster:
    """The cluster as if it had not these nodes, or partitions without nodes; itself without any."""
    for partition in cluster.partitions:
        left = tuple(each for each in partition.nodes if each.name not in nodes)
        if len(left) < len(partition.nodes or (partition.name in nodes) * (partition,)):
            cluster = _with(cluster, partition, left)
    return cluster


def changes_between(before: Cluster, after: Cluster, now: float) -> Iterator[NodeChange]:
    """Yield the changes that turn one cluster into the other, but for the order of nodes."""
    old, new = _nodes(before), _nodes(after)
    moved = {name for name in old.keys() & new.keys() if old[name][1] != new[name][1]}
    for name, (node, _) in old.items():
        if name not in new or name in moved:
            yield NodeRemoved(now, name)
        elif new[name][0] != node:
            yield NodeChanged(now, new[name][0])
    for name, (node, partition) in new.items():
        if name not in old or name in moved:
            yield NodeAdded(now, node, partition)


def _nodes(cluster: Cluster) -> dict[str, tuple[Node, str]]:
    return {node.name: (node, each.name) for each in cluster.partitions for node in each.nodes}


def _home(cluster: Cluster, node: str) -> Partition | None:
    for partition in cluster.partitions:
        if any(each.name == node for each in partition.nodes):
            return partition
    return None


def _require_home(cluster: Cluster, node: str) -> Partition:
    home = _home(cluster, node)
    if home is None:
        raise InputError("no such node", field="node", value=node)
    return home


def _with(cluster: Cluster, home: Partition, nodes: tuple[Node, ...]) -> Cluster:
    partitions = (
        _partition_of(home.name, nodes) if each is home else each for each in cluster.partitions
    )
    return replace(cluster, partitions=tuple(partitions))


def _partition_of(name: str, nodes: tuple[Node, ...]) -> Partition:
    return Partition(name, sum((node.total for node in nodes), Resources()), nodes)
