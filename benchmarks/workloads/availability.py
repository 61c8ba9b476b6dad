"""The availability of a pool of transient machines, and choosing one, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.cloud.transient.availability import capacity_masses
from foresail.cloud.transient.offers import Offers, TransientType
from foresail.cloud.transient.planning import plan

_TYPES = 1_000
_CAPACITY = 10_000
_OFFERED = 15
_WANTED = 1_000.0


@benchmark("availability")
def measure() -> Iterator[Measurement]:
    """1,000 types and 10,000 units of capacity; a plan for 1,000 units of 15 types."""
    random = np.random.default_rng(7)
    units = random.integers(1, 64, _TYPES)
    up = random.uniform(0.9, 0.999, _TYPES)
    seconds, reference = best_in_turns(
        2.0,
        lambda: capacity_masses(units, up, _CAPACITY),
        lambda: _masses_by_numpy(units, up, _CAPACITY),
    )
    yield Measurement(
        "availability polynomial", seconds, "NumPy", reference, _TYPES * _CAPACITY, "coefficient"
    )
    offers = _offers(random)
    planning, reference = best_in_turns(
        2.0,
        lambda: plan(offers, _WANTED, 0.99999),
        lambda: _masses_by_numpy(units, up, _CAPACITY),
    )
    yield Measurement("availability plan", planning, "NumPy polynomial", reference, 1, "plan")


def _masses_by_numpy(
    units: NDArray[np.int64], up: NDArray[np.float64], needed: int
) -> NDArray[np.float64]:
    masses = np.zeros(needed + 1)
    masses[0] = 1.0
    for step, odds in zip(units.tolist(), up.tolist(), strict=True):
        above = odds * masses[needed - step : needed].sum()
        moved = odds * masses[: needed - step]
        masses[:needed] *= 1.0 - odds
        masses[step:needed] += moved
        masses[needed] += above
    return masses


def _offers(random: np.random.Generator) -> Offers:
    capacities = random.choice([4, 8, 16, 32], _OFFERED)
    up, prices = random.uniform(0.8, 0.999, _OFFERED), random.uniform(0.2, 0.6, _OFFERED)
    return Offers(
        tuple(
            TransientType(f"t{i}", float(capacities[i]), float(up[i]), float(prices[i]))
            for i in range(_OFFERED)
        )
    )
