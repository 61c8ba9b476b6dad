"""A belief about a job's runtime that also says what its tasks will use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.model.distribution import Distribution


@dataclass(frozen=True, slots=True)
class UsageBelief:
    """The runtime, and per task by name of the quantity: ``cpu``, ``memory``, ``cpu_time``.

    It is a belief about the runtime in all else; what is derived from it is no more than that.
    """

    runtime: Distribution
    per_task: Mapping[str, Distribution] = field(default_factory=dict)

    def mean(self) -> float:
        """Expected runtime."""
        return self.runtime.mean()

    def quantile(self, level: float) -> float:
        """Return the quantile of the runtime."""
        return self.runtime.quantile(level)

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the survival function of the runtime."""
        return self.runtime.survival(values)

    def cumulative(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the cumulative distribution of the runtime."""
        return self.runtime.cumulative(values)

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """Return the expectation of a function of the runtime."""
        return self.runtime.expectation(function)

    def given(self, elapsed: float) -> Distribution:
        """The runtime alone."""
        return self.runtime.given(elapsed)

    def scaled(self, factor: float) -> Distribution:
        """The runtime alone."""
        return self.runtime.scaled(factor)

    def shifted(self, amount: float) -> Distribution:
        """The runtime alone."""
        return self.runtime.shifted(amount)

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Runtimes."""
        return self.runtime.sample(random, size)
