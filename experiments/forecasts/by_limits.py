"""Starts as Slurm's backfill states them: a schedule of all that waits, by limits alone."""

from __future__ import annotations

import numpy as np
from numba import njit
from schedules import Floats, PastSchedule

_OVERDUE_SECONDS = 60.0
"""A job beyond its limit is taken to end so soon."""


def planned_starts(past: PastSchedule, now: float, jobs: Floats) -> Floats:
    """Return when waiting jobs (numbers in order) start if all take as long as their limits.

    Each gets the earliest place that delays none before it (conservative backfilling).
    """
    runs = (past.start <= now) & (past.end > now)
    ends = np.maximum(past.start[runs] + past.limits[runs], now + _OVERDUE_SECONDS)
    waits = np.flatnonzero((past.submit <= now) & (past.start > now))
    waits = waits[waits <= jobs[-1]]
    starts = _placed(
        now, past.processors, ends, past.cpus[runs], past.cpus[waits], past.limits[waits]
    )
    return np.asarray(starts[np.searchsorted(waits, jobs)])


@njit(cache=True)  # type: ignore[untyped-decorator]
def _placed(now, processors, ends, taken, widths, limits):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    order = np.argsort(ends)
    size = 2 * (len(ends) + len(widths)) + 2
    times, free = np.empty(size), np.empty(size)
    times[0], free[0] = now, processors - taken.sum()
    count = 1
    for each in order:
        if ends[each] > times[count - 1]:
            times[count], free[count] = ends[each], free[count - 1]
            count += 1
        free[count - 1] += taken[each]
    starts = np.empty(len(widths))
    for job in range(len(widths)):
        at = 0
        while at < count - 1:
            stop = at
            while stop < count and times[stop] < times[at] + limits[job]:
                if free[stop] < widths[job]:
                    break
                stop += 1
            if stop == count or times[stop] >= times[at] + limits[job]:
                break
            at = min(stop + 1, count - 1)
        starts[job] = times[at]
        end = times[at] + limits[job]
        last = at
        while last < count and times[last] < end:
            last += 1
        if last == count or times[last] > end:
            for move in range(count, last, -1):
                times[move], free[move] = times[move - 1], free[move - 1]
            times[last], free[last] = end, free[last - 1]
            count += 1
        for inside in range(at, last):
            free[inside] -= widths[job]
    return starts
