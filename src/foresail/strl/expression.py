"""STRL: expressions, what is there to give, what a file of requests says, and what is odd in it.

Leaves ask for nodes over a time, operators combine what they are worth.
Source: Tumanov et al., TetriSched (EuroSys 2016), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from foresail.model import words
from foresail.model.errors import InputError
from foresail.strl.tokens import Position, listed


def _require(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise InputError("not an STRL expression", field=field, value=value, expected=expected)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Nodes of a set for a time."""

    nodes: frozenset[str]
    """The equivalence set: names of nodes, any of which will do; not empty."""
    count: int
    """Number of them, at least 1."""
    start_seconds: float
    duration_seconds: float
    """Begin and duration (above 0), from the time that the expression counts from."""
    value: float
    """Worth, not negative."""

    def __post_init__(self) -> None:
        _require(bool(self.nodes), "nodes", "{}", "at least one node")
        _require(self.count >= 1, "count", self.count, "at least 1")
        _require(math.isfinite(self.start_seconds), "start", self.start_seconds, "a number")
        lasting = 0.0 < self.duration_seconds < math.inf
        _require(lasting, "duration", self.duration_seconds, "above 0")
        _require(0.0 <= self.value < math.inf, "value", self.value, "not negative")

    @property
    def end_seconds(self) -> float:
        """Return when the nodes are free again."""
        return self.start_seconds + self.duration_seconds


@dataclass(frozen=True, slots=True)
class NChooseK(_Leaf):
    """``nCk``: worth its value if exactly ``count`` nodes of the set are given."""


@dataclass(frozen=True, slots=True)
class LinearNChooseK(_Leaf):
    """``LnCk``: up to ``count`` nodes, worth its value in proportion to how many are given."""


@dataclass(frozen=True, slots=True)
class _Several:
    """Several expressions, which count together."""

    children: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _require(bool(self.children), "children", "()", "at least one expression")


@dataclass(frozen=True, slots=True)
class Maximum(_Several):
    """``max``: at most one of the children is given anything; worth what that one is worth."""


@dataclass(frozen=True, slots=True)
class Minimum(_Several):
    """``min``: all children or nothing; worth the least of them."""


@dataclass(frozen=True, slots=True)
class Sum(_Several):
    """``sum``: any of the children; worth what they are worth together."""


@dataclass(frozen=True, slots=True)
class Scale:
    """``scale``: the child, worth ``factor`` (not negative) times as much."""

    child: Expression
    factor: float

    def __post_init__(self) -> None:
        _require(0.0 <= self.factor < math.inf, "factor", self.factor, "not negative")


@dataclass(frozen=True, slots=True)
class Barrier:
    """``barrier``: worth exactly ``value`` if the child is worth at least that, else nothing."""

    child: Expression
    value: float

    def __post_init__(self) -> None:
        _require(0.0 <= self.value < math.inf, "value", self.value, "not negative")


Leaf: TypeAlias = NChooseK | LinearNChooseK
Operator: TypeAlias = Maximum | Minimum | Sum | Scale | Barrier
Expression: TypeAlias = Leaf | Operator


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below this one; none below a leaf."""
    match expression:
        case Maximum() | Minimum() | Sum():
            return expression.children
        case Scale() | Barrier():
            return (expression.child,)
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, parents before children, left to right."""
    ahead = [expression]
    while ahead:
        current = ahead.pop()
        yield current
        ahead.extend(reversed(children(current)))


def leaves(expression: Expression) -> tuple[Leaf, ...]:
    """The leaves from left to right; a leaf's number is its place here, from 0.

    Equal leaves are as many leaves as there are places where they stand.
    """
    return tuple(each for each in walk(expression) if isinstance(each, NChooseK | LinearNChooseK))


def highest_value(expression: Expression) -> float:
    """Return what the expression is worth at most, whatever it is given.

    A bound: nodes that two leaves would both need are not looked at.
    """
    match expression:
        case NChooseK():
            reachable = expression.count <= len(expression.nodes)
            return expression.value if reachable else 0.0
        case LinearNChooseK():
            most = min(expression.count, len(expression.nodes))
            return expression.value * most / expression.count
        case _:
            return combined_worth(expression, list(map(highest_value, children(expression))))


def combined_worth(operator: Operator, below: Sequence[float]) -> float:
    """Return what an operator makes of what its children are worth."""
    match operator:
        case Maximum():
            return max(below)
        case Minimum():
            return min(below)
        case Sum():
            return sum(below)
        case Scale():
            return operator.factor * below[0]
        case Barrier():
            return operator.value if reaches(below[0], operator) else 0.0


_ROUNDING = 1e-9


def reaches(worth: float, barrier: Barrier) -> bool:
    """Return whether a child that is worth this much is worth the barrier's value.

    Shares of values do not add up exactly; a billionth below the value is enough.
    """
    return worth >= barrier.value * (1.0 - _ROUNDING)


@dataclass(frozen=True, slots=True)
class Supply:
    """The nodes that requests compete for."""

    nodes: frozenset[str]
    """Names of all nodes."""
    busy_until: Mapping[str, float] = field(default_factory=dict)
    """Second from which a node is free again, by its name, on the clock of the expressions' starts;
    the others are free."""
    slot_seconds: float | None = None
    """Length of a slot of the plan; None where none was chosen."""


@dataclass(frozen=True, slots=True)
class Document:
    """Contents of a file of requests."""

    node_sets: Mapping[str, frozenset[str]]
    """Named sets of nodes, in the file's order."""
    requests: Mapping[str, Expression]
    """Expressions that no other one is made of, by name, in the file's order; those without a name
    are called ``request1``, ``request2``, ..."""
    supply: Supply
    """The nodes there are, and until when some are busy."""

    @property
    def expression(self) -> Expression:
        """All requests as one expression: the only one, or the sum of all.

        Raises ``InputError`` if there is no request.
        """
        if not self.requests:
            raise InputError("nothing is asked for", expected="at least one expression")
        each = tuple(self.requests.values())
        return each[0] if len(each) == 1 else Sum(each)


@dataclass(frozen=True, slots=True)
class Reading:
    """Outcome of reading a text: what it says, and all that is wrong with it."""

    document: Document
    """Content of the lines without an error."""
    errors: tuple[InputError, ...]
    """One for each statement that could not be understood, in order."""
    places: tuple[tuple[Leaf, Mapping[str, Position]], ...]
    """Every leaf as it was written, with the place of each of its arguments."""
    unused_sets: Mapping[str, Position]
    """Definitions of named sets that nothing uses."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Oddity: where it is written (None: nowhere in particular), and what it means."""

    position: Position | None
    text: str


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
        if not highest_value(tree)
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
