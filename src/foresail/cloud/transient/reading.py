"""Files of transient types and of the machines that markets rent (CSV or TOML); and of plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices_reading import Reference, Row, table_rows
from foresail.cloud.transient.estimating import MachineKind
from foresail.cloud.transient.offers import TransientType
from foresail.cloud.transient.plan import CapacityPlan, from_record
from foresail.model.documents import json_of, toml_of
from foresail.model.errors import InputError, naming

_PRICES: Final = ("price_per_unit_hour", "price_per_hour")
_ON_DEMAND: Final = ("on_demand_price_per_unit_hour", "on_demand_price_per_hour")
_TYPE_FIELDS: Final = ("name", "capacity", "availability", *_PRICES, *_ON_DEMAND)
_KIND_FIELDS: Final = (
    "instance_type",
    "capacity",
    "price_per_hour",
    "on_demand_price_per_hour",
)


def read_types(path: Path) -> tuple[TransientType, ...]:
    """Types of a CSV file, or of the ``[[types]]`` tables of a TOML file.

    A type has ``name``, ``capacity``, ``availability`` and the price of a machine
    (``price_per_hour``) or of a unit of its capacity (``price_per_unit_hour``); on-demand prices,
    ``on_demand_…``, may be given likewise.

    Raises
    ------
    InputError
        If the file cannot be read, or a type lacks a field, has an unknown one, a value that
        cannot be, or another's name; names file, line (or number of the type), field and value.
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

    Raises
    ------
    InputError
        As ``read_types``.
    """
    kinds = {row.text("instance_type"): row.record(_kind) for row in _rows(path, "machines")}
    if not kinds:
        raise InputError("there is no machine in it", source=path, expected="at least one")
    return kinds


def kinds_of_markets(
    histories: Iterable[MarketHistory], by_type: Mapping[str, MachineKind], source: object
) -> dict[str, MachineKind]:
    """What each market rents, by market: the kind of its type, at its price on demand.

    ``by_type`` are the kinds by instance type, which are from ``source``.

    Raises
    ------
    InputError
        If nothing is known of a market's type.
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

    Raises
    ------
    InputError
        If the file cannot be read, or holds no plan; names the field.
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
