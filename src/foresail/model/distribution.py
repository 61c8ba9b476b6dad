"""The protocol of a distribution: a belief about a duration (or an amount)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray


@runtime_checkable
class Distribution(Protocol):
    """A belief about a non-negative quantity; an immutable value.

    Implementations live in ``foresail.distributions``; ``Point`` is the belief of a predictor that
    names one number.
    """

    def mean(self) -> float:
        """Expected value."""
        ...

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays below with at least this probability."""
        ...

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to exceed each of the values."""
        ...

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """Expected value of a function of the quantity (vectorised over its argument)."""
        ...

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity is known to exceed ``elapsed``; ``given(0)`` is itself."""
        ...
