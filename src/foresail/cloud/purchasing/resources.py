"""Resources that are bought: their units, what is held of them, and whole machines for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.prices import Commitment, InstanceType, PriceCatalogue
from foresail.cloud.purchasing.demand import GIB_PER_CORE, BoughtJobs
from foresail.cloud.purchasing.terms import ResourcePrices, resource_prices
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError


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
    """Type and number of the machines."""
    option: str
    """Kind of purchase."""
    relative_price: float
    """Relative to on demand."""
    on_demand_per_hour: float
    """Price of one machine."""
    hours_left: float = math.inf
    """Hours from the moment of buying until it is given back."""

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


Amounts = Literal["any", "of-machines"]


@dataclass(frozen=True, slots=True)
class HeldCapacity:
    """So many units of a resource, for so many hours from the moment of buying (inf: for good)."""

    units: float
    hours: float = math.inf


def running_commitments(catalogue: PriceCatalogue) -> tuple[Commitment, ...]:
    """Return commitments that have not ended by the day of the prices."""
    return tuple(
        each
        for each in catalogue.commitments
        if each.until is None or each.until >= catalogue.valid_on
    )


def hours_left(commitment: Commitment, catalogue: PriceCatalogue) -> float:
    """Hours from the day of the prices to the end of the commitment's last day."""
    if commitment.until is None:
        return math.inf
    return ((commitment.until - catalogue.valid_on).days + 1) * 24.0


def held_by_slot(held: Sequence[HeldCapacity], slots: int, slot_hours: float) -> Floats:
    """Units that are held in each slot, on average over it; shape (slots,)."""
    begin = np.arange(slots) * slot_hours
    total = np.zeros(slots)
    for each in held:
        total += each.units * np.clip((each.hours - begin) / slot_hours, 0.0, 1.0)
    return total


def held_in_year(
    held: Sequence[HeldCapacity], year: int, year_hours: float
) -> list[tuple[float, float]]:
    """Stretches of a year from the moment of buying: the share of it, and the units held then."""
    begin, end = year * year_hours, (year + 1) * year_hours
    ends = {each.hours for each in held if begin < each.hours < end}
    edges = [begin, *sorted(ends), end]
    return [
        ((last - first) / year_hours, sum(each.units for each in held if each.hours > first))
        for first, last in pairwise(edges)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One of what jobs ask for."""

    name: str
    """``cores``, ``GiB`` or ``GPUs``."""
    units: Floats
    """Units that each job holds; shape (jobs,)."""
    per_hour: float
    """Price of a unit on demand."""
    held: tuple[HeldCapacity, ...] = ()
    """Amounts that the buyer has already."""
    standard_work: float = 1.0
    """Unit hours of all jobs on standard machines on demand, relative to those of ``units``: more
    than 1 where customised machines save some."""


def resources_of(
    jobs: BoughtJobs,
    catalogue: PriceCatalogue,
    amounts: Amounts = "any",
    customised_markup: float | None = None,
) -> tuple[Resource, ...]:
    """Cores, memory where the log knows it (else 4 GiB are part of each core), GPUs if asked for.

    (Memory is part of the core too where machines leave nothing but 4 GiB to each.)

    In amounts ``of-machines`` a job holds the part of the cheapest machine that it fills with its
    scarcest resource, idle rest and all; or where customised machines are sold and cheaper, its own
    amounts times their markup. Logs that know neither memory nor GPUs have nothing to waste.

    Raises ``InputError`` if jobs ask for GPUs and there are none, or no price of them is known.
    """
    prices = resource_prices(catalogue)
    _check_gpus(jobs, catalogue, prices)
    held = [
        (catalogue.find(each.instance).instance, each.count, hours_left(each, catalogue))
        for each in running_commitments(catalogue)
    ]
    cores = tuple(HeldCapacity(each.cores * count, hours) for each, count, hours in held)
    gib = tuple(HeldCapacity(each.memory_gib * count, hours) for each, count, hours in held)
    gpus = tuple(HeldCapacity(each.gpus * count, hours) for each, count, hours in held if each.gpus)
    units = standard = [jobs.cores, jobs.gib, jobs.gpus]
    apart = jobs.memory_known
    if amounts == "of-machines" and (jobs.memory_known or jobs.gpus.any()):
        units, standard = _of_machines(units, sizes_of(catalogue), prices, customised_markup)
        apart = not _all_standard(units, [each for each, _, _ in held])
    if not apart:
        with_memory = prices.core_per_hour + GIB_PER_CORE * prices.gib_per_hour
        found = [_resource("cores", 0, units, standard, jobs, with_memory, cores)]
    else:
        found = [
            _resource("cores", 0, units, standard, jobs, prices.core_per_hour, cores),
            _resource("GiB", 1, units, standard, jobs, prices.gib_per_hour, gib),
        ]
    if prices.gpu_per_hour is not None and jobs.gpus.any():
        found.append(_resource("GPUs", 2, units, standard, jobs, prices.gpu_per_hour, gpus))
    return tuple(found)


def _all_standard(units: Sequence[Floats], held: Sequence[InstanceType]) -> bool:
    """True if memory is 4 GiB to a core everywhere, so that planning it apart adds nothing."""
    return bool(
        np.allclose(units[1], GIB_PER_CORE * units[0])
        and all(np.isclose(each.memory_gib, GIB_PER_CORE * each.cores) for each in held)
    )


def gpu_ratios(jobs: BoughtJobs, resources: Sequence[Resource]) -> tuple[float, float]:
    """Cores and GiB per GPU of the jobs that ask for GPUs, each as long as it runs."""
    units = {each.name: each.units for each in resources}
    if "GPUs" not in units:
        return 0.0, 0.0
    hours = jobs.hours * (jobs.gpus > 0.0)
    work = float(units["GPUs"] @ hours)
    cores = float(units["cores"] @ hours) / work
    gib = float(units["GiB"] @ hours) / work if "GiB" in units else GIB_PER_CORE * cores
    return cores, gib


def _check_gpus(jobs: BoughtJobs, catalogue: PriceCatalogue, prices: ResourcePrices) -> None:
    """Refuse prices that have none of GPUs apart from cores, for jobs that ask for some."""
    asking = int((jobs.gpus > 0.0).sum())
    if not asking or (prices.gpu_per_hour is not None and _plain(catalogue)):
        return
    kinds = [offer.instance for offer in catalogue.offers]
    problem = "no machine without GPUs is on sale, to show what cores cost"
    if not any(kind.gpus for kind in kinds):
        problem = "no machine with GPUs is on sale"
    elif prices.gpu_per_hour is None:
        problem = "machines with GPUs cost no more than their cores and memory do elsewhere"
    raise InputError(
        problem,
        source=catalogue.name,
        field="gpus_per_task",
        value=f"{asking:,} of {jobs.hours.size:,} jobs ask for GPUs",
        expected="prices of types with and without GPUs (more --types, other --prices), or the "
        "other jobs alone (--filter drop_gpus)",
    )


def _plain(catalogue: PriceCatalogue) -> bool:
    return catalogue.customised is not None or any(not o.instance.gpus for o in catalogue.offers)


def _resource(
    name: str,
    at: int,
    units: Sequence[Floats],
    standard: Sequence[Floats],
    jobs: BoughtJobs,
    per_hour: float,
    held: Sequence[HeldCapacity],
) -> Resource:
    work = float(units[at] @ jobs.hours)
    of_standard = float(standard[at] @ jobs.hours)
    return Resource(name, units[at], per_hour, tuple(held), of_standard / work if work else 1.0)


def _of_machines(
    asked: Sequence[Floats],
    sizes: MachineSizes,
    prices: ResourcePrices,
    customised_markup: float | None,
) -> tuple[list[Floats], list[Floats]]:
    """Cores, GiB and GPUs that jobs hold at least cost, and on standard machines alone."""
    kinds, kind = distinct_rows(*asked)
    machine = np.column_stack([sizes.cores, sizes.gib, sizes.gpus])
    parts = parts_of(kinds, sizes)
    best = np.argmin(parts * sizes.per_hour, axis=1)
    of_kinds = np.arange(best.size)
    standard = parts[of_kinds, best][:, None] * machine[best]
    held = standard.copy()
    if customised_markup is not None:
        price = np.array([prices.core_per_hour, prices.gib_per_hour])
        own = customised_markup * kinds[:, :2]
        cheaper = (kinds[:, 2] == 0.0) & (own @ price < standard[:, :2] @ price)
        held[cheaper, :2] = own[cheaper]
        held[cheaper, 2] = 0.0
    return [column[kind] for column in held.T], [column[kind] for column in standard.T]
