"""Cheaper pools than the greedy finds: in coarser steps, and by taking types out again.

The greedy looks one machine ahead, so that on large capacities it spreads over many types for the
small gain of each. A pool for a tenth of the capacity, ten times over, is just as available, and
often far cheaper; and what is chosen again after some type was taken out is never dearer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from foresail.cloud.transient.choosing import MARGINAL, chosen, completed, pruned
from foresail.cloud.transient.offers import Offers
from foresail.model.arrays import Integers

_SCALES: Final = tuple(step * 10**power for power in range(6) for step in (1, 2, 5))
_MOST_CHOSEN: Final = 500_000
_MOST_REFINED: Final = 20_000
"""Types times grains of capacity: up to here pools are chosen, and refined."""
_MOST_TRIALS: Final = 300
_LEAST_GAIN: Final = 1e-9


def best_of_scales(
    offers: Offers, needed: int, allowed: float, *, dearest: float = math.inf
) -> Integers | None:
    """The cheapest pool by the marginal criteria at several scales, refined where that is quick.

    Arguments and result as for ``foresail.cloud.transient.choosing.chosen``.
    """
    pools = [
        pruned(offers, scale * counts, needed, allowed)
        for scale, part in _parts(needed, len(offers.types))
        for counts in _small_pools(offers, part, allowed, dearest / scale)
    ]
    return min(pools, key=lambda counts: float(counts @ offers.prices), default=None)


def refined(offers: Offers, counts: Integers, needed: int, allowed: float) -> Integers:
    """A pool that is no dearer: types are taken out, all or half of them, and chosen anew.

    Goes on with the first that is cheaper, until none is.

    ``counts`` is a pool that is available enough, shape (types,); the others are as for
    ``foresail.cloud.transient.choosing.chosen``.
    """
    best, price = counts, float(counts @ offers.prices)
    trials = _trials(best)
    for _ in range(_MOST_TRIALS):
        begun = next(trials, None)
        if begun is None:
            break
        for criterion in MARGINAL:
            found = completed(offers, begun, needed, allowed, criterion, dearest=1.5 * price)
            if found is None:
                continue
            found = pruned(offers, found, needed, allowed)
            if float(found @ offers.prices) < price * (1.0 - _LEAST_GAIN):
                best, price = found, float(found @ offers.prices)
                trials = _trials(best)
                break
    return best


def _parts(needed: int, types: int) -> Iterator[tuple[int, int]]:
    """Scales, and what part of the needed each leaves; one for each part that is quick enough."""
    last = 0
    for scale in _SCALES:
        part = math.ceil(needed / scale)
        if part != last and (part * types <= _MOST_CHOSEN or part == 1):
            yield scale, part
        last = part


def _small_pools(offers: Offers, needed: int, allowed: float, dearest: float) -> Iterator[Integers]:
    found = [chosen(offers, needed, allowed, each, dearest=dearest) for each in MARGINAL]
    pools = [counts for counts in found if counts is not None]
    if not pools:
        return
    best = min(pools, key=lambda counts: float(counts @ offers.prices))
    small = needed * len(offers.types) <= _MOST_REFINED
    yield refined(offers, best, needed, allowed) if small else best


def _trials(counts: Integers) -> Iterator[Integers]:
    """The pool without some type, then with half of it, then with one machine less."""
    for kept in (np.zeros_like(counts), counts // 2, np.maximum(counts - 1, 0)):
        for i in np.flatnonzero(counts):
            begun = counts.copy()
            begun[i] = kept[i]
            yield begun
