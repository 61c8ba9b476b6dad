"""Arrivals of a renewal process with a wished variability, over a wished length of time."""

from __future__ import annotations

import math

import numpy as np

from foresail.model.arrays import Floats


def balanced_hyperexponential(variability: float) -> tuple[float, float, float]:
    """Two-phase hyperexponential distribution of mean 1 with balanced means (3Sigma A-18).

    Of a squared coefficient of variation of at least 1: the probability of the first phase, and the
    rates of both.
    """
    first = (1.0 + math.sqrt((variability - 1.0) / (variability + 1.0))) / 2.0
    return first, 2.0 * first, 2.0 * (1.0 - first)


def draw_gaps(count: int, variability: float, random: np.random.Generator) -> Floats:
    """Gaps of mean 1; shape (count,)."""
    first, fast, slow = balanced_hyperexponential(variability)
    rate = np.where(random.random(count) < first, fast, slow)
    gaps: Floats = random.standard_exponential(count) / rate
    return gaps


def draw_arrivals(
    count: int, seconds: float, variability: float, random: np.random.Generator
) -> Floats:
    """Arrival times: the first at second zero, the last at ``seconds``; shape (count,).

    All gaps are stretched alike, which leaves their variability as it is.
    """
    times = np.concatenate(([0.0], np.cumsum(draw_gaps(max(count - 1, 0), variability, random))))
    return times[:count] * (seconds / times[-1] if count > 1 else 0.0)


def variability_of(times: Floats) -> float:
    """Squared coefficient of variation of the gaps between arrivals; 0 for fewer than three."""
    gaps = np.diff(times)
    if gaps.size < 2 or not gaps.any():
        return 0.0
    return float(gaps.var() / gaps.mean() ** 2)
