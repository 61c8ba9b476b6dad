"""A plan of transient machines as a record, and the files of plans and types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices_reading import Reference, Row, table_rows
from foresail.cloud.transient.offers import MachineKind, TransientType
from foresail.model.distribution import Integers
from foresail.model.documents import json_of, toml_of
from foresail.model.errors import InputError, naming

VERSION: Final = 1
"""Version of the records of plans; a newer one is refused."""
_KIND: Final = "transient-capacity-plan"


@dataclass(frozen=True, slots=True)
class TransientRental:
    """Machines of one type."""

    type: TransientType
    count: int

    @property
    def capacity(self) -> float:
        """Total of all of them."""
        return self.count * self.type.capacity

    @property
    def price_per_hour(self) -> float:
        """Total of all of them."""
        return self.count * self.type.price_per_hour


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """Machines to rent so that a service has its capacity as often as it must."""

    capacity: float
    """Capacity that the service needs, in the unit of the types' capacity."""
    target: float
    """The share of time that it must have it."""
    extra_nines: float
    """Planned for beyond the target."""
    availability_shortfall: float
    """1 − the availability of the capacity in this pool, by the model."""
    rented: tuple[TransientRental, ...]
    """Types with at least one machine."""
    model: str
    """``independent``, or ``N states`` where types fail together."""
    on_demand_price_per_hour: float | None
    """Price of the same capacity on machines that stay; None where no price is known."""

    @property
    def availability(self) -> float:
        """Availability of the capacity in this pool, by the model."""
        return 1.0 - self.availability_shortfall

    @property
    def total_capacity(self) -> float:
        """Capacity when all machines are up."""
        return sum(each.capacity for each in self.rented)

    @property
    def price_per_hour(self) -> float:
        """Price of all machines."""
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
        """True if it is cheaper than the same capacity on demand, as far as is known."""
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

    Raises ``InputError`` if it is no plan, of a newer version, or a field is missing or cannot be;
    names the field.
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
            model=str(record["model"]),
            on_demand_price_per_hour=record["on_demand_price_per_hour"],
        )
    except KeyError as error:
        raise InputError("is missing", source=source, field=str(error.args[0])) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"is no plan: {error}", source=source) from error


_PRICES: Final = ("price_per_unit_hour", "price_per_hour")
_ON_DEMAND: Final = ("on_demand_price_per_unit_hour", "on_demand_price_per_hour")
_TYPE_FIELDS: Final = ("name", "capacity", "availability", *_PRICES, *_ON_DEMAND)
_KIND_FIELDS: Final = ("instance_type", "capacity", "price_per_hour", "on_demand_price_per_hour")


def read_types(path: Path) -> tuple[TransientType, ...]:
    """Types of a CSV file, or of the ``[[types]]`` tables of a TOML file.

    A type has ``name``, ``capacity``, ``availability`` and the price of a machine
    (``price_per_hour``) or of a unit of its capacity (``price_per_unit_hour``); on-demand prices,
    ``on_demand_…``, may be given likewise.

    Raises ``InputError`` if the file cannot be read, or a type lacks a field, has an unknown one, a
    value that cannot be, or another's name; names file, line (or number of the type), field and
    value.
    """
    types: dict[str, TransientType] = {}
    for row in _rows(path, "types"):
        known = row.record(_type)
        if known.name in types:
            raise row.error("a type is given twice", "name", known.name, "different names")
        types[known.name] = known
    if not types:
        raise InputError("there is no type in it", source=path, expected="at least one type")
    return tuple(types.values())


def read_kinds(path: Path) -> dict[str, MachineKind]:
    """Capacities (and prices) by instance type, of a CSV file or ``[[machines]]`` in TOML.

    Columns ``instance_type`` and ``capacity``; ``price_per_hour`` for markets whose histories have
    no prices; ``on_demand_price_per_hour`` to compare with.
    """
    kinds = {row.text("instance_type"): row.record(_kind) for row in _rows(path, "machines")}
    if not kinds:
        raise InputError("there is no machine in it", source=path, expected="at least one")
    return kinds


def kinds_of_markets(
    histories: Iterable[MarketHistory], by_type: Mapping[str, MachineKind], source: object
) -> dict[str, MachineKind]:
    """Kind of machine of each market: that of its type, at its price on demand.

    ``by_type`` are the kinds by instance type, which are from ``source``.

    Raises ``InputError`` if nothing is known of a market's type.
    """
    kinds = {}
    for each in histories:
        if each.instance_type not in by_type:
            raise InputError(
                "the capacity of an instance type is missing",
                source=source,
                field="instance_type",
                value=each.instance_type,
                expected="a file of machines with instance_type and capacity that has it",
            )
        kinds[each.market] = by_type[each.instance_type].or_on_demand(each.on_demand_per_hour)
    return kinds


def read_plan(path: Path) -> CapacityPlan:
    """The plan that ``foresail cloud transient --output`` wrote.

    Raises ``InputError`` if the file cannot be read, or holds no plan; names the field.
    """
    with naming(path):
        return from_record(json_of(path), path)


def _rows(path: Path, tables: str) -> Iterator[Row]:
    if not path.is_file():
        raise InputError("there is no such file", source=path)
    if path.suffix != ".toml":
        yield from table_rows(Reference(str(path)))
        return
    rows = toml_of(path).get(tables)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(
            "has no such tables", source=path, field=tables, expected=f"[[{tables}]] tables"
        )
    for number, row in enumerate(rows, 1):
        yield Row(str(path), None, row, f"{tables}[{number}]")


def _type(row: Row) -> TransientType:
    row.demand_known(_TYPE_FIELDS)
    capacity = _above_zero(row, "capacity")
    price = _per_unit(row, _PRICES, capacity)
    if price is None:
        raise row.error("is missing", _PRICES[0], expected=f"{_PRICES[0]}, or {_PRICES[1]}")
    return TransientType(
        row.text("name"),
        capacity,
        row.number("availability"),
        price,
        _per_unit(row, _ON_DEMAND, capacity),
    )


def _kind(row: Row) -> MachineKind:
    row.demand_known(_KIND_FIELDS)
    return MachineKind(
        _above_zero(row, "capacity"),
        row.price("on_demand_price_per_hour"),
        row.price("price_per_hour"),
    )


def _per_unit(row: Row, fields: tuple[str, str], capacity: float) -> float | None:
    unit, machine = (row.price(field) for field in fields)
    if unit is not None:
        return unit
    return None if machine is None else machine / capacity


def _above_zero(row: Row, field: str) -> float:
    value = row.number(field)
    if not 0.0 < value < float("inf"):
        raise row.error("not a capacity", field, value, "a number above 0")
    return value
