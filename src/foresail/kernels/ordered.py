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
def _earlier(times: Floats, sequence: Integers, a: int, b: int) -> bool:
    return bool(times[a] < times[b] or (times[a] == times[b] and sequence[a] < sequence[b]))


@bare_kernel
def _swap(times: Floats, sequence: Integers, slots: Integers, a: int, b: int) -> None:
    times[a], times[b] = times[b], times[a]
    sequence[a], sequence[b] = sequence[b], sequence[a]
    slots[a], slots[b] = slots[b], slots[a]


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
    times[count] = time
    sequence[count] = order
    slots[count] = slot
    child = count
    while child > 0:
        parent = (child - 1) >> 1
        if not _earlier(times, sequence, child, parent):
            break
        _swap(times, sequence, slots, child, parent)
        child = parent


@bare_kernel
def heap_pop(times: Floats, sequence: Integers, slots: Integers, count: int) -> int:
    """Take the earliest event off a heap of ``count`` and return its slot."""
    slot = slots[0]
    last = count - 1
    _swap(times, sequence, slots, 0, last)
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= last:
            break
        if child + 1 < last and _earlier(times, sequence, child + 1, child):
            child += 1
        if not _earlier(times, sequence, child, parent):
            break
        _swap(times, sequence, slots, child, parent)
        parent = child
    return int(slot)
