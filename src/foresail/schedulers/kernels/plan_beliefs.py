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
def fill_limited_means(
    first_component: Integers,
    first_row: Integers,
    weights: Floats,
    shifts: Floats,
    rows: Floats,
    bounds: Floats,
    means: Floats,
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


_HALVINGS: Final = 60


@part
def _survival(
    first_component: Integers,
    first_row: Integers,
    weights: Floats,
    shifts: Floats,
    rows: Floats,
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
    first_component: Integers,
    first_row: Integers,
    weights: Floats,
    shifts: Floats,
    rows: Floats,
    levels: Floats,
    values: Floats,
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
            # Halving, not Newton: the survival of a histogram has flat pieces.
            for _ in range(_HALVINGS):
                if low >= high:
                    break
                middle = 0.5 * (low + high)
                if _survival(first_component, first_row, weights, shifts, rows, i, middle) > target:
                    low = middle
                else:
                    high = middle
            values[i, j] = high
