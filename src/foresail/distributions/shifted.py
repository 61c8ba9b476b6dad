"""A distribution moved along: for the kinds that are not of the same kind once moved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.distributions.arguments import checked_factor, checked_shift
from foresail.distributions.point import Point
from foresail.model.distribution import Distribution


@dataclass(frozen=True, slots=True)
class Shifted:
    """The belief about a quantity plus an amount.

    Raises
    ------
    ValueError
        If the amount is not as above.
    """

    inner: Distribution
    """The belief about the quantity itself."""
    amount: float
    """Seconds; finite, and the smallest value plus it not negative."""

    def __post_init__(self) -> None:
        checked_shift(self.amount, self.inner.quantile(0.0))

    def mean(self) -> float:
        """Expected value."""
        return self.inner.mean() + self.amount

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays at or below with at least this probability."""
        return self.inner.quantile(level) + self.amount

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to exceed each of the values."""
        at = np.asarray(values, dtype=np.float64)
        return np.where(self._is_over(at), 0.0, self.inner.survival(at - self.amount))

    def cumulative(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to stay at or below each of the values."""
        at = np.asarray(values, dtype=np.float64)
        return np.where(self._is_over(at), 1.0, self.inner.cumulative(at - self.amount))

    def _is_over(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where the largest value is reached: shifting back may land just below it."""
        return values >= self.quantile(1.0)

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """Expected value of a function of the quantity."""
        return self.inner.expectation(lambda values: function(values + self.amount))

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        before = elapsed - self.amount
        if elapsed <= 0.0 or before < 0.0:
            return self
        if float(self.survival(elapsed)) == 0.0:
            return Point(elapsed)
        before = max(before, math.ulp(0.0))  # 0 would tell the inner belief nothing
        return Shifted(self.inner.given(before), self.amount)

    def scaled(self, factor: float) -> Distribution:
        """The belief about ``factor`` times the quantity."""
        return Shifted(self.inner.scaled(checked_factor(factor)), self.amount * factor)

    def shifted(self, amount: float) -> Distribution:
        """The belief about the quantity plus a further amount."""
        total = self.amount + checked_shift(amount, self.quantile(0.0))
        total = max(total, -self.inner.quantile(0.0))  # rounding may pass it
        return Shifted(self.inner, total) if total else self.inner

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        """So many independent draws."""
        return self.inner.sample(random, size) + self.amount
