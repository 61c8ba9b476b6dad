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
from dataclasses import replace
from typing import Final

from foresail.explain.forecast import Range, WaitingForecast

MOST: Final = 500
"""Of so many of the latest starts it is known how they compare."""

_FEWEST: Final = 30
"""With fewer, ranges stay as they are."""

_SHARE: Final = 0.9
"""Of starts that should be above the lower end, and of those below the upper one."""

_SHORT_SECONDS: Final = 60.0
"""Waits are compared by ratios, those much shorter than this by differences."""


class StartCalibration:
    """Learns from starts what was told of them, and widens or narrows what is told next."""

    def __init__(self) -> None:
        self._latest: deque[tuple[float, float]] = deque()
        self._below: list[float] = []
        self._above: list[float] = []

    def observe(self, made_seconds: float, told: Range, start_seconds: float) -> None:
        """A job has started of which this was told at some time, before any correction."""
        if not math.isfinite(told.high):
            return
        waited = _scaled(start_seconds - made_seconds)
        off = (
            _scaled(told.low - made_seconds) - waited,
            waited - _scaled(told.high - made_seconds),
        )
        self._latest.append(off)
        insort(self._below, off[0])
        insort(self._above, off[1])
        if len(self._latest) > MOST:
            below, above = self._latest.popleft()
            self._below.remove(below)
            self._above.remove(above)

    def corrected(self, made_seconds: float, told: WaitingForecast) -> WaitingForecast:
        """What is told instead; of the end as of the start."""
        start = told.start
        if len(self._latest) < _FEWEST or not math.isfinite(start.high):
            return told
        low = _seconds(_scaled(start.low - made_seconds) - _quantile(self._below))
        high = _seconds(_scaled(start.high - made_seconds) + _quantile(self._above))
        earliest = made_seconds + min(low, high)
        latest = made_seconds + max(low, high)
        corrected = Range(earliest, min(max(start.median, earliest), latest), latest)
        end = told.end
        return replace(
            told,
            start=corrected,
            end=Range(
                min(end.median, end.low + earliest - start.low),
                end.median,
                max(end.median, end.high + latest - start.high),
            ),
        )


def _quantile(ordered: list[float]) -> float:
    """So far off at most were starts in the share that is wished, those to come among them."""
    return ordered[min(len(ordered), math.ceil(_SHARE * (len(ordered) + 1))) - 1]


def _scaled(wait_seconds: float) -> float:
    return math.log1p(max(0.0, wait_seconds) / _SHORT_SECONDS)


def _seconds(scaled: float) -> float:
    return max(0.0, _SHORT_SECONDS * math.expm1(min(scaled, 60.0)))
