"""Heaps: of events in a table, as a replay keeps ends in, and of numbers whose rows have the keys.

Of the latter, ``key`` and ``place`` are columns of ``rows``; of equal keys the smaller number is
first, and each row says where on the heap its number is.
"""

from __future__ import annotations

from typing import Final

from foresail.kernels.compile import Floats, Integers, part

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


@part
def _goes_before(rows: Floats, key: int, number: int, other: int) -> bool:
    own, others = rows[number, key], rows[other, key]
    return bool(own < others or (own == others and number < other))


@part
def _rise(heap: Integers, rows: Floats, key: int, place: int, at: int) -> int:
    """Move what is at a place up to where it belongs; returns where that is."""
    number = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _goes_before(rows, key, number, heap[parent]):
            break
        heap[at] = heap[parent]
        rows[heap[at], place] = at
        at = parent
    heap[at] = number
    rows[number, place] = at
    return at


@part
def _sink(heap: Integers, count: int, rows: Floats, key: int, place: int, at: int) -> None:
    number = heap[at]
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _goes_before(rows, key, heap[child + 1], heap[child]):
            child += 1
        if not _goes_before(rows, key, heap[child], number):
            break
        heap[at] = heap[child]
        rows[heap[at], place] = at
        at = child
    heap[at] = number
    rows[number, place] = at


@part
def put(heap: Integers, count: int, rows: Floats, key: int, place: int, number: int) -> None:
    """Put a number on a heap of ``count``."""
    heap[count] = number
    _rise(heap, rows, key, place, count)


@part
def move(heap: Integers, count: int, rows: Floats, key: int, place: int, at: int) -> None:
    """Bring what is at a place of a heap of ``count`` to where its key belongs."""
    _sink(heap, count, rows, key, place, _rise(heap, rows, key, place, at))


@part
def drop(heap: Integers, count: int, rows: Floats, key: int, place: int, number: int) -> None:
    """Take a number off a heap of ``count`` in which it is, wherever."""
    at = int(rows[number, place])
    last = heap[count - 1]
    if last != number:
        heap[at] = last
        move(heap, count - 1, rows, key, place, at)
