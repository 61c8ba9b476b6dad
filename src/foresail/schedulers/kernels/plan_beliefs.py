"""Means under a bound, E[min(T, bound)], and quantiles of many beliefs at once."""

from __future__ import annotations

from typing import Final

from foresail.distributions.kernels.survival_grid import (
    BEND,
    PLACE,
    SLOPE,
    SURVIVAL,
    pieces_survival,
)
from foresail.kernels.compile import bare_kernel, part
from foresail.model.arrays import Floats, Integers


@part
def _within(pieces: Floats, first: int, end: int, bound: float) -> float:
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
def fill_limited_means(first_row: Integers, rows: Floats, bounds: Floats, means: Floats) -> None:
    """Fill ``means[i, j]`` with E[min(T_i, bounds[i, j])]; a negative bound is its own mean.

    The first two are the arrays of ``PackedDistributions`` without smooth kinds.
    """
    for i in range(bounds.shape[0]):
        for j in range(bounds.shape[1]):
            means[i, j] = _within(rows, first_row[i], first_row[i + 1], bounds[i, j])


_HALVINGS: Final = 60


@bare_kernel
def fill_quantiles(first_row: Integers, rows: Floats, levels: Floats, values: Floats) -> None:
    """Fill ``values[i, j]`` with the quantile of distribution i at ``levels[i, j]``.

    The first two are the arrays of ``PackedDistributions`` without smooth kinds.
    """
    for i in range(levels.shape[0]):
        first, end = first_row[i], first_row[i + 1]
        for j in range(levels.shape[1]):
            target = 1.0 - levels[i, j]
            low, high = 0.0, max(rows[end - 1, PLACE], 0.0)
            # Halving, not Newton: the survival of a histogram has flat pieces.
            for _ in range(_HALVINGS):
                if low >= high:
                    break
                middle = 0.5 * (low + high)
                if pieces_survival(rows, first, end, middle) > target:
                    low = middle
                else:
                    high = middle
            values[i, j] = high
