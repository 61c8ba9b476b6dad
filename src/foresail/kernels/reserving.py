"""Passes that hold a timeline: reservations for the first few jobs, or for every job."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel, step
from foresail.kernels.easy import start_in_order
from foresail.kernels.ordered import hold
from foresail.kernels.profile import earliest_fit, occupy, timeline
from foresail.kernels.signatures import PASS_STEP

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@step(PASS_STEP)
def reserving_pass(
    now: float,
    free: float,
    queue: Integers,
    candidates: Integers,
    waiting: int,
    width: Floats,
    submit: Floats,
    planned: Floats,
    likely: Floats,
    release_time: Floats,
    release_width: Floats,
    release_slot: Integers,
    releases: int,
    reservation: Floats,
    parameters: Floats,
    starts: Integers,
) -> int:
    """Start in order; reserve for the first ``parameters[0]`` blocked jobs; backfill around them.

    With one reservation this is EASY; with more, a candidate may delay none of them.
    """
    count = start_in_order(
        now,
        free,
        queue,
        waiting,
        width,
        planned,
        release_time,
        release_width,
        release_slot,
        releases,
        reservation,
        starts,
    )
    if count == waiting:
        return count
    for i in range(count):
        free -= width[starts[i]]
    steps = 2 * (waiting + 1) + releases + count
    times = np.empty(steps)
    room = np.empty(steps)
    n = timeline(now, free, release_time, release_width, releases + count, times, room)
    reserved = min(int(parameters[0]), waiting - count)
    first = count
    for i in range(first, first + reserved):
        slot = queue[i]
        at = earliest_fit(times, room, n, 0, width[slot], planned[slot])
        if at == n:
            reservation[slot] = math.inf
        elif at == 0 and width[slot] <= free:
            n = occupy(times, room, n, now, planned[slot], width[slot])
            free -= width[slot]
            end = now + planned[slot]
            hold(
                release_time, release_width, release_slot, releases + count, end, width[slot], slot
            )
            reservation[slot] = -math.inf
            starts[count] = slot
            count += 1
        else:
            reservation[slot] = times[at]
            n = occupy(times, room, n, times[at], planned[slot], width[slot])
    for i in range(first + reserved, waiting):
        reservation[queue[i]] = math.nan
    for i in range(waiting):
        if free <= 0:
            break
        slot = candidates[i]
        needed = width[slot]
        if needed > free or not math.isnan(reservation[slot]):
            continue
        end = now + planned[slot]
        k = 0
        while k < n and times[k] < end and room[k] >= needed:
            k += 1
        if k < n and times[k] < end:
            continue
        n = occupy(times, room, n, now, planned[slot], needed)
        free -= needed
        hold(release_time, release_width, release_slot, releases + count, end, needed, slot)
        reservation[slot] = -math.inf
        starts[count] = slot
        count += 1
    return count


@kernel
def _fits_at(
    times: Floats, room: Floats, count: int, start: float, seconds: float, width: float
) -> bool:
    i = count - 1
    while times[i] > start:
        i -= 1
    while i < count and times[i] < start + seconds:
        if room[i] < width:
            return False
        i += 1
    return True


@kernel
def _reserve(
    times: Floats,
    room: Floats,
    count: int,
    slot: int,
    width: Floats,
    planned: Floats,
    reservation: Floats,
) -> int:
    """Give a job the earliest reservation there is; returns the number of steps."""
    at = earliest_fit(times, room, count, 0, width[slot], planned[slot])
    if at == count:
        reservation[slot] = math.inf
        return count
    reservation[slot] = times[at]
    return occupy(times, room, count, times[at], planned[slot], width[slot])


@step(PASS_STEP)
def conservative_pass(
    now: float,
    free: float,
    queue: Integers,
    candidates: Integers,
    waiting: int,
    width: Floats,
    submit: Floats,
    planned: Floats,
    likely: Floats,
    release_time: Floats,
    release_width: Floats,
    release_slot: Integers,
    releases: int,
    reservation: Floats,
    parameters: Floats,
    starts: Integers,
) -> int:
    """Every job holds a reservation; early ends let jobs move forward in queue order, never back.

    A reservation that an underestimated job has made impossible is made anew; a job without one
    gets the earliest that delays nobody else. A job whose reservation is now starts.
    """
    steps = 4 * (waiting + 1) + releases
    times = np.empty(steps)
    room = np.empty(steps)
    n = timeline(now, free, release_time, release_width, releases, times, room)
    for i in range(waiting):
        slot = queue[i]
        if not math.isfinite(reservation[slot]):
            continue
        start = max(now, reservation[slot])
        if _fits_at(times, room, n, start, planned[slot], width[slot]):
            reservation[slot] = start
            n = occupy(times, room, n, start, planned[slot], width[slot])
        else:
            n = _reserve(times, room, n, slot, width, planned, reservation)
    for i in range(waiting):
        slot = queue[i]
        if math.isnan(reservation[slot]) or reservation[slot] == math.inf:
            n = _reserve(times, room, n, slot, width, planned, reservation)
    count = 0
    for i in range(waiting):
        slot = queue[i]
        if reservation[slot] == math.inf:
            continue
        n = occupy(times, room, n, reservation[slot], planned[slot], -width[slot])
        n = _reserve(times, room, n, slot, width, planned, reservation)
        if reservation[slot] > now or width[slot] > free:
            continue
        free -= width[slot]
        hold(
            release_time,
            release_width,
            release_slot,
            releases + count,
            now + planned[slot],
            width[slot],
            slot,
        )
        reservation[slot] = -math.inf
        starts[count] = slot
        count += 1
    return count
