"""The belief of someone who names one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.distributions.arguments import checked_factor, checked_shift
from foresail.model.construction import quickly_made


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

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """1 below the value, 0 from it on."""
        return np.where(np.asarray(values, dtype=np.float64) < self.value, 1.0, 0.0)

    def cumulative(self, values: ArrayLike) -> NDArray[np.float64]:
        """0 below the value, 1 from it on."""
        return np.where(np.asarray(values, dtype=np.float64) < self.value, 0.0, 1.0)

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """The function at the value."""
        return float(function(np.array([self.value]))[0])

    def given(self, elapsed: float) -> Point:
        """Itself, or the elapsed time once that has outlived the belief."""
        return self if elapsed <= self.value else Point(elapsed)

    def scaled(self, factor: float) -> Point:
        """The belief about ``factor`` times the quantity."""
        return Point(self.value * checked_factor(factor))

    def shifted(self, amount: float) -> Point:
        """The belief about the quantity plus an amount."""
        return Point(self.value + checked_shift(amount, self.value))

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:  # noqa: ARG002
        """The value, so many times."""
        return np.full(size, self.value)
