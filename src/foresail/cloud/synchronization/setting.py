"""The work that is to be done in parallel, and what workers and messages cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from foresail.model.limits import require

_MOST_BARRIERS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class BarrierProgram:
    """A parallel program with barriers (spec section 3, Tables 4.1 and 4.2).

    Raises
    ------
    InputError
        If work, barriers or time are not what any cluster has, or the discount is not in [0, 1).
    """

    operations: float = 8_000.0
    """All work, W; an on-demand worker does one in a unit of time."""
    barriers: int = 500
    """How often all workers synchronise, b."""
    network_seconds: float = 0.175
    """Time that one worker's messages take at a barrier, n."""
    transient_discount: float = 0.9
    """By how much transient workers are cheaper than on-demand ones, f."""

    def __post_init__(self) -> None:
        require(1e-9 <= self.operations <= 1e18, self, "operations", "1e-9 to 1e18")
        require(1 <= self.barriers <= _MOST_BARRIERS, self, "barriers", "1 to 1,000,000")
        require(0.0 <= self.network_seconds <= 1e9, self, "network_seconds", "0 to 1e9")
        sensible = 0.0 <= self.transient_discount < 1.0
        require(sensible, self, "transient_discount", "0 or more, below 1")
