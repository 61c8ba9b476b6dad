"""Placement of jobs on machines paid for, and payments for those that find no room there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.prices import GIB, InstanceType
from foresail.cloud.purchasing.demand import (
    HOURS_PER_MONTH,
    ON_DEMAND,
    TRANSIENT,
    BoughtJobs,
    transient_cost,
)
from foresail.cloud.purchasing.machines import (
    MachineSizes,
    ReservedMachines,
    distinct_rows,
    parts_of,
    tasks_together,
)
from foresail.cloud.purchasing.offline import Row, month_cost
from foresail.cloud.purchasing.offline_plan import COMMITTED
from foresail.cloud.purchasing.terms import ResourcePrices
from foresail.cloud.waiting.kernels.placing import machines_of, timetable
from foresail.model.arrays import Booleans, Floats
from foresail_studies.purchasing.kernels.reserved_placement import Pieces, place_jobs
from foresail_studies.purchasing.retired_offers import (
    KINDS,
    SPOT_BLOCK,
    LevelSchedule,
    PublishedTerms,
    RentedOptions,
    block_cost,
    schedule_of,
)

_PARTS_OF_GPU: Final = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class JobPieces:
    """Jobs as ``full`` equal pieces and one ``rest``; arrays of shape (jobs,)."""

    together: NDArray[np.int64]
    """Tasks of a full piece; 0: no machine holds one, and all tasks are the rest."""
    full: NDArray[np.int64]
    """How many such pieces."""
    rest: NDArray[np.int64]
    """Tasks beyond them."""
    jobs: BoughtJobs
    """Whose tasks."""

    def of_full(self) -> Floats:
        """Cores (whole ones), GiB and GPUs of a full piece; shape (jobs, 3)."""
        return self._resources_of(self.together)

    def of_rest(self) -> Floats:
        """Those of the rest."""
        return self._resources_of(self.rest)

    def _resources_of(self, tasks: NDArray[np.int64]) -> Floats:
        jobs = self.jobs
        return np.column_stack(
            [
                np.ceil(tasks * jobs.cores_per_task - 1e-9),
                tasks * jobs.gib_per_task,
                tasks * jobs.gpus_per_task,
            ]
        )


def pieces_of(jobs: BoughtJobs, sizes: MachineSizes) -> JobPieces:
    """Take jobs apart: as many tasks together as some machine holds, and the rest."""
    together = tasks_together(jobs, sizes)
    whole = np.maximum(together, 1)
    full: NDArray[np.int64] = np.where(together > 0, jobs.tasks // whole, 0)
    return JobPieces(together, full, jobs.tasks - full * together, jobs)


def rent_per_hour(
    pieces: JobPieces,
    sizes: MachineSizes,
    resource: ResourcePrices,
    customised_markup: float | None,
) -> Floats:
    """Price per hour on demand of the cheapest machines that hold each job; shape (jobs,).

    A customised machine has the piece's own size, at the prices of cores and GiB times the markup;
    it has no GPUs. What no machine holds gets several, as many as it fills.
    """
    full = _cheapest(pieces.of_full(), sizes, resource, customised_markup)
    rest = _cheapest(pieces.of_rest(), sizes, resource, customised_markup)
    return pieces.full * full + np.where(pieces.rest > 0, rest, 0.0)


def _cheapest(
    asked: Floats, sizes: MachineSizes, resource: ResourcePrices, customised_markup: float | None
) -> Floats:
    kinds, kind = distinct_rows(*asked.T)
    fits = sizes.cores >= kinds[:, :1]
    fits &= sizes.gib >= kinds[:, 1:2] - 1e-9
    fits &= sizes.gpus >= kinds[:, 2:] - 1e-9
    price = np.where(fits, sizes.per_hour[None, :], np.inf).min(axis=1)
    large = np.isinf(price)
    filled = np.ceil(parts_of(kinds[large], sizes) - 1e-9)
    price[large] = (filled * sizes.per_hour).min(axis=1)
    if customised_markup is not None:
        own = kinds[:, 0] * resource.core_per_hour + kinds[:, 1] * resource.gib_per_hour
        price = np.where(kinds[:, 2] == 0.0, np.minimum(price, customised_markup * own), price)
    return np.asarray(price[kind])


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines that are there in the same hours, all of them with GPUs or none."""

    machines: tuple[ReservedMachines, ...]
    """At least one."""
    schedule: LevelSchedule | None
    hours_left: float
    """As of each machine."""

    @property
    def with_gpus(self) -> bool:
        """Return whether it is for jobs that ask for GPUs, and no others."""
        return self.machines[0].instance.gpus > 0.0

    def closes(self, start_hours: Floats, first_hour: float) -> Floats:
        """Return when a machine is given back that is there at each start; -inf where none is.

        ``first_hour`` is the hour at 0, counted from a Monday, 00:00.
        """
        closes = np.where(start_hours < self.hours_left, self.hours_left, -np.inf)
        if self.schedule is None:
            return closes
        return np.minimum(closes, self.schedule.closes(start_hours + first_hour) - first_hour)


def fleets_of(machines: Sequence[ReservedMachines]) -> list[Fleet]:
    """Machines by when they are there: what ends soonest first, what is scheduled last.

    Committed ones are apart from reserved ones.
    """
    groups: dict[tuple[object, ...], list[ReservedMachines]] = {}
    for each in machines:
        schedule = schedule_of(each)
        hours_there = schedule and (schedule.period, schedule.windows)
        with_gpus = each.instance.gpus > 0.0
        key = (hours_there, each.hours_left, with_gpus, each.option == COMMITTED)
        groups.setdefault(key, []).append(each)
    fleets = [Fleet(tuple(own), schedule_of(own[0]), own[0].hours_left) for own in groups.values()]
    return sorted(fleets, key=lambda fleet: (fleet.schedule is not None, fleet.hours_left))


@dataclass(frozen=True, slots=True, eq=False)
class FleetPlacement:
    """Jobs that each fleet takes; arrays of shape (jobs,)."""

    fleet: NDArray[np.int64]
    """Place of the fleet; -1: none."""
    cut: Booleans
    """Jobs whose machine was given back before they ended."""

    @property
    def done(self) -> Booleans:
        """Jobs that need no other machine."""
        return (self.fleet >= 0) & ~self.cut


def place(
    jobs: BoughtJobs, fleets: Sequence[Fleet], believed_hours: Floats, first_hour: float
) -> FleetPlacement:
    """Jobs in order of start on the first fleet that holds all of one, best fit, none waiting.

    A fleet that is given back takes only jobs that are believed to end before. One that runs on
    nevertheless loses what it did.

    Jobs are in order of start, fleets in order of preference; ``believed_hours`` are runtimes,
    shape (jobs,). ``first_hour`` is the hour at 0, counted from a Monday, 00:00.
    """
    fleet = np.full(jobs.hours.size, -1, np.int64)
    cut = np.zeros(jobs.hours.size, np.bool_)
    asks_gpus = jobs.gpus_per_task > 0.0
    for place_of, own in enumerate(fleets):
        closes = own.closes(jobs.start_hours, first_hour)
        candidate = (fleet < 0) & (asks_gpus == own.with_gpus)
        candidate &= jobs.start_hours + believed_hours <= closes
        runs = np.minimum(jobs.hours, closes - jobs.start_hours)
        at = np.flatnonzero(candidate)
        taken = at[_fitting(jobs.only(candidate), runs[at], own)]
        fleet[taken], cut[taken] = place_of, runs[taken] < jobs.hours[taken]
    return FleetPlacement(fleet, cut)


def _fitting(jobs: BoughtJobs, hours: Floats, fleet: Fleet) -> Booleans:
    """Return which of some jobs find room; shape (jobs,)."""
    if not jobs.hours.size:
        return np.zeros(0, np.bool_)
    split = pieces_of(jobs, _sizes(fleet))
    # A task that no machine of the fleet holds is a rest, which finds no room.
    pieces = Pieces(split.full, *_asked(split.of_full()), *_asked(split.of_rest()))
    kinds = list(_each(fleet))
    machines = machines_of(
        np.array([int(kind.cores) for kind in kinds], np.int64),
        np.array([kind.memory_bytes for kind in kinds]),
        np.array([kind.gpus for kind in kinds]) * _PARTS_OF_GPU,
    )
    return place_jobs(
        jobs.start_hours,
        jobs.start_hours + hours,
        pieces,
        machines,
        timetable(jobs.hours.size),
    )


def _asked(asked: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Cores, bytes and thousandths of GPUs, whole numbers, so that none is lost on the way."""
    cores, gib, gpus = asked.T
    return cores.astype(np.int64), np.rint(gib * GIB), np.ceil(gpus * _PARTS_OF_GPU - 1e-6)


def _each(fleet: Fleet) -> Iterator[InstanceType]:
    return (each.instance for each in fleet.machines for _ in range(each.count))


def _sizes(fleet: Fleet) -> MachineSizes:
    machines = fleet.machines
    return MachineSizes.from_types(
        (each.instance for each in machines), (each.on_demand_per_hour for each in machines)
    )


class RentedJobs:
    """Jobs that found no room, by the option that was chosen for each.

    Parameters
    ----------
    jobs
        All jobs.
    rent
        What the machines that a job fills cost an hour on demand; shape (jobs,).
    rented
        Which jobs found no room; shape (jobs,).
    choice
        The option of each.
    terms
        What is sold.
    """

    def __init__(
        self,
        jobs: BoughtJobs,
        rent: Floats,
        rented: NDArray[np.bool_],
        choice: RentedOptions,
        terms: PublishedTerms,
    ) -> None:
        hours, kind = jobs.hours, choice.kind
        self._jobs, self._rent, self._rented, self._kind = jobs, rent, rented, kind
        self._tiers = terms.sustained_tiers
        self._own = np.zeros(hours.size)
        self._on_demand = np.where(kind == ON_DEMAND, hours, 0.0)
        self._lost = np.zeros(hours.size)
        if terms.transient is not None:
            of_kind = kind == TRANSIENT
            lives = terms.transient.revocation
            cost = transient_cost(hours, terms.transient, on_demand_price=0.0)
            lost = lives.revoked(hours)
            self._own[of_kind] = cost[of_kind]
            self._on_demand[of_kind] = (lost * hours)[of_kind]
            self._lost[of_kind] = (lost * lives.mean_run(hours))[of_kind]
        if terms.spot_blocks:
            of_kind = kind == SPOT_BLOCK
            block, ran = choice.block[of_kind], hours[of_kind]
            again = np.where(ran > block, ran, 0.0)
            price = np.asarray(terms.spot_blocks)[block - 1]
            self._own[of_kind] = block_cost(ran, block, price) - again
            self._on_demand[of_kind] = again

    @property
    def revoked_hours(self) -> float:
        """Expected core hours of transient runs that come to nothing."""
        return float(self._lost @ (self._jobs.cores * self._rented))

    def rows(self, months: int) -> list[Row]:
        """Month by month: core hours used and money, of each option."""
        jobs = self._jobs
        rows = []
        for code, name in enumerate(KINDS):
            chosen = self._rented & (self._kind == code)
            if code != ON_DEMAND and not chosen.any():
                continue
            used = by_month(jobs.start_hours, jobs.hours, jobs.cores * chosen, months)
            per_hour = self._own * self._rent / jobs.hours
            cost = by_month(jobs.start_hours, jobs.hours, per_hour * chosen, months)
            if code == ON_DEMAND:
                cost = cost + self._on_demand_cost(months)
            rows.append((name, used, np.zeros(months), cost))
        return rows

    def _on_demand_cost(self, months: int) -> Floats:
        """Return the on-demand cost, restarts too, after the discount for sustained use."""
        jobs = self._jobs
        share = self._on_demand / jobs.hours * self._rented
        money = by_month(jobs.start_hours, jobs.hours, share * self._rent, months)
        if not self._tiers:
            return money
        cores = by_month(jobs.start_hours, jobs.hours, share * jobs.cores, months)
        average = cores / HOURS_PER_MONTH
        ratio = np.ones(months)
        np.divide(month_cost(average, self._tiers), average, out=ratio, where=average > 0.0)
        return money * ratio


def by_month(start_hours: Floats, hours: Floats, weight: Floats, months: int) -> Floats:
    """Hours times weight of all jobs in every month; shape (months,)."""
    kept = weight != 0.0
    start, weight = start_hours[kept], weight[kept]
    end = start + hours[kept]
    done = np.empty(months + 1)
    for month in range(months + 1):
        at = month * HOURS_PER_MONTH if month < months else np.inf
        done[month] = weight @ (np.minimum(end, at) - np.minimum(start, at))
    return np.diff(done)
