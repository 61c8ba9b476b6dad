"""A user's own price catalogue: the fields of an offer, whether in a table, TOML or JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from foresail.cloud.prices import (
    GIB,
    Commitment,
    Customised,
    Discount,
    InstanceType,
    Offer,
    Option,
    PriceCatalogue,
    Reserved,
    ScheduledReserved,
    SpotBlock,
    SustainedUse,
    Transient,
)
from foresail.cloud.prices_reading import Row
from foresail.model.errors import InputError

REQUIRED: Final = ("instance_type", "cores", "memory_gib", "on_demand")
_BLOCKS: Final = tuple(f"spot_block_{hours}h" for hours in range(1, 7))
FIELDS: Final = (
    *REQUIRED,
    *("provider", "region", "gpus", "currency", "date", "reserved_1y", "reserved_3y"),
    *("transient", "availability", "mean_lifetime_hours", "lifetime_cap_hours"),
    *(*_BLOCKS, "scheduled_peak", "scheduled_off_peak"),
)
"""What an offer may say; prices per hour of one instance."""
_THE_SAME: Final = ("currency", "date")
_SECTIONS: Final = ("offer", "sustained_use", "customised", "discount", "commitment")
_HEADINGS: Final = ("name", "currency", "date", "provider", "region", "source")


def catalogue_of_rows(
    source: str, rows: Iterable[Row], headings: Mapping[str, object] | None = None
) -> PriceCatalogue:
    """The catalogue that a table describes: columns ``FIELDS``, one row an offer.

    ``headings`` hold for all rows that do not say it themselves.

    Raises
    ------
    InputError
        If there is no row, a price is missing or not above 0, an availability is not within 0
        and 1, a type comes twice, currencies or dates differ between rows, or a column is not
        known; with its line.
    """
    shared = dict(headings or {})
    offers: dict[tuple[str, str], Offer] = {}
    for row in rows:
        row.demand_known(FIELDS)
        if "date" in row.values:
            _day(row, "date")
        for name in _THE_SAME:
            _keep_the_same(row, name, shared)
        offer = replace(row, values=shared | dict(row.values)).record(_offer)
        key = (offer.instance.name, offer.instance.region)
        if key in offers:
            problem = "an instance type is there twice in one region"
            raise row.error(problem, "instance_type", key[0], "one price for each")
        offers[key] = offer
    if not offers:
        raise InputError("there is no offer in it", source=source, expected="at least one")
    top = Row(source, None, shared)
    return PriceCatalogue(
        name=top.text("name", Path(source).stem),
        valid_on=_day(top, "date"),
        currency=top.text("currency"),
        offers=tuple(offers.values()),
        source=top.text("source", source),
    )


def catalogue_of_document(source: str, document: Mapping[str, object]) -> PriceCatalogue:
    """The catalogue that a TOML or JSON document describes.

    Headings ``name``, ``currency``, ``date``, ``provider``, ``region``, ``source``; a list
    ``offer`` of tables with ``FIELDS``; tables ``sustained_use`` (``tiers``) and ``customised``
    (``core_per_hour``, ``gib_per_hour``, ``markup``); lists ``discount`` (``share``,
    ``instances``, ``options``) and ``commitment`` (``instance``, ``count``, ``price_per_hour``,
    ``until``).

    Raises
    ------
    InputError
        As ``catalogue_of_rows``; the field says which offer, discount or commitment.
    """
    top = Row(source, None, document)
    top.demand_known((*_HEADINGS, *_SECTIONS))
    headings = {name: document[name] for name in _HEADINGS if name in document}
    sustained = [row.record(_sustained_use) for row in _tables(top, "sustained_use")]
    customised = [row.record(_customised) for row in _tables(top, "customised")]
    return replace(
        catalogue_of_rows(source, _tables(top, "offer"), headings),
        sustained_use=next(iter(sustained), None),
        customised=next(iter(customised), None),
        discounts=tuple(row.record(_discount) for row in _tables(top, "discount")),
        commitments=tuple(row.record(_commitment) for row in _tables(top, "commitment")),
    )


def _keep_the_same(row: Row, name: str, shared: dict[str, object]) -> None:
    value = row.values.get(name)
    if value is None:
        return
    if str(shared.setdefault(name, value)) != str(value):
        problem = "prices in mixed currencies" if name == "currency" else "prices of several days"
        raise row.error(problem, name, value, f"{shared[name]}, as before")


def _offer(row: Row) -> Offer:
    for name in REQUIRED:
        row.text(name)
    instance = InstanceType(
        row.text("instance_type"),
        row.text("provider", ""),
        row.text("region", ""),
        row.number("cores"),
        row.number("memory_gib") * GIB,
        row.optional("gpus") or 0.0,
    )
    return Offer(
        instance,
        row.number("on_demand"),
        tuple(
            Reserved(years, price)
            for years in (1, 3)
            if (price := row.price(f"reserved_{years}y")) is not None
        ),
        _transient(row),
        _spot_block(row),
        _scheduled(row),
    )


def _transient(row: Row) -> Transient | None:
    price = row.price("transient")
    if price is None:
        return None
    cap = row.optional("lifetime_cap_hours")
    return Transient(
        price,
        row.optional("availability"),
        row.optional("mean_lifetime_hours"),
        math.inf if cap is None else cap,
    )


def _spot_block(row: Row) -> SpotBlock | None:
    prices = [row.price(name) for name in _BLOCKS]
    given = [price for price in prices if price is not None]
    if not given:
        return None
    if None in prices[: len(given)]:
        missing = _BLOCKS[prices.index(None)]
        raise row.error("is missing", missing, expected="prices of all shorter blocks too")
    return SpotBlock(tuple(given))


def _scheduled(row: Row) -> ScheduledReserved | None:
    if row.price("scheduled_peak") is None:
        return None
    return ScheduledReserved(row.number("scheduled_peak"), row.number("scheduled_off_peak"))


def _sustained_use(row: Row) -> SustainedUse:
    row.demand_known(("tiers",))
    tiers = row.values.get("tiers")
    if not isinstance(tiers, list) or not all(isinstance(t, int | float) for t in tiers):
        raise row.error("not a list of shares", "tiers", tiers, "such as [1.0, 0.8, 0.6, 0.4]")
    return SustainedUse(tuple(tiers))


def _customised(row: Row) -> Customised:
    row.demand_known(("core_per_hour", "gib_per_hour", "markup"))
    markup = row.optional("markup")
    return Customised(
        row.number("core_per_hour"), row.number("gib_per_hour"), 1.05 if markup is None else markup
    )


def _discount(row: Row) -> Discount:
    row.demand_known(("share", "instances", "options"))
    options = row.values.get("options", [])
    known = [option.value for option in Option]
    if not isinstance(options, list) or not all(option in known for option in options):
        raise row.error("not a list of options", "options", options, ", ".join(known))
    return Discount(row.number("share"), row.text("instances", "*"), tuple(map(Option, options)))


def _commitment(row: Row) -> Commitment:
    row.demand_known(("instance", "count", "price_per_hour", "until"))
    count = row.number("count")
    if not count.is_integer():
        raise row.error("not a whole number", "count", count, "how many instances")
    return Commitment(
        row.text("instance"),
        int(count),
        row.optional("price_per_hour") or 0.0,
        _day(row, "until") if "until" in row.values else None,
    )


def _day(row: Row, name: str) -> date:
    value = row.values.get(name)
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(row.text(name))
    except ValueError:
        raise row.error("not a day", name, value, "YYYY-MM-DD") from None


def _tables(top: Row, name: str) -> Iterator[Row]:
    """The tables of a section: a list of them, or one alone."""
    section = top.values.get(name, [])
    for number, table in enumerate(section if isinstance(section, list) else [section], start=1):
        if not isinstance(table, dict):
            raise top.error("not a table", name, table, "names and values")
        yield Row(top.source, None, table, place=f"{name} {number}")
