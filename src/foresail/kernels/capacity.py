"""How much capacity is up: independent groups of machines, each all up or all down."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel, part


@kernel
def capacity_masses(
    units: NDArray[np.int64], up: NDArray[np.float64], needed: int
) -> NDArray[np.float64]:
    """Probability of every capacity: the coefficients of the availability polynomial.

    Each group's factor has two terms, so that multiplying by it is one pass over the array; and as
    all terms are positive, even the smallest coefficient keeps its digits, which an FFT would not.

    Parameters
    ----------
    units
        Shape (groups,): capacity of each group while it is up, 0 or more.
    up
        Shape (groups,): probability that it is.
    needed
        At least 1: capacities from here on are counted together.

    Returns
    -------
    numpy.ndarray
        Shape (needed + 1,): probability of exactly 0, 1, ... units; the last of ``needed`` or more.
    """
    masses = np.zeros(needed + 1)
    masses[0] = 1.0
    reached = 0
    for i in range(units.size):
        step = min(units[i], needed)
        if step == 0:
            continue
        above = 0.0
        for k in range(max(needed - step, 0), min(reached, needed - 1) + 1):
            above += masses[k]
        masses[needed] += up[i] * above
        reached = min(reached + step, needed)
        _multiply(masses, step, up[i], min(reached, needed - 1))
    return masses


@kernel
def log_capacity_masses(
    units: NDArray[np.int64], up: NDArray[np.float64], needed: int
) -> NDArray[np.float64]:
    """As ``capacity_masses``, in natural logarithms: for odds below what a float can hold."""
    masses = np.full(needed + 1, -np.inf)
    masses[0] = 0.0
    for i in range(units.size):
        step = min(units[i], needed)
        if step == 0:
            continue
        log_up = math.log(up[i]) if up[i] > 0.0 else -np.inf
        log_down = math.log1p(-up[i]) if up[i] < 1.0 else -np.inf
        top = masses[needed]
        for k in range(needed - step, needed):
            top = _log_sum(top, log_up + masses[k])
        for k in range(needed - 1, -1, -1):
            stays = log_down + masses[k]
            masses[k] = _log_sum(stays, log_up + masses[k - step]) if k >= step else stays
        masses[needed] = top
    return masses


@kernel
def shortfall_after(
    units: NDArray[np.int64],
    counts: NDArray[np.int64],
    up: NDArray[np.float64],
    needed: int,
    change: int,
) -> NDArray[np.float64]:
    """Probability to have less than is needed once one type's machines were more, or fewer.

    For all types at once: what the others make up is the product of those before (kept) and those
    behind (gathered on the way back), of which only two cumulative values are needed.

    Parameters
    ----------
    units
        Shape (types,): capacity of one machine, at least 1.
    counts
        Shape (types,): machines there are; those of a type are up or down together.
    up
        Shape (types,): probability that they are up.
    needed
        At least 1.
    change
        Machines more (or, negative, fewer); a type that has not so many loses all.

    Returns
    -------
    numpy.ndarray
        Shape (types,): probability of less than ``needed`` units after the change of this type.
    """
    short = np.empty(units.size)
    members = np.flatnonzero(counts)
    before = np.zeros((members.size + 1, needed))
    before[0, 0] = 1.0
    for j in range(members.size):
        i = members[j]
        before[j + 1] = before[j]
        _multiply(before[j + 1], counts[i] * units[i], up[i], needed - 1)
    total = np.cumsum(before[members.size])
    for i in range(units.size):
        if counts[i] == 0:
            step = max(change, 0) * units[i]
            lower = total[needed - 1 - step] if step < needed else 0.0
            short[i] = (1.0 - up[i]) * total[needed - 1] + up[i] * lower
    behind = np.zeros(needed)
    behind[0] = 1.0
    for j in range(members.size - 1, -1, -1):
        i = members[j]
        reached = np.cumsum(behind)
        step = max(counts[i] + change, 0) * units[i]
        down, still = 0.0, 0.0
        for k in range(needed):
            down += before[j, k] * reached[needed - 1 - k]
        for k in range(needed - step):
            still += before[j, k] * reached[needed - 1 - step - k]
        short[i] = (1.0 - up[i]) * down + up[i] * still
        _multiply(behind, counts[i] * units[i], up[i], needed - 1)
    return short


@part
def _multiply(masses: NDArray[np.float64], step: int, up: float, last: int) -> None:
    """Multiply by a group's factor in place, for capacities up to ``last``."""
    for k in range(last, step - 1, -1):
        masses[k] = (1.0 - up) * masses[k] + up * masses[k - step]
    for k in range(min(step, last + 1)):
        masses[k] *= 1.0 - up


@part
def _log_sum(first: float, second: float) -> float:
    larger, smaller = max(first, second), min(first, second)
    if smaller == -np.inf:
        return larger
    return larger + math.log1p(math.exp(smaller - larger))
