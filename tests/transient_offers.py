"""Types, pools and histories that tests of transient capacity share, and slow references."""

from __future__ import annotations

from itertools import product

import numpy as np

from foresail.cloud.histories import JointHistory
from foresail.cloud.transient.offers import Offers, TransientType

FIVE = Offers(
    tuple(
        TransientType(name, 10.0, up, price)
        for name, up, price in (
            ("a", 0.95, 0.20),
            ("b", 0.98, 0.30),
            ("c", 0.99, 0.40),
            ("d", 0.90, 0.12),
            ("e", 0.97, 0.25),
        )
    )
)
"""The types of the specification's worked examples (section 2.3)."""


def enumerated_shortfall(offers, counts, needed):
    """Probability of less than is needed, by looking at every pattern of types that are up."""
    short = 0.0
    for weight, up in zip(offers.weights, offers.up, strict=True):
        for pattern in product((0, 1), repeat=len(offers.types)):
            odds = weight
            for is_up, probability in zip(pattern, up, strict=True):
                odds *= probability if is_up else 1.0 - probability
            if int(np.array(pattern) * counts @ offers.units) < needed:
                short += odds
    return short


def brute_force_price(offers, needed, allowed):
    """The lowest price of all pools that are available enough."""
    most = [-(-needed // int(units)) for units in offers.units]
    prices = [
        float(np.array(counts) @ offers.prices)
        for counts in product(*(range(each + 1) for each in most))
        if enumerated_shortfall(offers, np.array(counts), needed) <= allowed
    ]
    return min(prices)


def history(seconds, up, prices=None, names=None):
    """A joint history from rows of truth values."""
    up = np.array(up, dtype=bool)
    names = tuple(names or (f"m{i}" for i in range(up.shape[1])))
    prices = np.ones(up.shape) if prices is None else np.array(prices, dtype=float)
    return JointHistory(names, 0.0, np.array(seconds, dtype=float), up, prices)


def random_history(seed, hours=4000, types=4, shocks=0.02):
    """Hours in which types are down each by itself, or many of them together."""
    random = np.random.default_rng(seed)
    up = random.uniform(size=(hours, types)) < 0.97
    shocked = random.uniform(size=hours) < shocks
    up[shocked] &= random.uniform(size=(int(shocked.sum()), types)) < 0.2
    return history(np.full(hours, 3600.0), up)
