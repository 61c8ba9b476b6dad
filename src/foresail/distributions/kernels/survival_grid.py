"""Conditioned survival of many distributions on a grid: 3Sigma equation 4.2 for a whole cluster.

Each distribution is a weighted sum of components (most have one). A component is either pieces
(below) or one of the smooth kinds with its parameters in one row of the same width.
``foresail.distributions.packed`` lays the arrays out.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.log_normal import log_normal_left, standardised, upper_tail
from foresail.kernels.compile import bare_kernel, part

PLACE: Final = 0
SURVIVAL: Final = 1
SLOPE: Final = 2
BEND: Final = 3
PIECE_COLUMNS: Final = 4


@part
def piece_of(pieces: NDArray[np.float64], first: int, end: int, value: float) -> int:
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
def survival_within(pieces: NDArray[np.float64], piece: int, value: float) -> float:
    """Probability to exceed a value of this piece."""
    into = value - pieces[piece, PLACE]
    fall = into * (pieces[piece, SLOPE] + pieces[piece, BEND] * into)
    return float(max(pieces[piece, SURVIVAL] - fall, 0.0))


@part
def pieces_survival(pieces: NDArray[np.float64], first: int, end: int, value: float) -> float:
    """Probability to exceed a value, by the pieces ``first`` to ``end``."""
    piece = piece_of(pieces, first, end, value)
    return survival_within(pieces, piece, value) if piece >= first else 1.0


def pieces_beyond(pieces: NDArray[np.float64], elapsed: float) -> NDArray[np.float64]:
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
"""Kinds of components. The row of a log-normal: mu, sigma, cap, elapsed; of a truncated normal:
mu, sigma, low, and one unused."""

_NOTHING: Final = 1e-290


@part
def _smooth_survival(kind: int, parameters: NDArray[np.float64], value: float) -> float:
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


@part
def _component_survival(
    kind: int, rows: NDArray[np.float64], first: int, end: int, value: float
) -> float:
    """Probability to exceed a value, by the component in rows ``first`` to ``end``."""
    if kind == IN_PIECES:
        return pieces_survival(rows, first, end, value)
    return _smooth_survival(kind, rows[first], value)


@part
def _add_pieces(
    rows: NDArray[np.float64],
    first: int,
    end: int,
    weight: float,
    elapsed: float,
    offsets: NDArray[np.float64],
    survival: NDArray[np.float64],
) -> None:
    """Add ``weight`` times the survival at ``elapsed`` + each offset, walking the pieces once."""
    piece = piece_of(rows, first, end, elapsed + offsets[0])
    for j in range(offsets.size):
        value = elapsed + offsets[j]
        while piece + 1 < end and rows[piece + 1, PLACE] <= value:
            piece += 1
        survival[j] += weight * (survival_within(rows, piece, value) if piece >= first else 1.0)


@bare_kernel
def survival_left(
    first_component: NDArray[np.int64],
    kinds: NDArray[np.int64],
    first_row: NDArray[np.int64],
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    rows: NDArray[np.float64],
    elapsed: NDArray[np.float64],
    left: NDArray[np.float64],
) -> None:
    """Fill ``left[i]`` with the probability of distribution ``i`` to exceed ``elapsed[i]``.

    It is 1 where ``elapsed`` is 0: conditioning on that changes nothing; and 0 where so little is
    left that its inverse could not be distinguished from infinity.
    """
    for i in range(elapsed.size):
        if elapsed[i] <= 0.0:
            left[i] = 1.0
            continue
        total = 0.0
        for c in range(first_component[i], first_component[i + 1]):
            value = elapsed[i] - shifts[c]
            part = _component_survival(kinds[c], rows, first_row[c], first_row[c + 1], value)
            total += weights[c] * part
        left[i] = total if total > _NOTHING else 0.0


@bare_kernel
def fill_survival_grid(
    first_component: NDArray[np.int64],
    kinds: NDArray[np.int64],
    first_row: NDArray[np.int64],
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    rows: NDArray[np.float64],
    elapsed: NDArray[np.float64],
    offsets: NDArray[np.float64],
    left: NDArray[np.float64],
    survival: NDArray[np.float64],
) -> None:
    """Fill ``survival[i, j]`` with P(T_i > elapsed[i] + offsets[j] | T_i > elapsed[i]).

    Parameters
    ----------
    first_component
        Distribution ``i`` has the components ``first_component[i]`` to ``first_component[i+1]``.
    kinds, first_row, weights, shifts
        Per component: its kind, its rows ``first_row[c]`` to ``first_row[c+1]``, its weight, and
        the seconds it is moved by.
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
        row = survival[i]
        for j in range(offsets.size):
            row[j] = 0.0
        if left[i] <= 0.0:
            continue
        for c in range(first_component[i], first_component[i + 1]):
            weight = weights[c] / left[i]
            begin = elapsed[i] - shifts[c]
            # Offsets ascend, so that pieces are walked once for all of them.
            if kinds[c] == IN_PIECES:
                first, end = first_row[c], first_row[c + 1]
                _add_pieces(rows, first, end, weight, begin, offsets, row)
                continue
            parameters = rows[first_row[c]]
            for j in range(offsets.size):
                row[j] += weight * _smooth_survival(kinds[c], parameters, begin + offsets[j])
        for j in range(offsets.size):
            row[j] = min(row[j], 1.0)
