"""Passes that hold a timeline: reservations for the first few jobs, or for every job."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import merged_part, part, step
from foresail.kernels.signatures import PASS_STEP, PassInputs
from foresail.kernels.waiting_jobs import PLANNED, QUEUE, RESERVATION, WIDTH
from foresail.schedulers.kernels.easy import start, start_in_order
from foresail.schedulers.kernels.profile import (
    PROFILE_COLUMNS,
    ROOM,
    TIME,
    earliest_fit,
    occupy,
    timeline,
)

Floats = NDArray[np.float64]


@merged_part
def _reserve_first(
    inputs: PassInputs, profile: Floats, steps: int, count: int, free: float
) -> tuple[int, int, float]:
    """Give the first blocked jobs reservations, or start them; the others have none.

    Returns the number of steps of the profile, of jobs started, and the cpus left.
    """
    jobs = inputs.jobs
    first = count
    last = first + min(int(inputs.parameters[0]), inputs.waiting - count)
    for i in range(first, last):
        slot = int(inputs.order[i, QUEUE])
        width, planned = jobs[slot, WIDTH], jobs[slot, PLANNED]
        at = earliest_fit(profile, steps, 0, width, planned)
        if at == steps:
            jobs[slot, RESERVATION] = math.inf
        elif at == 0 and width <= free:
            steps = occupy(profile, steps, inputs.now, planned, width)
            free -= width
            start(inputs, slot, count)
            count += 1
        else:
            begin = profile[at, TIME]
            jobs[slot, RESERVATION] = begin
            steps = occupy(profile, steps, begin, planned, width)
    for i in range(last, inputs.waiting):
        jobs[int(inputs.order[i, QUEUE]), RESERVATION] = math.nan
    return steps, count, free


@step(PASS_STEP)
def reserving_pass(inputs: PassInputs) -> int:
    """Start in order; reserve for the first ``parameters[0]`` blocked jobs; backfill around them.

    With one reservation this is EASY; with more, a candidate may delay none of them.
    """
    count, free = start_in_order(inputs)
    if count == inputs.waiting:
        return count
    jobs = inputs.jobs
    releases = inputs.releases + count
    profile = np.empty((2 * (inputs.waiting + 1) + releases, PROFILE_COLUMNS))
    steps = timeline(inputs.now, free, inputs.release, releases, profile)
    steps, count, free = _reserve_first(inputs, profile, steps, count, free)
    for i in range(inputs.waiting):
        if free <= 0:
            break
        slot = int(inputs.order[i, inputs.candidates])
        needed, planned = jobs[slot, WIDTH], jobs[slot, PLANNED]
        if needed > free or not math.isnan(jobs[slot, RESERVATION]):
            continue
        if not fits_at(profile, steps, 0, inputs.now + planned, needed):
            continue
        steps = occupy(profile, steps, inputs.now, planned, needed)
        free -= needed
        start(inputs, slot, count)
        count += 1
    return count


@part
def fits_at(profile: Floats, steps: int, first: int, end: float, width: float) -> bool:
    """Whether ``width`` cpus are free from step ``first`` until ``end``."""
    i = first
    while i < steps and profile[i, TIME] < end:
        if profile[i, ROOM] < width:
            return False
        i += 1
    return True


@part
def _step_of(profile: Floats, steps: int, time: float) -> int:
    """The step that ``time`` (not before now) falls into."""
    i = steps - 1
    while profile[i, TIME] > time:
        i -= 1
    return i


@part
def _reserve(profile: Floats, steps: int, jobs: Floats, slot: int) -> int:
    """Give a job the earliest reservation there is; returns the number of steps."""
    width, planned = jobs[slot, WIDTH], jobs[slot, PLANNED]
    at = earliest_fit(profile, steps, 0, width, planned)
    if at == steps:
        jobs[slot, RESERVATION] = math.inf
        return steps
    begin = profile[at, TIME]
    jobs[slot, RESERVATION] = begin
    return occupy(profile, steps, begin, planned, width)


@merged_part
def _keep_reservations(inputs: PassInputs, profile: Floats, steps: int) -> int:
    """Enter the reservations of the last pass, anew those that are no longer possible."""
    jobs = inputs.jobs
    for i in range(inputs.waiting):
        slot = int(inputs.order[i, QUEUE])
        if not math.isfinite(jobs[slot, RESERVATION]):
            continue
        begin = max(inputs.now, jobs[slot, RESERVATION])
        width, planned = jobs[slot, WIDTH], jobs[slot, PLANNED]
        if fits_at(profile, steps, _step_of(profile, steps, begin), begin + planned, width):
            jobs[slot, RESERVATION] = begin
            steps = occupy(profile, steps, begin, planned, width)
        else:
            steps = _reserve(profile, steps, jobs, slot)
    return steps


@merged_part
def _move_forward(inputs: PassInputs, profile: Floats, steps: int) -> int:
    """Give each job that holds a reservation the earliest there is now, in queue order."""
    jobs = inputs.jobs
    for i in range(inputs.waiting):
        slot = int(inputs.order[i, QUEUE])
        if math.isfinite(jobs[slot, RESERVATION]):
            reserved, planned = jobs[slot, RESERVATION], jobs[slot, PLANNED]
            steps = occupy(profile, steps, reserved, planned, -jobs[slot, WIDTH])
            steps = _reserve(profile, steps, jobs, slot)
    return steps


@step(PASS_STEP)
def conservative_pass(inputs: PassInputs) -> int:
    """Reserve for every job; where room has come, jobs move forward in queue order, never back.

    A reservation that an underestimated job has made impossible is made anew; a job without one
    then gets the earliest that delays no other. A job whose reservation is now starts.
    """
    jobs, free = inputs.jobs, inputs.free
    profile = np.empty((4 * (inputs.waiting + 1) + inputs.releases, PROFILE_COLUMNS))
    steps = timeline(inputs.now, free, inputs.release, inputs.releases, profile)
    steps = _keep_reservations(inputs, profile, steps)
    if inputs.room_came != 0:
        steps = _move_forward(inputs, profile, steps)
    count = 0
    for i in range(inputs.waiting):
        slot = int(inputs.order[i, QUEUE])
        if not math.isfinite(jobs[slot, RESERVATION]):
            steps = _reserve(profile, steps, jobs, slot)
        if jobs[slot, RESERVATION] > inputs.now or jobs[slot, WIDTH] > free:
            continue
        free -= jobs[slot, WIDTH]
        start(inputs, slot, count)
        count += 1
    return count
