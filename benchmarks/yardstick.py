"""A bare compiled replay, EASY and EASY-SJBF and nothing else: what Foresail's is measured against.

Conventions are those of ``foresail.model.event.PREDICTSIM``; runtimes do not exceed the
planned ones, so that no estimate ever expires.
"""

from __future__ import annotations

import heapq
import math

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@numba.njit(cache=True, error_model="numpy")
def replay(
    submit: Floats,
    runtime: Floats,
    width: Floats,
    planned: Floats,
    processors: float,
    shortest_first: bool,
) -> Floats:
    """Start times (seconds, a row per job in order of submission)."""
    jobs = submit.size
    start = np.full(jobs, math.nan)
    queue = np.empty(jobs, np.int64)
    expected = np.empty(jobs)
    holder = np.empty(jobs, np.int64)
    ends = [(math.inf, 0, 0)]
    free = processors
    waiting = running = submitted = started = 0
    while submitted < jobs or running > 0:
        now = ends[0][0]
        if submitted < jobs and submit[submitted] <= now:
            now = submit[submitted]
            queue[waiting] = submitted
            waiting += 1
            submitted += 1
        else:
            slot = heapq.heappop(ends)[2]
            at = np.searchsorted(expected[:running], start[slot] + planned[slot])
            while holder[at] != slot:
                at += 1
            for i in range(at, running - 1):
                expected[i] = expected[i + 1]
                holder[i] = holder[i + 1]
            running -= 1
            free += width[slot]
        if waiting == 0:
            continue
        room = free
        gone = 0
        while gone < running and expected[gone] <= now:
            room += width[holder[gone]]
            gone += 1
        before = started
        shadow = math.inf
        extra = math.inf
        order = queue[:waiting]
        i = 0
        while i < waiting:
            slot = order[i]
            i += 1
            if width[slot] > room:
                if shadow < math.inf or extra < math.inf:
                    continue
                available = room
                extra = 0.0
                k = gone
                while k < running:
                    time = expected[k]
                    while k < running and expected[k] == time:
                        available += width[holder[k]]
                        k += 1
                    if available >= width[slot]:
                        shadow = time
                        extra = available - width[slot]
                        break
                if shortest_first:
                    rest = queue[i:waiting]
                    order = rest[np.argsort(planned[rest], kind="mergesort")]
                    order = np.concatenate((queue[:i], order))
                continue
            end = now + planned[slot]
            if end > shadow:
                if width[slot] > extra:
                    continue
                extra -= width[slot]
            at = running
            while at > gone and expected[at - 1] > end:
                expected[at] = expected[at - 1]
                holder[at] = holder[at - 1]
                at -= 1
            expected[at] = end
            holder[at] = slot
            heapq.heappush(ends, (now + runtime[slot], started, slot))
            start[slot] = now
            running += 1
            started += 1
            room -= width[slot]
            free -= width[slot]
            if room <= 0 and extra < math.inf:
                break
        if started > before:
            kept = 0
            for i in range(waiting):
                if math.isnan(start[queue[i]]):
                    queue[kept] = queue[i]
                    kept += 1
            waiting = kept
    return start
