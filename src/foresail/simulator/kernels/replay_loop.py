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

from foresail.kernels.borrowed import PLACE, Places, arrays_at
from foresail.kernels.columns import PREDICTED, REQUESTED, SUBMIT, SUMMARY_COLUMNS, USER
from foresail.kernels.compile import Step, bare_step, entry, merged_part, part
from foresail.kernels.heaps import HEAP_COLUMNS, SEQUENCE, TIME, heap_pop, heap_push
from foresail.kernels.steps import (
    CompiledScheduler,
    CorrectionInputs,
    PredictorInputs,
    PredictorState,
    Shares,
    call_correction_step,
    call_predictor_step,
    step_address,
    step_caller,
)
from foresail.kernels.waiting_jobs import (
    DUE,
    EXPECTED_END,
    HELD,
    HOLDER,
    LATEST,
    PLANNED,
    QUEUE,
    QUEUE_KEY,
    RELEASE_COLUMNS,
    RESERVATION,
    SUBMITTED,
    WIDTH,
    hold,
    is_gap,
    leave_gap,
    let_go,
    next_job,
)
from foresail.model.event import Conventions
from foresail.schedulers.kernels import reference as easy
from foresail.schedulers.kernels import waiting_queue
from foresail.schedulers.kernels.backfill import easy_pass, guarded_pass, in_order_pass

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RUNTIME: Final = waiting_queue.JOB_COLUMNS
INITIAL: Final = waiting_queue.JOB_COLUMNS + 1
START: Final = waiting_queue.JOB_COLUMNS + 2
END: Final = waiting_queue.JOB_COLUMNS + 3
EXPECTED: Final = waiting_queue.JOB_COLUMNS + 4
CORRECTIONS: Final = waiting_queue.JOB_COLUMNS + 5
BACKFILLED: Final = waiting_queue.JOB_COLUMNS + 6
JOB_COLUMNS: Final = waiting_queue.JOB_COLUMNS + 7
"""A job's row, behind what the queue needs: the real runtime, the runtime planned with at
submission, start and end (nan before), the expected end (seconds); how often the estimate was
corrected; 1 for a job that was backfilled."""

STARTED: Final = waiting_queue.COUNTERS
RUNNING: Final = waiting_queue.COUNTERS + 1
PASSES: Final = waiting_queue.COUNTERS + 2
CORRECTED: Final = waiting_queue.COUNTERS + 3
DELAYED_HEADS: Final = waiting_queue.COUNTERS + 4
LAST_HEAD: Final = waiting_queue.COUNTERS + 5
FIRST_WAITING: Final = waiting_queue.COUNTERS + 6
LEARNED: Final = waiting_queue.COUNTERS + 7
PHASE: Final = waiting_queue.COUNTERS + 8
PASS_DUE: Final = waiting_queue.COUNTERS + 9
STARTED_BEFORE: Final = waiting_queue.COUNTERS + 10
TICK: Final = waiting_queue.COUNTERS + 11
SETTLED: Final = waiting_queue.COUNTERS + 12
LAST_AGED: Final = waiting_queue.COUNTERS + 13
LAST_BEHIND: Final = waiting_queue.COUNTERS + 14
LAST_GUARDED: Final = waiting_queue.COUNTERS + 15
COUNTERS: Final = waiting_queue.COUNTERS + 16
"""TICK: whether a pass is to be the last of all at this instant, because time has come for it.
SETTLED: whether another pass after the last one would have started nothing, and nothing that fits
has come, nor anything changed of what runs, since; then how many had been due, who came first of
the others, and who was guarded (-1 for nobody)."""

ENDS: Final = 0
EXPIRATIONS: Final = 1
SUBMISSIONS: Final = 2
PASSING: Final = 3
PAST: Final = 4
"""Steps within an instant, in the order of ``ends_first``."""

FREE: Final = 0
PREDICT: Final = 1
NOTE_START: Final = 2
OBSERVE: Final = 3
REFRESH: Final = 4
CORRECT: Final = 5
PASS_PER_EVENT: Final = 6
SUBMISSIONS_FIRST: Final = 7
EXPECTED_IS_FREE: Final = 8
REFRESH_ALL: Final = 9
FOLLOW_REFERENCE: Final = 10
ASK_REFERENCE: Final = 11
LOOK_AGAIN: Final = 12
CORRECTION_PARAMETERS: Final = 13
"""The vector of the machine: free cpus; addresses of steps (REFRESH: 0 for none); the conventions
(PASS_PER_EVENT: a pass follows every event, otherwise one all events of an instant.
SUBMISSIONS_FIRST: the order at equal times is expired estimates, submissions, ends; otherwise ends,
expired estimates, submissions. EXPECTED_IS_FREE: a job whose expected end is now counts as gone);
the addresses of the REPLAY_STEPs that make beliefs anew, find out who is due, and when to do so
again (0 if none does); when that is, if nothing happens until then (seconds; infinite for never);
from there on the parameters of the correction."""

_FEWEST_GAPS: Final = 32
_PLACES_PER_GAP: Final = 32
"""Gaps left in the order at least, and waiting jobs for which there is one more."""


class Replay(NamedTuple):
    """All that a replay works on.

    ``submitted`` keeps the summaries as they were at submission; ``learned`` has for each user (row
    0: unknown) the number of the pass before which a job of theirs ended last; ``arrivals`` are the
    slots of those that are submitted here, in order: all, but for partitions. ``places`` describes
    all of these (``foresail.kernels.borrowed.Places``).
    """

    queue: waiting_queue.WaitingQueue
    machine: Floats
    ends: Floats
    reference: easy.ReferenceTables
    learned: Integers
    submitted: Floats
    model: Floats
    users: Floats
    predictions: Floats
    arrivals: Integers
    places: Floats


_M = types.float64[:, ::1]
_F = types.float64[::1]
REPLAY = types.NamedTuple(
    (
        waiting_queue.WAITING_QUEUE,
        _F,
        _M,
        easy.REFERENCE,
        types.int64[::1],
        _M,
        _F,
        _M,
        _M,
        types.int64[::1],
        _F,
    ),
    Replay,
)
REPLAY_STEP = types.void(types.float64[::1])
"""Steps of the loop that only some policies need, compiled when one of these is replayed; they are
handed the ``places``, for the tables themselves are hundreds of words."""

_call_replay_step = step_caller(REPLAY_STEP)
replay_at: Final = arrays_at(REPLAY)


@merged_part
def _call_predictor(at: Replay, step: int, slot: int, now: float, runtime: float) -> None:
    """Let the predictor take one of its steps, if it has it."""
    if at.machine[step] == 0.0:
        return
    specs, summaries = at.queue.specs, at.queue.summaries
    inputs = PredictorInputs(
        slot, now, runtime, specs, at.model, at.users, at.predictions, summaries
    )
    call_predictor_step(at.machine[step], inputs)


@part
def _find_to_refresh(at: Replay) -> tuple[int, int]:
    """Put waiting jobs of users whose jobs have ended into ``starts``.

    Returns how many, and how many of these are due, which come first; others leave their places.
    """
    queue, found, aged = at.queue, 0, 0
    for i in range(waiting_queue.places_of(queue.counters)):
        slot = int(queue.order[i, QUEUE])
        if is_gap(queue.order, QUEUE, i):
            continue
        if at.learned[int(queue.specs[slot, USER]) + 1] == queue.counters[PASSES]:
            queue.starts[found] = slot
            found += 1
            if i < queue.counters[waiting_queue.AGED_FIRST]:
                aged += 1
            else:
                leave_gap(queue.order, QUEUE, i)
    queue.counters[LEARNED] = 0
    return found, aged


@bare_step(REPLAY_STEP)
def refresh_predictions(places: Floats) -> None:
    """Let the predictor change its mind about waiting jobs of users whose jobs have ended."""
    at = replay_at(places, 0)
    queue = at.queue
    now = queue.numbers[waiting_queue.NOW]
    found, aged = _find_to_refresh(at)
    for i in range(found):
        slot = queue.starts[i]
        _call_predictor(at, REFRESH, slot, now, math.nan)
        waiting_queue.hope(queue.jobs, queue.summaries, slot)
    if found > aged:
        waiting_queue.place_all_anew(queue, queue.starts[aged:found], now)


@bare_step(REPLAY_STEP)
def follow_reference(places: Floats) -> None:
    """Find out whose turn would have come by now under EASY, and when they are due."""
    at = replay_at(places, 0)
    queue, reference = at.queue, at.reference
    easy.settle(reference, queue.numbers[waiting_queue.NOW])
    _take_found(queue, reference)


@part
def _take_found(queue: waiting_queue.WaitingQueue, reference: easy.ReferenceTables) -> None:
    """Note when jobs are due whose turn has come."""
    for i in range(reference.counters[easy.FOUND]):
        slot = int(reference.found[i])
        if queue.jobs[slot, waiting_queue.WAITS] != 0.0:
            queue.jobs[slot, DUE] = reference.jobs[slot, easy.DUE_SECONDS]
            queue.jobs[slot, LATEST] = reference.jobs[slot, easy.LATEST_SECONDS]
            waiting_queue.fall_due(queue.jobs, queue.dues, queue.counters, slot)
    reference.counters[easy.FOUND] = 0


@part
def _is_next(jobs: Floats, reference: easy.ReferenceTables, due: float) -> bool:
    """Return whether one whose turn has come waits, and is due by then."""
    for i in range(reference.counters[easy.FOUND]):
        slot = int(reference.found[i])
        if (
            jobs[slot, waiting_queue.WAITS] != 0.0
            and not reference.jobs[slot, easy.DUE_SECONDS] > due
        ):
            return True
    return False


@part
def _enter_reference(
    reference: easy.ReferenceTables, job: Floats, spec: Floats, summary: Floats
) -> None:
    """Report a submission to the reference."""
    number = reference.counters[easy.ENTERED]
    row, requested = reference.jobs[number], spec[REQUESTED]
    row[easy.CPUS_HELD] = job[WIDTH]
    row[easy.SINCE] = spec[SUBMIT]
    row[easy.REQUEST] = job[PLANNED] if requested == math.inf else requested
    row[easy.LIKELY_SECONDS] = summary[PREDICTED]
    easy.note(reference, spec[SUBMIT], easy.ENTERS, number)
    reference.counters[easy.ENTERED] += 1


@part
def _book_start(
    jobs: Floats, ends: Floats, kinds: Integers, counters: Integers, slot: int, now: float
) -> None:
    """Book a job that a pass has started; one that leaves an earlier arrival waiting overtakes."""
    while jobs[counters[FIRST_WAITING], waiting_queue.WAITS] == 0.0:
        counters[FIRST_WAITING] += 1
    job = jobs[slot]
    job[START] = now
    job[END] = now + job[RUNTIME]
    job[EXPECTED] = now + job[PLANNED]
    job[BACKFILLED] = slot != counters[FIRST_WAITING]
    heap_push(ends, counters[RUNNING], job[END], counters[STARTED], slot)
    counters[RUNNING] += 1
    counters[STARTED] += 1
    waiting_queue.wait_no_more(jobs, kinds, counters, slot)
    waiting_queue.count_running(kinds, counters, int(job[waiting_queue.KIND]), 1)


@part
def _drop_started(
    jobs: Floats, order: Floats, counters: Integers, numbers: Floats, started: Integers
) -> None:
    """Take what a pass has started out of the orders."""
    for slot in started:
        waiting_queue.give_up_place(jobs, order, counters, numbers, slot)
    gaps, waiting = counters[waiting_queue.GAPS], counters[waiting_queue.WAITING]
    if gaps > _FEWEST_GAPS + waiting // _PLACES_PER_GAP:
        waiting_queue.move_up(order, counters)


@part
def _first_of(order: Floats, counters: Integers, place: int) -> int:
    """Return the slot of the first job from a place on, or -1."""
    places = waiting_queue.places_of(counters)
    place = next_job(order, QUEUE, max(place, counters[waiting_queue.FRONT]), places)
    return int(order[place, QUEUE]) if place < places else -1


@part
def _note_plan(
    jobs: Floats, order: Floats, counters: Integers, last_head: int, last_reservation: float
) -> None:
    """Count a pass after which the same job is still the head, and its reservation is later."""
    if counters[waiting_queue.WAITING] == 0:
        counters[LAST_HEAD] = -1
        return
    head = _first_of(order, counters, 0)
    if head == last_head and jobs[head, RESERVATION] > last_reservation + 1e-6:
        counters[DELAYED_HEADS] += 1
    counters[LAST_HEAD] = head


@part
def _expected_gone(release: Floats, counters: Integers, now: float) -> int:
    """Return how many running jobs are expected to have ended by now."""
    gone = 0
    while gone < counters[waiting_queue.RELEASES] and release[gone, EXPECTED_END] <= now:
        gone += 1
    return gone


@part
def _behind_aged(order: Floats, counters: Integers) -> int:
    """Return the slot that comes first of those that are not due, or -1."""
    return _first_of(order, counters, counters[waiting_queue.AGED_FIRST])


@merged_part
def _would_start_nothing(at: Replay) -> bool:
    """Return whether a pass would change nothing: it would be as the last one was, and later.

    What fits was delayed by the first that does not, whose planned start is what it was, or by who
    is guarded. So it still is, whatever its place behind these.
    """
    queue, counters, free = at.queue, at.queue.counters, at.machine[FREE]
    jobs, head = queue.jobs, _first_of(queue.order, counters, 0)
    if counters[SETTLED] == 0 or head != counters[LAST_HEAD] or jobs[head, WIDTH] <= free:
        return False
    if queue.numbers[waiting_queue.IS_GUARDED] == 0.0:
        return True
    behind = _behind_aged(queue.order, counters)
    return bool(
        counters[waiting_queue.EVER_AGED] == counters[LAST_AGED]
        and behind == counters[LAST_BEHIND]
        and (behind < 0 or jobs[behind, WIDTH] > free)
        and waiting_queue.next_due(jobs, queue.dues, counters) == counters[LAST_GUARDED]
    )


@merged_part
def _note_settled(at: Replay, started: int) -> None:
    """Note whether a pass that has started so many leaves nothing to another one.

    One that makes a reservation at most, and lets nobody put it off, does not; a guarded one says
    whether it has started what moves the planned start that others look at (1), or has let
    one that is due go later (2).
    """
    queue, counters, numbers = at.queue, at.queue.counters, at.queue.numbers
    guards = numbers[waiting_queue.IS_GUARDED] != 0.0
    counters[SETTLED] = (
        numbers[waiting_queue.MOST_RESERVED] <= 1.0
        and numbers[waiting_queue.SORT_MOVING] == 0.0
        and at.machine[EXPECTED_IS_FREE] == 0.0
        and not (guards and numbers[int(numbers[waiting_queue.PASS_PARAMETERS])] > (started == 0))
    )
    if guards and counters[SETTLED] != 0:
        counters[LAST_AGED] = counters[waiting_queue.EVER_AGED]
        counters[LAST_BEHIND] = _behind_aged(queue.order, counters)
        counters[LAST_GUARDED] = waiting_queue.next_due(queue.jobs, queue.dues, counters)


@merged_part
def _next_event(at: Replay) -> float:
    """Return when something happens to a job next (seconds); infinite at the end."""
    queue, counters, now = at.queue, at.queue.counters, math.inf
    if counters[waiting_queue.SLOTS] < at.arrivals.shape[0]:
        now = queue.specs[at.arrivals[counters[waiting_queue.SLOTS]], SUBMIT]
    if counters[RUNNING] > 0:
        now = min(now, at.ends[0, TIME], queue.release[0, EXPECTED_END])
    return now


@bare_step(REPLAY_STEP)
def ask_reference(places: Floats) -> None:
    """Find out when it may be known next that a job is due.

    Passes before anything else happens, none of which would start a job, are only counted: they
    find nobody who is due before the one that is guarded.
    """
    at = replay_at(places, 0)
    queue, reference, counters = at.queue, at.reference, at.queue.counters
    at.machine[LOOK_AGAIN] = math.inf
    if counters[waiting_queue.WAITING] == 0:
        return
    again = easy.next_turn(reference)
    if _would_start_nothing(at):
        until = _next_event(at)
        due = math.inf
        if waiting_queue.next_due(queue.jobs, queue.dues, counters) >= 0:
            due = queue.dues[counters[waiting_queue.DUE_FROM], QUEUE_KEY]
            until = min(until, due)
        while again < until:  # as passes would, one look of the reference after the other
            easy.settle(reference, again)
            if _is_next(queue.jobs, reference, due):
                break
            _take_found(queue, reference)
            counters[PASSES] += 1
            again = easy.next_turn(reference)
    at.machine[LOOK_AGAIN] = again


@merged_part
def _schedule(at: Replay, now: float) -> None:
    """One pass, and what it starts."""
    queue, machine, counters = at.queue, at.machine, at.queue.counters
    if counters[waiting_queue.WAITING] == 0:
        return
    counters[PASSES] += 1
    if machine[EXPECTED_IS_FREE] != 0.0:
        counters[waiting_queue.GONE] = _expected_gone(queue.release, counters, now)
    if machine[FOLLOW_REFERENCE] != 0.0:
        _call_replay_step(machine[FOLLOW_REFERENCE], at.places)
    if counters[LEARNED] > 0:
        counters[SETTLED] = 0
        _call_replay_step(machine[REFRESH_ALL], at.places)
    waiting_queue.bring_into_order(queue, now)
    if not _would_start_nothing(at):
        _pass(at, now)
    counters[waiting_queue.ROOM_CAME] = 0
    if machine[ASK_REFERENCE] != 0.0:
        _call_replay_step(machine[ASK_REFERENCE], at.places)


@merged_part
def _pass(at: Replay, now: float) -> None:
    """Let the scheduler decide, and book what it starts."""
    queue, machine = at.queue, at.machine
    jobs, counters = queue.jobs, queue.counters
    head = _first_of(queue.order, counters, 0)
    last_head = head if head == counters[LAST_HEAD] else -1
    last_reservation = jobs[head, RESERVATION]
    # Jobs expected to have ended by now count as gone where the conventions say so.
    free = machine[FREE]
    for i in range(counters[waiting_queue.GONE]):
        free += queue.release[i, HELD]
    count = waiting_queue.run_pass(queue, now, free)
    if count > 0:
        counters[waiting_queue.RELEASES] += count
        for i in range(count):
            slot = queue.starts[i]
            machine[FREE] -= jobs[slot, WIDTH]
            queue.numbers[waiting_queue.HELD_FIRST] += (
                jobs[slot, WIDTH] * jobs[slot, waiting_queue.AGED]
            )
            _book_start(jobs, at.ends, queue.kinds, counters, slot, now)
            _call_predictor(at, NOTE_START, slot, now, math.nan)
            if machine[FOLLOW_REFERENCE] != 0.0:
                at.reference.jobs[slot, easy.STARTED] = now
        _drop_started(jobs, queue.order, counters, queue.numbers, queue.starts[:count])
    _note_plan(jobs, queue.order, counters, last_head, last_reservation)
    _note_settled(at, count)


@merged_part
def _submit(at: Replay, now: float) -> None:
    """Take the next job into the queue, with its prediction."""
    queue = at.queue
    jobs, numbers, summaries = queue.jobs, queue.numbers, queue.summaries
    slot = at.arrivals[queue.counters[waiting_queue.SLOTS]]
    queue.counters[waiting_queue.SLOTS] += 1
    _call_predictor(at, PREDICT, slot, now, math.nan)
    if at.machine[REFRESH] != 0.0:
        for column in range(SUMMARY_COLUMNS):
            at.submitted[slot, column] = summaries[slot, column]
    job, spec, summary = jobs[slot], queue.specs[slot], summaries[slot]
    planned = waiting_queue.value_of(numbers, waiting_queue.PLAN_PROGRAM, spec, summary, now, 1.0)
    job[PLANNED] = planned
    job[INITIAL] = planned
    waiting_queue.hope(jobs, summaries, slot)
    waiting_queue.begin_to_wait(jobs, queue.kinds, queue.counters, slot)
    # One that fits may start though the last pass left nothing.
    if job[WIDTH] <= at.machine[FREE]:
        queue.counters[SETTLED] = 0
    if at.machine[FOLLOW_REFERENCE] != 0.0:
        _enter_reference(at.reference, job, spec, summary)
    elif numbers[waiting_queue.AGE_LIMIT] != math.inf:
        job[DUE] = job[SUBMITTED] + numbers[waiting_queue.AGE_LIMIT]
        waiting_queue.fall_due(jobs, queue.dues, queue.counters, slot)
    waiting_queue.take_place(queue, slot, now)


@merged_part
def _finish(at: Replay, now: float) -> None:
    """Handle the earliest end: the cpus are free again, the predictor learns."""
    queue, counters = at.queue, at.queue.counters
    slot = heap_pop(at.ends, counters[RUNNING])
    job = queue.jobs[slot]
    counters[RUNNING] -= 1
    counters[waiting_queue.ROOM_CAME] = 1
    counters[SETTLED] = 0
    let_go(queue.release, counters[waiting_queue.RELEASES], job[EXPECTED], slot)
    counters[waiting_queue.RELEASES] -= 1
    at.machine[FREE] += job[WIDTH]
    waiting_queue.count_running(queue.kinds, counters, int(job[waiting_queue.KIND]), -1)
    queue.numbers[waiting_queue.HELD_FIRST] -= job[WIDTH] * job[waiting_queue.AGED]
    _call_predictor(at, OBSERVE, slot, now, job[RUNTIME])
    if at.machine[FOLLOW_REFERENCE] != 0.0:
        easy.note(at.reference, now, easy.LEAVES, slot)
    if at.machine[REFRESH] != 0.0:
        at.learned[int(queue.specs[slot, USER]) + 1] = counters[PASSES] + 1
        counters[LEARNED] += 1


@part
def _correct(jobs: Floats, specs: Floats, summaries: Floats, machine: Floats, slot: int) -> float:
    """The next estimate (seconds) of a running job."""
    inputs = CorrectionInputs(
        jobs[slot, INITIAL],
        jobs[slot, PLANNED],
        specs[slot, REQUESTED],
        int(jobs[slot, CORRECTIONS]),
        summaries[slot],
        machine[CORRECTION_PARAMETERS:],
    )
    return float(call_correction_step(machine[CORRECT], inputs))


@merged_part
def _expire(at: Replay, now: float) -> None:
    """Correct the estimates of jobs that run longer than expected until now."""
    queue = at.queue
    jobs, release, counters = queue.jobs, queue.release, queue.counters
    i = 0
    while i < counters[waiting_queue.RELEASES] and release[i, EXPECTED_END] <= now:
        slot = int(release[i, HOLDER])
        if jobs[slot, END] <= now:
            i += 1
            continue
        estimate = _correct(jobs, queue.specs, queue.summaries, at.machine, slot)
        jobs[slot, CORRECTIONS] += 1.0
        counters[CORRECTED] += 1
        counters[SETTLED] = 0
        expected = jobs[slot, START] + estimate
        let_go(release, counters[waiting_queue.RELEASES], jobs[slot, EXPECTED], slot)
        hold(release, counters[waiting_queue.RELEASES] - 1, expected, jobs[slot, WIDTH], slot)
        jobs[slot, PLANNED] = estimate
        jobs[slot, EXPECTED] = expected


@part
def _ends(ends: Floats, counters: Integers, now: float) -> bool:
    """Return whether a job ends by now that no pass of this instant has started."""
    if counters[RUNNING] == 0 or ends[0, TIME] > now:
        return False
    return bool(ends[0, SEQUENCE] < counters[STARTED_BEFORE])


@part
def _submits(specs: Floats, arrivals: Integers, counters: Integers, now: float) -> bool:
    """Return whether a job is submitted by now that is not in the queue yet."""
    at = counters[waiting_queue.SLOTS]
    return bool(at < arrivals.shape[0] and specs[arrivals[at], SUBMIT] <= now)


@part
def _next_tick(queue: waiting_queue.WaitingQueue, machine: Floats) -> float:
    """Return when a waiting job is due next, or it may be known that one is (seconds)."""
    if (
        queue.numbers[waiting_queue.IS_GUARDED] == 0.0
        or waiting_queue.next_due(queue.jobs, queue.dues, queue.counters) < 0
    ):
        return float(machine[LOOK_AGAIN])
    due = queue.dues[queue.counters[waiting_queue.DUE_FROM], QUEUE_KEY]
    return float(min(machine[LOOK_AGAIN], due))


@part
def _phase_of(machine: Floats, counters: Integers) -> int:
    """Return what is looked at in the present phase of an instant, by the conventions."""
    phase = counters[PHASE]
    if machine[SUBMISSIONS_FIRST] == 0.0 or phase >= PASSING:
        return int(phase)
    return ENDS if phase == SUBMISSIONS else int(phase) + 1


@merged_part
def look_ahead(at: Replay) -> int:
    """Return what is to be done next, at the time that NOW then says; PAST: nothing more.

    There is a pass when a job is due, whatever else happens then.
    """
    specs, counters, numbers = at.queue.specs, at.queue.counters, at.queue.numbers
    tick, one_for_each = _next_tick(at.queue, at.machine), at.machine[PASS_PER_EVENT] != 0.0
    while True:
        what = _phase_of(at.machine, counters)
        now = numbers[waiting_queue.NOW]
        # One pass for all events of an instant, or one for each, by the conventions.
        if counters[PASS_DUE] != 0 and (what == PASSING or one_for_each):
            counters[PASS_DUE] = 0
            if not one_for_each:
                counters[TICK] = 0
            return PASSING
        if counters[TICK] != 0 and what == PAST:
            counters[TICK] = 0
            return PASSING
        if what == ENDS and _ends(at.ends, counters, now):
            counters[PASS_DUE] = 1
            return ENDS
        if what == SUBMISSIONS and _submits(specs, at.arrivals, counters, now):
            counters[PASS_DUE] = 1
            return SUBMISSIONS
        counters[PHASE] += 1
        if what == EXPIRATIONS:
            return EXPIRATIONS
        if what == PAST:
            numbers[waiting_queue.NOW] = min(_next_event(at), tick)
            counters[PHASE] = 0
            counters[STARTED_BEFORE] = counters[STARTED]
            counters[TICK] = numbers[waiting_queue.NOW] == tick and tick < math.inf
            if numbers[waiting_queue.NOW] == math.inf:
                return PAST


@merged_part
def act(at: Replay, action: int) -> None:
    """Do it."""
    now = at.queue.numbers[waiting_queue.NOW]
    if action == PASSING:
        _schedule(at, now)
    elif action == ENDS:
        _finish(at, now)
    elif action == EXPIRATIONS:
        _expire(at, now)
    elif action == SUBMISSIONS:
        _submit(at, now)


@entry(types.void(REPLAY))
def replay_loop(at: Replay) -> None:
    """Run all jobs to their end; the results are in the tables."""
    while True:
        action = look_ahead(at)
        if action == PAST:
            break
        act(at, action)


class Steps(NamedTuple):
    """Addresses of the steps of a predictor and a correction; ``refresh`` is 0 for none."""

    predict: float
    started: float
    observe: float
    refresh: float
    correct: float


def parts_for(scheduler: CompiledScheduler, refreshes: bool) -> tuple[Step, ...]:
    """The loop and what it needs for such a policy, the longest to compile first."""
    return (
        replay_loop,
        *([refresh_predictions] if refreshes else []),
        *([] if scheduler.shares is None else [follow_reference, ask_reference]),
        *waiting_queue.steps_for(scheduler),
    )


def machine_numbers(
    free: float,
    steps: Steps,
    conventions: Conventions,
    correction_parameters: Floats,
    shares: Shares | None,
) -> Floats:
    """The vector of an empty machine of ``free`` cpus."""
    machine = np.zeros(CORRECTION_PARAMETERS + correction_parameters.size)
    machine[FREE] = free
    machine[PREDICT : CORRECT + 1] = steps
    machine[LOOK_AGAIN] = math.inf
    machine[PASS_PER_EVENT] = conventions.passes == "per_event"
    machine[SUBMISSIONS_FIRST] = conventions.ties == "submissions_first"
    machine[EXPECTED_IS_FREE] = conventions.free == "expected"
    if steps.refresh:
        machine[REFRESH_ALL] = step_address(refresh_predictions)
    if shares is not None:
        machine[FOLLOW_REFERENCE] = step_address(follow_reference)
        machine[ASK_REFERENCE] = step_address(ask_reference)
    machine[CORRECTION_PARAMETERS:] = correction_parameters
    return machine


def idle(
    specs: Floats,
    width: Floats,
    runtime: Floats,
    kinds: Integers,
    scheduler: CompiledScheduler,
    machine: Floats,
    state: PredictorState,
) -> Replay:
    """A machine (see ``machine_numbers``) without jobs, before the first of these is submitted.

    A row per job in order of submission: its specification, cpus, real seconds, and the number of
    its kind (from 0 on). ``state`` has the predictor's arrays.
    """
    count = len(specs)
    jobs = waiting_queue.blank_jobs(count + 1, JOB_COLUMNS)
    jobs[:, [START, END]] = math.nan
    jobs[:count, WIDTH] = width
    jobs[:count, SUBMITTED] = specs[:, SUBMIT]
    jobs[:count, RUNTIME] = runtime
    jobs[:count, waiting_queue.KIND] = kinds
    summaries = np.zeros((count, SUMMARY_COLUMNS))
    every_kind = int(kinds.max(initial=0)) + 1
    queue = _empty_queue((jobs, specs, summaries), every_kind, count, scheduler)
    at = Replay(
        queue=queue,
        machine=machine,
        ends=np.empty((count + 1, HEAP_COLUMNS)),
        reference=_blank_reference(count, machine[FREE], scheduler.shares),
        learned=np.zeros(int(specs[:, USER].max(initial=-1.0)) + 2, np.int64),
        submitted=np.empty_like(summaries) if machine[REFRESH] else summaries,
        model=state.model,
        users=state.users,
        predictions=state.jobs,
        arrivals=np.arange(count),
        places=machine,
    )
    return placed(at)


def placed(at: Replay) -> Replay:
    """Describe where the tables are, after some were made."""
    places = np.zeros(PLACE * (len(at) + len(at.queue) + len(at.reference) - 2))
    places[:] = Places(*at.queue, *at[1:3], *at.reference, *at[4:-1], places).numbers
    return at._replace(places=places)


def _empty_queue(
    rows: tuple[Floats, Floats, Floats], kinds: int, most: int, scheduler: CompiledScheduler
) -> waiting_queue.WaitingQueue:
    """A queue of at most so many of these jobs (their rows, specifications and summaries)."""
    counters = np.zeros(COUNTERS, np.int64)
    counters[LAST_HEAD] = -1
    counters[PHASE] = PAST
    skips_gaps = scheduler.one_pass in (in_order_pass, easy_pass, guarded_pass)
    one_order = scheduler.candidates is scheduler.queue
    counters[waiting_queue.LEAVES_GAPS] = (
        skips_gaps and one_order and not scheduler.queue.changes_with_time
    )
    numbers = waiting_queue.policy_numbers(scheduler)
    numbers[waiting_queue.NOW] = -math.inf
    return waiting_queue.WaitingQueue(
        *rows,
        order=waiting_queue.blank_order(most + 1),
        dues=np.empty((most + 1, waiting_queue.DUE_COLUMNS), order="F"),
        release=np.empty((most + 1, RELEASE_COLUMNS)),
        kinds=waiting_queue.blank_kinds(kinds),
        counters=counters,
        numbers=numbers,
        starts=np.empty(most + 1, np.int64),
    )


def partition_of(
    whole: Replay, arrivals: Integers, scheduler: CompiledScheduler, machine: Floats
) -> Replay:
    """The tables of a partition for some of the slots, which share those of all jobs."""
    most, queue = len(arrivals), whole.queue
    own = _empty_queue(queue[:3], len(queue.kinds), most, scheduler)
    ends = np.empty((most + 1, HEAP_COLUMNS))
    return placed(whole._replace(queue=own, machine=machine, ends=ends, arrivals=arrivals))


def _blank_reference(count: int, cpus: float, shares: Shares | None) -> easy.ReferenceTables:
    """The tables of the schedule that a policy compares with; next to none where it does not."""
    if shares is None:
        return easy.blank_reference(1, 1, cpus, Shares(0.0, 0.0))
    return easy.blank_reference(count, 2 * count, cpus, shares)
