"""A streaming histogram cut at a limit: the distribution of min(T, limit)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.streaming_histogram import CENTROIDS, LARGEST, SMALLEST, USED
from foresail.kernels.compile import bare_kernel, part

REMOVED: Final = 6
"""How many numbers of a row a cut overwrites: its smallest and largest value and how many bins are
used, then which bin, and what its centroid and its count were."""


@bare_kernel
def cut_histogram(row: NDArray[np.float64], limit: float, removed: NDArray[np.float64]) -> None:
    """Make the bins beyond the limit one bin there; ``removed`` is filled for ``uncut_histogram``.

    Of merged bins, half of the last one's count is spread down to the centroid before, as in any
    merged histogram.
    """
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    used = int(row[USED])
    kept = used
    beyond = 0.0
    if row[LARGEST] > limit:
        kept = 0
        for i in range(used):
            if row[CENTROIDS + i] < limit:
                kept += 1
            else:
                beyond += row[counts + i]
    removed[0], removed[1], removed[2] = row[SMALLEST], row[LARGEST], row[USED]
    removed[3], removed[4], removed[5] = kept, row[CENTROIDS + kept], row[counts + kept]
    if row[LARGEST] <= limit:
        return
    row[SMALLEST] = min(row[SMALLEST], limit)
    row[LARGEST] = limit
    row[USED] = kept
    if beyond > 0.0:
        row[CENTROIDS + kept] = limit
        row[counts + kept] = beyond
        row[USED] += 1.0


@part
def uncut_histogram(row: NDArray[np.float64], removed: NDArray[np.float64]) -> None:
    """Make the row what it was before it was cut."""
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    kept = int(removed[3])
    row[SMALLEST], row[LARGEST], row[USED] = removed[0], removed[1], removed[2]
    row[CENTROIDS + kept], row[counts + kept] = removed[4], removed[5]
