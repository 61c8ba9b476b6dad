"""Many values or many histograms at once: rows of ``distributions.kernels.streaming_histogram``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.pieces import PIECE_COLUMNS
from foresail.distributions.kernels.streaming_histogram import (
    CENTROIDS,
    COUNT,
    LARGEST,
    MERGED,
    SMALLEST,
    USED,
    count_up_to,
    insert,
    value_at,
)
from foresail.kernels.compile import bare_kernel, kernel


@bare_kernel
def insert_all(row: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Add the values to one histogram, in their order."""
    for value in values:
        insert(row, value, 1.0)


@kernel
def counts_up_to(row: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """``count_up_to`` at each of the values (one dimension)."""
    counts = np.empty(values.size)
    for i in range(values.size):
        counts[i] = count_up_to(row, values[i])
    return counts


@kernel
def values_at(row: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """``value_at`` at each of the levels (one dimension)."""
    values = np.empty(levels.size)
    for i in range(levels.size):
        values[i] = value_at(row, levels[i])
    return values


@kernel
def histogram_pieces(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pieces (``distributions.kernels.pieces``) of the distribution of a histogram with a point."""
    used = int(row[USED])
    total = row[COUNT]
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    exact = row[MERGED] == 0.0
    pieces = np.zeros((used if exact else used + 2, PIECE_COLUMNS))
    below = 0.0
    if exact:
        for i in range(used):
            below += row[counts + i]
            pieces[i, 0] = row[CENTROIDS + i]
            pieces[i, 1] = max(total - below, 0.0) / total
        pieces[used - 1, 1] = 0.0
        return pieces
    for i in range(used + 2):
        amount = row[counts + i - 1] if 1 <= i <= used else 0.0
        pieces[i, 0] = row[SMALLEST] if i == 0 else row[CENTROIDS + i - 1]
        if i == used + 1:
            pieces[i, 0] = row[LARGEST]
        below += 0.5 * amount
        pieces[i, 1] = max(total - below, 0.0) / total
        below += 0.5 * amount
        if i > 0:
            width = pieces[i, 0] - pieces[i - 1, 0]
            previous = row[counts + i - 2] if i > 1 else 0.0
            if width > 0.0:
                pieces[i - 1, 2] = previous / (width * total)
                pieces[i - 1, 3] = 0.5 * (amount - previous) / (width * width * total)
    pieces[used + 1, 1] = 0.0
    return pieces
