"""What an expression is worth under an allocation, and which leaves that worth rests on.

Source: Tumanov et al., TetriSched (EuroSys 2016), section 4.1; spec tetrisched section 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from types import MappingProxyType

from foresail.strl.expression import (
    Barrier,
    Expression,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
    leaves,
    reaches,
)
from foresail.strl.solving import Allocation


@dataclass(frozen=True, slots=True)
class AllocationValue:
    """What an allocation is worth.

    Parameters
    ----------
    value
        The value of the whole expression.
    counting
        Numbers of the leaves that the value rests on: given nodes, satisfied, and chosen by every
        ``max`` above them. What other leaves are given is given for nothing.
    """

    value: float
    counting: frozenset[int]


_NOTHING = AllocationValue(0.0, frozenset())


def evaluate(expression: Expression, allocation: Allocation) -> AllocationValue:
    """The value of an expression under an allocation, and the leaves it rests on.

    Nodes that are not of a leaf's set do not count for it. Of several children of a ``max`` that
    are worth something, the best counts (the first of equals).
    """
    return _evaluated(expression, allocation, count())


def _evaluated(
    expression: Expression, allocation: Allocation, numbers: Iterator[int]
) -> AllocationValue:
    if isinstance(expression, NChooseK | LinearNChooseK):
        return _of_leaf(expression, next(numbers), allocation)
    if isinstance(expression, Scale | Barrier):
        found = _evaluated(expression.child, allocation, numbers)
        if isinstance(expression, Scale):
            value = expression.factor * found.value
        else:
            value = expression.value if reaches(found.value, expression) else 0.0
        return AllocationValue(value, found.counting) if value > 0.0 else _NOTHING
    each = [_evaluated(child, allocation, numbers) for child in expression.children]
    match expression:
        case Maximum():
            return max(each, key=lambda found: found.value)
        case Minimum():
            value = min(found.value for found in each)
        case Sum():
            value = sum(found.value for found in each)
    counting: frozenset[int] = frozenset().union(*(found.counting for found in each))
    return AllocationValue(value, counting) if value > 0.0 else _NOTHING


def _of_leaf(
    leaf: NChooseK | LinearNChooseK, number: int, allocation: Allocation
) -> AllocationValue:
    given = len(allocation.get(number, frozenset()) & leaf.nodes)
    if isinstance(leaf, NChooseK):
        value = leaf.value if given == leaf.count else 0.0
    else:
        value = leaf.value * given / leaf.count if given <= leaf.count else 0.0
    return AllocationValue(value, frozenset((number,))) if value > 0.0 else _NOTHING


_NONE_BUSY: Mapping[str, float] = MappingProxyType({})


def conflicts(
    expression: Expression, allocation: Allocation, busy_until: Mapping[str, float] = _NONE_BUSY
) -> tuple[str, ...]:
    """What is impossible about an allocation, in words; nothing when it can be carried out.

    ``busy_until`` is the second from which a node is free, by its name, on the clock of the
    expression's starts; nodes that are not in it are free.
    """
    return tuple(_conflicts(expression, allocation, busy_until))


def _conflicts(
    expression: Expression, allocation: Allocation, busy_until: Mapping[str, float]
) -> Iterable[str]:
    held: dict[str, list[tuple[float, float, int]]] = {}
    asked = leaves(expression)
    for number, nodes in sorted(allocation.items()):
        if not 0 <= number < len(asked):
            yield f"there is no leaf {number}"
            continue
        leaf = asked[number]
        for node in sorted(nodes):
            if node not in leaf.nodes:
                yield f"leaf {number} is given {node}, which is not of its set"
            if leaf.start_seconds < busy_until.get(node, -float("inf")):
                yield f"leaf {number} is given {node}, which is busy"
            held.setdefault(node, []).append((leaf.start_seconds, leaf.end_seconds, number))
    for node, times in sorted(held.items()):
        for (_, end, first), (start, _, second) in pairwise(sorted(times)):
            if start < end:
                yield f"{node} is given to leaf {first} and to leaf {second} at one time"
