"""Heaps over jobs: timed events, and queues that share two arrays of links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part


class Timetable(NamedTuple):
    """A binary heap of jobs by time, then by number; ``size[0]`` of the entries count."""

    times: NDArray[np.float64]
    jobs: NDArray[np.int32]
    size: NDArray[np.int64]


def timetable(room: int) -> Timetable:
    """An empty timetable with room for so many entries."""
    return Timetable(
        np.empty(max(room, 1)), np.empty(max(room, 1), np.int32), np.zeros(1, np.int64)
    )


@part
def enter(table: Timetable, time: float, job: int) -> None:
    """Add an entry."""
    times, jobs = table.times, table.jobs
    at = table.size[0]
    table.size[0] = at + 1
    while at > 0:
        parent = (at - 1) >> 1
        if times[parent] < time or (times[parent] == time and jobs[parent] < job):
            break
        times[at] = times[parent]
        jobs[at] = jobs[parent]
        at = parent
    times[at] = time
    jobs[at] = job


@part
def leave_first(table: Timetable) -> int:
    """Remove the first entry and return its job."""
    times, jobs = table.times, table.jobs
    found = jobs[0]
    size = table.size[0] - 1
    table.size[0] = size
    time, job = times[size], jobs[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            times[other] < times[child]
            or (times[other] == times[child] and jobs[other] < jobs[child])
        ):
            child = other
        if time < times[child] or (time == times[child] and job < jobs[child]):
            break
        times[at] = times[child]
        jobs[at] = jobs[child]
        at = child
    times[at] = time
    jobs[at] = job
    return int(found)


class Links(NamedTuple):
    """Pairing heaps of jobs by ``rank``, then by number: first child and next sibling, or -1."""

    rank: NDArray[np.float64]
    child: NDArray[np.int32]
    sibling: NDArray[np.int32]


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
    links.sibling[other] = links.child[one]
    links.child[one] = other
    return one


@part
def without_root(links: Links, root: int) -> int:
    """Remove the root of a heap; returns the new one, or -1."""
    pairs = -1
    rest = int(links.child[root])
    while rest >= 0:
        one = rest
        other = int(links.sibling[one])
        if other < 0:
            rest = -1
        else:
            rest = int(links.sibling[other])
            links.sibling[other] = -1
        links.sibling[one] = -1
        pair = melded(links, one, other)
        links.sibling[pair] = pairs
        pairs = pair
    merged = -1
    while pairs >= 0:
        following = int(links.sibling[pairs])
        links.sibling[pairs] = -1
        merged = melded(links, merged, pairs)
        pairs = following
    return merged
