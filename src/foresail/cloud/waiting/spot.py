"""Trials on machines that may be taken back (section 7.1): when that happens, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from foresail.model.arrays import Floats
from foresail.model.limits import require_positive


@dataclass(frozen=True, slots=True)
class Revocations:
    """Lifetimes of machines that live a day at most: many are taken back soon, or at the end.

    F(x) = A (1 - exp(-x / early) + exp((x - longest) / late)), the shape that was measured for
    preemptible machines.

    Raises
    ------
    InputError
        If a number is not above 0.
    """

    amplitude: float = 0.45
    early_hours: float = 1.0
    late_hours: float = 0.8
    longest_hours: float = 24.0

    def __post_init__(self) -> None:
        require_positive(self, "amplitude", "early_hours", "late_hours", "longest_hours")

    def share_by(self, seconds: ArrayLike) -> Floats:
        """Share of machines that were taken back by then."""
        hours = np.asarray(seconds, dtype=np.float64) / 3600.0
        share = self.amplitude * (
            1.0
            - np.exp(-hours / self.early_hours)
            + np.exp((hours - self.longest_hours) / self.late_hours)
        )
        return np.where(hours >= self.longest_hours, 1.0, np.clip(share, 0.0, 1.0))

    def sample(self, count: int, seed: int = 0) -> Floats:
        """So many lifetimes in seconds, to the second."""
        seconds = np.arange(0.0, 3600.0 * self.longest_hours + 1.0)
        levels = np.random.default_rng(seed).random(count)
        lifetimes: Floats = np.interp(levels, self.share_by(seconds), seconds)
        return lifetimes

    def lost_seconds(
        self, runtime_seconds: Floats, speculation_seconds: float, seed: int = 0
    ) -> Floats:
        """By job: how long its trial ran before its machine was taken back; 0 if it was not."""
        life = self.sample(runtime_seconds.size, seed)
        tried = np.minimum(runtime_seconds, speculation_seconds)
        return np.where(life < tried, life, 0.0)
