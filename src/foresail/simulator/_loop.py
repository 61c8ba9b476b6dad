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

from foresail.kernels.columns import REQUESTED, SUBMIT, SUMMARY_COLUMNS, USER
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
LEARNED_OF: Final = 12
COUNTERS: Final = 13

FEW: Final = 8
"""As many waiting jobs are put into their new places one by one; more are sorted again."""


class Lane(NamedTuple):
    """The waiting jobs in one order: keys ascending, and their slots."""

    keys: Floats
    slots: Integers
    program: Integers
    constants: Floats
    moves: bool
    follows_pilots: bool


class Kinds(NamedTuple):
    """Jobs of the same user and request, so that one of them can be the pilot of the others.

    ``of`` is the kind of each slot; ``first`` and ``last`` wait the longest and the shortest,
    linked by ``following``; ``pilot`` is the slot that informs the others, or -1. ``touched`` lists
    kinds to look at again before the next pass; its first entry counts them.
    """

    of: Integers
    waiting: Integers
    running: Integers
    first: Integers
    last: Integers
    pilot: Integers
    following: Integers
    touched: Integers
    is_touched: Flags


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
    likely: Floats
    pilots: Floats
    is_aged: Flags
    learned_of: Flags
    to_refresh: Integers
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
    likely_program: Integers
    likely_constants: Floats
    shared: bool
    age_limit: float
    oldest_limit: float
    pass_per_event: bool
    expected_is_free: bool
    refreshes: bool


class Policy(NamedTuple):
    """The steps of a policy, as function pointers, and its settings."""

    predict: Any
    started: Any
    observe: Any
    correct: Any
    one_pass: Any
    refresh: Any
    settings: Settings


class Book(NamedTuple):
    """The jobs in order of submission, their truth, and the predictor's state."""

    specs: Floats
    summaries: Floats
    submitted_summaries: Floats
    model: Floats
    users: Floats
    jobs: Floats
    runtime: Floats
    submit: Floats


@inlined
def _key(lane: Lane, machine: Machine, slot: int, now: float, book: Book) -> float:
    return evaluate(
        lane.program,
        lane.constants,
        slot,
        now,
        book.specs,
        book.summaries,
        machine.pilots,
        machine.stack,
    )


@inlined
def _enter(lane: Lane, machine: Machine, slot: int, now: float, book: Book) -> None:
    """Put a job into its place behind the aged ones; equal keys are in order of arrival."""
    waiting = machine.counters[WAITING]
    key = _key(lane, machine, slot, now, book)
    aged = machine.counters[AGED]
    at = aged + position_after(lane.keys[aged:], waiting - aged, key)
    while at > aged and lane.keys[at - 1] == key and lane.slots[at - 1] > slot:
        at -= 1
    insert_key(lane.keys, lane.slots, waiting, at, key, slot)


@inlined
def _leave(lane: Lane, machine: Machine, slot: int, key: float) -> None:
    """Take a job that is not aged out of its place."""
    aged = machine.counters[AGED]
    at = aged + position_after(lane.keys[aged:], machine.counters[WAITING] - aged, key) - 1
    while lane.slots[at] != slot:
        at -= 1
    for i in range(at, machine.counters[WAITING] - 1):
        lane.keys[i] = lane.keys[i + 1]
        lane.slots[i] = lane.slots[i + 1]


@inlined
def _become_pilot(
    lane: Lane, machine: Machine, slot: int, informed: float, now: float, book: Book
) -> None:
    """Give a waiting job another number of jobs that it would inform, and its new place."""
    before = machine.pilots[slot]
    if lane.follows_pilots and not lane.moves:  # one that moves is sorted again before the pass
        old_key = _key(lane, machine, slot, now, book)
        machine.pilots[slot] = informed
        if _key(lane, machine, slot, now, book) != old_key:
            _leave(lane, machine, slot, old_key)
            machine.counters[WAITING] -= 1
            _enter(lane, machine, slot, now, book)
            machine.counters[WAITING] += 1
        machine.pilots[slot] = before


@inlined
def _inform(
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    policy: Policy,
    slot: int,
    informed: float,
    now: float,
    book: Book,
) -> None:
    if machine.pilots[slot] == informed:
        return
    _become_pilot(queue, machine, slot, informed, now, book)
    if not policy.settings.shared:
        _become_pilot(candidates, machine, slot, informed, now, book)
    machine.pilots[slot] = informed


@inlined
def _touch(kinds: Kinds, slot: int) -> None:
    kind = kinds.of[slot]
    if not kinds.is_touched[kind]:
        kinds.is_touched[kind] = True
        kinds.touched[0] += 1
        kinds.touched[kinds.touched[0]] = kind


@inlined
def _refresh_predictions(
    queue: Lane, candidates: Lane, machine: Machine, policy: Policy, book: Book, now: float
) -> None:
    """Let the predictor change its mind about waiting jobs of users whose jobs have ended."""
    counters = machine.counters
    found = 0
    for i in range(counters[WAITING]):
        slot = queue.slots[i]
        if machine.learned_of[int(book.specs[slot, USER]) + 1]:
            machine.to_refresh[found] = slot
            found += 1
    few = found <= FEW and not (queue.moves or candidates.moves)  # stale keys mark no place
    for i in range(found):
        slot = machine.to_refresh[i]
        moves = few and not machine.is_aged[slot]
        if moves:
            _leave(queue, machine, slot, _key(queue, machine, slot, now, book))
            if not policy.settings.shared:
                _leave(candidates, machine, slot, _key(candidates, machine, slot, now, book))
            counters[WAITING] -= 1
        policy.refresh(
            slot, now, math.nan, book.specs, book.model, book.users, book.jobs, book.summaries
        )
        machine.likely[slot] = _estimate(
            policy.settings.likely_program,
            policy.settings.likely_constants,
            machine,
            slot,
            now,
            book,
        )
        if moves:
            _enter(queue, machine, slot, now, book)
            if not policy.settings.shared:
                _enter(candidates, machine, slot, now, book)
            counters[WAITING] += 1
    if not few:
        _sort_again(queue, machine, now, book)
        if not policy.settings.shared:
            _sort_again(candidates, machine, now, book)
    machine.learned_of[:] = False
    counters[LEARNED_OF] = 0


@inlined
def _choose_pilots(
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    kinds: Kinds,
    policy: Policy,
    now: float,
    book: Book,
) -> None:
    """The oldest waiting job of a kind of which none runs informs all that wait."""
    while kinds.touched[0] > 0:
        kind = kinds.touched[kinds.touched[0]]
        kinds.touched[0] -= 1
        kinds.is_touched[kind] = False
        while kinds.first[kind] >= 0 and not math.isnan(machine.start[kinds.first[kind]]):
            kinds.first[kind] = kinds.following[kinds.first[kind]]
        first = kinds.first[kind]
        if first < 0:
            kinds.last[kind] = -1
        wanted = first
        if first >= 0 and (machine.is_aged[first] or kinds.running[kind] > 0):
            wanted = -1
        old = kinds.pilot[kind]
        if (
            old >= 0
            and old != wanted
            and math.isnan(machine.start[old])
            and not machine.is_aged[old]
        ):
            _inform(queue, candidates, machine, policy, old, 1.0, now, book)
        kinds.pilot[kind] = wanted
        if wanted >= 0:
            informed = float(kinds.waiting[kind])
            _inform(queue, candidates, machine, policy, wanted, informed, now, book)


@inlined
def _count_running(kinds: Kinds, machine: Machine, gone: int, change: int) -> None:
    """Count the jobs that are expected to be gone by now out of their kinds, or in again."""
    for i in range(gone):
        slot = machine.release_slot[i]
        kinds.running[kinds.of[slot]] += change
        _touch(kinds, slot)


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
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    kinds: Kinds,
    policy: Policy,
    now: float,
    book: Book,
) -> None:
    """Jobs past the age limit go first, in order of arrival; the oldest of all goes earlier."""
    counters = machine.counters
    while counters[OLDEST] < counters[SUBMITTED]:
        slot = counters[OLDEST]
        waits = math.isnan(machine.start[slot])
        wait = now - book.specs[slot, SUBMIT]
        oldest = counters[AGED] == 0 and wait >= policy.settings.oldest_limit
        if waits and wait < policy.settings.age_limit and not oldest:
            break
        if waits:
            _advance(queue, machine, slot)
            if not policy.settings.shared:
                _advance(candidates, machine, slot)
            machine.is_aged[slot] = True
            counters[AGED] += 1
            if queue.follows_pilots or candidates.follows_pilots:
                _touch(kinds, slot)
        counters[OLDEST] += 1


@inlined
def _sort_again(lane: Lane, machine: Machine, now: float, book: Book) -> None:
    """Evaluate an order that changes with time anew; ties stay in order of arrival."""
    aged = machine.counters[AGED]
    waiting = machine.counters[WAITING]
    slots = np.sort(lane.slots[aged:waiting])
    keys = np.empty(slots.shape[0])
    for i in range(slots.shape[0]):
        keys[i] = _key(lane, machine, slots[i], now, book)
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
def _begin(
    machine: Machine, kinds: Kinds, policy: Policy, book: Book, count: int, now: float
) -> None:
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
        kind = kinds.of[slot]
        kinds.waiting[kind] -= 1
        kinds.running[kind] += 1
        _touch(kinds, slot)
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
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    kinds: Kinds,
    policy: Policy,
    book: Book,
    now: float,
) -> None:
    """One pass, and what it starts."""
    counters = machine.counters
    waiting = counters[WAITING]
    if waiting == 0:
        return
    counters[PASSES] += 1
    if counters[LEARNED_OF] > 0:
        _refresh_predictions(queue, candidates, machine, policy, book, now)
    _grow_old(queue, candidates, machine, kinds, policy, now, book)
    gone = 0
    free = machine.free[0]
    if policy.settings.expected_is_free:
        while gone < counters[RELEASES] and machine.release_time[gone] <= now:
            free += machine.release_width[gone]
            gone += 1
    if queue.follows_pilots or candidates.follows_pilots:
        _count_running(kinds, machine, gone, -1)
        _choose_pilots(queue, candidates, machine, kinds, policy, now, book)
        _count_running(kinds, machine, gone, 1)
    if queue.moves:
        _sort_again(queue, machine, now, book)
    if candidates.moves and not policy.settings.shared:
        _sort_again(candidates, machine, now, book)
    last_head = queue.slots[0]
    if last_head != counters[LAST_HEAD]:
        last_head = -1
    last_reservation = machine.reservation[queue.slots[0]]
    count = policy.one_pass(
        now,
        free,
        queue.slots,
        candidates.slots,
        waiting,
        machine.width,
        book.submit,
        machine.planned,
        machine.likely,
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
        _begin(machine, kinds, policy, book, count, now)
        aged_left = _remove_started(queue, machine)
        if not policy.settings.shared:
            _remove_started(candidates, machine)
        counters[AGED] = aged_left
        counters[WAITING] -= count
    _note_plan(queue, machine, last_head, last_reservation)


@inlined
def _estimate(
    program: Integers, constants: Floats, machine: Machine, slot: int, now: float, book: Book
) -> float:
    return evaluate(
        program,
        constants,
        slot,
        now,
        book.specs,
        book.summaries,
        machine.pilots,
        machine.stack,
    )


@inlined
def _submit(
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    kinds: Kinds,
    policy: Policy,
    book: Book,
    now: float,
) -> None:
    """Take the next job into the queue, with its prediction."""
    counters = machine.counters
    slot = counters[SUBMITTED]
    counters[SUBMITTED] += 1
    policy.predict(
        slot, now, math.nan, book.specs, book.model, book.users, book.jobs, book.summaries
    )
    if policy.settings.refreshes:
        for column in range(SUMMARY_COLUMNS):
            book.submitted_summaries[slot, column] = book.summaries[slot, column]
    settings = policy.settings
    planned = _estimate(settings.plan_program, settings.plan_constants, machine, slot, now, book)
    machine.planned[slot] = planned
    machine.initial[slot] = planned
    machine.likely[slot] = _estimate(
        settings.likely_program, settings.likely_constants, machine, slot, now, book
    )
    kind = kinds.of[slot]
    kinds.waiting[kind] += 1
    if kinds.first[kind] < 0:
        kinds.first[kind] = slot
    if kinds.last[kind] >= 0:
        kinds.following[kinds.last[kind]] = slot
    kinds.last[kind] = slot
    _touch(kinds, slot)
    _enter(queue, machine, slot, now, book)
    if not policy.settings.shared:
        _enter(candidates, machine, slot, now, book)
    counters[WAITING] += 1


@inlined
def _finish(machine: Machine, kinds: Kinds, policy: Policy, book: Book, now: float) -> None:
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
    kinds.running[kinds.of[slot]] -= 1
    _touch(kinds, slot)
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
    if policy.settings.refreshes:
        machine.learned_of[int(book.specs[slot, USER]) + 1] = True
        counters[LEARNED_OF] += 1


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
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    kinds: Kinds,
    policy: Policy,
    book: Book,
    now: float,
) -> None:
    """Ends, expired estimates, submissions; then one pass."""
    counters = machine.counters
    happened = False
    while counters[RUNNING] > 0 and machine.end_time[0] <= now:
        _finish(machine, kinds, policy, book, now)
        happened = True
    _expire(machine, policy, book, now)
    while (
        counters[SUBMITTED] < book.specs.shape[0] and book.specs[counters[SUBMITTED], SUBMIT] <= now
    ):
        _submit(queue, candidates, machine, kinds, policy, book, now)
        happened = True
    if happened:
        _schedule(queue, candidates, machine, kinds, policy, book, now)


@inlined
def _each_event(
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    kinds: Kinds,
    policy: Policy,
    book: Book,
    now: float,
) -> None:
    """Expired estimates, submissions, ends; a pass after every submission and every end."""
    counters = machine.counters
    _expire(machine, policy, book, now)
    while (
        counters[SUBMITTED] < book.specs.shape[0] and book.specs[counters[SUBMITTED], SUBMIT] <= now
    ):
        _submit(queue, candidates, machine, kinds, policy, book, now)
        _schedule(queue, candidates, machine, kinds, policy, book, now)
    while counters[RUNNING] > 0 and machine.end_time[0] <= now:
        _finish(machine, kinds, policy, book, now)
        _schedule(queue, candidates, machine, kinds, policy, book, now)


_F = types.float64[::1]
_I = types.int64[::1]
_M = types.float64[:, ::1]
_FLAGS = types.boolean[::1]
_LANE = types.NamedTuple((_F, _I, _I, _F, types.boolean, types.boolean), Lane)
_KINDS = types.NamedTuple((_I, _I, _I, _I, _I, _I, _I, _I, _FLAGS), Kinds)
_MACHINE = types.NamedTuple(
    (
        _I,
        _F,
        _F,
        _F,
        _I,
        _F,
        _I,
        _I,
        _F,
        _F,
        _F,
        _F,
        _F,
        _FLAGS,
        _FLAGS,
        _I,
        _F,
        _F,
        _I,
        _F,
        _F,
        _I,
        _FLAGS,
        _F,
    ),
    Machine,
)
_SETTINGS = types.NamedTuple(
    (
        _F,
        _F,
        _I,
        _F,
        _I,
        _F,
        types.boolean,
        types.float64,
        types.float64,
        types.boolean,
        types.boolean,
        types.boolean,
    ),
    Settings,
)
_PREDICTOR = types.FunctionType(PREDICTOR_STEP)
_BOOK = types.NamedTuple((_M, _M, _M, _F, _M, _M, _F, _F), Book)


@step(
    types.void(
        _LANE,
        _LANE,
        _MACHINE,
        _KINDS,
        _BOOK,
        _SETTINGS,
        _PREDICTOR,
        _PREDICTOR,
        _PREDICTOR,
        types.FunctionType(CORRECTION_STEP),
        types.FunctionType(PASS_STEP),
        _PREDICTOR,
    )
)
def replay_loop(
    queue: Lane,
    candidates: Lane,
    machine: Machine,
    kinds: Kinds,
    book: Book,
    settings: Settings,
    predict: Any,
    started: Any,
    observe: Any,
    correct: Any,
    one_pass: Any,
    refresh: Any,
) -> None:
    """Run all jobs of the book to their end; the results are in the machine's arrays."""
    queue = borrowed(queue)  # type: ignore[call-arg]  # an intrinsic's context is Numba's
    candidates = borrowed(candidates)
    machine = borrowed(machine)
    kinds = borrowed(kinds)
    book = borrowed(book)
    policy = Policy(predict, started, observe, correct, one_pass, refresh, borrowed(settings))
    jobs = book.specs.shape[0]
    counters = machine.counters
    while counters[SUBMITTED] < jobs or counters[RUNNING] > 0:
        now = math.inf
        if counters[SUBMITTED] < jobs:
            now = book.specs[counters[SUBMITTED], SUBMIT]
        if counters[RUNNING] > 0:
            now = min(now, machine.end_time[0], machine.release_time[0])
        if settings.pass_per_event:
            _each_event(queue, candidates, machine, kinds, policy, book, now)
        else:
            _whole_instant(queue, candidates, machine, kinds, policy, book, now)


def waiting_lane(program: Program, jobs: int) -> Lane:
    """An empty queue for up to ``jobs`` jobs in the order of a program."""
    return Lane(np.empty(jobs + 1), np.empty(jobs + 1, np.int64), *program)


def idle_machine(processors: float, width: Floats, users: int) -> Machine:
    """A machine without jobs, for a replay of jobs of these widths (cpus) by so many users."""
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
        likely=np.empty(jobs),
        pilots=np.ones(jobs),
        is_aged=np.zeros(jobs, np.bool_),
        learned_of=np.zeros(users + 1, np.bool_),
        to_refresh=np.empty(jobs, np.int64),
        expected_end=np.empty(jobs),
        reservation=np.full(jobs, math.nan),
        starts=np.empty(jobs + 1, np.int64),
        start=np.full(jobs, math.nan),
        end=np.full(jobs, math.nan),
        corrections=np.zeros(jobs, np.int64),
        backfilled=np.zeros(jobs, np.bool_),
        stack=np.empty(STACK_DEPTH),
    )


def no_jobs_of(kinds: Integers) -> Kinds:
    """The kinds of a replay's jobs before any is submitted; ``kinds`` are codes from 0 on."""
    count = int(kinds.max(initial=-1)) + 1
    return Kinds(
        of=kinds,
        waiting=np.zeros(count, np.int64),
        running=np.zeros(count, np.int64),
        first=np.full(count, -1, np.int64),
        last=np.full(count, -1, np.int64),
        pilot=np.full(count, -1, np.int64),
        following=np.full(len(kinds), -1, np.int64),
        touched=np.zeros(count + 1, np.int64),
        is_touched=np.zeros(count, np.bool_),
    )
