"""The odds that a pool of transient machines has some capacity; types are up or down together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from foresail.cloud.transient.offers import Offers
from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError


def capacity_masses(units: Integers, up: Floats, needed: int) -> Floats:
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
    _add_groups(units, up, masses)
    return masses


@bare_kernel
def _add_groups(units: Integers, up: Floats, masses: Floats) -> None:
    """Add groups to the probabilities of capacities; changed in place."""
    needed = masses.size - 1
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


def shortfall_after(
    units: Integers, counts: Integers, up: Floats, needed: int, change: int
) -> Floats:
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
    held, changed = counts * units, np.maximum(counts + change, 0) * units
    members = np.flatnonzero(counts)
    before = np.zeros((members.size + 1, needed))
    before[0, 0] = 1.0
    behind = np.zeros((2, needed))
    behind[0, 0] = 1.0
    shorts = np.empty(members.size)
    _fill_shortfalls(held[members], changed[members], up[members], before, behind, shorts)
    total = np.cumsum(before[-1])
    lower = np.where(changed < needed, total[np.maximum(needed - 1 - changed, 0)], 0.0)
    short: Floats = (1.0 - up) * total[-1] + up * lower
    short[members] = shorts
    return short


@bare_kernel
def _fill_shortfalls(
    held: Integers, changed: Integers, up: Floats, before: Floats, behind: Floats, shorts: Floats
) -> None:
    """Fill the odds to be short of what is needed after the change of each type that is held.

    ``held`` and ``changed`` are the types' units. ``before``, shape (types + 1, needed), has the
    odds of capacities of the types before each; ``behind``, shape (2, needed), those of the types
    behind, and their running sums. The first row of both is that of no type.
    """
    types, needed = before.shape[0] - 1, before.shape[1]
    masses, reached = behind[0], behind[1]
    for j in range(types):
        for k in range(needed):
            before[j + 1, k] = before[j, k]
        _multiply(before[j + 1], held[j], up[j], needed - 1)
    # From behind: the odds of the types behind j are grown while those before it are kept.
    for j in range(types - 1, -1, -1):
        total = 0.0
        for k in range(needed):
            total += masses[k]
            reached[k] = total
        down = _odds_below(before[j], reached, needed)
        still = _odds_below(before[j], reached, needed - changed[j])
        shorts[j] = (1.0 - up[j]) * down + up[j] * still
        _multiply(masses, held[j], up[j], needed - 1)


@part
def _odds_below(masses: Floats, reached: Floats, units: int) -> float:
    """Odds of a sum below so many units: of one capacity, and of one with cumulative odds."""
    odds = 0.0
    for k in range(units):
        odds += masses[k] * reached[units - 1 - k]
    return odds


@part
def _multiply(masses: Floats, step: int, up: float, last: int) -> None:
    """Multiply by a group's factor in place, for capacities up to ``last``."""
    for k in range(last, step - 1, -1):
        masses[k] = (1.0 - up) * masses[k] + up * masses[k - step]
    for k in range(min(step, last + 1)):
        masses[k] *= 1.0 - up


def capacity_distribution(offers: Offers, counts: Integers, needed: int) -> Floats:
    """Probability of every capacity of a pool (Ambati's thesis, equations 3.1 and 3.2).

    ``counts`` are machines of each type, shape (types,). ``needed`` is a capacity in units of the
    offers, at least 1; more than that is counted together.

    Returns
    -------
    numpy.ndarray
        Shape (needed + 1,): probability of exactly 0, 1, ... units; the last of ``needed`` or
        more.
    """
    groups = counts * offers.units
    masses = [capacity_masses(groups, up, needed) for up in offers.up]
    return np.asarray(offers.weights @ np.stack(masses))


def shortfall(offers: Offers, counts: Integers, needed: int) -> float:
    """Probability that a pool has less than is needed: 1 − availability, with all its digits.

    Arguments as for ``capacity_distribution``.
    """
    return min(float(capacity_distribution(offers, counts, needed)[:-1].sum()), 1.0)


def allowed_shortfall(availability: float, extra_nines: float = 0.0) -> float:
    """The shortfall that a target allows, from the digits as they are written.

    One of the ``extra_nines`` that are planned for beyond the target is a tenth of the shortfall.

    Raises ``InputError`` if the target is no availability, or the extra nines are negative.
    """
    if not 0.0 < availability < 1.0:
        raise InputError(
            "no availability to plan for",
            field="availability",
            value=availability,
            expected="above 0 and below 1, such as 0.9999",
        )
    if not 0.0 <= extra_nines < math.inf:
        raise InputError(
            "no number of nines", field="extra_nines", value=extra_nines, expected="0 or more"
        )
    return float(1 - Decimal(repr(float(availability)))) * math.pow(10.0, -extra_nines)


def best_shortfall(offers: Offers) -> float:
    """The least shortfall that any pool can have: when each type alone would be enough."""
    return float(offers.weights @ np.prod(1.0 - offers.up, axis=1))


def counted(offers: Offers, counts: Sequence[int]) -> Integers:
    """Machines of each type as an array, checked."""
    array = np.asarray(counts, dtype=np.int64)
    if array.shape != (len(offers.types),) or np.any(array < 0):
        raise InputError(
            "not a number of machines for each type",
            field="counts",
            value=list(counts),
            expected=f"{len(offers.types)} numbers, 0 or more",
        )
    return array
