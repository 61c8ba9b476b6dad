"""Passes of backfilling: EASY, several reservations, conservative and guarded, on a timeline.

The timeline is free cpus over future time as a step function, with earliest fit and reservation.
``profile[:steps, TIME]`` ascends and begins at now; ``profile[i, ROOM]`` cpus are free from then
until the next step, the last of them for ever. The table needs room for two more rows per
reservation.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.kernels.compile import bare_step, merged_part, part, step
from foresail.kernels.steps import PASS_STEP, PassInputs
from foresail.kernels.waiting_jobs import (
    DUE,
    EXPECTED_END,
    HELD,
    LATEST,
    LIKELY,
    PLANNED,
    QUEUE,
    RESERVATION,
    SUBMITTED,
    WIDTH,
    first_to_fit,
    hold,
    is_gap,
)
from foresail.model.distribution import Floats

TIME: Final = 0
ROOM: Final = 1
PROFILE_COLUMNS: Final = 2


@part
def timeline(now: float, free: float, release: Floats, releases: int, profile: Floats) -> int:
    """Fill the step function from what is free now and what running jobs will release."""
    profile[0, TIME] = now
    profile[0, ROOM] = free
    count = 1
    for i in range(releases):
        if release[i, EXPECTED_END] > profile[count - 1, TIME]:
            profile[count, TIME] = release[i, EXPECTED_END]
            profile[count, ROOM] = profile[count - 1, ROOM]
            count += 1
        profile[count - 1, ROOM] += release[i, HELD]
    return count


@part
def earliest_fit(profile: Floats, count: int, first: int, width: float, seconds: float) -> int:
    """Index of the first step, from ``first`` on, at which ``width`` cpus stay free ``seconds``.

    Returns ``count`` if the width is never free.
    """
    start = first
    while start < count:
        if profile[start, ROOM] < width:
            start += 1
            continue
        end = profile[start, TIME] + seconds
        i = start + 1
        while i < count and profile[i, TIME] < end and profile[i, ROOM] >= width:
            i += 1
        if i >= count or profile[i, TIME] >= end:
            return start
        start = i + 1
    return count


@part
def step_at(profile: Floats, count: int, time: float) -> tuple[int, int]:
    """Index of the step that begins at ``time`` (not before now), made if there is none.

    Returns the index and the new number of steps.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if profile[middle, TIME] < time:
            low = middle + 1
        else:
            high = middle
    if low < count and profile[low, TIME] == time:
        return low, count
    for i in range(count, low, -1):
        profile[i, TIME] = profile[i - 1, TIME]
        profile[i, ROOM] = profile[i - 1, ROOM]
    profile[low, TIME] = time
    profile[low, ROOM] = profile[low - 1, ROOM]
    return low, count + 1


@part
def occupy(profile: Floats, count: int, start: float, seconds: float, width: float) -> int:
    """Take ``width`` cpus (give them back, if negative) for a span; returns the number of steps."""
    first, count = step_at(profile, count, start)
    last, count = step_at(profile, count, start + seconds)
    for i in range(first, last):
        profile[i, ROOM] -= width
    return count


@merged_part
def start(inputs: PassInputs, slot: int, count: int) -> None:
    """Start a job now, as the one behind ``count`` others that this pass started."""
    job = inputs.jobs[slot]
    end = inputs.now + job[PLANNED]
    hold(inputs.release, inputs.releases + count, end, job[WIDTH], slot)
    job[RESERVATION] = -math.inf
    inputs.starts[count] = slot


@merged_part
def start_in_order(inputs: PassInputs) -> tuple[int, int, float]:
    """Start from the front of the queue while the head fits.

    Returns the place of the first job that does not, how many were started, and how many cpus are
    left.
    """
    free = inputs.free
    count, place = 0, inputs.begin
    while place < inputs.waiting:
        if not is_gap(inputs.order, QUEUE, place):
            slot = int(inputs.order[place, QUEUE])
            needed = inputs.jobs[slot, WIDTH]
            if needed > free:
                break
            free -= needed
            start(inputs, slot, count)
            count += 1
        place += 1
    return place, count, free


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
    """Start from the front of the queue; no job backfills."""
    return start_in_order(inputs)[1]


@bare_step(PASS_STEP)
def easy_pass(inputs: PassInputs) -> int:
    """Start in order; reserve for the head; start candidates that do not delay it."""
    first, count, free = start_in_order(inputs)
    if first == inputs.waiting:
        return count
    jobs, release = inputs.jobs, inputs.release
    head = int(inputs.order[first, QUEUE])
    shadow, extra = shadow_of(free, jobs[head, WIDTH], release, inputs.releases + count)
    jobs[head, RESERVATION] = shadow
    order, column, now, place = inputs.order, inputs.candidates, inputs.now, inputs.begin
    while free > 0:
        place = first_to_fit(
            order, column, place, inputs.waiting, free, now, shadow, extra, math.inf, 0.0
        )
        if place == inputs.waiting:
            break
        slot = int(order[place, column])
        place += 1
        if jobs[slot, RESERVATION] == -math.inf:
            continue
        # One that runs on behind the head's reservation takes of what the head leaves.
        if now + jobs[slot, PLANNED] > shadow:
            extra -= jobs[slot, WIDTH]
        free -= jobs[slot, WIDTH]
        start(inputs, slot, count)
        count += 1
    return count


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
        # A job that fits now starts: a reservation at once would be one for nobody.
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
    _, count, free = start_in_order(inputs)
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
        # Those with a reservation wait for it; the profile already has them.
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
    """Return whether ``width`` cpus are free from step ``first`` until ``end``."""
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


@part
def latest_start(
    latest: float, free: float, needed: float, release: Floats, releases: int
) -> tuple[float, float]:
    """Return when a job is to start at the latest, and how many cpus more are free then.

    That is at ``latest``, or when it can start at all by planned ends.
    """
    i = 0
    while i < releases and (release[i, EXPECTED_END] <= latest or free < needed):
        latest = max(latest, release[i, EXPECTED_END])
        free += release[i, HELD]
        i += 1
    return latest, free - needed


MOST_HELD_FIRST: Final = 0.65
"""The share of the cpus up to which jobs that are due go before all others."""
OVERDUE: Final = 0.5
"""Beyond that share a job goes first once it is overdue by so much of its wait until then."""


@merged_part
def _goes_later(inputs: PassInputs, slot: int, held_first: float, cpus: float) -> bool:
    """Return whether jobs that went first hold so many cpus that one that is due goes later."""
    job = inputs.jobs[slot]
    return bool(
        held_first > 0.0
        and held_first + job[WIDTH] > MOST_HELD_FIRST * cpus
        and inputs.now - job[DUE] < OVERDUE * (job[DUE] - job[SUBMITTED])
    )


@bare_step(PASS_STEP)
def guarded_pass(inputs: PassInputs) -> int:
    """Start in queue order, boldly behind the first job that does not fit, if none is due.

    A job that would put off the one that is due next is skipped; it does not become the head. Jobs
    that are due go last where others that were due hold most of the cpus (``_goes_later``).
    ``parameters[0]`` is set to 1 where another pass might find room for more: one that has started
    puts off the head, or was the one to guard, or one was skipped that may be the head then; to 2
    where one goes last.
    """
    now, free, guarded = inputs.now, inputs.free, inputs.guarded
    jobs, release = inputs.jobs, inputs.release
    # `spare` is computed when a job first asks for it: most passes never do.
    latest, spare = math.inf, math.nan
    if guarded >= 0:
        latest = max(jobs[guarded, LATEST], now)
    due_head, head = -1, -1
    due_shadow, due_extra = math.inf, 0.0
    shadow, extra = math.inf, 0.0
    count, place = 0, inputs.begin
    held_first, cpus, last = inputs.held_first, 0.0, inputs.waiting
    if place < inputs.first:
        cpus = free + release[: inputs.releases, HELD].sum()
    moved, some_later, is_later = False, False, False
    while True:
        if place >= last or (free <= 0 and (due_head >= 0 or place >= inputs.first)):
            if is_later or not some_later or free <= 0:
                break
            is_later, place, last = True, inputs.begin, inputs.first
            continue
        if head >= 0 or (due_head >= 0 and place < inputs.first):
            until = last if head >= 0 else inputs.first
            place = first_to_fit(
                inputs.order, QUEUE, place, until, free, now, due_shadow, due_extra, shadow, extra
            )
            if place == until:
                continue
        i, place = place, place + 1
        if is_gap(inputs.order, QUEUE, i):
            continue
        slot = int(inputs.order[i, QUEUE])
        needed = jobs[slot, WIDTH]
        if is_later and (needed > free or jobs[slot, RESERVATION] == -math.inf):
            continue
        if i < inputs.first and not is_later and _goes_later(inputs, slot, held_first, cpus):
            some_later = True
            continue
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
            moved = moved or head < 0
            continue
        late = head >= 0 and end > shadow
        from_extra = late and now + jobs[slot, LIKELY] > shadow
        if from_extra and needed > extra:
            continue
        puts_off = i >= inputs.first and slot != guarded and end > latest
        if puts_off:
            if math.isnan(spare):
                releases = inputs.releases + count
                latest, spare = latest_start(latest, free, jobs[guarded, WIDTH], release, releases)
                puts_off = end > latest
            if puts_off and needed > spare:
                moved = moved or head < 0
                continue
        if from_due_extra:
            due_extra -= needed
        if from_extra:
            extra -= needed
        if puts_off:
            spare -= needed
        if slot == guarded:
            latest, guarded, moved = math.inf, -1, True
        moved = moved or (late and not from_extra)
        if i < inputs.first:
            held_first += needed
            moved = moved or due_head >= 0  # which may go later now
        free -= needed
        start(inputs, slot, count)
        count += 1
    inputs.parameters[0] = moved or free <= 0
    if some_later:
        inputs.parameters[0] = 2.0
    return count
