"""Customised machines to rent: exactly the cores and the memory that a job asks for."""

from __future__ import annotations

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.waiting.jobs import GIB, RentedType, Requests
from foresail.model.errors import InputError


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

    Raises
    ------
    InputError
        If the catalogue has no such prices, or it is not said how much memory jobs need.
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
