"""Every value of an interval as likely as any other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.distributions.arguments import checked_factor, checked_shift
from foresail.distributions.point import Point
from foresail.distributions.quadrature import SHARE_WEIGHTS, SHARES
from foresail.model.distribution import Distribution


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform between two values.

    Raises
    ------
    ValueError
        If the parameters are not as above.
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

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to exceed each of the values."""
        at = np.asarray(values, dtype=np.float64)
        return np.clip((self.high - at) / (self.high - self.low), 0.0, 1.0)

    def cumulative(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to stay at or below each of the values."""
        at = np.asarray(values, dtype=np.float64)
        return np.clip((at - self.low) / (self.high - self.low), 0.0, 1.0)

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
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

    def shifted(self, amount: float) -> Uniform:
        """The belief about the quantity plus an amount."""
        return Uniform(self.low + checked_shift(amount, self.low), self.high + amount)

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        """So many independent draws."""
        return random.uniform(self.low, self.high, size)
