"""Small random expressions, and the best that brute force can make of one."""

from itertools import combinations

from hypothesis import assume
from hypothesis import strategies as st

from foresail.strl.expression import (
    Barrier,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
)

NODES = tuple("abcde")
SLOTS = 4
_MOST_OPTIONS = 30_000


@st.composite
def leaves(draw):
    """NCk and LnCk over any set of the nodes, within four slots."""
    kind = draw(st.sampled_from([NChooseK, LinearNChooseK]))
    nodes = draw(st.sets(st.sampled_from(NODES), min_size=1))
    count = draw(st.integers(1, 3))
    start = draw(st.integers(0, 2))
    duration = draw(st.integers(1, SLOTS - start))
    value = float(draw(st.integers(0, 6)))
    return kind(frozenset(nodes), count, float(start), float(duration), value)


def expressions(depth, most_children=3):
    """Trees of at most so many levels of operators above the leaves."""
    if depth == 0:
        return leaves()
    below = expressions(depth - 1, most_children)
    several = st.lists(below, min_size=1, max_size=most_children).map(tuple)
    number = st.integers(0, 6).map(float)
    return st.one_of(
        leaves(),
        *(several.map(kind) for kind in (Maximum, Minimum, Sum)),
        st.builds(Scale, below, st.sampled_from([0.0, 0.5, 2.0])),
        st.builds(Barrier, below, number),
    )


def best_value(expression, busy_until):
    """The highest value of any allocation, by trying them all."""
    return max(options(expression, busy_until).values())


def options(expression, busy_until):
    """What can be had: the highest value for every set of (node, slot) pairs, as a bit mask.

    Nothing at all is always among them, and nothing else that is worth 0.
    """
    match expression:
        case NChooseK() | LinearNChooseK():
            found = _of_leaf(expression, busy_until)
        case Maximum():
            found = {}
            for child in expression.children:
                for mask, value in options(child, busy_until).items():
                    found[mask] = max(value, found.get(mask, 0.0))
        case Minimum() | Sum():
            together = min if isinstance(expression, Minimum) else lambda a, b: a + b
            first, *others = expression.children
            found = options(first, busy_until)
            for child in others:
                found = _joined(found, options(child, busy_until), together)
        case Scale():
            below = options(expression.child, busy_until)
            found = {mask: expression.factor * value for mask, value in below.items()}
        case Barrier():
            below = options(expression.child, busy_until)
            enough = expression.value * (1 - 1e-9)
            found = {mask: expression.value for mask, value in below.items() if value >= enough}
    return {0: 0.0} | {mask: value for mask, value in found.items() if value > 0.0}


def _joined(left, right, together):
    found = {}
    for mask, value in left.items():
        for other, more in right.items():
            if not mask & other:
                joined = together(value, more)
                found[mask | other] = max(joined, found.get(mask | other, 0.0))
    assume(len(found) < _MOST_OPTIONS)
    return found


def _of_leaf(leaf, busy_until):
    free = [node for node in leaf.nodes if busy_until.get(node, 0.0) <= leaf.start_seconds]
    linear = isinstance(leaf, LinearNChooseK)
    slots = range(int(leaf.start_seconds), int(leaf.end_seconds))
    found = {}
    for amount in range(1 if linear else leaf.count, min(leaf.count, len(free)) + 1):
        for nodes in combinations(free, amount):
            mask = sum(1 << NODES.index(node) * SLOTS + slot for node in nodes for slot in slots)
            found[mask] = leaf.value * amount / leaf.count
    return found
