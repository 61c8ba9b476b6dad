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


def placed(start, end, pieces, cores, memory):
    """Which jobs find room on reserved machines: whole jobs, best fit, no wait.

    ``pieces`` has a list of (cores, memory) per job. Among machines with equally few free cores,
    the one that changed last is taken.
    """
    free = [[int(c), float(m)] for c, m in zip(cores, memory, strict=True)]
    changed = list(range(len(free)))
    running, answer = [], []

    def change(machine, c, m):
        free[machine][0] -= c
        free[machine][1] -= m
        changed[machine] = max(changed) + 1

    for job, now in enumerate(start):
        for entry in sorted(e for e in running if e[0] <= now):
            running.remove(entry)
            for machine, c, m in entry[2]:
                change(machine, -c, -m)
        held = []
        for c, m in pieces[job]:
            fits = [at for at, (fc, fm) in enumerate(free) if fc >= c and fm >= m]
            if not fits:
                break
            machine = min(fits, key=lambda at: (free[at][0], -changed[at]))
            change(machine, c, m)
            held.append((machine, c, m))
        whole = len(held) == len(pieces[job])
        answer.append(whole)
        if whole:
            running.append((end[job], job, held))
        else:
            for machine, c, m in held:
                change(machine, -c, -m)
    return np.array(answer)
