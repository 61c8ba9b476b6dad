"""What is told about the purchasing mix, and the same for machines to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from foresail.cloud.purchasing.forecast import RiskPlan
from foresail.cloud.purchasing.machines import ReservedMachines
from foresail.cloud.purchasing.mix import MixReport


@dataclass(frozen=True, eq=False)
class PurchaseAnswer:
    """All that the page tells."""

    log: str
    """Its name."""
    catalogue: str
    valid_on: date
    """Where the prices are from, and of which day."""
    risk: float
    """At which the advice is made."""
    report: MixReport
    """What was found."""
    machines: Sequence[ReservedMachines]
    """The advised amounts as machines."""
    course: pl.DataFrame
    """Demand over the log (``foresail.cloud.purchasing.machines``), its level that of the
    advice."""

    @property
    def plan(self) -> RiskPlan:
        """What to reserve of the resource that is counted."""
        return self.report.risk[self.report.counted]

    @property
    def expected_share(self) -> float:
        """The advised cost of all resources, relative to all on demand."""
        report = self.report
        pairs = list(zip(report.plans, report.resources, strict=True))
        costs = [
            report.risk[plan.resource].expected_cost_share * plan.demand_hours * each.per_hour
            for plan, each in pairs
        ]
        return sum(costs) / sum(
            plan.demand_hours * each.per_hour * each.standard_work for plan, each in pairs
        )


def record(answer: PurchaseAnswer) -> dict[str, Any]:
    """All of it for machines to read."""
    report = answer.report
    return {
        "log": answer.log,
        "prices": {
            "name": answer.catalogue,
            "date": str(answer.valid_on),
            "currency": report.prices.currency,
        },
        "provider": report.provider,
        "transient": report.terms.transient is not None,
        "jobs": report.jobs,
        "left_out": report.left_out,
        "spread": report.spread,
        "memory_known": report.memory_known,
        "counted": report.counted,
        "log_hours": report.log_hours,
        "planned_hours": report.hours,
        "risk": answer.risk,
        "reserve": [
            {
                "machine": each.instance.name,
                "count": each.count,
                "option": each.option,
                "price_per_hour": each.per_hour,
            }
            for each in answer.machines
        ],
        "reserve_units": {name: dict(plan.units) for name, plan in report.risk.items()},
        "first_year_share": {
            name: {
                "expected": plan.expected_cost_share,
                **{f"q{100 * level:02.0f}": share for level, share in plan.cost_shares.items()},
            }
            for name, plan in report.risk.items()
        },
        "costs": report.costs.to_dicts(),
        "options": report.options.to_dicts(),
        "by_demand_error": report.by_demand_error.to_dicts(),
        "committed": [
            {
                "machine": each.instance,
                "count": each.count,
                "until": None if each.until is None else str(each.until),
                "price_per_hour": each.price_per_hour,
            }
            for each in report.commitments
        ],
        "sunk_cost": report.sunk_cost,
        "exact": None
        if report.exact is None
        else {
            "slot_hours": report.exact.slot_hours,
            "share": report.exact.exact,
            "levels_share": report.exact.levels,
        },
    }
