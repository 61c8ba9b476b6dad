"""Transient types on offer: capacity, price, availability, and shocks that take several down."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Final

import numpy as np

from foresail.cloud.histories import JointHistory
from foresail.cloud.prices import checked_price
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError

_MOST_ROUNDS: Final = 500
_ENOUGH: Final = 1e-9
_MOST_STATES: Final = 4
_PATTERN_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class CommonShocks:
    """Probability of each state of the markets, and of each type to be up in it.

    The first state is the calm one. In a shock several types are down more often than usual, which
    is what makes them fail together; given the state they fail each by itself, so that availability
    is a mean of availability polynomials and stays exact.
    """

    names: tuple[str, ...]
    """Names of the types."""
    weights: Floats
    """Shape (states,): 0 or more, sum 1."""
    up: Floats
    """Shape (states, types): probabilities."""

    def __post_init__(self) -> None:
        if self.up.shape != (self.weights.size, len(self.names)) or not self.weights.size:
            raise ValueError("up must have a row per state and a column per type")
        if np.any(self.weights < 0.0) or abs(float(self.weights.sum()) - 1.0) > _ENOUGH:
            raise ValueError("weights must not be negative, and their sum must be 1")
        if np.any(self.up < 0.0) or np.any(self.up > 1.0):
            raise ValueError("up must be probabilities")


def fitted_shocks(history: JointHistory, *, doubt_hours: float = 0.0) -> CommonShocks:
    """States of the markets that explain which types were up together, by likelihood.

    Latent classes by expectation and maximisation on the time spent in each pattern of types that
    are up. A pattern that lasted counts once an hour, for hours in a row are no news. There are as
    many states, up to four, as Schwarz's criterion prefers.

    ``doubt_hours`` are put to what was seen, half of them up and half down for every type: a market
    that was never seen down is not certain. Such an hour falls into each state in proportion.
    """
    patterns, inverse = np.unique(history.up, axis=0, return_inverse=True)
    hours = np.bincount(inverse.ravel(), history.seconds, patterns.shape[0]) / _PATTERN_SECONDS
    seen = patterns.astype(np.float64)
    best, least = _fit(history.names, seen, hours, 1)
    for tried in range(2, min(_MOST_STATES, patterns.shape[0]) + 1):
        shocks, criterion = _fit(history.names, seen, hours, tried)
        if criterion < least:
            best, least = shocks, criterion
    # Every type by itself is as available as it is with independent types and the same doubt.
    kept = float(hours.sum()) / (float(hours.sum()) + doubt_hours)
    return CommonShocks(best.names, best.weights, kept * best.up + 0.5 * (1.0 - kept))


def _fit(
    names: tuple[str, ...], seen: Floats, hours: Floats, states: int
) -> tuple[CommonShocks, float]:
    """Shocks, and Schwarz's criterion (smaller is better).

    Begins with the patterns sorted by how many types are down, cut into the states.
    """
    down = seen.shape[1] - seen.sum(axis=1)
    distinct = np.unique(down)
    cuts = np.array_split(distinct, states) if distinct.size >= states else [distinct]
    belongs = np.full((seen.shape[0], states), 0.1 / states)
    for state, part in enumerate(cuts):
        if part.size:
            belongs[np.isin(down, part), state] += 0.9
    belongs /= belongs.sum(axis=1, keepdims=True)
    likelihood = -math.inf
    for _ in range(_MOST_ROUNDS):
        mass = belongs * hours[:, np.newaxis]
        total = np.maximum(mass.sum(axis=0), 1e-12)
        weights = total / total.sum()
        up = np.clip((mass.T @ seen) / total[:, np.newaxis], 0.0, 1.0)
        logs = np.log(weights) + _log_odds(seen, up)
        peak = logs.max(axis=1, keepdims=True)
        summed = np.exp(logs - peak).sum(axis=1)
        belongs = np.exp(logs - peak) / summed[:, np.newaxis]
        before, likelihood = likelihood, float(hours @ (peak[:, 0] + np.log(summed)))
        if likelihood - before < _ENOUGH * (1.0 + abs(likelihood)):
            break
    calm_first = np.argsort(-up.sum(axis=1), kind="stable")
    shocks = CommonShocks(names, weights[calm_first] / weights.sum(), up[calm_first])
    parameters = states * seen.shape[1] + states - 1
    return shocks, parameters * math.log(max(hours.sum(), 2.0)) - 2.0 * likelihood


def _log_odds(seen: Floats, up: Floats) -> Floats:
    """Log-probability of each pattern (rows) in each state (columns)."""
    log_up = np.log(np.maximum(up, 1e-300))
    log_down = np.log(np.maximum(1.0 - up, 1e-300))
    return np.asarray(seen @ log_up.T + (1.0 - seen) @ log_down.T)


_MOST_UNITS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class MachineKind:
    """A machine that a market rents: its capacity, and its price on demand (per hour)."""

    capacity: float
    on_demand_per_hour: float | None = None
    price_per_hour: float | None = None
    """Price of the transient machine, where its history has no prices."""

    def or_on_demand(self, price_per_hour: float | None) -> MachineKind:
        """Return the kind with this price on demand, unless it has one."""
        if self.on_demand_per_hour is not None:
            return self
        return replace(self, on_demand_per_hour=price_per_hour)


@dataclass(frozen=True, slots=True)
class TransientType:
    """A type of transient machine in one market: all of its machines are up or down together."""

    name: str
    """Unique."""
    capacity: float
    """Capacity of one machine, above 0, in a unit of all types (cores, ECU, requests a second)."""
    availability: float
    """Share of time, 0 to 1, that its machines are up."""
    price_per_unit_hour: float
    """Price of a unit of capacity for an hour, above 0."""
    on_demand_price_per_unit_hour: float | None = None
    """The same for a machine that stays, where it is known."""

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("a type has no name", field="name", expected="a name")
        self._check_positive("capacity", self.capacity)
        self._check_positive("price_per_unit_hour", self.price_per_unit_hour)
        if self.on_demand_price_per_unit_hour is not None:
            checked_price(self.on_demand_price_per_unit_hour, "on_demand_price_per_unit_hour")
        if not 0.0 <= self.availability <= 1.0:
            raise InputError(
                f"no availability of {self.name}",
                field="availability",
                value=self.availability,
                expected="a share of time from 0 to 1",
            )

    @property
    def price_per_hour(self) -> float:
        """Price of one machine."""
        return self.price_per_unit_hour * self.capacity

    def _check_positive(self, field: str, value: float) -> None:
        if not 0.0 < value < math.inf:
            raise InputError(
                f"cannot be the {field.replace('_', ' ')} of {self.name}",
                field=field,
                value=value,
                expected="a number above 0",
            )


@dataclass(frozen=True)
class Offers:
    """Types that can be rented, and whether they fail on their own or together.

    Raises ``InputError`` if there is no type, a name comes twice, the shocks are of other types, or
    the capacities have so little in common that they cannot be counted.
    """

    types: tuple[TransientType, ...]
    """At least one, with different names."""
    shocks: CommonShocks | None = None
    """Dependence of the types on each other in being up; None: each by itself."""

    def __post_init__(self) -> None:
        names = [each.name for each in self.types]
        if not names:
            raise InputError("there is no type to rent", expected="at least one transient type")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                "a type is given twice", field="name", value=twice, expected="different names"
            )
        if self.shocks is not None and self.shocks.names != tuple(names):
            raise InputError(
                "the shocks are of other types",
                field="shocks",
                value=", ".join(self.shocks.names),
                expected=", ".join(names),
            )
        if max(each.capacity for each in self.types) > _MOST_UNITS * self.unit:
            raise InputError(
                f"the capacities are multiples of nothing above {float(self.unit):g}",
                field="capacity",
                expected="capacities rounded to a coarser step",
            )

    @cached_property
    def unit(self) -> Fraction:
        """The unit of capacity: the largest that all capacities are multiples of."""
        return reduce(_common_unit, (Fraction(repr(float(e.capacity))) for e in self.types))

    @cached_property
    def units(self) -> Integers:
        """Shape (types,): capacity of a machine in units."""
        return np.array([int(Fraction(repr(float(e.capacity))) / self.unit) for e in self.types])

    @cached_property
    def prices(self) -> Floats:
        """Shape (types,): price per hour of a machine."""
        return np.array([each.price_per_hour for each in self.types])

    @property
    def weights(self) -> Floats:
        """Shape (states,): probability of each state of the markets; one if types are apart."""
        return np.ones(1) if self.shocks is None else self.shocks.weights

    @cached_property
    def up(self) -> Floats:
        """Shape (states, types): probability that a type is up, in each state."""
        if self.shocks is not None:
            return self.shocks.up
        return np.array([[each.availability for each in self.types]])

    @property
    def on_demand_price_per_unit_hour(self) -> float | None:
        """The cheapest unit of capacity that stays, where any is known."""
        known = [e.on_demand_price_per_unit_hour for e in self.types]
        return min((price for price in known if price is not None), default=None)

    def units_for(self, capacity: float) -> int:
        """The least number of units that make up a capacity."""
        return math.ceil(Fraction(repr(float(capacity))) / self.unit)


def _common_unit(first: Fraction, second: Fraction) -> Fraction:
    common = math.lcm(first.denominator, second.denominator)
    return Fraction(math.gcd(int(first * common), int(second * common)), common)
