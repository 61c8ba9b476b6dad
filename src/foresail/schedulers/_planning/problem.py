"""The question of one cycle as arrays, greedy answers to it, and what looking at it costs.

Jobs are numbered by arrival. A *group* is a job in one set of places; an *option* is a group and
the slot it starts in. Capacity is kept for unions of sets, a row for each and for every resource
that waiting jobs ask for: jobs fit if, for every union, those that must run within it need no more
than it has (Hall's theorem, exact for one resource, necessary for several). Where sets nest (racks
in a part in the cluster), the unions are the sets themselves. 3Sigma equation 4.3.

Work is given in seconds of the machine on which the costs here were measured (x86-64, 2026): a plan
gets as much work as that one does in the time that the plan may take. Where a step costs more or
less than is counted, that is so on every machine: equal questions get equal answers anywhere. The
clock only guards against disaster.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.schedulers.kernels.plan_filling import (
    NOT_PLANNED,
    fill_plan,
    rows_and_shares,
    take_all,
)

_ROUNDING: Final = 1e-7


@dataclass(frozen=True, eq=False)
class Problem:
    """Options that may be planned."""

    first_group: Integers
    """Groups of job j are ``first_group[j]`` to ``first_group[j + 1]``; shape (jobs + 1,)."""
    group_set: Integers
    """Number of each group's set of places and mix of resources; shape (groups,)."""
    consumption: Floats
    """Expected cpus that a group holds so many slots after its start; shape (groups, slots). (Of a
    job without cpus: what it holds of another resource.)"""
    worth: Floats
    """Expected value of a start in a slot, 0 for none; shape (groups, slots)."""
    cover: Floats
    """Amount that a row gives of its resource for each cpu that a group of a set consumes, 0 if the
    row's union does not contain the set; shape (sets, rows)."""
    capacity: Floats
    """Capacity that running jobs are expected to leave; shape (rows, slots)."""
    victim_cost: Floats
    victim_credit: Floats
    """Cost of stopping a running job; gain of it; shapes (victims,), (victims, rows, slots)."""

    @cached_property
    def rows(self) -> Floats:
        """The rows of every set and what they give, as kernels have it."""
        return rows_and_shares(self.cover)

    @property
    def jobs(self) -> int:
        """Return how many jobs wait."""
        return int(self.first_group.size) - 1

    @property
    def slots(self) -> int:
        """Return how many starts there are."""
        return int(self.capacity.shape[1])

    @property
    def group_job(self) -> Integers:
        """The job of every group."""
        return np.repeat(np.arange(self.jobs), np.diff(self.first_group))


@dataclass(frozen=True, slots=True, eq=False)
class PlanChoice:
    """A group and a slot for each job (-1: not planned), and the running jobs that are stopped."""

    group: Integers
    slot: Integers
    stopped: Booleans

    @classmethod
    def nothing(cls, problem: Problem) -> PlanChoice:
        """No job starts, none is stopped."""
        empty = np.full(problem.jobs, NOT_PLANNED, np.int64)
        return cls(empty, empty.copy(), np.zeros(problem.victim_cost.size, np.bool_))

    @property
    def planned(self) -> Integers:
        """Numbers of the jobs that have an option."""
        return np.flatnonzero(self.group != NOT_PLANNED)


def value_of(problem: Problem, choice: PlanChoice) -> float:
    """Return what a choice is worth."""
    at = choice.planned
    worth = problem.worth[choice.group[at], choice.slot[at]].sum()
    return float(worth - problem.victim_cost[choice.stopped].sum())


def _room_with(problem: Problem, stopped: Booleans) -> Floats:
    """Capacity with what stopped jobs give back; shape (rows, slots)."""
    room: Floats = problem.capacity + problem.victim_credit[stopped].sum(axis=0)
    return room


def left_by(problem: Problem, choice: PlanChoice) -> Floats:
    """Return what a choice leaves of every row in every slot; shape (rows, slots)."""
    left = _room_with(problem, choice.stopped)
    take_all(choice.group, choice.slot, problem.group_set, problem.consumption, problem.rows, left)
    return left


def fitting(problem: Problem) -> Problem:
    """Set the worth to 0 for options that do not fit even alone, with every job stopped.

    No choice loses by it, and the bound of the linear program, which would take a part of such an
    option, gains.
    """
    room = _room_with(problem, np.ones(problem.victim_cost.size, np.bool_))
    of_sets = np.full((problem.cover.shape[0], problem.slots), np.inf)
    for shares, left in zip(problem.cover.T, room, strict=True):
        takes = np.flatnonzero(shares)
        of_sets[takes] = np.minimum(of_sets[takes], left / shares[takes, np.newaxis])
    too_much = np.zeros(problem.worth.shape, np.bool_)
    for slot in range(problem.slots):
        needs = problem.consumption[:, : problem.slots - slot]
        too_much[:, slot] = (needs > of_sets[problem.group_set, slot:] + _ROUNDING).any(axis=1)
    return replace(problem, worth=np.where(too_much, 0.0, problem.worth))


def filled(problem: Problem, order: Integers, scores: Floats, given: PlanChoice) -> PlanChoice:
    """Give the jobs of ``order`` in turn their best fitting option instead of what they have."""
    group, slot = given.group.copy(), given.slot.copy()
    fill_plan(
        order,
        problem.first_group,
        problem.group_set,
        problem.consumption,
        scores,
        problem.rows,
        left_by(problem, given),
        group,
        slot,
    )
    return PlanChoice(group, slot, given.stopped)


def best_of_groups(problem: Problem, scores: Floats) -> Floats:
    """The best score of any group of each job, -inf for a job without; shape (jobs,)."""
    best = np.full(problem.jobs, -np.inf)
    np.maximum.at(best, problem.group_job, scores)
    return best


def densities(problem: Problem) -> Floats:
    """The best worth of each job for a cpu and slot that it holds; shape (jobs,)."""
    held = problem.consumption.sum(axis=1)
    return best_of_groups(problem, problem.worth.max(axis=1, initial=0.0) / held)


def greedy(problem: Problem) -> PlanChoice:
    """The better of two plans: by density, and by worth; no job is stopped."""
    nothing = PlanChoice.nothing(problem)
    by_worth = best_of_groups(problem, problem.worth.max(axis=1, initial=0.0))
    plans = [
        improved(problem, filled(problem, _descending(by), problem.worth, nothing))
        for by in (densities(problem), by_worth)
    ]
    return max(plans, key=lambda plan: value_of(problem, plan))


def priced(problem: Problem, reduced: Floats, stopped: Booleans) -> PlanChoice:
    """A plan by prices: each job in order of its gain over what its resources are worth."""
    order = _descending(best_of_groups(problem, reduced.max(axis=1, initial=-np.inf)))
    nothing = replace(PlanChoice.nothing(problem), stopped=stopped)
    wanted = np.where(problem.worth > 0.0, reduced, 0.0)
    return improved(problem, filled(problem, order, wanted, nothing))


def improved(problem: Problem, choice: PlanChoice) -> PlanChoice:
    """No worse: starts moved to where they are worth more, and others given what is left.

    No job is stopped for nothing.
    """
    planned = choice.planned
    order = planned[np.argsort(choice.slot[planned], kind="stable")]
    choice = filled(problem, order, problem.worth, choice)
    waiting = _descending(densities(problem))
    choice = filled(problem, waiting[choice.group[waiting] < 0], problem.worth, choice)
    # Spare those whose cpus are not needed in any slot.
    return replace(choice, stopped=_needed(problem, left_by(problem, choice), choice.stopped))


def _descending(by: Floats) -> Integers:
    return np.argsort(-by, kind="stable")


def needed_now(problem: Problem, choice: PlanChoice) -> Booleans:
    """Find jobs that must be stopped for those that start now; others can still be stopped later.

    To stop them already would waste what they might yet finish, and free what no job is to have.
    """
    later = choice.slot > 0
    group, slot = np.where(later, -1, choice.group), np.where(later, -1, choice.slot)
    left = left_by(problem, PlanChoice(group, slot, choice.stopped))
    now = replace(problem, victim_credit=problem.victim_credit[:, :, :1])
    return _needed(now, left[:, :1], choice.stopped)


def _needed(problem: Problem, left: Floats, stopped: Booleans) -> Booleans:
    """Find which of the stopped must be, the dearest spared first; ``left`` counts all as gone."""
    needed = stopped.copy()
    dearest = np.argsort(-problem.victim_cost, kind="stable")
    for victim in dearest[stopped[dearest]]:
        without = left - problem.victim_credit[victim]
        if (without >= -_ROUNDING).all():
            needed[victim], left = False, without
    return needed


def in_order_of_arrival(problem: Problem, choice: PlanChoice) -> PlanChoice:
    """Let of jobs that differ in nothing the earlier arrival start first."""
    alike: dict[tuple[bytes, ...], list[int]] = {}
    for job in range(problem.jobs):
        at = slice(problem.first_group[job], problem.first_group[job + 1])
        arrays = (problem.group_set[at], problem.consumption[at], problem.worth[at])
        alike.setdefault(tuple(array.tobytes() for array in arrays), []).append(job)
    group, slot = choice.group.copy(), choice.slot.copy()
    for jobs in alike.values():
        planned = [job for job in jobs if choice.group[job] >= 0]
        if planned and len(jobs) > 1:
            options = sorted(
                (choice.slot[job], choice.group[job] - problem.first_group[job]) for job in planned
            )
            group[jobs] = slot[jobs] = -1
            for job, (start, which) in zip(jobs, options, strict=False):
                group[job], slot[job] = problem.first_group[job] + which, start
    return PlanChoice(group, slot, choice.stopped)


_PATIENCE: Final = 20.0
"""Factor by which counted work may take longer before the clock ends it."""
_LEAST_SECONDS: Final = 1.0
"""Time that the clock allows in any case."""
_GROUP: Final = 2e-5
_GROUP_SLOT: Final = 8e-7
_LEAST_GROUPS: Final = 2500
"""Groups that any cycle looks at, if there are as many: few jobs are left out by no budget."""
_CREDIT: Final = 1e-6
_LEAST_CREDITS: Final = 250_000
"""Amounts given back by victims that any cycle knows: a victim, a row and a slot are one."""
_LOOK: Final = 1e-8
_PRICE: Final = 2.4e-7
_ENTRY: Final = 8.5e-8
_BUILT_ENTRY: Final = 4e-7
_ITERATION_ROW: Final = 1e-8
_CHANGE: Final = 1e-6
_CHANGE_PLACE: Final = 1.5e-8
_CHANGE_JOB: Final = 5e-9
_PROGRAM_ENTRY: Final = 4e-6
_CHECK: Final = 0.01
_CHECK_ENTRY: Final = 1e-7


class Budget:
    """Work that is left to spend; ``left`` is 0 or less when it is spent."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self._end = time.perf_counter() + max(_PATIENCE * seconds, _LEAST_SECONDS)

    def spend(self, seconds: float) -> None:
        """Count some work."""
        self.left -= seconds

    def keep(self, share: float) -> None:
        """Spend no more than this share of what is left."""
        self.left *= min(share, 1.0)

    def set_aside(self, share: float) -> float:
        """Keep a share of what is left for later; how much that is."""
        aside = max(share * self.left, 0.0)
        self.left -= aside
        return aside

    @property
    def guard_seconds(self) -> float:
        """Return how long anything may take before it is a disaster."""
        return max(self._end - time.perf_counter(), 0.0)

    @property
    def is_spent(self) -> bool:
        """Return whether there is nothing left, or the clock has come first."""
        return self.left <= 0.0 or self.guard_seconds <= 0.0


def groups_within(seconds: float, slots: int) -> int:
    """Return how many groups (jobs in sets of places) a cycle looks at.

    That is what they cost from view to decision, but for linear programs and searches, which end
    when a budget is spent.
    """
    return max(int(min(seconds / (_GROUP + _GROUP_SLOT * slots), 1e9)), _LEAST_GROUPS)


def credits_within(seconds: float) -> int:
    """Count the victims, rows and slots of which a cycle knows what is given back."""
    return max(int(min(seconds / _CREDIT, 1e9)), _LEAST_CREDITS)


def of_looking(problem: Problem) -> float:
    """The work of looking at every option once."""
    return _LOOK * problem.worth.size


def of_pricing(problem: Problem) -> float:
    """The work of saying what prices make of every option."""
    return _PRICE * problem.worth.size


def of_building(entries: int) -> float:
    """The work of making a linear program of so many entries."""
    return _BUILT_ENTRY * entries


def of_solving(entries: int, rows: int, iterations: int) -> float:
    """The work of a linear program of so many entries and rows, in so many iterations."""
    return _ENTRY * entries + _ITERATION_ROW * rows * iterations


def iterations_within(seconds: float, rows: int) -> int:
    """Count the iterations of a program of so many rows that a budget allows, at least one."""
    return max(int(min(seconds / (_ITERATION_ROW * max(rows, 1)), 1e9)), 1)


def of_searching(problem: Problem, changes: int) -> float:
    """The work of so many changes of a plan."""
    of_all = _CHANGE_PLACE * problem.capacity.size + _CHANGE_JOB * problem.jobs
    return changes * (_CHANGE + of_all)


def of_program(entries: int, checks: int) -> float:
    """The work of a program of so many entries, with so many looks at its limits."""
    return _PROGRAM_ENTRY * entries + checks * (_CHECK + _CHECK_ENTRY * entries)


def checks_within(seconds: float, entries: int) -> int:
    """Return how many looks at its limits a budget allows a program, 0 if not even a beginning."""
    left = seconds - _PROGRAM_ENTRY * entries
    return max(int(min(left / (_CHECK + _CHECK_ENTRY * entries), 1e9)), 0)
