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

from foresail.kernels.compile import bare_step, merged_part, part
from foresail.kernels.signatures import PASS_STEP, PassInputs
from foresail.kernels.waiting_jobs import (
    EXPECTED_END,
    HELD,
    LIKELY,
    PLANNED,
    QUEUE,
    RESERVATION,
    SUBMITTED,
    WIDTH,
)
from foresail.schedulers.kernels.easy import shadow_of, start

Floats = NDArray[np.float64]

WAIT_BOUND: Final = 0
PROTECTED: Final = 1
AGE_LIMIT: Final = 2
OLDEST_LIMIT: Final = 3
GUARD: Final = 4
"""The parameters; behind them is room for the guard: a row per protected job."""

SLOT: Final = 0
DEADLINE: Final = 1
SPARE: Final = 2
GUARD_COLUMNS: Final = 3
"""A protected job, its deadline, and the cpus that may be held beyond that."""


@part
def find_oldest(guard: Floats, order: Floats, waiting: int, jobs: Floats) -> int:
    """Fill ``guard`` with the smallest slots (earliest arrivals) that have not started.

    Returns how many there are, at most the rows of ``guard``.
    """
    found = 0
    for i in range(waiting):
        slot = order[i, QUEUE]
        if jobs[int(slot), RESERVATION] == -math.inf:
            continue
        if found == guard.shape[0] and slot > guard[found - 1, SLOT]:
            continue
        at = found if found < guard.shape[0] else found - 1
        while at > 0 and guard[at - 1, SLOT] > slot:
            guard[at, SLOT] = guard[at - 1, SLOT]
            at -= 1
        guard[at, SLOT] = slot
        found = min(found + 1, guard.shape[0])
    return found


@part
def protect(
    guard: Floats, row: int, due: float, free: float, needed: float, release: Floats, releases: int
) -> None:
    """Write the deadline of a protected job, and the cpus that may be held beyond it.

    The deadline is ``due`` (not before now), or when the job can start at all by planned ends.
    """
    deadline = due
    i = 0
    while i < releases and (release[i, EXPECTED_END] <= deadline or free < needed):
        deadline = max(deadline, release[i, EXPECTED_END])
        free += release[i, HELD]
        i += 1
    guard[row, DEADLINE] = deadline
    guard[row, SPARE] = free - needed


@part
def keeps_deadlines(guard: Floats, protected: int, slot: int, end: float, needed: float) -> bool:
    """Whether a job may run until ``end``; if so, what it holds beyond deadlines is booked."""
    for i in range(protected):
        if guard[i, SLOT] == slot:
            break
        if end > guard[i, DEADLINE] and needed > guard[i, SPARE]:
            return False
    for i in range(protected):
        if guard[i, SLOT] == slot:
            break
        if end > guard[i, DEADLINE]:
            guard[i, SPARE] -= needed
    return True


@merged_part
def _protect_all(
    inputs: PassInputs, guard: Floats, protected: int, free: float, count: int
) -> None:
    for row in range(protected):
        job = inputs.jobs[int(guard[row, SLOT])]
        due = max(job[SUBMITTED] + inputs.parameters[WAIT_BOUND], inputs.now)
        protect(guard, row, due, free, job[WIDTH], inputs.release, inputs.releases + count)


@merged_part
def _goes_first(inputs: PassInputs, head: int, oldest: int) -> bool:
    """Whether the head waits at the front because of its age."""
    wait = inputs.now - inputs.jobs[head, SUBMITTED]
    parameters = inputs.parameters
    return bool(
        wait >= parameters[AGE_LIMIT] or (head == oldest and wait >= parameters[OLDEST_LIMIT])
    )


@bare_step(PASS_STEP)
def guarded_pass(inputs: PassInputs) -> int:
    """Start in queue order, boldly behind the first job that does not fit, within the guard.

    A job that the guard refuses is passed over; it does not become the head.
    """
    now, free, waiting = inputs.now, inputs.free, inputs.waiting
    jobs, release, parameters = inputs.jobs, inputs.release, inputs.parameters
    wait_bound = parameters[WAIT_BOUND]
    rows = int(parameters[PROTECTED])
    guard = parameters[GUARD : GUARD + rows * GUARD_COLUMNS].reshape((rows, GUARD_COLUMNS))
    protected = find_oldest(guard, inputs.order, waiting, jobs)
    guarded = False
    due = jobs[int(guard[0, SLOT]), SUBMITTED] + wait_bound
    head = -1
    head_promoted = False
    shadow, extra = math.inf, 0.0
    count = 0
    for i in range(waiting):
        if free <= 0:
            break
        slot = int(inputs.order[i, QUEUE])
        needed = jobs[slot, WIDTH]
        if needed > free:
            if head < 0:
                head = slot
                head_promoted = _goes_first(inputs, head, int(guard[0, SLOT]))
                shadow = math.nan
            continue
        end = now + jobs[slot, PLANNED]
        from_extra = False
        if head >= 0:
            if math.isnan(shadow):
                shadow, extra = shadow_of(free, jobs[head, WIDTH], release, inputs.releases + count)
                jobs[head, RESERVATION] = shadow
            hopeful = now + jobs[slot, LIKELY] <= shadow and (
                not head_promoted or end <= jobs[head, SUBMITTED] + wait_bound
            )
            from_extra = not hopeful and end > shadow
            if from_extra and needed > extra:
                continue
        if end > due:
            if not guarded:
                guarded = True
                _protect_all(inputs, guard, protected, free, count)
            if not keeps_deadlines(guard, protected, slot, end, needed):
                continue
        if from_extra:
            extra -= needed
        free -= needed
        start(inputs, slot, count)
        count += 1
        if slot <= guard[protected - 1, SLOT]:
            protected = find_oldest(guard, inputs.order, waiting, jobs)
            guarded = False
            if protected == 0:
                break
            due = jobs[int(guard[0, SLOT]), SUBMITTED] + wait_bound
    return count
