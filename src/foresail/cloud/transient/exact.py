"""The cheapest pool of all, by branch and bound: for few types, and to judge the greedy by."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.offers import Offers
from foresail.model.arrays import Integers
from foresail.model.errors import InputError

_SLACK: Final = 1e-9
_MOST_GRAINS: Final = 100_000
_MOST_ODDS: Final = 500_000_000
"""Partial pools times grains of capacity that are looked at."""


def cheapest(
    offers: Offers, needed: int, allowed: float, known: Integers, *, most_nodes: int = 500_000
) -> Integers:
    """The pool with the lowest price among all whose shortfall is small enough.

    Types are decided one after the other, cheapest capacity first. A branch ends where it costs as
    much as the best pool known, or where even all that is left to add could not make it available
    enough: then only the odds that all further types are down count.

    ``known`` is some pool that is good enough, shape (types,); the others are as for
    ``foresail.cloud.transient.choosing.chosen``. At most ``most_nodes`` partial pools are looked
    at; fewer for a capacity of very many grains.

    Returns
    -------
    numpy.ndarray
        Shape (types,): machines of each.

    Raises
    ------
    InputError
        If it takes more partial pools than that, or the capacity more than 100,000 grains.
    """
    order = np.argsort(offers.prices / offers.units, kind="stable")
    search = _PoolSearch(offers, order, needed, allowed, known, most_nodes)
    if needed > _MOST_GRAINS:
        raise InputError(
            f"{needed:,} steps of capacity are too many for the exact method",
            field="method",
            value="exact",
            expected=f"at most {_MOST_GRAINS:,}, or a greedy method",
        )
    most_nodes = min(most_nodes, _MOST_ODDS // needed)
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
        most_nodes: int,
    ) -> None:
        self.offers, self.order, self.needed, self.allowed = offers, order, needed, allowed
        self.best, self.price = known.copy(), float(known @ offers.prices)
        self.counts = np.zeros_like(known)
        self.left, self.most_nodes = most_nodes, most_nodes
        down = 1.0 - offers.up[:, order]
        ones = np.ones((offers.weights.size, 1))
        self.all_down = np.hstack((np.cumprod(down[:, ::-1], axis=1)[:, ::-1], ones))

    def branch(self, depth: int, below: NDArray[np.float64], price: float) -> None:
        """All pools that begin so; ``below``: odds of each capacity under the needed, by state."""
        self.left -= 1
        if self.left < 0:
            raise InputError(
                f"the exact method looked at {self.most_nodes:,} partial pools without an end",
                field="method",
                value="exact",
                expected="fewer types, or a greedy method",
            )
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
