"""Commitments level by level from the bottom: the windows of each that save most (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.purchasing.demand import PricedDemand
from foresail.cloud.purchasing.kernels.stacked_demand import (
    choose_windows,
    level_prices,
    skip_units,
    value_by_slot,
)
from foresail.cloud.purchasing.schedules import LevelSchedule, ScheduleFinder
from foresail.model.arrays import Floats

_LEVELS_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class LevelWindow:
    """One commitment of one level."""

    product: int
    """Place of its term among those on sale, or behind them for a schedule."""
    start: int
    """First slot."""
    schedule: LevelSchedule | None = None
    """What a scheduled one holds."""


def level_windows(
    demand: PricedDemand,
    terms: Sequence[tuple[int, float]],
    unit: float,
    *,
    finders: Sequence[ScheduleFinder] = (),
    year_slots: int = 1,
    covered: Floats | None = None,
) -> list[LevelWindow]:
    """The windows of all levels, until levels want none.

    What a level costs without commitments never rises from one level to the next, so that levels
    above one without a window have none.

    ``terms`` are the slots and the price, relative to on demand, of each term on sale; ``unit`` is
    the height of a level. ``finders`` find the schedules of each whole year of ``year_slots`` from
    the first slot on. ``covered`` units lie at the bottom of every slot already; shape (slots,).
    """
    lengths = np.array([length for length, _ in terms], np.int64)
    costs = np.array([price * length for length, price in terms], np.float64)
    segment, used = np.zeros(demand.slots, np.int64), np.zeros(demand.slots)
    if covered is not None:
        skip_units(demand.stacks, covered, segment, used)
    prices = np.empty((demand.slots, _LEVELS_AT_ONCE))
    found: list[LevelWindow] = []
    while True:
        level_prices(demand.stacks, demand.price, unit, segment, used, prices)
        schedules = [
            finder.best(prices[year * year_slots : (year + 1) * year_slots])
            for year, finder in enumerate(finders)
        ]
        saved = np.zeros((len(schedules), _LEVELS_AT_ONCE))
        for year, by_level in enumerate(schedules):
            for level, schedule in by_level.items():
                saved[year, level] = schedule.saving
        windows = choose_windows(prices, lengths, costs, saved, year_slots)
        if not windows.level.size:
            return found
        for level, product, start in zip(*(part.tolist() for part in windows), strict=True):
            scheduled = product == lengths.size
            held = schedules[start // year_slots][level] if scheduled else None
            found.append(LevelWindow(product, start, held))


def level_cost(
    demand: PricedDemand, terms: Sequence[tuple[int, float]], unit: float = 1.0
) -> float:
    """What demand costs with the windows of ``level_windows``, in slots of one unit on demand.

    In each slot all windows together cover the dearest demand, whatever level they came from.
    """
    covered = np.zeros(demand.slots)
    paid = 0.0
    for window in level_windows(demand, terms, unit):
        length, price = terms[window.product]
        covered[window.start : window.start + length] += unit
        paid += price * length * unit
    return paid + float(value_by_slot(demand.stacks, covered, demand.price).sum())
