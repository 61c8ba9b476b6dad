"""Real machine sizes: which type holds a piece of a job, and which hold an amount reserved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.prices import Catalogue, InstanceType, Offer
from foresail.cloud.purchasing.demand import BoughtJobs
from foresail.cloud.purchasing.terms import ResourcePrices
from foresail.kernels.reserved_placement import Pieces
from foresail.model.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Machines on sale: cores, GiB and price on demand per hour, each of shape (types,)."""

    types: tuple[InstanceType, ...]
    cores: Floats
    gib: Floats
    per_hour: Floats


def sizes_of(catalogue: Catalogue) -> Sizes:
    """The machines of a catalogue, at the buyer's prices."""
    offers: tuple[Offer, ...] = catalogue.after_discounts().offers
    return Sizes(
        tuple(offer.instance for offer in offers),
        np.array([offer.instance.cores for offer in offers]),
        np.array([offer.instance.memory_gib for offer in offers]),
        np.array([offer.on_demand_per_hour for offer in offers]),
    )


def pieces_of(jobs: BoughtJobs, sizes: Sizes) -> Pieces:
    """How jobs come apart: as many tasks together as the largest machine holds, and the rest.

    Raises
    ------
    InputError
        If no machine holds one task of a job.
    """
    kinds, kind = _distinct(jobs.cores_per_task, jobs.gib_per_task)
    held = np.floor(
        np.minimum(
            sizes.cores[None, :] / kinds[:, :1] + 1e-9, sizes.gib[None, :] / kinds[:, 1:] + 1e-9
        )
    ).max(axis=1)
    if (held < 1.0).any():
        cores, gib = kinds[int(np.argmin(held))]
        raise InputError(
            "no machine type holds a task",
            field="cores, memory",
            value=f"{cores:g} cores with {gib:g} GiB",
            expected=f"at most {sizes.cores.max():g} cores and {sizes.gib.max():g} GiB together, "
            "or a catalogue with larger types",
        )
    together = np.minimum(held[kind].astype(np.int64), jobs.tasks)
    full, rest = jobs.tasks // together, jobs.tasks % together
    return Pieces(
        full,
        np.ceil(together * jobs.cores_per_task - 1e-9).astype(np.int64),
        together * jobs.gib_per_task,
        np.ceil(rest * jobs.cores_per_task - 1e-9).astype(np.int64),
        rest * jobs.gib_per_task,
    )


def rent_per_hour(
    pieces: Pieces, sizes: Sizes, resource: ResourcePrices, customised_markup: float | None
) -> Floats:
    """What the cheapest machines that hold each job cost on demand per hour; shape (jobs,).

    A customised machine has the piece's own size, at the prices of cores and GiB times the markup.
    """
    full = _cheapest(pieces.full_cores, pieces.full_memory, sizes, resource, customised_markup)
    rest = _cheapest(pieces.rest_cores, pieces.rest_memory, sizes, resource, customised_markup)
    return pieces.full * full + np.where(pieces.rest_cores > 0, rest, 0.0)


def _cheapest(
    cores: NDArray[np.int64],
    gib: Floats,
    sizes: Sizes,
    resource: ResourcePrices,
    customised_markup: float | None,
) -> Floats:
    kinds, kind = _distinct(cores, gib)
    fits = (sizes.cores[None, :] >= kinds[:, :1]) & (sizes.gib[None, :] >= kinds[:, 1:] - 1e-9)
    price = np.where(fits, sizes.per_hour[None, :], np.inf).min(axis=1)
    if customised_markup is not None:
        own = kinds[:, 0] * resource.core_per_hour + kinds[:, 1] * resource.gib_per_hour
        price = np.minimum(price, customised_markup * own)
    return np.asarray(price[kind])


def _distinct(
    first: NDArray[np.generic], second: NDArray[np.generic]
) -> tuple[Floats, NDArray[np.intp]]:
    """The distinct pairs of two columns, shape (pairs, 2), and each row's place among them.

    Column by column: numpy is over ten times slower where it compares whole rows.
    """
    ones, one = np.unique(first, return_inverse=True)
    twos, two = np.unique(second, return_inverse=True)
    codes, place = np.unique(one * twos.size + two, return_inverse=True)
    return np.column_stack([ones[codes // twos.size], twos[codes % twos.size]]), place


@dataclass(frozen=True, slots=True)
class ReservedMachines:
    """Machines of one type that were reserved for a term."""

    instance: InstanceType
    count: int
    option: str
    relative_price: float
    on_demand_per_hour: float

    @property
    def per_hour(self) -> float:
        """What they all cost per hour, used or not."""
        return self.count * self.relative_price * self.on_demand_per_hour


def machines_for(
    cores: float, gib: float, option: str, relative_price: float, sizes: Sizes
) -> list[ReservedMachines]:
    """The machines that hold an amount: largest first, of the nearest ratio of cores to memory.

    What is left of the amount when no machine fits into it is not reserved.
    """
    if cores < 1.0:
        return []
    ratio = np.log(sizes.gib / sizes.cores)
    wanted = np.log(max(gib, 1e-9) / cores)
    distance = np.abs(ratio - wanted)
    near = np.flatnonzero(distance <= distance.min() + 1e-9)
    found = []
    left = cores + 1e-9
    for at in sorted(near.tolist(), key=lambda at: (-sizes.cores[at], sizes.per_hour[at])):
        count = int(left // sizes.cores[at])
        if count:
            left -= count * float(sizes.cores[at])
            found.append(
                ReservedMachines(
                    sizes.types[at], count, option, relative_price, float(sizes.per_hour[at])
                )
            )
    return found


def fleet(machines: Sequence[ReservedMachines]) -> tuple[NDArray[np.int64], Floats]:
    """Cores and GiB of every single machine."""
    count = [each.count for each in machines]
    cores = np.array([int(each.instance.cores) for each in machines], np.int64)
    gib = np.array([each.instance.memory_gib for each in machines], np.float64)
    return np.repeat(cores, count), np.repeat(gib, count)
