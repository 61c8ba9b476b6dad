"""A user's own prices as a TOML or JSON document, with discounts and commitments."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from foresail.cloud.prices import Catalogue
from foresail.cloud.prices_document import catalogue_of_document
from foresail.cloud.prices_reading import Reference
from foresail.model.errors import InputError
from foresail.model.registry import NoParameters, register
from foresail.traces.source import Source


@register("price_source", "document")
class PriceDocument:
    """A TOML or JSON file: headings, a list ``offer``, and discounts, commitments, rules.

    Headings: name, currency, date, provider, region, source. Each offer has the columns of the
    ``table`` source. Further: ``sustained_use.tiers``, ``customised`` (core_per_hour, gib_per_hour,
    markup), lists ``discount`` (share, instances, options) and ``commitment`` (instance, count,
    price_per_hour, until).
    """

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def recognises(self, reference: Reference) -> bool:
        """A file ending in ``.toml``, or one ending in ``.json`` that has offers."""
        if reference.path.suffix == ".toml":
            return bool(reference.start)
        return reference.path.suffix == ".json" and b'"offer"' in reference.start

    def catalogue(self, reference: Reference) -> Catalogue:
        """The prices."""
        return catalogue_of_document(reference.text, _parsed(reference))


def _parsed(reference: Reference) -> dict[str, Any]:
    text = b"".join(Source(reference.path).blocks())
    try:
        if reference.path.suffix == ".toml":
            return tomllib.loads(text.decode("utf-8"))
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON: {error.msg}", source=reference.text, line=error.lineno, column=error.colno
        ) from error
    except ValueError as error:  # tomllib's own, and what is not UTF-8
        raise InputError(f"not TOML: {error}", source=reference.text) from error
    if not isinstance(document, dict):
        raise InputError("not an object", source=reference.text, expected='{"offer": [...]}')
    return document
