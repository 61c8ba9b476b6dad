"""Filling a plan job by job: the best option that still fits, on rows of what is left.

An option is a group (a job in one set of places) and the slot it starts in. Rows say what is left
of a resource in a union of sets in every slot; a group is held to the rows of all unions that
contain its set, and takes of each a share of what it needs.

Also: which cells the jobs that start take in turn.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.kernels.borrowed import room
from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Booleans, Floats, Integers

NOT_PLANNED: Final = -1
_ROUNDING: Final = 1e-7


def rows_and_shares(cover: Floats) -> Floats:
    """List for every set the rows that give to it and how much, filled up with row -1.

    ``cover`` has per set and row what the row gives of each unit that a group of the set needs; 0
    if none. The shape is (sets, most rows of any set, 2).
    """
    most = int((cover > 0.0).sum(axis=1).max(initial=0))
    rows = np.argsort(cover <= 0.0, axis=1, kind="stable")[:, :most]
    shares = np.take_along_axis(cover, rows, axis=1)
    return np.stack((np.where(shares > 0.0, rows, -1.0), shares), axis=2)


@part
def take(needs: Floats, shares: Floats, slot: int, times: float, left: Floats) -> None:
    """Subtract ``times`` what a group needs from a slot on; -1 gives it back.

    ``needs`` is what it holds so many slots after its start, ``shares`` has the rows that give of
    it and how much of it each gives, as ``rows_and_shares`` makes them.
    """
    slots = left.shape[1]
    for at in range(shares.shape[0]):
        row = int(shares[at, 0])
        if row < 0:
            break
        share = times * shares[at, 1]
        for after in range(slots - slot):
            left[row, slot + after] -= share * needs[after]


@bare_kernel
def take_all(
    chosen_group: Integers,
    chosen_slot: Integers,
    group_set: Integers,
    consumption: Floats,
    cover: Floats,
    left: Floats,
) -> None:
    """Subtract what the chosen groups of all jobs need; -1 where a job has none."""
    for job in range(chosen_group.size):
        group = chosen_group[job]
        if group != NOT_PLANNED:
            take(consumption[group], cover[group_set[group]], chosen_slot[job], 1.0, left)


@part
def best_start(
    needs: Floats, scores: Floats, shares: Floats, best: float, left: Floats, least: Floats
) -> int:
    """The slot of a group's highest score above ``best`` that fits, or -1.

    ``least`` is filled with the most that its rows have left for it in every slot.
    """
    slots = left.shape[1]
    for slot in range(slots):
        least[slot] = np.inf
    # The least over the rows first, so that slots are compared once and not row by row.
    for at in range(shares.shape[0]):
        row, share = int(shares[at, 0]), shares[at, 1]
        if row < 0:
            break
        if share == 1.0:
            for slot in range(slots):
                least[slot] = min(least[slot], left[row, slot] + _ROUNDING)
        else:
            for slot in range(slots):
                least[slot] = min(least[slot], (left[row, slot] + _ROUNDING) / share)
    best_slot = NOT_PLANNED
    for slot in range(slots):
        if scores[slot] <= best:
            continue
        fits = True
        for after in range(slots - slot):
            if needs[after] > least[slot + after]:
                fits = False
                break
        if fits:
            best, best_slot = scores[slot], slot
    return best_slot


@bare_kernel
def fill_plan(
    order: Integers,
    first_group: Integers,
    group_set: Integers,
    consumption: Floats,
    score: Floats,
    cover: Floats,
    left: Floats,
    chosen_group: Integers,
    chosen_slot: Integers,
) -> None:
    """Give each job of an order in turn its best fitting option, instead of the one it has.

    Groups of job ``j`` are ``first_group[j]`` to ``first_group[j + 1]``. Per group: its set, what
    it needs so many slots after its start, and how good a start in each slot is (``score``; only
    what is above 0 is taken). Per set: its rows and what they give, as ``rows_and_shares`` makes
    them (``cover``). Changed are ``left``, what the plan leaves by row and slot, and what is chosen
    per job, -1 where it is not planned.
    """
    least = room(left.shape[1])
    for at in range(order.size):
        job = order[at]
        group = chosen_group[job]
        # Give back what the job has, so that it competes with it.
        if group != NOT_PLANNED:
            take(consumption[group], cover[group_set[group]], chosen_slot[job], -1.0, left)
        chosen_group[job] = NOT_PLANNED
        chosen_slot[job] = NOT_PLANNED
        best = 0.0
        for group in range(first_group[job], first_group[job + 1]):
            shares = cover[group_set[group]]
            slot = best_start(consumption[group], score[group], shares, best, left, least)
            if slot != NOT_PLANNED:
                best = score[group, slot]
                chosen_group[job] = group
                chosen_slot[job] = slot
        group = chosen_group[job]
        if group != NOT_PLANNED:
            take(consumption[group], cover[group_set[group]], chosen_slot[job], 1.0, left)


_MOST_TASKS: Final = 2.0**52
"""On a cell, of tasks that need nothing."""


@bare_kernel
def take_in_turn(
    order: Integers,
    each: Floats,
    tasks: Integers,
    allowed: Booleans,
    wanted: Floats,
    free: Floats,
    cells: Integers,
    shares: Integers,
) -> None:
    """Give each job in turn cells for all its tasks, those first of which others want least.

    Per job: what one of its tasks needs (``each``, shape (jobs, resources)), how many it has, and
    the cells that it may use (``allowed``, shape (jobs, cells)). Per cell: cpus of the jobs to come
    that may use it (``wanted``), what is ``free``, shape (resources, cells), and the numbers of all
    ``cells``, in any order; all three are changed. ``shares``, tasks of every job on every cell, is
    0 at first; a job whose tasks do not all fit has none.
    """
    for job in order:
        _sort(cells, wanted)
        left = float(tasks[job])
        for cell in cells:
            if left <= 0.0:
                break
            if allowed[job, cell]:
                some = min(left, _fitting(free[:, cell], each[job]))
                shares[job, cell] = int(some)
                left -= some
        # The job is no longer one of those to come, whether or not it fits.
        for cell in range(cells.size):
            if allowed[job, cell]:
                wanted[cell] -= each[job, 0] * tasks[job]
            if left > 0.0:
                shares[job, cell] = 0
            elif shares[job, cell] > 0:
                for resource in range(each.shape[1]):
                    free[resource, cell] -= each[job, resource] * shares[job, cell]


@part
def _sort(cells: Integers, wanted: Floats) -> None:
    """By what is wanted, then by number; quick if they are nearly sorted, as after each job."""
    for at in range(1, cells.size):
        cell = cells[at]
        while at > 0 and (
            wanted[cells[at - 1]] > wanted[cell]
            or (wanted[cells[at - 1]] == wanted[cell] and cells[at - 1] > cell)
        ):
            cells[at] = cells[at - 1]
            at -= 1
        cells[at] = cell


@part
def _fitting(free: Floats, each: Floats) -> float:
    """Return how many whole tasks that need so much of every resource fit in what is free."""
    fitting = _MOST_TASKS
    for resource in range(each.size):
        if each[resource] > 0.0:
            fitting = min(fitting, max(free[resource], 0.0) / each[resource] + _ROUNDING)
    return float(np.floor(fitting))


@bare_kernel
def grant(order: Integers, each: Floats, shares: Integers, free: Floats, granted: Booleans) -> None:
    """Let jobs in turn have what they need on their cells, if all of it is free.

    ``order``, ``each``, ``shares`` and ``free`` are as in ``take_in_turn``; the last is changed, as
    is ``granted``, False at first: whether a job has tasks on cells and they fit there.
    """
    resources, cells = free.shape
    for job in order:
        fits = True
        # Look at all cells before any is taken: all or nothing.
        for cell in range(cells):
            if shares[job, cell] > 0:
                granted[job] = True
            for resource in range(resources):
                if each[job, resource] * shares[job, cell] > free[resource, cell]:
                    fits = False
        granted[job] = granted[job] and fits
        if granted[job]:
            for cell in range(cells):
                for resource in range(resources):
                    free[resource, cell] -= each[job, resource] * shares[job, cell]
