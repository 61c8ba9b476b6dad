"""A log-normal distribution cut at a limit: runtimes that scatter by factors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from foresail.distributions import basic
from foresail.distributions.kernels.log_normal import (
    log_normal_left,
    log_normal_mean,
    log_normal_quantile,
    log_normal_quantiles,
    log_normal_survival,
    standardised,
)
from foresail.model.distribution import Distribution, Floats

_LARGEST_EXPONENT: Final = 700.0
_NOTHING: Final = 1e-290


@dataclass(frozen=True, slots=True)
class LogNormal:
    """The belief about min(X, cap), with ln X normal, given that it exceeds ``elapsed``.

    Raises ``ValueError`` if the parameters are not as above, leave no probability or give means
    beyond all numbers.
    """

    mu: float
    sigma: float
    """Mean and standard deviation of ln X (X in seconds); ``sigma`` above 0."""
    cap: float = math.inf
    """Amount that the quantity cannot exceed (a limit), with all the probability of X beyond it."""
    elapsed: float = 0.0
    """Amount that it is known to exceed; 0 if nothing is known."""

    def __post_init__(self) -> None:
        if not (
            self.sigma > 0.0 and abs(self.mu) + 0.5 * self.sigma * self.sigma < _LARGEST_EXPONENT
        ):
            raise ValueError("sigma must be above 0 and mu and sigma not too large")
        if not 0.0 <= self.elapsed < self.cap:
            raise ValueError("elapsed must not be negative and must be below the cap")
        if log_normal_left(self.mu, self.sigma, self.elapsed) < _NOTHING:
            raise ValueError("elapsed must leave something")

    def mean(self) -> float:
        """Expected value."""
        return log_normal_mean(self.mu, self.sigma, self.cap, self.elapsed)

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays at or below with at least this probability."""
        return log_normal_quantile(self.mu, self.sigma, self.cap, self.elapsed, level)

    def survival(self, values: ArrayLike) -> Floats:
        """Probability to exceed each of the values."""
        at = np.asarray(values, dtype=np.float64)
        survival = log_normal_survival(at.ravel(), self.mu, self.sigma, self.cap, self.elapsed)
        return survival.reshape(at.shape)

    def cumulative(self, values: ArrayLike) -> Floats:
        """Probability to stay at or below each of the values."""
        return np.asarray(1.0 - self.survival(values))

    def expectation(self, function: Callable[[Floats], Floats]) -> float:
        """Expected value of a function of the quantity.

        By Gauss-Legendre quadrature over ln X: near where the function is smooth and no steeper
        than the quantity or its inverse.
        """
        reach = basic.NORMAL_REACH + self.sigma
        first = standardised(self.elapsed, self.mu, self.sigma)
        last = standardised(self.cap, self.mu, self.sigma)
        left = log_normal_left(self.mu, self.sigma, self.elapsed)
        beyond = log_normal_left(self.mu, self.sigma, self.cap) / left
        total = beyond * float(function(np.array([self.cap]))[0]) if beyond > 0.0 else 0.0
        low, high = max(first, -reach), min(last, max(first, 0.0) + reach)
        if low >= high:
            return total
        pieces = math.ceil((high - low) / basic.NORMAL_PIECE)
        width = (high - low) / pieces
        z = low + width * (np.arange(pieces)[:, np.newaxis] + basic.SHARES)
        density = np.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * left)
        inner = (function(np.exp(self.mu + self.sigma * z)) * density) @ basic.SHARE_WEIGHTS
        return total + width * float(inner.sum())

    def given(self, elapsed: float) -> Distribution:
        """The belief once the quantity exceeds ``elapsed``; a point there if nothing is left."""
        if elapsed <= self.elapsed:
            return self
        if elapsed >= self.cap or log_normal_left(self.mu, self.sigma, elapsed) < _NOTHING:
            return basic.Point(elapsed)
        return LogNormal(self.mu, self.sigma, self.cap, elapsed)

    def scaled(self, factor: float) -> LogNormal:
        """The belief about ``factor`` times the quantity."""
        mu = self.mu + math.log(basic.checked_factor(factor))
        return LogNormal(mu, self.sigma, self.cap * factor, self.elapsed * factor)

    def sample(self, random: np.random.Generator, size: int) -> Floats:
        """So many independent draws."""
        levels = random.random(size)
        return log_normal_quantiles(self.mu, self.sigma, self.cap, self.elapsed, levels)
