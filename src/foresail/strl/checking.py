"""What is odd about a file of requests though it can be read, and how large it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from foresail.model import words
from foresail.strl.document import Document, Reading
from foresail.strl.expression import (
    Barrier,
    Expression,
    Leaf,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
)
from foresail.strl.node_names import listed
from foresail.strl.supply import Supply
from foresail.strl.tokens import Position
from foresail.strl.tree import depth, highest_value, leaves, reaches, walk


@dataclass(frozen=True, slots=True)
class Simplified:
    """An expression without what can never count, and which of its leaves were which."""

    expression: Expression | None
    """What is left; None where nothing could ever be worth anything."""
    origins: tuple[int, ...]
    """For each leaf of ``expression``, by its number, the number of the leaf that it was."""


_Kept: TypeAlias = tuple[Expression, tuple[int, ...]]
"""An expression that may be worth something, and the numbers its leaves had."""


def simplify(expression: Expression) -> Simplified:
    """The expression with the same value under every allocation, and no more than it needs.

    Left out: leaves worth nothing, ``nCk`` of more nodes than its set has, and every ``min`` and
    ``barrier`` that this makes unreachable. An ``LnCk`` of more nodes than its set has becomes one
    of the whole set. Operators of one child vanish; ``max`` in ``max``, ``sum`` in ``sum`` and
    ``min`` in ``min`` become one; ``scale`` becomes values of leaves, and so does a ``barrier``
    over an ``nCk``.

    The value under an allocation is that of the original under the same one, given to the leaves
    that ``origins`` names (to the rounding of products).
    """
    kept = _Pass().simplified(expression, 1.0)
    return Simplified(None, ()) if kept is None else Simplified(*kept)


class _Pass:
    """One walk over an expression, which numbers the leaves as it meets them."""

    def __init__(self) -> None:
        self._numbers = count()

    def simplified(self, expression: Expression, factor: float) -> _Kept | None:
        """What is left of ``factor`` times the expression; None when that is worth nothing."""
        match expression:
            case NChooseK() | LinearNChooseK():
                return self._leaf(expression, factor)
            case Scale():
                return self.simplified(expression.child, factor * expression.factor)
            case Barrier():
                return self._barrier(expression, factor)
            case Minimum():
                every = [self.simplified(child, factor) for child in expression.children]
                kept = [child for child in every if child is not None]
                return _joined(Minimum, kept) if len(kept) == len(every) else None
            case Maximum() | Sum():
                some = [self.simplified(child, factor) for child in expression.children]
                return _joined(type(expression), [child for child in some if child is not None])

    def _leaf(self, leaf: Leaf, factor: float) -> _Kept | None:
        number = next(self._numbers)
        value = leaf.value * factor
        if not value > 0.0:
            return None
        if leaf.count > len(leaf.nodes):
            if isinstance(leaf, NChooseK):
                return None
            value *= len(leaf.nodes) / leaf.count
        least = min(leaf.count, len(leaf.nodes))
        return replace(leaf, count=least, value=value), (number,)

    def _barrier(self, barrier: Barrier, factor: float) -> _Kept | None:
        kept = self.simplified(barrier.child, factor)
        raised = Barrier(barrier.child, barrier.value * factor)
        if kept is None or raised.value == 0.0 or not reaches(highest_value(kept[0]), raised):
            return None
        child, origins = kept
        if isinstance(child, NChooseK):
            return replace(child, value=raised.value), origins
        return replace(raised, child=child), origins


def _joined(kind: type[Maximum | Minimum | Sum], kept: list[_Kept]) -> _Kept | None:
    if len(kept) < 2:
        return kept[0] if kept else None
    flat = tuple(child for expression, _ in kept for child in _alike(kind, expression))
    return kind(flat), tuple(number for _, origins in kept for number in origins)


def _alike(kind: type[Maximum | Minimum | Sum], expression: Expression) -> Iterator[Expression]:
    """The children of an expression of this kind, else the expression itself."""
    if isinstance(expression, kind):
        yield from expression.children
    else:
        yield expression


@dataclass(frozen=True, slots=True)
class Remark:
    """Something odd: where it is written (None: nowhere in particular), and what it means."""

    position: Position | None
    text: str


@dataclass(frozen=True, slots=True)
class RequestSizes:
    """How large the requests are."""

    requests: int
    expressions: int
    leaves: int
    depth: int
    """Requests; all expressions of their trees, of which leaves; levels of the deepest."""
    kinds: Mapping[str, int]
    """Expressions by their type's name."""
    useful_leaves: int
    """Leaves that could ever be worth anything."""
    sets: int
    nodes: int
    busy_nodes: int
    """Different sets of nodes that leaves choose from; nodes there are; of these, busy now."""
    first_start_seconds: float | None
    last_end_seconds: float | None
    """When the first leaf begins and the last one ends; None without leaves."""
    highest_value: float
    """What all requests could be worth at most, if no two wanted the same node."""


def statistics(document: Document) -> RequestSizes:
    """How large the requests of a file are."""
    trees = list(document.requests.values())
    asked = [leaf for tree in trees for leaf in leaves(tree)]
    kinds = Counter(type(each).__name__ for tree in trees for each in walk(tree))
    return RequestSizes(
        requests=len(trees),
        expressions=kinds.total(),
        leaves=len(asked),
        depth=max(map(depth, trees), default=0),
        kinds=dict(sorted(kinds.items())),
        useful_leaves=sum(len(simplify(tree).origins) for tree in trees),
        sets=len({leaf.nodes for leaf in asked}),
        nodes=len(document.supply.nodes),
        busy_nodes=len(document.supply.nodes & document.supply.busy_until.keys()),
        first_start_seconds=min((leaf.start_seconds for leaf in asked), default=None),
        last_end_seconds=max((leaf.end_seconds for leaf in asked), default=None),
        highest_value=sum(map(highest_value, trees)),
    )


def remarks(reading: Reading) -> tuple[Remark, ...]:
    """What can never count or names what is not there, in the order of the text."""
    supply = reading.document.supply
    found = [r for leaf, places in reading.places for r in _of_leaf(leaf, places, supply)]
    found += [
        Remark(position, f"the set {name} is used nowhere")
        for name, position in reading.unused_sets.items()
    ]
    return tuple(sorted(found, key=_place)) + tuple(
        Remark(None, f"{name} can never be worth anything")
        for name, tree in reading.document.requests.items()
        if simplify(tree).expression is None
    )


def _place(remark: Remark) -> tuple[int, int]:
    return (remark.position.line, remark.position.column) if remark.position else (0, 0)


def _of_leaf(leaf: Leaf, places: Mapping[str, Position], supply: Supply) -> Iterator[Remark]:
    missing = leaf.nodes - supply.nodes
    if missing:
        yield Remark(places["nodes"], f"not among the nodes there are: {listed(missing)}")
    here = leaf.nodes & supply.nodes
    start = leaf.start_seconds
    free = sum(supply.busy_until.get(node, start) <= start for node in here)
    wanted = f"{leaf.count:,} of {words.count(len(here), 'node')}"
    if leaf.count > len(here):
        meaning = "never given" if isinstance(leaf, NChooseK) else "never given in full"
        yield Remark(places["count"], f"{wanted} is {meaning}")
    elif isinstance(leaf, NChooseK) and leaf.count > free:
        then = words.duration(start)
        yield Remark(places["start"], f"{wanted} is never given at {then}: {free} free by then")
    if start < 0.0:
        yield Remark(places["start"], "begins before now (0 s)")
    if leaf.value == 0.0:
        yield Remark(places["value"], "is worth nothing")
