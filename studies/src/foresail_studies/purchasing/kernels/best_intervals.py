"""Weighted intervals: those that do not overlap and are worth most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel
from foresail.model.arrays import Floats, Integers


def best_intervals(predecessor: Integers, values: Floats) -> NDArray[np.bool_]:
    """Which of some intervals, by end, to choose so that none overlap and the value is greatest.

    ``predecessor[i]`` is how many of them end no later than interval i begins.
    """
    chosen = np.zeros(values.size, np.bool_)
    _choose_intervals(predecessor, values, np.zeros(values.size + 1), chosen)
    return chosen


@bare_kernel
def _choose_intervals(
    predecessor: Integers, values: Floats, best: Floats, chosen: NDArray[np.bool_]
) -> None:
    for at in range(values.size):
        best[at + 1] = max(best[at], best[predecessor[at]] + values[at])
    at = values.size
    while at > 0:
        if best[at] == best[at - 1]:
            at -= 1
        else:
            chosen[at - 1] = True
            at = predecessor[at - 1]
