"""Pictures of plans of transient capacity: how much is there how often, and what nines cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.transient.availability import capacity_distribution, counted
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import CapacityPlan
from foresail.cloud.transient.tiers import TieredPlan
from foresail.model.words import number, percent
from foresail.reports.curve_figure import Curve, curve_figure, scale_of
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import PolicyStyle, named_styles

_LEAST: Final = 1e-9
_MOST_POINTS: Final = 2_000

AnyPlan = CapacityPlan | TieredPlan


def capacity_figure(offers: Offers, plans: Mapping[str, CapacityPlan]) -> Figure:
    """Draw how often how much capacity is there, by the model; a line for each plan by name."""
    curves, tables, findings = [], [], []
    for style, (name, planned) in zip(named_styles(list(plans)), plans.items(), strict=True):
        curve, table = _capacities(offers, planned, style)
        curves.append(curve)
        tables.append(table if len(plans) == 1 else table.select(pl.lit(name).alias("tier"), "*"))
        whose = "" if len(plans) == 1 else f"{name}: "
        findings.append(
            f"{whose}{number(planned.capacity)} units are missing "
            f"{percent(planned.availability_shortfall)} of the time."
        )
    across = scale_of("capacity", "number", np.concatenate([c.x for c in curves]), log=False)
    up = scale_of(
        "share of time without it", "share", np.concatenate([c.y for c in curves]), log=True
    )
    target = next(iter(plans.values())).target
    return curve_figure(
        "capacities",
        "How often is how much capacity there?",
        findings,
        curves,
        across,
        up,
        table=pl.concat(tables),
        note="By the model; shares below a billionth are drawn there.",
        level=(max(1.0 - target, _LEAST), "target" if len(plans) == 1 else "target of a tier"),
    )


def _capacities(
    offers: Offers, planned: CapacityPlan, style: PolicyStyle
) -> tuple[Curve, pl.DataFrame]:
    rented = {each.type.name: each.count for each in planned.rented}
    counts = counted(offers, [rented.get(each.name, 0) for each in offers.types])
    top = int(counts @ offers.units)
    masses = capacity_distribution(offers, counts, top)
    short = np.concatenate(([0.0], np.cumsum(masses)[:-1]))
    capacity = np.arange(top + 1, dtype=np.float64) * float(offers.grain)
    steps = np.unique(
        np.concatenate(
            (
                np.linspace(0, top, min(top + 1, _MOST_POINTS)).astype(np.int64),
                [min(offers.grains(planned.capacity), top)],
            )
        )
    )
    need = int(np.searchsorted(capacity[steps], planned.capacity))
    curve = Curve(
        style,
        capacity[steps],
        np.maximum(short[steps], _LEAST),
        [min(need, steps.size - 1)],
        [f"needed: {number(planned.capacity)}"],
        shape="vh",
    )
    return curve, pl.DataFrame({"capacity": capacity[steps], "share_of_time_without": short[steps]})


def frontier_table(plans: Sequence[tuple[float, AnyPlan]]) -> pl.DataFrame:
    """A row per target and its plan."""
    parts = [each.plans if isinstance(each, TieredPlan) else (each,) for _, each in plans]
    rented = [[r for part in each for r in part.rented] for each in parts]
    return pl.DataFrame(
        {
            "target_availability": [target for target, _ in plans],
            "availability_shortfall": [
                1.0 - each.availability
                if isinstance(each, TieredPlan)
                else each.availability_shortfall
                for _, each in plans
            ],
            "price_per_hour": [each.price_per_hour for _, each in plans],
            "on_demand_share": [each.on_demand_share for _, each in plans],
            "surplus_share": [each.surplus_share for _, each in plans],
            "machines": [sum(r.count for r in each) for each in rented],
            "types": [len({r.type.name for r in each}) for each in rented],
        },
        schema_overrides={"on_demand_share": pl.Float64},
    )


def frontier_figure(plans: Sequence[tuple[float, AnyPlan]]) -> Figure | MissingFigure:
    """Price against target, ascending."""
    title = "What does each further nine cost?"
    if len(plans) < 2:
        return MissingFigure(
            title,
            "These types reach fewer than two of the usual targets.",
            "More types, or more available ones, would.",
        )
    relative = all(each.on_demand_share is not None for _, each in plans)
    values = np.array(
        [
            each.price_per_hour if each.on_demand_share is None else each.on_demand_share
            for _, each in plans
        ]
    )
    nines = np.array([nines_of(1.0 - target) for target, _ in plans])
    across = scale_of("target, nines", "number", nines, log=False)
    across.axis["rangemode"] = "normal"
    kind = "share" if relative else "number"
    up = scale_of("price, of on demand" if relative else "price per hour", kind, values, log=False)
    (style,) = named_styles(["transient"])
    say = percent if relative else number
    first, last = plans[0][1], plans[-1][1]
    return curve_figure(
        "frontier",
        title,
        [
            f"From {number(float(nines[0]))} to {number(float(nines[-1]))} nines the price goes "
            f"from {say(float(values[0]))} to {say(float(values[-1]))}, and the surplus from "
            f"{percent(first.surplus_share)} to {percent(last.surplus_share)}."
        ],
        [Curve(style, nines, values, [0, len(plans) - 1], [say(values[0]), say(values[-1])])],
        across,
        up,
        table=frontier_table(plans),
        note="3 nines: 99.9 % of the time. Targets that these types cannot reach are left out.",
        level=(1.0, "on demand") if relative else None,
    )


def nines_of(short: float) -> float:
    """A share of time without as its number of nines; infinite where it is none."""
    if math.isnan(short):
        return math.nan
    return -math.log10(short) if short > 1e-12 else math.inf
