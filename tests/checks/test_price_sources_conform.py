"""The suite of price sources: run over everything that is registered, and what it catches."""

from __future__ import annotations

import pytest

from checks.price_sources import check_price_source
from checks.read_files import examples_of
from foresail.checks.rules import NonconformityError
from foresail.cloud.prices import GIB, InstanceType, Offer, PriceCatalogue, Reserved
from foresail.cloud.prices_reading import PriceSource
from foresail.model.errors import InputError
from foresail.model.registry import Entry, NoParameters, entries, find
from foresail.traces.source import LogFile

NAMES = {"thesis", "ec2-2017", "ec2-2024"}


def example(entry, folder) -> str | None:
    """What a source recognises: its own name, or a file; None for those that only fetch."""
    if entry.name in NAMES:
        return entry.name
    return next((str(each.write(folder)) for each in examples_of(entry)), None)


@pytest.mark.parametrize("entry", list(entries("price_source")), ids=lambda entry: entry.name)
def test_price_source_conforms(entry, tmp_path):
    """Every registered price source keeps every rule, those about good prices by its example."""
    check_price_source(entry, example(entry, tmp_path))


def test_every_example_has_its_source():
    """No example is left behind when a source is renamed, and the suite above is not empty."""
    for name in NAMES:
        assert find("price_source", name).name == name
    assert len(list(entries("price_source"))) >= 9


class LineSource(PriceSource):
    """Reads ``type,price`` of a file that begins with ``PRICES``; the faulty ones inherit."""

    reserved = 0.5

    def recognises(self, reference) -> bool:
        return reference.start.startswith(b"PRICES")

    def catalogue(self, reference) -> PriceCatalogue:
        if not reference.path.is_file():
            raise InputError("no such file", source=reference.text)
        lines = b"".join(LogFile(reference.path).blocks()).decode("utf-8", "replace").split("\n")
        if lines[0] != "PRICES":
            raise InputError("no prices", source=reference.text)
        return self.made(*lines[1].split(","))

    def made(self, name, price) -> PriceCatalogue:
        from datetime import date

        offer = Offer(
            InstanceType(name, "own", "here", 1, GIB),
            float(price),
            (Reserved(1, self.reserved * float(price)),),
        )
        return PriceCatalogue("own", date(2026, 1, 1), "EUR", (offer,))


class EagerSource(LineSource):
    def recognises(self, reference) -> bool:
        return True


class FailingSource(LineSource):
    def recognises(self, reference) -> bool:
        return reference.start[0] == ord("P")


class CarelessSource(LineSource):
    def catalogue(self, reference) -> PriceCatalogue:
        if not reference.path.is_file():
            raise InputError("no such file", source=reference.text)
        return self.made("c1", 1.0)


class YearlySource(LineSource):
    reserved = 8760 * 0.5


class ForgetfulSource(LineSource):
    asked = 0

    def made(self, name, price) -> PriceCatalogue:
        ForgetfulSource.asked += 1
        return super().made(name, float(price) + ForgetfulSource.asked)


class Dumb(PriceSource):
    def recognises(self, reference) -> bool:
        return reference.start.startswith(b"PRICES")


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (LineSource, []),
        (EagerSource, ["says no instead of failing"]),
        (FailingSource, ["says no instead of failing: raised IndexError"]),
        (CarelessSource, ["is an InputError: empty, blank"]),
        (YearlySource, ["units are mixed up"]),
        (ForgetfulSource, ["the same prices: the second answer differs"]),
        (Dumb, ["gives a catalogue, or histories", "it gives nothing of the example"]),
    ],
    ids=["sound", "eager", "failing", "careless", "yearly", "forgetful", "dumb"],
)
def test_price_source_rules_catch(make, seen, tmp_path):
    """A source with one fault breaks the rules that forbid it; the sound one breaks none."""
    entry = Entry("price_source", "lines", make, NoParameters)
    path = tmp_path / "own.txt"
    path.write_text("PRICES\nc1,0.2\n")
    if not seen:
        check_price_source(entry, str(path))
        return
    with pytest.raises(NonconformityError) as error:
        check_price_source(entry, str(path))
    for words in seen:
        assert words in str(error.value)
