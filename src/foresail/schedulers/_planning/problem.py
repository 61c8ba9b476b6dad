"""The question of one cycle as arrays: options, what they are worth and need, and what there is.

Jobs are numbered by arrival. A *group* is a job in one set of places; an *option* is a group and
the slot it starts in. Capacity is kept for unions of sets, a row for each and for every resource
that waiting jobs ask for: jobs fit if, for every union, those that must run within it need no more
than it has (Hall's theorem, exact for one resource, necessary for several). Where sets nest (racks
in a part in the cluster), the unions are the sets themselves. 3Sigma equation 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.schedulers.kernels.plan_filling import (
    NOT_PLANNED,
    rows_and_shares,
    take_all,
)

_ROUNDING: Final = 1e-7


@dataclass(frozen=True, eq=False)
class Problem:
    """What may be planned."""

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
    """What a row gives of its resource for each cpu that a group of a set consumes, 0 if the row's
    union does not contain the set; shape (sets, rows)."""
    capacity: Floats
    """What running jobs are expected to leave; shape (rows, slots)."""
    victim_cost: Floats
    victim_credit: Floats
    """What stopping a running job costs, and what it gives back; shapes (victims,) and (victims,
    rows, slots)."""

    @cached_property
    def rows(self) -> Floats:
        """The rows of every set and what they give, as kernels have it."""
        return rows_and_shares(self.cover)

    @property
    def jobs(self) -> int:
        """How many jobs wait."""
        return int(self.first_group.size) - 1

    @property
    def slots(self) -> int:
        """How many starts there are."""
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
    """What a choice is worth."""
    at = choice.planned
    worth = problem.worth[choice.group[at], choice.slot[at]].sum()
    return float(worth - problem.victim_cost[choice.stopped].sum())


def room_with(problem: Problem, stopped: Booleans) -> Floats:
    """Capacity with what stopped jobs give back; shape (rows, slots)."""
    room: Floats = problem.capacity + problem.victim_credit[stopped].sum(axis=0)
    return room


def left_by(problem: Problem, choice: PlanChoice) -> Floats:
    """What a choice leaves of every row in every slot; shape (rows, slots)."""
    left = room_with(problem, choice.stopped)
    take_all(choice.group, choice.slot, problem.group_set, problem.consumption, problem.rows, left)
    return left


def fitting(problem: Problem) -> Problem:
    """The same with worth 0 for options that do not fit even alone, with every job stopped.

    No choice loses by it, and the bound of the linear program, which would take a part of such an
    option, gains.
    """
    room = room_with(problem, np.ones(problem.victim_cost.size, np.bool_))
    of_sets = np.full((problem.cover.shape[0], problem.slots), np.inf)
    for shares, left in zip(problem.cover.T, room, strict=True):
        takes = np.flatnonzero(shares)
        of_sets[takes] = np.minimum(of_sets[takes], left / shares[takes, np.newaxis])
    too_much = np.zeros(problem.worth.shape, np.bool_)
    for slot in range(problem.slots):
        needs = problem.consumption[:, : problem.slots - slot]
        too_much[:, slot] = (needs > of_sets[problem.group_set, slot:] + _ROUNDING).any(axis=1)
    return replace(problem, worth=np.where(too_much, 0.0, problem.worth))
