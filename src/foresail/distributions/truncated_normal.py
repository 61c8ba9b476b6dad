"""A normal distribution of which only the part beyond a value is left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions import basic
from foresail.distributions.kernels import log_normal
from foresail.model.distribution import Distribution, Floats

_NOTHING: Final = 1e-290


@dataclass(frozen=True, slots=True)
class TruncatedNormal:
    """The belief about a normal quantity that is known to exceed ``low``.

    Raises ``ValueError`` if the parameters are not as above or leave no probability.
    """

    mu: float
    sigma: float
    """Mean and standard deviation before the cut (seconds); ``sigma`` above 0."""
    low: float = 0.0
    """Lower cut; not negative."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mu) and 0.0 < self.sigma < math.inf):
            raise ValueError("mu must be finite and sigma above 0 and finite")
        if not 0.0 <= self.low < math.inf:
            raise ValueError("low must be finite and not negative")
        if self._left(self.low) < _NOTHING:
            raise ValueError("low must leave something")

    def _left(self, value: float) -> float:
        return log_normal.upper_tail((value - self.mu) / self.sigma)

    def mean(self) -> float:
        """Expected value."""
        return log_normal.truncated_normal_mean(self.mu, self.sigma, self.low)

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays at or below with at least this probability."""
        return log_normal.truncated_normal_quantile(self.mu, self.sigma, self.low, level)

    def survival(self, values: ArrayLike) -> Floats:
        """Probability to exceed each of the values."""
        at = np.asarray(values, dtype=np.float64)
        survival = log_normal.truncated_normal_survival(at.ravel(), self.mu, self.sigma, self.low)
        return survival.reshape(at.shape)

    def cumulative(self, values: ArrayLike) -> Floats:
        """Probability to stay at or below each of the values."""
        return np.asarray(1.0 - self.survival(values))

    def expectation(self, function: Callable[[Floats], Floats]) -> float:
        """Expected value of a function of the quantity.

        By Gauss-Legendre quadrature: near where the function is smooth.
        """
        first = (self.low - self.mu) / self.sigma
        low, high = max(first, -basic.NORMAL_REACH), max(first, 0.0) + basic.NORMAL_REACH
        pieces = math.ceil((high - low) / basic.NORMAL_PIECE)
        width = (high - low) / pieces
        z = low + width * (np.arange(pieces)[:, np.newaxis] + basic.SHARES)
        density = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * self._left(self.low))
        inner = (function(self.mu + self.sigma * z) * density) @ basic.SHARE_WEIGHTS
        return width * float(inner.sum())

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        if elapsed <= self.low:
            return self
        if self._left(elapsed) < _NOTHING:
            return basic.Point(elapsed)
        return TruncatedNormal(self.mu, self.sigma, elapsed)

    def scaled(self, factor: float) -> TruncatedNormal:
        """The belief about ``factor`` times the quantity."""
        basic.checked_factor(factor)
        return TruncatedNormal(self.mu * factor, self.sigma * factor, self.low * factor)

    def sample(self, random: np.random.Generator, size: int) -> Floats:
        """So many independent draws."""
        return log_normal.truncated_normal_quantiles(
            self.mu, self.sigma, self.low, random.random(size)
        )
