"""Slow, obvious references for stacked demand and windows of commitments."""

import itertools

import numpy as np


def stack(start, end, units, price, slots):
    """Per slot, (price, units) of every job, the dearest first."""
    found = []
    for slot in range(slots):
        held = []
        for a, b, u, p in zip(start, end, units, price, strict=True):
            share = min(b, slot + 1) - max(a, slot)
            if share > 0:
                held.append((p, u * share))
        found.append(sorted(held, reverse=True))
    return found


def price_of_level(held, level, unit):
    """Money for the part of a stack between level and level + 1."""
    low, high, at, cost = level * unit, (level + 1) * unit, 0.0, 0.0
    for price, units in held:
        cost += price * max(0.0, min(at + units, high) - max(at, low))
        at += units
    return cost / unit


def best_saving(prices, terms):
    """The most that windows of one level save: each slot begins a window of a term, or none."""

    def from_slot(slot):
        if slot >= len(prices):
            return 0.0
        windows = (
            sum(prices[slot : slot + length]) - length * cost + from_slot(slot + length)
            for length, cost in terms
        )
        return max(from_slot(slot + 1), *windows)

    return from_slot(0)


def best_intervals(start, end, value):
    """The most that intervals are worth of which none overlap: every subset."""
    best = 0.0
    for mask in range(1 << len(start)):
        chosen = sorted((start[i], end[i], value[i]) for i in range(len(start)) if mask >> i & 1)
        if all(a[1] <= b[0] for a, b in itertools.pairwise(chosen)):
            best = max(best, sum(v for _, _, v in chosen))
    return best


def placed(start, end, pieces, *capacity):
    """Which jobs find room on reserved machines: whole jobs, best fit, no wait.

    ``pieces`` has a list per job of what each piece takes, in the order of ``capacity``, which has
    what every machine has of cores first. Among machines with equally few free cores, the one that
    changed last is taken.
    """
    free = np.column_stack(capacity).astype(float)
    changed = list(range(len(free)))
    running, answer = [], []

    def change(machine, amounts):
        free[machine] -= amounts
        changed[machine] = max(changed) + 1

    for job, now in enumerate(start):
        for entry in sorted((e for e in running if e[0] <= now), key=lambda e: e[:2]):
            running.remove(entry)
            for machine, amounts in entry[2]:
                change(machine, tuple(-amount for amount in amounts))
        held = []
        for amounts in pieces[job]:
            fits = np.flatnonzero((free >= amounts).all(axis=1))
            if not fits.size:
                break
            machine = min(fits, key=lambda at: (free[at][0], -changed[at]))
            change(machine, amounts)
            held.append((machine, amounts))
        whole = len(held) == len(pieces[job])
        answer.append(whole)
        if whole:
            running.append((end[job], job, held))
        else:
            for machine, amounts in held:
                change(machine, tuple(-amount for amount in amounts))
    return np.array(answer)
