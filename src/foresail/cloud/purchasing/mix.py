"""Which options to buy for a log at given prices, and what that saves: the question as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import bought_jobs
from foresail.cloud.purchasing.exact import compare_exactly
from foresail.cloud.purchasing.forecast import reserve_at_risk
from foresail.cloud.purchasing.machines import pieces_of, sizes_of
from foresail.cloud.purchasing.mix_report import MixReport
from foresail.cloud.purchasing.mix_request import DEFAULT_REQUEST, MixRequest
from foresail.cloud.purchasing.offline import plan_offline
from foresail.cloud.purchasing.offline_plan import OfflinePlan
from foresail.cloud.purchasing.owned import hours_left, running_commitments
from foresail.cloud.purchasing.resources import Resource, resources_of
from foresail.cloud.purchasing.terms import PurchaseTerms, resource_prices, sold_by, terms_of
from foresail.traces.workload import Workload


def mix(
    workload: Workload,
    catalogue: PriceCatalogue,
    request: MixRequest = DEFAULT_REQUEST,
) -> MixReport:
    """The mix of purchasing options for jobs that never wait (paper 003 chapter 5; spec section 4).

    Each job starts when it was submitted. The catalogue is of one region, with the buyer's
    discounts and commitments.

    Raises
    ------
    InputError
        If the log cannot be bought for, or is shorter than a term and not to be repeated; or if
        jobs ask for GPUs and none are on sale.
    UnknownNameError
        If no such provider is known.
    """
    terms = asked_terms(catalogue, request)
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
    )


def asked_terms(catalogue: PriceCatalogue, request: MixRequest) -> PurchaseTerms:
    """Return the offers that are on sale of those asked for."""
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
