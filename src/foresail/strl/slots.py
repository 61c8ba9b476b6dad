"""Time in slots: which slots a leaf holds nodes in, and how many nodes are free in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from foresail.model.arrays import Floats, Integers
from foresail.model.errors import InputError
from foresail.strl.expression import Leaf, LinearNChooseK
from foresail.strl.partitions import Partitions
from foresail.strl.supply import Supply

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class LeafTable:
    """The leaves of an expression as arrays, in their order; every array has shape (leaves,)."""

    sets: Integers
    """Number of the leaf's equivalence set."""
    counts: Integers
    values: Floats
    """How many nodes, and what they are worth."""
    first: Floats
    last: Floats
    """The slots in which the leaf holds its nodes: ``first`` up to, not including, ``last``."""
    linear: NDArray[np.bool_]
    """Whether it is ``LnCk``."""


def leaf_table(leaves: Sequence[Leaf], sets: Integers, quantum_seconds: float) -> LeafTable:
    """Arrays of the leaves; begins are rounded down and ends up to whole slots.

    Raises
    ------
    InputError
        If the quantum is not above 0, or a leaf starts before 0.
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
