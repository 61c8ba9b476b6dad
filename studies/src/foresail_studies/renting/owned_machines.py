"""A machine to own, at its price, and the worth of waiting for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foresail.cloud.prices import HIGHEST_PRICE, Offer, PriceCatalogue, checked_price
from foresail.cloud.waiting.jobs import (
    FixedMachines,
    RentedType,
    Requests,
    TraceJobs,
    no_gpus,
    rents,
)
from foresail.model.errors import InputError


def owned_offer(
    catalogue: PriceCatalogue, name: str | None, requests: Requests | None = None
) -> Offer:
    """The machine to own: the named one, or the largest that can be reserved (or else the largest).

    Where jobs ask for gpus, and none is named, it is the one with the most gpus instead; of equals
    the cheapest.

    ``requests`` is what jobs ask for, if that is known.

    Raises ``UnknownNameError`` if there is no such type; ``InputError`` if jobs ask for gpus, and
    no type has any.
    """
    if name is not None:
        return catalogue.after_discounts().find(name)
    offers = catalogue.after_discounts().offers
    asking = 0 if requests is None else requests.jobs_with_gpus
    if asking:
        offers = tuple(offer for offer in offers if offer.instance.gpus)
        if not offers:
            raise no_gpus(asking)
    reserved = [offer for offer in offers if offer.reserved]

    def size_and_price(offer: Offer) -> tuple[float, float]:
        size = offer.instance.gpus if asking else offer.instance.cores
        return size, -offer.on_demand_per_hour

    return max(reserved or offers, key=size_and_price)


def owned_machines(offer: Offer, years: int | None, price_per_hour: float | None) -> FixedMachines:
    """One such machine at a stated price, or at that of a reservation.

    ``years`` is the term of the reservation, the longest if it is not said.

    Raises ``InputError`` if there is no price for it, or it is not above 0.
    """
    instance = offer.instance
    if price_per_hour is None:
        longest = max((each.years for each in offer.reserved), default=0)
        term = offer.reserved_for(longest if years is None else years)
        if term is None:
            raise InputError(
                "the machine has no such reservation",
                source=instance.name,
                field="reserved" if years is None else f"reserved_{years}y",
                expected="a price per hour of its own (--fixed-price), or another machine or term",
            )
        price_per_hour = term.price_per_hour
    else:
        checked_price(price_per_hour, "--fixed-price")
    return FixedMachines(
        1,
        max(int(instance.cores), 1),
        instance.memory_bytes,
        price_per_hour,
        gpus=instance.gpus,
    )


def share_too_wide(jobs: TraceJobs, machine: FixedMachines, family: Sequence[RentedType]) -> float:
    """Share of the work that asks for more than one machine has, and is therefore rented.

    Work is in core-seconds or, where jobs ask for gpus, what it costs on demand.
    """
    requests = jobs.requests
    each = requests.cores if jobs.gpus is None else rents(requests, family)
    work = jobs.runtime_seconds * each[requests.of_job]
    wide = ~machine.holds(requests)[requests.of_job]
    total = float(work.sum())
    return float(work @ wide) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Worth:
    """Worth of waiting that the advice is to respect."""

    hour_value: float
    """Money that an hour's waiting of a job is worth."""
    stated: bool
    """Whether it was said; else it is a share of what a job's machine costs for an hour."""
    longest_wait_seconds: float = math.inf
    """Largest mean wait."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.hour_value <= HIGHEST_PRICE:
            expected = f"0 or more, up to {HIGHEST_PRICE:g}"
            raise InputError(
                "out of range", field="hour value", value=self.hour_value, expected=expected
            )
