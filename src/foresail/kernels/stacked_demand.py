"""Demand over time as stacks of priced units, and the commitments that pay level by level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Stacks(NamedTuple):
    """Per time slot the demand of all jobs, dearest class at the bottom.

    The segments of slot t are ``first[t]`` up to ``first[t] + size[t]`` of ``classes`` (a class of
    price each, ascending) and ``units`` (demand averaged over the slot).
    """

    first: Integers
    size: Integers
    classes: NDArray[np.int32]
    units: Floats


@kernel
def segment_counts(start: Floats, end: Floats, slots: int) -> Integers:
    """In how many slots' stacks jobs are: a count per slot. Times are in slots."""
    change = np.zeros(slots + 1, np.int64)
    for job in range(start.size):
        if end[job] > start[job]:
            change[int(start[job])] += 1
            change[min(int(np.ceil(end[job])), slots)] -= 1
    return np.cumsum(change)[:slots]


@kernel
def stack_jobs(
    start: Floats,
    end: Floats,
    units: Floats,
    classes: NDArray[np.int32],
    order: Integers,
    first: Integers,
    room: int,
) -> Stacks:
    """Stack jobs in ``order`` (ascending classes); units of one class in a slot are one segment.

    ``start`` and ``end`` are in slots; ``first`` leaves room for ``segment_counts`` in each slot.
    """
    slots = first.size
    stacks = Stacks(
        first, np.zeros(slots, np.int64), np.empty(room, np.int32), np.empty(room, np.float64)
    )
    for job in order:
        if not end[job] > start[job]:
            continue
        for slot in range(int(start[job]), min(int(np.ceil(end[job])), slots)):
            share = min(end[job], slot + 1.0) - max(start[job], float(slot))
            at = stacks.first[slot] + stacks.size[slot]
            if stacks.size[slot] > 0 and stacks.classes[at - 1] == classes[job]:
                stacks.units[at - 1] += share * units[job]
            else:
                stacks.classes[at] = classes[job]
                stacks.units[at] = share * units[job]
                stacks.size[slot] += 1
    return stacks


@kernel
def level_prices(
    stacks: Stacks,
    class_price: Floats,
    unit: float,
    segment: Integers,
    used: Floats,
    prices: Floats,
) -> None:
    """Price of the next levels in every slot; fills ``prices``, shape (slots, levels).

    A level is ``unit`` high; where the stack is lower, the rest of it costs nothing. ``segment``
    and ``used`` (per slot) say how far the stacks were walked, and are moved on.
    """
    slots, levels = prices.shape
    for slot in range(slots):
        at, taken = segment[slot], used[slot]
        for level in range(levels):
            need, cost = unit, 0.0
            while need > 0.0 and at < stacks.size[slot]:
                entry = stacks.first[slot] + at
                left = stacks.units[entry] - taken
                if left > need:
                    taken += need
                    cost += need * class_price[stacks.classes[entry]]
                    need = 0.0
                else:
                    cost += left * class_price[stacks.classes[entry]]
                    need -= left
                    taken = 0.0
                    at += 1
            prices[slot, level] = cost / unit
        segment[slot], used[slot] = at, taken


@kernel
def skip_units(stacks: Stacks, covered: Floats, segment: Integers, used: Floats) -> None:
    """Walk up the stacks by so many units in every slot, as ``level_prices`` does."""
    for slot in range(segment.size):
        need = covered[slot]
        while need > 0.0 and segment[slot] < stacks.size[slot]:
            left = stacks.units[stacks.first[slot] + segment[slot]] - used[slot]
            if left > need:
                used[slot] += need
                need = 0.0
            else:
                need -= left
                used[slot] = 0.0
                segment[slot] += 1


class Windows(NamedTuple):
    """Commitments of some levels: level, product and first slot of each."""

    level: Integers
    product: Integers
    start: Integers


@kernel
def choose_windows(
    prices: Floats,
    lengths: Integers,
    costs: Floats,
    scheduled: Floats,
    scheduled_length: int,
) -> Windows:
    """The windows of each level that save most, none overlapping (dynamic program over time).

    Parameters
    ----------
    prices
        What every slot of a level costs without commitments; shape (slots, levels).
    lengths, costs
        Slots and cost of each product's term. A term that the last slot cuts off is paid in full.
    scheduled
        What the best schedules of a level save in each whole year from the beginning on, shape
        (years, levels); product number ``lengths.size``.
    scheduled_length
        Slots of such a year.
    """
    slots, levels = prices.shape
    products = lengths.size
    area = np.zeros((slots + 1, levels))
    best = np.zeros((slots + 1, levels))
    choice = np.full((slots + 1, levels), -1, np.int8)
    for slot in range(1, slots + 1):
        for level in range(levels):
            area[slot, level] = area[slot - 1, level] + prices[slot - 1, level]
            best[slot, level] = best[slot - 1, level]
        for product in range(products):
            begin = slot - lengths[product]
            if begin < 0:
                continue
            cost = costs[product]
            for level in range(levels):
                worth = best[begin, level] + (area[slot, level] - area[begin, level] - cost)
                if worth > best[slot, level] + 1e-9:
                    best[slot, level] = worth
                    choice[slot, level] = product
        year = slot // scheduled_length - 1
        if slot % scheduled_length == 0 and year < scheduled.shape[0]:
            for level in range(levels):
                worth = best[slot - scheduled_length, level] + scheduled[year, level]
                if worth > best[slot, level] + 1e-9:
                    best[slot, level] = worth
                    choice[slot, level] = products
    last_start = np.full(levels, -1, np.int64)
    for product in range(products):
        for begin in range(max(slots - lengths[product] + 1, 0), slots):
            for level in range(levels):
                worth = best[begin, level] + (
                    area[slots, level] - area[begin, level] - costs[product]
                )
                if worth > best[slots, level] + 1e-9:
                    best[slots, level] = worth
                    choice[slots, level] = product
                    last_start[level] = begin
    return _windows(choice, last_start, lengths, scheduled_length)


@kernel
def _windows(
    choice: NDArray[np.int8], last_start: Integers, lengths: Integers, scheduled_length: int
) -> Windows:
    """Read the chosen windows back from their ends."""
    slots, levels = choice.shape[0] - 1, choice.shape[1]
    found = 0
    room = levels * 4
    windows = Windows(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))
    for level in range(levels):
        slot = slots
        while slot > 0:
            product = choice[slot, level]
            if product < 0:
                slot -= 1
                continue
            length = scheduled_length if product == lengths.size else lengths[product]
            begin = slot - length
            if slot == slots and last_start[level] >= 0:
                begin = last_start[level]
            if found == room:
                windows = _doubled(windows)
                room *= 2
            windows.level[found] = level
            windows.product[found] = product
            windows.start[found] = begin
            found += 1
            slot = begin
    return Windows(windows.level[:found], windows.product[:found], windows.start[:found])


@kernel
def _doubled(windows: Windows) -> Windows:
    return Windows(
        np.concatenate((windows.level, np.empty_like(windows.level))),
        np.concatenate((windows.product, np.empty_like(windows.product))),
        np.concatenate((windows.start, np.empty_like(windows.start))),
    )


@kernel
def value_by_slot(stacks: Stacks, committed: Floats, value: Floats) -> Floats:
    """Units that commitments leave over, each times a value of its class; shape (slots,).

    ``committed`` units, the dearest ones, are covered in every slot.
    """
    total = np.zeros(committed.size)
    for slot in range(committed.size):
        cover = committed[slot]
        for at in range(stacks.first[slot], stacks.first[slot] + stacks.size[slot]):
            covered = min(cover, stacks.units[at])
            cover -= covered
            total[slot] += (stacks.units[at] - covered) * value[stacks.classes[at]]
    return total


@kernel
def best_intervals(predecessor: Integers, values: Floats) -> NDArray[np.bool_]:
    """Which of some intervals, by end, to choose so that none overlap and the value is greatest.

    ``predecessor[i]`` is how many of them end no later than interval i begins.
    """
    count = values.size
    best = np.zeros(count + 1)
    for at in range(count):
        best[at + 1] = max(best[at], best[predecessor[at]] + values[at])
    chosen = np.zeros(count, np.bool_)
    at = count
    while at > 0:
        if best[at] == best[at - 1]:
            at -= 1
        else:
            chosen[at - 1] = True
            at = predecessor[at - 1]
    return chosen
