"""Real machine sizes: which type holds a piece of a job, and which hold an amount reserved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.prices import InstanceType, PriceCatalogue
from foresail.cloud.purchasing.demand import GIB_PER_CORE, BoughtJobs
from foresail.model.distribution import Booleans, Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class MachineSizes:
    """Machines on sale: cores, GiB, GPUs and price on demand per hour, each of shape (types,)."""

    types: tuple[InstanceType, ...]
    cores: Floats
    gib: Floats
    gpus: Floats
    per_hour: Floats

    @classmethod
    def from_types(cls, types: Iterable[InstanceType], per_hour: Iterable[float]) -> MachineSizes:
        """Some types at their prices."""
        kinds = tuple(types)
        cores, gib, gpus = np.array([(e.cores, e.memory_gib, e.gpus) for e in kinds]).T.copy()
        return cls(kinds, cores, gib, gpus, np.array([*per_hour]))

    def only(self, kept: Booleans) -> MachineSizes:
        """Some of the types."""
        types = (each for each, keep in zip(self.types, kept, strict=True) if keep)
        return MachineSizes.from_types(types, self.per_hour[kept])


def sizes_of(catalogue: PriceCatalogue) -> MachineSizes:
    """The machines of a catalogue, at the buyer's prices."""
    offers = catalogue.after_discounts().offers
    return MachineSizes.from_types(
        (offer.instance for offer in offers), (offer.on_demand_per_hour for offer in offers)
    )


def tasks_together(jobs: BoughtJobs, sizes: MachineSizes) -> Integers:
    """Count the tasks of each job that some machine holds together, all at most; shape (jobs,)."""
    kinds, kind = distinct_rows(jobs.cores_per_task, jobs.gib_per_task, jobs.gpus_per_task)
    held = np.minimum(sizes.cores / kinds[:, :1], sizes.gib / kinds[:, 1:2])
    by_gpus = np.full(held.shape, np.inf)
    np.divide(sizes.gpus, kinds[:, 2:], out=by_gpus, where=kinds[:, 2:] > 0.0)
    held = np.floor(np.minimum(held, by_gpus) + 1e-9).max(axis=1)
    return np.asarray(np.minimum(held[kind].astype(np.int64), jobs.tasks))


def parts_of(asked: Floats, sizes: MachineSizes) -> Floats:
    """Share of each type that is filled, by its scarcest resource; inf where it lacks one.

    ``asked`` has cores, GiB and GPUs, shape (kinds, 3); the result shape (kinds, types).
    """
    machine = np.column_stack([sizes.cores, sizes.gib, sizes.gpus])
    parts = np.zeros((asked.shape[0], *machine.shape))
    with np.errstate(divide="ignore"):
        np.divide(asked[:, None, :], machine, out=parts, where=asked[:, None, :] > 0.0)
    return np.asarray(parts.max(axis=2))


def distinct_rows(*columns: NDArray[np.generic]) -> tuple[Floats, NDArray[np.intp]]:
    """The distinct rows of some columns, shape (rows, columns), and each row's place among them.

    Column by column: numpy is over ten times slower where it compares whole rows.
    """
    place = np.zeros(columns[0].size, np.intp)
    kinds = np.empty((1, 0))
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        codes, place = np.unique(place * values.size + code, return_inverse=True)
        kinds = np.column_stack([kinds[codes // values.size], values[codes % values.size]])
    return kinds, place


@dataclass(frozen=True, slots=True)
class ReservedMachines:
    """Machines of one type that are paid for, used or not."""

    instance: InstanceType
    count: int
    """Which, and how many."""
    option: str
    """How they were bought."""
    relative_price: float
    """Relative to on demand."""
    on_demand_per_hour: float
    """Of one."""
    hours_left: float = math.inf
    """Until it is given back, from the moment of buying."""

    @property
    def per_hour(self) -> float:
        """Cost of all of them in an hour that they are there, used or not."""
        return self.count * self.relative_price * self.on_demand_per_hour


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount to reserve: cores, GiB, and GPUs with what their jobs ask for beside each."""

    cores: float
    gib: float
    gpus: float = 0.0
    cores_per_gpu: float = 0.0
    gib_per_gpu: float = 0.0

    @classmethod
    def from_units(cls, units: Mapping[str, float], per_gpu: tuple[float, float]) -> Amount:
        """Units by resource; where memory is not among them, 4 GiB for each core."""
        cores = units["cores"]
        gib = units.get("GiB", GIB_PER_CORE * cores)
        return cls(cores, gib, units.get("GPUs", 0.0), *per_gpu)


def machines_for(
    amount: Amount, option: str, relative_price: float, sizes: MachineSizes
) -> list[ReservedMachines]:
    """The machines that hold an amount, the largest first.

    GPUs come first, on the types that hold one, with the cores and memory beside it, at least
    cost. What cores and memory are left become machines without GPUs of the nearest ratio. What is
    left of an amount when no machine fits into it is not reserved.
    """
    with_gpus = sizes.gpus > 0.0
    found = []
    if amount.gpus > 0.0 and with_gpus.any():
        kinds = sizes.only(with_gpus)
        part = np.maximum(
            1.0 / kinds.gpus,
            np.maximum(amount.cores_per_gpu / kinds.cores, amount.gib_per_gpu / kinds.gib),
        )
        found = _filled(
            kinds, part * kinds.per_hour, 1.0 / part, amount.gpus, option, relative_price
        )
    cores = amount.cores - amount.gpus * amount.cores_per_gpu
    gib = amount.gib - amount.gpus * amount.gib_per_gpu
    if cores < 1.0:
        return found
    plain = sizes if with_gpus.all() else sizes.only(~with_gpus)
    distance = np.abs(np.log(plain.gib / plain.cores) - np.log(max(gib, 1e-9) / cores))
    return found + _filled(plain, distance, plain.cores, cores, option, relative_price)


def _filled(
    sizes: MachineSizes,
    distance: Floats,
    holds: Floats,
    amount: float,
    option: str,
    relative_price: float,
) -> list[ReservedMachines]:
    """Machines of the least distance, the largest first, each holding so much of an amount."""
    near = np.flatnonzero(distance <= distance.min() * (1.0 + 1e-9) + 1e-9)
    found = []
    left = amount + 1e-9
    for at in sorted(near.tolist(), key=lambda at: (-holds[at], sizes.per_hour[at])):
        count = int(left // holds[at])
        if count:
            left -= count * float(holds[at])
            found.append(
                ReservedMachines(
                    sizes.types[at], count, option, relative_price, float(sizes.per_hour[at])
                )
            )
    return found
