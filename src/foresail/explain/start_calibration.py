"""Ranges of starts corrected by how earlier ones have held.

The futures that forecasts come from leave out what makes real starts differ from all of them at
once: beliefs that are wrong for many jobs of a user alike, orders that change, jobs that were not
expected. How far starts have been outside their ranges says how much wider these should have been
(split conformal prediction: Romano, Patterson and Candès, 2019, each end by itself).
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from typing import Final

import numpy as np

from foresail.explain.forecast import Range, WaitingForecasts
from foresail.model.arrays import Floats

MOST: Final = 500
"""Of so many of the latest starts it is known how they compare."""

_FEWEST: Final = 30
"""With fewer, ranges stay as they are."""

_SHARE: Final = 0.9
"""Of starts that should be above the lower end, and of those below the upper one."""

_SHORT_SECONDS: Final = 60.0
"""Waits are compared by ratios, those much shorter than this by differences."""


class StartCalibration:
    """Learns from starts what was forecast of them, and widens or narrows the next forecasts."""

    def __init__(self) -> None:
        self._latest: deque[tuple[float, float]] = deque()
        self._below: list[float] = []
        self._above: list[float] = []

    def observe(self, made_seconds: float, told: Range, start_seconds: float) -> None:
        """A job has started with this forecast at some time, before any correction."""
        if not math.isfinite(told.high):
            return
        times = np.array([told.low, start_seconds, told.high])
        low, waited, high = _scaled(times - made_seconds).tolist()
        off = low - waited, waited - high
        self._latest.append(off)
        insort(self._below, off[0])
        insort(self._above, off[1])
        if len(self._latest) > MOST:
            below, above = self._latest.popleft()
            self._below.remove(below)
            self._above.remove(above)

    def corrected(self, made_seconds: float, told: WaitingForecasts) -> WaitingForecasts:
        """Return corrected forecasts; of the ends as of the starts."""
        if len(self._latest) < _FEWEST:
            return told
        known = np.isfinite(told.starts[-1])
        low, median, high = told.starts[:, known]
        first = _seconds(_scaled(low - made_seconds) - _quantile(self._below))
        last = _seconds(_scaled(high - made_seconds) + _quantile(self._above))
        earliest = made_seconds + np.minimum(first, last)
        latest = made_seconds + np.maximum(first, last)
        starts, ends = told.starts.copy(), told.ends.copy()
        starts[:, known] = earliest, np.clip(median, earliest, latest), latest
        begin, middle, end = told.ends[:, known]
        ends[0, known] = np.minimum(middle, begin + earliest - low)
        ends[2, known] = np.maximum(middle, end + latest - high)
        return WaitingForecasts(told.places, starts, ends, told.never, told.misses)


def _quantile(ordered: list[float]) -> float:
    """So far off at most were starts in the share that is wished, those to come among them."""
    return ordered[min(len(ordered), math.ceil(_SHARE * (len(ordered) + 1))) - 1]


def _scaled(wait_seconds: Floats) -> Floats:
    return np.log1p(np.maximum(0.0, wait_seconds) / _SHORT_SECONDS)


def _seconds(scaled: Floats) -> Floats:
    return np.maximum(0.0, _SHORT_SECONDS * np.expm1(np.minimum(scaled, 60.0)))
