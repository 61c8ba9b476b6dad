"""Filling a plan job by job: the best option that still fits, on rows of what is left.

An option is a group (a job in one set of places) and the slot it starts in. Rows say what is left
of a resource in a union of sets in every slot; a group is held to the rows of all unions that
contain its set, and takes of each a share of what it needs.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part

NOT_PLANNED: Final = -1
_ROUNDING: Final = 1e-7


def rows_and_shares(cover: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of every set, the rows that give to it and how much, the rest filled up with row -1.

    Parameters
    ----------
    cover
        Per set and row: what the row gives of each unit that a group of the set needs; 0 if none.

    Returns
    -------
    numpy.ndarray
        Shape (sets, most rows of any set, 2).
    """
    most = int((cover > 0.0).sum(axis=1).max(initial=0))
    rows = np.argsort(cover <= 0.0, axis=1, kind="stable")[:, :most]
    shares = np.take_along_axis(cover, rows, axis=1)
    return np.stack((np.where(shares > 0.0, rows, -1.0), shares), axis=2)


@part
def take(
    needs: NDArray[np.float64],
    shares: NDArray[np.float64],
    slot: int,
    times: float,
    left: NDArray[np.float64],
) -> None:
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
    chosen_group: NDArray[np.int64],
    chosen_slot: NDArray[np.int64],
    group_set: NDArray[np.int64],
    consumption: NDArray[np.float64],
    cover: NDArray[np.float64],
    left: NDArray[np.float64],
) -> None:
    """Subtract what the chosen groups of all jobs need; -1 where a job has none."""
    for job in range(chosen_group.size):
        group = chosen_group[job]
        if group != NOT_PLANNED:
            take(consumption[group], cover[group_set[group]], chosen_slot[job], 1.0, left)


@part
def best_start(
    needs: NDArray[np.float64],
    scores: NDArray[np.float64],
    shares: NDArray[np.float64],
    best: float,
    left: NDArray[np.float64],
    least: NDArray[np.float64],
) -> int:
    """The slot of a group's highest score above ``best`` that fits, or -1.

    ``least`` is filled with the most that its rows have left for it in every slot.
    """
    slots = left.shape[1]
    for slot in range(slots):
        least[slot] = np.inf
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


def fill_plan(
    order: NDArray[np.int64],
    first_group: NDArray[np.int64],
    group_set: NDArray[np.int64],
    consumption: NDArray[np.float64],
    score: NDArray[np.float64],
    cover: NDArray[np.float64],
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
        Per group: its set; and what it needs so many slots after its start.
    score
        Per group and slot: how good a start there is; only what is above 0 is taken.
    cover
        Per set: its rows and what they give, as ``rows_and_shares`` makes them.
    left
        Per row and slot: what the plan leaves; changed.
    chosen_group, chosen_slot
        Per job, -1 where it is not planned; changed.
    """
    _fill(
        order,
        first_group,
        group_set,
        consumption,
        score,
        cover,
        left,
        np.empty(left.shape[1]),
        chosen_group,
        chosen_slot,
    )


@bare_kernel
def _fill(
    order: NDArray[np.int64],
    first_group: NDArray[np.int64],
    group_set: NDArray[np.int64],
    consumption: NDArray[np.float64],
    score: NDArray[np.float64],
    cover: NDArray[np.float64],
    left: NDArray[np.float64],
    least: NDArray[np.float64],
    chosen_group: NDArray[np.int64],
    chosen_slot: NDArray[np.int64],
) -> None:
    for at in range(order.size):
        job = order[at]
        group = chosen_group[job]
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
