"""Which options to buy for a log at given prices, and what that saves: the question as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.prices import Catalogue, Commitment
from foresail.cloud.purchasing.demand import BoughtJobs, bought_jobs
from foresail.cloud.purchasing.exact import ExactComparison, compare_exactly
from foresail.cloud.purchasing.forecast import ForecastSettings, RiskPlan, reserve_at_risk
from foresail.cloud.purchasing.machines import pieces_of, sizes_of
from foresail.cloud.purchasing.offline import (
    DEFAULT_SETTINGS,
    OfflinePlan,
    OfflineSettings,
    plan_offline,
)
from foresail.cloud.purchasing.online import OnlineOutcome, OnlinePolicy, serve, train
from foresail.cloud.purchasing.owned import hours_left, running_commitments
from foresail.cloud.purchasing.resources import Resource, resources_of
from foresail.cloud.purchasing.runtimes import ridge_beliefs, with_error
from foresail.cloud.purchasing.terms import (
    PurchaseTerms,
    ResourcePrices,
    TransientTerms,
    resource_prices,
    sold_by,
    terms_of,
)
from foresail.model.errors import InputError
from foresail.traces.workload import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MixRequest:
    """What is asked.

    Parameters
    ----------
    provider
        Whose options are on sale: see ``PROVIDERS``.
    transient
        Whether jobs may be revoked.
    transient_terms
        Price and lifetimes of transient machines; None: those of the catalogue, where a mean life
        of 24 hours stands in for what it does not say.
    settings
        Of the optimum in hindsight.
    training_hours
        The beginning of the log from which the practical policy learns; None: leave it out.
    decide_by
        Whether the practical policy rents by the mean of what its regression believes of a runtime,
        as published, or by the expected cost over all that it believes.
    forecast
        How uncertain the coming years are; None: no plan at a stated risk.
    exact_seconds
        How long to look for the exact optimum of a coarser problem that the optimum in hindsight is
        held against; None: not at all.
    demand_errors
        Relative errors of the amounts reserved, to see what they cost.
    runtime_errors
        Mean relative errors of predicted runtimes, to see what they cost the practical policy.
    seed
        Of these errors.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    provider: str = "all"
    transient: bool = True
    transient_terms: TransientTerms | None = None
    settings: OfflineSettings = DEFAULT_SETTINGS
    training_hours: float | None = None
    decide_by: Literal["mean", "distribution"] = "mean"
    forecast: ForecastSettings | None = None
    exact_seconds: float | None = None
    demand_errors: tuple[float, ...] = (-0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5)
    runtime_errors: tuple[float, ...] = (0.0, 0.1, 0.5, 1.0)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.training_hours is not None and not self.training_hours > 0.0:
            raise InputError(
                "not a training period",
                field="training_hours",
                value=self.training_hours,
                expected="hours above 0",
            )
        if any(not error >= -1.0 for error in self.demand_errors):
            raise InputError(
                "not an error of demand",
                field="demand_errors",
                value=self.demand_errors,
                expected="-1 (nothing is reserved) or more",
            )


@dataclass(frozen=True, eq=False)
class OnlineReport:
    """The practical policy after its training period.

    Parameters
    ----------
    outcome
        With runtimes predicted by the buyer's regression, or as given.
    optimum_cost
        What the optimum in hindsight pays for the same jobs, in any amounts.
    mean_error
        Of the predictions: mean of |predicted - real| / real.
    by_runtime_error
        Mean error, cost, and cost relative to all on demand; 0 is an oracle.
    """

    outcome: OnlineOutcome
    optimum_cost: float
    mean_error: float
    by_runtime_error: pl.DataFrame


@dataclass(frozen=True, eq=False)
class MixReport:
    """What to buy and what it costs, in ``prices.currency``.

    Parameters
    ----------
    provider, terms, prices
        What is on sale, relative to on demand, and what a core and a GiB cost there.
    jobs, left_out
        Jobs of the log that were bought for; those without a runtime or a size.
    spread
        Jobs of which no machine on sale holds a task: each is charged for several.
    memory_known
        Whether the log says what memory jobs ask for; else cores come with 4 GiB each.
    log_hours, hours
        Length of the log, and of the time planned for (longer where the log is repeated).
    plans
        The optimum in hindsight of each resource.
    resources
        What jobs hold of each, and what a unit costs.
    commitments
        Those of the catalogue that have not ended by the day of its prices.
    sunk_cost
        Of these, over the time planned for: paid whatever is bought; in no other cost.
    costs
        Policy, cost, and cost relative to all on demand: ``all on demand``, ``all reserved`` (the
        peak, at the cheapest term) and ``optimum``, over the time planned for.
    counted
        The resource whose hours the next two count: GPUs where jobs ask for them, else cores.
    options
        Option; hours used and their share, hours idle; cost of all resources.
    over_time
        Month, option, hours used and idle, cost of all resources.
    by_demand_error
        Error of the amounts reserved, cost, and cost relative to all on demand.
    risk
        What to reserve of each resource at the stated risk.
    exact
        How far the optimum's heuristic is from the exact optimum; None: not asked, or too large.
    online
        The practical policy.
    """

    provider: str
    terms: PurchaseTerms
    prices: ResourcePrices
    jobs: int
    left_out: int
    spread: int
    memory_known: bool
    log_hours: float
    hours: float
    plans: tuple[OfflinePlan, ...]
    resources: tuple[Resource, ...]
    commitments: tuple[Commitment, ...]
    sunk_cost: float
    costs: pl.DataFrame
    counted: str
    options: pl.DataFrame
    over_time: pl.DataFrame
    by_demand_error: pl.DataFrame
    risk: Mapping[str, RiskPlan]
    exact: ExactComparison | None
    online: OnlineReport | None

    def share(self, policy: str) -> float:
        """Cost of a policy of ``costs``, relative to all on demand."""
        return float(self.costs.filter(pl.col("policy") == policy)["share"][0])

    def held_units(self, resource: str) -> float:
        """What is committed of a resource on the day of the prices."""
        return sum(h.units for r in self.resources if r.name == resource for h in r.held)


def mix(
    workload: Workload,
    catalogue: Catalogue,
    request: MixRequest = MixRequest(),
    predicted_hours: Floats | None = None,
) -> MixReport:
    """The mix of purchasing options for jobs that never wait (paper 003 chapter 5; spec section 4).

    Parameters
    ----------
    workload
        The jobs; each starts when it was submitted.
    catalogue
        Prices of one region; with the buyer's discounts and commitments.
    request
        What is asked.
    predicted_hours
        Runtimes as they were believed at submission, by row of the jobs table, for the practical
        policy; by default its own regression is trained on the training period.

    Raises
    ------
    InputError
        If the log cannot be bought for, is shorter than a term and not to be repeated, or holds
        nothing before or after the training period; or if jobs ask for GPUs and none are on sale.
    UnknownNameError
        If no such provider is known.
    """
    terms = _terms(catalogue, request)
    jobs = bought_jobs(workload)
    prices = resource_prices(catalogue)
    resources = resources_of(jobs, catalogue, request.settings.amounts, terms.customised_markup)
    plans = tuple(
        plan_offline(
            jobs,
            each.units,
            terms,
            request.settings,
            resource=each.name,
            held=each.held,
        )
        for each in resources
    )
    money = [each.per_hour for each in resources]
    counted = "GPUs" if any(each.name == "GPUs" for each in resources) else "cores"
    over_time = _over_time(plans, money, counted)
    running = running_commitments(catalogue)
    risk = {}
    if request.forecast is not None:
        risk = {
            each.name: reserve_at_risk(
                jobs, each.units, terms, request.settings, request.forecast, each.held
            )
            for each in resources
        }
    exact = None
    if request.exact_seconds is not None:
        exact = compare_exactly(
            jobs, resources, terms, request.settings.extension, request.exact_seconds
        )
    online = None
    if request.training_hours is not None:
        online = _online(workload, jobs, catalogue, terms, request, predicted_hours)
    return MixReport(
        provider=request.provider,
        terms=terms,
        prices=prices,
        jobs=jobs.hours.size,
        left_out=jobs.left_out,
        spread=int((pieces_of(jobs, sizes_of(catalogue)).together == 0).sum()),
        memory_known=jobs.memory_known,
        log_hours=jobs.span_hours,
        hours=plans[0].hours,
        plans=plans,
        resources=resources,
        commitments=running,
        sunk_cost=sum(
            each.count * each.price_per_hour * min(hours_left(each, catalogue), plans[0].hours)
            for each in running
        ),
        costs=_costs(plans, resources),
        counted=counted,
        options=_options(over_time),
        over_time=over_time,
        by_demand_error=_by_demand_error(plans, resources, request.demand_errors),
        risk=risk,
        exact=exact,
        online=online,
    )


def _terms(catalogue: Catalogue, request: MixRequest) -> PurchaseTerms:
    terms = terms_of(catalogue)
    if request.transient_terms is not None:
        terms = replace(terms, transient=request.transient_terms)
    sold = sold_by(request.provider, terms)
    return sold if request.transient else sold.without_transient()


def _over_time(plans: Sequence[OfflinePlan], money: Sequence[float], counted: str) -> pl.DataFrame:
    """Hours are of the resource that is counted; cost is of all."""
    parts = [
        plan.over_time.with_columns(
            cost=pl.col("cost") * per_hour,
            used_hours=pl.col("used_hours") * (plan.resource == counted),
            idle_hours=pl.col("idle_hours") * (plan.resource == counted),
        )
        for plan, per_hour in zip(plans, money, strict=True)
    ]
    return (
        pl.concat(parts)
        .group_by("month", "option", maintain_order=True)
        .agg(pl.col("used_hours", "idle_hours", "cost").sum())
    )


def _options(over_time: pl.DataFrame) -> pl.DataFrame:
    sums = over_time.group_by("option", maintain_order=True).agg(
        pl.col("used_hours", "idle_hours", "cost").sum()
    )
    return sums.with_columns(share=pl.col("used_hours") / pl.col("used_hours").sum())


def _on_demand(plans: Sequence[OfflinePlan], resources: Sequence[Resource]) -> float:
    """What standard machines on demand cost for everything."""
    return sum(
        plan.demand_hours * each.per_hour * each.standard_work
        for plan, each in zip(plans, resources, strict=True)
    )


def _costs(plans: Sequence[OfflinePlan], resources: Sequence[Resource]) -> pl.DataFrame:
    pairs = [(plan, each.per_hour) for plan, each in zip(plans, resources, strict=True)]
    on_demand = _on_demand(plans, resources)
    named = {"all on demand": on_demand}
    reserved = [plan.all_reserved_cost for plan in plans]
    if None not in reserved:
        named["all reserved"] = sum(
            (plan.all_reserved_cost or 0.0) * per_hour for plan, per_hour in pairs
        )
    named["optimum"] = sum(plan.cost * per_hour for plan, per_hour in pairs)
    costs = pl.DataFrame({"policy": list(named), "cost": list(named.values())})
    return costs.with_columns(share=pl.col("cost") / on_demand)


def _by_demand_error(
    plans: Sequence[OfflinePlan], resources: Sequence[Resource], errors: tuple[float, ...]
) -> pl.DataFrame:
    on_demand = _on_demand(plans, resources)
    pairs = list(zip(plans, resources, strict=True))
    costs = [sum(p.cost_if_scaled(1.0 + e) * r.per_hour for p, r in pairs) for e in errors]
    table = pl.DataFrame({"error": list(errors), "cost": costs})
    return table.with_columns(share=pl.col("cost") / on_demand)


def _online(
    workload: Workload,
    jobs: BoughtJobs,
    catalogue: Catalogue,
    terms: PurchaseTerms,
    request: MixRequest,
    predicted_hours: Floats | None,
) -> OnlineReport:
    assert request.training_hours is not None
    before = jobs.start_hours < request.training_hours
    if before.all() or not before.any():
        raise InputError(
            "no jobs on one side of the end of the training period",
            source=workload.meta.source,
            field="training_hours",
            value=request.training_hours,
            expected=f"less than the log's {jobs.start_hours.max():.0f} hours of submissions",
        )
    policy = train(jobs.between(0.0, request.training_hours), catalogue, terms, request.settings)
    evaluated = jobs.between(request.training_hours, np.inf)
    if predicted_hours is not None:
        mean = believed = predicted_hours[evaluated.row]
    else:
        beliefs = ridge_beliefs(workload, jobs, before)
        mean = beliefs.mean_hours[~before]
        believed = beliefs.hours[~before] if request.decide_by == "distribution" else mean
    return OnlineReport(
        outcome=serve(policy, evaluated, believed, request.training_hours),
        optimum_cost=_optimum_cost(evaluated, catalogue, terms, request.settings),
        mean_error=float(np.mean(np.abs(mean - evaluated.hours) / evaluated.hours)),
        by_runtime_error=_by_runtime_error(policy, evaluated, request, request.training_hours),
    )


def _optimum_cost(
    jobs: BoughtJobs, catalogue: Catalogue, terms: PurchaseTerms, settings: OfflineSettings
) -> float:
    """Of the jobs themselves: the share of a repeated log that they would pay on demand."""
    cost = 0.0
    repeated = replace(settings, extension="repeat")
    for each in resources_of(jobs, catalogue, settings.amounts, terms.customised_markup):
        plan = plan_offline(jobs, each.units, terms, repeated, held=each.held)
        cost += plan.cost / plan.demand_hours * float(each.units @ jobs.hours) * each.per_hour
    return cost


def _by_runtime_error(
    policy: OnlinePolicy, jobs: BoughtJobs, request: MixRequest, elapsed_hours: float
) -> pl.DataFrame:
    rows = []
    for error in request.runtime_errors:
        hours = with_error(jobs.hours, error, request.seed)
        outcome = serve(policy, jobs, hours, elapsed_hours)
        rows.append((error, outcome.cost, outcome.cost / outcome.all_on_demand_cost))
    return pl.DataFrame(rows, schema=["error", "cost", "share"], orient="row")
