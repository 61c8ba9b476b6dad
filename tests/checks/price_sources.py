"""The conformance suite of price sources."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any, Final

from foresail.checks.rules import (
    NOTHING,
    BrokenRuleError,
    Make,
    Rule,
    bound,
    demand,
    require_conformity,
)
from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.prices_reading import PriceSource, Reference
from foresail.model.errors import InputError
from foresail.model.registry import Entry
from foresail.traces.source import head

_NO_NAMES: Final = ("", "nothing of this name", "/no/such/file.csv")


def check_price_source(entry: Entry, example: str | None = None, **options: Any) -> None:
    """Apply every rule that price sources must keep to a registered one.

    Options are its parameters. The example is what it recognises: a name, or the path of a file in
    the layout it reads; without one, the rules about good prices are left out.

    Raises
    ------
    NonconformityError
        If it breaks a rule; the message lists every broken one.
    """
    rules: list[Rule] = [gives_prices, recognises_anything]
    if example is not None:
        rules += [bound(rule, example) for rule in _ABOUT_GOOD_PRICES]
    record = entry.parameters(**options)
    require_conformity(f"price source {entry.name!r}", lambda: entry.build(record), rules)


def gives_prices(make: Make) -> None:
    """It gives a catalogue, or histories, or both."""
    kind = type(make())
    own = (kind.catalogue, kind.histories)
    demand(own != (PriceSource.catalogue, PriceSource.histories), "it gives neither")


def recognises_anything(make: Make) -> None:
    """Asked whether it recognises anything at all, it says no instead of failing."""
    source = make()
    for text in _NO_NAMES:
        demand(source.recognises(Reference(text)) is False, f"it recognises {text!r}")
    for kind, content in NOTHING.items():
        for name in ("prices.csv", "prices.json"):
            seen = source.recognises(Reference(name, content))
            demand(seen is False, f"it recognises {name} with {kind} content")


def what_has_no_prices(example: str, make: Make) -> None:
    """A file without prices is an InputError: empty, blank, binary, prose, cut off."""
    if not Path(example).is_file():
        return  # It reads no files: it knows its prices by heart.
    for kind, content in NOTHING.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / Path(example).name
            path.write_bytes(content)
            answers = _answers(make(), Reference(str(path), content))
            demand(not answers, f"it reads {kind} content")


def _answers(source: Any, reference: Reference) -> bool:
    """Whether any of its answers is one, and not an InputError."""
    for ask in ("catalogue", "histories"):
        try:
            getattr(source, ask)(reference)
        except (InputError, NotImplementedError):
            continue
        return True
    return False


def recognises_example(example: str, make: Make) -> None:
    """It recognises the example."""
    demand(make().recognises(_reference(example)), "it does not")


def same_prices_again(example: str, make: Make) -> None:
    """The same reference gives the same prices."""
    first, second = (_told(make(), example) for _ in range(2))
    demand(str(first) == str(second), "the second answer differs")


def dated_catalogue(example: str, make: Make) -> None:
    """A catalogue says its currency as an ISO code, and every machine has a size and a price."""
    catalogue, _ = _told(make(), example)
    if catalogue is None:
        return
    code = catalogue.currency
    demand(len(code) == 3 and code.isalpha() and code.isupper(), f"currency {code!r}")
    for offer in catalogue.offers:
        demand(
            math.isfinite(offer.on_demand_per_hour) and offer.on_demand_per_hour > 0.0,
            f"{offer.instance.name} costs {offer.on_demand_per_hour}",
        )


def cheaper_than_on_demand(example: str, make: Make) -> None:
    """A reservation costs no more than its machine on demand: else units are mixed up."""
    catalogue, _ = _told(make(), example)
    if catalogue is None:
        return
    for offer in catalogue.offers:
        for term in offer.reserved:
            demand(
                term.price_per_hour <= offer.on_demand_per_hour,
                f"{offer.instance.name} reserved for {term.years} costs {term.price_per_hour} an "
                f"hour, on demand {offer.on_demand_per_hour}",
            )


def histories_by_name(example: str, make: Make) -> None:
    """Histories have markets of different names, in order of time, each ending after it began."""
    _, histories = _told(make(), example)
    names = [each.market for each in histories]
    demand(len(set(names)) == len(names), "a market is there twice")
    for each in histories:
        times = each.times_seconds
        demand(times.size > 0 and bool((times[1:] > times[:-1]).all()), f"{each.market}: times")
        demand(each.end_seconds > times[-1], f"{each.market} ends before its last change")


_ABOUT_GOOD_PRICES: Final = (
    what_has_no_prices,
    recognises_example,
    same_prices_again,
    dated_catalogue,
    cheaper_than_on_demand,
    histories_by_name,
)


def _reference(text: str) -> Reference:
    path = Path(text)
    return Reference(text, head(path) if path.is_file() else b"")


def _told(source: Any, example: str) -> tuple[PriceCatalogue | None, tuple[MarketHistory, ...]]:
    """What it gives of the example.

    Raises
    ------
    BrokenRuleError
        If it gives nothing.
    """
    reference = _reference(example)
    catalogue = histories = None
    problem = ""
    try:
        catalogue = source.catalogue(reference)
    except (InputError, NotImplementedError) as error:
        problem = str(error)
    try:
        histories = source.histories(reference)
    except (InputError, NotImplementedError) as error:
        problem = str(error)
    if catalogue is None and histories is None:
        raise BrokenRuleError(f"it gives nothing of the example: {problem}")
    return catalogue, histories or ()
