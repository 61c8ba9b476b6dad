"""The practical policy: reserve by last year, rent the rest by predicted runtimes (5.3 of 003)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.prices import Catalogue
from foresail.cloud.purchasing.demand import GIB_PER_CORE, HOURS_PER_MONTH, BoughtJobs
from foresail.cloud.purchasing.job_prices import (
    KINDS,
    ON_DEMAND,
    SPOT_BLOCK,
    TRANSIENT,
    Choice,
    block_cost,
    choose_options,
    transient_cost,
)
from foresail.cloud.purchasing.machines import (
    ReservedMachines,
    fleet,
    machines_for,
    pieces_of,
    rent_per_hour,
    sizes_of,
)
from foresail.cloud.purchasing.offline import (
    DEFAULT_SETTINGS,
    OfflineSettings,
    plan_offline,
    reserved_name,
)
from foresail.cloud.purchasing.sustained import month_cost
from foresail.cloud.purchasing.terms import PurchaseTerms, resource_prices
from foresail.kernels.heaps import timetable
from foresail.kernels.packing import machines_of
from foresail.kernels.reserved_placement import Pieces, place_jobs
from foresail.model.errors import InputError

Floats = NDArray[np.float64]

RESERVED = "reserved"


@dataclass(frozen=True, eq=False)
class OnlineOutcome:
    """What the policy paid after the training period, in the catalogue's currency.

    Parameters
    ----------
    reserved
        The machines it reserved at the beginning.
    jobs, hours
        How many jobs it served, over what time.
    cost
        What it paid; reserved machines are paid for this time alone (they serve on).
    all_on_demand_cost
        What the same jobs cost on machines on demand, each the cheapest that holds it.
    over_time
        Month, option, and there: core hours used and idle, cost.
    revoked_hours
        Expected core hours of transient runs that were lost.
    """

    reserved: tuple[ReservedMachines, ...]
    jobs: int
    hours: float
    cost: float
    all_on_demand_cost: float
    over_time: pl.DataFrame
    revoked_hours: float


@dataclass(frozen=True, slots=True, eq=False)
class OnlinePolicy:
    """Machines reserved after a training period; ready to serve jobs.

    Parameters
    ----------
    catalogue
        Of the machines on sale.
    terms
        What is sold, relative to on demand.
    settings
        Of the plan in hindsight for the training period.
    reserved
        The machines.
    """

    catalogue: Catalogue
    terms: PurchaseTerms
    settings: OfflineSettings
    reserved: tuple[ReservedMachines, ...]


def train(
    jobs: BoughtJobs,
    catalogue: Catalogue,
    terms: PurchaseTerms,
    settings: OfflineSettings = DEFAULT_SETTINGS,
) -> OnlinePolicy:
    """Reserve what would have been best for past jobs, if they come again (spec section 4.2).

    The amounts of cores and memory of each term become machines of the nearest ratio, the largest
    first. Scheduled reservations are left out: their discount is too small to be risked.

    Parameters
    ----------
    jobs
        Of the training period.
    catalogue
        Machines on sale, of one region.
    terms
        What is sold.
    settings
        Of the plan; the log is repeated over the terms whatever they say.
    """
    repeated = replace(settings, extension="repeat")
    bought = replace(terms, scheduled=None)
    cores = plan_offline(jobs, jobs.cores, bought, repeated)
    memory = (
        plan_offline(jobs, jobs.gib, bought, repeated, resource="GiB")
        if jobs.memory_known
        else None
    )
    sizes = sizes_of(catalogue)
    reserved: list[ReservedMachines] = []
    for years, price in terms.reserved:
        name = reserved_name(years)
        amount = cores.mean_units(name)
        gib = GIB_PER_CORE * amount if memory is None else memory.mean_units(name)
        reserved += machines_for(amount, gib, name, price, sizes)
    return OnlinePolicy(catalogue, terms, settings, tuple(reserved))


def serve(policy: OnlinePolicy, jobs: BoughtJobs, predicted_hours: Floats) -> OnlineOutcome:
    """Run jobs on what is reserved, and rent machines for those that find no room (section 4.2).

    A job runs on reserved machines if all of it fits there when it starts; else it is rented the
    option that is cheapest for its predicted runtime (see ``choose_options``), on the cheapest
    machines that hold it. One that outlives its spot block, or is revoked, starts again on demand;
    revocations are paid in expectation.

    Parameters
    ----------
    policy
        What was reserved, and the prices.
    jobs
        In order of start.
    predicted_hours
        Runtimes as they are predicted, shape (jobs,); or equally likely ones, shape (jobs,
        runtimes), of which the expected cost decides.

    Raises
    ------
    InputError
        If there are no jobs, a prediction is not above 0, or no machine holds a task.
    """
    if not jobs.hours.size:
        raise InputError("no jobs after the training period", expected="a longer log")
    if not (predicted_hours > 0.0).all():
        raise InputError(
            "not a prediction",
            field="predicted_hours",
            value=float(np.min(predicted_hours)),
            expected="hours above 0",
        )
    sizes = sizes_of(policy.catalogue)
    pieces = pieces_of(jobs, sizes)
    resource = resource_prices(policy.catalogue)
    standard = rent_per_hour(pieces, sizes, resource, None)
    rent = rent_per_hour(pieces, sizes, resource, policy.terms.customised_markup)
    placed = _placed(jobs, pieces, policy.reserved)
    believed = predicted_hours.reshape(jobs.hours.size, -1)
    choice = choose_options(believed, policy.terms, policy.settings.normalisation)
    rented = _Rented(jobs, rent, ~placed, choice, policy.terms)
    months = int(jobs.span_hours / HOURS_PER_MONTH) + 1
    rows = [*_reserved_rows(policy, jobs, placed, months), *rented.rows(months)]
    over_time = pl.concat(
        pl.DataFrame(
            {
                "month": np.arange(months),
                "option": [name] * months,
                "used_hours": used,
                "idle_hours": idle,
                "cost": cost,
            }
        )
        for name, used, idle, cost in rows
    )
    return OnlineOutcome(
        reserved=policy.reserved,
        jobs=jobs.hours.size,
        hours=jobs.span_hours,
        cost=float(over_time["cost"].sum()),
        all_on_demand_cost=float(standard @ jobs.hours),
        over_time=over_time,
        revoked_hours=rented.revoked_hours,
    )


def _placed(
    jobs: BoughtJobs, pieces: Pieces, reserved: tuple[ReservedMachines, ...]
) -> NDArray[np.bool_]:
    cores, gib = fleet(reserved)
    if not cores.size:
        return np.zeros(jobs.hours.size, np.bool_)
    return place_jobs(
        jobs.start_hours,
        jobs.start_hours + jobs.hours,
        pieces,
        machines_of(cores, gib),
        timetable(jobs.hours.size),
    )


Row = tuple[str, Floats, Floats, Floats]


def _reserved_rows(
    policy: OnlinePolicy, jobs: BoughtJobs, placed: NDArray[np.bool_], months: int
) -> list[Row]:
    """One row for all reserved machines: jobs do not care which term theirs has."""
    if not policy.reserved:
        return []
    cores = sum(each.count * each.instance.cores for each in policy.reserved)
    per_hour = sum(each.per_hour for each in policy.reserved)
    lengths = np.diff(np.append(np.arange(months) * HOURS_PER_MONTH, jobs.span_hours))
    used = by_month(jobs.start_hours, jobs.hours, jobs.cores * placed, months)
    return [(RESERVED, used, cores * lengths - used, per_hour * lengths)]


class _Rented:
    """Jobs that found no room, by the option that was chosen for each."""

    def __init__(
        self,
        jobs: BoughtJobs,
        rent: Floats,
        rented: NDArray[np.bool_],
        choice: Choice,
        terms: PurchaseTerms,
    ) -> None:
        hours, kind = jobs.hours, choice.kind
        self._jobs, self._rent, self._rented, self._kind = jobs, rent, rented, kind
        self._tiers = terms.sustained_tiers
        self._own = np.zeros(hours.size)
        self._on_demand = np.where(kind == ON_DEMAND, hours, 0.0)
        self._lost = np.zeros(hours.size)
        if terms.transient is not None:
            of_kind = kind == TRANSIENT
            cost, running = transient_cost(hours, terms.transient, on_demand_price=0.0)
            restarted = terms.transient.revocation.revoked(hours) * hours
            self._own[of_kind] = cost[of_kind]
            self._on_demand[of_kind] = restarted[of_kind]
            self._lost[of_kind] = (running - hours)[of_kind]
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
        """Of what is on demand, restarts too, after the discount for sustained use."""
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
