"""Heaps of jobs that know where each job is, so that any job can leave: all that a queue needs.

A heap is a row of job numbers. Its order is a column of the jobs' table, and where a job is in it
stands in another; of jobs with the same key that of the smaller number comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@part
def _earlier(jobs: Floats, key: int, job: int, other: int) -> bool:
    own, others = jobs[job, key], jobs[other, key]
    return bool(own < others or (own == others and job < other))


@part
def _rise(heap: Integers, jobs: Floats, key: int, place: int, at: int) -> int:
    """Move what is at a place up to where it belongs; returns where that is."""
    job = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _earlier(jobs, key, job, heap[parent]):
            break
        heap[at] = heap[parent]
        jobs[heap[at], place] = at
        at = parent
    heap[at] = job
    jobs[job, place] = at
    return at


@part
def _sink(heap: Integers, count: int, jobs: Floats, key: int, place: int, at: int) -> None:
    job = heap[at]
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _earlier(jobs, key, heap[child + 1], heap[child]):
            child += 1
        if not _earlier(jobs, key, heap[child], job):
            break
        heap[at] = heap[child]
        jobs[heap[at], place] = at
        at = child
    heap[at] = job
    jobs[job, place] = at


@part
def put_job(heap: Integers, count: int, jobs: Floats, key: int, place: int, job: int) -> None:
    """Put a job on a heap of ``count``; ``key`` and ``place`` are columns of ``jobs``."""
    heap[count] = job
    _rise(heap, jobs, key, place, count)


@part
def drop_job(heap: Integers, count: int, jobs: Floats, key: int, place: int, job: int) -> None:
    """Take a job off a heap of ``count`` in which it is, wherever."""
    at = int(jobs[job, place])
    last = heap[count - 1]
    if last == job:
        return
    heap[at] = last
    _sink(heap, count - 1, jobs, key, place, _rise(heap, jobs, key, place, at))
