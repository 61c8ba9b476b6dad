"""Purchasing options relative to on demand: prices, lives of transient machines, providers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

import numpy as np

from foresail.cloud.histories import Lifetimes, MarketHistory, lifetimes, mean_price_while_up
from foresail.cloud.prices import Offer, PriceCatalogue
from foresail.model.distribution import Booleans, Floats
from foresail.model.errors import InputError, UnknownNameError, require


@dataclass(frozen=True, slots=True)
class ExponentialRevocation:
    """Exponential lifetimes."""

    mean_hours: float = 24.0

    def __post_init__(self) -> None:
        require(self.mean_hours > 0.0, self, "mean_hours", "above 0")

    def revoked(self, hours: Floats) -> Floats:
        """Probability that a machine is taken back within so many hours; shape of ``hours``."""
        return np.asarray(-np.expm1(-hours / self.mean_hours))

    def mean_run(self, hours: Floats) -> Floats:
        """Mean hours that a machine ran if it was taken back within ``hours``; same shape."""
        mean = self.mean_hours
        probability = -np.expm1(-hours / mean)
        run = np.asarray(hours / 2.0)
        lived = mean - (hours + mean) * np.exp(-hours / mean)
        np.divide(lived, probability, out=run, where=probability > 1e-9)
        return run


@dataclass(frozen=True, slots=True)
class CappedRevocation:
    """Lifetimes that end after ``cap_hours`` in any case."""

    lives: RevocationModel
    cap_hours: float

    def __post_init__(self) -> None:
        require(self.cap_hours > 0.0, self, "cap_hours", "above 0")

    def revoked(self, hours: Floats) -> Floats:
        """Probability that a machine is taken back within so many hours; shape of ``hours``."""
        return np.where(hours > self.cap_hours, 1.0, self.lives.revoked(hours))

    def mean_run(self, hours: Floats) -> Floats:
        """Mean hours that a machine ran if it was taken back within ``hours``; same shape."""
        cap = np.array([self.cap_hours])
        before = self.lives.revoked(cap)
        whole = before * self.lives.mean_run(cap) + (1.0 - before) * cap
        return np.where(hours > self.cap_hours, whole, self.lives.mean_run(hours))


class ObservedRevocation:
    """Lifetimes as markets had them, for jobs that begin at any moment in which a machine is up.

    Such a job meets long lives more often than short ones, and lives on for what is left of them.
    Moments of a life that the history cut off, from which one cannot see far enough, are left out.
    Beyond the longest life that was observed everything is revoked.

    Raises ``InputError`` if no life ended with a revocation.
    """

    def __init__(self, lives: Lifetimes) -> None:
        if not lives.revoked.any():
            raise InputError("no revocation was observed", expected="at least one")
        self._ended = np.sort(lives.hours[lives.revoked])
        self._below = np.concatenate([[0.0], np.cumsum(self._ended)])
        self._squares_below = np.concatenate([[0.0], np.cumsum(self._ended**2)])
        self._cut = np.sort(lives.hours[~lives.revoked])
        self._cut_below = np.concatenate([[0.0], np.cumsum(self._cut)])

    def revoked(self, hours: Floats) -> Floats:
        """Probability that a machine is taken back within so many hours; shape of ``hours``."""
        at = np.searchsorted(self._cut, hours)
        seen = self._cut_below[-1] - self._cut_below[at] - (self._cut.size - at) * hours
        return np.asarray(self._last(hours) / (self._below[-1] + seen))

    def mean_run(self, hours: Floats) -> Floats:
        """Mean hours that a machine ran if it was taken back within ``hours``; same shape."""
        at = np.searchsorted(self._ended, hours)
        squares = self._squares_below[at] + (self._ended.size - at) * hours**2
        run = np.zeros(np.shape(hours))
        last = self._last(hours)
        np.divide(squares / 2.0, last, out=run, where=last > 0.0)
        return run

    def _last(self, hours: Floats) -> Floats:
        """Hours of all lives that ended, as far as they are among the last ``hours`` of each."""
        at = np.searchsorted(self._ended, hours)
        return np.asarray(self._below[at] + (self._ended.size - at) * hours)


RevocationModel = ExponentialRevocation | CappedRevocation | ObservedRevocation
"""Lifetimes of transient machines."""


DEFAULT_LIFETIME_HOURS: Final = 24.0
_GOOGLE_CAP_HOURS: Final = 24.0
_CORE_TO_GIB_PRICE: Final = 0.031611 / 0.004237
"""Cost of a core of Google's custom machines, in GiB."""


@dataclass(frozen=True, slots=True)
class TransientTerms:
    """Relative price of transient capacity, and how long it lives."""

    price: float = 0.30
    revocation: RevocationModel = field(default_factory=ExponentialRevocation)


class YearSchedule(Protocol):
    """Hours of a year that are committed to, of one level of demand."""

    @property
    def held(self) -> Booleans:
        """Slots of the year that it holds; shape (slots,)."""

    @property
    def cost(self) -> float:
        """Its cost, in slots of one unit on demand."""

    @property
    def saving(self) -> float:
        """Cost of the demand in these slots otherwise, less that of the schedule."""


class YearFinder(Protocol):
    """Finds schedules for a year."""

    def best(self, prices: Floats) -> Mapping[int, YearSchedule]:
        """Return the best schedule by level, of the levels that gain by one.

        ``prices`` are what each slot of the year costs otherwise; shape (slots, levels).
        """


@dataclass(frozen=True, slots=True)
class PurchaseTerms:
    """Prices relative to on demand, which costs 1 and is always sold.

    Parameters
    ----------
    reserved
        (years, price) of each term, paid for the whole of it.
    transient
        None: not sold.
    sustained_tiers
        Price of each equal part of a month that a unit is used; empty: no such discount.
    customised_markup
        What a machine of any size costs relative to a standard one; None: not sold.
    """

    reserved: tuple[tuple[int, float], ...] = ((1, 0.60), (3, 0.40))
    transient: TransientTerms | None = None
    sustained_tiers: tuple[float, ...] = ()
    customised_markup: float | None = None

    def without_transient(self) -> PurchaseTerms:
        """The same terms for jobs that must not be revoked."""
        return replace(self, transient=None)

    @property
    def schedule_years(self) -> int:
        """Years that a schedule is committed to; 0: schedules are not sold."""
        return 0

    def further_prices(self, hours: Floats) -> Floats | None:
        """Return the price of an hour of jobs on what else is rented, inf where it is not.

        ``hours`` are their runtimes, shape (jobs,). None: nothing else is rented.
        """
        del hours
        return None

    def schedule_finder(
        self, slots: int, slot_hours: float, first_hour_of_week: float
    ) -> YearFinder | None:
        """Return what finds schedules of a year of so many slots; None: they are not sold.

        ``first_hour_of_week`` are the hours from Monday 00:00 to the year's beginning.
        """
        del slots, slot_hours, first_hour_of_week
        return None


@dataclass(frozen=True, slots=True)
class ResourcePrices:
    """Prices of a core, a GiB of memory and a GPU on demand, per hour, in ``currency``.

    ``gpu_per_hour`` is None where no machine with GPUs is on sale.
    """

    core_per_hour: float
    gib_per_hour: float
    currency: str
    gpu_per_hour: float | None = None


def resource_prices(catalogue: PriceCatalogue) -> ResourcePrices:
    """Prices of a core and a GiB that explain a catalogue's prices on demand best, and of a GPU.

    The catalogue's own customised prices where it has them. Else least squares of relative errors
    over the types without GPUs (over all, where all have some); where all types have one ratio of
    cores to memory, the split is that of Google's customised machines. What a type with GPUs costs
    beyond its cores and memory is the price of its GPUs, and that of the cheapest GPU is taken.
    """
    offers = catalogue.after_discounts().offers
    plain = tuple(offer for offer in offers if not offer.instance.gpus) or offers
    own = catalogue.customised
    core, gib = _core_and_gib(plain) if own is None else (own.core_per_hour, own.gib_per_hour)
    beyond = [
        (o.on_demand_per_hour - core * o.instance.cores - gib * o.instance.memory_gib)
        / o.instance.gpus
        for o in offers
        if o.instance.gpus
    ]
    gpu = min((price for price in beyond if price > 0.0), default=None)
    return ResourcePrices(core, gib, catalogue.currency, gpu)


def _core_and_gib(offers: Sequence[Offer]) -> tuple[float, float]:
    price = np.array([offer.on_demand_per_hour for offer in offers])
    cores = np.array([offer.instance.cores for offer in offers]) / price
    gib = np.array([offer.instance.memory_gib for offer in offers]) / price
    design = np.column_stack([cores, gib])
    scaled = design / np.linalg.norm(design, axis=0)
    if np.linalg.matrix_rank(scaled, tol=1e-3) == 2:
        core, memory = np.linalg.lstsq(design, np.ones(price.size), rcond=None)[0]
        if core > 0.0 and memory > 0.0:
            return float(core), float(memory)
    combined = cores * _CORE_TO_GIB_PRICE + gib
    memory = float(combined.sum() / (combined @ combined))
    return memory * _CORE_TO_GIB_PRICE, memory


def terms_of(catalogue: PriceCatalogue) -> PurchaseTerms:
    """All options of a catalogue, each at the median over its types of the price relative to 1.

    The buyer's discounts are taken off first; what is relative to on demand stays so.
    """
    offers = catalogue.after_discounts().offers
    terms = [(years, _median(offers, partial(_reserved, years))) for years in (1, 3)]
    reserved = tuple((years, price) for years, price in terms if price is not None)
    customised = catalogue.customised
    return PurchaseTerms(
        reserved=reserved,
        transient=_transient(offers),
        sustained_tiers=catalogue.sustained_use.tiers if catalogue.sustained_use else (),
        customised_markup=customised.markup if customised else None,
    )


def _median(
    offers: Iterable[Offer], price_per_hour: Callable[[Offer], float | None]
) -> float | None:
    relative = [
        price / offer.on_demand_per_hour
        for offer in offers
        if (price := price_per_hour(offer)) is not None
    ]
    return float(np.median(relative)) if relative else None


def _reserved(years: int, offer: Offer) -> float | None:
    term = offer.reserved_for(years)
    return None if term is None else term.price_per_hour


def _transient(offers: tuple[Offer, ...]) -> TransientTerms | None:
    price = _median(offers, lambda o: o.transient.price_per_hour if o.transient else None)
    if price is None:
        return None
    sold = [offer.transient for offer in offers if offer.transient is not None]
    lives = [each.mean_lifetime_hours or DEFAULT_LIFETIME_HOURS for each in sold]
    cap = min(each.lifetime_cap_hours for each in sold)
    return capped(TransientTerms(price, ExponentialRevocation(float(np.median(lives)))), cap)


def capped(terms: TransientTerms, cap_hours: float) -> TransientTerms:
    """The same capacity, taken back after so long in any case (inf: as before)."""
    if not math.isfinite(cap_hours):
        return terms
    return replace(terms, revocation=CappedRevocation(terms.revocation, cap_hours))


def observed_transient(histories: Iterable[MarketHistory]) -> TransientTerms:
    """Transient capacity as markets had it: the median of their prices while up, and all lives.

    A market is up while its price is at most that on demand.

    Raises ``InputError`` if a market has no prices, or none was ever up.
    """
    prices, lives = [], []
    for market in histories:
        price = mean_price_while_up(market)
        if math.isfinite(price) and market.on_demand_per_hour is not None:
            prices.append(price / market.on_demand_per_hour)
            lives.append(lifetimes(market))
    if not prices:
        raise InputError("no market was up", expected="market histories with prices")
    together = Lifetimes(
        np.concatenate([each.hours for each in lives]),
        np.concatenate([each.revoked for each in lives]),
    )
    return TransientTerms(float(np.median(prices)), ObservedRevocation(together))


PROVIDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "microsoft": (),
    "amazon": (),
    "google": ("sustained_tiers",),
    "google-customised": ("sustained_tiers", "customised_markup"),
    "all": ("sustained_tiers", "customised_markup"),
}
"""Offers of each provider beside terms and transient machines (Ambati's thesis, section 5.5)."""


def sold_by(provider: str, terms: PurchaseTerms) -> PurchaseTerms:
    """The terms of one provider; transient capacity of Google lives at most 24 hours."""
    if provider not in PROVIDERS:
        raise UnknownNameError("provider", provider, PROVIDERS)
    transient = terms.transient
    if transient is not None and provider.startswith("google"):
        transient = capped(transient, _GOOGLE_CAP_HOURS)
    more = {name: getattr(terms, name) for name in PROVIDERS[provider]}
    return PurchaseTerms(terms.reserved, transient, **more)
