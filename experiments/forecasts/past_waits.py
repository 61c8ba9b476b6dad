"""Bounds from past waits, as QBETS has them: quantiles by queue and size, since the last change.

Source: Nurmi, Brevik and Wolski, "QBETS: Queue Bounds Estimation from Time Series" (2007). Waits of
jobs of the same queue and class of cpus (and of limit, where there is only one queue) are looked
at in order of start. When three of them in a row exceed the bound of 95 %, what was before is
forgotten but for the fewest that such a bound can be made from.
"""

from __future__ import annotations

from bisect import bisect_right, insort

import numpy as np
from schedules import Floats, PastSchedule
from scoring import LEVELS

_FEWEST = 59
"""A bound of 95 % with a confidence of 95 % needs so many."""
_MOST = 1_000
_IN_A_ROW = 3
_BOUND = 0.95
_UNLESS_KNOWN = 30
"""With fewer waits of its kind a job is forecast by all kinds; with fewer of these, not."""
_OUTLASTED = np.array([1.1, 2.0, 5.0])
"""Times what it has waited, where no wait of the past was as long."""


class _Kind:
    """Waits of a kind since they last changed, latest last."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._ordered: list[float] = []
        self._exceeding = 0

    def observe(self, wait: float) -> None:
        """A job of this kind has started."""
        known = len(self._ordered)
        if known >= _FEWEST:
            bound = self._ordered[min(known - 1, int(_BOUND * (known + 1)))]
            self._exceeding = self._exceeding + 1 if wait > bound else 0
        self.waits.append(wait)
        insort(self._ordered, wait)
        if self._exceeding >= _IN_A_ROW or known >= _MOST:
            keep = _FEWEST if self._exceeding >= _IN_A_ROW else _MOST // 2
            self._exceeding = 0
            self.waits = self.waits[-keep:]
            self._ordered = sorted(self.waits)

    def __len__(self) -> int:
        return len(self.waits)

    def quantiles(self, waited: float) -> Floats:
        """Quantiles of the waits that were longer than a job has waited."""
        longer = self._ordered[bisect_right(self._ordered, waited) :]
        if not longer:
            return waited * _OUTLASTED
        return np.quantile(longer, LEVELS)


def stated_waits(past: PastSchedule, jobs: Floats, asked: Floats) -> Floats:
    """Return quantiles of what is left to wait (seconds), shape (questions, 3), in order of time.

    nan where too little is known.
    """
    limits = np.digitize(past.limits, (3_600.0, 4 * 3_600.0, 12 * 3_600.0))
    if len(np.unique(past.queues)) > 1:
        limits = past.queues
    sizes = np.floor(np.log2(np.maximum(past.cpus, 1.0)) / 2.0).astype(int)
    kinds = list(zip(limits.tolist(), sizes.tolist(), strict=True))
    by_kind = {kind: _Kind() for kind in kinds}
    everybody = _Kind()
    by_start, at = np.argsort(past.start, kind="stable"), 0
    answers = np.full((len(jobs), len(LEVELS)), np.nan)
    for question, (job, now) in enumerate(zip(jobs.tolist(), asked.tolist(), strict=True)):
        while at < len(by_start) and past.start[by_start[at]] <= now:
            begun = int(by_start[at])
            wait = float(past.start[begun] - past.submit[begun])
            by_kind[kinds[begun]].observe(wait)
            everybody.observe(wait)
            at += 1
        kind = by_kind[kinds[job]]
        kind = kind if len(kind) >= _UNLESS_KNOWN else everybody
        if len(kind) >= _UNLESS_KNOWN:
            waited = float(now - past.submit[job])
            answers[question] = kind.quantiles(max(waited, 1.0)) - waited
    return answers
