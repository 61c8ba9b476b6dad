"""Prices of a user's own: a table with commas, a TOML or JSON document, or an address of one."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from foresail.cloud import prices, prices_reading
from foresail.cloud.histories import MarketHistory
from foresail.model.documents import decoded, parsed_json, parsed_toml
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.model.short_form import expected_by
from foresail.traces.fetching import Log, fetch
from foresail.traces.source import LogFile

REQUIRED: Final = ("instance_type", "cores", "memory_gib", "on_demand")
FIELDS: Final = (
    *REQUIRED,
    *("provider", "region", "gpus", "currency", "date", "reserved_1y", "reserved_3y"),
    *("transient", "availability", "mean_lifetime_hours", "lifetime_cap_hours"),
)
"""Fields that an offer may have; prices per hour of one instance."""
_THE_SAME: Final = ("currency", "date")
Declared = TypeVar(
    "Declared", prices.SustainedUse, prices.Customised, prices.Discount, prices.Commitment
)

_SECTIONS: Final = ("offer", "sustained_use", "customised", "discount", "commitment")
_HEADINGS: Final = ("name", "currency", "date", "provider", "region", "source")


def _catalogue_of_rows(
    source: str, rows: Iterable[prices_reading.Row], headings: Mapping[str, object] | None = None
) -> prices.PriceCatalogue:
    """The catalogue that a table describes: columns ``FIELDS``, one row an offer.

    ``headings`` hold for all rows that do not say it themselves.

    Raises ``InputError`` if there is no row, a price is missing or not above 0, an availability is
    not within 0 and 1, a type comes twice, currencies or dates differ between rows, or a column is
    not known; with its line.
    """
    shared = dict(headings or {})
    offers: dict[tuple[str, str], prices.Offer] = {}
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
    top = prices_reading.Row(source, None, shared)
    return prices.PriceCatalogue(
        name=top.text("name", Path(source).stem),
        valid_on=_day(top, "date"),
        currency=top.text("currency"),
        offers=tuple(offers.values()),
        source=top.text("source", source),
    )


def _catalogue_of_document(source: str, document: Mapping[str, object]) -> prices.PriceCatalogue:
    """The catalogue that a TOML or JSON document describes.

    Headings ``name``, ``currency``, ``date``, ``provider``, ``region``, ``source``; a list
    ``offer`` of tables with ``FIELDS``; tables ``sustained_use`` and ``customised``, lists
    ``discount`` and ``commitment``, with the fields of their records.

    Raises ``InputError`` as ``_catalogue_of_rows``; the field says which offer, discount or
    commitment.
    """
    top = prices_reading.Row(source, None, document)
    top.demand_known((*_HEADINGS, *_SECTIONS))
    headings = {name: document[name] for name in _HEADINGS if name in document}
    return replace(
        _catalogue_of_rows(source, _tables(top, "offer"), headings),
        sustained_use=next(iter(_records(top, "sustained_use", prices.SustainedUse)), None),
        customised=next(iter(_records(top, "customised", prices.Customised)), None),
        discounts=_records(top, "discount", prices.Discount),
        commitments=_records(top, "commitment", prices.Commitment),
    )


def _keep_the_same(row: prices_reading.Row, name: str, shared: dict[str, object]) -> None:
    value = row.values.get(name)
    if value is None:
        return
    if str(shared.setdefault(name, value)) != str(value):
        problem = "prices in mixed currencies" if name == "currency" else "prices of several days"
        raise row.error(problem, name, value, f"{shared[name]}, as before")


def _offer(row: prices_reading.Row) -> prices.Offer:
    for name in REQUIRED:
        row.text(name)
    instance = prices.InstanceType(
        row.text("instance_type"),
        row.text("provider", ""),
        row.text("region", ""),
        row.number("cores"),
        row.number("memory_gib") * prices.GIB,
        row.optional("gpus") or 0.0,
    )
    return prices.Offer(
        instance,
        row.number("on_demand"),
        tuple(
            prices.Reserved(years, price)
            for years in (1, 3)
            if (price := row.price(f"reserved_{years}y")) is not None
        ),
        _transient(row),
    )


def _transient(row: prices_reading.Row) -> prices.Transient | None:
    price = row.price("transient")
    if price is None:
        return None
    cap = row.optional("lifetime_cap_hours")
    return prices.Transient(
        price,
        row.optional("availability"),
        row.optional("mean_lifetime_hours"),
        math.inf if cap is None else cap,
    )


def _day(row: prices_reading.Row, name: str) -> date:
    value = row.values.get(name)
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(row.text(name))
    except ValueError:
        raise row.error("not a day", name, value, "YYYY-MM-DD") from None


def _records(top: prices_reading.Row, section: str, kind: type[Declared]) -> tuple[Declared, ...]:
    """The records that a section declares: fields, their types and defaults are the kind's."""

    def declared(row: prices_reading.Row) -> Declared:
        row.demand_known([each.name for each in fields(kind)])
        given = {name: value for name, value in row.values.items() if value is not None}
        try:
            return TypeAdapter(kind).validate_json(json.dumps(given, default=str), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            problem = "is missing" if first["type"] == "missing" else "not usable here"
            raise row.error(problem, name, given.get(name), expected_by(first)) from error

    return tuple(row.record(declared) for row in _tables(top, section))


def _tables(top: prices_reading.Row, name: str) -> Iterator[prices_reading.Row]:
    """The tables of a section: a list of them, or one alone."""
    section = top.values.get(name, [])
    for number, table in enumerate(section if isinstance(section, list) else [section], start=1):
        if not isinstance(table, dict):
            raise top.error("not a table", name, table, "names and values")
        yield prices_reading.Row(top.source, None, table, place=f"{name} {number}")


@register("price_source", "document")
class PriceDocument(prices_reading.PriceSource):
    """A TOML or JSON file: headings, a list ``offer``, and discounts, commitments, rules.

    Headings: name, currency, date, provider, region, source. Each offer has the columns of the
    ``table`` source. Further: ``sustained_use.tiers``, ``customised`` (core_per_hour, gib_per_hour,
    markup), lists ``discount`` (share, instances, options) and ``commitment`` (instance, count,
    price_per_hour, until).
    """

    def recognises(self, reference: prices_reading.Reference) -> bool:
        """A file ending in ``.toml``, or one ending in ``.json`` that has offers."""
        if reference.path.suffix == ".toml":
            return bool(reference.start)
        return reference.path.suffix == ".json" and b'"offer"' in reference.start

    def catalogue(self, reference: prices_reading.Reference) -> prices.PriceCatalogue:
        """The prices."""
        return _catalogue_of_document(reference.text, _parsed(reference))


def _parsed(reference: prices_reading.Reference) -> dict[str, Any]:
    text = decoded(b"".join(LogFile(reference.path).blocks()), reference.text)
    if reference.path.suffix == ".toml":
        return parsed_toml(text, reference.text)
    document = parsed_json(text, reference.text)
    if not isinstance(document, dict):
        raise InputError("not an object", source=reference.text, expected='{"offer": [...]}')
    return document


@register("price_source", "table")
class PriceTable(prices_reading.PriceSource):
    """A CSV with one row per instance type.

    Columns instance_type, cores, memory_gib, on_demand, currency and date; as needed provider,
    region, gpus, reserved_1y, reserved_3y, transient, availability, mean_lifetime_hours,
    lifetime_cap_hours. Prices are per hour of one instance; an empty field means that the option is
    not offered.
    """

    def recognises(self, reference: prices_reading.Reference) -> bool:
        """The required columns, or most of them in a file ending in ``.csv``."""
        there = set(reference.columns)
        return set(REQUIRED) <= there or (
            "instance_type" in there and "on_demand" in there and ".csv" in reference.path.name
        )

    def catalogue(self, reference: prices_reading.Reference) -> prices.PriceCatalogue:
        """The prices."""
        return _catalogue_of_rows(reference.text, prices_reading.table_rows(reference))


_KEPT_SECONDS: Final = 7.0 * 86_400.0
"""Age at which a kept file is fetched anew."""
_SCHEMES = ("http://", "https://")


@register("price_source", "web")
class WebPrices(prices_reading.PriceSource):
    """An address (http or https) of a file in one of the other layouts.

    Which addresses have prices is the user's to say. If a new copy cannot be had, it is an error:
    old prices are never taken for new ones.
    """

    def recognises(self, reference: prices_reading.Reference) -> bool:
        """Demand that it begins with ``http://`` or ``https://``."""
        return reference.text.startswith(_SCHEMES)

    def catalogue(self, reference: prices_reading.Reference) -> prices.PriceCatalogue:
        """The prices, fetched or kept."""
        return prices_reading.load_prices(str(self._file(reference.text)))

    def histories(self, reference: prices_reading.Reference) -> tuple[MarketHistory, ...]:
        """The market histories, fetched or kept."""
        return prices_reading.load_histories(str(self._file(reference.text)))

    def _file(self, address: str) -> Path:
        if not address.startswith(_SCHEMES):
            raise InputError("not an address", source=address, expected=" or ".join(_SCHEMES))
        name = address.partition("?")[0].rstrip("/").rpartition("/")[2]
        # Two addresses may end in the same name.
        place = hashlib.sha256(address.encode()).hexdigest()[:16]
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        folder = Path(base) / "foresail" / "prices" / place
        kept = folder / name
        if kept.exists() and time.time() - kept.stat().st_mtime <= _KEPT_SECONDS:
            return kept
        fresh = folder / "fresh"
        fetched = fetch(Log(name=name, path=name, system="prices"), fresh, address)
        fetched.path.replace(kept)
        fresh.rmdir()
        return kept
