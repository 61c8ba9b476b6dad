"""What a buyer has already: commitments, from the day of the prices until they end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from foresail.cloud.prices import Commitment, PriceCatalogue
from foresail.model.arrays import Floats


@dataclass(frozen=True, slots=True)
class HeldCapacity:
    """So many units of a resource, for so many hours from the moment of buying (inf: for good)."""

    units: float
    hours: float = math.inf


def running_commitments(catalogue: PriceCatalogue) -> tuple[Commitment, ...]:
    """Those that have not ended by the day of the prices."""
    return tuple(
        each
        for each in catalogue.commitments
        if each.until is None or each.until >= catalogue.valid_on
    )


def hours_left(commitment: Commitment, catalogue: PriceCatalogue) -> float:
    """From the day of the prices to the end of the commitment's last day."""
    if commitment.until is None:
        return math.inf
    return ((commitment.until - catalogue.valid_on).days + 1) * 24.0


def held_by_slot(held: Sequence[HeldCapacity], slots: int, slot_hours: float) -> Floats:
    """Units that are held in each slot, on average over it; shape (slots,)."""
    begin = np.arange(slots) * slot_hours
    total = np.zeros(slots)
    for each in held:
        total += each.units * np.clip((each.hours - begin) / slot_hours, 0.0, 1.0)
    return total


def held_in_year(
    held: Sequence[HeldCapacity], year: int, year_hours: float
) -> list[tuple[float, float]]:
    """Stretches of a year from the moment of buying: the share of it, and the units held then."""
    begin, end = year * year_hours, (year + 1) * year_hours
    ends = {each.hours for each in held if begin < each.hours < end}
    edges = [begin, *sorted(ends), end]
    return [
        ((last - first) / year_hours, sum(each.units for each in held if each.hours > first))
        for first, last in pairwise(edges)
    ]
