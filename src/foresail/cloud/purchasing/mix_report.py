"""Report of a mix: the optimum in hindsight, and what to reserve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from foresail.cloud.prices import Commitment
from foresail.cloud.purchasing.exact import ExactComparison
from foresail.cloud.purchasing.forecast import RiskPlan
from foresail.cloud.purchasing.offline_plan import OfflinePlan
from foresail.cloud.purchasing.resources import Resource
from foresail.cloud.purchasing.terms import PurchaseTerms, ResourcePrices


@dataclass(frozen=True, eq=False)
class MixReport:
    """What to buy and what it costs, in ``prices.currency``."""

    provider: str
    terms: PurchaseTerms
    prices: ResourcePrices
    """What is on sale, relative to on demand, and what a core and a GiB cost there."""
    jobs: int
    left_out: int
    """Jobs of the log that were bought for; those without a runtime or a size."""
    spread: int
    """Jobs of which no machine on sale holds a task: each is charged for several."""
    memory_known: bool
    """Whether the log says what memory jobs ask for; else cores come with 4 GiB each."""
    log_hours: float
    hours: float
    """Length of the log, and of the time planned for (longer where the log is repeated)."""
    plans: tuple[OfflinePlan, ...]
    """The optimum in hindsight of each resource."""
    resources: tuple[Resource, ...]
    """What jobs hold of each, and what a unit costs."""
    commitments: tuple[Commitment, ...]
    """Those of the catalogue that have not ended by the day of its prices."""
    sunk_cost: float
    """Of these, over the time planned for: paid whatever is bought; in no other cost."""
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
    """What to reserve of each resource at the stated risk."""
    exact: ExactComparison | None
    """How far the optimum's heuristic is from the exact optimum; None: not asked, or too large."""

    def share(self, policy: str) -> float:
        """Cost of a policy of ``costs``, relative to all on demand."""
        return float(self.costs.filter(pl.col("policy") == policy)["share"][0])

    def held_units(self, resource: str) -> float:
        """What is committed of a resource on the day of the prices."""
        return sum(h.units for r in self.resources if r.name == resource for h in r.held)
