"""A streaming histogram cut at a limit: the distribution of min(T, limit)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel
from foresail.kernels.streaming_histogram import (
    CENTROIDS,
    COUNT,
    LARGEST,
    MERGED,
    SMALLEST,
    USED,
)


@kernel
def cut_histogram(row: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """The row itself if nothing lies beyond the limit, else another with the bins there as one.

    Of merged bins, half of the last one's count is spread down to the centroid before, as in any
    merged histogram.
    """
    if row[LARGEST] <= limit:
        return row
    cut = np.zeros(row.size)
    counts = CENTROIDS + (row.size - CENTROIDS) // 2
    kept = 0
    beyond = 0.0
    for i in range(int(row[USED])):
        if row[CENTROIDS + i] < limit:
            cut[CENTROIDS + i] = row[CENTROIDS + i]
            cut[counts + i] = row[counts + i]
            kept += 1
        else:
            beyond += row[counts + i]
    if beyond > 0.0:
        cut[CENTROIDS + kept] = limit
        cut[counts + kept] = beyond
        kept += 1
    cut[COUNT] = row[COUNT]
    cut[SMALLEST] = min(row[SMALLEST], limit)
    cut[LARGEST] = limit
    cut[USED] = kept
    cut[MERGED] = row[MERGED]
    return cut
