"""Short ascending vectors: putting one into order, and searching it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part


@part
def sort_ascending(values: NDArray[np.float64]) -> None:
    """Sort a vector in place by insertion: for few numbers, or such as are nearly in order."""
    for i in range(1, values.size):
        value = values[i]
        place = i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@part
def first_not_below(values: NDArray[np.float64], count: int, wanted: float) -> int:
    """How many of the first ``count`` numbers, which ascend, are below the wanted one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
