"""Arrays of numbers, annotated by their contents; the protocol of a distribution, a belief.

Shapes of arrays are stated where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]


@runtime_checkable
class Distribution(Protocol):
    """A belief about a non-negative quantity; an immutable value.

    Implementations live in ``foresail.distributions``; ``Point`` is the belief of a predictor that
    names one number.
    """

    def mean(self) -> float:
        """Expected value."""

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays below with at least this probability."""

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to exceed each of the values."""

    def cumulative(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to stay at or below each of the values."""

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """Expected value of a function of the quantity (vectorised over its argument)."""

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity is known to exceed ``elapsed`` (3Sigma equation 4.2).

        Strictly: an atom at ``elapsed`` is dropped. ``given(0)`` is the belief itself. Where
        nothing is left, ``survival(elapsed) == 0``, the answer is a point at ``elapsed``.
        """

    def scaled(self, factor: float) -> Distribution:
        """The belief about ``factor`` (above 0) times the quantity."""

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        """So many independent draws."""
