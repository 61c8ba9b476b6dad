"""Pages about transient capacity for a service, whole or in tiers: what to rent, how available."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.transient.availability import capacity_distribution, counted
from foresail.cloud.transient.estimating import Realised, mean_availability
from foresail.cloud.transient.offers import Offers
from foresail.cloud.transient.plan import CapacityPlan
from foresail.cloud.transient.planning import availability_text
from foresail.cloud.transient.tiers import TieredPlan
from foresail.model.words import count, duration, number, percent
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.renting.page import CloudPage, Column, NumbersTable, numbers_table, records_of
from foresail.reports.style import PolicyStyle, named_styles

_YEAR: Final = 365.25 * 86_400.0
_MOST_PAIRS: Final = 10
_LEAST: Final = 1e-9
_MOST_POINTS: Final = 2_000
ORACLE: Final = "oracle"
"""The window whose plans are made of the time that they are held to."""

AnyPlan = CapacityPlan | TieredPlan
_IN_HISTORY: Final = "in all of the history"


@dataclass(frozen=True)
class TrailingWindow:
    """Plans made again and again of a trailing window, and what became of them."""

    name: str
    found: Sequence[Realised]


@dataclass(frozen=True)
class TransientAnswer:
    """Content of the page: what could be rented, and what to rent, for a service whole or in tiers.

    What history says is there where the offers were learned from one.
    """

    offers: Offers
    plan: AnyPlan
    target: float
    """Share of time that the capacity, or that of all tiers, must be there."""
    frontier: Sequence[tuple[float, AnyPlan]]
    """Such targets that can be reached, ascending, and their plans."""
    realised: float | None = None
    """Share of the time in all of the history."""
    shuffled: float | None = None
    """The same, had the markets not moved together; not known of tiers."""
    together: Sequence[tuple[str, str, float]] = ()
    """Pairs of the plan's markets and how their being up is correlated, the most first; pairs of
    which one never changed are left out."""
    windows: Sequence[TrailingWindow] = ()
    held: Sequence[float] = ()
    """Share of the time in all of the history for each plan of the frontier."""

    @property
    def had(self) -> float:
        """Return the least share of the time found, in history or after plans like it; 0: none."""
        found = _checked(self).values()
        return 0.0 if any(map(math.isnan, found)) else min(found, default=1.0)

    @property
    def is_accepted(self) -> bool:
        """Return whether the target was met wherever the plan, or plans like it, were held to."""
        return self.had >= self.target


def transient_page(answer: TransientAnswer) -> CloudPage:
    """The page about one plan."""
    planned, target = answer.plan, f"{answer.target:.12g} of the time"
    choice = f"{count(len(answer.offers.types), 'type')} of transient machines to choose from."
    if isinstance(planned, TieredPlan):
        title = "What to rent so that all tiers have their capacity"
        situation = f"{count(len(planned.tiers), 'tier')}, all up {target}; {choice}"
        notes = [
            f"Each tier is planned by itself, for {planned.plans[0].target:.12g} of the time: were "
            "they independent, all would be up as often as is asked. A type's machines are taken "
            "to be up or down together, in all tiers that have some."
        ]
    else:
        nines = f", planned with {number(planned.extra_nines)} nines more"
        title = "What to rent so that the service has its capacity"
        situation = (
            f"{number(planned.capacity)} units of capacity, there {target}"
            f"{nines if planned.extra_nines else ''}; {choice}"
        )
        notes = ["A type's machines are taken to be up or down together."]
    return CloudPage(
        title=title,
        situation=situation,
        sentences=sentences(answer),
        parts=[
            *plan_tables(planned),
            _capacity_figure(answer.offers, _named(planned)),
            frontier_figure(answer.frontier),
            *([windows_table(answer.windows)] if answer.windows else []),
            *([_together_table(answer.together)] if answer.together else []),
        ],
        notes=[
            *notes,
            "Types are taken to fail independently of each other."
            if (shocks := answer.offers.shocks) is None
            else "Types fail together as fitted: independently only within each of "
            f"{count(shocks.weights.size, 'state')} of the markets.",
            "Prices and availabilities are as they were given."
            if answer.realised is None
            else "Prices are means over the time that was learned from.",
        ],
    )


def _named(planned: AnyPlan) -> dict[str, CapacityPlan]:
    """The plans that a plan consists of, by their names."""
    if not isinstance(planned, TieredPlan):
        return {"plan": planned}
    return {tier.name: each for tier, each in zip(planned.tiers, planned.plans, strict=True)}


def sentences(answer: TransientAnswer) -> list[str]:
    """The plan in words."""
    planned = answer.plan
    machines = f"Rent {count(_machines(planned), 'machine')}"
    had = "all tiers had their capacity"
    more = (
        f"for {number(planned.price_per_hour)} an hour",
        how_often(_shortfall(planned), _checked(answer)),
    )
    if isinstance(planned, TieredPlan):
        said = [
            f"{machines} {more[0]}: all tiers are up {more[1]}",
            *_against_on_demand(planned.on_demand_share),
            "Tiers with machines of one type lose them together. Were their machines independent "
            "of each other, all tiers would be up "
            f"{availability_text(1.0 - planned.independent_availability)} of the time.",
        ]
    else:
        had = "the capacity was there"
        said = [
            f"{machines} of {count(len(planned.rented), 'type')} {more[0]}: the capacity is there "
            f"{more[1]}",
            *_against_on_demand(planned.on_demand_share),
            f"With all machines up there is {number(planned.total_capacity)}: "
            f"{percent(planned.surplus_share)} more than the service needs, for batch work at no "
            "further cost.",
        ]
    if answer.realised is not None:
        apart = ""
        if answer.shuffled is not None:
            apart = f"; had the markets not moved together, {_said_often(answer.shuffled)}"
        said.append(f"In all of the history, {had} {_said_often(answer.realised)}{apart}.")
    return said if answer.is_accepted else [*said, _refused(answer)]


def _refused(answer: TransientAnswer) -> str:
    """Say that a plan is not accepted, where it failed, and what the history allows."""
    missed = [where for where, known in _checked(answer).items() if not known >= answer.target]
    asked = f"Not accepted: {answer.target:.12g} of the time was missed {', '.join(missed)}."
    pairs = zip(answer.held, answer.frontier, strict=True)
    plans = [(planned.price_per_hour, known, target) for known, (target, planned) in pairs if known]
    if not plans:
        return asked
    enough = [each for each in plans if each[1] >= answer.target]
    price, known, target = min(enough) if enough else max(plans, key=lambda each: each[1])
    which = "The cheapest that would have had it" if enough else "The best, which would not either,"
    (first, *_) = _named(answer.plan).values()
    nines = first.extra_nines + _nines(1.0 - target) - _nines(1.0 - answer.target)
    how = f" (--extra-nines {nines:.6g})" if nines > first.extra_nines else ""
    return (
        f"{asked} {which} is planned for {target:.12g}{how}, at {number(price)} an hour: "
        f"there {_said_often(known)}."
    )


def _machines(planned: AnyPlan) -> int:
    return sum(each.count for part in _named(planned).values() for each in part.rented)


def _checked(answer: TransientAnswer) -> dict[str, float]:
    """Availability in the history: of the plan in all of it, and of others in what came after."""
    checked = {
        f"after plans made like it of {each.name}": mean_availability(each.found)
        for each in answer.windows
        if each.name != ORACLE
    }
    if answer.realised is not None:
        checked[_IN_HISTORY] = answer.realised
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


def _against_on_demand(share: float | None) -> list[str]:
    """Say what the price is of that on demand, in words, where that is known."""
    if share is None:
        return []
    words = f"That is {percent(share)} of what it costs on demand"
    return [f"{words}." if share < 1.0 else f"{words}: rent it on demand instead."]


def _said_often(availability: float) -> str:
    """Say how often in words: ``0.9994 of the time``, or ``always``."""
    short = 1.0 - availability
    return "always" if short <= 0.0 else f"{availability_text(short)} of the time"


def plan_tables(planned: AnyPlan) -> list[NumbersTable]:
    """Tabulate what to rent: for each tier, where there are some, behind what all of them take."""
    if not isinstance(planned, TieredPlan):
        return [_plan_table(planned, "plan", "What to rent")]
    return [
        _tiers_table(planned),
        *(
            _plan_table(each, f"plan-{place}", f"What to rent for {name}")
            for place, (name, each) in enumerate(_named(planned).items(), start=1)
        ),
    ]


def _plan_table(planned: CapacityPlan, name: str, title: str) -> NumbersTable:
    return numbers_table(
        name,
        title,
        sorted(planned.rented, key=lambda each: -each.price_per_hour),
        [
            Column("type", "type", lambda each: each.type.name),
            Column("machines", "count", lambda each: each.count, "{:,}".format),
            Column("capacity", "capacity", lambda each: each.capacity, number),
            Column(
                "availability", "", lambda each: 1.0 - each.type.availability, availability_text
            ),
            Column("", "availability", lambda each: each.type.availability),
            Column("each, per hour", "", lambda each: each.type.price_per_hour, _price),
            Column("price per hour", "price_per_hour", lambda each: each.price_per_hour, _price),
        ],
        f"Availability of all together: of {number(planned.capacity)} units.",
        total=(
            "together",
            f"{_machines(planned):,}",
            number(planned.total_capacity),
            availability_text(planned.availability_shortfall),
            "",
            _price(planned.price_per_hour),
        ),
    )


def _price(amount: float) -> str:
    return f"{amount:.4f}"


def _tiers_table(planned: TieredPlan) -> NumbersTable:
    """A row for each tier, and one for all."""
    return numbers_table(
        "tiers",
        "What does each tier take?",
        list(zip(planned.tiers, planned.plans, strict=True)),
        [
            Column("tier", "tier", lambda each: each[0].name),
            Column("needed", "needed", lambda each: each[1].capacity, number),
            Column("rented", "capacity", lambda each: each[1].total_capacity, number),
            Column("machines", "machines", lambda each: _machines(each[1]), "{:,}".format),
            Column(
                "availability",
                "availability_shortfall",
                lambda each: each[1].availability_shortfall,
                availability_text,
            ),
            Column(
                "of on demand", "on_demand_share", lambda each: each[1].on_demand_share, percent
            ),
            Column("price per hour", "price_per_hour", lambda each: each[1].price_per_hour, _price),
        ],
        "Availability of all together: that every tier has its capacity.",
        total=(
            "together",
            number(sum(each.capacity for each in planned.plans)),
            number(sum(each.total_capacity for each in planned.plans)),
            f"{_machines(planned):,}",
            availability_text(1.0 - planned.availability),
            percent(planned.on_demand_share),
            _price(planned.price_per_hour),
        ),
    )


def _together_table(pairs: Sequence[tuple[str, str, float]]) -> NumbersTable:
    """Tabulate which of the plan's markets were up and down together; the CSV file has all."""
    columns: list[Column[tuple[str, str, float]]] = [
        Column("market", "market", lambda pair: pair[0]),
        Column("and", "and", lambda pair: pair[1]),
        Column(
            "correlation",
            "correlation",
            lambda pair: pair[2],
            lambda it: f"{it:+.2f}".replace("-", "−"),
        ),
    ]
    found = numbers_table(
        "together",
        "Which of these markets fail together?",
        pairs,
        columns,
        "Correlation of being up, over all the history: 1 if always at the same time, 0 if they "
        f"know nothing of each other. The {_MOST_PAIRS} that fail together most are shown; markets "
        "that were always up are left out.",
    )
    return replace(found, rows=found.rows[:_MOST_PAIRS])


def windows_table(windows: Sequence[TrailingWindow]) -> NumbersTable:
    """Tabulate what was planned for and what it came to, by window."""
    shown: list[Column[TrailingWindow]] = [
        Column("learned from", "", lambda each: each.name),
        Column("plans", "", lambda each: f"{len(_kept(each))} of {len(each.found)}"),
        Column(
            "realised",
            "",
            lambda each: mean_availability(each.found),
            lambda it: "–" if math.isnan(it) else availability_text(1.0 - it),
        ),
        Column("nines", "", lambda each: _nines(1.0 - mean_availability(each.found)), number),
        Column("paid of on demand", "", _paid_share, percent),
        Column(
            "surplus", "", lambda each: _mean([p.surplus_share for p, _ in _kept(each)]), percent
        ),
    ]
    table = numbers_table(
        "windows",
        "Does what was learned hold afterwards?",
        windows,
        shown,
        "Each plan is made of the time before it only, and held to the time after; “oracle” plans "
        "are made of that time itself. Nines of all the time together.",
    )
    return replace(table, table=pl.DataFrame(_windows_records(windows), infer_schema_length=None))


def _windows_records(windows: Sequence[TrailingWindow]) -> list[dict[str, Any]]:
    return [
        {
            "window": window.name,
            "begin_seconds": each.begin,
            "end_seconds": each.end,
            "planned": each.plan is not None,
            "availability": each.availability,
            "price_per_hour": each.price_per_hour,
        }
        for window in windows
        for each in window.found
    ]


def _kept(window: TrailingWindow) -> list[tuple[CapacityPlan, Realised]]:
    return [(each.plan, each) for each in window.found if each.plan is not None]


def _paid_share(window: TrailingWindow) -> float:
    return _mean(
        [
            found.price_per_hour / planned.on_demand_price_per_hour
            for planned, found in _kept(window)
            if planned.on_demand_price_per_hour is not None
        ]
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def transient_record(answer: TransientAnswer) -> dict[str, Any]:
    """The plan's record, and what else is known of it."""
    record = answer.plan.to_record()
    record["target_availability"] = answer.target
    record["frontier"] = records_of(answer.frontier, _FRONTIER)
    if answer.realised is not None:
        record["availability_in_history"] = answer.realised
    if answer.shuffled is not None:
        record["availability_in_shuffled_history"] = answer.shuffled
        record["correlations"] = _together_table(answer.together).table.to_dicts()
    found = [each for each in _checked(answer).values() if not math.isnan(each)]
    record["availability_expected"] = min([1.0 - _shortfall(answer.plan), *found])
    record["accepted"] = answer.is_accepted
    if answer.windows:
        record["windows"] = windows_table(answer.windows).table.fill_nan(None).to_dicts()
    return record


def _capacity_figure(offers: Offers, plans: Mapping[str, CapacityPlan]) -> Figure:
    """Draw how often how much capacity is there, by the model; a line for each plan by name."""
    curves, tables, findings = [], [], []
    alone = len(plans) == 1
    for style, (name, planned) in zip(named_styles(list(plans)), plans.items(), strict=True):
        curve = _capacities(offers, planned, style)
        curves.append(curve)
        table = pl.DataFrame({"capacity": curve.x, "share_of_time_without": curve.y})
        tables.append(table if alone else table.select(pl.lit(name).alias("tier"), "*"))
        findings.append(
            f"{'' if alone else f'{name}: '}{number(planned.capacity)} units are missing "
            f"{percent(planned.availability_shortfall)} of the time."
        )
    target = next(iter(plans.values())).target
    return curve_figure(
        "capacities",
        "How often is how much capacity there?",
        findings,
        curves,
        Axis("capacity"),
        Axis("share of time without it", "share", log=True),
        table=pl.concat(tables),
        note="By the model; shares below a billionth are drawn there.",
        level=(max(1.0 - target, _LEAST), "target" if alone else "target of a tier"),
    )


def _capacities(offers: Offers, planned: CapacityPlan, style: PolicyStyle) -> Curve:
    rented = {each.type.name: each.count for each in planned.rented}
    counts = counted(offers, [rented.get(each.name, 0) for each in offers.types])
    top = int(counts @ offers.units)
    masses = capacity_distribution(offers, counts, top)
    short = np.concatenate(([0.0], np.cumsum(masses)[:-1]))
    needed = min(offers.units_for(planned.capacity), top)
    even = np.linspace(0, top, min(top + 1, _MOST_POINTS)).astype(np.int64)
    steps = np.unique(np.append(even, needed))
    at = [int(np.searchsorted(steps, needed))]
    words = [f"needed: {number(planned.capacity)}"]
    capacity = steps.astype(np.float64) * float(offers.unit)
    return Curve(style, capacity, np.maximum(short[steps], _LEAST), at, words, shape="vh")


_FRONTIER: Final[tuple[Column[tuple[float, AnyPlan]], ...]] = (
    Column("", "target_availability", lambda each: each[0]),
    Column("", "availability_shortfall", lambda each: _shortfall(each[1])),
    Column("", "price_per_hour", lambda each: each[1].price_per_hour),
    Column("", "on_demand_share", lambda each: each[1].on_demand_share),
    Column("", "surplus_share", lambda each: each[1].surplus_share),
    Column("", "machines", lambda each: _machines(each[1])),
    Column("", "types", lambda each: _types(each[1])),
)


def _types(planned: AnyPlan) -> int:
    return len({each.type.name for part in _named(planned).values() for each in part.rented})


def _shortfall(planned: AnyPlan) -> float:
    if isinstance(planned, TieredPlan):
        return 1.0 - planned.availability
    return planned.availability_shortfall


def frontier_figure(plans: Sequence[tuple[float, AnyPlan]]) -> Figure | MissingFigure:
    """Price against target, ascending."""
    title = "What does each further nine cost?"
    if len(plans) < 2:
        return MissingFigure(
            title,
            "These types reach fewer than two of the usual targets.",
            "More types, or more available ones, would.",
        )
    shares = [each.on_demand_share for _, each in plans]
    relative = None not in shares
    values = np.array(shares if relative else [each.price_per_hour for _, each in plans])
    nines = np.array([_nines(1.0 - target) for target, _ in plans])
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
        Axis("target, nines", from_zero=False),
        Axis("price, of on demand", "share") if relative else Axis("price per hour"),
        table=pl.DataFrame(records_of(plans, _FRONTIER), infer_schema_length=None),
        note="3 nines: 99.9 % of the time. Targets that these types cannot reach are left out.",
        level=(1.0, "on demand") if relative else None,
    )


def _nines(short: float) -> float:
    """A share of time without as its number of nines; infinite where it is none."""
    if math.isnan(short):
        return math.nan
    return -math.log10(short) if short > 1e-12 else math.inf
