"""A distribution known by its quantiles, linear between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions.basic import SHARE_WEIGHTS, SHARES, Point, checked_factor
from foresail.distributions.kernels.summary import piecewise_mean, piecewise_quantile
from foresail.model.distribution import Distribution, Floats


class Quantiles:
    """Piecewise linear cumulative distribution through (level, value) pairs.

    Two equal values make an atom. Values that cross are repaired by sorting them
    (rearrangement: Chernozhukov, Fernandez-Val, Galichon 2010).

    Raises ``ValueError`` if the levels or values are not as above.
    """

    __slots__ = ("levels", "values")

    levels: Floats
    """Probabilities, strictly ascending from 0 to 1."""
    values: Floats
    """The quantile at each level, finite and not negative."""

    def __init__(self, levels: ArrayLike, values: ArrayLike) -> None:
        self.levels = np.array(levels, dtype=np.float64)
        self.values = np.sort(np.array(values, dtype=np.float64))
        if self.levels.ndim != 1 or self.levels.size < 2 or self.levels.shape != self.values.shape:
            raise ValueError("levels and values must be two or more pairs")
        if self.levels[0] != 0.0 or self.levels[-1] != 1.0 or np.any(np.diff(self.levels) <= 0.0):
            raise ValueError("levels must ascend strictly from 0 to 1")
        if not np.all(np.isfinite(self.values)) or self.values[0] < 0.0:
            raise ValueError("values must be finite and not negative")
        self.levels.flags.writeable = False
        self.values.flags.writeable = False

    def __repr__(self) -> str:
        return f"Quantiles({self.levels.tolist()}, {self.values.tolist()})"

    def mean(self) -> float:
        """Expected value."""
        return piecewise_mean(self.levels, self.values)

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays below with at least this probability."""
        return piecewise_quantile(self.levels, self.values, level)

    def survival(self, values: ArrayLike) -> Floats:
        """Probability to exceed each of the values."""
        return np.asarray(1.0 - self.cumulative(values))

    def cumulative(self, values: ArrayLike) -> Floats:
        """Probability to stay at or below each of the values."""
        at = np.asarray(values, dtype=np.float64)
        above = np.searchsorted(self.values, at, side="right")
        inside = np.clip(above, 1, self.values.size - 1)
        low, high = self.values[inside - 1], self.values[inside]
        below = self.levels[inside - 1]
        span = np.where(high > low, high - low, 1.0)
        cumulative = below + (self.levels[inside] - below) * (at - low) / span
        cumulative = np.where(above == 0, 0.0, cumulative)
        return np.asarray(np.where(above == self.values.size, 1.0, cumulative))

    def expectation(self, function: Callable[[Floats], Floats]) -> float:
        """Expected value of a function of the quantity.

        By Gauss-Legendre quadrature within each piece: near where the function is smooth there.
        """
        low, step = self.values[:-1, np.newaxis], np.diff(self.values)[:, np.newaxis]
        inner = function(low + step * SHARES) @ SHARE_WEIGHTS
        return float(np.diff(self.levels) @ inner)

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        if elapsed <= 0.0:
            return self
        if elapsed >= self.values[-1]:
            return Point(max(elapsed, float(self.values[-1])))
        passed = 1.0 - float(self.survival(elapsed))
        if passed <= 0.0:
            return self
        later = self.values > elapsed
        levels = (self.levels[later] - passed) / (1.0 - passed)
        if levels[0] <= 0.0:  # rounding: nothing between the elapsed time and the next value
            levels[0] = np.nextafter(0.0, 1.0)
        return Quantiles(
            np.concatenate(([0.0], levels)), np.concatenate(([elapsed], self.values[later]))
        )

    def scaled(self, factor: float) -> Quantiles:
        """The belief about ``factor`` times the quantity."""
        return Quantiles(self.levels, self.values * checked_factor(factor))

    def sample(self, random: np.random.Generator, size: int) -> Floats:
        """So many independent draws."""
        return np.interp(random.random(size), self.levels, self.values)
