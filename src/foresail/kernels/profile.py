"""The timeline: free cpus over future time as a step function, with earliest fit and reservation.

``times[:count]`` ascend and begin at now; ``room[i]`` cpus are free from ``times[i]`` until
``times[i + 1]``, the last of them for ever. Both arrays need room for two more entries per
reservation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel

Floats = NDArray[np.float64]


@kernel
def timeline(
    now: float,
    free: float,
    release_time: Floats,
    release_width: Floats,
    releases: int,
    times: Floats,
    room: Floats,
) -> int:
    """Fill the step function from what is free now and what running jobs will release."""
    times[0] = now
    room[0] = free
    count = 1
    for i in range(releases):
        if release_time[i] > times[count - 1]:
            times[count] = release_time[i]
            room[count] = room[count - 1]
            count += 1
        room[count - 1] += release_width[i]
    return count


@kernel
def earliest_fit(
    times: Floats, room: Floats, count: int, first: int, width: float, seconds: float
) -> int:
    """Index of the first step, from ``first`` on, at which ``width`` cpus stay free ``seconds``.

    Returns ``count`` if the width is never free.
    """
    start = first
    while start < count:
        if room[start] < width:
            start += 1
            continue
        end = times[start] + seconds
        i = start + 1
        while i < count and times[i] < end and room[i] >= width:
            i += 1
        if i >= count or times[i] >= end:
            return start
        start = i + 1
    return count


@kernel
def step_at(times: Floats, room: Floats, count: int, time: float) -> tuple[int, int]:
    """Index of the step that begins at ``time`` (not before now), made if there is none.

    Returns the index and the new number of steps.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < count and times[low] == time:
        return low, count
    for i in range(count, low, -1):
        times[i] = times[i - 1]
        room[i] = room[i - 1]
    times[low] = time
    room[low] = room[low - 1]
    return low, count + 1


@kernel
def occupy(
    times: Floats, room: Floats, count: int, start: float, seconds: float, width: float
) -> int:
    """Take ``width`` cpus (give them back, if negative) for a span; returns the number of steps."""
    first, count = step_at(times, room, count, start)
    last, count = step_at(times, room, count, start + seconds)
    for i in range(first, last):
        room[i] -= width
    return count
