"""The expressions of STRL: leaves ask for nodes over a time, operators combine what they are worth.

Source: Tumanov et al., TetriSched (EuroSys 2016), section 4; spec tetrisched sections 4.1 and 4.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from foresail.model.errors import InputError


def _require(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise InputError("not an STRL expression", field=field, value=value, expected=expected)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Nodes of a set for a time."""

    nodes: frozenset[str]
    """The equivalence set: names of nodes, any of which will do; not empty."""
    count: int
    """How many of them, at least 1."""
    start_seconds: float
    duration_seconds: float
    """When, from the time that the expression counts from; the duration is above 0."""
    value: float
    """What it is worth, not negative."""

    def __post_init__(self) -> None:
        _require(bool(self.nodes), "nodes", "{}", "at least one node")
        _require(self.count >= 1, "count", self.count, "at least 1")
        _require(math.isfinite(self.start_seconds), "start", self.start_seconds, "a number")
        lasting = 0.0 < self.duration_seconds < math.inf
        _require(lasting, "duration", self.duration_seconds, "above 0")
        _require(0.0 <= self.value < math.inf, "value", self.value, "not negative")

    @property
    def end_seconds(self) -> float:
        """When the nodes are free again."""
        return self.start_seconds + self.duration_seconds


@dataclass(frozen=True, slots=True)
class NChooseK(_Leaf):
    """``nCk``: worth its value if exactly ``count`` nodes of the set are given."""


@dataclass(frozen=True, slots=True)
class LinearNChooseK(_Leaf):
    """``LnCk``: up to ``count`` nodes, worth its value in proportion to how many are given."""


@dataclass(frozen=True, slots=True)
class Maximum:
    """``max``: at most one of the children is given anything; worth what that one is worth."""

    children: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _require(bool(self.children), "children", "()", "at least one expression")


@dataclass(frozen=True, slots=True)
class Minimum:
    """``min``: all children or nothing; worth the least of them."""

    children: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _require(bool(self.children), "children", "()", "at least one expression")


@dataclass(frozen=True, slots=True)
class Sum:
    """``sum``: any of the children; worth what they are worth together."""

    children: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _require(bool(self.children), "children", "()", "at least one expression")


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


Expression: TypeAlias = NChooseK | LinearNChooseK | Maximum | Minimum | Sum | Scale | Barrier
Leaf: TypeAlias = NChooseK | LinearNChooseK
