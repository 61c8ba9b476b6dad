"""Choice of machines: greedy by price per gain in availability, or exact by branch and bound."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.availability import shortfall
from foresail.cloud.transient.kernels.availability import shortfall_after
from foresail.cloud.transient.methods import Method
from foresail.cloud.transient.offers import Offers
from foresail.model.arrays import Floats, Integers
from foresail.model.errors import InputError

_LEAST_SHORTFALL: Final = 1e-300
_LEAST_GAIN: Final = 1e-9
"""Relative: what rounding could make up is no gain."""


MARGINAL: Final = (Method.MARGINAL_LOG, Method.MARGINAL_LINEAR)
"""Methods that set the price of a machine against its gain, looking at the pool."""


def chosen(
    offers: Offers,
    needed: int,
    allowed: float,
    criterion: Method,
    *,
    dearest: float = math.inf,
) -> Integers | None:
    """Machines of each type, added one by one until the shortfall is small enough, then pruned.

    Parameters
    ----------
    offers
        What can be rented; some pool of it is good enough.
    needed
        Capacity in grains, at least 1.
    allowed
        Shortfall that is good enough.
    criterion
        By what the next machine is chosen (spec 2.3): one of ``MARGINAL``, or equation 3.3.
    dearest
        Price per hour at which to give up.

    Returns
    -------
    numpy.ndarray or None
        Shape (types,); None where it was given up.
    """
    if criterion is Method.EQ33_STATIC:
        counts = _cycled(offers, needed, allowed, dearest)
    else:
        nothing = np.zeros(len(offers.types), dtype=np.int64)
        counts = completed(offers, nothing, needed, allowed, criterion, dearest=dearest)
    return None if counts is None else pruned(offers, counts, needed, allowed)


def completed(
    offers: Offers,
    begun: Integers,
    needed: int,
    allowed: float,
    criterion: Method,
    *,
    dearest: float = math.inf,
) -> Integers | None:
    """As ``chosen``, but not pruned: from machines that are there already, by a marginal criterion.

    The gain is measured at what the pool has, until that is enough. Measured at the capacity that
    the pool would have with the machine, one type would be stacked on itself and the gains would
    end (spec 2.3).
    """
    worth = _nines if criterion is Method.MARGINAL_LOG else _linear
    counts = begun.copy()
    if not counts.any():
        counts[_best(offers, worth(offers.weights @ (1.0 - offers.up)), counts)] += 1
    while True:
        size = int(counts @ offers.units)
        short = shortfall(offers, counts, min(size, needed))
        if size >= needed and short <= allowed:
            return counts
        if float(counts @ offers.prices) > dearest:
            return None
        if short == 0.0:
            counts[_cheapest_certain(offers)] += 1
            continue
        after = _after(offers, counts, min(size, needed), 1)
        gains = worth(after) - worth(np.array([short]))[0]
        gains[short - after <= _LEAST_GAIN * short] = 0.0
        counts[_best(offers, gains, counts)] += 1


def pruned(offers: Offers, counts: Integers, needed: int, allowed: float) -> Integers:
    """Without the machines that it takes not, the dearest dropped first, one at a time."""
    kept = counts.copy()
    dearest_first = np.argsort(-offers.prices, kind="stable")
    while True:
        short = _after(offers, kept, needed, -1)
        spare = dearest_first[(short <= allowed)[dearest_first] & (kept > 0)[dearest_first]]
        if not spare.size:
            return kept
        kept[spare[0]] -= 1


def _best(offers: Offers, gains: Floats, counts: Integers) -> int:
    """The type with the lowest price per gain; without gain, one of the rarest in the pool."""
    prices = offers.prices
    if not np.any(gains > 0.0):
        return int(np.lexsort((prices, counts))[0])
    ratio = np.full(gains.size, math.inf)
    np.divide(prices, gains, out=ratio, where=gains > 0.0)
    return int(np.lexsort((prices, ratio))[0])


def _cheapest_certain(offers: Offers) -> int:
    """The cheapest capacity that is never down: nothing else is to be gained by such a pool."""
    certain = np.all(offers.up == 1.0, axis=0)
    return int(np.argmin(np.where(certain, offers.prices / offers.units, math.inf)))


def _cycled(offers: Offers, needed: int, allowed: float, dearest: float) -> Integers | None:
    """Equation 3.3 as printed: a fixed ranking, one machine of each type a round."""
    mean_up = np.clip(offers.weights @ offers.up, _LEAST_SHORTFALL, 1.0)
    sigma = np.array([each.price_per_unit_hour for each in offers.types])
    ranking = np.argsort(-np.log(mean_up) * sigma, kind="stable")
    counts = np.zeros(len(offers.types), dtype=np.int64)
    while float(counts @ offers.prices) <= dearest:
        for i in ranking:
            counts[i] += 1
            enough = int(counts @ offers.units) >= needed
            if enough and shortfall(offers, counts, needed) <= allowed:
                return counts
    return None


def _after(offers: Offers, counts: Integers, needed: int, change: int) -> Floats:
    """Shape (types,): the shortfall once this type has so many machines more."""
    shorts = [shortfall_after(offers.units, counts, up, needed, change) for up in offers.up]
    return np.asarray(offers.weights @ np.stack(shorts))


def _nines(short: Floats) -> Floats:
    return np.asarray(-np.log10(np.maximum(short, _LEAST_SHORTFALL)))


def _linear(short: Floats) -> Floats:
    return 1.0 - short


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
