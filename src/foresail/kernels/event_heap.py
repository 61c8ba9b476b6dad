"""A heap of events in a table: what a replay keeps the ends of running jobs in."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part

Floats = NDArray[np.float64]

TIME: Final = 0
SEQUENCE: Final = 1
OF_SLOT: Final = 2
HEAP_COLUMNS: Final = 3
"""A row of the heap: when (seconds), a number that orders events of the same time, and whose."""


@part
def _earlier(heap: Floats, row: int, other: int) -> bool:
    time, other_time = heap[row, TIME], heap[other, TIME]
    return bool(
        time < other_time or (time == other_time and heap[row, SEQUENCE] < heap[other, SEQUENCE])
    )


@part
def _swap(heap: Floats, row: int, other: int) -> None:
    for column in range(HEAP_COLUMNS):
        kept = heap[row, column]
        heap[row, column] = heap[other, column]
        heap[other, column] = kept


@part
def heap_push(heap: Floats, count: int, time: float, sequence: int, slot: int) -> None:
    """Put an event on a heap of ``count`` ordered by time, then by ``sequence``."""
    at = count
    heap[at, TIME] = time
    heap[at, SEQUENCE] = sequence
    heap[at, OF_SLOT] = slot
    while at > 0 and _earlier(heap, at, (at - 1) >> 1):
        _swap(heap, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@part
def heap_pop(heap: Floats, count: int) -> int:
    """Take the earliest event off a heap of ``count`` and return its slot."""
    earliest = int(heap[0, OF_SLOT])
    last = count - 1
    _swap(heap, 0, last)
    at = 0
    while 2 * at + 1 < last:
        child = 2 * at + 1
        if child + 1 < last and _earlier(heap, child + 1, child):
            child += 1
        if not _earlier(heap, child, at):
            break
        _swap(heap, at, child)
        at = child
    return earliest
