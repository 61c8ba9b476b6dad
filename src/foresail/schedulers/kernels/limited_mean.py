"""The mean of what is left of a duration under a bound: E[min(T, bound)], for many at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.pieces import BEND, PLACE, SLOPE, SURVIVAL
from foresail.kernels.compile import bare_kernel, part


@part
def _within(pieces: NDArray[np.float64], first: int, end: int, bound: float) -> float:
    """The integral of the survival from 0 to ``bound``; the bound itself below the first piece."""
    total = min(bound, pieces[first, PLACE])
    for piece in range(first, end):
        begin = pieces[piece, PLACE]
        if begin >= bound:
            break
        stop = min(pieces[piece + 1, PLACE], bound) if piece + 1 < end else bound
        width = stop - begin
        fall = width * (0.5 * pieces[piece, SLOPE] + width * pieces[piece, BEND] / 3.0)
        if pieces[piece, SURVIVAL] > 0.0:
            total += width * (pieces[piece, SURVIVAL] - fall)
    return float(total)


@bare_kernel
def fill_limited_means(
    first_component: NDArray[np.int64],
    first_row: NDArray[np.int64],
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    rows: NDArray[np.float64],
    bounds: NDArray[np.float64],
    means: NDArray[np.float64],
) -> None:
    """Fill ``means[i, j]`` with E[min(T_i, bounds[i, j])].

    The first five are the arrays of ``PackedDistributions`` without smooth components; a negative
    bound is its own mean.
    """
    for i in range(bounds.shape[0]):
        for j in range(bounds.shape[1]):
            total = 0.0
            for c in range(first_component[i], first_component[i + 1]):
                bound = bounds[i, j] - shifts[c]
                part = _within(rows, first_row[c], first_row[c + 1], bound)
                total += weights[c] * (part + shifts[c])
            means[i, j] = total
