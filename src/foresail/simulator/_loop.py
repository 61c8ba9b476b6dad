"""The compiled replay's loop: the order of things, as ``control`` has it, over a few tables.

Every step of a policy (predict, correct, one scheduling pass) is called by its address; this file
knows events, the queue and the clock. ``foresail.simulator.replay`` is the way in.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from foresail.kernels.calling import (
    call_correction_step,
    call_pass_step,
    call_predictor_step,
    step_address,
    step_caller,
)
from foresail.kernels.columns import REQUESTED, SUBMIT, SUMMARY_COLUMNS, USER
from foresail.kernels.compile import Step, bare_step, entry, merged_part, part
from foresail.kernels.event_heap import HEAP_COLUMNS, TIME, heap_pop, heap_push
from foresail.kernels.expression import STACK_DEPTH, evaluate
from foresail.kernels.signatures import (
    CompiledScheduler,
    CorrectionInputs,
    PassInputs,
    PredictorInputs,
    PredictorState,
)
from foresail.kernels.waiting_jobs import (
    CANDIDATE,
    EXPECTED_END,
    HELD,
    HOLDER,
    LIKELY,
    ORDER_COLUMNS,
    PASS_COLUMNS,
    PLANNED,
    QUEUE,
    RELEASE_COLUMNS,
    RESERVATION,
    SUBMITTED,
    WIDTH,
    advance,
    drop_started,
    enter,
    hold,
    leave,
    let_go,
    place_after,
    sort,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RUNTIME: Final = PASS_COLUMNS
INITIAL: Final = PASS_COLUMNS + 1
START: Final = PASS_COLUMNS + 2
END: Final = PASS_COLUMNS + 3
EXPECTED: Final = PASS_COLUMNS + 4
CORRECTIONS: Final = PASS_COLUMNS + 5
BACKFILLED: Final = PASS_COLUMNS + 6
INFORMS: Final = PASS_COLUMNS + 7
AGED: Final = PASS_COLUMNS + 8
KIND: Final = PASS_COLUMNS + 9
NEXT_OF_KIND: Final = PASS_COLUMNS + 10
JOB_COLUMNS: Final = PASS_COLUMNS + 11
"""A job's row, behind what a pass needs: the real runtime, the runtime planned with at submission,
start and end (nan before), the expected end (seconds); how often the estimate was corrected; 1 for
a job that overtook an earlier one; how many waiting jobs it would inform; 1 for one that goes first
because of its age; its kind, and the next slot of the same kind."""

OF_KIND_WAITING: Final = 0
OF_KIND_RUNNING: Final = 1
FIRST_OF_KIND: Final = 2
LAST_OF_KIND: Final = 3
PILOT: Final = 4
IS_TOUCHED: Final = 5
TOUCHED_KIND: Final = 6
KIND_COLUMNS: Final = 7
"""Jobs of the same user and request are a kind, so that one of them can be the pilot of the others:
how many wait and run, the slots that wait the longest and the shortest, the one that informs the
others, or -1. TOUCHED_KIND is not about the row: the column lists kinds to look at again."""

WAITING: Final = 0
RELEASES: Final = 1
AGED_FIRST: Final = 2
OLDEST: Final = 3
STARTED: Final = 4
RUNNING: Final = 5
PASSES: Final = 6
CORRECTED: Final = 7
DELAYED_HEADS: Final = 8
LAST_HEAD: Final = 9
NEXT_JOB: Final = 10
FIRST_WAITING: Final = 11
LEARNED: Final = 12
TOUCHED: Final = 13
PHASE: Final = 14
PASS_DUE: Final = 15
GONE: Final = 16
COUNTERS: Final = 17

ENDS: Final = 0
EXPIRATIONS: Final = 1
SUBMISSIONS: Final = 2
PASSING: Final = 3
PAST: Final = 4
"""What is looked at within an instant, in the order of the standard conventions."""

FREE: Final = 0
PREDICT: Final = 1
NOTE_START: Final = 2
OBSERVE: Final = 3
REFRESH: Final = 4
CORRECT: Final = 5
PASS: Final = 6
ONE_ORDER: Final = 7
AGE_LIMIT: Final = 8
OLDEST_LIMIT: Final = 9
PASS_PER_EVENT: Final = 10
EXPECTED_IS_FREE: Final = 11
QUEUE_MOVES: Final = 12
CANDIDATES_MOVE: Final = 13
QUEUE_FOLLOWS: Final = 14
CANDIDATES_FOLLOW: Final = 15
NOW: Final = 16
REFRESH_ALL: Final = 17
FOLLOW_PILOTS: Final = 18
SORT_MOVING: Final = 19
STACK: Final = 20
PARTS: Final = STACK + STACK_DEPTH
QUEUE_PROGRAM: Final = PARTS
CANDIDATES_PROGRAM: Final = PARTS + 2
PLAN_PROGRAM: Final = PARTS + 4
LIKELY_PROGRAM: Final = PARTS + 6
PASS_PARAMETERS: Final = PARTS + 8
CORRECTION_PARAMETERS: Final = PARTS + 10
NUMBERS: Final = PARTS + 12
"""The vector of numbers: free cpus; addresses of steps (REFRESH: 0 for none); whether candidates
are in queue order; limits (seconds); the conventions (PASS_PER_EVENT: the order at equal times is
expired estimates, submissions, ends, and a pass follows every event; otherwise ends, expired
estimates, submissions, and one pass. EXPECTED_IS_FREE: a job whose expected end is now counts as
gone); whether orders change with time, or with who waits and runs; the time; addresses of
REPLAY_STEPs (0 for those that the policy does not need); room for ``evaluate``; where in the vector
programs and parameters begin and end."""

FEW: Final = 8
"""As many waiting jobs are put into their new places one by one; more are sorted again."""


class Replay(NamedTuple):
    """All that a replay works on.

    ``submitted`` keeps the summaries as they were at submission; ``learned`` has a flag per user
    (row 0: unknown) whose jobs have ended since the last pass; ``starts`` is room for slots.
    """

    jobs: Floats
    order: Floats
    release: Floats
    ends: Floats
    kinds: Integers
    counters: Integers
    numbers: Floats
    starts: Integers
    learned: Integers
    submitted: Floats
    specs: Floats
    model: Floats
    users: Floats
    predictions: Floats
    summaries: Floats


_M = types.float64[:, ::1]
_F = types.float64[::1]
_I = types.int64[::1]
REPLAY = types.NamedTuple(
    (_M, _M, _M, _M, types.int64[:, ::1], _I, _F, _I, _I, _M, _M, _F, _M, _M, _M), Replay
)
REPLAY_STEP = types.void(REPLAY)
"""What only some policies need of the loop, compiled when one of these is replayed."""

_call_replay_step = step_caller(REPLAY_STEP)


@part
def _value(
    numbers: Floats, program: int, spec: Floats, summary: Floats, now: float, informs: float
) -> float:
    """What one of the policy's programs says of a job."""
    code = numbers[int(numbers[program]) : int(numbers[program + 1])]
    stack = numbers[STACK : STACK + STACK_DEPTH]
    return evaluate(code, stack, spec, summary, now, informs)


@merged_part
def _key(at: Replay, column: int, slot: int, now: float) -> float:
    """A job's key in the queue, or among the candidates."""
    program = QUEUE_PROGRAM if column == QUEUE else CANDIDATES_PROGRAM
    informs = at.jobs[slot, INFORMS]
    return _value(at.numbers, program, at.specs[slot], at.summaries[slot], now, informs)


@merged_part
def _tell(at: Replay, step: int, slot: int, now: float, runtime: float) -> None:
    """Let the predictor take one of its steps."""
    inputs = PredictorInputs(
        slot, now, runtime, at.specs, at.model, at.users, at.predictions, at.summaries
    )
    call_predictor_step(at.numbers[step], inputs)


@merged_part
def _enter(at: Replay, column: int, slot: int, now: float) -> None:
    """Put a job into its place behind the aged ones."""
    waiting = at.counters[WAITING]
    key = _key(at, column, slot, now)
    place = place_after(at.order, column, at.counters[AGED_FIRST], waiting, key, slot)
    enter(at.order, column, waiting, place, key, slot)


@merged_part
def _leave(at: Replay, column: int, slot: int, key: float) -> None:
    """Take a job that is not aged out of its place."""
    leave(at.order, column, at.counters[AGED_FIRST], at.counters[WAITING], key, slot)


@part
def _touch(kinds: Integers, counters: Integers, kind: int) -> None:
    """Look at a kind again before the next pass."""
    if kinds[kind, IS_TOUCHED] == 0:
        kinds[kind, IS_TOUCHED] = 1
        kinds[counters[TOUCHED], TOUCHED_KIND] = kind
        counters[TOUCHED] += 1


@merged_part
def _move(at: Replay, column: int, slot: int, informs: float, now: float) -> None:
    """Give a waiting job that would inform another number of jobs its new place."""
    before = at.jobs[slot, INFORMS]
    old_key = _key(at, column, slot, now)
    at.jobs[slot, INFORMS] = informs
    if _key(at, column, slot, now) != old_key:
        _leave(at, column, slot, old_key)
        at.counters[WAITING] -= 1
        _enter(at, column, slot, now)
        at.counters[WAITING] += 1
    at.jobs[slot, INFORMS] = before


@merged_part
def _inform(at: Replay, slot: int, informs: float, now: float) -> None:
    """Note how many jobs a waiting one would inform; orders that move are sorted anyway."""
    if at.jobs[slot, INFORMS] == informs:
        return
    if at.numbers[QUEUE_FOLLOWS] != 0.0 and at.numbers[QUEUE_MOVES] == 0.0:
        _move(at, QUEUE, slot, informs, now)
    if (
        at.numbers[ONE_ORDER] == 0.0
        and at.numbers[CANDIDATES_FOLLOW] != 0.0
        and at.numbers[CANDIDATES_MOVE] == 0.0
    ):
        _move(at, CANDIDATE, slot, informs, now)
    at.jobs[slot, INFORMS] = informs


@part
def _sort_again(at: Replay, column: int, now: float) -> None:
    """Evaluate an order anew; ties stay in order of arrival."""
    aged, waiting = at.counters[AGED_FIRST], at.counters[WAITING]
    for i in range(aged, waiting):
        at.order[i, column - 1] = _key(at, column, int(at.order[i, column]), now)
    sort(at.order, column, aged, waiting)


@part
def _find_to_refresh(at: Replay) -> int:
    """Put waiting jobs of users whose jobs have ended into ``starts``; returns how many."""
    found = 0
    for i in range(at.counters[WAITING]):
        slot = int(at.order[i, QUEUE])
        if at.learned[int(at.specs[slot, USER]) + 1] != 0:
            at.starts[found] = slot
            found += 1
    for user in range(at.learned.shape[0]):
        at.learned[user] = 0
    at.counters[LEARNED] = 0
    return found


@bare_step(REPLAY_STEP)
def refresh_predictions(at: Replay) -> None:
    """Let the predictor change its mind about waiting jobs of users whose jobs have ended."""
    numbers, counters = at.numbers, at.counters
    now = numbers[NOW]
    two_orders = numbers[ONE_ORDER] == 0.0
    found = _find_to_refresh(at)
    moving = numbers[QUEUE_MOVES] != 0.0 or numbers[CANDIDATES_MOVE] != 0.0
    few = found <= FEW and not moving  # stale keys mark no place
    for i in range(found):
        slot = at.starts[i]
        moves = few and at.jobs[slot, AGED] == 0.0
        if moves:
            _leave(at, QUEUE, slot, _key(at, QUEUE, slot, now))
            if two_orders:
                _leave(at, CANDIDATE, slot, _key(at, CANDIDATE, slot, now))
            counters[WAITING] -= 1
        _tell(at, REFRESH, slot, now, math.nan)
        at.jobs[slot, LIKELY] = _value(
            numbers, LIKELY_PROGRAM, at.specs[slot], at.summaries[slot], now, at.jobs[slot, INFORMS]
        )
        if moves:
            _enter(at, QUEUE, slot, now)
            if two_orders:
                _enter(at, CANDIDATE, slot, now)
            counters[WAITING] += 1
    if not few:
        _sort_again(at, QUEUE, now)
        if two_orders:
            _sort_again(at, CANDIDATE, now)


@part
def _wanted_pilot(jobs: Floats, kinds: Integers, kind: int) -> int:
    """The oldest waiting job of a kind of which none runs, or -1."""
    first = kinds[kind, FIRST_OF_KIND]
    while first >= 0 and not math.isnan(jobs[first, START]):
        first = int(jobs[first, NEXT_OF_KIND])
    kinds[kind, FIRST_OF_KIND] = first
    if first < 0:
        kinds[kind, LAST_OF_KIND] = -1
        return -1
    if jobs[first, AGED] != 0.0 or kinds[kind, OF_KIND_RUNNING] > 0:
        return -1
    return int(first)


@merged_part
def _choose_pilots(at: Replay, now: float) -> None:
    """The oldest waiting job of a kind of which none runs informs all that wait."""
    jobs, kinds, counters = at.jobs, at.kinds, at.counters
    while counters[TOUCHED] > 0:
        counters[TOUCHED] -= 1
        kind = kinds[counters[TOUCHED], TOUCHED_KIND]
        kinds[kind, IS_TOUCHED] = 0
        wanted = _wanted_pilot(jobs, kinds, kind)
        old = kinds[kind, PILOT]
        waits = old >= 0 and math.isnan(jobs[old, START]) and jobs[old, AGED] == 0.0
        if waits and old != wanted:
            _inform(at, old, 1.0, now)
        kinds[kind, PILOT] = wanted
        if wanted >= 0:
            _inform(at, wanted, float(kinds[kind, OF_KIND_WAITING]), now)


@part
def _count_running(
    jobs: Floats, release: Floats, kinds: Integers, counters: Integers, gone: int, change: int
) -> None:
    """Count the jobs that are expected to be gone by now out of their kinds, or in again."""
    for i in range(gone):
        kind = int(jobs[int(release[i, HOLDER]), KIND])
        kinds[kind, OF_KIND_RUNNING] += change
        _touch(kinds, counters, kind)


@bare_step(REPLAY_STEP)
def follow_pilots(at: Replay) -> None:
    """Bring pilots up to now; what is expected to be gone by now does not run."""
    gone = at.counters[GONE]
    _count_running(at.jobs, at.release, at.kinds, at.counters, gone, -1)
    _choose_pilots(at, at.numbers[NOW])
    _count_running(at.jobs, at.release, at.kinds, at.counters, gone, 1)


@bare_step(REPLAY_STEP)
def sort_moving(at: Replay) -> None:
    """Evaluate orders that change with time anew."""
    if at.numbers[QUEUE_MOVES] != 0.0:
        _sort_again(at, QUEUE, at.numbers[NOW])
    if at.numbers[CANDIDATES_MOVE] != 0.0 and at.numbers[ONE_ORDER] == 0.0:
        _sort_again(at, CANDIDATE, at.numbers[NOW])


@part
def _grow_old(
    jobs: Floats, order: Floats, kinds: Integers, counters: Integers, numbers: Floats, now: float
) -> None:
    """Jobs past the age limit go first, in order of arrival; the oldest of all goes earlier."""
    while counters[OLDEST] < counters[NEXT_JOB]:
        slot = counters[OLDEST]
        waits = math.isnan(jobs[slot, START])
        wait = now - jobs[slot, SUBMITTED]
        oldest = counters[AGED_FIRST] == 0 and wait >= numbers[OLDEST_LIMIT]
        if waits and wait < numbers[AGE_LIMIT] and not oldest:
            break
        if waits:
            advance(order, QUEUE, counters[AGED_FIRST], slot)
            if numbers[ONE_ORDER] == 0.0:
                advance(order, CANDIDATE, counters[AGED_FIRST], slot)
            jobs[slot, AGED] = 1.0
            counters[AGED_FIRST] += 1
            _touch(kinds, counters, int(jobs[slot, KIND]))
        counters[OLDEST] += 1


@part
def _book_start(
    jobs: Floats, ends: Floats, kinds: Integers, counters: Integers, slot: int, now: float
) -> None:
    """Book a job that a pass has started; one that leaves an earlier arrival waiting overtakes."""
    while not math.isnan(jobs[counters[FIRST_WAITING], START]):
        counters[FIRST_WAITING] += 1
    job = jobs[slot]
    job[START] = now
    job[END] = now + job[RUNTIME]
    job[EXPECTED] = now + job[PLANNED]
    job[BACKFILLED] = slot != counters[FIRST_WAITING]
    heap_push(ends, counters[RUNNING], job[END], counters[STARTED], slot)
    counters[RUNNING] += 1
    counters[STARTED] += 1
    kind = int(job[KIND])
    kinds[kind, OF_KIND_WAITING] -= 1
    kinds[kind, OF_KIND_RUNNING] += 1
    _touch(kinds, counters, kind)


@part
def _drop_started(jobs: Floats, order: Floats, counters: Integers, numbers: Floats) -> None:
    """Take what a pass has started out of the orders."""
    aged = 0
    for i in range(counters[AGED_FIRST]):
        if jobs[int(order[i, QUEUE]), RESERVATION] != -math.inf:
            aged += 1
    drop_started(order, QUEUE, counters[WAITING], jobs)
    if numbers[ONE_ORDER] == 0.0:
        drop_started(order, CANDIDATE, counters[WAITING], jobs)
    counters[AGED_FIRST] = aged


@part
def _note_plan(
    jobs: Floats, order: Floats, counters: Integers, last_head: int, last_reservation: float
) -> None:
    """Count a pass after which the same job is still the head, and its reservation is later."""
    if counters[WAITING] == 0:
        counters[LAST_HEAD] = -1
        return
    head = int(order[0, QUEUE])
    if head == last_head and jobs[head, RESERVATION] > last_reservation:
        counters[DELAYED_HEADS] += 1
    counters[LAST_HEAD] = head


@part
def _expected_gone(release: Floats, counters: Integers, now: float) -> int:
    """How many running jobs are expected to have ended by now."""
    gone = 0
    while gone < counters[RELEASES] and release[gone, EXPECTED_END] <= now:
        gone += 1
    return gone


@merged_part
def _bring_into_order(at: Replay, now: float) -> None:
    """Bring beliefs, ages, pilots and orders up to now."""
    numbers, counters = at.numbers, at.counters
    if counters[LEARNED] > 0:
        _call_replay_step(numbers[REFRESH_ALL], at)
    _grow_old(at.jobs, at.order, at.kinds, counters, numbers, now)
    if numbers[FOLLOW_PILOTS] != 0.0:
        _call_replay_step(numbers[FOLLOW_PILOTS], at)
    if numbers[SORT_MOVING] != 0.0:
        _call_replay_step(numbers[SORT_MOVING], at)


@merged_part
def _run_pass(at: Replay, now: float) -> int:
    """Let the scheduler decide; returns how many jobs it started."""
    numbers, counters = at.numbers, at.counters
    gone = counters[GONE]
    free = numbers[FREE]
    for i in range(gone):
        free += at.release[i, HELD]
    inputs = PassInputs(
        now,
        free,
        counters[WAITING],
        counters[RELEASES] - gone,
        at.order,
        QUEUE if numbers[ONE_ORDER] != 0.0 else CANDIDATE,
        at.jobs,
        at.release[gone:],
        numbers[int(numbers[PASS_PARAMETERS]) : int(numbers[PASS_PARAMETERS + 1])],
        at.starts,
    )
    return int(call_pass_step(numbers[PASS], inputs))


@merged_part
def _schedule(at: Replay, now: float) -> None:
    """One pass, and what it starts."""
    counters = at.counters
    if counters[WAITING] == 0:
        return
    counters[PASSES] += 1
    if at.numbers[EXPECTED_IS_FREE] != 0.0:
        counters[GONE] = _expected_gone(at.release, counters, now)
    _bring_into_order(at, now)
    head = int(at.order[0, QUEUE])
    last_head = head if head == counters[LAST_HEAD] else -1
    last_reservation = at.jobs[head, RESERVATION]
    count = _run_pass(at, now)
    if count > 0:
        counters[RELEASES] += count
        for i in range(count):
            slot = at.starts[i]
            at.numbers[FREE] -= at.jobs[slot, WIDTH]
            _book_start(at.jobs, at.ends, at.kinds, counters, slot, now)
            _tell(at, NOTE_START, slot, now, math.nan)
        _drop_started(at.jobs, at.order, counters, at.numbers)
        counters[WAITING] -= count
    _note_plan(at.jobs, at.order, counters, last_head, last_reservation)


@part
def _join_kind(jobs: Floats, kinds: Integers, counters: Integers, slot: int) -> None:
    """Count a submitted job among those of its kind."""
    kind = int(jobs[slot, KIND])
    kinds[kind, OF_KIND_WAITING] += 1
    if kinds[kind, FIRST_OF_KIND] < 0:
        kinds[kind, FIRST_OF_KIND] = slot
    if kinds[kind, LAST_OF_KIND] >= 0:
        jobs[kinds[kind, LAST_OF_KIND], NEXT_OF_KIND] = slot
    kinds[kind, LAST_OF_KIND] = slot
    _touch(kinds, counters, kind)


@merged_part
def _submit(at: Replay, now: float) -> None:
    """Take the next job into the queue, with its prediction."""
    counters, numbers = at.counters, at.numbers
    slot = counters[NEXT_JOB]
    counters[NEXT_JOB] += 1
    _tell(at, PREDICT, slot, now, math.nan)
    if numbers[REFRESH] != 0.0:
        for column in range(SUMMARY_COLUMNS):
            at.submitted[slot, column] = at.summaries[slot, column]
    job, spec, summary = at.jobs[slot], at.specs[slot], at.summaries[slot]
    planned = _value(numbers, PLAN_PROGRAM, spec, summary, now, 1.0)
    job[PLANNED] = planned
    job[INITIAL] = planned
    job[LIKELY] = _value(numbers, LIKELY_PROGRAM, spec, summary, now, 1.0)
    _join_kind(at.jobs, at.kinds, counters, slot)
    _enter(at, QUEUE, slot, now)
    if numbers[ONE_ORDER] == 0.0:
        _enter(at, CANDIDATE, slot, now)
    counters[WAITING] += 1


@part
def _free_what_ended(
    jobs: Floats,
    release: Floats,
    ends: Floats,
    kinds: Integers,
    counters: Integers,
    numbers: Floats,
) -> int:
    """Take the earliest end off the heap, free its cpus; returns the slot."""
    slot = heap_pop(ends, counters[RUNNING])
    counters[RUNNING] -= 1
    let_go(release, counters[RELEASES], jobs[slot, EXPECTED], slot)
    counters[RELEASES] -= 1
    numbers[FREE] += jobs[slot, WIDTH]
    kind = int(jobs[slot, KIND])
    kinds[kind, OF_KIND_RUNNING] -= 1
    _touch(kinds, counters, kind)
    return slot


@merged_part
def _finish(at: Replay, now: float) -> None:
    """Handle the earliest end: the predictor learns, the cpus are free again."""
    slot = _free_what_ended(at.jobs, at.release, at.ends, at.kinds, at.counters, at.numbers)
    _tell(at, OBSERVE, slot, now, at.jobs[slot, RUNTIME])
    if at.numbers[REFRESH] != 0.0:
        at.learned[int(at.specs[slot, USER]) + 1] = 1
        at.counters[LEARNED] += 1


@part
def _correct(jobs: Floats, specs: Floats, summaries: Floats, numbers: Floats, slot: int) -> float:
    """The next estimate (seconds) of a running job."""
    inputs = CorrectionInputs(
        jobs[slot, INITIAL],
        jobs[slot, PLANNED],
        specs[slot, REQUESTED],
        int(jobs[slot, CORRECTIONS]),
        summaries[slot],
        numbers[int(numbers[CORRECTION_PARAMETERS]) : int(numbers[CORRECTION_PARAMETERS + 1])],
    )
    return float(call_correction_step(numbers[CORRECT], inputs))


@merged_part
def _expire(at: Replay, now: float) -> None:
    """Correct the estimates of jobs that run longer than expected until now."""
    jobs, release, counters = at.jobs, at.release, at.counters
    i = 0
    while i < counters[RELEASES] and release[i, EXPECTED_END] <= now:
        slot = int(release[i, HOLDER])
        if jobs[slot, END] <= now:
            i += 1
            continue
        estimate = _correct(jobs, at.specs, at.summaries, at.numbers, slot)
        jobs[slot, CORRECTIONS] += 1.0
        counters[CORRECTED] += 1
        expected = jobs[slot, START] + estimate
        let_go(release, counters[RELEASES], jobs[slot, EXPECTED], slot)
        hold(release, counters[RELEASES] - 1, expected, jobs[slot, WIDTH], slot)
        jobs[slot, PLANNED] = estimate
        jobs[slot, EXPECTED] = expected


@part
def _submits(specs: Floats, counters: Integers, now: float) -> bool:
    """Whether a job is submitted by now that is not in the queue yet."""
    at = counters[NEXT_JOB]
    return bool(at < specs.shape[0] and specs[at, SUBMIT] <= now)


@part
def _next_event(specs: Floats, ends: Floats, release: Floats, counters: Integers) -> float:
    """When something happens next (seconds); infinite at the end."""
    now = math.inf
    if counters[NEXT_JOB] < specs.shape[0]:
        now = specs[counters[NEXT_JOB], SUBMIT]
    if counters[RUNNING] > 0:
        now = min(now, ends[0, TIME], release[0, EXPECTED_END])
    return now


@part
def _phase_of(numbers: Floats, counters: Integers) -> int:
    """What is looked at in the present phase of an instant, by the replay's conventions."""
    phase = counters[PHASE]
    if numbers[PASS_PER_EVENT] == 0.0:
        return int(phase)
    if phase == 0:
        return EXPIRATIONS
    if phase == 1:
        return SUBMISSIONS
    return ENDS if phase == 2 else PAST


@part
def _next_action(
    specs: Floats, ends: Floats, release: Floats, counters: Integers, numbers: Floats
) -> int:
    """What is to be done next, at the time that NOW then says; PAST: nothing more."""
    while True:
        what = _phase_of(numbers, counters)
        now = numbers[NOW]
        if counters[PASS_DUE] != 0 and (what == PASSING or numbers[PASS_PER_EVENT] != 0.0):
            counters[PASS_DUE] = 0
            return PASSING
        if what == ENDS and counters[RUNNING] > 0 and ends[0, TIME] <= now:
            counters[PASS_DUE] = 1
            return ENDS
        if what == SUBMISSIONS and _submits(specs, counters, now):
            counters[PASS_DUE] = 1
            return SUBMISSIONS
        counters[PHASE] += 1
        if what == EXPIRATIONS:
            return EXPIRATIONS
        if what == PAST:
            numbers[NOW] = _next_event(specs, ends, release, counters)
            counters[PHASE] = 0
            if numbers[NOW] == math.inf:
                return PAST


@entry(REPLAY_STEP)
def replay_loop(at: Replay) -> None:
    """Run all jobs to their end; the results are in the tables."""
    while True:
        action = _next_action(at.specs, at.ends, at.release, at.counters, at.numbers)
        now = at.numbers[NOW]
        if action == PASSING:
            _schedule(at, now)
        elif action == ENDS:
            _finish(at, now)
        elif action == EXPIRATIONS:
            _expire(at, now)
        elif action == SUBMISSIONS:
            _submit(at, now)
        else:
            break


class Steps(NamedTuple):
    """Addresses of a policy's steps; ``refresh`` is 0 for none."""

    predict: float
    started: float
    observe: float
    refresh: float
    correct: float
    one_pass: float


def parts_for(scheduler: CompiledScheduler, refreshes: bool) -> tuple[Step, ...]:
    """The loop and what it needs for such a policy, the longest to compile first."""
    return (
        replay_loop,
        *([refresh_predictions] if refreshes else []),
        *([follow_pilots] if _follows_pilots(scheduler) else []),
        *([sort_moving] if _moves(scheduler) else []),
        scheduler.one_pass,
    )


def _follows_pilots(scheduler: CompiledScheduler) -> bool:
    return scheduler.queue.follows_pilots or scheduler.candidates.follows_pilots


def _moves(scheduler: CompiledScheduler) -> bool:
    return scheduler.queue.changes_with_time or scheduler.candidates.changes_with_time


def policy_numbers(
    free: float, steps: Steps, scheduler: CompiledScheduler, correction_parameters: Floats
) -> Floats:
    """The vector of numbers of a policy on an empty machine of ``free`` cpus.

    The conventions are still to be written into it.
    """
    parts = (
        scheduler.queue.code,
        scheduler.candidates.code,
        scheduler.plan.code,
        scheduler.likely.code,
        scheduler.parameters,
        correction_parameters,
    )
    numbers = np.zeros(NUMBERS + sum(part.size for part in parts))
    numbers[FREE] = free
    numbers[NOW] = -math.inf
    numbers[PREDICT : PASS + 1] = steps
    numbers[ONE_ORDER] = scheduler.candidates is scheduler.queue
    numbers[AGE_LIMIT] = scheduler.age_limit_seconds
    numbers[OLDEST_LIMIT] = scheduler.oldest_limit_seconds
    numbers[QUEUE_MOVES] = scheduler.queue.changes_with_time
    numbers[CANDIDATES_MOVE] = scheduler.candidates.changes_with_time
    numbers[QUEUE_FOLLOWS] = scheduler.queue.follows_pilots
    numbers[CANDIDATES_FOLLOW] = scheduler.candidates.follows_pilots
    if steps.refresh:
        numbers[REFRESH_ALL] = step_address(refresh_predictions)
    if _follows_pilots(scheduler):
        numbers[FOLLOW_PILOTS] = step_address(follow_pilots)
    if _moves(scheduler):
        numbers[SORT_MOVING] = step_address(sort_moving)
    begin = NUMBERS
    for place, part_of_it in zip(range(PARTS, NUMBERS, 2), parts, strict=True):
        numbers[place : place + 2] = begin, begin + part_of_it.size
        numbers[begin : begin + part_of_it.size] = part_of_it
        begin += part_of_it.size
    return numbers


def idle(
    specs: Floats,
    width: Floats,
    runtime: Floats,
    kinds: Integers,
    numbers: Floats,
    state: PredictorState,
) -> Replay:
    """A machine without jobs, before the first of these is submitted.

    Parameters
    ----------
    specs, width, runtime, kinds
        A row per job in order of submission: its specification, cpus, real seconds, and the number
        of its kind (from 0 on).
    numbers
        See ``policy_numbers``.
    state
        The predictor's arrays.
    """
    count = len(specs)
    jobs = np.zeros((count + 1, JOB_COLUMNS))
    jobs[:, [RESERVATION, START, END]] = math.nan
    jobs[:, NEXT_OF_KIND] = -1.0
    jobs[:, INFORMS] = 1.0
    jobs[:count, WIDTH] = width
    jobs[:count, SUBMITTED] = specs[:, SUBMIT]
    jobs[:count, RUNTIME] = runtime
    jobs[:count, KIND] = kinds
    of_kinds = np.zeros((int(kinds.max(initial=0)) + 1, KIND_COLUMNS), np.int64)
    of_kinds[:, [FIRST_OF_KIND, LAST_OF_KIND, PILOT]] = -1
    counters = np.zeros(COUNTERS, np.int64)
    counters[LAST_HEAD] = -1
    counters[PHASE] = PAST
    summaries = np.zeros((count, SUMMARY_COLUMNS))
    return Replay(
        jobs=jobs,
        order=np.empty((count + 1, ORDER_COLUMNS)),
        release=np.empty((count + 1, RELEASE_COLUMNS)),
        ends=np.empty((count + 1, HEAP_COLUMNS)),
        kinds=of_kinds,
        counters=counters,
        numbers=numbers,
        starts=np.empty(count + 1, np.int64),
        learned=np.zeros(int(specs[:, USER].max(initial=-1.0)) + 2, np.int64),
        submitted=np.empty_like(summaries) if numbers[REFRESH] else summaries,
        specs=specs,
        model=state.model,
        users=state.users,
        predictions=state.jobs,
        summaries=summaries,
    )
