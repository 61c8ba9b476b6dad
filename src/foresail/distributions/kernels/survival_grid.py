"""Survival of many distributions on a grid, conditioned (3Sigma equation 4.2), means and quantiles.

Each distribution is either pieces (below) or one of the smooth kinds with its parameters in one row
of the same width.
``foresail.distributions.packed`` lays the arrays out.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.distributions.kernels.log_normal import log_normal_left, standardised, upper_tail
from foresail.kernels.compile import Floats, Integers, bare_kernel, part

PLACE: Final = 0
SURVIVAL: Final = 1
SLOPE: Final = 2
BEND: Final = 3
PIECE_COLUMNS: Final = 4


@part
def piece_of(pieces: Floats, first: int, end: int, value: float) -> int:
    """The last of the pieces ``first`` to ``end`` that begins at or before a value, or one less."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if pieces[middle, PLACE] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1


@part
def survival_within(pieces: Floats, piece: int, value: float) -> float:
    """Probability to exceed a value of this piece."""
    into = value - pieces[piece, PLACE]
    fall = into * (pieces[piece, SLOPE] + pieces[piece, BEND] * into)
    return float(max(pieces[piece, SURVIVAL] - fall, 0.0))


@part
def pieces_survival(pieces: Floats, first: int, end: int, value: float) -> float:
    """Probability to exceed a value, by the pieces ``first`` to ``end``."""
    piece = piece_of(pieces, first, end, value)
    return survival_within(pieces, piece, value) if piece >= first else 1.0


def pieces_beyond(pieces: Floats, elapsed: float) -> Floats:
    """The pieces once the quantity exceeds ``elapsed``; something must be left there."""
    here = int(np.searchsorted(pieces[:, PLACE], elapsed, side="right")) - 1
    if here < 0:
        return pieces.copy()
    place, survival, slope, bend = pieces[here]
    into = elapsed - place
    left = max(survival - into * (slope + bend * into), 0.0)
    beyond = pieces[here:].copy()
    beyond[0, SURVIVAL] = left
    beyond[0, SLOPE] += 2.0 * beyond[0, BEND] * (elapsed - beyond[0, PLACE])
    beyond[0, PLACE] = elapsed
    beyond[:, SURVIVAL:] /= left
    return beyond


IN_PIECES: Final = 0
LOG_NORMAL: Final = 1
TRUNCATED_NORMAL: Final = 2
"""Kinds of distributions. The row of a log-normal: mu, sigma, cap, elapsed; of a truncated normal:
mu, sigma, low, and one unused."""

_NOTHING: Final = 1e-290


@part
def _smooth_survival(kind: int, parameters: Floats, value: float) -> float:
    """Probability to exceed a value, by one of the smooth kinds."""
    mu, sigma = parameters[0], parameters[1]
    if kind == LOG_NORMAL:
        if value < parameters[3]:
            return 1.0
        if value >= parameters[2]:
            return 0.0
        left = log_normal_left(mu, sigma, parameters[3])
        return min(upper_tail(standardised(value, mu, sigma)) / left, 1.0)
    if value <= parameters[2]:
        return 1.0
    return upper_tail((value - mu) / sigma) / upper_tail((parameters[2] - mu) / sigma)


@bare_kernel
def survival_left(
    kinds: Integers, first_row: Integers, rows: Floats, elapsed: Floats, left: Floats
) -> None:
    """Fill ``left[i]`` with the probability of distribution ``i`` to exceed ``elapsed[i]``.

    It is 1 where ``elapsed`` is 0: conditioning on that changes nothing; and 0 where so little is
    left that its inverse could not be distinguished from infinity.
    """
    for i in range(elapsed.size):
        if elapsed[i] <= 0.0:
            left[i] = 1.0
            continue
        if kinds[i] == IN_PIECES:
            exceeds = pieces_survival(rows, first_row[i], first_row[i + 1], elapsed[i])
        else:
            exceeds = _smooth_survival(kinds[i], rows[first_row[i]], elapsed[i])
        left[i] = exceeds if exceeds > _NOTHING else 0.0


@bare_kernel
def fill_survival_grid(
    kinds: Integers,
    first_row: Integers,
    rows: Floats,
    elapsed: Floats,
    offsets: Floats,
    left: Floats,
    survival: Floats,
) -> None:
    """Fill ``survival[i, j]`` with P(T_i > elapsed[i] + offsets[j] | T_i > elapsed[i]).

    Parameters
    ----------
    kinds, first_row
        Per distribution: its kind, and its rows ``first_row[i]`` to ``first_row[i+1]``.
    rows
        Pieces or parameters.
    elapsed, offsets
        Seconds, not negative; the offsets ascend.
    left
        As ``survival_left`` fills it. Where it is 0 nothing is left: the row becomes 0.
    survival
        Filled; shape (distributions, offsets).
    """
    for i in range(elapsed.size):
        row, first, end = survival[i], first_row[i], first_row[i + 1]
        if left[i] <= 0.0:
            for j in range(offsets.size):
                row[j] = 0.0
            continue
        weight = 1.0 / left[i]
        in_pieces = kinds[i] == IN_PIECES
        # Offsets ascend, so that pieces are walked once for all of them.
        piece = piece_of(rows, first, end, elapsed[i] + offsets[0]) if in_pieces else first
        for j in range(offsets.size):
            value = elapsed[i] + offsets[j]
            if in_pieces:
                while piece + 1 < end and rows[piece + 1, PLACE] <= value:
                    piece += 1
                exceeds = survival_within(rows, piece, value) if piece >= first else 1.0
            else:
                exceeds = _smooth_survival(kinds[i], rows[first], value)
            row[j] = min(weight * exceeds, 1.0)


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
