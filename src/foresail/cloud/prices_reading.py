"""Reading a price catalogue or market histories behind a name, a file or an address.

A source is one file of ``foresail.cloud.sources`` with ``@register("price_source", name)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, TypeVar

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices import PriceCatalogue, checked_price
from foresail.model.documents import csv_rows, decoded
from foresail.model.errors import InputError, UnknownNameError, naming
from foresail.model.registry import NoParameters, entries, find
from foresail.traces.source import LogFile, head

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that says where prices are."""

    text: str
    """A built-in catalogue's name, a path, or an address."""
    start: bytes = b""
    """The first bytes of the file, decompressed; empty if it is none."""

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.text)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names in the first line, as of a table with commas."""
        line = self.start.decode("utf-8-sig", errors="replace").partition("\n")[0]
        return tuple(name.strip() for name in line.split(","))


class PriceSource:
    """Base of sources of prices: one kind of place, or one layout of files.

    A source overrides ``recognises``, and ``catalogue``, ``histories`` or both; they raise
    ``InputError`` if the prices cannot be used, and say where.
    """

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def recognises(self, reference: Reference) -> bool:
        """True if the reference is one of this source's."""
        raise NotImplementedError

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """Read the prices."""
        raise NotImplementedError

    def histories(self, reference: Reference) -> tuple[MarketHistory, ...]:
        """Read the markets, by name."""
        raise NotImplementedError


class PublishedPrices(PriceSource):
    """Base of built-in catalogues, which are known by their names."""

    PRICES: ClassVar[PriceCatalogue]

    def recognises(self, reference: Reference) -> bool:
        """Its name."""
        return reference.text == self.PRICES.name

    def catalogue(self, reference: Reference) -> PriceCatalogue:
        """The prices as a catalogue."""
        del reference
        return self.PRICES


def load_prices(reference: str, source: str | None = None) -> PriceCatalogue:
    """The price catalogue behind a built-in name, a file or an address.

    ``source`` is the name of the price source; by default the one that recognises the reference.

    Raises ``InputError`` if no source recognises it, or its prices cannot be used;
    ``UnknownNameError`` if there is no such price source, or no built-in catalogue of the name.
    """
    known, found = _chosen(reference, source, "catalogue", "prices")
    with naming(reference):
        catalogue = found.catalogue(known)
        if not isinstance(catalogue, PriceCatalogue):
            raise TypeError(f"{catalogue!r} is no PriceCatalogue")
        return catalogue


def load_histories(reference: str, source: str | None = None) -> tuple[MarketHistory, ...]:
    """The market histories in a file or behind an address.

    ``source`` as for ``load_prices``.

    Raises ``InputError`` if no source recognises it, or its histories cannot be used;
    ``UnknownNameError`` if there is no such price source.
    """
    known, found = _chosen(reference, source, "histories", "market histories")
    with naming(reference):
        return found.histories(known)


def _chosen(text: str, source: str | None, gives: str, what: str) -> tuple[Reference, PriceSource]:
    """The source of this name, else the first that recognises the reference and gives that."""
    path = Path(text)
    known = Reference(text, head(path) if path.is_file() else b"")
    for entry in entries("price_source") if source is None else [find("price_source", source)]:
        candidate = entry.build(entry.parameters())
        inherited = getattr(PriceSource, gives)
        if getattr(type(candidate), gives, inherited) is inherited:
            continue
        if source or candidate.recognises(known):
            return known, candidate
    raise _unrecognised(known, what)


def _unrecognised(reference: Reference, what: str) -> Exception:
    if reference.path.is_dir():
        raise InputError("a folder", source=reference.text, expected=f"a file of {what}")
    names = [entry.name for entry in entries("price_source")]
    if reference.start:
        return InputError(
            f"no price source recognises this file as {what}",
            source=reference.text,
            value=reference.start[:60].decode("utf-8", errors="replace").partition("\n")[0],
            expected="a layout of " + ", ".join(names),
        )
    return UnknownNameError("catalogue (and no such file)", reference.text, names)


@dataclass(frozen=True)
class Row:
    """One line of a table of prices, whose errors say where it is from.

    A column that is missing or cannot be used is an ``InputError`` with file, line and field.
    """

    source: str
    line: int | None
    """The file, and the line within it (None for documents without lines)."""
    values: Mapping[str, object]
    """By column; what was left empty is not in it."""
    place: str = ""
    """Place in a document without lines: put before a field's name in errors."""

    def text(self, name: str, default: str | None = None) -> str:
        """A column as text."""
        if name not in self.values:
            if default is None:
                raise self.error("is missing", name, expected="a value")
            return default
        return str(self.values[name])

    def number(self, name: str) -> float:
        """A column as a number."""
        number = self.optional(name)
        if number is None:
            raise self.error("is missing", name, expected="a number")
        return number

    def optional(self, name: str) -> float | None:
        """A column as a number, None where it is empty."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise self.error("not a number", name, value, "a number")
        try:
            return float(value)
        except (ValueError, OverflowError):  # the latter of whole numbers beyond all others
            raise self.error("not a number", name, value, "a number") from None

    def price(self, name: str) -> float | None:
        """A column as a price, None where it is empty."""
        value = self.optional(name)
        return None if value is None else self.record(lambda _: checked_price(value, name))

    def error(
        self, problem: str, field: str, value: object = None, expected: str | None = None
    ) -> InputError:
        """An error about one field of this row."""
        return InputError(
            problem,
            source=self.source,
            line=self.line,
            field=f"{self.place}.{field}" if self.place else field,
            value=value,
            expected=expected,
        )

    def record(self, build: Callable[[Row], Record]) -> Record:
        """Build a record of this row; an error of the record says where the row is from."""
        try:
            return build(self)
        except InputError as error:
            if error.line is not None or error.source == self.source:
                raise
            raise self.error(
                error.problem, error.field or "", error.value, error.expected
            ) from error

    def demand_known(self, names: Collection[str]) -> None:
        """Refuse a column that is not one of these."""
        for name in self.values:
            if name not in names:
                near = get_close_matches(name, names, n=2) or sorted(names)
                raise self.error("no such field", name, expected=" or ".join(near))


def table_rows(reference: Reference) -> Iterator[Row]:
    """The rows of a table with commas and a header line; empty lines are skipped.

    Raises ``InputError`` if the file cannot be read, is not text, or a row has another number of
    fields.
    """
    content = b"".join(LogFile(reference.path).blocks())
    rows = csv_rows(decoded(content, reference.text), reference.text)
    _, names = next(rows, (1, []))
    header = [name.strip() for name in names]
    for line, fields in rows:
        if len(fields) != len(header):
            raise InputError(
                "another number of fields than the header",
                source=reference.text,
                line=line,
                value=len(fields),
                expected=str(len(header)),
            )
        given = {n: v.strip() for n, v in zip(header, fields, strict=True) if v.strip()}
        yield Row(reference.text, line, given)
