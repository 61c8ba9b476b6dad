"""What was found of the mix: the optimum in hindsight, what to reserve, and the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from foresail.cloud.prices import Commitment
from foresail.cloud.purchasing.exact import ExactComparison
from foresail.cloud.purchasing.forecast import RiskPlan
from foresail.cloud.purchasing.offline_plan import OfflinePlan
from foresail.cloud.purchasing.practice import OnlineReport
from foresail.cloud.purchasing.resources import Resource
from foresail.cloud.purchasing.terms import PurchaseTerms, ResourcePrices


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
