"""The page about the purchasing mix: what to reserve, what to rent, what that costs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.purchasing.demand import HOURS_PER_YEAR
from foresail.cloud.purchasing.mix import MixReport
from foresail.model.arrays import Floats
from foresail.model.words import count, duration, number, percent, signed
from foresail.reports.figure import Figure, MissingFigure, packed
from foresail.reports.renting.page import CloudPage, NumbersTable
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
    report, plan = answer.report, answer.plan
    rows = []
    records = []
    years = report.hours / HOURS_PER_YEAR
    for policy, cost, share in report.costs.iter_rows():
        rows.append((policy, number(round(cost)), number(round(cost / years)), percent(share), ""))
        records.append({"policy": policy, "cost": cost, "share": share, "low": None, "high": None})
    low, high = plan.cost_shares[0.05], plan.cost_shares[0.95]
    base = report.costs["cost"][0]
    share = answer.expected_share
    rows.insert(
        len(rows) - 1,
        (
            f"advised, risk {percent(answer.risk)}",
            number(round(share * base)),
            number(round(share * base / years)),
            percent(share),
            f"{percent(low)} to {percent(high)}",
        ),
    )
    records.append(
        {"policy": "advised", "cost": share * base, "share": share, "low": low, "high": high}
    )
    headings = (
        "way to buy",
        f"cost, {report.prices.currency}",
        "a year",
        "of all on demand",
        "90 % of futures",
    )
    return NumbersTable(
        "costs",
        "What does each way to buy cost?",
        headings,
        rows,
        pl.DataFrame(records, infer_schema_length=None),
        f"Over {period(report.hours)}. “Optimum” knew the future and bought any amounts: a bound. "
        "The advice: the mean over drawn futures of the first year, and its 5 % and 95 % "
        f"quantiles{of_counted(report)}."
        + (
            " What is committed may end after it, so that later years cost more."
            if any(each.until for each in report.commitments)
            else ""
        ),
    )


def advice_table(answer: PurchaseAnswer) -> NumbersTable:
    """Tabulate what to reserve now."""
    with_gpus = answer.report.counted == "GPUs"
    rows = [
        (
            each.instance.name,
            f"{each.count:,}",
            each.option,
            number(each.instance.cores * each.count),
            *([number(each.instance.gpus * each.count)] if with_gpus else []),
            f"{each.per_hour:.4f}",
        )
        for each in answer.machines
    ]
    records = [
        {
            "machine": each.instance.name,
            "count": each.count,
            "option": each.option,
            "cores": each.instance.cores * each.count,
            "gpus": each.instance.gpus * each.count,
            "price_per_hour": each.per_hour,
        }
        for each in answer.machines
    ]
    per_hour = sum(each.per_hour for each in answer.machines)
    cores = sum(each.instance.cores * each.count for each in answer.machines)
    gpus = sum(each.instance.gpus * each.count for each in answer.machines)
    rows.append(
        (
            *("together", f"{_machines(answer):,}", "", number(cores)),
            *([number(gpus)] if with_gpus else []),
            f"{per_hour:.4f}",
        )
    )
    schema = {
        "machine": pl.String(),
        "count": pl.Int64(),
        "option": pl.String(),
        "cores": pl.Float64(),
        "gpus": pl.Float64(),
        "price_per_hour": pl.Float64(),
    }
    amounts = ", ".join(
        f"{number(units)} {resource} {option}"
        for resource, plan in answer.report.risk.items()
        for option, units in plan.units.items()
        if units > 0.0
    )
    return NumbersTable(
        "reserve",
        "What to reserve now",
        (
            *("machine", "count", "for", "cores"),
            *(["GPUs"] if with_gpus else []),
            f"{answer.report.prices.currency} per hour",
        ),
        rows,
        pl.DataFrame(records, schema=schema),
        f"Whole machines {_ratio_words(answer)}, below the amounts: {amounts}."
        if amounts
        else "No level pays at this risk, or nothing is sold for a term.",
    )


def _ratio_words(answer: PurchaseAnswer) -> str:
    if answer.report.counted == "GPUs":
        return "that hold GPUs and what is asked for beside them at least cost, and others"
    return "of the nearest ratio of cores to memory"


def options_table(report: MixReport) -> NumbersTable:
    """Tabulate which options the optimum uses."""
    rows = [
        (option, number(round(used)), percent(share), number(round(idle)), number(round(cost)))
        for option, used, idle, cost, share in report.options.select(
            "option", "used_hours", "idle_hours", "cost", "share"
        ).iter_rows()
    ]
    return NumbersTable(
        "options",
        "Which options does the optimum use?",
        (
            *("option", f"{counted_unit(report)} hours", "share"),
            *(f"idle {counted_unit(report)} hours", f"cost, {report.prices.currency}"),
        ),
        rows,
        report.options,
        "Idle: reserved and not used. Costs are of all resources; those on demand include jobs "
        "that start again after a revocation.",
    )


def errors_table(report: MixReport) -> NumbersTable:
    """Tabulate what a wrong forecast costs."""
    optimum = report.share("optimum")
    rows = [
        (
            signed(percent(error)) if error else "as planned",
            number(round(cost)),
            percent(share),
            signed(percent(share / optimum - 1.0)),
        )
        for error, cost, share in report.by_demand_error.iter_rows()
    ]
    return NumbersTable(
        "forecast-error",
        "What does it cost to reserve too little, or too much?",
        ("reserved", f"cost, {report.prices.currency}", "of all on demand", "above the optimum"),
        rows,
        report.by_demand_error,
        "All of the optimum's commitments made smaller or larger by a share; the rest is rented.",
    )


def _machines(answer: PurchaseAnswer) -> int:
    return sum(each.count for each in answer.machines)


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
