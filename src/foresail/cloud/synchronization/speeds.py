"""How fast transient workers are: the slowest of several, the next, ..., as expected values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from foresail.cloud.histories import MarketHistory
from foresail.distributions.empirical import Empirical
from foresail.model.arrays import Floats, Integers
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError

_LEVELS: Final = 4096


@dataclass(frozen=True, slots=True)
class UniformSpeeds:
    """Speeds between 0 and 1, each as likely as any other: the thesis' transient workers."""

    def expected(self, rank: Integers, workers: Integers) -> Floats:
        """Expected speed of the worker with this rank among so many, the slowest having rank 1."""
        return rank / (workers + 1.0)

    def unfinished(self, slower: Integers, workers: Integers) -> Floats:  # noqa: ARG002 - as others have it
        """Mean share of their tasks that so many slowest have not done when the next one has."""
        return np.full(slower.shape, 0.5)


@dataclass(frozen=True)
class AnySpeeds:
    """Speeds of any distribution, by its quantiles.

    Raises
    ------
    InputError
        If workers may have no speed at all: use ``at_least``.
    """

    distribution: Distribution

    def __post_init__(self) -> None:
        if not self._quantiles[0] > 0.0:
            raise InputError(
                "some workers never get anything done",
                field="speeds",
                value=float(self._quantiles[0]),
                expected="speeds above 0; raise the lowest speed",
            )

    @cached_property
    def _levels(self) -> Floats:
        return (np.arange(_LEVELS) + 0.5) / _LEVELS

    @cached_property
    def _quantiles(self) -> Floats:
        return np.array([self.distribution.quantile(float(level)) for level in self._levels])

    def expected(self, rank: Integers, workers: Integers) -> Floats:
        """Expected speed of the worker with this rank among so many, the slowest having rank 1."""
        return np.array(
            [
                self._weights(at, of) @ self._quantiles
                for at, of in zip(rank.tolist(), workers.tolist(), strict=True)
            ]
        )

    def unfinished(self, slower: Integers, workers: Integers) -> Floats:
        """Mean share of their tasks that so many slowest have not done when the next one has.

        Given its speed v, the slower ones are independent draws from below v.
        """
        below = np.cumsum(self._quantiles) - 0.5 * self._quantiles
        left = 1.0 - below / (_LEVELS * self._levels) / self._quantiles
        return np.array(
            [
                self._weights(some + 1, of) @ left
                for some, of in zip(slower.tolist(), workers.tolist(), strict=True)
            ]
        )

    def _weights(self, rank: int, workers: int) -> Floats:
        """Density of the level of the worker with a rank, a beta distribution, on the levels."""
        log = (rank - 1) * np.log(self._levels) + (workers - rank) * np.log1p(-self._levels)
        weights = np.exp(log - log.max())
        return np.asarray(weights / weights.sum())


RankedSpeeds = UniformSpeeds | AnySpeeds
"""What the formulas need to know of workers' speeds; 1 is the speed of an on-demand worker."""


def at_least(distribution: Distribution, lowest: float) -> Empirical:
    """A distribution of speeds, with those below the lowest raised to it, as equally likely atoms.

    Raises
    ------
    InputError
        If the lowest is not above 0.
    """
    if not 0.0 < lowest < math.inf:
        raise InputError("no speed", field="lowest", value=lowest, expected="above 0")
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return Empirical([max(distribution.quantile(float(level)), lowest) for level in levels])


def measured_speeds(history: MarketHistory, interval_seconds: float) -> Empirical:
    """Speeds of a worker that works only while its market is up, by a measured series.

    The share of each interval that it was up is its speed there; 0 where it was down throughout.

    An interval between barriers lasts ``interval_seconds`` on a worker that is always up.

    Raises
    ------
    InputError
        If the history is shorter than an interval.
    """
    if not 0.0 < interval_seconds <= history.span_seconds:
        raise InputError(
            "no interval of this history",
            source=history.market,
            field="interval_seconds",
            value=interval_seconds,
            expected=f"above 0, at most {history.span_seconds:g}",
        )
    seconds = history.step_seconds()
    edges = np.concatenate(([0.0], np.cumsum(seconds)))
    done = np.concatenate(([0.0], np.cumsum(seconds * history.share_up())))
    at = np.arange(0.0, history.span_seconds, interval_seconds)
    shares = np.diff(np.interp(at, edges, done)) / interval_seconds
    values, counts = np.unique(np.round(shares, 9), return_counts=True)
    return Empirical(np.clip(values, 0.0, 1.0), counts)
