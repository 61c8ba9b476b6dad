"""Prices behind an address: fetched once, kept, and read as the file that they are."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.prices_reading import Reference, load_histories, load_prices
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.catalogue import Log
from foresail.traces.fetching import fetch

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
