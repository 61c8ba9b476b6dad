"""What is odd about a file of requests though it can be read, and how large it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from foresail.model import words
from foresail.strl.document import Document, Reading
from foresail.strl.expression import Leaf, NChooseK
from foresail.strl.node_names import listed
from foresail.strl.simplifying import simplify
from foresail.strl.supply import Supply
from foresail.strl.tokens import Position
from foresail.strl.tree import depth, highest_value, leaves, walk


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
