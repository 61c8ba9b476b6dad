"""The queue of a machine as tables: jobs enter, age, inform, leave, and passes go over them.

There is one of it for every way to run jobs: the compiled replay drives it in bulk
(``foresail.simulator.kernels.replay_loop``), the event engine brings it up to date by what has
changed before each pass (from ``ENTERS`` on). What such a pass does to the tables is taken back:
whether any job starts is for others to say. Slots ascend in order of arrival.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import types

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.borrowed import PLACE, arrays_at, move_rows
from foresail.kernels.columns import CPUS, PER_CPU, Q50, REQUESTED, SUBMIT
from foresail.kernels.compile import (
    Step,
    bare_kernel,
    bare_step,
    merged_part,
    part,
    unlocked_kernel,
)
from foresail.kernels.expression import STACK_DEPTH, evaluate
from foresail.kernels.steps import (
    CompiledScheduler,
    PassInputs,
    call_pass_step,
    step_address,
    step_caller,
)
from foresail.kernels.waiting_jobs import (
    CANDIDATE,
    DUE,
    EXPECTED_END,
    HOLDER,
    LATEST,
    LIKELY,
    ORDER_COLUMNS,
    PASS_COLUMNS,
    PLANNED,
    QUEUE,
    QUEUE_KEY,
    RESERVATION,
    SUBMITTED,
    WIDTH,
    advance,
    close_gaps,
    columns_of,
    enter,
    hold,
    is_gap,
    leave,
    leave_gap,
    let_go,
    next_gap,
    place_after,
    show,
    sort,
)
from foresail.model.distribution import Floats, Integers

WAITS: Final = PASS_COLUMNS
AGED: Final = PASS_COLUMNS + 1
INFORMS: Final = PASS_COLUMNS + 2
KIND: Final = PASS_COLUMNS + 3
NEXT_OF_KIND: Final = PASS_COLUMNS + 4
QUEUE_RANK: Final = PASS_COLUMNS + 5
CANDIDATE_RANK: Final = PASS_COLUMNS + 6
JOB_COLUMNS: Final = PASS_COLUMNS + 7
"""A job's row, behind what a pass needs: 1 while it waits; 1 for one that goes first because it is
due; how many waiting jobs it would inform; its kind, and the next slot of the same kind; its keys
in the orders. Further columns are the engine's."""

OF_KIND_WAITING: Final = 0
OF_KIND_RUNNING: Final = 1
FIRST_OF_KIND: Final = 2
LAST_OF_KIND: Final = 3
PROBE: Final = 4
IS_TOUCHED: Final = 5
TOUCHED_KIND: Final = 6
KIND_COLUMNS: Final = 7
"""Jobs of the same user and request are a kind, so that one of them can be the probe of the others:
how many wait and run, the slots that wait the longest and the shortest, the one that informs the
others, or -1. TOUCHED_KIND is not about the row: the column lists kinds to look at again."""

WAITING: Final = 0
RELEASES: Final = 1
SLOTS: Final = 2
AGED_FIRST: Final = 3
DUE_FROM: Final = 4
DUE_UNTIL: Final = 5
TOUCHED: Final = 6
GONE: Final = 7
ROOM_CAME: Final = 8
RESERVED: Final = 9
EVER_AGED: Final = 10
GAPS: Final = 11
LEAVES_GAPS: Final = 12
FRONT: Final = 13
COUNTERS: Final = 14
"""Counts of jobs that wait, hold cpus, and have ever come; of places in front that are of those
that go first because they are due; the rows of ``dues`` that are still to come; how many kinds are
to be looked at again; how many that hold cpus are expected to have ended; 1 if room may have come
since the last pass; how many reservations that made, where it is taken back; how many have ever
been due; how many places are gaps; 1 where there may be some, in the only order; how many in front
are, at least. Further counters are the engine's."""

DUE_COLUMNS: Final = 2
"""A row of the dues, in order of time: QUEUE_KEY is when (seconds), QUEUE the slot."""

PASS: Final = 0
ONE_ORDER: Final = 1
AGE_LIMIT: Final = 2
IS_GUARDED: Final = 3
QUEUE_MOVES: Final = 4
CANDIDATES_MOVE: Final = 5
QUEUE_FOLLOWS: Final = 6
CANDIDATES_FOLLOW: Final = 7
MOST_RESERVED: Final = 8
FOLLOW_PROBES: Final = 9
SORT_MOVING: Final = 10
NOW: Final = 11
HELD_FIRST: Final = 12
STACK: Final = 13
PARTS: Final = STACK + STACK_DEPTH
QUEUE_PROGRAM: Final = PARTS
CANDIDATES_PROGRAM: Final = PARTS + 2
PLAN_PROGRAM: Final = PARTS + 4
PASS_PARAMETERS: Final = PARTS + 6
NUMBERS: Final = PARTS + 8
"""The vector of numbers: the pass's address; whether candidates are in queue order; the limit of
age (seconds); whether jobs are due by what EASY would have done; whether orders change with time,
or with who waits and runs; how many reservations a pass makes at most; addresses of QUEUE_STEPs (0
for those that the policy does not need); the time; cpus that jobs hold which were due when they
started; room for ``evaluate``; where in the vector
programs and parameters begin and end."""


class WaitingQueue(NamedTuple):
    """Jobs that wait, in the orders of a policy, and the expected ends of those that run.

    ``specs`` and ``summaries`` (``foresail.kernels.columns``) have a row per slot, as ``jobs``;
    ``starts`` is room for slots.
    """

    jobs: Floats
    specs: Floats
    summaries: Floats
    order: Floats
    dues: Floats
    release: Floats
    kinds: Integers
    counters: Integers
    numbers: Floats
    starts: Integers


_M = types.float64[:, ::1]
_T = types.float64[::1, :]
_I = types.int64[::1]
WAITING_QUEUE = types.NamedTuple(
    (_T, _M, _M, _T, _T, _M, types.int64[:, ::1], _I, types.float64[::1], _I), WaitingQueue
)
QUEUE_STEP = types.void(WAITING_QUEUE)
"""Steps of a queue that only some policies need, compiled when one of these is used."""

_call_queue_step = step_caller(QUEUE_STEP)


@part
def value_of(
    numbers: Floats, program: int, spec: Floats, summary: Floats, now: float, informs: float
) -> float:
    """Return what one of the policy's programs says of a job."""
    code = numbers[int(numbers[program]) : int(numbers[program + 1])]
    stack = numbers[STACK : STACK + STACK_DEPTH]
    return evaluate(code, stack, spec, summary, now, informs)


@part
def hope(jobs: Floats, summaries: Floats, slot: int) -> None:
    """Note the runtime that a bold pass may hope for: the median, or infinite if there is none."""
    median = summaries[slot, Q50]
    jobs[slot, LIKELY] = math.inf if math.isnan(median) else median


@merged_part
def _key(at: WaitingQueue, column: int, slot: int, now: float) -> float:
    """A job's key in the queue, or among the candidates."""
    program = QUEUE_PROGRAM if column == QUEUE else CANDIDATES_PROGRAM
    informs = at.jobs[slot, INFORMS]
    return value_of(at.numbers, program, at.specs[slot], at.summaries[slot], now, informs)


@part
def places_of(counters: Integers) -> int:
    """Return how many places there are, gaps among them."""
    return int(counters[WAITING] + counters[GAPS])


@part
def move_up(order: Floats, counters: Integers) -> None:
    """Close all gaps."""
    aged = 0
    for i in range(counters[AGED_FIRST]):
        aged += not is_gap(order, QUEUE, i)
    close_gaps(order, QUEUE, 0, places_of(counters))
    counters[AGED_FIRST] = aged
    counters[GAPS] = counters[FRONT] = 0


@part
def _place_behind_aged(
    jobs: Floats, order: Floats, counters: Integers, column: int, slot: int
) -> int:
    """Return where a job is that has not aged."""
    key = jobs[slot, QUEUE_RANK if column == QUEUE else CANDIDATE_RANK]
    return place_after(order, column, counters[AGED_FIRST], places_of(counters), key, slot)


@part
def _put(
    jobs: Floats, order: Floats, counters: Integers, column: int, slot: int, key: float
) -> None:
    """Put a job into its place behind the aged ones."""
    if counters[GAPS] > 0 and places_of(counters) + 1 == order.shape[0]:
        move_up(order, counters)
    gap = places = places_of(counters)
    jobs[slot, QUEUE_RANK if column == QUEUE else CANDIDATE_RANK] = key
    place = place_after(order, column, counters[AGED_FIRST], places, key, slot)
    counters[FRONT] = min(counters[FRONT], place)
    if counters[GAPS] > 0:
        gap = next_gap(order, column, place, places)
        counters[GAPS] -= gap < places
    enter(order, column, gap, place, key, slot)
    show(order, column, place, jobs)


@part
def _take(jobs: Floats, order: Floats, counters: Integers, column: int, slot: int) -> None:
    """Take a job out of its place."""
    place = _place_behind_aged(jobs, order, counters, column, slot)
    if jobs[slot, AGED] != 0.0:
        place = place_after(order, column, 0, counters[AGED_FIRST], jobs[slot, DUE], slot)
    if counters[LEAVES_GAPS] != 0:
        leave_gap(order, column, place)
        counters[GAPS] += 1
    else:
        leave(order, column, place, counters[WAITING])


@merged_part
def take_place(at: WaitingQueue, slot: int, now: float) -> None:
    """Put a job that is not aged into the orders."""
    _put(at.jobs, at.order, at.counters, QUEUE, slot, _key(at, QUEUE, slot, now))
    if at.numbers[ONE_ORDER] == 0.0:
        _put(at.jobs, at.order, at.counters, CANDIDATE, slot, _key(at, CANDIDATE, slot, now))
    at.counters[WAITING] += 1


@part
def give_up_place(
    jobs: Floats, order: Floats, counters: Integers, numbers: Floats, slot: int
) -> None:
    """Take a job out of the orders."""
    _take(jobs, order, counters, QUEUE, slot)
    if numbers[ONE_ORDER] == 0.0:
        _take(jobs, order, counters, CANDIDATE, slot)
    if jobs[slot, AGED] != 0.0 and counters[LEAVES_GAPS] == 0:
        counters[AGED_FIRST] -= 1
    counters[WAITING] -= 1


@part
def _show_again(
    jobs: Floats, order: Floats, counters: Integers, numbers: Floats, slot: int
) -> None:
    """Let the places of an aged job say what is believed of it now."""
    for column in (QUEUE, CANDIDATE):
        if column == QUEUE or numbers[ONE_ORDER] == 0.0:
            place = place_after(order, column, 0, counters[AGED_FIRST], jobs[slot, DUE], slot)
            show(order, column, place, jobs)


@part
def touch(kinds: Integers, counters: Integers, kind: int) -> None:
    """Look at a kind again before the next pass."""
    if kinds[kind, IS_TOUCHED] == 0:
        kinds[kind, IS_TOUCHED] = 1
        kinds[counters[TOUCHED], TOUCHED_KIND] = kind
        counters[TOUCHED] += 1


@part
def begin_to_wait(jobs: Floats, kinds: Integers, counters: Integers, slot: int) -> None:
    """Count a job that has come among those of its kind."""
    jobs[slot, WAITS] = 1.0
    kind = int(jobs[slot, KIND])
    kinds[kind, OF_KIND_WAITING] += 1
    if kinds[kind, FIRST_OF_KIND] < 0:
        kinds[kind, FIRST_OF_KIND] = slot
    if kinds[kind, LAST_OF_KIND] >= 0:
        jobs[kinds[kind, LAST_OF_KIND], NEXT_OF_KIND] = slot
    kinds[kind, LAST_OF_KIND] = slot
    touch(kinds, counters, kind)


@part
def wait_no_more(jobs: Floats, kinds: Integers, counters: Integers, slot: int) -> None:
    """Count a job that starts, or leaves, out of those of its kind that wait."""
    jobs[slot, WAITS] = 0.0
    kind = int(jobs[slot, KIND])
    kinds[kind, OF_KIND_WAITING] -= 1
    touch(kinds, counters, kind)


@part
def count_running(kinds: Integers, counters: Integers, kind: int, change: int) -> None:
    """Count a job of a kind in among those that run, or out."""
    kinds[kind, OF_KIND_RUNNING] += change
    touch(kinds, counters, kind)


@merged_part
def _reorder(at: WaitingQueue, column: int, slot: int, now: float) -> None:
    """Give a waiting job its new place in an order."""
    key = _key(at, column, slot, now)
    if key != at.jobs[slot, QUEUE_RANK if column == QUEUE else CANDIDATE_RANK]:
        _take(at.jobs, at.order, at.counters, column, slot)
        at.counters[WAITING] -= 1
        _put(at.jobs, at.order, at.counters, column, slot, key)
        at.counters[WAITING] += 1


@merged_part
def _inform(at: WaitingQueue, slot: int, informs: float, now: float) -> None:
    """Note how many jobs a waiting one would inform; orders that move are sorted anyway."""
    if at.jobs[slot, INFORMS] == informs:
        return
    at.jobs[slot, INFORMS] = informs
    if at.numbers[QUEUE_FOLLOWS] != 0.0 and at.numbers[QUEUE_MOVES] == 0.0:
        _reorder(at, QUEUE, slot, now)
    if (
        at.numbers[ONE_ORDER] == 0.0
        and at.numbers[CANDIDATES_FOLLOW] != 0.0
        and at.numbers[CANDIDATES_MOVE] == 0.0
    ):
        _reorder(at, CANDIDATE, slot, now)


@part
def _sort_again(at: WaitingQueue, column: int, now: float) -> None:
    """Evaluate an order anew; ties stay in order of arrival."""
    rank = QUEUE_RANK if column == QUEUE else CANDIDATE_RANK
    aged, waiting = at.counters[AGED_FIRST], at.counters[WAITING]
    for i in range(aged, waiting):
        slot = int(at.order[i, column])
        at.jobs[slot, rank] = _key(at, column, slot, now)
        at.order[i, column - 1] = at.jobs[slot, rank]
    sort(at.order, column, aged, waiting)
    for i in range(aged, waiting):
        show(at.order, column, i, at.jobs)


@part
def _sort_all(at: WaitingQueue, now: float) -> None:
    """Evaluate all orders anew."""
    if at.counters[GAPS] > 0:
        move_up(at.order, at.counters)
    _sort_again(at, QUEUE, now)
    if at.numbers[ONE_ORDER] == 0.0:
        _sort_again(at, CANDIDATE, now)


@part
def _leave_gaps(at: WaitingQueue, column: int, slots: Integers, count: int) -> int:
    """Let jobs that have not aged leave their places; returns how many, each slot once."""
    left, place, last = 0, 0, places_of(at.counters)
    for i in range(count):
        slot, place = slots[i], place + 1  # alike ones follow one another
        if place >= last or at.order[place, column] != slot:
            place = _place_behind_aged(at.jobs, at.order, at.counters, column, slot)
        if not is_gap(at.order, column, place):
            leave_gap(at.order, column, place)
            slots[left] = slot
            left += 1
    return left


@part
def _place_anew(at: WaitingQueue, column: int, slots: Integers, now: float) -> None:
    """Put jobs that have left gaps behind the aged ones into new places, in one go over these."""
    jobs, order, counters = at.jobs, at.order, at.counters
    rank = QUEUE_RANK if column == QUEUE else CANDIDATE_RANK
    aged, count = counters[AGED_FIRST], slots.size
    before = close_gaps(order, column, aged, places_of(counters))
    counters[GAPS] = before + count - counters[WAITING]  # among the aged
    counters[FRONT] = min(counters[FRONT], aged)
    for i in range(count):
        slot = slots[i]
        jobs[slot, rank] = _key(at, column, slot, now)
        order[before + i, column - 1] = jobs[slot, rank]
        order[before + i, column] = slot
    sort(order, column, before, before + count)
    for i in range(count):
        slots[i] = int(order[before + i, column])
    for i in range(count - 1, -1, -1):  # the last of them first; what belongs behind it moves up
        slot, key = slots[i], jobs[slots[i], rank]
        place = place_after(order, column, max(aged, before - 1), before, key, slot)
        if place < before:  # else as of those that are alike
            place = place_after(order, column, aged, place, key, slot)
        for moved in columns_of(order, column):
            move_rows(order, moved, place, before, place + i + 1)
        before = place
        order[place + i, column - 1] = key
        order[place + i, column] = slot
        show(order, column, place + i, jobs)


@part
def place_all_anew(at: WaitingQueue, slots: Integers, now: float) -> None:
    """Give jobs that have left their places in the queue, for others, new ones in all orders."""
    _place_anew(at, QUEUE, slots, now)
    if at.numbers[ONE_ORDER] == 0.0:
        _leave_gaps(at, CANDIDATE, slots, slots.size)
        _place_anew(at, CANDIDATE, slots, now)


@part
def _wanted_probe(jobs: Floats, kinds: Integers, kind: int) -> int:
    """The oldest waiting job of a kind of which none runs, or -1."""
    first = kinds[kind, FIRST_OF_KIND]
    while first >= 0 and jobs[first, WAITS] == 0.0:
        first = int(jobs[first, NEXT_OF_KIND])
    kinds[kind, FIRST_OF_KIND] = first
    if first < 0:
        kinds[kind, LAST_OF_KIND] = -1
        return -1
    if jobs[first, AGED] != 0.0 or kinds[kind, OF_KIND_RUNNING] > 0:
        return -1
    return int(first)


@merged_part
def _choose_probes(at: WaitingQueue, now: float) -> None:
    """The oldest waiting job of a kind of which none runs informs all that wait."""
    jobs, kinds, counters = at.jobs, at.kinds, at.counters
    while counters[TOUCHED] > 0:
        counters[TOUCHED] -= 1
        kind = kinds[counters[TOUCHED], TOUCHED_KIND]
        kinds[kind, IS_TOUCHED] = 0
        wanted = _wanted_probe(jobs, kinds, kind)
        old = kinds[kind, PROBE]
        waits = old >= 0 and jobs[old, WAITS] != 0.0 and jobs[old, AGED] == 0.0
        if waits and old != wanted:
            _inform(at, old, 1.0, now)
        kinds[kind, PROBE] = wanted
        if wanted >= 0:
            _inform(at, wanted, float(kinds[kind, OF_KIND_WAITING]), now)


@part
def _count_gone(at: WaitingQueue, change: int) -> None:
    """Count the jobs that are expected to be gone by now out of their kinds, or in again."""
    for i in range(at.counters[GONE]):
        kind = int(at.jobs[int(at.release[i, HOLDER]), KIND])
        count_running(at.kinds, at.counters, kind, change)


@bare_step(QUEUE_STEP)
def follow_probes(at: WaitingQueue) -> None:
    """Bring probes up to now; what is expected to be gone by now does not run."""
    _count_gone(at, -1)
    _choose_probes(at, at.numbers[NOW])
    _count_gone(at, 1)


@bare_step(QUEUE_STEP)
def sort_moving(at: WaitingQueue) -> None:
    """Evaluate orders that change with time anew."""
    if at.numbers[QUEUE_MOVES] != 0.0:
        _sort_again(at, QUEUE, at.numbers[NOW])
    if at.numbers[CANDIDATES_MOVE] != 0.0 and at.numbers[ONE_ORDER] == 0.0:
        _sort_again(at, CANDIDATE, at.numbers[NOW])


@part
def fall_due(jobs: Floats, dues: Floats, counters: Integers, slot: int) -> None:
    """Enter a waiting job among those that will be due."""
    due, until = jobs[slot, DUE], counters[DUE_UNTIL]
    place = place_after(dues, QUEUE, counters[DUE_FROM], until, due, slot)
    enter(dues, QUEUE, until, place, due, slot)
    counters[DUE_UNTIL] += 1


@part
def next_due(jobs: Floats, dues: Floats, counters: Integers) -> int:
    """The slot that is due next of those that wait, or -1; others are skipped for ever.

    A job may have two rows: it came and fell due between two passes.
    """
    while counters[DUE_FROM] < counters[DUE_UNTIL]:
        slot = int(dues[counters[DUE_FROM], QUEUE])
        if jobs[slot, WAITS] != 0.0 and jobs[slot, AGED] == 0.0:
            return slot
        counters[DUE_FROM] += 1
    return -1


@part
def _take_due(at: WaitingQueue, now: float) -> None:
    """Jobs that are due by now go first, in order of due times."""
    jobs, counters = at.jobs, at.counters
    while True:
        slot = next_due(jobs, at.dues, counters)
        if slot < 0 or at.dues[counters[DUE_FROM], QUEUE_KEY] > now:
            return
        counters[DUE_FROM] += 1
        due, aged = jobs[slot, DUE], counters[AGED_FIRST]
        place = place_after(at.order, QUEUE, 0, aged, due, slot)
        counters[FRONT] = min(counters[FRONT], place)
        own = _place_behind_aged(jobs, at.order, counters, QUEUE, slot)
        gap = advance(at.order, QUEUE, own, place, due)
        if at.numbers[ONE_ORDER] == 0.0:
            own = _place_behind_aged(jobs, at.order, counters, CANDIDATE, slot)
            gap = advance(at.order, CANDIDATE, own, place, due)
        jobs[slot, AGED] = 1.0
        counters[EVER_AGED] += 1
        counters[AGED_FIRST] += gap >= aged
        touch(at.kinds, counters, int(jobs[slot, KIND]))


@merged_part
def bring_into_order(at: WaitingQueue, now: float) -> None:
    """Bring ages, probes and orders up to now."""
    numbers = at.numbers
    numbers[NOW] = now
    _take_due(at, now)
    if numbers[FOLLOW_PROBES] != 0.0:
        _call_queue_step(numbers[FOLLOW_PROBES], at)
    if numbers[SORT_MOVING] != 0.0:
        _call_queue_step(numbers[SORT_MOVING], at)


@merged_part
def run_pass(at: WaitingQueue, now: float, free: float) -> int:
    """Let the scheduler decide about ``free`` cpus; returns how many slots ``starts`` holds."""
    numbers, gone = at.numbers, at.counters[GONE]
    guarded = -1
    if numbers[IS_GUARDED] != 0.0:
        guarded = next_due(at.jobs, at.dues, at.counters)
    # Gaps in front are passed once: behind a head that starts there may be many.
    places = places_of(at.counters)
    while at.counters[FRONT] < places and is_gap(at.order, QUEUE, at.counters[FRONT]):
        at.counters[FRONT] += 1
    inputs = PassInputs(
        now,
        free,
        places,
        at.counters[RELEASES] - gone,
        at.order,
        QUEUE if numbers[ONE_ORDER] != 0.0 else CANDIDATE,
        at.counters[AGED_FIRST],
        guarded,
        at.counters[ROOM_CAME],
        at.jobs,
        at.release[gone:],
        numbers[int(numbers[PASS_PARAMETERS]) : int(numbers[PASS_PARAMETERS + 1])],
        at.starts,
        at.counters[FRONT],
        numbers[HELD_FIRST],
    )
    return int(call_pass_step(numbers[PASS], inputs))


def follows_probes(scheduler: CompiledScheduler) -> bool:
    """Return whether an order depends on which other jobs wait and run."""
    return scheduler.queue.follows_probes or scheduler.candidates.follows_probes


def steps_for(scheduler: CompiledScheduler) -> tuple[Step, ...]:
    """Return what a queue needs for such a policy beside what all need."""
    return (
        *([follow_probes] if follows_probes(scheduler) else []),
        *([sort_moving] if _moves(scheduler) else []),
        scheduler.one_pass,
    )


def _moves(scheduler: CompiledScheduler) -> bool:
    return scheduler.queue.changes_with_time or scheduler.candidates.changes_with_time


def policy_numbers(scheduler: CompiledScheduler) -> Floats:
    """The vector of numbers of a policy."""
    parts = (
        scheduler.queue.code,
        scheduler.candidates.code,
        scheduler.plan.code,
        scheduler.parameters,
    )
    numbers = np.zeros(NUMBERS + sum(part.size for part in parts))
    numbers[PASS] = step_address(scheduler.one_pass)
    numbers[ONE_ORDER] = scheduler.candidates is scheduler.queue
    numbers[AGE_LIMIT] = scheduler.age_limit_seconds
    numbers[IS_GUARDED] = scheduler.shares is not None
    numbers[QUEUE_MOVES] = scheduler.queue.changes_with_time
    numbers[CANDIDATES_MOVE] = scheduler.candidates.changes_with_time
    numbers[QUEUE_FOLLOWS] = scheduler.queue.follows_probes
    numbers[CANDIDATES_FOLLOW] = scheduler.candidates.follows_probes
    numbers[MOST_RESERVED] = scheduler.most_reserved
    if follows_probes(scheduler):
        numbers[FOLLOW_PROBES] = step_address(follow_probes)
    if _moves(scheduler):
        numbers[SORT_MOVING] = step_address(sort_moving)
    begin = NUMBERS
    for place, part_of_it in zip(range(PARTS, NUMBERS, 2), parts, strict=True):
        numbers[place : place + 2] = begin, begin + part_of_it.size
        numbers[begin : begin + part_of_it.size] = part_of_it
        begin += part_of_it.size
    return numbers


def blank_jobs(slots: int, columns: int = JOB_COLUMNS) -> Floats:
    """Rows of jobs that are still to come."""
    jobs = np.zeros((slots, columns), order="F")
    jobs[:, RESERVATION] = math.nan
    jobs[:, [DUE, LATEST]] = math.inf
    jobs[:, NEXT_OF_KIND] = -1.0
    jobs[:, INFORMS] = 1.0
    return jobs


def blank_order(places: int) -> Floats:
    """An order with so many places."""
    return np.zeros((places, ORDER_COLUMNS), order="F")


def blank_kinds(kinds: int) -> Integers:
    """Rows of kinds without a job."""
    rows = np.zeros((kinds, KIND_COLUMNS), np.int64)
    rows[:, [FIRST_OF_KIND, LAST_OF_KIND, PROBE]] = -1
    return rows


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
HOLDS_FIRST: Final = 4
PLANS: Final = 2
WANTED_CPUS: Final = 3
ARRIVES: Final = 4
LIMIT: Final = 5
OF_KIND: Final = 6
BELIEVES: Final = 7
CHANGE_COLUMNS: Final = 8
"""A row per change: one of the above; the slot of a waiting job (BELIEVED: its prediction is
another one; FALLS_DUE: it is known now when it is due), the holder of a running one, or the kind of
one (RUNS, RUNS_NO_MORE); expected end (seconds) and cpus of a running job, and those of them that
count as held by one that was due when it started; or the runtime planned
with (seconds) and cpus of a waiting one. Of one that enters: when it was submitted, its limit
(seconds), its kind, and the number that is believed in, if it is one (else the summary row is
written already, and this is nan). A holder is a negative number, so that no slot is one."""

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
"""Reasons for which a job waits, as far as they may differ from pass to pass. The last two are of
jobs that are due by what EASY would have done: GOES_FIRST has a reservation. MUTE: others report
the job. LACKS (put there by others): enough cpus are free, too little memory or too few gpus."""


class _Reported(NamedTuple):
    """Arrays that lie behind those of a queue in ``foresail.kernels.borrowed.Places``.

    Changes to be made, and a row of slot and planned start (seconds) for each reservation that a
    pass has made. Codes by slot; slots and codes that have changed, and a number of each.
    """

    changes: Floats
    plan: Floats
    codes: Integers
    changed_slots: Integers
    changed_codes: Integers
    own_numbers: Floats


_queue_at: Final = arrays_at(WAITING_QUEUE)
_reported_at: Final = arrays_at(
    types.NamedTuple((_M, _M, _I, _I, _I, types.float64[::1]), _Reported)
)
BESIDE_QUEUE: Final = len(WaitingQueue._fields) * PLACE
"""Begin of the numbers of what is ``_Reported``."""


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
    if what == LEAVES:
        give_up_place(jobs, order, counters, at.numbers, who)
    if what == ENTERS:
        _specify(at, change)  # one that enters has not aged
        jobs[who, PLANNED] = change[PLANS]
        hope(jobs, at.summaries, who)
        take_place(at, who, now)
        begin_to_wait(jobs, kinds, counters, who)
        counters[SLOTS] = max(counters[SLOTS], who + 1)
    if what == FALLS_DUE or (what == ENTERS and jobs[who, DUE] != math.inf):
        fall_due(jobs, at.dues, counters, who)
    elif what == LEAVES:
        wait_no_more(jobs, kinds, counters, who)
    elif what == HOLDS:
        hold(at.release, counters[RELEASES], change[END], change[CPUS_HELD], who)
        counters[RELEASES] += 1
        at.numbers[HELD_FIRST] += change[HOLDS_FIRST]
    elif what == LETS_GO:
        let_go(at.release, counters[RELEASES], change[END], who)
        counters[RELEASES] -= 1
        at.numbers[HELD_FIRST] -= change[HOLDS_FIRST]
    elif what == RUNS:
        count_running(kinds, counters, who, 1)
    elif what == RUNS_NO_MORE:
        count_running(kinds, counters, who, -1)


@merged_part
def _believe(at: WaitingQueue, changes: Floats, now: float) -> int:
    """Make the first changes, as far as they are of beliefs; returns how many these are."""
    count, moved, most = 0, 0, min(len(changes), at.starts.size)
    while count < most and changes[count, WHAT] == BELIEVED:
        slot = int(changes[count, WHO])
        hope(at.jobs, at.summaries, slot)
        count += 1
        if at.jobs[slot, AGED] != 0.0:
            _show_again(at.jobs, at.order, at.counters, at.numbers, slot)
        else:
            at.starts[moved] = slot
            moved += 1
    if moved > 0:
        moved = _leave_gaps(at, QUEUE, at.starts, moved)
        place_all_anew(at, at.starts[:moved], now)
    return count


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
    at = _queue_at(places, 0)
    jobs, order, counters = at.jobs, at.order, at.counters
    for slot in range(counters[SLOTS]):
        hope(jobs, at.summaries, slot)
        begin_to_wait(jobs, at.kinds, counters, slot)
        if jobs[slot, AGED] != 0.0:
            due, waiting = jobs[slot, DUE], counters[WAITING]
            place = place_after(order, QUEUE, 0, waiting, due, slot)
            for column in (QUEUE, CANDIDATE):
                enter(order, column, waiting, place, due, slot)
                show(order, column, place, jobs)
            counters[WAITING] += 1
        elif jobs[slot, DUE] != math.inf:
            fall_due(jobs, at.dues, counters, slot)
    counters[AGED_FIRST] = counters[WAITING]
    for slot in range(counters[SLOTS]):
        if jobs[slot, AGED] == 0.0:
            order[counters[WAITING], QUEUE] = order[counters[WAITING], CANDIDATE] = slot
            counters[WAITING] += 1
    _sort_all(at, now)


@unlocked_kernel
def pass_over(now: float, soonest: float, free: float, changed: int, places: Floats) -> int:
    """Make the first ``changed`` changes and run the pass; returns how many slots are to start.

    No running job is expected to end before ``soonest`` (seconds), which is after ``now``; the
    counter ROOM_CAME is set. ``starts`` is filled with these, the plan with a row of slot and
    planned start (seconds) for each of the counted reservations.
    """
    at = _queue_at(places, 0)
    changes, counters = _reported_at(places, BESIDE_QUEUE).changes, at.counters
    done = 0
    while done < changed:
        believed = _believe(at, changes[done:changed], now)
        if believed == 0:
            _change(at, changes[done], now)
        done += max(believed, 1)
    _keep_late_ones(at.release, counters[RELEASES], soonest)
    counters[RESERVED] = 0
    if counters[WAITING] == 0:
        return 0
    bring_into_order(at, now)
    count = run_pass(at, now, free)
    _take_back_starts(now, count, counters, at.jobs, at.release, at.starts)
    _gather_plan(counters, at.numbers, at.jobs, at.order, _reported_at(places, BESIDE_QUEUE).plan)
    return count


@part
def _copy_present(order: Floats, column: int, waiting: int, jobs: Floats, copy: Floats) -> int:
    """Copy the rows of an order whose jobs wait; returns how many."""
    present = 0
    for i in range(waiting):
        if jobs[int(order[i, column]), WAITS] != 0.0:
            for copied in columns_of(order, column):
                copy[present, copied] = order[i, copied]
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
    at = _queue_at(places, 0)
    jobs, release, counters, more = at.jobs, at.release, at.counters, at.starts[started:]
    waiting, aged, releases = counters[WAITING], counters[AGED_FIRST], counters[RELEASES]
    due_from, held_first = counters[DUE_FROM], at.numbers[HELD_FIRST]
    # Make the tables those of the moment after the starts, run, and put everything back.
    _mark(at, started, absent, 0.0)
    for i in range(started):
        slot = at.starts[i]
        free -= jobs[slot, WIDTH]
        hold(release, releases + i, now + jobs[slot, PLANNED], jobs[slot, WIDTH], slot)
        at.numbers[HELD_FIRST] += jobs[slot, WIDTH] * jobs[slot, AGED]
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
        _gather_plan(counters, at.numbers, jobs, order, _reported_at(places, BESIDE_QUEUE).plan)
    for i in range(started):
        slot = at.starts[i]
        let_go(release, releases + started - i, now + jobs[slot, PLANNED], slot)
    _mark(at, started, absent, 1.0)
    counters[WAITING], counters[AGED_FIRST], counters[RELEASES] = waiting, aged, releases
    counters[DUE_FROM], at.numbers[HELD_FIRST] = due_from, held_first
    return count


@bare_kernel
def find_changed_codes(free: float, behind: int, started: int, places: Floats) -> int:
    """Find waiting jobs whose code is not the one in the codes, which then is.

    ``free`` cpus are left once the first ``started`` of ``starts`` run; ``behind`` is the code of
    jobs that would fit. Fills in their slots and codes, but for those that start, and the
    number of cpus of each, or of jobs before it (BEHIND); returns how many.
    """
    at = _queue_at(places, 0)
    counters, jobs, order, starts = at.counters, at.jobs, at.order, at.starts
    reported = _reported_at(places, BESIDE_QUEUE)
    plan, codes = reported.plan, reported.codes
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
            reported.changed_slots[found] = slot
            reported.changed_codes[found] = code
            reported.own_numbers[found] = i - gone if code == BEHIND else jobs[slot, WIDTH]
            found += 1
    return found
