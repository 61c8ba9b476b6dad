"""Partitions: nodes that no equivalence set tells apart, to be counted instead of named.

Source: Tumanov et al., TetriSched (EuroSys 2016), section 7.3; spec tetrisched section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.model.arrays import Integers

_WORD_BITS = 64
_LOOKUPS = 16  # to look a node's number up takes as long as so many tests for membership


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """The fewest groups of nodes of which every equivalence set is a union."""

    of_node: Integers
    """Partition of every node, -1 for a node that is in no set; shape (nodes,). Partitions are
    numbered by their first nodes."""
    sizes: Integers
    """Nodes of every partition; shape (partitions,)."""
    set_starts: Integers
    set_members: Integers
    """Partitions of set s are ``set_members[set_starts[s]:set_starts[s + 1]]``, ascending."""


def refine(nodes: Sequence[str], sets: Sequence[AbstractSet[str]]) -> Partitions:
    """Partitions of the nodes by the sets that they are in.

    Nodes of a set that are not among ``nodes`` (they left the cluster) are passed over.
    """
    number = {node: place for place, node in enumerate(nodes)}
    member = np.zeros((len(sets), len(nodes)), np.bool_)
    for row, each in enumerate(sets):
        if len(each) * _LOOKUPS > len(nodes):
            member[row] = np.fromiter(map(each.__contains__, nodes), np.bool_, len(nodes))
        else:
            member[row, [number[node] for node in each if node in number]] = True
    signatures = _signatures(member)
    _, first, inverse = np.unique(signatures, return_index=True, return_inverse=True)
    used = np.asarray(member.any(axis=0), np.bool_)
    order = np.argsort(first)
    order = order[used[first[order]]]
    rank = np.full(first.size, -1)
    rank[order] = np.arange(order.size)
    of_node = rank[inverse]
    set_numbers, set_members = np.nonzero(member[:, first[order]])
    return Partitions(
        of_node=of_node,
        sizes=np.bincount(of_node[of_node >= 0], minlength=order.size),
        set_starts=np.searchsorted(set_numbers, np.arange(len(sets) + 1)),
        set_members=set_members,
    )


def _signatures(member: NDArray[np.bool_]) -> Integers:
    """A number per node, the same for nodes of the same sets; ``member`` is (sets, nodes)."""
    sets, nodes = member.shape
    words = -(-sets // _WORD_BITS)
    octets = np.zeros((nodes, 8 * words), np.uint8)
    packed = np.packbits(member, axis=0).T
    octets[:, : packed.shape[1]] = packed
    found = np.zeros(nodes, np.int64)
    for word in octets.view(np.uint64).T:
        _, more = np.unique(word, return_inverse=True)
        _, found = np.unique(found * nodes + more, return_inverse=True)
    return found
