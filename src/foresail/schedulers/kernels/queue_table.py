"""A queue that is kept from pass to pass: brought up to date by what has changed before each pass.

What a pass does to the tables (``foresail.schedulers.kernels.waiting_queue``) is taken back:
whether any job starts is for others to say.
"""

from __future__ import annotations

import math
from typing import Final

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.borrowed import (
    PLACE,
    float_columns_at,
    float_rows_at,
    floats_at,
    integer_rows_at,
    integers_at,
)
from foresail.kernels.columns import CPUS, PER_CPU, REQUESTED, SUBMIT
from foresail.kernels.compile import bare_kernel, merged_part, part, unlocked_kernel
from foresail.kernels.waiting_jobs import (
    CANDIDATE,
    DUE,
    EXPECTED_END,
    LIKELY,
    PLANNED,
    QUEUE,
    RESERVATION,
    SUBMITTED,
    WIDTH,
    enter,
    hold,
    let_go,
    place_after,
)
from foresail.model.arrays import Floats, Integers
from foresail.schedulers.kernels.waiting_queue import (
    AGED,
    AGED_FIRST,
    DUE_FROM,
    INFORMS,
    IS_GUARDED,
    KIND,
    LIKELY_PROGRAM,
    MOST_RESERVED,
    ONE_ORDER,
    RELEASES,
    SLOTS,
    WAITING,
    WAITS,
    WaitingQueue,
    begin_to_wait,
    bring_into_order,
    count_running,
    fall_due,
    give_up_place,
    run_pass,
    sort_all,
    take_place,
    value_of,
    wait_no_more,
)
from foresail.schedulers.kernels.waiting_queue import COUNTERS as QUEUE_COUNTERS

ENTERS: Final = 0.0
LEAVES: Final = 1.0
BELIEVED: Final = 2.0
HOLDS: Final = 3.0
LETS_GO: Final = 4.0
RUNS: Final = 5.0
RUNS_NO_MORE: Final = 6.0
FALLS_DUE: Final = 7.0

WHAT: Final = 0
WHO: Final = 1
END: Final = 2
CPUS_HELD: Final = 3
PLANS: Final = 2
WANTED_CPUS: Final = 3
ARRIVES: Final = 4
LIMIT: Final = 5
OF_KIND: Final = 6
BELIEVES: Final = 7
CHANGE_COLUMNS: Final = 8
"""A row per change: one of the above; the slot of a waiting job (BELIEVED: its prediction is
another one; FALLS_DUE: it is known now when it is due), the holder of a running one, or the kind of
one (RUNS, RUNS_NO_MORE); expected end (seconds) and cpus of a running job, or the runtime planned
with (seconds) and cpus of a waiting one. Of one that enters: when it was submitted, its limit
(seconds), its kind, and the number that is believed in, if it is one (else the summary row is
written already, and this is nan). A holder is a negative number, so that no slot is one."""

RESERVED: Final = QUEUE_COUNTERS
COUNTERS: Final = QUEUE_COUNTERS + 1
"""Behind the queue's own: how many reservations the last pass made."""

MUTE: Final = -2
NO_CODE: Final = -1
STARTED: Final = 0
RESERVED_LATER: Final = 1
NO_ROOM: Final = 2
WOULD_DELAY: Final = 3
BEHIND: Final = 4
GOES_FIRST: Final = 5
AMONG_FIRST: Final = 6
LACKS: Final = 7
"""Why a job waits, as far as that may differ from pass to pass. The last two are of jobs that are
due by what EASY would have done: GOES_FIRST has a reservation. MUTE: others report the job.
LACKS (put there by others): enough cpus are free, too little memory or too few gpus."""

QUEUE_ARRAYS: Final = len(WaitingQueue._fields)
AT_CHANGES: Final = QUEUE_ARRAYS * PLACE
AT_PLAN: Final = AT_CHANGES + PLACE
AT_CODES: Final = AT_PLAN + PLACE
AT_CHANGED_SLOTS: Final = AT_CODES + PLACE
AT_CHANGED_CODES: Final = AT_CHANGED_SLOTS + PLACE
AT_OWN_NUMBERS: Final = AT_CHANGED_CODES + PLACE
"""Where the vector of places (``foresail.kernels.borrowed.Places``) tells of changes, of the plan,
and of codes, slots and codes that have changed, and a number of each: behind the queue's own."""


@merged_part
def queue_at(places: Floats) -> WaitingQueue:
    """The queue whose arrays are the first in these places."""
    return WaitingQueue(
        float_columns_at(places, 0),
        float_rows_at(places, PLACE),
        float_rows_at(places, 2 * PLACE),
        float_columns_at(places, 3 * PLACE),
        float_columns_at(places, 4 * PLACE),
        float_rows_at(places, 5 * PLACE),
        integer_rows_at(places, 6 * PLACE),
        integers_at(places, 7 * PLACE),
        floats_at(places, 8 * PLACE),
        integers_at(places, 9 * PLACE),
    )


@merged_part
def _hope(at: WaitingQueue, slot: int, now: float) -> None:
    """Note the runtime that a bold pass may hope for."""
    spec, summary, informs = at.specs[slot], at.summaries[slot], at.jobs[slot, INFORMS]
    at.jobs[slot, LIKELY] = value_of(at.numbers, LIKELY_PROGRAM, spec, summary, now, informs)


@merged_part
def _specify(at: WaitingQueue, change: Floats) -> None:
    """Write the rows of a job that enters."""
    slot, cpus = int(change[WHO]), change[WANTED_CPUS]
    at.specs[slot, SUBMIT] = at.jobs[slot, SUBMITTED] = change[ARRIVES]
    at.specs[slot, CPUS] = cpus
    at.specs[slot, REQUESTED] = change[LIMIT]
    at.jobs[slot, WIDTH] = math.floor(cpus * PER_CPU) / PER_CPU
    at.jobs[slot, KIND] = change[OF_KIND]
    if not math.isnan(change[BELIEVES]):
        summarise_point(change[BELIEVES], at.summaries[slot])


@merged_part
def _change(at: WaitingQueue, change: Floats, now: float) -> None:
    """Make one change."""
    what, who = change[WHAT], int(change[WHO])
    jobs, order, kinds, counters = at.jobs, at.order, at.kinds, at.counters
    # A job keeps its place in order once it has aged; else a new belief means a new place.
    if what == LEAVES or (what == BELIEVED and jobs[who, AGED] == 0.0):
        give_up_place(jobs, order, counters, at.numbers, who)
    if what == ENTERS:
        _specify(at, change)
    if what in (ENTERS, BELIEVED):
        jobs[who, PLANNED] = change[PLANS]
        _hope(at, who, now)
        if jobs[who, AGED] == 0.0:
            take_place(at, who, now)
    if what == ENTERS:
        begin_to_wait(jobs, kinds, counters, who)
        counters[SLOTS] = max(counters[SLOTS], who + 1)
    if what == FALLS_DUE or (what == ENTERS and jobs[who, DUE] != math.inf):
        fall_due(jobs, at.dues, counters, who)
    elif what == LEAVES:
        wait_no_more(jobs, kinds, counters, who)
    elif what == HOLDS:
        hold(at.release, counters[RELEASES], change[END], change[CPUS_HELD], who)
        counters[RELEASES] += 1
    elif what == LETS_GO:
        let_go(at.release, counters[RELEASES], change[END], who)
        counters[RELEASES] -= 1
    elif what == RUNS:
        count_running(kinds, counters, who, 1)
    elif what == RUNS_NO_MORE:
        count_running(kinds, counters, who, -1)


@part
def _keep_late_ones(release: Floats, releases: int, soonest: float) -> None:
    """A job that should have ended by now is expected to end at once."""
    for i in range(releases):
        if release[i, EXPECTED_END] >= soonest:
            break
        release[i, EXPECTED_END] = soonest


@part
def _take_back_starts(
    now: float, count: int, counters: Integers, jobs: Floats, release: Floats, starts: Integers
) -> None:
    """Take what a pass has started out of the releases, and its mark off it."""
    for i in range(count):
        slot = starts[i]
        jobs[slot, RESERVATION] = math.nan
        let_go(release, counters[RELEASES] + count - i, now + jobs[slot, PLANNED], slot)


@part
def _gather_plan(
    counters: Integers, numbers: Floats, jobs: Floats, order: Floats, plan: Floats
) -> None:
    """Write slots with reservations and their starts, in queue order; no job keeps one."""
    found, planned = 0, 0
    for i in range(counters[WAITING]):
        if found >= numbers[MOST_RESERVED]:
            break
        slot = int(order[i, QUEUE])
        start = jobs[slot, RESERVATION]
        if math.isnan(start):
            continue
        found += 1
        jobs[slot, RESERVATION] = math.nan
        if math.isfinite(start):
            plan[planned, 0] = slot
            plan[planned, 1] = start
            planned += 1
    counters[RESERVED] = planned


@bare_kernel
def fill_order(now: float, places: Floats) -> None:
    """Put all slots into their places, none of which is there yet; all wait, aged ones first."""
    at = queue_at(places)
    jobs, order, counters = at.jobs, at.order, at.counters
    for slot in range(counters[SLOTS]):
        _hope(at, slot, now)
        begin_to_wait(jobs, at.kinds, counters, slot)
        if jobs[slot, AGED] != 0.0:
            due, waiting = jobs[slot, DUE], counters[WAITING]
            place = place_after(order, QUEUE, 0, waiting, due, slot)
            enter(order, QUEUE, waiting, place, due, slot)
            enter(order, CANDIDATE, waiting, place, due, slot)
            counters[WAITING] += 1
        elif jobs[slot, DUE] != math.inf:
            fall_due(jobs, at.dues, counters, slot)
    counters[AGED_FIRST] = counters[WAITING]
    for slot in range(counters[SLOTS]):
        if jobs[slot, AGED] == 0.0:
            order[counters[WAITING], QUEUE] = order[counters[WAITING], CANDIDATE] = slot
            counters[WAITING] += 1
    sort_all(at, now)


@unlocked_kernel
def pass_over(now: float, soonest: float, free: float, changed: int, places: Floats) -> int:
    """Make the first ``changed`` changes and run the pass; returns how many slots are to start.

    No running job is expected to end before ``soonest`` (seconds), which is after ``now``; the
    counter ROOM_CAME is set. ``starts`` is filled with these, the plan with a row of slot and
    planned start (seconds) for each of the counted reservations.
    """
    at = queue_at(places)
    changes, counters = float_rows_at(places, AT_CHANGES), at.counters
    for i in range(changed):
        _change(at, changes[i], now)
    _keep_late_ones(at.release, counters[RELEASES], soonest)
    counters[RESERVED] = 0
    if counters[WAITING] == 0:
        return 0
    bring_into_order(at, now)
    count = run_pass(at, now, free)
    _take_back_starts(now, count, counters, at.jobs, at.release, at.starts)
    _gather_plan(counters, at.numbers, at.jobs, at.order, float_rows_at(places, AT_PLAN))
    return count


@part
def _copy_present(order: Floats, column: int, waiting: int, jobs: Floats, copy: Floats) -> int:
    """Copy the rows of an order whose jobs wait; returns how many."""
    present = 0
    for i in range(waiting):
        if jobs[int(order[i, column]), WAITS] != 0.0:
            copy[present, column - 1] = order[i, column - 1]
            copy[present, column] = order[i, column]
            present += 1
    return present


@merged_part
def _mark(at: WaitingQueue, started: int, absent: Integers, waits: float) -> None:
    """Note whether those wait that have started, or are absent."""
    for i in range(started):
        at.jobs[at.starts[i], WAITS] = waits
    for i in range(absent.shape[0]):
        at.jobs[absent[i], WAITS] = waits


@bare_kernel
def pass_again(
    now: float, free: float, started: int, absent: Integers, order: Floats, places: Floats
) -> int:
    """Run the pass again at the moment of ``pass_over``; returns how many slots more are to start.

    The first ``started`` of ``starts`` run by now, on some of the ``free`` cpus, and ``absent``
    slots do not wait here. What starts is put behind the former; the plan is that of this pass.
    ``order`` is room for as many rows as the order table has. Nothing else is changed in the end.
    """
    at = queue_at(places)
    jobs, release, counters, more = at.jobs, at.release, at.counters, at.starts[started:]
    waiting, aged, releases = counters[WAITING], counters[AGED_FIRST], counters[RELEASES]
    due_from = counters[DUE_FROM]
    # Make the tables those of the moment after the starts, run, and put everything back.
    _mark(at, started, absent, 0.0)
    for i in range(started):
        slot = at.starts[i]
        free -= jobs[slot, WIDTH]
        hold(release, releases + i, now + jobs[slot, PLANNED], jobs[slot, WIDTH], slot)
    for i in range(aged):
        counters[AGED_FIRST] -= jobs[int(at.order[i, QUEUE]), WAITS] == 0.0
    counters[WAITING] = _copy_present(at.order, QUEUE, waiting, jobs, order)
    if at.numbers[ONE_ORDER] == 0.0:
        _copy_present(at.order, CANDIDATE, waiting, jobs, order)
    counters[RELEASES] += started
    counters[RESERVED] = 0
    count = 0
    if counters[WAITING] > 0:
        present = WaitingQueue(
            jobs,
            at.specs,
            at.summaries,
            order,
            at.dues,
            release,
            at.kinds,
            counters,
            at.numbers,
            more,
        )
        count = run_pass(present, now, free)
        _take_back_starts(now, count, counters, jobs, release, more)
        _gather_plan(counters, at.numbers, jobs, order, float_rows_at(places, AT_PLAN))
    for i in range(started):
        slot = at.starts[i]
        let_go(release, releases + started - i, now + jobs[slot, PLANNED], slot)
    _mark(at, started, absent, 1.0)
    counters[WAITING], counters[AGED_FIRST], counters[RELEASES] = waiting, aged, releases
    counters[DUE_FROM] = due_from
    return count


@bare_kernel
def find_changed_codes(free: float, behind: int, started: int, places: Floats) -> int:
    """Find waiting jobs whose code is not the one in the codes, which then is.

    ``free`` cpus are left once the first ``started`` of ``starts`` run; ``behind`` is the code of
    jobs that would fit. Fills in their slots and codes, but for those that start, and the
    number of cpus of each, or of jobs before it (BEHIND); returns how many.
    """
    at = queue_at(places)
    counters, jobs, order, starts = at.counters, at.jobs, at.order, at.starts
    plan, codes = float_rows_at(places, AT_PLAN), integers_at(places, AT_CODES)
    changed_slots = integers_at(places, AT_CHANGED_SLOTS)
    changed_codes = integers_at(places, AT_CHANGED_CODES)
    numbers = floats_at(places, AT_OWN_NUMBERS)
    # Reservations are written into the rows for the loop, and wiped out in it.
    for i in range(counters[RESERVED]):
        jobs[int(plan[i, 0]), RESERVATION] = plan[i, 1]
    for i in range(started):
        jobs[starts[i], RESERVATION] = -math.inf
    found, gone = 0, 0
    for i in range(counters[WAITING]):
        slot = int(order[i, QUEUE])
        code = NO_ROOM if jobs[slot, WIDTH] > free else behind
        if not math.isnan(jobs[slot, RESERVATION]):
            code = STARTED if jobs[slot, RESERVATION] == -math.inf else RESERVED_LATER
            gone += code == STARTED
            jobs[slot, RESERVATION] = math.nan
        if at.numbers[IS_GUARDED] != 0.0 and jobs[slot, AGED] != 0.0 and code != STARTED:
            code = GOES_FIRST if code == RESERVED_LATER else AMONG_FIRST
        if codes[slot] not in (code, MUTE):
            codes[slot] = code
            if code == STARTED:
                continue
            changed_slots[found] = slot
            changed_codes[found] = code
            numbers[found] = i - gone if code == BEHIND else jobs[slot, WIDTH]
            found += 1
    return found
