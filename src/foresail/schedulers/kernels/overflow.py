"""How likely a plan overdraws what there is: sums of jobs that may have ended by then, exactly.

What a row of a plan's resources is asked for in a slot is a sum of independent jobs, each of which
holds all its cpus or none (a Poisson binomial distribution with weights). It is kept as cumulative
probabilities over whole units from 0 to what the row has. A job that holds part of a unit is shared
between the two whole numbers around it: the mean is kept, and the sum only gets more uncertain.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part
from foresail.schedulers.kernels.plan_filling import NOT_PLANNED

_ROUNDING: Final = 1e-9


@part
def _at(cumulative: NDArray[np.float64], units: int) -> float:
    """Probability of a sum of at most so many units."""
    return float(cumulative[units]) if units >= 0 else 0.0


@part
def _with_job(
    cumulative: NDArray[np.float64], units: int, whole: int, part: float, chance: float
) -> float:
    """The same once a job is added that holds ``whole + part`` units with this chance."""
    held = (1.0 - part) * _at(cumulative, units - whole)
    if part > 0.0:
        held += part * _at(cumulative, units - whole - 1)
    return (1.0 - chance) * _at(cumulative, units) + chance * held


@part
def add_job(cumulative: NDArray[np.float64], most: int, held: float, chance: float) -> None:
    """Add a job that holds so many units with this chance to a sum of others; changed in place.

    Parameters
    ----------
    cumulative
        Probability of a sum of at most 0, 1, ..., ``most`` units.
    most
        The largest sum of interest.
    held, chance
        Units, not negative; and probability.
    """
    if chance <= 0.0 or held <= 0.0:
        return
    whole = math.floor(held + _ROUNDING)
    part = max(held - whole, 0.0)
    if part < _ROUNDING:
        part = 0.0
    for units in range(most, -1, -1):
        cumulative[units] = _with_job(cumulative, units, whole, part, chance)


@bare_kernel
def add_running(
    held: NDArray[np.float64],
    chance: NDArray[np.float64],
    most: NDArray[np.int64],
    units: NDArray[np.float64],
    cumulative: NDArray[np.float64],
) -> None:
    """Add running jobs to what rows are asked for in every slot; changed in place.

    Parameters
    ----------
    held, chance
        Cpus that each job holds of every row, and its probability to do so in every slot; shapes
        (jobs, rows) and (jobs, slots).
    most, units, cumulative
        As in ``fill_within_risk``.
    """
    for job in range(held.shape[0]):
        for row in range(held.shape[1]):
            for slot in range(chance.shape[1]):
                units_held = held[job, row] / units[row]
                add_job(cumulative[row, slot], most[row], units_held, chance[job, slot])


@part
def _fits(
    held: float,
    slot: int,
    still: NDArray[np.float64],
    shares: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    most: NDArray[np.int64],
    units: NDArray[np.float64],
    risk: float,
) -> bool:
    """Whether every row stays within the risk in every slot with this job from a slot on."""
    rows, slots = cumulative.shape[0], cumulative.shape[1]
    for row in range(rows):
        if shares[row] <= 0.0:
            continue
        units_held = held * shares[row] / units[row]
        whole = math.floor(units_held + _ROUNDING)
        part = max(units_held - whole, 0.0)
        for after in range(slots - slot):
            if still[after] <= 0.0:
                break
            within = _with_job(cumulative[row, slot + after], most[row], whole, part, still[after])
            if 1.0 - within > risk + _ROUNDING:
                return False
    return True


@bare_kernel
def fill_within_risk(
    order: NDArray[np.int64],
    first_group: NDArray[np.int64],
    group_set: NDArray[np.int64],
    held: NDArray[np.float64],
    still: NDArray[np.float64],
    score: NDArray[np.float64],
    cover: NDArray[np.float64],
    most: NDArray[np.int64],
    units: NDArray[np.float64],
    risk: float,
    cumulative: NDArray[np.float64],
    chosen_group: NDArray[np.int64],
    chosen_slot: NDArray[np.int64],
) -> None:
    """Give each job in turn the best option with which no row is overdrawn more likely than said.

    Parameters
    ----------
    order
        Numbers of jobs that have no option yet.
    first_group
        Groups of job ``j`` are ``first_group[j]`` to ``first_group[j + 1]``.
    group_set, held, still
        Per group: its set; what it holds; and its probability to hold that so many slots after its
        start, which does not rise.
    score
        Per group and slot: how good a start there is; only what is above 0 is taken.
    cover
        Per set and row: what the row gives of each unit that a group of the set holds; 0 if none.
    most, units
        Per row: how many units it has, and how much of its resource a unit is.
    risk
        Probability at which a row may be overdrawn in a slot.
    cumulative
        Per row and slot: probabilities of what it is asked for, as in ``add_job``; changed.
    chosen_group, chosen_slot
        Per job, -1 where it is not planned; changed.
    """
    slots = cumulative.shape[1]
    for at in range(order.size):
        job = order[at]
        best, best_group, best_slot = 0.0, NOT_PLANNED, NOT_PLANNED
        for group in range(first_group[job], first_group[job + 1]):
            shares = cover[group_set[group]]
            for slot in range(slots):
                if score[group, slot] > best and _fits(
                    held[group], slot, still[group], shares, cumulative, most, units, risk
                ):
                    best, best_group, best_slot = score[group, slot], group, slot
        chosen_group[job] = best_group
        chosen_slot[job] = best_slot
        if best_group == NOT_PLANNED:
            continue
        for row in range(cumulative.shape[0]):
            share = cover[group_set[best_group], row]
            if share > 0.0:
                for after in range(slots - best_slot):
                    add_job(
                        cumulative[row, best_slot + after],
                        most[row],
                        held[best_group] * share / units[row],
                        still[best_group, after],
                    )
