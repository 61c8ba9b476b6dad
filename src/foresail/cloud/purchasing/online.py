"""The practical policy: reserve by last year, rent the rest by predicted runtimes (5.3 of 003)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.prices import Catalogue
from foresail.cloud.purchasing.demand import HOURS_PER_MONTH, HOURS_PER_YEAR, BoughtJobs
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
    Amount,
    ReservedMachines,
    machines_for,
    pieces_of,
    rent_per_hour,
    sizes_of,
)
from foresail.cloud.purchasing.offline import (
    COMMITTED,
    DEFAULT_SETTINGS,
    SCHEDULED,
    OfflinePlan,
    OfflineSettings,
    plan_offline,
    reserved_name,
)
from foresail.cloud.purchasing.owned import hours_left, running_commitments
from foresail.cloud.purchasing.placing import Fleet, Placed, fleets_of, place
from foresail.cloud.purchasing.resources import gpu_ratios, resources_of
from foresail.cloud.purchasing.schedules import price_of_hours
from foresail.cloud.purchasing.sustained import month_cost
from foresail.cloud.purchasing.terms import PurchaseTerms, resource_prices
from foresail.model.errors import InputError

Floats = NDArray[np.float64]

RESERVED = "reserved"


@dataclass(frozen=True, eq=False)
class OnlineOutcome:
    """What the policy paid after the training period, in the catalogue's currency.

    Parameters
    ----------
    reserved
        The machines it reserved at the beginning, and those it had.
    jobs, hours
        How many jobs it served, over what time.
    cost
        What it paid; reserved machines are paid for this time alone (they serve on), and what was
        committed before is in it for nothing.
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
        The machines, those that the buyer had before among them.
    first_hour_of_week
        Of the training period, from Monday 00:00.
    """

    catalogue: Catalogue
    terms: PurchaseTerms
    settings: OfflineSettings
    reserved: tuple[ReservedMachines, ...]
    first_hour_of_week: float


def train(
    jobs: BoughtJobs,
    catalogue: Catalogue,
    terms: PurchaseTerms,
    settings: OfflineSettings = DEFAULT_SETTINGS,
) -> OnlinePolicy:
    """Reserve what would have been best for past jobs, if they come again (spec section 4.2).

    The amounts of each term become machines (see ``machines_for``). So does the amount that was
    scheduled; its machines, the largest first, stand for as many levels as they have cores, from
    the bottom, and have the windows of the level in the middle of these. Machines that the
    catalogue says are committed already are there until their last day, counted from the end of the
    training period, and less is reserved.

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

    Raises
    ------
    InputError
        If jobs ask for GPUs and none are on sale.
    """
    repeated = replace(settings, extension="repeat")
    resources = resources_of(jobs, catalogue, settings.amounts, terms.customised_markup)
    plans = {
        each.name: plan_offline(
            jobs, each.units, terms, repeated, resource=each.name, held=each.held
        )
        for each in resources
    }
    sizes = sizes_of(catalogue)
    reserved = _committed(catalogue)
    per_gpu = gpu_ratios(jobs, resources)
    for years, price in terms.reserved:
        name = reserved_name(years)
        amount = {resource: plan.mean_units(name) for resource, plan in plans.items()}
        reserved += machines_for(Amount.of(amount, per_gpu), name, price, sizes)
    # Schedules are of cores: GPUs are not scheduled.
    scheduled = {name: plans[name].mean_units(SCHEDULED) for name in plans if name != "GPUs"}
    at_peak = 1.0 if terms.scheduled is None else terms.scheduled.peak
    found = machines_for(Amount.of(scheduled, (0.0, 0.0)), SCHEDULED, at_peak, sizes)
    reserved += _with_windows(found, plans["cores"])
    return OnlinePolicy(catalogue, terms, settings, tuple(reserved), jobs.first_hour_of_week)


def _committed(catalogue: Catalogue) -> list[ReservedMachines]:
    """What the buyer has, at no further cost."""
    found = []
    for each in running_commitments(catalogue):
        offer = catalogue.find(each.instance)
        left = hours_left(each, catalogue)
        found.append(
            ReservedMachines(
                offer.instance, each.count, COMMITTED, 0.0, offer.on_demand_per_hour, None, left
            )
        )
    return found


def _with_windows(machines: list[ReservedMachines], plan: OfflinePlan) -> list[ReservedMachines]:
    """Scheduled machines, each with the windows of the middle one of the levels that it is for."""
    terms = [each for each in plan.reservations if each.option == SCHEDULED]
    of_years = list(zip(terms, plan.schedules, strict=True))
    first = [each for each in of_years if each[0].start_hours < HOURS_PER_YEAR]
    # Where the first year has none, those of a later one: what is planned for repeats.
    levels = first or of_years
    tops = np.cumsum([term.units for term, _ in levels])
    found = []
    below = 0.0
    for each in (replace(kind, count=1) for kind in machines for _ in range(kind.count)):
        middle = below + each.instance.cores / 2.0
        level = min(int(np.searchsorted(tops, middle)), tops.size - 1)
        found.append(replace(each, schedule=levels[level][1]))
        below += each.instance.cores
    return found


def serve(
    policy: OnlinePolicy, jobs: BoughtJobs, predicted_hours: Floats, elapsed_hours: float = 0.0
) -> OnlineOutcome:
    """Run jobs on what is paid for, and rent machines for those that find no room (section 4.2).

    A job runs on reserved machines if all of it fits there when it starts; on machines that are
    given back, as scheduled ones are at the end of their window, only if it is predicted to end
    before. Else it is rented the option that is cheapest for its predicted runtime (see
    ``choose_options``), on the cheapest machines that hold it. One that outlives its spot block or
    window, or is revoked, starts again on demand; revocations are paid in expectation.

    Parameters
    ----------
    policy
        What was reserved, and the prices.
    jobs
        In order of start.
    predicted_hours
        Runtimes as they are predicted, shape (jobs,); or equally likely ones, shape (jobs,
        runtimes), of which the expected cost decides.
    elapsed_hours
        From the first job of the training period to the first of these, for the hours of
        schedules.

    Raises
    ------
    InputError
        If there are no jobs, or a prediction is not above 0.
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
    believed = predicted_hours.reshape(jobs.hours.size, -1)
    first_hour = policy.first_hour_of_week + elapsed_hours
    fleets = fleets_of(policy.reserved)
    placed = place(jobs, fleets, believed.mean(axis=1), first_hour)
    choice = choose_options(believed, policy.terms, policy.settings.normalisation)
    choice.kind[placed.cut] = ON_DEMAND
    rented = _Rented(jobs, rent, ~placed.done, choice, policy.terms)
    months = int(jobs.span_hours / HOURS_PER_MONTH) + 1
    rows = [
        *_paid_rows(policy, jobs, fleets, placed, months, first_hour),
        *rented.rows(months),
    ]
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


Row = tuple[str, Floats, Floats, Floats]


def _paid_rows(
    policy: OnlinePolicy,
    jobs: BoughtJobs,
    fleets: list[Fleet],
    placed: Placed,
    months: int,
    first_hour: float,
) -> list[Row]:
    """What is committed, reserved (whatever the term) and scheduled: a row for each there is."""
    rows: dict[str, Row] = {}
    for place_of, fleet in enumerate(fleets):
        option = fleet.machines[0].option
        name = option if option in (COMMITTED, SCHEDULED) else RESERVED
        own = jobs.cores * ((placed.fleet == place_of) & ~placed.cut)
        used = by_month(jobs.start_hours, jobs.hours, own, months)
        hours, price = _hours_there(policy, fleet, jobs.span_hours, months, first_hour)
        cores = sum(each.count * each.instance.cores for each in fleet.machines)
        money = sum(each.count * each.on_demand_per_hour for each in fleet.machines)
        cost = money * price
        if fleet.schedule is None:
            cost = hours * sum(each.per_hour for each in fleet.machines)
        _, before, idle, paid = rows.get(name, (name, *np.zeros((3, months))))
        rows[name] = (name, before + used, idle + cores * hours - used, paid + cost)
    return list(rows.values())


def _hours_there(
    policy: OnlinePolicy, fleet: Fleet, span_hours: float, months: int, first_hour: float
) -> tuple[Floats, Floats]:
    """Hours of each month in which a fleet is there; and of a scheduled one, what they cost."""
    edges = np.minimum(np.arange(months + 1) * HOURS_PER_MONTH, span_hours)
    if fleet.schedule is None:
        return np.diff(np.minimum(edges, fleet.hours_left)), np.zeros(months)
    hour: Floats = np.arange(np.ceil(span_hours), dtype=np.float64)
    there = np.isfinite(fleet.closes(hour, first_hour)).astype(np.float64)
    assert policy.terms.scheduled is not None
    price = price_of_hours(policy.terms.scheduled, hour + first_hour) * there
    month = np.minimum((hour / HOURS_PER_MONTH).astype(np.int64), months - 1)
    return _by_month(month, there, months), _by_month(month, price, months)


def _by_month(month: NDArray[np.int64], weight: Floats, months: int) -> Floats:
    return np.bincount(month, weight, months).astype(np.float64)


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
