"""The page about the purchasing mix: what to reserve, what to rent, what that costs."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.purchasing.demand import HOURS_PER_YEAR
from foresail.cloud.purchasing.machines import ReservedMachines
from foresail.cloud.purchasing.mix import MixReport
from foresail.model.arrays import Floats
from foresail.model.words import count, duration, number, percent, signed
from foresail.reports.figure import Figure, MissingFigure, packed
from foresail.reports.renting.page import CloudPage, Column, NumbersTable, field, numbers_table
from foresail.reports.renting.purchase_words import (
    PurchaseAnswer,
    counted_unit,
    notes,
    of_counted,
    period,
    sentences,
)
from foresail.reports.style import PolicyStyle, axis, layout, line_of, literal, named_styles


def costs_table(answer: PurchaseAnswer) -> NumbersTable:
    """Tabulate what each way to buy costs."""
    report, share = answer.report, answer.expected_share
    cost = share * report.costs["cost"][0]
    low, high = answer.plan.cost_shares[0.05], answer.plan.cost_shares[0.95]
    advised = f"advised, risk {percent(answer.risk)}"
    ways = [{**each, "low": None, "high": None} for each in report.costs.to_dicts()]
    ways.insert(-1, {"policy": advised, "cost": cost, "share": share, "low": low, "high": high})
    years = report.hours / HOURS_PER_YEAR
    columns: list[Column[dict[str, Any]]] = [
        field("way to buy", "policy"),
        field(f"cost, {report.prices.currency}", "cost", _whole),
        Column("a year", "", lambda each: each["cost"] / years, _whole),
        field("of all on demand", "share", percent),
        Column("90 % of futures", "", itemgetter("low", "high"), _between),
        field("", "low"),
        field("", "high"),
    ]
    ending = " What is committed may end after it, so that later years cost more."
    return numbers_table(
        "costs",
        "What does each way to buy cost?",
        ways,
        columns,
        f"Over {period(report.hours)}. “Optimum” knew the future and bought any amounts: a bound. "
        "The advice: the mean over drawn futures of the first year, and its 5 % and 95 % "
        f"quantiles{of_counted(report)}."
        f"{ending if any(each.until for each in report.commitments) else ''}",
    )


def _whole(amount: float) -> str:
    return number(round(amount))


def _between(ends: tuple[float | None, float | None]) -> str:
    return "" if ends[0] is None else f"{percent(ends[0])} to {percent(ends[1])}"


def advice_table(answer: PurchaseAnswer) -> NumbersTable:
    """Tabulate what to reserve now."""
    with_gpus, machines = answer.report.counted == "GPUs", answer.machines
    price, currency = "{:.4f}".format, answer.report.prices.currency
    gpus = "GPUs" if with_gpus else ""
    columns: list[Column[ReservedMachines]] = [
        Column("machine", "machine", lambda each: each.instance.name),
        Column("count", "count", lambda each: each.count, "{:,}".format),
        Column("for", "option", lambda each: each.option),
        Column("cores", "cores", lambda each: each.instance.cores * each.count, number),
        Column(gpus, "gpus", lambda each: each.instance.gpus * each.count, number),
        Column(f"{currency} per hour", "price_per_hour", lambda each: each.per_hour, price),
    ]
    amounts = ", ".join(
        f"{number(units)} {resource} {option}"
        for resource, plan in answer.report.risk.items()
        for option, units in plan.units.items()
        if units > 0.0
    )
    ratio = "of the nearest ratio of cores to memory"
    if with_gpus:
        ratio = "that hold GPUs and what is asked for beside them at least cost, and others"
    sums = [
        column.say(sum(map(column.value, machines)))
        for column in columns
        if column.heading and column.key not in ("machine", "option")
    ]
    return numbers_table(
        "reserve",
        "What to reserve now",
        machines,
        columns,
        f"Whole machines {ratio}, below the amounts: {amounts}."
        if amounts
        else "No level pays at this risk, or nothing is sold for a term.",
        total=("together", sums[0], "", *sums[1:]),
    )


def options_table(report: MixReport) -> NumbersTable:
    """Tabulate which options the optimum uses."""
    unit = counted_unit(report)
    found = numbers_table(
        "options",
        "Which options does the optimum use?",
        report.options.to_dicts(),
        [
            field("option", "option"),
            field(f"{unit} hours", "used_hours", _whole),
            field("share", "share", percent),
            field(f"idle {unit} hours", "idle_hours", _whole),
            field(f"cost, {report.prices.currency}", "cost", _whole),
        ],
        "Idle: reserved and not used. Costs are of all resources; those on demand include jobs "
        "that start again after a revocation.",
    )
    return replace(found, table=report.options)


def errors_table(report: MixReport) -> NumbersTable:
    """Tabulate what a wrong forecast costs."""
    optimum = report.share("optimum")
    return numbers_table(
        "forecast-error",
        "What does it cost to reserve too little, or too much?",
        report.by_demand_error.to_dicts(),
        [
            field("reserved", "error", _said_error),
            field(f"cost, {report.prices.currency}", "cost", _whole),
            field("of all on demand", "share", percent),
            Column("above the optimum", "", lambda each: each["share"] / optimum - 1.0, _signed),
        ],
        "All of the optimum's commitments made smaller or larger by a share; the rest is rented.",
    )


def _signed(share: float) -> str:
    return signed(percent(share))


def _said_error(error: float) -> str:
    return _signed(error) if error else "as planned"


_HEIGHT: Final = 340
_DAYS: Final = 24.0
_LEVEL: Final = PolicyStyle("advised level", "advised level", "advised level", "@ink", "solid", "x")
_PEAK: Final = PolicyStyle("busiest hour", "busiest hour", "busiest hour", "@muted", "dot", "x")
_ABOVE: Final = 2.5
"""Times the highest step that a drawing of demand reaches at most."""


def course_figure(answer: PurchaseAnswer) -> Figure | MissingFigure:
    """Demand as an area, what the advised level holds below it, and the busiest hours."""
    course = answer.course
    title = "How much of demand does the advised level hold?"
    if course.height < 2:
        return MissingFigure(title, "The log is of less than two hours.")
    middle = ((course["begin_hours"] + course["end_hours"]) / 2.0 / _DAYS).to_numpy()
    inside, outside = named_styles(["other", "reserved", "rented"])[1:]
    below = course["below_level"].to_numpy()
    above = course["units"].to_numpy() - below
    counted = answer.report.counted
    traces = [
        _area(inside, middle, below, f"{counted} on reserved machines"),
        _area(outside, middle, above, f"{counted} rented"),
        _level_line(_PEAK, middle, course["peak_units"].to_numpy(), counted),
        _level_line(_LEVEL, middle, course["level"].to_numpy(), counted),
    ]
    level = float(course["level"][0])
    held_as = "committed or reserved" if answer.report.commitments else "reserved"
    peak = float(course["peak_units"].to_numpy().max())
    top = min(1.04 * peak, _ABOVE * max(float((below + above).max()), level))
    total = float(np.average(below + above, weights=_hours(course)))
    held = float(np.average(below, weights=_hours(course)))
    return Figure(
        "demand",
        title,
        [
            f"Demand is {number(total)} {counted} on average, and "
            f"{number(peak)} in the busiest hour; "
            + (
                f"{number(level)} {held_as} {counted} would do "
                f"{percent(held / total)} of the work, and "
                f"be in use {percent(held / level)} of the time."
                if level
                else f"none of it on reserved {counted}."
            )
        ],
        traces,
        layout(
            _HEIGHT,
            xaxis=axis("days from the first job", rangemode="tozero", tickangle=0, nticks=9),
            yaxis=axis(counted, range=[0.0, top], tickformat=",~r", nticks=6),
            hovermode="x",
        ),
        course,
        f"Each step of the drawing is the mean over {_span(course)}; the busiest hour of each is "
        f"dotted{', as far as it fits' if top < peak else ''}.",
    )


def _area(style: PolicyStyle, x: Floats, y: Floats, what: str) -> dict[str, Any]:
    colour = style.colour
    line = {"color": colour, "dash": "solid", "width": 0.6, "shape": "hvh"}
    return _level_line(style, x, y, what) | {
        "stackgroup": "demand",
        "line": line,
        "fillcolor": colour,
    }


def _level_line(style: PolicyStyle, x: Floats, y: Floats, what: str) -> dict[str, Any]:
    hover = f"%{{y:,.4~g}} {literal(what)}"
    return line_of(style, packed(x), packed(y), hover, shape="hvh")


def _hours(course: pl.DataFrame) -> Floats:
    return np.asarray((course["end_hours"] - course["begin_hours"]).to_numpy())


def _span(course: pl.DataFrame) -> str:
    return duration(float(_hours(course).max()) * 3600.0)


def purchase_page(answer: PurchaseAnswer) -> CloudPage:
    """The page about one answer."""
    report = answer.report
    sold = "without" if report.terms.transient is None else "with"
    parts: list[NumbersTable | Figure | MissingFigure] = [
        costs_table(answer),
        advice_table(answer),
        course_figure(answer),
        options_table(report),
        errors_table(report),
    ]
    return CloudPage(
        title="What to reserve, and what to rent?",
        situation=(
            f"{answer.log}: {count(report.jobs, 'job')} over {period(report.log_hours)} that never "
            f"wait; prices {answer.catalogue} of {answer.valid_on}, options of "
            f"“{report.provider}”, {sold} machines that may be taken back."
        ),
        sentences=sentences(answer),
        parts=parts,
        notes=notes(answer),
    )
