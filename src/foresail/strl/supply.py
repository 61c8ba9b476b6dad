"""What there is to give: nodes, and until when running jobs hold some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
