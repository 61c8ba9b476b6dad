"""What weights, factors and amounts distributions accept, the same for every kind."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

_ONE: Final = 1e-12


def checked_factor(factor: float) -> float:
    """The factor, if it is above 0 and finite; ``ValueError`` otherwise."""
    if not 0.0 < factor < math.inf:
        raise ValueError("factor must be above 0 and finite")
    return factor


def checked_shift(amount: float, smallest: float) -> float:
    """The amount, if finite and ``smallest`` stays at or above 0; ``ValueError`` otherwise."""
    if not (math.isfinite(amount) and smallest + amount >= 0.0):
        raise ValueError("amount must be finite and must not take the quantity below 0")
    return amount


def normalised(weights: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Weights divided by their total; kept bit by bit where that is 1 already, but for rounding."""
    return weights.copy() if abs(total - 1.0) <= _ONE else weights / total
