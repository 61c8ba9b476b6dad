"""Quantiles of many beliefs at once, by halving."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.pieces import PLACE, pieces_survival
from foresail.kernels.compile import bare_kernel, part

_HALVINGS: Final = 60


@part
def _survival(
    first_component: NDArray[np.int64],
    first_row: NDArray[np.int64],
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    rows: NDArray[np.float64],
    i: int,
    value: float,
) -> float:
    """Probability of distribution ``i`` to exceed a value."""
    total = 0.0
    for c in range(first_component[i], first_component[i + 1]):
        part = pieces_survival(rows, first_row[c], first_row[c + 1], value - shifts[c])
        total += weights[c] * part
    return total


@bare_kernel
def fill_quantiles(
    first_component: NDArray[np.int64],
    first_row: NDArray[np.int64],
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    rows: NDArray[np.float64],
    levels: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Fill ``values[i, j]`` with the quantile of distribution i at ``levels[i, j]``.

    The first five are the arrays of ``PackedDistributions`` without smooth components.
    """
    for i in range(levels.shape[0]):
        most = 0.0
        for c in range(first_component[i], first_component[i + 1]):
            most = max(most, rows[first_row[c + 1] - 1, PLACE] + shifts[c])
        for j in range(levels.shape[1]):
            target = 1.0 - levels[i, j]
            low, high = 0.0, most
            for _ in range(_HALVINGS):
                if low >= high:
                    break
                middle = 0.5 * (low + high)
                if _survival(first_component, first_row, weights, shifts, rows, i, middle) > target:
                    low = middle
                else:
                    high = middle
            values[i, j] = high
