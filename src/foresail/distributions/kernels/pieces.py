"""A distribution as pieces of its survival function: what can be walked along a grid.

A row per piece: where it begins, the survival there (after the atom at that place, if there is
one), then the slope and the bend of its fall: ``d`` seconds into the piece the survival is
``survival - d * (slope + bend * d)``. It is 1 before the first piece and 0 from the last on. Atoms
are pieces without fall; of pieces that begin at the same place the last counts.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part

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
