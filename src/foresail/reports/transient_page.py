"""The page about transient capacity for a service: what to rent, how available, at what price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.transient.availability import capacity_distribution, counted
from foresail.cloud.transient.batch import BatchDone
from foresail.cloud.transient.estimating import Realised, mean_availability
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import CapacityPlan
from foresail.cloud.transient.planning import said_availability
from foresail.cloud.transient.serving import Served
from foresail.model.words import count, duration, number, percent
from foresail.reports.cloud_page import CloudPage, NumbersTable
from foresail.reports.curve_figure import Curve, curve_figure
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.plot_axes import scale_of
from foresail.reports.style import named_styles

_YEAR: Final = 365.25 * 86_400.0
_LEAST: Final = 1e-9
_MOST_POINTS: Final = 2_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldToHistory:
    """What a plan would have had in the history that it was made of.

    Parameters
    ----------
    realised
        Availability and price.
    shuffled
        Shape (draws,): availabilities, had the markets not moved together.
    batch
        What batch tasks made of the surplus, where there were any.
    served, served_unprotected
        What became of requests with a daemon that hears warnings, and without, where there were
        any.
    """

    realised: Realised
    shuffled: Floats
    batch: BatchDone | None = None
    served: Served | None = None
    served_unprotected: Served | None = None


@dataclass(frozen=True)
class Window:
    """Plans made again and again of a trailing window, and what became of them."""

    name: str
    found: Sequence[Realised]


@dataclass(frozen=True)
class TransientAnswer:
    """All that the page tells.

    Parameters
    ----------
    offers
        What could be rented.
    plan
        What to rent.
    frontier
        Plans by target, ascending.
    held
        The plan in the history, where there is one.
    windows
        Trailing windows, where they were asked for.
    """

    offers: Offers
    plan: CapacityPlan
    frontier: Sequence[CapacityPlan]
    held: HeldToHistory | None = None
    windows: Sequence[Window] = ()


def transient_page(answer: TransientAnswer) -> CloudPage:
    """The page about one plan."""
    planned = answer.plan
    parts: list[NumbersTable | Figure | MissingFigure] = [
        plan_table(planned),
        _capacities(answer),
        _frontier_figure(answer),
    ]
    if answer.windows:
        parts.append(windows_table(answer.windows))
    extra = (
        f", planned with {number(planned.extra_nines)} nines more" if planned.extra_nines else ""
    )
    return CloudPage(
        title="What to rent so that the service has its capacity",
        situation=(
            f"{number(planned.capacity)} units of capacity, there "
            f"{planned.target:.12g} of the time{extra}; "
            f"{count(len(answer.offers.types), 'type')} of transient machines to choose from."
        ),
        sentences=sentences(answer),
        parts=parts,
        notes=[
            "A type's machines are taken to be up or down together. "
            + (
                "Types are taken to fail independently of each other."
                if answer.offers.shocks is None
                else "Types fail together as fitted: independently only within each of "
                f"{count(answer.offers.weights.size, 'state')} of the markets."
            ),
            f"Chosen by {planned.method}. "
            + (
                "Prices and availabilities are as they were given."
                if answer.held is None
                else "Prices are means over the time that was learned from."
            ),
        ],
    )


def sentences(answer: TransientAnswer) -> list[str]:
    """The plan in words."""
    planned = answer.plan
    machines = sum(each.count for each in planned.rented)
    short = planned.availability_shortfall
    said = [
        f"Rent {count(machines, 'machine')} of {count(len(planned.rented), 'type')} for "
        f"{number(planned.price_per_hour)} an hour: the capacity is there "
        f"{said_availability(short)} of the time, missing {duration(short * _YEAR)} a year."
    ]
    share = planned.on_demand_share
    if share is not None:
        words = f"That is {percent(share)} of what it costs on demand"
        said.append(f"{words}." if planned.is_worth_it else f"{words}: rent it on demand instead.")
    said.append(
        f"With all machines up there is {number(planned.total_capacity)}: "
        f"{percent(planned.surplus_share)} more than the service needs, for batch work at no "
        "further cost."
    )
    if answer.held is not None:
        had, shuffled = answer.held.realised, answer.held.shuffled
        said.append(
            "In the history that it was made of, the capacity was there "
            f"{said_availability(1.0 - had.availability)} of the time; had the markets not moved "
            f"together, {said_availability(1.0 - float(shuffled.mean()))}."
        )
        said += _in_use(answer.held)
    return said


def _in_use(held: HeldToHistory) -> list[str]:
    """Batch work and requests, in words."""
    said = []
    batch = held.batch
    if batch is not None:
        offered = batch.finished + batch.lost + batch.unfinished + batch.idle
        said.append(
            f"Batch tasks on the surplus finished {number(batch.finished / 3600.0)} "
            f"capacity hours ({percent(batch.finished / offered if offered else 0.0)} of it) and "
            f"lost {percent(batch.lost / offered if offered else 0.0)} in "
            f"{count(batch.evictions, 'eviction')}."
        )
    if held.served is not None and held.served_unprotected is not None:
        said.append(
            f"Of {count(held.served.requests, 'request')} {held.served.failed:,} fail where "
            f"machines are cordoned on a warning, {held.served_unprotected.failed:,} where not."
        )
    return said


def plan_table(planned: CapacityPlan) -> NumbersTable:
    """What to rent."""
    rows = [
        (
            each.type.name,
            f"{each.count:,}",
            number(each.capacity),
            said_availability(1.0 - each.type.availability),
            f"{each.type.price_per_hour:.4f}",
            f"{each.price_per_hour:.4f}",
        )
        for each in sorted(planned.rented, key=lambda each: -each.price_per_hour)
    ]
    rows.append(
        (
            "together",
            f"{sum(each.count for each in planned.rented):,}",
            number(planned.total_capacity),
            said_availability(planned.availability_shortfall),
            "",
            f"{planned.price_per_hour:.4f}",
        )
    )
    table = pl.DataFrame(planned.to_record()["machines"], infer_schema_length=None)
    headings = ("type", "machines", "capacity", "availability", "each, per hour", "price per hour")
    return NumbersTable(
        "plan",
        "What to rent",
        headings,
        rows,
        table,
        f"Availability of all together: of {number(planned.capacity)} units.",
    )


def frontier_table(plans: Sequence[CapacityPlan]) -> pl.DataFrame:
    """A row per target."""
    return pl.DataFrame(
        {
            "target_availability": [each.target for each in plans],
            "availability_shortfall": [each.availability_shortfall for each in plans],
            "price_per_hour": [each.price_per_hour for each in plans],
            "on_demand_share": [each.on_demand_share for each in plans],
            "surplus_share": [each.surplus_share for each in plans],
            "machines": [sum(rented.count for rented in each.rented) for each in plans],
            "types": [len(each.rented) for each in plans],
        },
        schema_overrides={"on_demand_share": pl.Float64},
    )


def windows_table(windows: Sequence[Window]) -> NumbersTable:
    """What was planned for and what it came to, by window."""
    rows = []
    records = []
    for window in windows:
        kept = [each for each in window.found if each.plan is not None]
        availability = mean_availability(window.found)
        paid = [
            each.price_per_hour / each.plan.on_demand_price_per_hour
            for each in kept
            if each.plan is not None and each.plan.on_demand_price_per_hour is not None
        ]
        share = float(np.mean(paid)) if paid else math.nan
        surplus = (
            float(np.mean([each.plan.surplus_share for each in kept if each.plan is not None]))
            if kept
            else math.nan
        )
        rows.append(
            (
                window.name,
                f"{len(kept)} of {len(window.found)}",
                "–" if math.isnan(availability) else said_availability(1.0 - availability),
                number(_nines(1.0 - availability)),
                percent(share),
                percent(surplus),
            )
        )
        records += [
            {
                "window": window.name,
                "begin_seconds": each.begin,
                "end_seconds": each.end,
                "planned": each.plan is not None,
                "availability": each.availability,
                "price_per_hour": each.price_per_hour,
            }
            for each in window.found
        ]
    headings = ("learned from", "plans", "realised", "nines", "paid of on demand", "surplus")
    return NumbersTable(
        "windows",
        "Does what was learned hold afterwards?",
        headings,
        rows,
        pl.DataFrame(records, infer_schema_length=None),
        "Each plan is made of the time before it only, and held to the time after; “oracle” plans "
        "are made of that time itself. Nines of all the time together.",
    )


def _capacities(answer: TransientAnswer) -> Figure:
    """How often how much capacity is there, by the model."""
    planned, offers = answer.plan, answer.offers
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
    drawn = np.maximum(short[steps], _LEAST)
    need = int(np.searchsorted(capacity[steps], planned.capacity))
    (style,) = named_styles(["plan"])
    across = scale_of("capacity", "number", capacity, log=False)
    up = scale_of("share of time without it", "share", drawn, log=True)
    return curve_figure(
        "capacities",
        "How often is how much capacity there?",
        [
            f"{number(planned.capacity)} units are missing "
            f"{percent(planned.availability_shortfall)} of the time."
        ],
        [
            Curve(
                style,
                capacity[steps],
                drawn,
                [min(need, steps.size - 1)],
                [f"needed: {number(planned.capacity)}"],
                shape="vh",
            )
        ],
        across,
        up,
        table=pl.DataFrame({"capacity": capacity[steps], "share_of_time_without": short[steps]}),
        note="By the model; shares below a billionth are drawn there.",
        level=(max(1.0 - planned.target, _LEAST), "target"),
    )


def _frontier_figure(answer: TransientAnswer) -> Figure | MissingFigure:
    plans = answer.frontier
    title = "What does each further nine cost?"
    if len(plans) < 2:
        return MissingFigure(
            title,
            "These types reach fewer than two of the usual targets.",
            "More types, or more available ones, would.",
        )
    relative = all(each.on_demand_share is not None for each in plans)
    values = np.array(
        [
            each.price_per_hour if each.on_demand_share is None else each.on_demand_share
            for each in plans
        ]
    )
    nines = np.array([_nines(1.0 - each.target) for each in plans])
    across = scale_of("target, nines", "number", nines, log=False)
    across.axis["rangemode"] = "normal"
    kind = "share" if relative else "number"
    up = scale_of("price, of on demand" if relative else "price per hour", kind, values, log=False)
    (style,) = named_styles(["transient"])
    say = percent if relative else number
    first, last = plans[0], plans[-1]
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


def _nines(short: float) -> float:
    if math.isnan(short):
        return math.nan
    return -math.log10(short) if short > 1e-12 else math.inf
