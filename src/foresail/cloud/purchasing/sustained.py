"""The discount for sustained use within a month (spec section 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from foresail.model.arrays import Floats


def unit_cost(used_share: ArrayLike, tiers: tuple[float, ...]) -> Floats:
    """Cost of a unit used for a share of a month, relative to a whole month on demand.

    ``used_share`` is 0 to 1, of any shape; ``tiers`` are relative prices of equal parts of the
    month.
    """
    edges = np.linspace(0.0, 1.0, len(tiers) + 1)
    costs = np.concatenate([[0.0], np.cumsum(np.asarray(tiers) / len(tiers))])
    return np.asarray(np.interp(np.asarray(used_share, np.float64), edges, costs))


def month_cost(average_units: ArrayLike, tiers: tuple[float, ...]) -> Floats:
    """Cost of an average demand over a month, in months of one unit on demand.

    Whole units are used all month, the rest for its share of it: the provider adds up what is used
    at different times.
    """
    average = np.asarray(average_units, np.float64)
    whole = np.floor(average)
    return whole * unit_cost(1.0, tiers) + unit_cost(average - whole, tiers)
