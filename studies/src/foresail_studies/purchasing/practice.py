"""The practical policy on a log: what it reserves after a training period, and how that serves."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import (
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    ON_DEMAND,
    BoughtJobs,
    bought_jobs,
)
from foresail.cloud.purchasing.machines import Amount, ReservedMachines, machines_for, sizes_of
from foresail.cloud.purchasing.mix import MixRequest
from foresail.cloud.purchasing.offline import Row, month_table, plan_offline
from foresail.cloud.purchasing.offline_plan import (
    COMMITTED,
    DEFAULT_SETTINGS,
    SCHEDULED,
    OfflinePlan,
    OfflineSettings,
    reserved_name,
)
from foresail.cloud.purchasing.resources import (
    gpu_ratios,
    hours_left,
    resources_of,
    running_commitments,
)
from foresail.cloud.purchasing.terms import PurchaseTerms, resource_prices
from foresail.model.arrays import Floats
from foresail.model.errors import InputError, require
from foresail.traces.workload import Workload
from foresail_studies.purchasing.placing import (
    Fleet,
    FleetPlacement,
    RentedJobs,
    by_month,
    fleets_of,
    pieces_of,
    place,
    rent_per_hour,
)
from foresail_studies.purchasing.retired_offers import (
    LevelSchedule,
    PublishedTerms,
    ScheduledMachines,
    choose_options,
    price_of_hours,
    published_terms,
)


@dataclass(frozen=True, slots=True, eq=False)
class OnlinePolicy:
    """Machines reserved after a training period; ready to serve jobs."""

    catalogue: PriceCatalogue
    """Of the machines on sale."""
    terms: PublishedTerms
    """What is sold, relative to on demand."""
    settings: OfflineSettings
    """Of the plan in hindsight for the training period."""
    reserved: tuple[ReservedMachines, ...]
    """The machines, those that the buyer had before among them."""
    first_hour_of_week: float
    """Of the training period, from Monday 00:00."""


def _mean_units(plan: OfflinePlan, option: str) -> float:
    """Units committed with an option, averaged over the time planned for."""
    held = (each.units * each.hours for each in plan.reservations if each.option == option)
    return sum(held) / plan.hours


def train(
    jobs: BoughtJobs,
    catalogue: PriceCatalogue,
    terms: PublishedTerms,
    settings: OfflineSettings = DEFAULT_SETTINGS,
) -> OnlinePolicy:
    """Reserve what would have been best for past jobs, if they come again (spec section 4.2).

    The amounts of each term become machines (see ``machines_for``). So does the amount that was
    scheduled; its machines, the largest first, stand for as many levels as they have cores, from
    the bottom, and have the windows of the level in the middle of these. Machines that the
    catalogue says are committed already are there until their last day, counted from the end of the
    training period, and less is reserved.

    Raises ``InputError`` if jobs ask for GPUs and none are on sale.
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
        amount = {resource: _mean_units(plan, name) for resource, plan in plans.items()}
        reserved += machines_for(Amount.from_units(amount, per_gpu), name, price, sizes)
    # Schedules are of cores: GPUs are not scheduled.
    scheduled = {name: _mean_units(plans[name], SCHEDULED) for name in plans if name != "GPUs"}
    at_peak = 1.0 if terms.scheduled is None else terms.scheduled.peak
    found = machines_for(Amount.from_units(scheduled, (0.0, 0.0)), SCHEDULED, at_peak, sizes)
    reserved += _with_windows(found, plans["cores"])
    return OnlinePolicy(catalogue, terms, settings, tuple(reserved), jobs.first_hour_of_week)


def _committed(catalogue: PriceCatalogue) -> list[ReservedMachines]:
    """Return what the buyer has, at no further cost."""
    found = []
    for each in running_commitments(catalogue):
        offer = catalogue.find(each.instance)
        left = hours_left(each, catalogue)
        found.append(
            ReservedMachines(
                offer.instance, each.count, COMMITTED, 0.0, offer.on_demand_per_hour, left
            )
        )
    return found


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


RESERVED = "reserved"


@dataclass(frozen=True, eq=False)
class OnlineOutcome:
    """Payments of the policy after the training period, in the catalogue's currency."""

    reserved: tuple[ReservedMachines, ...]
    """The machines it reserved at the beginning, and those it had."""
    jobs: int
    hours: float
    """How many jobs it served, over what time."""
    cost: float
    """What it paid; reserved machines are paid for this time alone (they serve on), and what was
    committed before is in it for nothing."""
    all_on_demand_cost: float
    """What the same jobs cost on machines on demand, each the cheapest that holds it."""
    over_time: pl.DataFrame
    """Month, option, and there: core hours used and idle, cost."""
    revoked_hours: float
    """Expected core hours of transient runs that were lost."""


def serve(
    policy: OnlinePolicy, jobs: BoughtJobs, predicted_hours: Floats, elapsed_hours: float = 0.0
) -> OnlineOutcome:
    """Run jobs on what is paid for, and rent machines for those that find no room (section 4.2).

    A job runs on reserved machines if all of it fits there when it starts; on machines that are
    given back, as scheduled ones are at the end of their window, only if it is predicted to end
    before. Else it is rented the option that is cheapest for its predicted runtime (see
    ``choose_options``), on the cheapest machines that hold it. One that outlives its spot block or
    window, or is revoked, starts again on demand; revocations are paid in expectation.

    Jobs are in order of start. ``predicted_hours`` are runtimes as they are predicted, shape
    (jobs,); or equally likely ones, shape (jobs, runtimes), of which the expected cost decides.
    ``elapsed_hours`` lie between the first job of the training period and the first of these.

    Raises ``InputError`` if there are no jobs, or a prediction is not above 0.
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
    choice = choose_options(believed, policy.terms)
    choice.kind[placed.cut] = ON_DEMAND
    rented = RentedJobs(jobs, rent, ~placed.done, choice, policy.terms)
    months = int(jobs.span_hours / HOURS_PER_MONTH) + 1
    rows = [
        *_paid_rows(policy, jobs, fleets, placed, months, first_hour),
        *rented.rows(months),
    ]
    over_time = month_table(rows)
    return OnlineOutcome(
        reserved=policy.reserved,
        jobs=jobs.hours.size,
        hours=jobs.span_hours,
        cost=float(over_time["cost"].sum()),
        all_on_demand_cost=float(standard @ jobs.hours),
        over_time=over_time,
        revoked_hours=rented.revoked_hours,
    )


def _paid_rows(
    policy: OnlinePolicy,
    jobs: BoughtJobs,
    fleets: list[Fleet],
    placed: FleetPlacement,
    months: int,
    first_hour: float,
) -> list[Row]:
    """Return a row for each committed, reserved (whatever the term) and scheduled purchase."""
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


_RIDGE: Final = 1.0
_DAY_HOURS: Final = 24.0
_SHORTEST_HOURS: Final = 1.0 / 3600.0
_FACTORS: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class RegressedRuntimes:
    """Runtimes that a regression of log runtimes predicts."""

    middle_hours: Floats
    """Exponential of the predicted logarithm; shape (jobs,)."""
    factors: Floats
    """Equally likely factors by which runtimes were off it: quantiles of the residuals."""
    limit_hours: Floats
    """Where jobs are killed, inf where nowhere; shape (jobs,)."""

    @property
    def hours(self) -> Floats:
        """Equally likely runtimes of every job, within its limit; shape (jobs, factors)."""
        spread = self.middle_hours[:, None] * self.factors
        return np.asarray(np.clip(spread, _SHORTEST_HOURS, self.limit_hours[:, None]))

    @property
    def mean_hours(self) -> Floats:
        """Mean of them: the prediction as one number; shape (jobs,)."""
        return np.asarray(self.hours.mean(axis=1))


def ridge_beliefs(
    workload: Workload, jobs: BoughtJobs, trained: NDArray[np.bool_]
) -> RegressedRuntimes:
    """Runtimes of all jobs, learned from some of them (spec section 4.2).

    Ridge regression of the logarithm of the runtime on the user (a coefficient each), the submit
    time of day, cores, memory, GPUs and the limit. Logarithms, since runtimes spread over six
    orders of magnitude; the residuals' quantiles say how far off it is.

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
    return RegressedRuntimes(np.exp(predicted), factors, np.maximum(limit, _SHORTEST_HOURS))


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


def with_error(hours: Floats, mean_error: float, seed: int) -> Floats:
    """Runtimes with a relative error of this mean size: times 1 + e, E|e| = ``mean_error``.

    Errors are normal, and cut so that at least a twentieth of a runtime remains.

    Raises ``InputError`` if the error is negative.
    """
    if not mean_error >= 0.0:
        raise InputError("not an error", field="mean_error", value=mean_error, expected=">= 0")
    draws = np.random.default_rng(seed).standard_normal(hours.size)
    factor = 1.0 + draws * mean_error * np.sqrt(np.pi / 2.0)
    return np.asarray(hours * np.maximum(factor, 0.05))


@dataclass(frozen=True, slots=True)
class PracticeRequest:
    """Request to the practical policy.

    Raises ``InputError`` if the training period is not above 0.
    """

    training_hours: float
    """The beginning of the log from which it learns."""
    decide_by: Literal["mean", "distribution"] = "mean"
    """Whether it rents by the mean of what its regression believes of a runtime, as published, or
    by the expected cost over all that it believes."""
    runtime_errors: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0)
    """Mean relative errors of predicted runtimes, to see what they cost."""
    seed: int = 0
    """Of these errors."""

    def __post_init__(self) -> None:
        require(self.training_hours > 0.0, self, "training_hours", "above 0")


@dataclass(frozen=True, eq=False)
class OnlineReport:
    """The practical policy after its training period."""

    outcome: OnlineOutcome
    """With runtimes predicted by the buyer's regression, or as given."""
    optimum_cost: float
    """What the optimum in hindsight pays for the same jobs, in any amounts."""
    mean_error: float
    """Of the predictions: mean of |predicted - real| / real."""
    by_runtime_error: pl.DataFrame
    """Mean error, cost, and cost relative to all on demand; 0 is an oracle."""


def practise(
    workload: Workload, catalogue: PriceCatalogue, mix: MixRequest, request: PracticeRequest
) -> OnlineReport:
    """Let the policy learn from the log's beginning, and serve the rest (spec section 4.2).

    It goes by what its own regression of runtimes, trained on the same period, believes.

    Raises ``InputError`` if there are no jobs before or after the end of the training period.
    """
    jobs, terms = bought_jobs(workload), published_terms(catalogue, mix)
    before = jobs.start_hours < request.training_hours
    if before.all() or not before.any():
        raise InputError(
            "no jobs on one side of the end of the training period",
            source=workload.meta.source,
            field="training_hours",
            value=f"{request.training_hours / 24.0:g} days",
            expected=f"less than the log's {jobs.start_hours.max() / 24.0:.4g} days of submissions",
        )
    policy = train(jobs.between(0.0, request.training_hours), catalogue, terms, mix.settings)
    evaluated = jobs.between(request.training_hours, np.inf)
    beliefs = ridge_beliefs(workload, jobs, before)
    mean = beliefs.mean_hours[~before]
    believed = beliefs.hours[~before] if request.decide_by == "distribution" else mean
    return OnlineReport(
        outcome=serve(policy, evaluated, believed, request.training_hours),
        optimum_cost=_optimum_cost(evaluated, catalogue, terms, mix.settings),
        mean_error=float(np.mean(np.abs(mean - evaluated.hours) / evaluated.hours)),
        by_runtime_error=_by_runtime_error(policy, evaluated, request, request.training_hours),
    )


def _optimum_cost(
    jobs: BoughtJobs, catalogue: PriceCatalogue, terms: PurchaseTerms, settings: OfflineSettings
) -> float:
    """Return the jobs' own part in the cost of a repeated log, as if on demand."""
    cost = 0.0
    repeated = replace(settings, extension="repeat")
    for each in resources_of(jobs, catalogue, settings.amounts, terms.customised_markup):
        plan = plan_offline(jobs, each.units, terms, repeated, held=each.held)
        cost += plan.cost / plan.demand_hours * float(each.units @ jobs.hours) * each.per_hour
    return cost


def _by_runtime_error(
    policy: OnlinePolicy, jobs: BoughtJobs, request: PracticeRequest, elapsed_hours: float
) -> pl.DataFrame:
    rows = []
    for error in request.runtime_errors:
        hours = with_error(jobs.hours, error, request.seed)
        outcome = serve(policy, jobs, hours, elapsed_hours)
        rows.append((error, outcome.cost, outcome.cost / outcome.all_on_demand_cost))
    return pl.DataFrame(rows, schema=["error", "cost", "share"], orient="row")
