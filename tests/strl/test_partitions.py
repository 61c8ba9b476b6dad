"""Partition refinement: the golden cases, and what a partition is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.strl.slots import refine


def groups(nodes, sets):
    """The nodes of every partition."""
    found = refine(nodes, sets)
    return [
        {node for node, part in zip(nodes, found.of_node, strict=True) if part == number}
        for number in range(found.sizes.size)
    ]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([{1, 2, 3, 4, 5, 6}, {1, 2, 3}, {3, 4}], [{1, 2}, {3}, {4}, {5, 6}]),
        ([{1, 2, 3, 4}, {3, 4, 5, 6}], [{1, 2}, {3, 4}, {5, 6}]),
        ([{1, 2, 3, 4}, {1, 2}], [{1, 2}, {3, 4}]),
        ([], []),
        ([{9}], []),
    ],
)
def test_golden_partitions(sets, expected):
    """H10: nodes 7 and 8, which no set asks for, are in none; node 9 is not in the cluster."""
    names = [str(node) for node in range(1, 9)]
    named = [frozenset(map(str, each)) for each in sets]
    assert groups(names, named) == [set(map(str, each)) for each in expected]


node_sets = st.sets(st.sampled_from("abcdefghij")).map(frozenset)


def of_set(found, number):
    """Partitions that the set of this number is made of."""
    return found.set_members[found.set_starts[number] : found.set_starts[number + 1]]


@given(st.lists(node_sets, max_size=70))
def test_partitions_are_what_no_set_tells_apart(sets):
    """Same memberships, same partition; every set is the union of its partitions."""
    nodes = tuple("abcdefgh")
    found = refine(nodes, sets)
    memberships = [tuple(node in each for each in sets) for node in nodes]
    for one, its in zip(memberships, found.of_node, strict=True):
        assert (its == -1) == (not any(one))
        for other, theirs in zip(memberships, found.of_node, strict=True):
            assert (one == other) == (its == theirs)
    parts = groups(nodes, sets)
    assert found.sizes.tolist() == [len(part) for part in parts]
    for number, each in enumerate(sets):
        union = set().union(*(parts[part] for part in of_set(found, number)))
        assert union == each & set(nodes)


def test_many_sets_of_many_nodes():
    """12,583 nodes and 500 sets that overlap: signatures of eight words; checked by their rows."""
    random = np.random.default_rng(5)
    nodes = [f"n{number}" for number in range(12_583)]
    begins = random.integers(0, 12_000, 500)
    lengths = random.integers(1, 500, 500)
    sets = [
        frozenset(nodes[begin : begin + length])
        for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True)
    ]
    found = refine(nodes, sets)
    member = np.zeros((12_583, 500), np.bool_)
    for number, (begin, length) in enumerate(zip(begins.tolist(), lengths.tolist(), strict=True)):
        member[begin : begin + length, number] = True
    used = member.any(axis=1)
    assert (found.of_node >= 0).tolist() == used.tolist()
    assert found.sizes.size == len({row.tobytes() for row in member[used]})
    sizes = [found.sizes[of_set(found, number)].sum() for number in range(len(sets))]
    assert sizes == member.sum(axis=0).tolist()
