"""The work that is to be done in parallel, and what workers and messages cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from foresail.model.errors import InputError

_MOST_BARRIERS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class BarrierProgram:
    """A parallel program with barriers (spec section 3, Tables 4.1 and 4.2).

    Parameters
    ----------
    operations
        All work, W; an on-demand worker does one in a unit of time.
    barriers
        How often all workers synchronise, b.
    network_seconds
        Time that one worker's messages take at a barrier, n.
    transient_discount
        By how much transient workers are cheaper than on-demand ones, f.

    Raises
    ------
    InputError
        If work or barriers are not above 0, there are more than a million barriers, the time is
        negative, or the discount not in [0, 1).
    """

    operations: float = 8_000.0
    barriers: int = 500
    network_seconds: float = 0.175
    transient_discount: float = 0.9

    def __post_init__(self) -> None:
        _check("operations", self.operations, 0.0 < self.operations < math.inf, "above 0")
        _check("barriers", self.barriers, 1 <= self.barriers <= _MOST_BARRIERS, "1 to 1,000,000")
        _check(
            "network_seconds",
            self.network_seconds,
            0.0 <= self.network_seconds < math.inf,
            "0 or more",
        )
        _check(
            "transient_discount",
            self.transient_discount,
            0.0 <= self.transient_discount < 1.0,
            "0 or more, below 1",
        )


def _check(field: str, value: float, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError("cannot be", field=field, value=value, expected=expected)
