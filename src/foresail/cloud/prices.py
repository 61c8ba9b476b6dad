"""Price catalogues: instance types and what each purchasing option of them costs.

Money is in the catalogue's currency per hour of one instance, unless a name says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from foresail.model import errors

GIB: Final = float(1 << 30)
HIGHEST_PRICE: Final = 1e9
"""No price is above it, in any currency: sums over years stay numbers."""
LOWEST_PRICE: Final = 1e-9
"""Nor is any below it: what costs less is a mistake of units, and quotients stay numbers."""


class Option(StrEnum):
    """The ways to buy capacity."""

    ON_DEMAND = "on-demand"
    RESERVED = "reserved"
    TRANSIENT = "transient"
    SUSTAINED_USE = "sustained-use"
    CUSTOMISED = "customised"


def checked_price(value: float, name: str, *, of: str | None = None) -> float:
    """The price, if it is a number from ``LOWEST_PRICE`` to ``HIGHEST_PRICE``."""
    if not LOWEST_PRICE <= value <= HIGHEST_PRICE:
        within = "" if value == 0.0 else f", from {LOWEST_PRICE:g} to {HIGHEST_PRICE:g}"
        expected = f"a number above 0{within}"
        raise errors.InputError(
            "not a price", source=of, field=name, value=value, expected=expected
        )
    return value


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A machine that can be rented."""

    name: str
    provider: str
    region: str
    """Name and region together are unique within a catalogue."""
    cores: float
    """Cores as the provider counts them (virtual ones on most)."""
    memory_bytes: float
    gpus: float = 0.0
    """Gpus of the machine."""

    def __post_init__(self) -> None:
        errors.require(bool(self.name), self, "name", "a name")
        with errors.naming(self.name):
            errors.require_positive(self, "cores", "memory_bytes")
            errors.require_at_least(self, 0, "gpus")

    @property
    def memory_gib(self) -> float:
        """Memory in GiB."""
        return self.memory_bytes / GIB


@dataclass(frozen=True, slots=True)
class Reserved:
    """A commitment for a term, paid for its whole length."""

    years: int
    """The term."""
    price_per_hour: float
    """All payments of the term over its hours."""
    plan: str = ""
    """The provider's name of the way to pay."""

    def __post_init__(self) -> None:
        checked_price(self.price_per_hour, f"reserved_{self.years}y")
        if self.years not in (1, 3):
            raise errors.InputError(
                "not a term", field="years", value=self.years, expected="1 or 3 years"
            )


@dataclass(frozen=True, slots=True)
class Transient:
    """Capacity that the provider may take back."""

    price_per_hour: float
    """Average price."""
    availability: float | None = None
    """Share of the time in which it is to be had; None where unknown."""
    mean_lifetime_hours: float | None = None
    """Mean time until it is taken back; None where unknown."""
    lifetime_cap_hours: float = math.inf
    """Time after which it is taken back in any case."""

    def __post_init__(self) -> None:
        checked_price(self.price_per_hour, "transient")
        errors.require_share(self, "availability")
        for name in ("mean_lifetime_hours", "lifetime_cap_hours"):
            hours = getattr(self, name)
            errors.require(hours is None or hours > 0.0, self, name, "above 0")


@dataclass(frozen=True, slots=True)
class Offer:
    """Prices of one instance type, by purchasing option; None (or empty): not offered."""

    instance: InstanceType
    on_demand_per_hour: float
    reserved: tuple[Reserved, ...] = ()
    transient: Transient | None = None

    def __post_init__(self) -> None:
        checked_price(self.on_demand_per_hour, "on_demand", of=self.instance.name)

    def reserved_for(self, years: int) -> Reserved | None:
        """The cheapest commitment of this term, if there is any."""
        terms = [each for each in self.reserved if each.years == years]
        return min(terms, key=lambda each: each.price_per_hour, default=None)


@dataclass(frozen=True, slots=True)
class SustainedUse:
    """Discount for use within a calendar month, without asking.

    ``tiers[k]`` is the price, relative to on demand, of the k-th part (of equal parts) of a month
    that a unit is used.
    """

    tiers: tuple[float, ...] = (1.0, 0.8, 0.6, 0.4)

    def __post_init__(self) -> None:
        shares = bool(self.tiers) and all(0.0 <= tier <= 1.0 for tier in self.tiers)
        errors.require(shares, self, "tiers", "one share or more, from 0 to 1")


@dataclass(frozen=True, slots=True)
class Customised:
    """Machines of any size."""

    core_per_hour: float
    gib_per_hour: float
    """Price on demand of a core and of a GiB of memory."""
    markup: float = 1.05
    """Cost of further options of a customised machine, relative to a standard one."""

    def __post_init__(self) -> None:
        checked_price(self.core_per_hour, "core_per_hour")
        checked_price(self.gib_per_hour, "gib_per_hour")
        checked_price(self.markup, "markup")


@dataclass(frozen=True, slots=True)
class Discount:
    """A share of prices that one buyer need not pay."""

    share: float
    """Share of the price; below 1."""
    instances: str = "*"
    """Names it holds for, with ``*`` and ``?`` as wildcards."""
    options: tuple[Option, ...] = ()
    """Options it holds for; empty: all."""

    def __post_init__(self) -> None:
        errors.require(0.0 <= self.share < 1.0, self, "share", "0 to below 1")

    def factor(self, instance: InstanceType, option: Option) -> float:
        """Share of a price that remains."""
        holds = fnmatchcase(instance.name, self.instances) and (
            not self.options or option in self.options
        )
        return 1.0 - self.share if holds else 1.0


@dataclass(frozen=True, slots=True)
class Commitment:
    """Instances already committed to: paid for whatever their use, so that using them is free."""

    instance: str
    """Name of the type."""
    count: int
    """Number of machines."""
    price_per_hour: float = 0.0
    """Price of one, paid in any case; 0 for machines that are owned."""
    until: date | None = None
    """Last day; None: for longer than any plan."""

    def __post_init__(self) -> None:
        with errors.naming(self.instance):
            errors.require_at_least(self, 1, "count")
            errors.require_at_least(self, 0, "price_per_hour")


@dataclass(frozen=True)
class PriceCatalogue:
    """Prices of one day, in one currency.

    Raises ``InputError`` if there are no offers, two are of one name and region, or a commitment is
    to a type that is not in the catalogue.
    """

    name: str
    """Name in use among people."""
    valid_on: date
    """The day of the prices."""
    currency: str
    """ISO code."""
    offers: tuple[Offer, ...]
    """One per instance type and region."""
    source: str = ""
    """Source of the prices, in a few words."""
    sustained_use: SustainedUse | None = None
    customised: Customised | None = None
    """Rules that hold for all offers, where the provider has them."""
    discounts: tuple[Discount, ...] = ()
    commitments: tuple[Commitment, ...] = ()
    """The buyer's own."""
    repairs: Mapping[str, int] = field(default_factory=dict)
    """Rows of the source that were left out, by reason."""

    def __post_init__(self) -> None:
        if not self.offers:
            raise errors.InputError("no prices", source=self.name, expected="at least one offer")
        seen: set[tuple[str, str]] = set()
        for offer in self.offers:
            key = (offer.instance.name, offer.instance.region)
            if key in seen:
                raise errors.InputError(
                    "an instance type is there twice in one region",
                    source=self.name,
                    field="instance_type, region",
                    value=" in ".join(filter(None, key)),
                    expected="one price for each",
                )
            seen.add(key)
        names = {offer.instance.name for offer in self.offers}
        for commitment in self.commitments:
            if commitment.instance not in names:
                raise errors.UnknownNameError("instance type", commitment.instance, names)

    def find(self, name: str, region: str | None = None) -> Offer:
        """The offer of an instance type; of the first region if none is named."""
        for offer in self.offers:
            if offer.instance.name == name and region in (None, offer.instance.region):
                return offer
        raise errors.UnknownNameError(
            "instance type", name, {offer.instance.name for offer in self.in_region(region)}
        )

    def in_region(self, region: str | None) -> Iterator[Offer]:
        """The offers of a region, or all."""
        regions = {offer.instance.region for offer in self.offers}
        if region is not None and region not in regions:
            raise errors.UnknownNameError("region", region, regions)
        return (o for o in self.offers if region in (None, o.instance.region))

    def only(self, instances: str = "*", region: str | None = None) -> PriceCatalogue:
        """The catalogue of one region and of types whose name fits one of some patterns.

        Patterns have wildcards, and commas between them. Commitments to types that are left out go
        with them.

        Raises ``UnknownNameError`` if no name fits, or there is no such region.
        """
        candidates = tuple(self.in_region(region))
        patterns = [part.strip() for part in instances.split(",")]
        offers = tuple(
            o for o in candidates if any(fnmatchcase(o.instance.name, each) for each in patterns)
        )
        if not offers:
            names = {offer.instance.name for offer in candidates}
            raise errors.UnknownNameError("instance type", instances, names)
        kept = {offer.instance.name for offer in offers}
        commitments = tuple(c for c in self.commitments if c.instance in kept)
        return replace(self, offers=offers, commitments=commitments)

    def after_discounts(self) -> PriceCatalogue:
        """The catalogue at the buyer's own prices: discounts taken off, none left to take."""
        offers = tuple(_discounted(offer, self.discounts) for offer in self.offers)
        return replace(self, offers=offers, discounts=())


def _discounted(offer: Offer, discounts: tuple[Discount, ...]) -> Offer:
    def factor(option: Option) -> float:
        return math.prod(each.factor(offer.instance, option) for each in discounts)

    transient, reserved = offer.transient, factor(Option.RESERVED)
    return replace(
        offer,
        on_demand_per_hour=offer.on_demand_per_hour * factor(Option.ON_DEMAND),
        reserved=tuple(
            replace(each, price_per_hour=each.price_per_hour * reserved) for each in offer.reserved
        ),
        transient=transient
        and replace(transient, price_per_hour=transient.price_per_hour * factor(Option.TRANSIENT)),
    )
