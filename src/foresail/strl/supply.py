"""What there is to give: nodes, and until when running jobs hold some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Supply:
    """The nodes that requests compete for.

    Parameters
    ----------
    nodes
        Names of all nodes.
    busy_until
        Second from which a node is free again, by its name, on the clock of the expressions'
        starts; the others are free.
    slot_seconds
        Length of a slot of the plan; None where none was chosen.
    """

    nodes: frozenset[str]
    busy_until: Mapping[str, float] = field(default_factory=dict)
    slot_seconds: float | None = None
