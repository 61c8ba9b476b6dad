"""One pass of bold backfilling in which jobs that are due go first.

Order and tests are bold: candidates are tried with their *likely* runtime. Guarantees are careful:
running jobs are planned with the runtime they were *planned* with (the request). What is due has a
reservation by these that no start moves, and the job that is due next is not put off beyond its
latest start.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import PASS_STEP, PassInputs
from foresail.kernels.waiting_jobs import (
    EXPECTED_END,
    HELD,
    LATEST,
    LIKELY,
    PLANNED,
    QUEUE,
    RESERVATION,
    WIDTH,
)
from foresail.schedulers.kernels.easy import shadow_of, start

Floats = NDArray[np.float64]


@part
def latest_start(
    latest: float, free: float, needed: float, release: Floats, releases: int
) -> tuple[float, float]:
    """When a job is to start at the latest, and how many cpus more are free then.

    That is at ``latest``, or when it can start at all by planned ends.
    """
    i = 0
    while i < releases and (release[i, EXPECTED_END] <= latest or free < needed):
        latest = max(latest, release[i, EXPECTED_END])
        free += release[i, HELD]
        i += 1
    return latest, free - needed


@bare_step(PASS_STEP)
def guarded_pass(inputs: PassInputs) -> int:
    """Start in queue order, boldly behind the first job that does not fit, if none is due.

    A job that would put off the one that is due next is passed over; it does not become the head.
    """
    now, free, guarded = inputs.now, inputs.free, inputs.guarded
    jobs, release = inputs.jobs, inputs.release
    latest, spare = math.inf, math.nan
    if guarded >= 0:
        latest = max(jobs[guarded, LATEST], now)
    due_head, head = -1, -1
    due_shadow, due_extra = math.inf, 0.0
    shadow, extra = math.inf, 0.0
    count = 0
    for i in range(inputs.waiting):
        if free <= 0 and (due_head >= 0 or i >= inputs.first):
            break
        slot = int(inputs.order[i, QUEUE])
        needed = jobs[slot, WIDTH]
        if needed > free:
            releases = inputs.releases + count
            if i < inputs.first:
                if due_head < 0:
                    due_head = slot
                    due_shadow, due_extra = shadow_of(free, needed, release, releases)
                    jobs[slot, RESERVATION] = due_shadow
            elif head < 0:
                head = slot
                shadow, extra = shadow_of(free, needed, release, releases)
                if due_head < 0:
                    jobs[slot, RESERVATION] = shadow
            continue
        end = now + jobs[slot, PLANNED]
        from_due_extra = due_head >= 0 and end > due_shadow
        if from_due_extra and needed > due_extra:
            continue
        from_extra = head >= 0 and end > shadow and now + jobs[slot, LIKELY] > shadow
        if from_extra and needed > extra:
            continue
        puts_off = i >= inputs.first and slot != guarded and end > latest
        if puts_off:
            if math.isnan(spare):
                releases = inputs.releases + count
                latest, spare = latest_start(latest, free, jobs[guarded, WIDTH], release, releases)
                puts_off = end > latest
            if puts_off and needed > spare:
                continue
        if from_due_extra:
            due_extra -= needed
        if from_extra:
            extra -= needed
        if puts_off:
            spare -= needed
        if slot == guarded:
            latest, guarded = math.inf, -1
        free -= needed
        start(inputs, slot, count)
        count += 1
    return count
