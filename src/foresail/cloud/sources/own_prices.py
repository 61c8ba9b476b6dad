"""Prices of a user's own: a table with commas, a TOML or JSON document, or an address of one."""

from __future__ import annotations

import hashlib
import json
import os
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.prices_document import REQUIRED, catalogue_of_document, catalogue_of_rows
from foresail.cloud.prices_reading import (
    PlainSource,
    Reference,
    load_histories,
    load_prices,
    table_rows,
)
from foresail.model.documents import decoded, parsed_json, parsed_toml
from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.fetching import Log, fetch
from foresail.traces.source import LogFile

_DOCUMENT_EXAMPLE: Final = """\
currency = "EUR"
date = 2026-03-01
provider = "own"

[[offer]]
instance_type = "c4"
cores = 4
memory_gib = 16
on_demand = 0.2
transient = 0.06
spot_block_1h = 0.1
scheduled_peak = 0.18
scheduled_off_peak = 0.16

[sustained_use]
tiers = [1.0, 0.8]

[customised]
core_per_hour = 0.03
gib_per_hour = 0.004

[[discount]]
share = 0.1
instances = "c*"
options = ["on-demand"]

[[commitment]]
instance = "c4"
count = 2
price_per_hour = 0.1
until = 2027-01-01
"""


@register("price_source", "document")
class PriceDocument(PlainSource):
    """A TOML or JSON file: headings, a list ``offer``, and discounts, commitments, rules.

    Headings: name, currency, date, provider, region, source. Each offer has the columns of the
    ``table`` source. Further: ``sustained_use.tiers``, ``customised`` (core_per_hour, gib_per_hour,
    markup), lists ``discount`` (share, instances, options) and ``commitment`` (instance, count,
    price_per_hour, until).
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (
            Example.of_text("own.toml", _DOCUMENT_EXAMPLE),
            Example.of_text("own.json", json.dumps(tomllib.loads(_DOCUMENT_EXAMPLE), default=str)),
        )

    def recognises(self, reference: Reference) -> bool:
        """A file ending in ``.toml``, or one ending in ``.json`` that has offers."""
        if reference.path.suffix == ".toml":
            return bool(reference.start)
        return reference.path.suffix == ".json" and b'"offer"' in reference.start

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices."""
        return catalogue_of_document(reference.text, _parsed(reference))


def _parsed(reference: Reference) -> dict[str, Any]:
    text = decoded(b"".join(LogFile(reference.path).blocks()), reference.text)
    if reference.path.suffix == ".toml":
        return parsed_toml(text, reference.text)
    document = parsed_json(text, reference.text)
    if not isinstance(document, dict):
        raise InputError("not an object", source=reference.text, expected='{"offer": [...]}')
    return document


_TABLE_EXAMPLE: Final = """\
instance_type,cores,memory_gib,on_demand,reserved_1y,transient,availability,currency,date
c4,4,16,0.2,0.12,0.06,0.9,EUR,2026-03-01
c8,8,32,0.4,0.24,,,EUR,2026-03-01
"""


@register("price_source", "table")
class PriceTable(PlainSource):
    """A CSV with one row per instance type.

    Columns instance_type, cores, memory_gib, on_demand, currency and date; as needed provider,
    region, gpus, reserved_1y, reserved_3y, transient, availability, mean_lifetime_hours,
    lifetime_cap_hours, spot_block_1h to spot_block_6h, scheduled_peak, scheduled_off_peak. Prices
    are per hour of one instance; an empty field means that the option is not offered.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("own.csv", _TABLE_EXAMPLE),)

    def recognises(self, reference: Reference) -> bool:
        """The required columns, or most of them in a file ending in ``.csv``."""
        there = set(reference.columns)
        return set(REQUIRED) <= there or (
            "instance_type" in there and "on_demand" in there and ".csv" in reference.path.name
        )

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices."""
        return catalogue_of_rows(reference.text, table_rows(reference))


_DAY_SECONDS = 86_400.0
_SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class WebParameters:
    """Parameters of ``web``."""

    folder: str = ""
    """Where what is fetched is kept; by default the user's cache folder."""
    keep_days: float = 7.0
    """Fetch anew when the kept file is older than this."""

    def __post_init__(self) -> None:
        if not self.keep_days >= 0.0:
            raise InputError("not an age", field="keep_days", value=self.keep_days, expected=">= 0")


@register("price_source", "web", parameters=WebParameters)
class WebPrices:
    """An address (http or https) of a file in one of the other layouts.

    Which addresses have prices is the user's to say. If a new copy cannot be had, it is an error:
    old prices are never taken for new ones.
    """

    def __init__(self, parameters: WebParameters) -> None:
        self._parameters = parameters

    def recognises(self, reference: Reference) -> bool:
        """It begins with ``http://`` or ``https://``."""
        return reference.text.startswith(_SCHEMES)

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices, fetched or kept."""
        return load_prices(str(self._file(reference.text)))

    def histories(self, reference: Reference) -> tuple[MarketHistory, ...]:
        """The market histories, fetched or kept."""
        return load_histories(str(self._file(reference.text)))

    def _file(self, address: str) -> Path:
        if not address.startswith(_SCHEMES):
            raise InputError("not an address", source=address, expected=" or ".join(_SCHEMES))
        name = address.partition("?")[0].rstrip("/").rpartition("/")[2]
        # Two addresses may end in the same name.
        place = hashlib.sha256(address.encode()).hexdigest()[:16]
        folder = _folder(self._parameters.folder) / place
        kept = folder / name
        age_days = self._parameters.keep_days * _DAY_SECONDS
        if kept.exists() and time.time() - kept.stat().st_mtime <= age_days:
            return kept
        fresh = folder / "fresh"
        fetched = fetch(Log(name=name, path=name, system="prices"), fresh, address)
        fetched.path.replace(kept)
        fresh.rmdir()
        return kept


def _folder(chosen: str) -> Path:
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "foresail" / "prices"
