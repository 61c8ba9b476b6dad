"""Heaps over jobs: timed events, and queues that share two arrays of links."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part

Timetable: TypeAlias = NDArray[np.float64]
"""A binary heap of jobs by time, then by number: a row with their number, then a row for each of
them with its time and its job, which are numbers like any other to a float64."""

_TIME: Final = 0
_JOB: Final = 1


def timetable(room: int) -> Timetable:
    """An empty timetable with room for so many entries."""
    table = np.empty((max(room, 1) + 1, 2))
    table[0] = 0.0
    return table


@part
def entries(table: Timetable) -> int:
    """How many there are; they are in the rows from 1 on."""
    return int(table[0, 0])


@part
def first_time(table: Timetable) -> float:
    """When the first entry is, infinite without one."""
    return float(table[1, _TIME]) if table[0, 0] > 0.0 else np.inf


@part
def _is_before(table: Timetable, row: int, time: float, job: float) -> bool:
    """Whether an entry comes before another."""
    at = table[row, _TIME]
    return bool(at < time or (at == time and table[row, _JOB] < job))


@part
def _set(table: Timetable, row: int, time: float, job: float) -> None:
    table[row, _TIME] = time
    table[row, _JOB] = job


@part
def enter(table: Timetable, time: float, job: int) -> None:
    """Add an entry."""
    number = float(job)
    at = int(table[0, 0]) + 1
    table[0, 0] = at
    while at > 1:
        parent = at >> 1
        if _is_before(table, parent, time, number):
            break
        _set(table, at, table[parent, _TIME], table[parent, _JOB])
        at = parent
    _set(table, at, time, number)


@part
def leave_first(table: Timetable) -> int:
    """Remove the first entry and return its job."""
    found = int(table[1, _JOB])
    size = int(table[0, 0])
    table[0, 0] = size - 1
    time, job = table[size, _TIME], table[size, _JOB]
    at = 1
    while True:
        child = 2 * at
        if child >= size:
            break
        other = child + 1
        if other < size and _is_before(table, other, table[child, _TIME], table[child, _JOB]):
            child = other
        if not _is_before(table, child, time, job):
            break
        _set(table, at, table[child, _TIME], table[child, _JOB])
        at = child
    _set(table, at, time, job)
    return found


class Links(NamedTuple):
    """Pairing heaps of jobs by ``rank``, then by number.

    ``of`` has each job's first child and next sibling, or -1; shape (jobs, 2).
    """

    rank: NDArray[np.float64]
    of: NDArray[np.int64]


_CHILD: Final = 0
_SIBLING: Final = 1


def links_of(rank: NDArray[np.float64]) -> Links:
    """Of jobs that are in no heap yet."""
    return Links(rank, np.full((rank.size, 2), -1, np.int64))


@part
def melded(links: Links, one: int, other: int) -> int:
    """Make one heap of two roots (-1 is an empty heap); returns its root."""
    if one < 0:
        return other
    if other < 0:
        return one
    if links.rank[other] < links.rank[one] or (
        links.rank[other] == links.rank[one] and other < one
    ):
        one, other = other, one
    links.of[other, _SIBLING] = links.of[one, _CHILD]
    links.of[one, _CHILD] = other
    return one


@part
def without_root(links: Links, root: int) -> int:
    """Remove the root of a heap; returns the new one, or -1."""
    pairs = -1
    rest = links.of[root, _CHILD]
    while rest >= 0:
        one = rest
        other = links.of[one, _SIBLING]
        if other >= 0:
            rest = links.of[other, _SIBLING]
            links.of[other, _SIBLING] = -1
        else:
            rest = other
        links.of[one, _SIBLING] = -1
        pair = melded(links, one, other)
        links.of[pair, _SIBLING] = pairs
        pairs = pair
    merged = rest  # which is -1; for the constant, Numba would compile ``melded`` once more
    while pairs >= 0:
        following = links.of[pairs, _SIBLING]
        links.of[pairs, _SIBLING] = -1
        merged = melded(links, merged, pairs)
        pairs = following
    return int(merged)
