"""How far jobs run past the time they asked for: counted for all, by queue and by user.

On some systems a limit is where jobs are killed, on others some run on: for the seconds that the
kill takes, or for hours. So of the jobs that came to their limit it is counted how long after it
they ended. A belief's probability at the limit is spread over what these counts say: it stays an
atom where limits bind. A user's counts are trusted the more the more there are, and begun from
those of the queue, as these from those of all.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS
from foresail.kernels.compile import part

_EDGES: Final = (
    *(0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 60.0, 80.0),
    *(120.0, 240.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 36_000.0, 86_400.0, 2e5, 5e5),
)
OVERRUN_BINS: Final = len(_EDGES)
"""Bins of seconds past the limit: at most none, at most one, and so on; the last takes the rest."""

_AT_LIMIT: Final = 0.97
"""What share of the limit counts as having come to it."""

_TRUST: Final = 5.0
"""After how many jobs at their limit a user's or a queue's own counts count half."""

_FURTHEST: Final = 0.995


@part
def count_overrun(runtime: float, limit: float, counts: NDArray[np.float64]) -> None:
    """Count a job that ended, if it came to its limit."""
    if not (math.isfinite(limit) and runtime >= _AT_LIMIT * limit):
        return
    place = 0
    while place < OVERRUN_BINS - 1 and runtime - limit > _EDGES[place]:
        place += 1
    counts[place] += 1.0


@part
def _narrow(known: NDArray[np.float64], shares: NDArray[np.float64]) -> None:
    """Bring shares of a wider class (summing to 1) towards the counts of a narrower one."""
    total = 0.0
    for k in range(OVERRUN_BINS):
        total += known[k]
    for k in range(OVERRUN_BINS):
        shares[k] = (known[k] + _TRUST * shares[k]) / (total + _TRUST)


@part
def _overrun(shares: NDArray[np.float64], level: float) -> float:
    """Quantile of the seconds past the limit."""
    below = 0.0
    for k in range(OVERRUN_BINS):
        if below + shares[k] >= level and shares[k] > 0.0:
            first = _EDGES[max(k - 1, 0)]
            seconds: float = first + (_EDGES[k] - first) * (level - below) / shares[k]
            return seconds
        below += shares[k]
    return _EDGES[OVERRUN_BINS - 1]


@part
def reach_past(limit: float, shares: NDArray[np.float64], belief: NDArray[np.float64]) -> float:
    """Spread a belief's probability at the limit over the seconds past it.

    Returns
    -------
    float
        Seconds: as far as any belief should go.
    """
    if not math.isfinite(limit):
        return limit
    begin = 0
    while begin < BELIEF_COLUMNS and belief[begin] < _AT_LIMIT * limit:
        begin += 1
    if begin < BELIEF_COLUMNS:
        below = 0.0
        if begin > 0:
            below = 0.5 * (BELIEF_LEVELS[begin - 1] + BELIEF_LEVELS[begin])
        for i in range(begin, BELIEF_COLUMNS):
            level = (BELIEF_LEVELS[i] - below) / (1.0 - below)
            belief[i] = max(belief[i], limit) + _overrun(shares, max(level, 0.0))
    return limit + _overrun(shares, _FURTHEST)


@part
def overrun_shares(
    everyone: NDArray[np.float64],
    queue: NDArray[np.float64],
    user: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> None:
    """Fill shares of the bins for a user's jobs of a queue, from the counts of each class."""
    for k in range(OVERRUN_BINS):
        shares[k] = 0.0
    shares[0] = 1.0
    _narrow(everyone, shares)
    _narrow(queue, shares)
    _narrow(user, shares)
