"""Filling a plan job by job: the best option that still fits, on rows of what is left.

An option is a group (a job in one set of places) and the slot it starts in. Rows say what is left
of a union of sets in every slot; a group is held to the rows of all unions that contain its set.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel

NOT_PLANNED: Final = -1
_ROUNDING: Final = 1e-7


@kernel
def take(
    group: int,
    slot: int,
    times: float,
    group_set: NDArray[np.int64],
    consumption: NDArray[np.float64],
    cover: NDArray[np.bool_],
    left: NDArray[np.float64],
) -> None:
    """Subtract ``times`` what a group needs from a slot on; -1 gives it back."""
    slots = left.shape[1]
    for row in range(left.shape[0]):
        if cover[group_set[group], row]:
            for after in range(slots - slot):
                left[row, slot + after] -= times * consumption[group, after]


@kernel
def take_all(
    chosen_group: NDArray[np.int64],
    chosen_slot: NDArray[np.int64],
    group_set: NDArray[np.int64],
    consumption: NDArray[np.float64],
    cover: NDArray[np.bool_],
    left: NDArray[np.float64],
) -> None:
    """Subtract what the chosen groups of all jobs need; -1 where a job has none."""
    for job in range(chosen_group.size):
        if chosen_group[job] != NOT_PLANNED:
            group, slot = chosen_group[job], chosen_slot[job]
            take(group, slot, 1.0, group_set, consumption, cover, left)


@kernel
def best_option(
    first: int,
    end: int,
    group_set: NDArray[np.int64],
    consumption: NDArray[np.float64],
    score: NDArray[np.float64],
    cover: NDArray[np.bool_],
    left: NDArray[np.float64],
    least: NDArray[np.float64],
) -> tuple[int, int]:
    """The fitting option of the best positive score among groups ``first`` to ``end``."""
    slots = left.shape[1]
    best, best_group, best_slot = 0.0, NOT_PLANNED, NOT_PLANNED
    for group in range(first, end):
        least[:] = np.inf
        for row in range(left.shape[0]):
            if cover[group_set[group], row]:
                for slot in range(slots):
                    least[slot] = min(least[slot], left[row, slot])
        for slot in range(slots):
            if score[group, slot] <= best:
                continue
            fits = True
            for after in range(slots - slot):
                if consumption[group, after] > least[slot + after] + _ROUNDING:
                    fits = False
                    break
            if fits:
                best, best_group, best_slot = score[group, slot], group, slot
    return best_group, best_slot


@kernel
def fill_plan(
    order: NDArray[np.int64],
    first_group: NDArray[np.int64],
    group_set: NDArray[np.int64],
    consumption: NDArray[np.float64],
    score: NDArray[np.float64],
    cover: NDArray[np.bool_],
    left: NDArray[np.float64],
    chosen_group: NDArray[np.int64],
    chosen_slot: NDArray[np.int64],
) -> None:
    """Give each job in turn its best fitting option, instead of the one it has.

    Parameters
    ----------
    order
        Numbers of jobs.
    first_group
        Groups of job ``j`` are ``first_group[j]`` to ``first_group[j + 1]``.
    group_set, consumption
        Per group: its set; and what it needs so many slots after its start (cpus).
    score
        Per group and slot: how good a start there is; only what is above 0 is taken.
    cover
        Per set and row: whether the row's union contains the set.
    left
        Per row and slot: what the plan leaves (cpus); changed.
    chosen_group, chosen_slot
        Per job, -1 where it is not planned; changed.
    """
    least = np.empty(left.shape[1])
    for job in order:
        if chosen_group[job] != NOT_PLANNED:
            take(chosen_group[job], chosen_slot[job], -1.0, group_set, consumption, cover, left)
        first, end = first_group[job], first_group[job + 1]
        group, slot = best_option(first, end, group_set, consumption, score, cover, left, least)
        chosen_group[job] = group
        chosen_slot[job] = slot
        if group != NOT_PLANNED:
            take(group, slot, 1.0, group_set, consumption, cover, left)
