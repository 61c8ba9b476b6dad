"""A user's own prices as a TOML or JSON document, with discounts and commitments."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Final

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.prices_document import catalogue_of_document
from foresail.cloud.prices_reading import PlainSource, Reference
from foresail.model.documents import decoded, parsed_json, parsed_toml
from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.source import LogFile

_EXAMPLE: Final = """\
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
            Example.of_text("own.toml", _EXAMPLE),
            Example.of_text("own.json", json.dumps(tomllib.loads(_EXAMPLE), default=str)),
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
