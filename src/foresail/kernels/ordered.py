"""Arrays kept in ascending order, and a heap: what a replay keeps its queue and events in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@bare_kernel
def position_after(keys: Floats, count: int, key: float) -> int:
    """Index behind the last of ``keys[:count]`` (ascending) that is not greater than ``key``."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low


@bare_kernel
def insert_key(keys: Floats, slots: Integers, count: int, at: int, key: float, slot: int) -> None:
    """Insert a key and its slot at a position; both arrays have room for one more."""
    for i in range(count, at, -1):
        keys[i] = keys[i - 1]
        slots[i] = slots[i - 1]
    keys[at] = key
    slots[at] = slot


@bare_kernel
def hold(
    release_time: Floats,
    release_width: Floats,
    release_slot: Integers,
    releases: int,
    end: float,
    width: float,
    slot: int,
) -> None:
    """Enter a job that just started among the expected releases, behind equal times."""
    at = releases
    while at > 0 and release_time[at - 1] > end:
        release_time[at] = release_time[at - 1]
        release_width[at] = release_width[at - 1]
        release_slot[at] = release_slot[at - 1]
        at -= 1
    release_time[at] = end
    release_width[at] = width
    release_slot[at] = slot


@bare_kernel
def release(
    release_time: Floats,
    release_width: Floats,
    release_slot: Integers,
    releases: int,
    end: float,
    slot: int,
) -> None:
    """Take the entry of ``slot``, expected to end at ``end``, out of the releases."""
    low, high = 0, releases
    while low < high:
        middle = (low + high) >> 1
        if release_time[middle] < end:
            low = middle + 1
        else:
            high = middle
    while release_slot[low] != slot:
        low += 1
    for i in range(low, releases - 1):
        release_time[i] = release_time[i + 1]
        release_width[i] = release_width[i + 1]
        release_slot[i] = release_slot[i + 1]


@bare_kernel
def _earlier(time: float, order: int, other_time: float, other_order: int) -> bool:
    return bool(time < other_time or (time == other_time and order < other_order))


@bare_kernel
def heap_push(
    times: Floats,
    sequence: Integers,
    slots: Integers,
    count: int,
    time: float,
    order: int,
    slot: int,
) -> None:
    """Put an event on a heap of ``count`` ordered by time, then by ``order``."""
    gap = count
    while gap > 0:
        parent = (gap - 1) >> 1
        if not _earlier(time, order, times[parent], sequence[parent]):
            break
        times[gap] = times[parent]
        sequence[gap] = sequence[parent]
        slots[gap] = slots[parent]
        gap = parent
    times[gap] = time
    sequence[gap] = order
    slots[gap] = slot


@bare_kernel
def heap_pop(times: Floats, sequence: Integers, slots: Integers, count: int) -> int:
    """Take the earliest event off a heap of ``count`` and return its slot."""
    earliest = slots[0]
    last = count - 1
    time, order, slot = times[last], sequence[last], slots[last]
    gap = 0
    while True:
        child = 2 * gap + 1
        if child >= last:
            break
        if child + 1 < last and _earlier(
            times[child + 1], sequence[child + 1], times[child], sequence[child]
        ):
            child += 1
        if not _earlier(times[child], sequence[child], time, order):
            break
        times[gap] = times[child]
        sequence[gap] = sequence[child]
        slots[gap] = slots[child]
        gap = child
    times[gap] = time
    sequence[gap] = order
    slots[gap] = slot
    return int(earliest)
