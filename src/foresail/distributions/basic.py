"""The simplest distributions (point and uniform), and what all kinds share.

They share Gauss-Legendre quadrature within a piece, and the weights and factors that they accept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.model.containers import quickly_made
from foresail.model.distribution import Distribution, Floats

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
SHARES: Final = 0.5 * (_NODES + 1.0)
"""Places within a piece, from 0 to 1."""
SHARE_WEIGHTS: Final = 0.5 * _NODE_WEIGHTS
"""Their weights, which add up to 1."""
NORMAL_PIECE: Final = 0.25
"""Width of a piece over a standard normal variable."""
NORMAL_REACH: Final = 9.0
"""Distance from its mean (or its cut) up to which a standard normal variable is followed."""


_ONE: Final = 1e-12


def checked_factor(factor: float) -> float:
    """The factor, if it is above 0 and finite; ``ValueError`` otherwise."""
    if not 0.0 < factor < math.inf:
        raise ValueError("factor must be above 0 and finite")
    return factor


def normalised(weights: Floats, total: float) -> Floats:
    """Weights divided by their total; kept bit by bit where that is 1 already, but for rounding."""
    return weights.copy() if abs(total - 1.0) <= _ONE else weights / total


@quickly_made
@dataclass(frozen=True, slots=True)
class Point:
    """All probability on one value (seconds)."""

    value: float

    def mean(self) -> float:
        """The value."""
        return self.value

    def quantile(self, level: float) -> float:  # noqa: ARG002 - the same at every level
        """The value, at every level."""
        return self.value

    def survival(self, values: ArrayLike) -> Floats:
        """1 below the value, 0 from it on."""
        return np.where(np.asarray(values, dtype=np.float64) < self.value, 1.0, 0.0)

    def cumulative(self, values: ArrayLike) -> Floats:
        """0 below the value, 1 from it on."""
        return np.where(np.asarray(values, dtype=np.float64) < self.value, 0.0, 1.0)

    def expectation(self, function: Callable[[Floats], Floats]) -> float:
        """The function at the value."""
        return float(function(np.array([self.value]))[0])

    def given(self, elapsed: float) -> Point:
        """Itself, or the elapsed time once that has outlived the belief."""
        return self if elapsed <= self.value else Point(elapsed)

    def scaled(self, factor: float) -> Point:
        """The belief about ``factor`` times the quantity."""
        return Point(self.value * checked_factor(factor))

    def sample(self, random: np.random.Generator, size: int) -> Floats:  # noqa: ARG002
        """The value, so many times."""
        return np.full(size, self.value)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform between two values.

    Raises ``ValueError`` if the parameters are not as above.
    """

    low: float
    high: float
    """Finite, not negative, ``low`` below ``high``."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.low < self.high < math.inf:
            raise ValueError("low must not be negative and must be below high, high must be finite")

    def mean(self) -> float:
        """Expected value."""
        return 0.5 * (self.low + self.high)

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays at or below with at least this probability."""
        return min(self.low + level * (self.high - self.low), self.high)

    def survival(self, values: ArrayLike) -> Floats:
        """Probability to exceed each of the values."""
        at = np.asarray(values, dtype=np.float64)
        return np.clip((self.high - at) / (self.high - self.low), 0.0, 1.0)

    def cumulative(self, values: ArrayLike) -> Floats:
        """Probability to stay at or below each of the values."""
        at = np.asarray(values, dtype=np.float64)
        return np.clip((at - self.low) / (self.high - self.low), 0.0, 1.0)

    def expectation(self, function: Callable[[Floats], Floats]) -> float:
        """Expected value of a function of the quantity.

        By Gauss-Legendre quadrature: near where the function is smooth.
        """
        return float(function(self.low + (self.high - self.low) * SHARES) @ SHARE_WEIGHTS)

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        if elapsed <= self.low:
            return self
        return Uniform(elapsed, self.high) if elapsed < self.high else Point(elapsed)

    def scaled(self, factor: float) -> Uniform:
        """The belief about ``factor`` times the quantity."""
        return Uniform(self.low * checked_factor(factor), self.high * factor)

    def sample(self, random: np.random.Generator, size: int) -> Floats:
        """So many independent draws."""
        return random.uniform(self.low, self.high, size)
