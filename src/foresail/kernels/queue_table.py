"""A queue that is kept from pass to pass: brought up to date by what has changed, then passed over.

The tables are those of a pass (``foresail.kernels.waiting_jobs``); slots ascend in order of
arrival. What a pass does to them is taken back: whether anybody starts is for others to say.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.calling import call_pass_step
from foresail.kernels.columns import SPEC_COLUMNS, SUMMARY_COLUMNS
from foresail.kernels.compile import bare_kernel, merged_part, part
from foresail.kernels.expression import STACK_DEPTH, evaluate
from foresail.kernels.signatures import PassInputs
from foresail.kernels.waiting_jobs import (
    CANDIDATE,
    EXPECTED_END,
    LIKELY,
    PLANNED,
    QUEUE,
    RESERVATION,
    SUBMITTED,
    WIDTH,
    enter,
    hold,
    leave,
    let_go,
    place_after,
    sort,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ENTERS: Final = 0.0
LEAVES: Final = 1.0
HOLDS: Final = 2.0
LETS_GO: Final = 3.0
RUNS: Final = 4.0
RUNS_NO_MORE: Final = 5.0

WHAT: Final = 0
WHO: Final = 1
END: Final = 2
CPUS_HELD: Final = 3
CHANGE_COLUMNS: Final = 4
"""A row per change: one of the above; the slot of a waiting job, the holder of a running one, or
the kind of one (RUNS, RUNS_NO_MORE); expected end (seconds) and cpus of a running job. A holder is
a negative number, so that no slot is one."""

SUMMARY: Final = SPEC_COLUMNS
QUEUE_RANK: Final = SUMMARY + SUMMARY_COLUMNS
CANDIDATE_RANK: Final = QUEUE_RANK + 1
WAITS: Final = QUEUE_RANK + 2
AGED: Final = QUEUE_RANK + 3
INFORMS: Final = QUEUE_RANK + 4
KIND: Final = QUEUE_RANK + 5
FACT_COLUMNS: Final = QUEUE_RANK + 6
"""What is known of a job beyond what a pass needs, by slot: specification and summary rows; its
keys in the orders; 1 while it waits; 1 once it goes first because of its age; how many waiting jobs
it would inform; its kind."""

WAITING: Final = 0
RELEASES: Final = 1
SLOTS: Final = 2
FIRST: Final = 3
YOUNGEST_AGED: Final = 4
RESERVED: Final = 5
PASSES: Final = 6
COUNTERS: Final = 7
"""How many wait and run, and how many slots are in use; no job of a slot before FIRST waits, none
before YOUNGEST_AGED is still to age; how many reservations the last pass made; passes."""

OF_KIND_WAITING: Final = 0
OF_KIND_RUNNING: Final = 1
SEEN: Final = 2
KIND_COLUMNS: Final = 3
"""By kind: how many wait and run; in which pass the job that informs the others was found last."""

PASS: Final = 0
CANDIDATES: Final = 1
AGE_LIMIT: Final = 2
OLDEST_LIMIT: Final = 3
QUEUE_MOVES: Final = 4
CANDIDATES_MOVE: Final = 5
FOLLOWS_PILOTS: Final = 6
MOST_RESERVED: Final = 7
PARTS: Final = 8
QUEUE_PROGRAM: Final = PARTS
CANDIDATES_PROGRAM: Final = PARTS + 2
LIKELY_PROGRAM: Final = PARTS + 4
PASS_PARAMETERS: Final = PARTS + 6
STACK: Final = PARTS + 8
NUMBERS: Final = STACK + STACK_DEPTH
"""The vector of numbers: the pass's address; the order table's column of candidates; limits
(seconds); whether orders change with time or follow pilots; how many reservations a pass makes at
most; where in the vector programs and parameters begin and end; room for ``evaluate``."""

NO_CODE: Final = -1
STARTED: Final = 0
RESERVED_LATER: Final = 1
NO_ROOM: Final = 2
WOULD_DELAY: Final = 3
BEHIND: Final = 4
"""Why a job waits, as far as that may differ from pass to pass."""


@merged_part
def _value(numbers: Floats, program: int, fact: Floats, now: float) -> float:
    code = numbers[int(numbers[program]) : int(numbers[program + 1])]
    stack = numbers[STACK : STACK + STACK_DEPTH]
    spec, summary = fact[:SUMMARY], fact[SUMMARY:QUEUE_RANK]
    return evaluate(code, stack, spec, summary, now, fact[INFORMS])


@part
def _key(numbers: Floats, program: int, fact: Floats, now: float) -> float:
    """A job's key in an order: who is aged comes first."""
    return -math.inf if fact[AGED] != 0.0 else _value(numbers, program, fact, now)


@part
def _put(
    facts: Floats, order: Floats, numbers: Floats, waiting: int, slot: int, now: float
) -> None:
    """Put a job into its places; ``waiting`` others are in theirs."""
    fact = facts[slot]
    key = _key(numbers, QUEUE_PROGRAM, fact, now)
    fact[QUEUE_RANK] = key
    enter(order, QUEUE, waiting, place_after(order, QUEUE, 0, waiting, key, slot), key, slot)
    if numbers[CANDIDATES] == CANDIDATE:
        key = _key(numbers, CANDIDATES_PROGRAM, fact, now)
        fact[CANDIDATE_RANK] = key
        place = place_after(order, CANDIDATE, 0, waiting, key, slot)
        enter(order, CANDIDATE, waiting, place, key, slot)


@part
def _remove(facts: Floats, order: Floats, numbers: Floats, waiting: int, slot: int) -> None:
    """Take one of ``waiting`` jobs out of its places."""
    leave(order, QUEUE, 0, waiting, facts[slot, QUEUE_RANK], slot)
    if numbers[CANDIDATES] == CANDIDATE:
        leave(order, CANDIDATE, 0, waiting, facts[slot, CANDIDATE_RANK], slot)


@part
def _move(
    facts: Floats, order: Floats, numbers: Floats, waiting: int, slot: int, now: float
) -> None:
    """Put a job whose keys have changed into its new places."""
    _remove(facts, order, numbers, waiting, slot)
    _put(facts, order, numbers, waiting - 1, slot, now)


@part
def _sort_all(
    facts: Floats, order: Floats, numbers: Floats, column: int, waiting: int, now: float
) -> None:
    """Evaluate an order anew."""
    program = QUEUE_PROGRAM if column == QUEUE else CANDIDATES_PROGRAM
    rank = QUEUE_RANK if column == QUEUE else CANDIDATE_RANK
    for i in range(waiting):
        slot = int(order[i, column])
        facts[slot, rank] = _key(numbers, program, facts[slot], now)
        order[i, column - 1] = facts[slot, rank]
    sort(order, column, 0, waiting)


@part
def _change(
    change: Floats,
    now: float,
    counters: Integers,
    numbers: Floats,
    jobs: Floats,
    facts: Floats,
    kinds: Integers,
    order: Floats,
    release: Floats,
) -> None:
    """Make one change."""
    what, who = change[WHAT], int(change[WHO])
    if what == ENTERS:
        fact = facts[who]
        jobs[who, LIKELY] = _value(numbers, LIKELY_PROGRAM, fact, now)
        _put(facts, order, numbers, counters[WAITING], who, now)
        fact[WAITS] = 1.0
        kinds[int(fact[KIND]), OF_KIND_WAITING] += 1
        counters[WAITING] += 1
        counters[SLOTS] = max(counters[SLOTS], who + 1)
    elif what == LEAVES:
        _remove(facts, order, numbers, counters[WAITING], who)
        facts[who, WAITS] = 0.0
        kinds[int(facts[who, KIND]), OF_KIND_WAITING] -= 1
        counters[WAITING] -= 1
    elif what == HOLDS:
        hold(release, counters[RELEASES], change[END], change[CPUS_HELD], who)
        counters[RELEASES] += 1
    elif what == LETS_GO:
        let_go(release, counters[RELEASES], change[END], who)
        counters[RELEASES] -= 1
    elif what == RUNS:
        kinds[who, OF_KIND_RUNNING] += 1
    else:
        kinds[who, OF_KIND_RUNNING] -= 1


@part
def _grow_old(
    now: float, counters: Integers, numbers: Floats, jobs: Floats, facts: Floats, order: Floats
) -> None:
    """Jobs past the age limit go first, in order of arrival; the oldest of all goes earlier."""
    while counters[FIRST] < counters[SLOTS] and facts[counters[FIRST], WAITS] == 0.0:
        counters[FIRST] += 1
    counters[YOUNGEST_AGED] = max(counters[YOUNGEST_AGED], counters[FIRST])
    while counters[YOUNGEST_AGED] < counters[SLOTS]:
        slot = counters[YOUNGEST_AGED]
        fact = facts[slot]
        if fact[WAITS] != 0.0 and fact[AGED] == 0.0:
            wait = now - jobs[slot, SUBMITTED]
            oldest = slot == counters[FIRST] and wait >= numbers[OLDEST_LIMIT]
            if wait < numbers[AGE_LIMIT] and not oldest:
                break
            fact[AGED] = 1.0
            _move(facts, order, numbers, counters[WAITING], slot, now)
        counters[YOUNGEST_AGED] += 1


@part
def _choose_pilots(
    now: float,
    counters: Integers,
    numbers: Floats,
    facts: Floats,
    kinds: Integers,
    order: Floats,
) -> None:
    """The oldest waiting job of a kind of which none runs informs all that wait."""
    for slot in range(counters[FIRST], counters[SLOTS]):
        fact = facts[slot]
        if fact[WAITS] == 0.0:
            continue
        kind = kinds[int(fact[KIND])]
        informs = 1.0
        if kind[OF_KIND_RUNNING] == 0 and kind[SEEN] != counters[PASSES]:
            kind[SEEN] = counters[PASSES]
            if fact[AGED] == 0.0:
                informs = float(kind[OF_KIND_WAITING])
        if fact[INFORMS] != informs:
            fact[INFORMS] = informs
            _move(facts, order, numbers, counters[WAITING], slot, now)


@part
def _bring_into_order(
    now: float,
    counters: Integers,
    numbers: Floats,
    jobs: Floats,
    facts: Floats,
    kinds: Integers,
    order: Floats,
) -> None:
    """Bring ages, pilots and orders up to now."""
    _grow_old(now, counters, numbers, jobs, facts, order)
    if numbers[FOLLOWS_PILOTS] != 0.0:
        _choose_pilots(now, counters, numbers, facts, kinds, order)
    if numbers[QUEUE_MOVES] != 0.0:
        _sort_all(facts, order, numbers, QUEUE, counters[WAITING], now)
    if numbers[CANDIDATES_MOVE] != 0.0 and numbers[CANDIDATES] == CANDIDATE:
        _sort_all(facts, order, numbers, CANDIDATE, counters[WAITING], now)


@part
def _keep_late_ones(release: Floats, releases: int, soonest: float) -> None:
    """Who should have ended by now is expected to end at once."""
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
    """Write slots with reservations and their starts, in queue order; nobody keeps one."""
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
def fill_order(
    now: float,
    counters: Integers,
    numbers: Floats,
    jobs: Floats,
    facts: Floats,
    kinds: Integers,
    order: Floats,
) -> None:
    """Put all slots into their places, none of which is there yet; all wait."""
    waiting = counters[SLOTS]
    counters[WAITING] = waiting
    for slot in range(waiting):
        fact = facts[slot]
        jobs[slot, LIKELY] = _value(numbers, LIKELY_PROGRAM, fact, now)
        fact[WAITS] = 1.0
        kinds[int(fact[KIND]), OF_KIND_WAITING] += 1
        order[slot, QUEUE] = slot
        order[slot, CANDIDATE] = slot
    _sort_all(facts, order, numbers, QUEUE, waiting, now)
    if numbers[CANDIDATES] == CANDIDATE:
        _sort_all(facts, order, numbers, CANDIDATE, waiting, now)


@merged_part
def _call_pass(
    now: float,
    free: float,
    counters: Integers,
    numbers: Floats,
    jobs: Floats,
    order: Floats,
    release: Floats,
    starts: Integers,
) -> int:
    inputs = PassInputs(
        now,
        free,
        counters[WAITING],
        counters[RELEASES],
        order,
        int(numbers[CANDIDATES]),
        jobs,
        release,
        numbers[int(numbers[PASS_PARAMETERS]) : int(numbers[PASS_PARAMETERS + 1])],
        starts,
    )
    return int(call_pass_step(numbers[PASS], inputs))


@bare_kernel
def pass_over(
    now: float,
    soonest: float,
    free: float,
    changed: int,
    changes: Floats,
    counters: Integers,
    numbers: Floats,
    jobs: Floats,
    facts: Floats,
    kinds: Integers,
    order: Floats,
    release: Floats,
    plan: Floats,
    starts: Integers,
) -> int:
    """Make the first ``changed`` changes and run the pass; returns how many slots are to start.

    No running job is expected to end before ``soonest`` (seconds), which is after ``now``.
    ``starts`` is filled with these, ``plan`` with a row of slot and planned start (seconds) for
    each of the counted reservations.
    """
    for i in range(changed):
        _change(changes[i], now, counters, numbers, jobs, facts, kinds, order, release)
    _keep_late_ones(release, counters[RELEASES], soonest)
    counters[RESERVED] = 0
    if counters[WAITING] == 0:
        return 0
    counters[PASSES] += 1
    _bring_into_order(now, counters, numbers, jobs, facts, kinds, order)
    count = _call_pass(now, free, counters, numbers, jobs, order, release, starts)
    _take_back_starts(now, count, counters, jobs, release, starts)
    _gather_plan(counters, numbers, jobs, order, plan)
    return count


@bare_kernel
def find_changed_codes(
    free: float,
    behind: int,
    started: int,
    counters: Integers,
    jobs: Floats,
    order: Floats,
    plan: Floats,
    starts: Integers,
    codes: Integers,
    changed: Integers,
) -> int:
    """Slots of waiting jobs whose code is not the one in ``codes``, which then is.

    ``free`` cpus are left once the first ``started`` of ``starts`` run; ``behind`` is the code of
    jobs that would fit. Returns how many there are.
    """
    for i in range(counters[RESERVED]):
        jobs[int(plan[i, 0]), RESERVATION] = plan[i, 1]
    for i in range(started):
        jobs[starts[i], RESERVATION] = -math.inf
    found = 0
    for i in range(counters[WAITING]):
        slot = int(order[i, QUEUE])
        code = behind
        if jobs[slot, RESERVATION] == -math.inf:
            code = STARTED
        elif not math.isnan(jobs[slot, RESERVATION]):
            code = RESERVED_LATER
        elif jobs[slot, WIDTH] > free:
            code = NO_ROOM
        jobs[slot, RESERVATION] = math.nan
        if codes[slot] != code:
            codes[slot] = code
            changed[found] = slot
            found += 1
    return found
