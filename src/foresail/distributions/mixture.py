"""One of several distributions, each with its probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.distributions.basic import Point, normalised
from foresail.model.distribution import Distribution


class Mixture:
    """The quantity follows one of the components, chosen with these weights.

    Raises ``ValueError`` if the components or weights are not as above.
    """

    __slots__ = ("components", "weights")

    components: tuple[Distribution, ...]
    """One or more distributions."""
    weights: NDArray[np.float64]
    """One each, not negative, with a positive sum; equal when not given. The sum becomes 1, and
    components without weight are left out."""

    def __init__(
        self, components: Sequence[Distribution], weights: ArrayLike | None = None
    ) -> None:
        mass = np.ones(len(components)) if weights is None else np.asarray(weights, np.float64)
        if not components or mass.shape != (len(components),):
            raise ValueError("components and weights must be one or more pairs")
        total = float(mass.sum())
        if np.any(mass < 0.0) or not 0.0 < total < np.inf:
            raise ValueError("weights must not be negative and must have a positive sum")
        self.components = tuple(
            component for component, weight in zip(components, mass, strict=True) if weight > 0.0
        )
        self.weights = normalised(mass[mass > 0.0], total)
        self.weights.flags.writeable = False

    def __repr__(self) -> str:
        return f"Mixture({list(self.components)}, {self.weights.tolist()})"

    def mean(self) -> float:
        """Expected value."""
        return float(self.weights @ [component.mean() for component in self.components])

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays at or below with at least this probability."""
        return float(self.quantiles(np.array([level]))[0])

    def quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """``quantile`` at each of the levels: between the components' own, by halving."""
        each = np.array(
            [[component.quantile(level) for level in levels] for component in self.components]
        )
        low, high = each.min(axis=0), each.max(axis=0)
        high = np.where(self._reached(low, levels), low, high)
        low = np.where(np.isfinite(high), low, high)
        open_ = low < high
        while np.any(open_):
            middle = low[open_] + 0.5 * (high[open_] - low[open_])
            reached = self._reached(middle, levels[open_])
            stuck = (middle <= low[open_]) | (middle >= high[open_])
            high[open_] = np.where(reached & ~stuck, middle, high[open_])
            low[open_] = np.where(stuck, high[open_], np.where(reached, low[open_], middle))
            open_ = low < high
        return np.asarray(high)

    def _reached(
        self, values: NDArray[np.float64], levels: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        upper = self.survival(values) <= 1.0 - levels  # precise in the upper half
        return np.where(levels > 0.5, upper, self.cumulative(values) >= levels)

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to exceed each of the values."""
        return self._mixed([component.survival(values) for component in self.components])

    def cumulative(self, values: ArrayLike) -> NDArray[np.float64]:
        """Probability to stay at or below each of the values."""
        return self._mixed([component.cumulative(values) for component in self.components])

    def _mixed(self, probabilities: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        mixed = np.zeros_like(probabilities[0])
        for weight, each in zip(self.weights, probabilities, strict=True):
            mixed = mixed + weight * each
        sure = np.all(np.asarray(probabilities) == 1.0, axis=0)  # the weights' sum is rounded
        return np.where(sure, 1.0, np.minimum(mixed, 1.0))

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """Expected value of a function of the quantity."""
        return float(self.weights @ [each.expectation(function) for each in self.components])

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        if elapsed <= 0.0:
            return self
        left = self.weights * [float(component.survival(elapsed)) for component in self.components]
        if not np.any(left > 0.0):
            return Point(elapsed)
        return Mixture([component.given(elapsed) for component in self.components], left)

    def scaled(self, factor: float) -> Mixture:
        """The belief about ``factor`` times the quantity."""
        return Mixture([component.scaled(factor) for component in self.components], self.weights)

    def shifted(self, amount: float) -> Mixture:
        """The belief about the quantity plus an amount."""
        return Mixture([component.shifted(amount) for component in self.components], self.weights)

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        """So many independent draws."""
        chosen = random.choice(len(self.components), size, p=self.weights)
        drawn = np.empty(size)
        for i, component in enumerate(self.components):
            here = np.flatnonzero(chosen == i)
            drawn[here] = component.sample(random, here.size)
        return drawn
