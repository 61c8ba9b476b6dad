"""The timeline: free cpus over future time as a step function, with earliest fit and reservation.

``profile[:steps, TIME]`` ascends and begins at now; ``profile[i, ROOM]`` cpus are free from then
until the next step, the last of them for ever. The table needs room for two more rows per
reservation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part
from foresail.kernels.waiting_jobs import EXPECTED_END, HELD

Floats = NDArray[np.float64]

TIME: Final = 0
ROOM: Final = 1
PROFILE_COLUMNS: Final = 2


@part
def timeline(now: float, free: float, release: Floats, releases: int, profile: Floats) -> int:
    """Fill the step function from what is free now and what running jobs will release."""
    profile[0, TIME] = now
    profile[0, ROOM] = free
    count = 1
    for i in range(releases):
        if release[i, EXPECTED_END] > profile[count - 1, TIME]:
            profile[count, TIME] = release[i, EXPECTED_END]
            profile[count, ROOM] = profile[count - 1, ROOM]
            count += 1
        profile[count - 1, ROOM] += release[i, HELD]
    return count


@part
def earliest_fit(profile: Floats, count: int, first: int, width: float, seconds: float) -> int:
    """Index of the first step, from ``first`` on, at which ``width`` cpus stay free ``seconds``.

    Returns ``count`` if the width is never free.
    """
    start = first
    while start < count:
        if profile[start, ROOM] < width:
            start += 1
            continue
        end = profile[start, TIME] + seconds
        i = start + 1
        while i < count and profile[i, TIME] < end and profile[i, ROOM] >= width:
            i += 1
        if i >= count or profile[i, TIME] >= end:
            return start
        start = i + 1
    return count


@part
def step_at(profile: Floats, count: int, time: float) -> tuple[int, int]:
    """Index of the step that begins at ``time`` (not before now), made if there is none.

    Returns the index and the new number of steps.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if profile[middle, TIME] < time:
            low = middle + 1
        else:
            high = middle
    if low < count and profile[low, TIME] == time:
        return low, count
    for i in range(count, low, -1):
        profile[i, TIME] = profile[i - 1, TIME]
        profile[i, ROOM] = profile[i - 1, ROOM]
    profile[low, TIME] = time
    profile[low, ROOM] = profile[low - 1, ROOM]
    return low, count + 1


@part
def occupy(profile: Floats, count: int, start: float, seconds: float, width: float) -> int:
    """Take ``width`` cpus (give them back, if negative) for a span; returns the number of steps."""
    first, count = step_at(profile, count, start)
    last, count = step_at(profile, count, start + seconds)
    for i in range(first, last):
        profile[i, ROOM] -= width
    return count
