"""Demand over time as stacks of priced units, and the commitments that pay level by level."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, merged_part
from foresail.model.distribution import Floats, Integers


class Stacks(NamedTuple):
    """Per time slot the demand of all jobs, dearest class at the bottom.

    The segments of slot t are ``first[t]`` up to ``first[t] + size[t]`` of ``classes`` (a class of
    price each, ascending) and ``units`` (demand averaged over the slot).
    """

    first: Integers
    size: Integers
    classes: NDArray[np.int32]
    units: Floats


def segment_counts(start: Floats, end: Floats, slots: int) -> Integers:
    """Count the jobs in each slot's stack. Times are in slots."""
    lasting = end > start
    begins = np.bincount(start[lasting].astype(np.int64), minlength=slots + 1)
    ends = np.bincount(
        np.minimum(np.ceil(end[lasting]).astype(np.int64), slots), minlength=slots + 1
    )
    return np.cumsum(begins - ends)[:slots]


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
    _stack(np.stack((start, end, units)), classes, order, stacks)
    return stacks


@bare_kernel
def _stack(jobs: Floats, classes: NDArray[np.int32], order: Integers, stacks: Stacks) -> None:
    """Stack jobs in ``order``; ``jobs`` has starts, ends and units."""
    start, end, units = jobs[0], jobs[1], jobs[2]
    slots = stacks.first.size
    for at_job in range(order.size):
        job = order[at_job]
        if not end[job] > start[job]:
            continue
        for slot in range(int(start[job]), min(math.ceil(end[job]), slots)):
            share = min(end[job], slot + 1.0) - max(start[job], float(slot))
            at = stacks.first[slot] + stacks.size[slot]
            if stacks.size[slot] > 0 and stacks.classes[at - 1] == classes[job]:
                stacks.units[at - 1] += share * units[job]
            else:
                stacks.classes[at] = classes[job]
                stacks.units[at] = share * units[job]
                stacks.size[slot] += 1


@bare_kernel
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
            # A level may take the rest of one class and the beginning of the next.
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


@bare_kernel
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


class _CommitmentWindows(NamedTuple):
    """Commitments of some levels: level, product and first slot of each."""

    level: Integers
    product: Integers
    start: Integers


def choose_windows(
    prices: Floats, lengths: Integers, costs: Floats, scheduled: Floats, scheduled_length: int
) -> _CommitmentWindows:
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
    choice = np.full((slots + 1, levels), -1, np.int8)
    last_start = np.full(levels, -1, np.int64)
    terms = np.append(lengths, scheduled_length)
    _choose(prices, terms, costs, scheduled, np.zeros((2, slots + 1, levels)), choice, last_start)
    windows = np.empty((3, levels * 4), np.int64)
    found = _read_back(choice, last_start, terms, windows)
    if found > windows.shape[1]:
        windows = np.empty((3, found), np.int64)
        _read_back(choice, last_start, terms, windows)
    level, product, start = windows[:, :found]
    return _CommitmentWindows(level, product, start)


@bare_kernel
def _choose(
    prices: Floats,
    terms: Integers,
    costs: Floats,
    scheduled: Floats,
    work: Floats,
    choice: NDArray[np.int8],
    last_start: Integers,
) -> None:
    """Fill the product that ends best in every slot of each level, or -1.

    The last of ``terms`` is that of schedules. Of a window that the last slot cuts off,
    ``last_start`` is the first slot. ``work`` has two tables of shape (slots + 1, levels), zeros.
    """
    slots, levels = prices.shape
    products = costs.size
    area, best = work[0], work[1]
    for slot in range(1, slots + 1):
        for level in range(levels):
            area[slot, level] = area[slot - 1, level] + prices[slot - 1, level]
            best[slot, level] = best[slot - 1, level]
        for product in range(products):
            # Dynamic program over slots: a window that ends here, after the best of what is before
            # it.
            if slot >= terms[product]:
                _end_term(slot, slot - terms[product], product, costs[product], work, choice)
        year = slot // terms[products] - 1
        if slot % terms[products] == 0 and year < scheduled.shape[0]:
            for level in range(levels):
                worth = best[slot - terms[products], level] + scheduled[year, level]
                if worth > best[slot, level] + 1e-9:
                    best[slot, level] = worth
                    choice[slot, level] = products
    for product in range(products):
        # Windows that the end of the log cuts off.
        for begin in range(max(slots - terms[product] + 1, 0), slots):
            for level in range(levels):
                worth = best[begin, level] + (
                    area[slots, level] - area[begin, level] - costs[product]
                )
                if worth > best[slots, level] + 1e-9:
                    best[slots, level] = worth
                    choice[slots, level] = product
                    last_start[level] = begin


@merged_part
def _end_term(
    slot: int, begin: int, product: int, cost: float, work: Floats, choice: NDArray[np.int8]
) -> None:
    """Let a product's window end with each level of a slot where that is best so far."""
    area, best = work[0], work[1]
    for level in range(choice.shape[1]):
        worth = best[begin, level] + (area[slot, level] - area[begin, level] - cost)
        if worth > best[slot, level] + 1e-9:
            best[slot, level] = worth
            choice[slot, level] = product


@bare_kernel
def _read_back(
    choice: NDArray[np.int8], last_start: Integers, terms: Integers, windows: Integers
) -> int:
    """Read the chosen windows back from their ends; how many, whether or not there is room."""
    slots, levels = choice.shape[0] - 1, choice.shape[1]
    found = 0
    for level in range(levels):
        slot = slots
        while slot > 0:
            product = choice[slot, level]
            if product < 0:
                slot -= 1
                continue
            begin = slot - terms[product]
            if slot == slots and last_start[level] >= 0:
                begin = last_start[level]
            if found < windows.shape[1]:
                windows[0, found] = level
                windows[1, found] = product
                windows[2, found] = begin
            found += 1
            slot = begin
    return found


def value_by_slot(stacks: Stacks, committed: Floats, value: Floats) -> Floats:
    """Units that commitments leave over, each times a value of its class; shape (slots,).

    ``committed`` units, the dearest ones, are covered in every slot.
    """
    total = np.zeros(committed.size)
    _add_values(stacks, committed, value, total)
    return total


@bare_kernel
def _add_values(stacks: Stacks, committed: Floats, value: Floats, total: Floats) -> None:
    for slot in range(committed.size):
        cover = committed[slot]
        for at in range(stacks.first[slot], stacks.first[slot] + stacks.size[slot]):
            covered = min(cover, stacks.units[at])
            cover -= covered
            total[slot] += (stacks.units[at] - covered) * value[stacks.classes[at]]
