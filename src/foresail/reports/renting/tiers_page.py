"""The page about a service of several tiers: what each of them rents, and how often all are up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.planning import availability_text
from foresail.cloud.transient.tiers import TieredPlan
from foresail.model.words import count, number, percent
from foresail.reports.renting.page import CloudPage, NumbersTable
from foresail.reports.renting.transient_figures import (
    capacity_figure,
    frontier_figure,
    frontier_table,
)
from foresail.reports.renting.transient_page import (
    against_on_demand,
    how_often,
    how_types_fail,
    plan_table,
    said_often,
)


@dataclass(frozen=True)
class TieredAnswer:
    """Content of the page: what could be rented, and what to rent for every tier.

    ``target`` is the share of time that all tiers must have their capacity, ``frontier`` what of
    such targets can be reached, ascending, and their plans; ``realised`` is the share in the
    history that the offers were learned from, where there is one.
    """

    offers: Offers
    plan: TieredPlan
    target: float
    frontier: Sequence[tuple[float, TieredPlan]]
    realised: float | None = None


def tiers_page(answer: TieredAnswer) -> CloudPage:
    """The page about one service."""
    planned = answer.plan
    named = zip(planned.tiers, planned.plans, strict=True)
    return CloudPage(
        title="What to rent so that all tiers have their capacity",
        situation=(
            f"{count(len(planned.tiers), 'tier')}, all up {answer.target:.12g} of the time; "
            f"{count(len(answer.offers.types), 'type')} of transient machines to choose from."
        ),
        sentences=tier_sentences(answer),
        parts=[
            tiers_table(planned),
            *tier_tables(planned),
            capacity_figure(answer.offers, {tier.name: each for tier, each in named}),
            frontier_figure(answer.frontier),
        ],
        notes=[
            f"Each tier is planned by itself, for {planned.plans[0].target:.12g} of the time: were "
            "they independent, all would be up as often as is asked. A type's machines are taken "
            "to be up or down together, in all tiers that have some.",
            how_types_fail(answer.offers),
        ],
    )


def tier_sentences(answer: TieredAnswer) -> list[str]:
    """The plan in words."""
    planned = answer.plan
    checked = {} if answer.realised is None else {"in all of the history": answer.realised}
    machines = sum(each.count for part in planned.plans for each in part.rented)
    said = [
        f"Rent {count(machines, 'machine')} for {number(planned.price_per_hour)} an hour: all "
        "tiers are up " + how_often(1.0 - planned.availability, checked)
    ]
    said += against_on_demand(planned.on_demand_share)
    said.append(
        "Tiers with machines of one type lose them together. Were their machines independent of "
        "each other, all tiers would be up "
        f"{availability_text(1.0 - planned.independent_availability)} of the time."
    )
    if answer.realised is not None:
        said.append(
            f"In all of the history, all tiers had their capacity {said_often(answer.realised)}."
        )
    return said


def tiers_table(planned: TieredPlan) -> NumbersTable:
    """A row for each tier, and one for all."""
    rows, records = [], []
    for tier, each in zip(planned.tiers, planned.plans, strict=True):
        machines = sum(rented.count for rented in each.rented)
        rows.append(
            (
                tier.name,
                number(each.capacity),
                number(each.total_capacity),
                f"{machines:,}",
                availability_text(each.availability_shortfall),
                percent(each.on_demand_share),
                f"{each.price_per_hour:.4f}",
            )
        )
        records.append(
            {
                "tier": tier.name,
                "needed": each.capacity,
                "capacity": each.total_capacity,
                "machines": machines,
                "availability_shortfall": each.availability_shortfall,
                "on_demand_share": each.on_demand_share,
                "price_per_hour": each.price_per_hour,
            }
        )
    rows.append(
        (
            "together",
            number(sum(each.capacity for each in planned.plans)),
            number(sum(each.total_capacity for each in planned.plans)),
            f"{sum(r.count for each in planned.plans for r in each.rented):,}",
            availability_text(1.0 - planned.availability),
            percent(planned.on_demand_share),
            f"{planned.price_per_hour:.4f}",
        )
    )
    return NumbersTable(
        "tiers",
        "What does each tier take?",
        ("tier", "needed", "rented", "machines", "availability", "of on demand", "price per hour"),
        rows,
        pl.DataFrame(records, infer_schema_length=None),
        "Availability of all together: that every tier has its capacity.",
    )


def tier_tables(planned: TieredPlan) -> list[NumbersTable]:
    """Tabulate what to rent for each tier."""
    return [
        replace(plan_table(each), name=f"plan-{place}", title=f"What to rent for {tier.name}")
        for place, (tier, each) in enumerate(
            zip(planned.tiers, planned.plans, strict=True), start=1
        )
    ]


def tier_record(answer: TieredAnswer) -> dict[str, Any]:
    """The plan's record, and what else is known of it."""
    record = answer.plan.to_record()
    record["target_availability"] = answer.target
    record["frontier"] = frontier_table(answer.frontier).to_dicts()
    if answer.realised is not None:
        record["availability_in_history"] = answer.realised
        record["availability_expected"] = min(answer.plan.availability, answer.realised)
    return record
