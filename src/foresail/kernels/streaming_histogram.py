"""A distribution in constant memory: the streaming histogram of Ben-Haim and Tom-Tov (2010).

A histogram lives in one row of numbers (a slice of a larger table, or an array of its own): count,
smallest and largest value exactly, how many bins are used, whether bins were ever merged, then
centroids in ascending order, then their counts. Until the first merge the bins are exact atoms;
afterwards the count up to a value runs through half of each bin's count at its centroid, linear in
density in between, from 0 at the smallest value to everything at the largest. Where the first
(last) centroid is the smallest (largest) value itself, half of its count is an atom there.

Source: spec 3sigma-distsched section 2.3; golden values G4 and G24.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel

COUNT: Final = 0
SMALLEST: Final = 1
LARGEST: Final = 2
USED: Final = 3
MERGED: Final = 4
CENTROIDS: Final = 5
"""Places in a row; the counts follow the centroids."""


def histogram_columns(bins: int) -> int:
    """Length of the row of a histogram with so many bins."""
    return CENTROIDS + 2 * bins


@kernel
def bins_of(row: NDArray[np.float64]) -> int:
    """How many bins the histogram in this row may use."""
    return (row.size - CENTROIDS) // 2


@kernel
def clear(row: NDArray[np.float64]) -> None:
    """Make the row an empty histogram."""
    row[:] = 0.0


@kernel
def _merge_nearest(row: NDArray[np.float64], bins: int, used: int) -> None:
    """Merge the two neighbouring bins with the smallest gap; of equal gaps, the lowest."""
    counts = CENTROIDS + bins
    nearest = 0
    gap = math.inf
    for i in range(used - 1):
        here = row[CENTROIDS + i + 1] - row[CENTROIDS + i]
        if here < gap:
            gap = here
            nearest = i
    left, right = row[counts + nearest], row[counts + nearest + 1]
    row[CENTROIDS + nearest] = (
        row[CENTROIDS + nearest] * left + row[CENTROIDS + nearest + 1] * right
    ) / (left + right)
    row[counts + nearest] = left + right
    for i in range(nearest + 1, used - 1):
        row[CENTROIDS + i] = row[CENTROIDS + i + 1]
        row[counts + i] = row[counts + i + 1]
    row[CENTROIDS + used - 1] = 0.0
    row[counts + used - 1] = 0.0
    row[MERGED] = 1.0
