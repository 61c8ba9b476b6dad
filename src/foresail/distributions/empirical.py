"""A distribution of weighted atoms: runtimes that were seen, each with its weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions.basic import Point, checked_factor, normalised
from foresail.distributions.kernels.summary import atom_mean, atom_quantile
from foresail.model.distribution import Distribution, Floats


class Empirical:
    """Weighted atoms.

    Raises ``ValueError`` if the values or weights are not as above.

    Parameters
    ----------
    values
        Finite and not negative, in any order.
    weights
        Not negative, with a positive sum; equal when not given. The sum becomes 1.

    ``values`` and ``probabilities`` then hold the atoms with a weight, in ascending order, and
    ``reached`` the probability up to each.
    """

    __slots__ = ("probabilities", "reached", "values")

    values: Floats
    probabilities: Floats
    reached: Floats

    def __init__(self, values: ArrayLike, weights: ArrayLike | None = None) -> None:
        atoms = np.asarray(values, dtype=np.float64)
        mass = np.ones_like(atoms) if weights is None else np.asarray(weights, dtype=np.float64)
        if atoms.ndim != 1 or atoms.size == 0 or atoms.shape != mass.shape:
            raise ValueError("values and weights must be one or more pairs")
        if not np.all(np.isfinite(atoms)) or np.any(atoms < 0.0):
            raise ValueError("values must be finite and not negative")
        total = float(mass.sum())
        if np.any(mass < 0.0) or not 0.0 < total < np.inf:
            raise ValueError("weights must not be negative and must have a positive sum")
        order = np.argsort(atoms, kind="stable")
        order = order[mass[order] > 0.0]
        self.values = atoms[order]
        self.probabilities = normalised(mass[order], total)
        self.reached = np.cumsum(self.probabilities)
        self.reached[-1] = 1.0
        for array in (self.values, self.probabilities, self.reached):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"Empirical({self.values.tolist()}, {self.probabilities.tolist()})"

    def mean(self) -> float:
        """Expected value."""
        return atom_mean(self.values, self.probabilities)

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays at or below with at least this probability."""
        return atom_quantile(self.values, self.reached, level)

    def survival(self, values: ArrayLike) -> Floats:
        """Probability to exceed each of the values."""
        passed = np.searchsorted(self.values, np.asarray(values, dtype=np.float64), side="right")
        return np.asarray(1.0 - np.concatenate(([0.0], self.reached))[passed])

    def cumulative(self, values: ArrayLike) -> Floats:
        """Probability to stay at or below each of the values."""
        passed = np.searchsorted(self.values, np.asarray(values, dtype=np.float64), side="right")
        return np.asarray(np.concatenate(([0.0], self.reached))[passed])

    def expectation(self, function: Callable[[Floats], Floats]) -> float:
        """Expected value of a function of the quantity."""
        return float(self.probabilities @ function(self.values))

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        if elapsed <= 0.0 or elapsed < self.values[0]:
            return self
        later = self.values > elapsed
        if not np.any(later):
            return Point(elapsed)
        return Empirical(self.values[later], self.probabilities[later])

    def scaled(self, factor: float) -> Empirical:
        """The belief about ``factor`` times the quantity."""
        return Empirical(self.values * checked_factor(factor), self.probabilities)

    def sample(self, random: np.random.Generator, size: int) -> Floats:
        """So many independent draws."""
        return np.asarray(self.values[np.searchsorted(self.reached, random.random(size), "right")])
