"""The record of a plan: what to rent for a service, for people to read and machines to apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from foresail.cloud.transient.offers import TransientType
from foresail.model.arrays import Integers
from foresail.model.errors import InputError

VERSION: Final = 1
"""Of the records of plans; a newer one is refused."""
_KIND: Final = "transient-capacity-plan"


@dataclass(frozen=True, slots=True)
class TransientRental:
    """Machines of one type."""

    type: TransientType
    count: int

    @property
    def capacity(self) -> float:
        """Of all of them."""
        return self.count * self.type.capacity

    @property
    def price_per_hour(self) -> float:
        """Of all of them."""
        return self.count * self.type.price_per_hour


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """What to rent so that a service has its capacity as often as it must."""

    capacity: float
    """What the service needs, in the unit of the types' capacity."""
    target: float
    """The share of time that it must have it."""
    extra_nines: float
    """Planned for beyond the target."""
    availability_shortfall: float
    """1 − the availability of the capacity in this pool, by the model."""
    rented: tuple[TransientRental, ...]
    """Types with at least one machine."""
    method: str
    """How it was chosen."""
    model: str
    """``independent``, or ``N states`` where types fail together."""
    on_demand_price_per_hour: float | None
    """Of the same capacity on machines that stay; None where no price is known."""

    @property
    def availability(self) -> float:
        """Of the capacity in this pool, by the model."""
        return 1.0 - self.availability_shortfall

    @property
    def total_capacity(self) -> float:
        """When all machines are up."""
        return sum(each.capacity for each in self.rented)

    @property
    def price_per_hour(self) -> float:
        """Of all machines."""
        return sum(each.price_per_hour for each in self.rented)

    @property
    def surplus_share(self) -> float:
        """Capacity beyond what the service needs when all machines are up, over what it needs."""
        return self.total_capacity / self.capacity - 1.0

    @property
    def on_demand_share(self) -> float | None:
        """Price over that of the same capacity on demand."""
        on_demand = self.on_demand_price_per_hour
        return None if on_demand is None else self.price_per_hour / on_demand

    @property
    def is_worth_it(self) -> bool:
        """Whether it is cheaper than the same capacity on demand, as far as is known."""
        return self.on_demand_share is None or self.on_demand_share < 1.0

    def to_record(self) -> dict[str, Any]:
        """Plain values, ready for JSON; ``from_record`` makes the same plan of them."""
        return {
            "kind": _KIND,
            "version": VERSION,
            "capacity": self.capacity,
            "target_availability": self.target,
            "extra_nines": self.extra_nines,
            "availability": self.availability,
            "availability_shortfall": self.availability_shortfall,
            "method": self.method,
            "model": self.model,
            "total_capacity": self.total_capacity,
            "surplus_share": self.surplus_share,
            "price_per_hour": self.price_per_hour,
            "on_demand_price_per_hour": self.on_demand_price_per_hour,
            "on_demand_share": self.on_demand_share,
            "is_worth_it": self.is_worth_it,
            "machines": [
                {
                    "type": each.type.name,
                    "count": each.count,
                    "capacity": each.type.capacity,
                    "availability": each.type.availability,
                    "price_per_unit_hour": each.type.price_per_unit_hour,
                    "on_demand_price_per_unit_hour": each.type.on_demand_price_per_unit_hour,
                }
                for each in self.rented
            ],
        }


def rented_of(planned: CapacityPlan, names: Iterable[str]) -> Integers:
    """Machines that a plan rents of each of some types, shape (types,)."""
    rented = {each.type.name: each.count for each in planned.rented}
    return np.array([rented.get(name, 0) for name in names], dtype=np.int64)


def from_record(record: object, source: object | None = None) -> CapacityPlan:
    """The plan that ``CapacityPlan.to_record`` described.

    ``source`` is where it came from, for the error.

    Raises
    ------
    InputError
        If it is no plan, of a newer version, or a field is missing or cannot be; names the field.
    """
    if not isinstance(record, Mapping) or record.get("kind") != _KIND:
        found = record.get("kind") if isinstance(record, Mapping) else record
        raise InputError("is no plan", source=source, field="kind", value=found, expected=_KIND)
    if record.get("version") != VERSION:
        raise InputError(
            "is not readable here",
            source=source,
            field="version",
            value=record.get("version"),
            expected=f"version {VERSION}",
        )
    try:
        rented = tuple(
            TransientRental(
                TransientType(
                    str(each["type"]),
                    float(each["capacity"]),
                    float(each["availability"]),
                    float(each["price_per_unit_hour"]),
                    each["on_demand_price_per_unit_hour"],
                ),
                int(each["count"]),
            )
            for each in record["machines"]
        )
        return CapacityPlan(
            capacity=float(record["capacity"]),
            target=float(record["target_availability"]),
            extra_nines=float(record["extra_nines"]),
            availability_shortfall=float(record["availability_shortfall"]),
            rented=rented,
            method=str(record["method"]),
            model=str(record["model"]),
            on_demand_price_per_hour=record["on_demand_price_per_hour"],
        )
    except KeyError as error:
        raise InputError("is missing", source=source, field=str(error.args[0])) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"is no plan: {error}", source=source) from error
