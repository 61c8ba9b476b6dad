"""Improving a plan by chance: parts of it are taken out and filled again, and kept if no worse.

Options, groups and rows are those of ``plan_filling``. The numbers drawn depend on the seed alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel
from foresail.kernels.plan_filling import NOT_PLANNED, best_option, take

_ROUNDING: Final = 1e-7
_NOTHING: Final = 1e-10
_GAIN: Final = 1e-7
_TO_FLOAT: Final = 1.0 / 9007199254740992.0
_MULTIPLIER: Final = np.uint64(6364136223846793005)
_INCREMENT: Final = np.uint64(1442695040888963407)
_SHIFT: Final = np.uint64(11)

_MOST_TAKEN_OUT: Final = 4
_MOST_REFILLED: Final = 24
_LESS_CHOOSY: Final = 0.3

_TAKES_OUT: Final = 0.45
_LETS_RUN: Final = 0.1
"""How often a change begins so; the others force somebody in."""


class Question(NamedTuple):
    """What may be planned: the arrays of ``foresail.schedulers._planning.problem.Problem``."""

    first_group: NDArray[np.int64]
    group_set: NDArray[np.int64]
    consumption: NDArray[np.float64]
    worth: NDArray[np.float64]
    cover: NDArray[np.bool_]
    victim_cost: NDArray[np.float64]
    victim_credit: NDArray[np.float64]


class Plan(NamedTuple):
    """Group and slot of every job (-1: none), who is stopped, and what is left (rows, slots)."""

    group: NDArray[np.int64]
    slot: NDArray[np.int64]
    stopped: NDArray[np.bool_]
    left: NDArray[np.float64]


@kernel
def _chance(state: NDArray[np.uint64]) -> float:
    """The next number from 0 up to 1."""
    state[0] = state[0] * _MULTIPLIER + _INCREMENT
    return float(state[0] >> _SHIFT) * _TO_FLOAT


@kernel
def _copy(source: Plan, target: Plan) -> None:
    target.group[:] = source.group
    target.slot[:] = source.slot
    target.stopped[:] = source.stopped
    target.left[:] = source.left


@kernel
def _put(ask: Question, plan: Plan, job: int, group: int, slot: int) -> float:
    """Give a job an option instead of what it has, -1 for none; returns what is gained."""
    gain = 0.0
    before = plan.group[job]
    if before != NOT_PLANNED:
        at = plan.slot[job]
        take(before, at, -1.0, ask.group_set, ask.consumption, ask.cover, plan.left)
        gain -= ask.worth[before, at]
    if group != NOT_PLANNED:
        take(group, slot, 1.0, ask.group_set, ask.consumption, ask.cover, plan.left)
        gain += ask.worth[group, slot]
    plan.group[job] = group
    plan.slot[job] = slot
    return gain


@kernel
def _take_out(
    ask: Question, plan: Plan, order: NDArray[np.int64], state: NDArray[np.uint64]
) -> float:
    """Take a few planned jobs out; returns what is gained, which is negative."""
    planned = 0
    for job in range(plan.group.size):
        if plan.group[job] != NOT_PLANNED:
            order[planned] = job
            planned += 1
    gain = 0.0
    for at in range(min(1 + int(_chance(state) * _MOST_TAKEN_OUT), planned)):
        other = at + int(_chance(state) * (planned - at))
        order[at], order[other] = order[other], order[at]
        gain += _put(ask, plan, order[at], NOT_PLANNED, NOT_PLANNED)
    return gain


@kernel
def _overdrawn(left: NDArray[np.float64]) -> tuple[int, int]:
    """The first row and slot of which more is held than there is; -1 if there is none."""
    for row in range(left.shape[0]):
        for slot in range(left.shape[1]):
            if left[row, slot] < -_ROUNDING:
                return row, slot
    return -1, -1


@kernel
def _make_room(ask: Question, plan: Plan, guest: int, state: NDArray[np.uint64]) -> float:
    """Take out or stop others until no row is overdrawn; returns what is gained.

    Those who give back much for little worth go first, mostly. -inf if all of them are not enough.
    """
    gain = 0.0
    while True:
        row, slot = _overdrawn(plan.left)
        if row < 0:
            return gain
        lacking = -plan.left[row, slot]
        best, best_job, best_victim = 0.0, -1, -1
        for job in range(plan.group.size):
            group, since = plan.group[job], slot - plan.slot[job]
            if group == NOT_PLANNED or job == guest or since < 0:
                continue
            if ask.cover[ask.group_set[group], row]:
                given = min(ask.consumption[group, since], lacking)
                score = given / ask.worth[group, plan.slot[job]] * _chance(state)
                if score > best:
                    best, best_job, best_victim = score, job, -1
        for victim in range(plan.stopped.size):
            if not plan.stopped[victim] and ask.victim_credit[victim, row, slot] > 0.0:
                given = min(ask.victim_credit[victim, row, slot], lacking)
                score = given / max(ask.victim_cost[victim], _ROUNDING) * _chance(state)
                if score > best:
                    best, best_job, best_victim = score, -1, victim
        if best_job >= 0:
            gain += _put(ask, plan, best_job, NOT_PLANNED, NOT_PLANNED)
        elif best_victim >= 0:
            plan.stopped[best_victim] = True
            plan.left[:] += ask.victim_credit[best_victim]
            gain -= ask.victim_cost[best_victim]
        else:
            return -np.inf


@kernel
def _force(ask: Question, plan: Plan, state: NDArray[np.uint64]) -> float:
    """Give some job some option, rather an early one, and make room for it."""
    job = int(_chance(state) * plan.group.size)
    first, end = ask.first_group[job], ask.first_group[job + 1]
    if first == end:
        return -np.inf
    group = first + int(_chance(state) * (end - first))
    early = _chance(state)
    slot = int(early * early * plan.left.shape[1])
    if ask.worth[group, slot] <= 0.0:
        return -np.inf
    gain = _put(ask, plan, job, group, slot)
    return gain + _make_room(ask, plan, job, state)


@kernel
def _let_run(ask: Question, plan: Plan, state: NDArray[np.uint64]) -> float:
    """Stop some victim no more, and make room for it, perhaps by stopping another."""
    victims = plan.stopped.size
    victim = int(_chance(state) * victims)
    if victims == 0 or not plan.stopped[victim]:
        return -np.inf
    plan.stopped[victim] = False
    plan.left[:] -= ask.victim_credit[victim]
    return float(ask.victim_cost[victim]) + _make_room(ask, plan, -1, state)


@kernel
def _refill(
    ask: Question,
    plan: Plan,
    order: NDArray[np.int64],
    least: NDArray[np.float64],
    state: NDArray[np.uint64],
) -> float:
    """Plan some of those who are not, in random order; returns what is gained."""
    waiting = 0
    for job in range(plan.group.size):
        if plan.group[job] == NOT_PLANNED and ask.first_group[job] < ask.first_group[job + 1]:
            order[waiting] = job
            waiting += 1
    gain = 0.0
    for at in range(min(waiting, _MOST_REFILLED)):
        other = at + int(_chance(state) * (waiting - at))
        order[at], order[other] = order[other], order[at]
        job = order[at]
        first, end = ask.first_group[job], ask.first_group[job + 1]
        if end - first > 1 and _chance(state) < _LESS_CHOOSY:
            first += int(_chance(state) * (end - first))
            end = first + 1
        group, slot = best_option(
            first, end, ask.group_set, ask.consumption, ask.worth, ask.cover, plan.left, least
        )
        if group != NOT_PLANNED:
            gain += _put(ask, plan, job, group, slot)
    return gain


@kernel
def _spare(ask: Question, plan: Plan, state: NDArray[np.uint64]) -> float:
    """Stop nobody for nothing, beginning with any; returns what is gained."""
    victims = plan.stopped.size
    gain = 0.0
    begin = int(_chance(state) * victims)
    for at in range(victims):
        victim = (begin + at) % victims
        if not plan.stopped[victim]:
            continue
        needed = False
        for row in range(plan.left.shape[0]):
            for slot in range(plan.left.shape[1]):
                if plan.left[row, slot] < ask.victim_credit[victim, row, slot] - _ROUNDING:
                    needed = True
                    break
            if needed:
                break
        if not needed:
            plan.stopped[victim] = False
            plan.left[:] -= ask.victim_credit[victim]
            gain += ask.victim_cost[victim]
    return gain


@kernel
def search_plan(
    ask: Question, plan: Plan, value: float, enough: float, changes: int, patience: int, seed: int
) -> float:
    """Change a plan again and again, and keep each change that makes it no worse.

    Parameters
    ----------
    ask
        What may be planned.
    plan
        Changed to the best plan found.
    value, enough
        What it is worth; and what is good enough to stop.
    changes, patience
        Stop after so many changes, or so many without gain.
    seed
        Says which changes are tried.

    Returns
    -------
    float
        What the plan is worth.
    """
    state = np.zeros(1, np.uint64)
    state[0] = np.uint64(seed)
    kept = Plan(plan.group.copy(), plan.slot.copy(), plan.stopped.copy(), plan.left.copy())
    order = np.empty(plan.group.size, np.int64)
    least = np.empty(plan.left.shape[1])
    until = patience
    change = 0
    while change < min(changes, until) and value < enough:
        change += 1
        move = _chance(state)
        if move < _TAKES_OUT:
            gain = _take_out(ask, plan, order, state)
        elif move < _TAKES_OUT + _LETS_RUN:
            gain = _let_run(ask, plan, state)
        else:
            gain = _force(ask, plan, state)
        if gain > -np.inf:
            gain += _refill(ask, plan, order, least, state) + _spare(ask, plan, state)
        if gain < -_NOTHING:
            _copy(kept, plan)
            continue
        _copy(plan, kept)
        value += gain
        if gain > _GAIN * max(abs(value), 1.0):
            until = change + patience
    return value
