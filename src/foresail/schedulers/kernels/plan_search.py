"""Improving a plan by chance: parts of it are taken out, and what is free is filled again.

What is a little worse is borne at first, and ever less of it: simulated annealing.
Options, groups and rows are those of ``plan_filling``. The numbers drawn depend on the seed alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Floats, Integers
from foresail.schedulers.kernels.plan_filling import NOT_PLANNED, best_start, take

_ROUNDING: Final = 1e-7
_NOTHING: Final = 1e-10
_GAIN: Final = 1e-7
_TO_FLOAT: Final = 1.0 / 9007199254740992.0
_MULTIPLIER: Final = np.uint64(6364136223846793005)
_INCREMENT: Final = np.uint64(1442695040888963407)
_SHIFT: Final = np.uint64(11)

_DRAWN: Final = 2
_MOST_TAKEN_OUT: Final = 4
_MOST_REFILLED: Final = 24
_LESS_CHOOSY: Final = 0.3

_FIRST_BEARABLE: Final = 0.1
_LAST_BEARABLE: Final = 1e-6

_TAKES_OUT: Final = 0.45
_LETS_RUN: Final = 0.1
"""Share of changes that begin so; the others force a job in."""


class Options(NamedTuple):
    """The question (``foresail.schedulers._planning.problem.Problem``) as the search reads it.

    ``groups_of`` has the first and the end of each job's groups, ``groups`` what each group needs
    and what it is worth in every slot (groups, 2, slots), ``cover`` the rows that give of it and
    how much.
    """

    groups_of: Integers
    groups: Floats
    cover: Floats
    victim_cost: Floats
    victim_credit: Floats


class _Chosen(NamedTuple):
    """A plan as the search changes it.

    ``one`` has a row for each job, its group and slot, and behind them one for each victim: 1 if it
    is stopped, else 0.
    """

    one: Integers
    left: Floats


TRIED: Final = 2
"""Place among its limits where a search says how many changes it has tried."""
GROUP: Final = 0
SLOT: Final = 1
_STOPPED: Final = 0
_NEEDS: Final = 0
_WORTH: Final = 1


@part
def _chance(state: NDArray[np.uint64]) -> float:
    """The next number from 0 up to 1."""
    state[0] = state[0] * _MULTIPLIER + _INCREMENT
    return float(state[0] >> _SHIFT) * _TO_FLOAT


@part
def _copy(source: _Chosen, target: _Chosen) -> None:
    for one in range(source.one.shape[0]):
        target.one[one, 0] = source.one[one, 0]
        target.one[one, 1] = source.one[one, 1]
    for row in range(source.left.shape[0]):
        for slot in range(source.left.shape[1]):
            target.left[row, slot] = source.left[row, slot]


@part
def _give(left: Floats, credit: Floats, times: float) -> None:
    """Add what stopping a job gives back, shape (rows, slots); -1 takes it away again."""
    for row in range(left.shape[0]):
        for slot in range(left.shape[1]):
            left[row, slot] += times * credit[row, slot]


@part
def _remove(options: Options, plan: _Chosen, job: int) -> float:
    """Take a planned job out; returns what is gained, which is negative."""
    group, slot = plan.one[job, GROUP], plan.one[job, SLOT]
    take(options.groups[group, _NEEDS], options.cover[group], slot, -1.0, plan.left)
    plan.one[job, GROUP] = NOT_PLANNED
    plan.one[job, SLOT] = NOT_PLANNED
    return float(-options.groups[group, _WORTH, slot])


@part
def _put(options: Options, plan: _Chosen, job: int, group: int, slot: int) -> float:
    """Give a job that is not planned an option; returns what is gained."""
    take(options.groups[group, _NEEDS], options.cover[group], slot, 1.0, plan.left)
    plan.one[job, GROUP] = group
    plan.one[job, SLOT] = slot
    return float(options.groups[group, _WORTH, slot])


@part
def _take_out(options: Options, plan: _Chosen, order: Integers, state: NDArray[np.uint64]) -> float:
    """Take a few planned jobs out; returns what is gained, which is negative."""
    planned = 0
    for job in range(order.size):
        if plan.one[job, GROUP] != NOT_PLANNED:
            order[planned] = job
            planned += 1
    gain = 0.0
    for at in range(min(1 + int(_chance(state) * _MOST_TAKEN_OUT), planned)):
        other = at + int(_chance(state) * (planned - at))
        order[at], order[other] = order[other], order[at]
        gain += _remove(options, plan, order[at])
    return gain


@part
def _overdrawn(left: Floats) -> int:
    """The first place (row by row) of which more is held than there is; -1 if there is none."""
    rows, slots = left.shape
    for row in range(rows):
        for slot in range(slots):
            if left[row, slot] < -_ROUNDING:
                return int(row * slots + slot)
    return -1


@part
def _share_of(shares: Floats, row: int) -> float:
    """Return what a row gives to a group; 0 if it gives nothing."""
    for at in range(shares.shape[0]):
        if shares[at, 0] == row:
            return float(shares[at, 1])
    return 0.0


@part
def _make_room(options: Options, plan: _Chosen, guest: int, state: NDArray[np.uint64]) -> float:
    """Take out or stop others until no row is overdrawn; returns what is gained.

    Those that give back much for little worth go first, mostly. -inf if all of them are not enough.
    ``guest`` is a job that stays, or the number of no job, which is behind all others.
    """
    jobs, no_job = options.groups_of.shape[0], plan.one.shape[0]
    slots = plan.left.shape[1]
    gain = 0.0
    while True:
        place = _overdrawn(plan.left)
        if place < 0:
            return gain
        row, slot = place // slots, place % slots
        lacking = -plan.left[row, slot]
        best, best_one = 0.0, no_job
        for job in range(jobs):
            group, since = plan.one[job, GROUP], slot - plan.one[job, SLOT]
            if group == NOT_PLANNED or job == guest or since < 0:
                continue
            share = _share_of(options.cover[group], row)
            if share > 0.0:
                # More than is lacking is worth nothing; chance keeps the search from going in
                # circles.
                given = min(share * options.groups[group, _NEEDS, since], lacking)
                worth = options.groups[group, _WORTH, plan.one[job, SLOT]]
                score = given / worth * _chance(state)
                if score > best:
                    best, best_one = score, job
        for one in range(jobs, no_job):
            credit = options.victim_credit[one - jobs, row, slot]
            if plan.one[one, _STOPPED] == 0 and credit > 0.0:
                cost = max(options.victim_cost[one - jobs], _ROUNDING)
                score = min(credit, lacking) / cost * _chance(state)
                if score > best:
                    best, best_one = score, one
        if best_one == no_job:
            return -np.inf
        if best_one < jobs:
            gain += _remove(options, plan, best_one)
        else:
            plan.one[best_one, _STOPPED] = 1
            _give(plan.left, options.victim_credit[best_one - jobs], 1.0)
            gain -= options.victim_cost[best_one - jobs]


@part
def _guest(plan: _Chosen, options: Options, most: Floats, state: NDArray[np.uint64]) -> int:
    """Draw some jobs and return the one that misses most of what it could be worth."""
    best, best_stake = 0, -1.0
    for _ in range(_DRAWN):
        job = int(_chance(state) * most.size)
        stake = most[job]
        if plan.one[job, GROUP] != NOT_PLANNED:
            stake -= options.groups[plan.one[job, GROUP], _WORTH, plan.one[job, SLOT]]
        if stake > best_stake:
            best, best_stake = job, stake
    return best


@part
def _lacking(needs: Floats, shares: Floats, slot: int, left: Floats) -> float:
    """Return how much of what a group needs from a slot on is not left, over its rows and slots."""
    lacking = 0.0
    for at in range(shares.shape[0]):
        row, share = int(shares[at, 0]), shares[at, 1]
        if row < 0:
            break
        for after in range(left.shape[1] - slot):
            lacking += max(needs[after] - max(left[row, slot + after], 0.0) / share, 0.0)
    return lacking


@part
def _force(
    options: Options, plan: _Chosen, job: int, tries: int, state: NDArray[np.uint64]
) -> float:
    """Give a job an option, rather an early one, whether or not there is room.

    Of as many as are tried, the one for which least is lacking.
    """
    first, end = options.groups_of[job, 0], options.groups_of[job, 1]
    slots = plan.left.shape[1]
    if first == end:
        return -np.inf
    best_group, best_slot, least = first, NOT_PLANNED, np.inf
    for _ in range(tries):
        group = first + int(_chance(state) * (end - first))
        # Squared: half of the tries are in the first quarter of the window.
        early = _chance(state)
        slot = int(early * early * slots)
        if options.groups[group, _WORTH, slot] > 0.0:
            lacking = _lacking(options.groups[group, _NEEDS], options.cover[group], slot, plan.left)
            if lacking < least:
                best_group, best_slot, least = group, slot, lacking
    if best_slot == NOT_PLANNED:
        return -np.inf
    gain = 0.0
    if plan.one[job, GROUP] != NOT_PLANNED:
        gain = _remove(options, plan, job)
    return gain + _put(options, plan, job, best_group, best_slot)


@part
def _let_run(options: Options, plan: _Chosen, state: NDArray[np.uint64]) -> float:
    """Stop some victim no more, whether or not there is room."""
    jobs, no_job = options.groups_of.shape[0], plan.one.shape[0]
    victim = int(_chance(state) * (no_job - jobs))
    if no_job == jobs or plan.one[jobs + victim, _STOPPED] == 0:
        return -np.inf
    plan.one[jobs + victim, _STOPPED] = 0
    _give(plan.left, options.victim_credit[victim], -1.0)
    return float(options.victim_cost[victim])


@part
def _refill(
    options: Options, plan: _Chosen, order: Integers, least: Floats, state: NDArray[np.uint64]
) -> float:
    """Plan some of those that are not, in random order; returns what is gained."""
    waiting = 0
    for job in range(order.size):
        has_groups = options.groups_of[job, 0] < options.groups_of[job, 1]
        if has_groups and plan.one[job, GROUP] == NOT_PLANNED:
            order[waiting] = job
            waiting += 1
    gain = 0.0
    for at in range(min(waiting, _MOST_REFILLED)):
        other = at + int(_chance(state) * (waiting - at))
        order[at], order[other] = order[other], order[at]
        job = order[at]
        first, end = options.groups_of[job, 0], options.groups_of[job, 1]
        # Now and then a group at random, lest the search stays where greed has brought it.
        if end - first > 1 and _chance(state) < _LESS_CHOOSY:
            first += int(_chance(state) * (end - first))
            end = first + 1
        best, best_group, best_slot = 0.0, first, first
        for group in range(first, end):
            needs, worth = options.groups[group, _NEEDS], options.groups[group, _WORTH]
            slot = best_start(needs, worth, options.cover[group], best, plan.left, least)
            if slot != NOT_PLANNED:
                best, best_group, best_slot = worth[slot], group, slot
        if best > 0.0:
            gain += _put(options, plan, job, best_group, best_slot)
    return gain


@part
def _spare(options: Options, plan: _Chosen, state: NDArray[np.uint64]) -> float:
    """Stop no job for nothing, beginning with any; returns what is gained."""
    jobs = options.groups_of.shape[0]
    victims = plan.one.shape[0] - jobs
    gain = 0.0
    begin = int(_chance(state) * victims)
    for at in range(victims):
        victim = (begin + at) % victims
        credit = options.victim_credit[victim]
        if plan.one[jobs + victim, _STOPPED] == 1 and not _is_needed(plan.left, credit):
            plan.one[jobs + victim, _STOPPED] = 0
            _give(plan.left, credit, -1.0)
            gain += options.victim_cost[victim]
    return gain


@part
def _is_needed(left: Floats, credit: Floats) -> bool:
    """Return whether rows would be overdrawn without what stopping a job gives back."""
    for row in range(left.shape[0]):
        for slot in range(left.shape[1]):
            if left[row, slot] < credit[row, slot] - _ROUNDING:
                return True
    return False


@bare_kernel
def search(
    options: Options,
    plans: Integers,
    lefts: Floats,
    limits: Floats,
    order: Integers,
    least: Floats,
    most: Floats,
    state: NDArray[np.uint64],
) -> float:
    """Change the first of three equal plans again and again; the last is the best that was met.

    ``plans`` have a row for each job and victim, ``lefts`` what is left of every row. ``limits``
    are what the plan is worth, and what is good enough to stop; after how many changes to stop, and
    how many without gain; of how many options the one is taken for which least room is made.
    ``order`` and ``least`` are room per job and per slot, ``most`` is the most that any start of a
    job is worth; ``state`` says which changes are tried.
    """
    plan = _Chosen(plans[0], lefts[0])
    kept = _Chosen(plans[1], lefts[1])
    best = _Chosen(plans[2], lefts[2])
    value, enough, changes, patience = limits[0], limits[1], limits[2], limits[3]
    tries = int(limits[4])
    best_value = value
    until = patience
    change = 0.0
    bearable = _FIRST_BEARABLE * abs(value)
    cooling = (_LAST_BEARABLE / _FIRST_BEARABLE) ** (1.0 / changes)
    # Simulated annealing: what is lost in a change may be kept, by odds that fall.
    while change < min(changes, until) and best_value < enough:
        change += 1.0
        bearable *= cooling
        move = _chance(state)
        if move < _TAKES_OUT:
            gain = _take_out(options, plan, order, state)
        else:
            guest = plan.one.shape[0]
            if move < _TAKES_OUT + _LETS_RUN:
                gain = _let_run(options, plan, state)
            else:
                guest = _guest(plan, options, most, state)
                gain = _force(options, plan, guest, tries, state)
            if gain > -np.inf:
                gain += _make_room(options, plan, guest, state)
        if gain > -np.inf:
            gain += _refill(options, plan, order, least, state) + _spare(options, plan, state)
        if gain < -_NOTHING - bearable * _chance(state):
            _copy(kept, plan)
            continue
        _copy(plan, kept)
        value += gain
        if value > best_value:
            if value > best_value + _GAIN * max(abs(value), 1.0):
                until = change + patience
            best_value = value
            _copy(plan, best)
    limits[TRIED] = change
    return float(best_value)
