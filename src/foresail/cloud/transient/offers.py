"""Transient types on offer: capacity, price and availability."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.prices import checked_price
from foresail.model.errors import InputError

_MOST_UNITS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class MachineKind:
    """A machine that a market rents: its capacity, and its price on demand (per hour)."""

    capacity: float
    on_demand_per_hour: float | None = None
    price_per_hour: float | None = None
    """Of the transient machine, where its history has no prices."""

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
    """Of one machine, above 0, in whatever unit all types share (cores, ECU, requests a second)."""
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
    """Types that can be rented, each up or down by itself.

    Raises ``InputError`` if there is no type, a name comes twice, or the capacities have so little
    in common that they cannot be counted.
    """

    types: tuple[TransientType, ...]
    """At least one, with different names."""

    def __post_init__(self) -> None:
        names = [each.name for each in self.types]
        if not names:
            raise InputError("there is no type to rent", expected="at least one transient type")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                "a type is given twice", field="name", value=twice, expected="different names"
            )
        if max(each.capacity for each in self.types) > _MOST_UNITS * self.grain:
            raise InputError(
                f"the capacities are multiples of nothing above {float(self.grain):g}",
                field="capacity",
                expected="capacities rounded to a coarser step",
            )

    @cached_property
    def grain(self) -> Fraction:
        """Largest capacity that all capacities are multiples of."""
        return reduce(_common_grain, (Fraction(repr(float(e.capacity))) for e in self.types))

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Shape (types,): capacity of a machine, in grains."""
        return np.array([int(Fraction(repr(float(e.capacity))) / self.grain) for e in self.types])

    @cached_property
    def prices(self) -> NDArray[np.float64]:
        """Shape (types,): price per hour of a machine."""
        return np.array([each.price_per_hour for each in self.types])

    @cached_property
    def up(self) -> NDArray[np.float64]:
        """Shape (types,): probability that a type is up."""
        return np.array([each.availability for each in self.types])

    @property
    def on_demand_price_per_unit_hour(self) -> float | None:
        """The cheapest unit of capacity that stays, where any is known."""
        known = [e.on_demand_price_per_unit_hour for e in self.types]
        return min((price for price in known if price is not None), default=None)

    def grains(self, capacity: float) -> int:
        """The least number of grains that make up a capacity."""
        return math.ceil(Fraction(repr(float(capacity))) / self.grain)


def _common_grain(first: Fraction, second: Fraction) -> Fraction:
    common = math.lcm(first.denominator, second.denominator)
    return Fraction(math.gcd(int(first * common), int(second * common)), common)
