"""What transient machines there are to choose from: types of a file, or histories of markets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from foresail.cli.cloud._options import told_by_options
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from foresail.cloud.transient.joint import JointHistory
    from foresail.cloud.transient.offers import Offers

_DAY_SECONDS: Final = 86_400.0


@dataclass(frozen=True)
class OfferHistories:
    """Histories of all markets on one time axis, and what estimates offers from a part of them."""

    history: JointHistory
    estimate: Callable[[JointHistory], Offers]


def offers_of(
    types: Path | None, learned: OfferHistories | None, window: float | None, price: float | None
) -> Offers:
    """Types of a file, or as the last days of their histories (``window``; None: all) show them.

    The price is that on demand, of a unit of capacity for an hour, instead of what types have.

    Raises ``InputError`` if there is neither file nor histories, or both; or either cannot be read
    so.
    """
    from foresail.cloud.transient.offers import Offers
    from foresail.cloud.transient.plan import read_types

    if (types is None) == (learned is None):
        raise InputError(
            "no types to choose from, or two lists of them", expected="--types or --prices"
        )
    if learned is None:
        assert types is not None
        offers = Offers(read_types(types))
    else:
        seen = learned.history
        if window is not None:
            demand_days("--window", window)
            seen = seen.between(seen.end - window * _DAY_SECONDS, seen.end)
        offers = learned.estimate(seen)
    if price is None:
        return offers
    with told_by_options({"on_demand_price_per_unit_hour": "--on-demand-price"}):
        priced = [replace(each, on_demand_price_per_unit_hour=price) for each in offers.types]
    return replace(offers, types=tuple(priced))


def learned_of(
    prices: str, machines: Path | None, market: str, doubt: float, correlated: bool
) -> OfferHistories:
    """Histories of markets and capacities of their machines, for offers to be estimated from.

    ``machines`` is the file with the capacity of each instance type; only markets whose name
    matches the pattern ``market`` count; ``doubt`` are hours, half of them down, that are put to
    what was seen of each; ``correlated`` markets may fail together.

    Raises ``InputError`` if no market has such a name, or the capacity of an instance type is
    missing.
    """
    from foresail.cloud.prices_reading import load_histories
    from foresail.cloud.transient.estimating import correlated_offers, estimated_offers
    from foresail.cloud.transient.joint import joined
    from foresail.cloud.transient.plan import kinds_of_markets, read_kinds

    if machines is None:
        raise InputError(
            "nothing says what capacity the machines have",
            expected="--machines FILE with instance_type and capacity",
        )
    by_type = read_kinds(machines)
    histories = [each for each in load_histories(prices) if fnmatch(each.market, market)]
    if not histories:
        raise InputError("no market of this name", source=prices, field="--market", value=market)
    kinds = kinds_of_markets(histories, by_type, machines)
    estimate = correlated_offers if correlated else estimated_offers
    return OfferHistories(joined(histories), partial(estimate, kinds=kinds, doubt_hours=doubt))


def demand_days(option: str, days: float) -> None:
    """A number of days must be above 0."""
    if not days > 0.0:
        raise InputError("no number of days", field=option, value=days, expected="above 0")
