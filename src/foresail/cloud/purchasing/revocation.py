"""How long transient machines live: the chance of a revocation, and when it comes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.cloud.histories import Lifetimes
from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail.model.limits import require


@dataclass(frozen=True, slots=True)
class ExponentialRevocation:
    """Exponential lifetimes (spec section 4.1).

    Raises
    ------
    InputError
        If the mean is not above 0.
    """

    mean_hours: float = 24.0

    def __post_init__(self) -> None:
        require(self.mean_hours > 0.0, self, "mean_hours", "above 0")

    def revoked(self, hours: Floats) -> Floats:
        """Probability that a machine is taken back within so many hours; shape of ``hours``."""
        return np.asarray(-np.expm1(-hours / self.mean_hours))

    def mean_run(self, hours: Floats) -> Floats:
        """Mean hours that a machine ran if it was taken back within ``hours``; same shape."""
        mean = self.mean_hours
        probability = -np.expm1(-hours / mean)
        run = np.asarray(hours / 2.0)
        lived = mean - (hours + mean) * np.exp(-hours / mean)
        np.divide(lived, probability, out=run, where=probability > 1e-9)
        return run


@dataclass(frozen=True, slots=True)
class CappedRevocation:
    """Lifetimes that end after ``cap_hours`` in any case.

    Raises
    ------
    InputError
        If the cap is not above 0.
    """

    lives: RevocationModel
    cap_hours: float

    def __post_init__(self) -> None:
        require(self.cap_hours > 0.0, self, "cap_hours", "above 0")

    def revoked(self, hours: Floats) -> Floats:
        """Probability that a machine is taken back within so many hours; shape of ``hours``."""
        return np.where(hours > self.cap_hours, 1.0, self.lives.revoked(hours))

    def mean_run(self, hours: Floats) -> Floats:
        """Mean hours that a machine ran if it was taken back within ``hours``; same shape."""
        cap = np.array([self.cap_hours])
        before = self.lives.revoked(cap)
        whole = before * self.lives.mean_run(cap) + (1.0 - before) * cap
        return np.where(hours > self.cap_hours, whole, self.lives.mean_run(hours))


class ObservedRevocation:
    """Lifetimes as markets had them, for jobs that begin at any moment in which a machine is up.

    Such a job meets long lives more often than short ones, and lives on for what is left of them.
    Moments of a life that the history cut off, from which one cannot see far enough, are left out.
    Beyond the longest life that was observed everything is revoked.

    Raises
    ------
    InputError
        If no life ended with a revocation.
    """

    def __init__(self, lives: Lifetimes) -> None:
        if not lives.revoked.any():
            raise InputError("no revocation was observed", expected="at least one")
        self._ended = np.sort(lives.hours[lives.revoked])
        self._below = np.concatenate([[0.0], np.cumsum(self._ended)])
        self._squares_below = np.concatenate([[0.0], np.cumsum(self._ended**2)])
        self._cut = np.sort(lives.hours[~lives.revoked])
        self._cut_below = np.concatenate([[0.0], np.cumsum(self._cut)])

    def revoked(self, hours: Floats) -> Floats:
        """Probability that a machine is taken back within so many hours; shape of ``hours``."""
        at = np.searchsorted(self._cut, hours)
        seen = self._cut_below[-1] - self._cut_below[at] - (self._cut.size - at) * hours
        return np.asarray(self._last(hours) / (self._below[-1] + seen))

    def mean_run(self, hours: Floats) -> Floats:
        """Mean hours that a machine ran if it was taken back within ``hours``; same shape."""
        at = np.searchsorted(self._ended, hours)
        squares = self._squares_below[at] + (self._ended.size - at) * hours**2
        run = np.zeros(np.shape(hours))
        last = self._last(hours)
        np.divide(squares / 2.0, last, out=run, where=last > 0.0)
        return run

    def _last(self, hours: Floats) -> Floats:
        """Hours of all lives that ended, as far as they are among the last ``hours`` of each."""
        at = np.searchsorted(self._ended, hours)
        return np.asarray(self._below[at] + (self._ended.size - at) * hours)


RevocationModel = ExponentialRevocation | CappedRevocation | ObservedRevocation
"""Lifetimes of transient machines."""
