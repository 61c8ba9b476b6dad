"""Oddities of a file of requests that can be read, and its size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from foresail.model import words
from foresail.strl.expression import (
    Document,
    Expression,
    Leaf,
    LinearNChooseK,
    NChooseK,
    Reading,
    Supply,
    children,
    combined_worth,
    depth,
    highest_value,
    leaves,
    walk,
)
from foresail.strl.tokens import Position, listed


def useful_leaves(expression: Expression) -> int:
    """Count the leaves that could ever add worth.

    Not those worth nothing, ``nCk`` of more nodes than its set has, and all below a ``min`` or
    ``barrier`` that this makes unreachable.
    """
    return _worth_and_leaves(expression)[1]


def _worth_and_leaves(expression: Expression) -> tuple[float, int]:
    """Return the most that an expression can be worth, and how many of its leaves may count."""
    if isinstance(expression, NChooseK | LinearNChooseK):
        worth, found = highest_value(expression), 1
    else:
        below = [_worth_and_leaves(child) for child in children(expression)]
        worth = combined_worth(expression, [each for each, _ in below])
        found = sum(count for _, count in below)
    return worth, found if worth > 0.0 else 0


@dataclass(frozen=True, slots=True)
class Remark:
    """Something odd: where it is written (None: nowhere in particular), and what it means."""

    position: Position | None
    text: str


@dataclass(frozen=True, slots=True)
class RequestSizes:
    """Sizes of requests."""

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
    """Return how large the requests of a file are."""
    trees = list(document.requests.values())
    asked = [leaf for tree in trees for leaf in leaves(tree)]
    kinds = Counter(type(each).__name__ for tree in trees for each in walk(tree))
    return RequestSizes(
        requests=len(trees),
        expressions=kinds.total(),
        leaves=len(asked),
        depth=max(map(depth, trees), default=0),
        kinds=dict(sorted(kinds.items())),
        useful_leaves=sum(map(useful_leaves, trees)),
        sets=len({leaf.nodes for leaf in asked}),
        nodes=len(document.supply.nodes),
        busy_nodes=len(document.supply.nodes & document.supply.busy_until.keys()),
        first_start_seconds=min((leaf.start_seconds for leaf in asked), default=None),
        last_end_seconds=max((leaf.end_seconds for leaf in asked), default=None),
        highest_value=sum(map(highest_value, trees)),
    )


def remarks(reading: Reading) -> tuple[Remark, ...]:
    """Return what can never count or names what is not there, in the order of the text."""
    supply = reading.document.supply
    found = [r for leaf, places in reading.places for r in _of_leaf(leaf, places, supply)]
    found += [
        Remark(position, f"the set {name} is used nowhere")
        for name, position in reading.unused_sets.items()
    ]
    return tuple(sorted(found, key=_place)) + tuple(
        Remark(None, f"{name} can never be worth anything")
        for name, tree in reading.document.requests.items()
        if not useful_leaves(tree)
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
