"""One pass of list scheduling with EASY backfilling (spec of backfilling, section 2)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, bare_step
from foresail.kernels.ordered import hold
from foresail.kernels.signatures import PASS_STEP

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@bare_kernel
def start_in_order(
    now: float,
    free: float,
    queue: Integers,
    waiting: int,
    width: Floats,
    planned: Floats,
    release_time: Floats,
    release_width: Floats,
    release_slot: Integers,
    releases: int,
    reservation: Floats,
    starts: Integers,
) -> int:
    """Start from the front of the queue while the head fits; returns how many were started."""
    count = 0
    while count < waiting:
        slot = queue[count]
        if width[slot] > free:
            break
        free -= width[slot]
        end = now + planned[slot]
        hold(release_time, release_width, release_slot, releases + count, end, width[slot], slot)
        reservation[slot] = -math.inf
        starts[count] = slot
        count += 1
    return count


@bare_kernel
def shadow_of(
    free: float, needed: float, release_time: Floats, release_width: Floats, releases: int
) -> tuple[float, float]:
    """First time at which ``needed`` cpus are expected to be free, and how many more then are.

    All releases of the same time count together. Without enough releases: (inf, 0).
    """
    i = 0
    while i < releases:
        time = release_time[i]
        while i < releases and release_time[i] == time:
            free += release_width[i]
            i += 1
        if free >= needed:
            return time, free - needed
    return math.inf, 0.0


@bare_step(PASS_STEP)
def in_order_pass(
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
    """Start from the front of the queue; nobody overtakes."""
    return start_in_order(
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


@bare_step(PASS_STEP)
def easy_pass(
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
    """Start in order; reserve for the head; start candidates that do not delay it."""
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
    head = queue[count]
    shadow, extra = shadow_of(free, width[head], release_time, release_width, releases + count)
    reservation[head] = shadow
    for i in range(waiting):
        if free <= 0:
            break
        slot = candidates[i]
        needed = width[slot]
        if needed > free or slot == head or reservation[slot] == -math.inf:
            continue
        end = now + planned[slot]
        if end > shadow:
            if needed > extra:
                continue
            extra -= needed
        free -= needed
        hold(release_time, release_width, release_slot, releases + count, end, needed, slot)
        reservation[slot] = -math.inf
        starts[count] = slot
        count += 1
    return count
