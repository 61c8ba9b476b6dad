"""Prices for waiting policies: a machine to own, a family to rent from, the worth of an hour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from foresail.cloud.prices import HIGHEST_PRICE, Offer, PriceCatalogue, checked_price
from foresail.cloud.prices_reading import Reference, table_rows
from foresail.cloud.waiting.jobs import (
    GIB,
    FixedMachines,
    RentedType,
    Requests,
    TraceJobs,
    no_gpus,
    rents,
    writable,
)
from foresail.model.arrays import Floats
from foresail.model.errors import InputError


def rented_family(catalogue: PriceCatalogue) -> tuple[RentedType, ...]:
    """The types of a catalogue at the buyer's on-demand prices; those without a whole core go.

    Raises ``InputError`` if none has a core.
    """
    family = tuple(
        RentedType(
            offer.instance.name,
            int(offer.instance.cores),
            offer.instance.memory_bytes,
            offer.on_demand_per_hour,
            offer.instance.gpus,
        )
        for offer in catalogue.after_discounts().offers
        if offer.instance.cores >= 1.0
    )
    if not family:
        raise InputError("no machine with a whole core", source=catalogue.name)
    return family


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


def customised_family(
    requests: Requests, core_per_hour: float, gib_per_hour: float
) -> tuple[RentedType, ...]:
    """A machine for each distinct request, at a price of cores and one of memory (GiB).

    Nothing is customised for requests whose memory is not known, or that ask for gpus.
    """
    return tuple(
        RentedType(
            f"{cores} cores, {memory / GIB:g} GiB",
            cores,
            memory,
            cores * core_per_hour + memory / GIB * gib_per_hour,
        )
        for cores, memory, gpus in zip(
            requests.cores.tolist(),
            requests.memory_bytes.tolist(),
            requests.gpus.tolist(),
            strict=True,
        )
        if memory > 0.0 and gpus == 0.0
    )


def customised_of(catalogue: PriceCatalogue, requests: Requests) -> tuple[RentedType, ...]:
    """The same at a catalogue's prices; no machine has more cores than its largest type.

    Raises ``InputError`` if the catalogue has no such prices, or it is not said how much memory
    jobs need.
    """
    prices = catalogue.customised
    if prices is None:
        raise InputError(
            "no prices of customised machines",
            source=catalogue.name,
            field="customised",
            expected="core_per_hour and gib_per_hour",
        )
    most = max(offer.instance.cores for offer in catalogue.offers)
    family = customised_family(requests, prices.core_per_hour, prices.gib_per_hour)
    if not family:
        raise InputError(
            "nothing says how much memory jobs need",
            field="--customised",
            expected="a log with memory",
        )
    return tuple(each for each in family if each.cores <= most)


USUAL_SHARE: Final = 0.1
"""Of the price of a job's machine: what its waiting is worth unless it is said."""


@dataclass(frozen=True, slots=True)
class Worth:
    """Worth of waiting that the advice is to respect."""

    hour_value: float
    """Money that an hour's waiting of a job is worth; the mean, where users say their own."""
    stated: bool
    """Whether it was said; else it is a share of what a job's machine costs for an hour."""
    longest_wait_seconds: float = math.inf
    """Largest mean wait."""
    users: int = 0
    """How many say their own."""
    others_value: float = 0.0
    """What counts for the jobs of all others, where some say their own."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.hour_value <= HIGHEST_PRICE:
            expected = f"0 or more, up to {HIGHEST_PRICE:g}"
            raise InputError(
                "out of range", field="hour value", value=self.hour_value, expected=expected
            )


def usual_hour_value(jobs: TraceJobs, family: Sequence[RentedType]) -> float:
    """A tenth of what a job's machine costs for an hour on demand, the mean over all jobs."""
    requests = jobs.requests
    return USUAL_SHARE * float(rents(requests, family)[requests.of_job].mean())


_COLUMNS: Final = ("user", "value")


def read_user_values(path: Path) -> dict[str, float]:
    """Money for an hour's waiting by user, of a table with commas: columns ``user``, ``value``.

    Raises ``InputError`` if the file cannot be read or has no rows, a user is there twice, or a
    value is missing or negative; it names file, line, field and value.
    """
    if not path.is_file():
        raise InputError("there is no such file", source=path)
    values: dict[str, float] = {}
    for row in table_rows(Reference(str(path))):
        row.demand_known(_COLUMNS)
        user, value = row.text("user"), row.number("value")
        if user in values:
            raise row.error("a user is there twice", "user", user, "one row for each user")
        if not 0.0 <= value < math.inf:
            raise row.error("out of range", "value", value, "money for an hour, 0 or more")
        values[user] = value
    if not values:
        raise InputError("there is no user in it", source=path, expected="columns user, value")
    return values


def values_by_job(
    users: pl.Series, values: Mapping[str, float], otherwise: float, source: Path
) -> Floats:
    """Money for an hour's waiting of each job, shape (jobs,).

    ``users`` are those of the jobs, null where unknown; jobs of users that are not in ``values``
    (from ``source``) have what ``otherwise`` says.

    Raises ``InputError`` if no job is by one of these users.
    """
    if not users.is_in(list(values)).any():
        some = ", ".join(users.drop_nulls().unique(maintain_order=True).head(3))
        raise InputError(
            "no job is by one of these users",
            source=source,
            field="user",
            value=next(iter(values)),
            expected=f"users of the log, such as {some}" if some else "a log that names users",
        )
    return writable(
        users.replace_strict(dict(values), default=otherwise, return_dtype=pl.Float64)
        .fill_null(otherwise)
        .to_numpy()
    )
