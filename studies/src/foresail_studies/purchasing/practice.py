"""The practical policy on a log: what it reserves after a training period, and how that serves.

Jobs go to machines that are reserved; those that find no room there are rented the option that is
cheapest for their predicted runtime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.prices import GIB, PriceCatalogue
from foresail.cloud.purchasing.demand import (
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    ON_DEMAND,
    TRANSIENT,
    BoughtJobs,
    bought_jobs,
    transient_cost,
)
from foresail.cloud.purchasing.mix import MixRequest
from foresail.cloud.purchasing.offline import (
    DEFAULT_SETTINGS,
    SCHEDULED,
    OfflinePlan,
    OfflineSettings,
    month_cost,
    plan_offline,
    reserved_name,
)
from foresail.cloud.purchasing.resources import (
    Amount,
    MachineSizes,
    ReservedMachines,
    distinct_rows,
    gpu_ratios,
    machines_for,
    parts_of,
    resources_of,
    sizes_of,
    tasks_together,
)
from foresail.cloud.purchasing.terms import PurchaseTerms, ResourcePrices, resource_prices
from foresail.cloud.waiting.kernels.placing import machines_of, timetable
from foresail.model.distribution import Booleans, Floats
from foresail.model.errors import InputError
from foresail.traces.workload import Workload
from foresail_studies.purchasing.kernels.reserved_placement import place_jobs
from foresail_studies.purchasing.retired_offers import (
    KINDS,
    SPOT_BLOCK,
    LevelSchedule,
    PublishedTerms,
    RentedOptions,
    ScheduledMachines,
    block_cost,
    choose_options,
    price_of_hours,
    published_terms,
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

    @property
    def with_gpus(self) -> bool:
        """Return whether it is for jobs that ask for GPUs, and no others."""
        return self.machines[0].instance.gpus > 0.0

    def closes(self, start_hours: Floats, first_hour: float) -> Floats:
        """Return when a machine is given back that is there at each start; -inf where none is.

        ``first_hour`` is the hour at 0, counted from a Monday, 00:00.
        """
        if self.schedule is None:
            return np.full(start_hours.shape, np.inf)
        return self.schedule.closes(start_hours + first_hour) - first_hour


def fleets_of(machines: Sequence[ReservedMachines]) -> list[Fleet]:
    """Machines by when they are there; what is scheduled comes last."""
    groups: dict[tuple[object, ...], list[ReservedMachines]] = {}
    for each in machines:
        schedule = schedule_of(each)
        hours_there = schedule and (schedule.period, schedule.windows)
        groups.setdefault((hours_there, each.instance.gpus > 0.0), []).append(each)
    fleets = [Fleet(tuple(own), schedule_of(own[0])) for own in groups.values()]
    return sorted(fleets, key=lambda fleet: fleet.schedule is not None)


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
    asked = np.stack((split.of_full(), split.of_rest()), axis=1)
    asked[:, :, 1] = np.rint(asked[:, :, 1] * GIB)
    asked[:, :, 2] = np.ceil(asked[:, :, 2] * _PARTS_OF_GPU - 1e-6)
    kinds = [each.instance for each in fleet.machines for _ in range(each.count)]
    machines = machines_of(
        np.array([int(kind.cores) for kind in kinds], np.int64),
        np.array([kind.memory_bytes for kind in kinds]),
        np.array([kind.gpus for kind in kinds]) * _PARTS_OF_GPU,
    )
    return place_jobs(
        np.stack((jobs.start_hours, jobs.start_hours + hours)),
        np.stack((split.full, split.full + (asked[:, 1, 0] > 0.0)), axis=1),
        asked,
        machines,
        timetable(jobs.hours.size),
    )


def _sizes(fleet: Fleet) -> MachineSizes:
    machines = fleet.machines
    return MachineSizes.from_types(
        (each.instance for each in machines), (each.on_demand_per_hour for each in machines)
    )


def _mean_units(plan: OfflinePlan, option: str) -> float:
    """Units committed with an option, averaged over the time planned for."""
    held = (each.units * each.hours for each in plan.reservations if each.option == option)
    return sum(held) / plan.hours


def train(
    jobs: BoughtJobs,
    catalogue: PriceCatalogue,
    terms: PublishedTerms,
    settings: OfflineSettings = DEFAULT_SETTINGS,
) -> tuple[ReservedMachines, ...]:
    """Reserve what would have been best for past jobs, if they come again.

    The amounts of each term become machines (see ``machines_for``). So does the amount that was
    scheduled; its machines, the largest first, stand for as many levels as they have cores, from
    the bottom, and have the windows of the level in the middle of these.

    Raises ``InputError`` if jobs ask for GPUs and none are on sale.
    """
    repeated = replace(settings, extension="repeat")
    resources = resources_of(jobs, catalogue, settings.amounts, terms.customised_markup)
    plans = {
        each.name: plan_offline(jobs, each.units, terms, repeated, resource=each.name)
        for each in resources
    }
    sizes = sizes_of(catalogue)
    reserved: list[ReservedMachines] = []
    per_gpu = gpu_ratios(jobs, resources)
    for years, price in terms.reserved:
        name = reserved_name(years)
        amount = {resource: _mean_units(plan, name) for resource, plan in plans.items()}
        reserved += machines_for(Amount.from_units(amount, per_gpu), name, price, sizes)
    # Schedules are of cores: GPUs are not scheduled.
    scheduled = {name: _mean_units(plans[name], SCHEDULED) for name in plans if name != "GPUs"}
    at_peak = 1.0 if terms.scheduled is None else terms.scheduled.peak
    found = machines_for(Amount.from_units(scheduled, (0.0, 0.0)), SCHEDULED, at_peak, sizes)
    reserved += _with_windows(found, plans["cores"])
    return tuple(reserved)


def _with_windows(machines: list[ReservedMachines], plan: OfflinePlan) -> list[ReservedMachines]:
    """Scheduled machines, each with the windows of the middle one of the levels that it is for."""
    of_years = [each for each in plan.reservations if each.option == SCHEDULED]
    first = [each for each in of_years if each.start_hours < HOURS_PER_YEAR]
    # Where the first year has none, those of a later one: what is planned for repeats.
    levels = first or of_years
    tops = np.cumsum([each.units for each in levels])
    found: list[ReservedMachines] = []
    below = 0.0
    for each in (replace(kind, count=1) for kind in machines for _ in range(kind.count)):
        middle = below + each.instance.cores / 2.0
        level = min(int(np.searchsorted(tops, middle)), tops.size - 1)
        schedule = levels[level].schedule
        assert isinstance(schedule, LevelSchedule)
        own = {name.name: getattr(each, name.name) for name in fields(each)}
        found.append(ScheduledMachines(**own, schedule=schedule))
        below += each.instance.cores
    return found


@dataclass(frozen=True, eq=False)
class OnlineOutcome:
    """Payments of the policy after the training period, in the catalogue's currency."""

    cost: float
    """What it paid; reserved machines are paid for this time alone (they serve on)."""
    all_on_demand_cost: float
    """What the same jobs cost on machines on demand, each the cheapest that holds it."""
    used_hours: Mapping[str, float]
    """Core hours of jobs by option; reserved ones whatever the term."""


def serve(
    reserved: Sequence[ReservedMachines],
    catalogue: PriceCatalogue,
    terms: PublishedTerms,
    jobs: BoughtJobs,
    predicted_hours: Floats,
    first_hour: float,
) -> OnlineOutcome:
    """Run jobs on what is paid for, and rent machines for those that find no room (section 4.2).

    A job runs on reserved machines if all of it fits there when it starts; on scheduled ones only
    if it is predicted to end within their window. Else it is rented the option that is cheapest for
    its predicted runtime, on the cheapest machines that hold it. One that outlives its spot block
    or window, or is revoked, starts again on demand; revocations are paid in expectation.

    Jobs are in order of start; ``predicted_hours`` are their runtimes as predicted, shape (jobs,).
    ``first_hour`` is the hour of the first of them, counted from a Monday, 00:00.
    """
    sizes = sizes_of(catalogue)
    pieces = pieces_of(jobs, sizes)
    resource = resource_prices(catalogue)
    standard = rent_per_hour(pieces, sizes, resource, None)
    rent = rent_per_hour(pieces, sizes, resource, terms.customised_markup)
    fleets = fleets_of(reserved)
    placed = place(jobs, fleets, predicted_hours, first_hour)
    choice = choose_options(predicted_hours[:, None], terms)
    choice.kind[placed.cut] = ON_DEMAND
    work = jobs.cores * jobs.hours
    used = {
        KINDS[kind]: float(work @ (~placed.done & (choice.kind == kind)))
        for kind in range(len(KINDS))
    }
    cost = _rented_cost(jobs, rent, ~placed.done, choice, terms)
    for number, fleet in enumerate(fleets):
        option = "reserved" if fleet.schedule is None else SCHEDULED
        own = float(work @ ((placed.fleet == number) & placed.done))
        used[option] = used.get(option, 0.0) + own
        cost += _fleet_cost(fleet, terms, jobs.span_hours, first_hour)
    return OnlineOutcome(cost, float(standard @ jobs.hours), used)


def _fleet_cost(fleet: Fleet, terms: PublishedTerms, span_hours: float, first_hour: float) -> float:
    """Cost of machines for so long, or for their windows of that time."""
    if fleet.schedule is None:
        return span_hours * sum(each.per_hour for each in fleet.machines)
    assert terms.scheduled is not None
    hour: Floats = np.arange(np.ceil(span_hours), dtype=np.float64)
    there = np.isfinite(fleet.closes(hour, first_hour))
    price = float(price_of_hours(terms.scheduled, hour + first_hour) @ there)
    return price * sum(each.count * each.on_demand_per_hour for each in fleet.machines)


def _rented_cost(
    jobs: BoughtJobs, rent: Floats, rented: Booleans, choice: RentedOptions, terms: PublishedTerms
) -> float:
    """Cost of jobs that found no room, by the option that was chosen for each.

    ``rent`` is what the machines that a job fills cost an hour on demand; shape (jobs,), as
    ``rented``, which jobs found no room.
    """
    hours, kind = jobs.hours, choice.kind
    own = np.zeros(hours.size)
    on_demand = np.where(kind == ON_DEMAND, hours, 0.0)
    if terms.transient is not None:
        chosen = kind == TRANSIENT
        own[chosen] = transient_cost(hours, terms.transient, on_demand_price=0.0)[chosen]
        on_demand[chosen] = (terms.transient.revocation.revoked(hours) * hours)[chosen]
    if terms.spot_blocks:
        chosen = kind == SPOT_BLOCK
        block, ran = choice.block[chosen], hours[chosen]
        again = np.where(ran > block, ran, 0.0)
        own[chosen] = block_cost(ran, block, np.asarray(terms.spot_blocks)[block - 1]) - again
        on_demand[chosen] = again
    paid = float((own * rent) @ rented)
    if not terms.sustained_tiers:
        return paid + float((on_demand * rent) @ rented)
    months = int(jobs.span_hours / HOURS_PER_MONTH) + 1
    share = on_demand / hours * rented
    money, cores = (
        by_month(jobs.start_hours, hours, share * each, months) for each in (rent, jobs.cores)
    )
    average = cores / HOURS_PER_MONTH
    ratio = np.ones(months)
    np.divide(month_cost(average, terms.sustained_tiers), average, out=ratio, where=average > 0.0)
    return paid + float(money @ ratio)


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


_RIDGE: Final = 1.0
_DAY_HOURS: Final = 24.0
_SHORTEST_HOURS: Final = 1.0 / 3600.0
_FACTORS: Final = 20


def predicted_hours(workload: Workload, jobs: BoughtJobs, trained: Booleans) -> Floats:
    """Mean runtimes of all jobs within their limits, learned from some of them (section 4.2).

    Ridge regression of the logarithm of the runtime on the user (a coefficient each), the submit
    time of day, cores, memory, GPUs and the limit. Logarithms, since runtimes spread over six
    orders of magnitude; the mean is over the quantiles of the residuals.

    ``trained`` says which jobs to learn from, shape (jobs,); users and limits are in the workload.

    Raises ``InputError`` if there is none to learn from.
    """
    if not trained.any():
        raise InputError("no jobs to learn runtimes from", expected="jobs in the training period")
    table = workload.jobs.select("user", "requested_seconds")[jobs.row]
    limit = table["requested_seconds"].fill_null(np.inf).to_numpy() / 3600.0
    user = _codes(table["user"])
    features = _features(jobs, limit)
    target = np.log(np.maximum(jobs.hours, _SHORTEST_HOURS))
    centre, spread = features[trained].mean(axis=0), features[trained].std(axis=0)
    scaled = (features - centre) / np.where(spread > 0.0, spread, 1.0)
    mean = float(target[trained].mean())
    weights, of_user = _fitted(scaled[trained], user[trained], target[trained] - mean, user.max())
    predicted = mean + scaled @ weights + of_user[user]
    levels = (np.arange(_FACTORS) + 0.5) / _FACTORS
    factors = np.exp(np.quantile((target - predicted)[trained], levels))
    longest = np.maximum(limit, _SHORTEST_HOURS)[:, None]
    spread_out = np.clip(np.exp(predicted)[:, None] * factors, _SHORTEST_HOURS, longest)
    return np.asarray(spread_out.mean(axis=1))


def _features(jobs: BoughtJobs, limit_hours: Floats) -> Floats:
    known = np.isfinite(limit_hours)
    day = 2.0 * np.pi * (jobs.start_hours % _DAY_HOURS) / _DAY_HOURS
    return np.column_stack(
        [
            np.sin(day),
            np.cos(day),
            np.log(jobs.cores),
            np.log(jobs.gib),
            np.log1p(jobs.gpus),
            np.log(np.maximum(np.where(known, limit_hours, 1.0), _SHORTEST_HOURS)),
            known,
        ]
    )


def _codes(users: pl.Series) -> NDArray[np.int64]:
    return users.fill_null("").rank("dense").to_numpy().astype(np.int64) - 1


def _fitted(
    features: Floats, user: NDArray[np.int64], target: Floats, last_user: int
) -> tuple[Floats, Floats]:
    """Weights of the features and of every user; the users' block of the equations is diagonal."""
    users = int(last_user) + 1
    count = np.bincount(user, minlength=users) + _RIDGE
    of_user = np.column_stack([np.bincount(user, column, users) for column in features.T])
    target_of_user = np.bincount(user, target, users)
    width = features.shape[1]
    reduced = (
        features.T @ features + _RIDGE * np.eye(width) - of_user.T @ (of_user / count[:, None])
    )
    right = features.T @ target - of_user.T @ (target_of_user / count)
    weights = np.linalg.solve(reduced, right)
    of_users = (target_of_user - of_user @ weights) / count
    return weights.astype(np.float64), of_users.astype(np.float64)


def practise(
    workload: Workload, catalogue: PriceCatalogue, mix: MixRequest, training_hours: float
) -> tuple[OnlineOutcome, float]:
    """Let the policy learn from the log's first hours, and serve the rest.

    Beside its outcome, what the optimum in hindsight pays for the same jobs, in any amounts. It
    goes by what its own regression of runtimes, trained on the same period, believes.

    Raises ``InputError`` if there are no jobs before or after the end of the training period.
    """
    jobs, terms = bought_jobs(workload), published_terms(catalogue, mix)
    before = jobs.start_hours < training_hours
    if before.all() or not before.any():
        raise InputError(
            "no jobs on one side of the end of the training period",
            source=workload.meta.source,
            field="training_hours",
            value=f"{training_hours / 24.0:g} days",
            expected=f"less than the log's {jobs.start_hours.max() / 24.0:.4g} days of submissions",
        )
    reserved = train(jobs.between(0.0, training_hours), catalogue, terms, mix.settings)
    evaluated = jobs.between(training_hours, np.inf)
    predicted = predicted_hours(workload, jobs, before)[~before]
    first_hour = jobs.first_hour_of_week + training_hours
    outcome = serve(reserved, catalogue, terms, evaluated, predicted, first_hour)
    return outcome, _optimum_cost(evaluated, catalogue, terms, mix.settings)


def _optimum_cost(
    jobs: BoughtJobs, catalogue: PriceCatalogue, terms: PurchaseTerms, settings: OfflineSettings
) -> float:
    """Return the jobs' own part in the cost of a repeated log, as if on demand."""
    cost = 0.0
    repeated = replace(settings, extension="repeat")
    for each in resources_of(jobs, catalogue, settings.amounts, terms.customised_markup):
        plan = plan_offline(jobs, each.units, terms, repeated)
        cost += plan.cost / plan.demand_hours * float(each.units @ jobs.hours) * each.per_hour
    return cost
