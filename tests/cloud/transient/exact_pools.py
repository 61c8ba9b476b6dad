"""The cheapest pool by branch and bound, for few types: what plans are held against."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.offers import Offers
from foresail.model.distribution import Integers

_SLACK: Final = 1e-9


def cheapest(offers: Offers, needed: int, allowed: float, known: Integers) -> Integers:
    """The pool with the lowest price among all whose shortfall is small enough.

    Types are decided one after the other, cheapest capacity first. A branch ends where it costs as
    much as the best pool known, or where even all that is left to add could not make it available
    enough: then only the odds that all further types are down count.

    ``known`` is some pool that is good enough, shape (types,); the others are as for
    ``foresail.cloud.transient.planning.chosen``.

    Returns
    -------
    numpy.ndarray
        Shape (types,): machines of each.

    """
    order = np.argsort(offers.prices / offers.units, kind="stable")
    search = _PoolSearch(offers, order, needed, allowed, known)
    first = np.zeros((offers.weights.size, needed))
    first[:, 0] = 1.0
    search.branch(0, first, 0.0)
    return search.best


class _PoolSearch:
    def __init__(
        self,
        offers: Offers,
        order: NDArray[np.int64],
        needed: int,
        allowed: float,
        known: Integers,
    ) -> None:
        self.offers, self.order, self.needed, self.allowed = offers, order, needed, allowed
        self.best, self.price = known.copy(), float(known @ offers.prices)
        self.counts = np.zeros_like(known)
        down = 1.0 - offers.up[:, order]
        ones = np.ones((offers.weights.size, 1))
        self.all_down = np.hstack((np.cumprod(down[:, ::-1], axis=1)[:, ::-1], ones))

    def branch(self, depth: int, below: NDArray[np.float64], price: float) -> None:
        """All pools that begin so; ``below``: odds of each capacity under the needed, by state."""
        short = self.offers.weights * below.sum(axis=1)
        if short.sum() <= self.allowed:
            self.best, self.price = self.counts.copy(), price
            return
        if depth == self.order.size or short @ self.all_down[:, depth] > self.allowed:
            return
        i = self.order[depth]
        up = self.offers.up[:, i, np.newaxis]
        for count in range(math.ceil(self.needed / self.offers.units[i]) + 1):
            dearer = price + count * float(self.offers.prices[i])
            if dearer >= self.price * (1.0 - _SLACK):
                break
            self.counts[i] = count
            self.branch(
                depth + 1, _with_group(below, up, count * int(self.offers.units[i])), dearer
            )
        self.counts[i] = 0


def _with_group(
    below: NDArray[np.float64], up: NDArray[np.float64], step: int
) -> NDArray[np.float64]:
    if step == 0:
        return below
    moved = (1.0 - up) * below
    moved[:, step:] += up * below[:, :-step]
    return np.asarray(moved)
