"""The page about transient capacity for a service: what to rent, how available, at what price."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.transient.estimating import Realised, mean_availability
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import CapacityPlan
from foresail.cloud.transient.planning import availability_text
from foresail.cloud.transient.serving import BatchDone, Overload, Served
from foresail.model.arrays import Floats
from foresail.model.words import count, duration, number, percent
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.renting.page import CloudPage, NumbersTable
from foresail.reports.renting.transient_figures import (
    capacity_figure,
    frontier_figure,
    frontier_table,
    nines_of,
)

_YEAR: Final = 365.25 * 86_400.0
_MOST_PAIRS: Final = 10
ORACLE: Final = "oracle"
"""The window whose plans are made of the time that they are held to."""


@dataclass(frozen=True)
class HeldToHistory:
    """Backtest of a plan in the history that it was made of."""

    realised: Realised
    """Availability and price."""
    shuffled: Floats
    """Shape (draws,): availabilities, had the markets not moved together."""
    together: Sequence[tuple[str, str, float]] = ()
    """Pairs of the plan's markets and how their being up is correlated, the most first; pairs of
    which one never changed are left out."""
    batch: BatchDone | None = None
    """What batch tasks made of the surplus, where there were any."""
    served: Served | None = None
    served_unprotected: Served | None = None
    """What became of requests with a daemon that hears warnings, and without, where there were
    any."""
    overload: Overload | None = None
    """Of the same requests, what became of them while there was less than the capacity."""


@dataclass(frozen=True)
class TrailingWindow:
    """Plans made again and again of a trailing window, and what became of them."""

    name: str
    found: Sequence[Realised]


@dataclass(frozen=True)
class TransientAnswer:
    """Content of the page: what could be rented, what to rent, and plans by target, ascending.

    The plan in the history, and trailing windows, are shown where there are some.
    """

    offers: Offers
    plan: CapacityPlan
    frontier: Sequence[CapacityPlan]
    held: HeldToHistory | None = None
    windows: Sequence[TrailingWindow] = ()


def transient_page(answer: TransientAnswer) -> CloudPage:
    """The page about one plan."""
    planned = answer.plan
    parts: list[NumbersTable | Figure | MissingFigure] = [
        plan_table(planned),
        capacity_figure(answer.offers, {"plan": planned}),
        frontier_figure([(each.target, each) for each in answer.frontier]),
    ]
    if answer.windows:
        parts.append(windows_table(answer.windows))
    if answer.held is not None and answer.held.together:
        parts.append(together_table(answer.held.together))
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
            + how_types_fail(answer.offers),
            "Prices and availabilities are as they were given."
            if answer.held is None
            else "Prices are means over the time that was learned from.",
        ],
    )


def sentences(answer: TransientAnswer) -> list[str]:
    """The plan in words."""
    planned = answer.plan
    machines = sum(each.count for each in planned.rented)
    said = [
        f"Rent {count(machines, 'machine')} of {count(len(planned.rented), 'type')} for "
        f"{number(planned.price_per_hour)} an hour: the capacity is there "
        + how_often(planned.availability_shortfall, _checked(answer))
    ]
    said += against_on_demand(planned.on_demand_share)
    said.append(
        f"With all machines up there is {number(planned.total_capacity)}: "
        f"{percent(planned.surplus_share)} more than the service needs, for batch work at no "
        "further cost."
    )
    if answer.held is not None:
        had, shuffled = answer.held.realised, answer.held.shuffled
        said.append(
            f"In all of the history, the capacity was there {said_often(had.availability)}; had "
            f"the markets not moved together, {said_often(float(shuffled.mean()))}."
        )
        said += _in_use(answer.held)
    return said


def _checked(answer: TransientAnswer) -> dict[str, float]:
    """Availability in the history: of the plan in all of it, and of others in what came after."""
    windows = [each for each in answer.windows if each.name != ORACLE]
    checked = {
        f"after plans made like it of {each.name}": mean_availability(each.found)
        for each in windows
    }
    if answer.held is not None:
        checked["in all of the history"] = answer.held.realised.availability
    return checked


def how_often(short: float, checked: Mapping[str, float]) -> str:
    """Say how often there is enough, and what is missed a year, by what says least of it.

    ``short`` is the share of the time in which by the model there is too little; ``checked`` are
    availabilities that were found, by where.
    """
    least = {1.0 - known: where for where, known in checked.items() if known < 1.0 - short}
    worst = max(least, default=short)
    words = f"{availability_text(worst)} of the time, missing {duration(worst * _YEAR)} a year"
    if not least:
        return f"{words}."
    return (
        f"{words}, as it was {least[worst]}. By the model it would be {availability_text(short)}: "
        "the history does not bear that out."
    )


def how_types_fail(offers: Offers) -> str:
    """Return whether types are taken to fail together, in words."""
    if offers.shocks is None:
        return "Types are taken to fail independently of each other."
    return (
        "Types fail together as fitted: independently only within each of "
        f"{count(offers.weights.size, 'state')} of the markets."
    )


def against_on_demand(share: float | None) -> list[str]:
    """Say what the price is of that on demand, in words, where that is known."""
    if share is None:
        return []
    words = f"That is {percent(share)} of what it costs on demand"
    return [f"{words}." if share < 1.0 else f"{words}: rent it on demand instead."]


def said_often(availability: float) -> str:
    """Say how often in words: ``0.9994 of the time``, or ``always``."""
    short = 1.0 - availability
    return "always" if short <= 0.0 else f"{availability_text(short)} of the time"


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
    if held.overload is not None:
        said.append(_overloaded(held.overload))
    return said


def _overloaded(found: Overload) -> str:
    """Say what becomes of requests while there is too little capacity."""
    if not found.overloaded_seconds:
        return "There is always as much as is needed: no request queues."
    return (
        "If the capacity is just enough for them, more come than can be done for "
        f"{duration(found.overloaded_seconds)} in all: {number(round(found.queued))} queue, "
        f"{duration(found.mean_wait_seconds)} on average, and {number(round(found.turned_away))} "
        f"({percent(found.turned_away / found.requests)}) are turned away."
    )


def plan_table(planned: CapacityPlan) -> NumbersTable:
    """Tabulate what to rent."""
    rows = [
        (
            each.type.name,
            f"{each.count:,}",
            number(each.capacity),
            availability_text(1.0 - each.type.availability),
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
            availability_text(planned.availability_shortfall),
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


def together_table(pairs: Sequence[tuple[str, str, float]]) -> NumbersTable:
    """Tabulate which of the plan's markets were up and down together."""
    return NumbersTable(
        "together",
        "Which of these markets fail together?",
        ("market", "and", "correlation"),
        [(one, other, f"{value:+.2f}".replace("-", "−")) for one, other, value in pairs][
            :_MOST_PAIRS
        ],
        pl.DataFrame(pairs, schema=["market", "and", "correlation"], orient="row"),
        "Correlation of being up, over all the history: 1 if always at the same time, 0 if they "
        f"know nothing of each other. The {_MOST_PAIRS} that fail together most; markets that were "
        "always up are left out."
        if len(pairs) > _MOST_PAIRS
        else "Correlation of being up, over all the history: 1 if always at the same time, 0 if "
        "they know nothing of each other. Markets that were always up are left out.",
    )


def windows_table(windows: Sequence[TrailingWindow]) -> NumbersTable:
    """Tabulate what was planned for and what it came to, by window."""
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
                "–" if math.isnan(availability) else availability_text(1.0 - availability),
                number(nines_of(1.0 - availability)),
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


def transient_record(answer: TransientAnswer) -> dict[str, Any]:
    """The plan's record, and what else is known of it."""
    record = answer.plan.to_record()
    plans = [(each.target, each) for each in answer.frontier]
    record["frontier"] = frontier_table(plans).to_dicts()
    if answer.held is not None:
        record["availability_in_history"] = answer.held.realised.availability
        record["availability_in_shuffled_history"] = float(answer.held.shuffled.mean())
        record["correlations"] = [
            {"market": one, "and": other, "correlation": value}
            for one, other, value in answer.held.together
        ]
        for name in ("batch", "served", "served_unprotected", "overload"):
            done = getattr(answer.held, name)
            if done is not None:
                record[name] = asdict(done)
    found = [each for each in _checked(answer).values() if not math.isnan(each)]
    record["availability_expected"] = min([1.0 - answer.plan.availability_shortfall, *found])
    if answer.windows:
        table = windows_table(answer.windows).table.fill_nan(None)
        record["windows"] = table.to_dicts()
    return record
