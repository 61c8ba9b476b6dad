"""The purchasing mix of a log: what is asked, the optimum in hindsight, and what to reserve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from foresail.cloud.over_time import use_over_time
from foresail.cloud.prices import Commitment, PriceCatalogue
from foresail.cloud.purchasing import offline
from foresail.cloud.purchasing import terms as purchase_terms
from foresail.cloud.purchasing.demand import bought_jobs
from foresail.cloud.purchasing.forecast import ForecastSettings, RiskPlan, reserve_at_risk
from foresail.cloud.purchasing.resources import (
    Amount,
    ReservedMachines,
    Resource,
    gpu_ratios,
    hours_left,
    machines_for,
    resources_of,
    running_commitments,
    sizes_of,
    tasks_together,
)
from foresail.model.errors import require
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class MixRequest:
    """A question for the mix."""

    provider: str = "all"
    """Provider whose options are on sale: see ``PROVIDERS``."""
    transient: bool = True
    """True if jobs may be revoked."""
    transient_terms: purchase_terms.TransientTerms | None = None
    """Price and lifetimes of transient machines; None: those of the catalogue, where a mean life of
    24 hours stands in for what it does not say."""
    settings: offline.OfflineSettings = offline.DEFAULT_SETTINGS
    """Settings of the optimum in hindsight."""
    forecast: ForecastSettings | None = None
    """Uncertainty of the coming years; None: no plan at a stated risk."""
    demand_errors: tuple[float, ...] = (-0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5)
    """Relative errors of the amounts reserved, to see what they cost."""

    def __post_init__(self) -> None:
        some = all(error >= -1.0 for error in self.demand_errors)
        require(some, self, "demand_errors", "-1 (nothing is reserved) or more")


DEFAULT_REQUEST: Final = MixRequest()


@dataclass(frozen=True, eq=False)
class MixReport:
    """Purchases and their cost, in ``prices.currency``."""

    provider: str
    terms: purchase_terms.PurchaseTerms
    prices: purchase_terms.ResourcePrices
    """Options on sale, relative to on demand, and what a core and a GiB cost there."""
    jobs: int
    left_out: int
    """Jobs of the log that were bought for; those without a runtime or a size."""
    spread: int
    """Jobs of which no machine on sale holds a task: each is charged for several."""
    memory_known: bool
    """True if the log says what memory jobs ask for; else cores come with 4 GiB each."""
    log_hours: float
    hours: float
    """Length of the log, and of the time planned for (longer where the log is repeated)."""
    plans: tuple[offline.OfflinePlan, ...]
    """The optimum in hindsight of each resource."""
    resources: tuple[Resource, ...]
    """Amounts that jobs hold of each resource, and what a unit costs."""
    commitments: tuple[Commitment, ...]
    """Commitments of the catalogue that have not ended by the day of its prices."""
    sunk_cost: float
    """Cost of these, over the time planned for: paid whatever is bought; in no other cost."""
    costs: pl.DataFrame
    """Policy, cost, and cost relative to all on demand: ``all on demand``, ``all reserved`` (the
    peak, at the cheapest term) and ``optimum``, over the time planned for."""
    counted: str
    """The resource whose hours the next two count: GPUs where jobs ask for them, else cores."""
    options: pl.DataFrame
    """Option; hours used and their share, hours idle; cost of all resources."""
    over_time: pl.DataFrame
    """Month, option, hours used and idle, cost of all resources."""
    by_demand_error: pl.DataFrame
    """Error of the amounts reserved, cost, and cost relative to all on demand."""
    risk: Mapping[str, RiskPlan]
    """Amount to reserve of each resource at the stated risk."""

    def share(self, policy: str) -> float:
        """Cost of a policy of ``costs``, relative to all on demand."""
        return float(self.costs.filter(pl.col("policy") == policy)["share"][0])

    def held_units(self, resource: str) -> float:
        """Units of a resource that are committed on the day of the prices."""
        return sum(h.units for r in self.resources if r.name == resource for h in r.held)


def mix(
    workload: Workload,
    catalogue: PriceCatalogue,
    request: MixRequest = DEFAULT_REQUEST,
    terms: purchase_terms.PurchaseTerms | None = None,
) -> MixReport:
    """The mix of purchasing options for jobs that never wait (Ambati's thesis, chapter 5).

    Each job starts when it was submitted. The catalogue is of one region, with the buyer's
    discounts and commitments. ``terms`` are on sale; None: what it offers of what is asked for.

    Raises ``InputError`` if the log cannot be bought for, or is shorter than a term and not to be
    repeated; or if jobs ask for GPUs and none are on sale; ``UnknownNameError`` if no such provider
    is known.
    """
    terms = asked_terms(catalogue, request) if terms is None else terms
    jobs = bought_jobs(workload)
    prices = purchase_terms.resource_prices(catalogue)
    resources = resources_of(jobs, catalogue, request.settings.amounts, terms.customised_markup)
    plans = tuple(
        offline.plan_offline(
            jobs, each.units, terms, request.settings, resource=each.name, held=each.held
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
    return MixReport(
        provider=request.provider,
        terms=terms,
        prices=prices,
        jobs=jobs.hours.size,
        left_out=jobs.left_out,
        spread=int((tasks_together(jobs, sizes_of(catalogue)) == 0).sum()),
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
    )


def asked_terms(catalogue: PriceCatalogue, request: MixRequest) -> purchase_terms.PurchaseTerms:
    """Return the offers that are on sale of those asked for."""
    terms = purchase_terms.terms_of(catalogue)
    if request.transient_terms is not None:
        terms = replace(terms, transient=request.transient_terms)
    sold = purchase_terms.sold_by(request.provider, terms)
    return sold if request.transient else sold.without_transient()


def _over_time(
    plans: Sequence[offline.OfflinePlan], money: Sequence[float], counted: str
) -> pl.DataFrame:
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


def _on_demand(plans: Sequence[offline.OfflinePlan], resources: Sequence[Resource]) -> float:
    """Cost of everything on standard machines on demand."""
    return sum(
        plan.demand_hours * each.per_hour * each.standard_work
        for plan, each in zip(plans, resources, strict=True)
    )


def _costs(plans: Sequence[offline.OfflinePlan], resources: Sequence[Resource]) -> pl.DataFrame:
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
    plans: Sequence[offline.OfflinePlan], resources: Sequence[Resource], errors: tuple[float, ...]
) -> pl.DataFrame:
    on_demand = _on_demand(plans, resources)
    pairs = list(zip(plans, resources, strict=True))
    costs = [sum(p.cost_if_scaled(1.0 + e) * r.per_hour for p, r in pairs) for e in errors]
    table = pl.DataFrame({"error": list(errors), "cost": costs})
    return table.with_columns(share=pl.col("cost") / on_demand)


def advised_machines(
    workload: Workload, report: MixReport, catalogue: PriceCatalogue
) -> tuple[ReservedMachines, ...]:
    """Machines to reserve at the risk that was asked for: whole ones, below the amounts."""
    sizes = sizes_of(catalogue)
    per_gpu = gpu_ratios(bought_jobs(workload), report.resources)
    found: list[ReservedMachines] = []
    for years, price in report.terms.reserved:
        name = offline.reserved_name(years)
        units = {resource: plan.units[name] for resource, plan in report.risk.items()}
        found += machines_for(Amount.from_units(units, per_gpu), name, price, sizes)
    return tuple(found)


def advised_use(workload: Workload, report: MixReport) -> pl.DataFrame:
    """Demand over the log with the advised level of what is counted (see ``use_over_time``).

    The level is on top of what is committed on the day of the prices.
    """
    jobs = bought_jobs(workload)
    counted = report.counted
    units = jobs.gpus if counted == "GPUs" else jobs.cores
    level = sum(report.risk[counted].units.values()) + report.held_units(counted)
    begin, runtime = jobs.start_hours * 3600.0, jobs.hours * 3600.0
    return use_over_time(begin, runtime, units, jobs.span_hours, level)
