"""From numbers of nodes to nodes with names: partitions are coloured like intervals.

Source: spec tetrisched section 6, node assignment. The numbers keep every slot's supply, free nodes
stay free until they are given away, and leaves take theirs in order of their starts: so there are
always enough, and a node once given is kept until the leaf's end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from foresail.model.arrays import Integers
from foresail.strl.compiling import Compiled

Allocation: TypeAlias = Mapping[int, frozenset[str]]
"""Nodes given to leaves, by the number of the leaf (``tree.leaves``); others are given none."""


def named_nodes(compiled: Compiled, given: Integers) -> Allocation:
    """Named nodes for every leaf that is given some; of those free, the first by name.

    ``given`` are the nodes given to every part of the program; shape (parts,).
    """
    first, last = compiled.leaves.first, compiled.leaves.last
    parts = np.flatnonzero(given)
    leaf = compiled.part_leaf[parts]
    parts = parts[np.lexsort((leaf, first[leaf]))]
    free_from = compiled.free_from.copy()
    names: dict[int, list[str]] = {}
    members = {
        partition: np.flatnonzero(compiled.partitions.of_node == partition)
        for partition in np.unique(compiled.part_partition[parts]).tolist()
    }
    for part in parts.tolist():
        number = int(compiled.part_leaf[part])
        nodes = members[int(compiled.part_partition[part])]
        chosen = nodes[free_from[nodes] <= first[number]][: given[part]]
        free_from[chosen] = last[number]
        names.setdefault(number, []).extend(compiled.nodes[node] for node in chosen.tolist())
    return {number: frozenset(names[number]) for number in sorted(names)}
