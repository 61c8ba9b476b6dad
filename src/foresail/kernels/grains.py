"""Fractions of cpus as numbers that add up: what is taken and given back leaves what there was.

A tenth of a cpu has no exact binary form, and a machine that has lent and got back a few of them
may seem to have a little less than it has: too little for a job that needs all of it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

PER_CPU: Final = 2.0**30


def whole_grains(cpus: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cpus of jobs rounded down to a billionth, so that their sums are exact (whole ones stay)."""
    return np.floor(cpus * PER_CPU) / PER_CPU


def whole_grain(cpus: float) -> float:
    """As ``whole_grains``, for one job."""
    return math.floor(cpus * PER_CPU) / PER_CPU


def nearest_grain(cpus: float) -> float:
    """A sum or difference of cpus without what rounding has done to it."""
    return round(cpus * PER_CPU) / PER_CPU
