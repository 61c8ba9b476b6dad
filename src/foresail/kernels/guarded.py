"""One pass of bold backfilling that still keeps every wait within a bound.

Order and tests are bold: candidates are tried with their *likely* runtime. Guarantees are careful:
running jobs are planned with the runtime they were *planned* with (the request), and no start may,
by planned runtimes, push one of the oldest waiting jobs beyond its deadline.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel, step
from foresail.kernels.easy import shadow_of
from foresail.kernels.ordered import hold
from foresail.kernels.signatures import PASS_STEP

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WAIT_BOUND: Final = 0
PROTECTED: Final = 1
AGE_LIMIT: Final = 2
OLDEST_LIMIT: Final = 3


@kernel
def oldest_waiting(queue: Integers, waiting: int, reservation: Floats, oldest: Integers) -> int:
    """Fill ``oldest`` with the smallest slots (earliest arrivals) that have not started.

    Returns how many there are, at most the size of ``oldest``.
    """
    found = 0
    for i in range(waiting):
        slot = queue[i]
        if reservation[slot] == -math.inf:
            continue
        if found == oldest.shape[0] and slot > oldest[found - 1]:
            continue
        at = found if found < oldest.shape[0] else found - 1
        while at > 0 and oldest[at - 1] > slot:
            oldest[at] = oldest[at - 1]
            at -= 1
        oldest[at] = slot
        found = min(found + 1, oldest.shape[0])
    return found


@kernel
def protect(
    now: float,
    free: float,
    due: float,
    needed: float,
    release_time: Floats,
    release_width: Floats,
    releases: int,
) -> tuple[float, float]:
    """Deadline of a protected job, and the cpus that may be held beyond it.

    The deadline is ``due``, or when the job can start at all by planned ends, or now.
    """
    deadline = max(due, now)
    i = 0
    while i < releases and (release_time[i] <= deadline or free < needed):
        deadline = max(deadline, release_time[i])
        free += release_width[i]
        i += 1
    return deadline, free - needed


@kernel
def keeps_deadlines(
    slot: int,
    end: float,
    needed: float,
    oldest: Integers,
    deadlines: Floats,
    spare: Floats,
    protected: int,
) -> bool:
    """Whether a job may run until ``end``; if so, what it holds beyond deadlines is booked."""
    for i in range(protected):
        if oldest[i] == slot:
            break
        if end > deadlines[i] and needed > spare[i]:
            return False
    for i in range(protected):
        if oldest[i] == slot:
            break
        if end > deadlines[i]:
            spare[i] -= needed
    return True


@step(PASS_STEP)
def guarded_pass(
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
    """Start in queue order, boldly behind the first job that does not fit, within the guard.

    A job that the guard refuses is passed over; it does not become the head.
    """
    wait_bound = parameters[WAIT_BOUND]
    oldest = np.empty(int(parameters[PROTECTED]), np.int64)
    deadlines = np.empty(oldest.shape[0])
    spare = np.empty(oldest.shape[0])
    protected = oldest_waiting(queue, waiting, reservation, oldest)
    guarded = False
    due = submit[oldest[0]] + wait_bound
    head = -1
    head_promoted = False
    shadow = math.inf
    extra = 0.0
    count = 0
    for i in range(waiting):
        if free <= 0:
            break
        slot = queue[i]
        needed = width[slot]
        if needed > free:
            if head < 0:
                head = slot
                wait = now - submit[head]
                head_promoted = wait >= parameters[AGE_LIMIT] or (
                    head == oldest[0] and wait >= parameters[OLDEST_LIMIT]
                )
                shadow = math.nan
            continue
        end = now + planned[slot]
        from_extra = False
        if head >= 0:
            if math.isnan(shadow):
                shadow, extra = shadow_of(
                    free, width[head], release_time, release_width, releases + count
                )
                reservation[head] = shadow
            hopeful = now + likely[slot] <= shadow and (
                not head_promoted or end <= submit[head] + wait_bound
            )
            from_extra = not hopeful and end > shadow
            if from_extra and needed > extra:
                continue
        if end > due:
            if not guarded:
                guarded = True
                for k in range(protected):
                    deadlines[k], spare[k] = protect(
                        now,
                        free,
                        submit[oldest[k]] + wait_bound,
                        width[oldest[k]],
                        release_time,
                        release_width,
                        releases + count,
                    )
            if not keeps_deadlines(slot, end, needed, oldest, deadlines, spare, protected):
                continue
        if from_extra:
            extra -= needed
        free -= needed
        hold(release_time, release_width, release_slot, releases + count, end, needed, slot)
        reservation[slot] = -math.inf
        starts[count] = slot
        count += 1
        if slot <= oldest[protected - 1]:
            protected = oldest_waiting(queue, waiting, reservation, oldest)
            guarded = False
            if protected == 0:
                break
            due = submit[oldest[0]] + wait_bound
    return count
