"""Time in slots and nodes in partitions: what is counted instead of named.

Partitions are nodes that no equivalence set distinguishes. Source: Tumanov et al., TetriSched
(EuroSys 2016), section 7.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import gcd

import numpy as np

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError
from foresail.strl.expression import Leaf, LinearNChooseK, Supply

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

    Nodes of a set that are not among ``nodes`` (they left the cluster) are skipped.
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


def _signatures(member: Booleans) -> Integers:
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


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class LeafTable:
    """The leaves of an expression as arrays, in their order; every array has shape (leaves,)."""

    sets: Integers
    """Number of the leaf's equivalence set."""
    counts: Integers
    values: Floats
    """Number of nodes, and what they are worth."""
    first: Floats
    last: Floats
    """The slots in which the leaf holds its nodes: ``first`` up to, not including, ``last``."""
    linear: Booleans
    """True for ``LnCk``."""


def leaf_table(leaves: Sequence[Leaf], sets: Integers, quantum_seconds: float) -> LeafTable:
    """Arrays of the leaves; begins are rounded down and ends up to whole slots.

    Raises ``InputError`` if the quantum is not above 0, or a leaf starts before 0.
    """
    if not 0.0 < quantum_seconds < np.inf:
        raise InputError(
            "not a quantum of time", field="slot", value=quantum_seconds, expected="seconds above 0"
        )
    starts = np.array([leaf.start_seconds for leaf in leaves])
    if starts.min() < 0.0:
        raise InputError(
            "a leaf starts before the plan does",
            field="start",
            value=float(starts.min()),
            expected="0 or later",
        )
    ends = starts + np.array([leaf.duration_seconds for leaf in leaves])
    first = np.floor(starts / quantum_seconds + _ROUNDING)
    return LeafTable(
        sets=sets,
        counts=np.array([leaf.count for leaf in leaves], np.int64),
        values=np.array([leaf.value for leaf in leaves]),
        first=first,
        last=np.maximum(np.ceil(ends / quantum_seconds - _ROUNDING), first + 1.0),
        linear=np.array([isinstance(leaf, LinearNChooseK) for leaf in leaves]),
    )


def free_slots(nodes: Sequence[str], supply: Supply, quantum_seconds: float) -> Floats:
    """First slot in which each node is free; shape (nodes,), inf for never."""
    busy = supply.busy_until
    until = np.array([busy.get(node, 0.0) for node in nodes])
    slots: Floats = np.ceil(np.maximum(until, 0.0) / quantum_seconds - _ROUNDING)
    return slots


def free_nodes(partitions: Partitions, free_from: Floats, slots: Floats) -> Integers:
    """Free nodes of every partition in every one of these ascending slots.

    The shape is (partitions, slots). ``free_from`` is the first slot in which each node is free;
    shape (nodes,). A node that is free stays so, hence rows never fall.
    """
    joined = np.zeros((partitions.sizes.size, slots.size + 1), np.int64)
    used = partitions.of_node >= 0
    at = np.searchsorted(slots, free_from[used])
    np.add.at(joined, (partitions.of_node[used], at), 1)
    return np.cumsum(joined[:, :-1], axis=1)


def common_slot_seconds(leaves: Sequence[Leaf]) -> float:
    """The longest slot, in whole milliseconds, that all starts and durations are multiples of."""
    times = {time for leaf in leaves for time in (leaf.start_seconds, leaf.duration_seconds)}
    return max(gcd(*(round(time * 1000.0) for time in times)), 1) / 1000.0
