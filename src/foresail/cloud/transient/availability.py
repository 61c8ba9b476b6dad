"""The probability that a pool of transient machines has at least some capacity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.kernels.availability import capacity_masses
from foresail.cloud.transient.offers import Offers
from foresail.model.errors import InputError


def capacity_distribution(
    offers: Offers, counts: NDArray[np.int64], needed: int
) -> NDArray[np.float64]:
    """Probability of every capacity of a pool (spec 2.2, equations 3.1 and 3.2).

    ``counts`` are machines of each type, shape (types,). ``needed`` is a capacity in grains of the
    offers, at least 1; more than that is counted together.

    Returns
    -------
    numpy.ndarray
        Shape (needed + 1,): probability of exactly 0, 1, ... grains; the last of ``needed`` or
        more.
    """
    groups = counts * offers.units
    masses = [capacity_masses(groups, up, needed) for up in offers.up]
    return np.asarray(offers.weights @ np.stack(masses))


def shortfall(offers: Offers, counts: NDArray[np.int64], needed: int) -> float:
    """Probability that a pool has less than is needed: 1 − availability, with all its digits.

    Arguments as for ``capacity_distribution``.
    """
    return min(float(capacity_distribution(offers, counts, needed)[:-1].sum()), 1.0)


def allowed_shortfall(availability: float, extra_nines: float = 0.0) -> float:
    """The shortfall that a target allows, from the digits as they are written.

    One of the ``extra_nines`` that are planned for beyond the target is a tenth of the shortfall.

    Raises
    ------
    InputError
        If the target is no availability, or the extra nines are negative.
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


def counted(offers: Offers, counts: Sequence[int]) -> NDArray[np.int64]:
    """Machines of each type as an array, checked.

    Raises
    ------
    InputError
        If there is not one for each type, or one is negative.
    """
    array = np.asarray(counts, dtype=np.int64)
    if array.shape != (len(offers.types),) or np.any(array < 0):
        raise InputError(
            "not a number of machines for each type",
            field="counts",
            value=list(counts),
            expected=f"{len(offers.types)} numbers, 0 or more",
        )
    return array
