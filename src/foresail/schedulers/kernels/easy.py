"""One pass of list scheduling with EASY backfilling (spec of backfilling, section 2)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_step, merged_part, part
from foresail.kernels.signatures import PASS_STEP, PassInputs
from foresail.kernels.waiting_jobs import (
    EXPECTED_END,
    HELD,
    PLANNED,
    QUEUE,
    RESERVATION,
    WIDTH,
    hold,
)

Floats = NDArray[np.float64]


@merged_part
def start(inputs: PassInputs, slot: int, count: int) -> None:
    """Start a job now, as the one behind ``count`` others that this pass started."""
    job = inputs.jobs[slot]
    end = inputs.now + job[PLANNED]
    hold(inputs.release, inputs.releases + count, end, job[WIDTH], slot)
    job[RESERVATION] = -math.inf
    inputs.starts[count] = slot


@merged_part
def start_in_order(inputs: PassInputs) -> tuple[int, float]:
    """Start from the front of the queue while the head fits.

    Returns how many were started, and how many cpus are left.
    """
    free = inputs.free
    count = 0
    while count < inputs.waiting:
        slot = int(inputs.order[count, QUEUE])
        needed = inputs.jobs[slot, WIDTH]
        if needed > free:
            break
        free -= needed
        start(inputs, slot, count)
        count += 1
    return count, free


@part
def shadow_of(free: float, needed: float, release: Floats, releases: int) -> tuple[float, float]:
    """First time at which ``needed`` cpus are expected to be free, and how many more then are.

    All releases of the same time count together. Without enough releases: (inf, 0).
    """
    i = 0
    while i < releases:
        time = release[i, EXPECTED_END]
        while i < releases and release[i, EXPECTED_END] == time:
            free += release[i, HELD]
            i += 1
        if free >= needed:
            return time, free - needed
    return math.inf, 0.0


@bare_step(PASS_STEP)
def in_order_pass(inputs: PassInputs) -> int:
    """Start from the front of the queue; no job overtakes."""
    return start_in_order(inputs)[0]


@bare_step(PASS_STEP)
def easy_pass(inputs: PassInputs) -> int:
    """Start in order; reserve for the head; start candidates that do not delay it."""
    count, free = start_in_order(inputs)
    if count == inputs.waiting:
        return count
    jobs, release = inputs.jobs, inputs.release
    head = int(inputs.order[count, QUEUE])
    shadow, extra = shadow_of(free, jobs[head, WIDTH], release, inputs.releases + count)
    jobs[head, RESERVATION] = shadow
    for i in range(inputs.waiting):
        if free <= 0:
            break
        slot = int(inputs.order[i, inputs.candidates])
        needed = jobs[slot, WIDTH]
        ends_late = inputs.now + jobs[slot, PLANNED] > shadow
        if needed > (min(extra, free) if ends_late else free):  # a branch that is rarely not taken
            continue
        if jobs[slot, RESERVATION] == -math.inf:
            continue
        if ends_late:
            extra -= needed
        free -= needed
        start(inputs, slot, count)
        count += 1
    return count
