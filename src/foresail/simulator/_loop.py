"""The compiled replay's loop: the order of things, as ``control`` has it, over arrays.

Every step of a policy (predict, correct, one scheduling pass) comes in as a function pointer; this
file knows events, the queue and the clock. ``foresail.simulator.replay`` is the way in.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from foresail.kernels.columns import REQUESTED, SUBMIT
from foresail.kernels.compile import borrowed, inlined, step
from foresail.kernels.expression import STACK_DEPTH, Program, evaluate
from foresail.kernels.ordered import (
    heap_pop,
    heap_push,
    hold,
    insert_key,
    position_after,
    release,
)
from foresail.kernels.signatures import CORRECTION_STEP, PASS_STEP, PREDICTOR_STEP

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

WAITING: Final = 0
RELEASES: Final = 1
AGED: Final = 2
OLDEST: Final = 3
STARTED: Final = 4
RUNNING: Final = 5
PASSES: Final = 6
CORRECTIONS: Final = 7
DELAYED_HEADS: Final = 8
LAST_HEAD: Final = 9
SUBMITTED: Final = 10
FIRST_WAITING: Final = 11
COUNTERS: Final = 12


class Lane(NamedTuple):
    """The waiting jobs in one order: keys ascending, and their slots."""

    keys: Floats
    slots: Integers
    program: Integers
    constants: Floats
    moves: bool


class Machine(NamedTuple):
    """Everything that changes while the replay runs."""

    counters: Integers
    free: Floats
    release_time: Floats
    release_width: Floats
    release_slot: Integers
    end_time: Floats
    end_order: Integers
    end_slot: Integers
    width: Floats
    planned: Floats
    initial: Floats
    expected_end: Floats
    reservation: Floats
    starts: Integers
    start: Floats
    end: Floats
    corrections: Integers
    backfilled: Flags
    stack: Floats


class Settings(NamedTuple):
    """A policy's parameters and the replay's conventions.

    ``shared``: candidates are in queue order, and both lanes are one. ``pass_per_event``: the order
    at equal times is expired estimates, submissions, ends, and a pass follows every event;
    otherwise ends, expired estimates, submissions, and one pass. ``expected_is_free``: a job whose
    expected end is now counts as gone.
    """

    correction_parameters: Floats
    pass_parameters: Floats
    plan_program: Integers
    plan_constants: Floats
    shared: bool
    age_limit: float
    pass_per_event: bool
    expected_is_free: bool


class Policy(NamedTuple):
    """The steps of a policy, as function pointers, and its settings."""

    predict: Any
    started: Any
    observe: Any
    correct: Any
    one_pass: Any
    settings: Settings


class Book(NamedTuple):
    """The jobs in order of submission, their truth, and the predictor's state."""

    specs: Floats
    summaries: Floats
    model: Floats
    users: Floats
    jobs: Floats
    runtime: Floats


@inlined
def _enter(lane: Lane, machine: Machine, slot: int, now: float, book: Book) -> None:
    """Put a job that was just submitted into its place behind the aged and the equal ones."""
    counters = machine.counters
    waiting = counters[WAITING]
    key = evaluate(
        lane.program, lane.constants, slot, now, book.specs, book.summaries, machine.stack
    )
    aged = counters[AGED]
    at = aged + position_after(lane.keys[aged:], waiting - aged, key)
    insert_key(lane.keys, lane.slots, waiting, at, key, slot)


@inlined
def _advance(lane: Lane, machine: Machine, slot: int) -> None:
    """Move a job to the end of the aged ones."""
    aged = machine.counters[AGED]
    at = aged
    while lane.slots[at] != slot:
        at += 1
    for i in range(at, aged, -1):
        lane.keys[i] = lane.keys[i - 1]
        lane.slots[i] = lane.slots[i - 1]
    lane.keys[aged] = -math.inf
    lane.slots[aged] = slot


@inlined
def _grow_old(
    queue: Lane, candidates: Lane, machine: Machine, policy: Policy, now: float, book: Book
) -> None:
    """Jobs that have waited for the age limit go first, in order of arrival."""
    counters = machine.counters
    while counters[OLDEST] < counters[SUBMITTED]:
        slot = counters[OLDEST]
        if now - book.specs[slot, SUBMIT] < policy.settings.age_limit:
            break
        if math.isnan(machine.start[slot]):
            _advance(queue, machine, slot)
            if not policy.settings.shared:
                _advance(candidates, machine, slot)
            counters[AGED] += 1
        counters[OLDEST] += 1


@inlined
def _sort_again(lane: Lane, machine: Machine, now: float, book: Book) -> None:
    """Evaluate an order that changes with time anew; ties stay in order of arrival."""
    aged = machine.counters[AGED]
    waiting = machine.counters[WAITING]
    slots = np.sort(lane.slots[aged:waiting])
    keys = np.empty(slots.shape[0])
    for i in range(slots.shape[0]):
        keys[i] = evaluate(
            lane.program,
            lane.constants,
            slots[i],
            now,
            book.specs,
            book.summaries,
            machine.stack,
        )
    ranks = np.argsort(keys, kind="mergesort")
    for i in range(slots.shape[0]):
        lane.slots[aged + i] = slots[ranks[i]]
        lane.keys[aged + i] = keys[ranks[i]]


@inlined
def _remove_started(lane: Lane, machine: Machine) -> int:
    """Close the gaps that started jobs leave; returns how many of the aged ones are left."""
    aged = machine.counters[AGED]
    kept = 0
    aged_kept = 0
    for i in range(machine.counters[WAITING]):
        slot = lane.slots[i]
        if machine.reservation[slot] != -math.inf:
            lane.slots[kept] = slot
            lane.keys[kept] = lane.keys[i]
            kept += 1
            if i < aged:
                aged_kept += 1
    return aged_kept


@inlined
def _begin(machine: Machine, policy: Policy, book: Book, count: int, now: float) -> None:
    """Book the jobs that a pass has started; who leaves an earlier arrival waiting, overtakes."""
    counters = machine.counters
    for i in range(count):
        slot = machine.starts[i]
        while not math.isnan(machine.start[counters[FIRST_WAITING]]):
            counters[FIRST_WAITING] += 1
        machine.free[0] -= machine.width[slot]
        machine.start[slot] = now
        machine.end[slot] = now + book.runtime[slot]
        machine.expected_end[slot] = now + machine.planned[slot]
        machine.backfilled[slot] = slot != counters[FIRST_WAITING]
        heap_push(
            machine.end_time,
            machine.end_order,
            machine.end_slot,
            counters[RUNNING],
            machine.end[slot],
            counters[STARTED],
            slot,
        )
        counters[RUNNING] += 1
        counters[STARTED] += 1
        policy.started(
            slot, now, math.nan, book.specs, book.model, book.users, book.jobs, book.summaries
        )


@inlined
def _note_plan(queue: Lane, machine: Machine, last_head: int, last_reservation: float) -> None:
    """Count a pass after which the same job is still the head, and its reservation is later."""
    counters = machine.counters
    if counters[WAITING] == 0:
        counters[LAST_HEAD] = -1
        return
    head = queue.slots[0]
    if head == last_head and machine.reservation[head] > last_reservation:
        counters[DELAYED_HEADS] += 1
    counters[LAST_HEAD] = head


@inlined
def _schedule(
    queue: Lane, candidates: Lane, machine: Machine, policy: Policy, book: Book, now: float
) -> None:
    """One pass, and what it starts."""
    counters = machine.counters
    waiting = counters[WAITING]
    if waiting == 0:
        return
    counters[PASSES] += 1
    _grow_old(queue, candidates, machine, policy, now, book)
    if queue.moves:
        _sort_again(queue, machine, now, book)
    if candidates.moves and not policy.settings.shared:
        _sort_again(candidates, machine, now, book)
    last_head = queue.slots[0]
    if last_head != counters[LAST_HEAD]:
        last_head = -1
    last_reservation = machine.reservation[queue.slots[0]]
    gone = 0
    free = machine.free[0]
    if policy.settings.expected_is_free:
        while gone < counters[RELEASES] and machine.release_time[gone] <= now:
            free += machine.release_width[gone]
            gone += 1
    count = policy.one_pass(
        now,
        free,
        queue.slots,
        candidates.slots,
        waiting,
        machine.width,
        machine.planned,
        machine.release_time[gone:],
        machine.release_width[gone:],
        machine.release_slot[gone:],
        counters[RELEASES] - gone,
        machine.reservation,
        policy.settings.pass_parameters,
        machine.starts,
    )
    if count > 0:
        counters[RELEASES] += count
        _begin(machine, policy, book, count, now)
        aged_left = _remove_started(queue, machine)
        if not policy.settings.shared:
            _remove_started(candidates, machine)
        counters[AGED] = aged_left
        counters[WAITING] -= count
    _note_plan(queue, machine, last_head, last_reservation)


@inlined
def _submit(
    queue: Lane, candidates: Lane, machine: Machine, policy: Policy, book: Book, now: float
) -> None:
    """Take the next job into the queue, with its prediction."""
    counters = machine.counters
    slot = counters[SUBMITTED]
    counters[SUBMITTED] += 1
    policy.predict(
        slot, now, math.nan, book.specs, book.model, book.users, book.jobs, book.summaries
    )
    planned = evaluate(
        policy.settings.plan_program,
        policy.settings.plan_constants,
        slot,
        now,
        book.specs,
        book.summaries,
        machine.stack,
    )
    machine.planned[slot] = planned
    machine.initial[slot] = planned
    _enter(queue, machine, slot, now, book)
    if not policy.settings.shared:
        _enter(candidates, machine, slot, now, book)
    counters[WAITING] += 1


@inlined
def _finish(machine: Machine, policy: Policy, book: Book, now: float) -> None:
    """Handle the earliest end: the predictor learns, the cpus are free again."""
    counters = machine.counters
    slot = heap_pop(machine.end_time, machine.end_order, machine.end_slot, counters[RUNNING])
    counters[RUNNING] -= 1
    release(
        machine.release_time,
        machine.release_width,
        machine.release_slot,
        counters[RELEASES],
        machine.expected_end[slot],
        slot,
    )
    counters[RELEASES] -= 1
    machine.free[0] += machine.width[slot]
    policy.observe(
        slot,
        now,
        book.runtime[slot],
        book.specs,
        book.model,
        book.users,
        book.jobs,
        book.summaries,
    )


@inlined
def _expire(machine: Machine, policy: Policy, book: Book, now: float) -> None:
    """Correct the estimates of jobs that run longer than expected until now."""
    counters = machine.counters
    i = 0
    while i < counters[RELEASES] and machine.release_time[i] <= now:
        slot = machine.release_slot[i]
        if machine.end[slot] <= now:
            i += 1
            continue
        estimate = policy.correct(
            machine.initial[slot],
            machine.planned[slot],
            book.specs[slot, REQUESTED],
            machine.corrections[slot],
            book.summaries[slot],
            policy.settings.correction_parameters,
        )
        machine.corrections[slot] += 1
        counters[CORRECTIONS] += 1
        expected = machine.start[slot] + estimate
        release(
            machine.release_time,
            machine.release_width,
            machine.release_slot,
            counters[RELEASES],
            machine.expected_end[slot],
            slot,
        )
        hold(
            machine.release_time,
            machine.release_width,
            machine.release_slot,
            counters[RELEASES] - 1,
            expected,
            machine.width[slot],
            slot,
        )
        machine.planned[slot] = estimate
        machine.expected_end[slot] = expected


@inlined
def _whole_instant(
    queue: Lane, candidates: Lane, machine: Machine, policy: Policy, book: Book, now: float
) -> None:
    """Ends, expired estimates, submissions; then one pass."""
    counters = machine.counters
    happened = False
    while counters[RUNNING] > 0 and machine.end_time[0] <= now:
        _finish(machine, policy, book, now)
        happened = True
    _expire(machine, policy, book, now)
    while (
        counters[SUBMITTED] < book.specs.shape[0] and book.specs[counters[SUBMITTED], SUBMIT] <= now
    ):
        _submit(queue, candidates, machine, policy, book, now)
        happened = True
    if happened:
        _schedule(queue, candidates, machine, policy, book, now)


@inlined
def _each_event(
    queue: Lane, candidates: Lane, machine: Machine, policy: Policy, book: Book, now: float
) -> None:
    """Expired estimates, submissions, ends; a pass after every submission and every end."""
    counters = machine.counters
    _expire(machine, policy, book, now)
    while (
        counters[SUBMITTED] < book.specs.shape[0] and book.specs[counters[SUBMITTED], SUBMIT] <= now
    ):
        _submit(queue, candidates, machine, policy, book, now)
        _schedule(queue, candidates, machine, policy, book, now)
    while counters[RUNNING] > 0 and machine.end_time[0] <= now:
        _finish(machine, policy, book, now)
        _schedule(queue, candidates, machine, policy, book, now)


_F = types.float64[::1]
_I = types.int64[::1]
_M = types.float64[:, ::1]
_LANE = types.NamedTuple((_F, _I, _I, _F, types.boolean), Lane)
_MACHINE = types.NamedTuple(
    (_I, _F, _F, _F, _I, _F, _I, _I, _F, _F, _F, _F, _F, _I, _F, _F, _I, types.boolean[::1], _F),
    Machine,
)
_SETTINGS = types.NamedTuple(
    (_F, _F, _I, _F, types.boolean, types.float64, types.boolean, types.boolean), Settings
)
_PREDICTOR = types.FunctionType(PREDICTOR_STEP)
_BOOK = types.NamedTuple((_M, _M, _F, _M, _M, _F), Book)


@step(
    types.void(
        _LANE,
        _LANE,
        _MACHINE,
        _BOOK,
        _SETTINGS,
        _PREDICTOR,
        _PREDICTOR,
        _PREDICTOR,
        types.FunctionType(CORRECTION_STEP),
        types.FunctionType(PASS_STEP),
    )
)
def replay_loop(
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    book: Book,
    settings: Settings,
    predict: Any,
    started: Any,
    observe: Any,
    correct: Any,
    one_pass: Any,
) -> None:
    """Run all jobs of the book to their end; the results are in the machine's arrays."""
    queue = borrowed(queue)  # type: ignore[call-arg]  # an intrinsic's context is Numba's
    candidates = borrowed(candidates)
    machine = borrowed(machine)
    book = borrowed(book)
    policy = Policy(predict, started, observe, correct, one_pass, borrowed(settings))
    jobs = book.specs.shape[0]
    counters = machine.counters
    while counters[SUBMITTED] < jobs or counters[RUNNING] > 0:
        now = math.inf
        if counters[SUBMITTED] < jobs:
            now = book.specs[counters[SUBMITTED], SUBMIT]
        if counters[RUNNING] > 0:
            now = min(now, machine.end_time[0], machine.release_time[0])
        if settings.pass_per_event:
            _each_event(queue, candidates, machine, policy, book, now)
        else:
            _whole_instant(queue, candidates, machine, policy, book, now)


def waiting_lane(program: Program, jobs: int) -> Lane:
    """An empty queue for up to ``jobs`` jobs in the order of a program."""
    return Lane(np.empty(jobs + 1), np.empty(jobs + 1, np.int64), *program)


def idle_machine(processors: float, width: Floats) -> Machine:
    """A machine without jobs, for a replay of jobs of these widths (cpus)."""
    jobs = len(width)
    counters = np.zeros(COUNTERS, np.int64)
    counters[LAST_HEAD] = -1
    return Machine(
        counters=counters,
        free=np.full(1, float(processors)),
        release_time=np.empty(jobs + 1),
        release_width=np.empty(jobs + 1),
        release_slot=np.empty(jobs + 1, np.int64),
        end_time=np.empty(jobs + 1),
        end_order=np.empty(jobs + 1, np.int64),
        end_slot=np.empty(jobs + 1, np.int64),
        width=width,
        planned=np.empty(jobs),
        initial=np.empty(jobs),
        expected_end=np.empty(jobs),
        reservation=np.full(jobs, math.nan),
        starts=np.empty(jobs + 1, np.int64),
        start=np.full(jobs, math.nan),
        end=np.full(jobs, math.nan),
        corrections=np.zeros(jobs, np.int64),
        backfilled=np.zeros(jobs, np.bool_),
        stack=np.empty(STACK_DEPTH),
    )
