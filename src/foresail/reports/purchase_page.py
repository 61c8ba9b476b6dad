"""The page about the purchasing mix: what to reserve, what to rent, what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.purchasing.demand import HOURS_PER_MONTH, HOURS_PER_YEAR
from foresail.cloud.purchasing.exact import ExactComparison
from foresail.cloud.purchasing.forecast import RiskPlan
from foresail.cloud.purchasing.machines import ReservedMachines
from foresail.cloud.purchasing.mix import MixReport, OnlineReport
from foresail.cloud.purchasing.offline import COMMITTED
from foresail.model.words import count, duration, number, percent, signed
from foresail.reports.cloud_page import CloudPage, NumbersTable
from foresail.reports.curve_figure import Curve, curve_figure
from foresail.reports.figure import Figure, MissingFigure, packed
from foresail.reports.plot_axes import scale_of
from foresail.reports.style import PolicyStyle, axis, layout, literal, named_styles

_HEIGHT: Final = 340
_DAYS: Final = 24.0
_LEVEL: Final = PolicyStyle("advised level", "advised level", "advised level", "@ink", "solid", "x")
_HELD: Final = PolicyStyle("reserved", "reserved", "reserved", "@ink", "solid", "x")
_NEAR_ALL: Final = 0.7
_LONGER: Final = 1.01
"""Beyond rounding to slots."""
_NOTHING: Final = 5e-4
_ABOVE: Final = 2.5
"""Times the highest step that a drawing of demand reaches at most."""
_PEAK: Final = PolicyStyle("busiest hour", "busiest hour", "busiest hour", "@muted", "dot", "x")

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PurchaseAnswer:
    """All that the page tells.

    Parameters
    ----------
    log
        Its name.
    catalogue, valid_on
        Where the prices are from, and of which day.
    risk
        At which the advice is made.
    report
        What was found.
    machines
        The advised amounts as machines.
    course
        Demand over the log (``foresail.cloud.purchasing.course``), its level that of the advice.
    """

    log: str
    catalogue: str
    valid_on: date
    risk: float
    report: MixReport
    machines: Sequence[ReservedMachines]
    course: pl.DataFrame

    @property
    def plan(self) -> RiskPlan:
        """What to reserve of the resource that is counted."""
        return self.report.risk[self.report.counted]


def purchase_page(answer: PurchaseAnswer) -> CloudPage:
    """The page about one answer."""
    report = answer.report
    sold = "without" if report.terms.transient is None else "with"
    parts: list[NumbersTable | Figure | MissingFigure] = [
        costs_table(answer),
        advice_table(answer),
        _course_figure(answer),
        options_table(report),
        _months_figure(report),
        errors_table(report),
        _errors_figure(report),
    ]
    if report.online is not None:
        parts.append(_policy_table(report, report.online))
    return CloudPage(
        title="What to reserve, and what to rent?",
        situation=(
            f"{answer.log}: {count(report.jobs, 'job')} over {_days(report.log_hours)} that never "
            f"wait; prices {answer.catalogue} of {answer.valid_on}, options of "
            f"“{report.provider}”, {sold} machines that may be taken back."
        ),
        sentences=sentences(answer),
        parts=parts,
        notes=_notes(answer),
    )


def sentences(answer: PurchaseAnswer) -> list[str]:
    """What to buy, what it costs and how sure that is, in words."""
    report, plan = answer.report, answer.plan
    said = [_advice(answer, plan)]
    optimum = _share_of(report, "optimum")
    rest = f"In hindsight nothing could cost less than {percent(optimum)}"
    if "all reserved" in report.costs["policy"]:
        rest += f"; reserving for the busiest hour {percent(_share_of(report, 'all reserved'))}"
    said.append(f"{rest}, relative to all on demand ({_yearly(report, 'all on demand')} a year).")
    if report.online is not None:
        said.append(_policy(report.online))
    said.append(_sensitivity(report))
    if report.hours > report.log_hours * _LONGER:
        times = report.hours / report.log_hours
        said.append(
            f"The log is of {_days(report.log_hours)}, shorter than the {_days(report.hours)} that "
            f"are planned for: it is assumed to repeat {number(times)} times."
        )
    if report.left_out:
        said.append(f"{count(report.left_out, 'job')} without a runtime or cores left out.")
    if report.spread:
        said.append(
            f"No machine on sale holds a task of {count(report.spread, 'job')}: a job like that is "
            "charged for as many as it fills."
        )
    if report.commitments:
        said.append(_committed(report))
    if report.exact is not None:
        said.append(_exact(report, report.exact))
    return said


def costs_table(answer: PurchaseAnswer) -> NumbersTable:
    """What each way to buy costs."""
    report, plan = answer.report, answer.plan
    rows = []
    records = []
    years = report.hours / HOURS_PER_YEAR
    for policy, cost, share in report.costs.iter_rows():
        rows.append((policy, number(round(cost)), number(round(cost / years)), percent(share), ""))
        records.append({"policy": policy, "cost": cost, "share": share, "low": None, "high": None})
    low, high = plan.cost_shares[0.05], plan.cost_shares[0.95]
    base = report.costs["cost"][0]
    share = _expected_share(report)
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
        f"Over {_days(report.hours)}. “Optimum” knew the future and bought any amounts: a bound. "
        "The advice: the mean over drawn futures of the first year, and its 5 % and 95 % "
        f"quantiles{_of_cores(report)}."
        + (
            " What is committed may end after it, so that later years cost more."
            if any(each.until for each in report.commitments)
            else ""
        ),
    )


def advice_table(answer: PurchaseAnswer) -> NumbersTable:
    """What to reserve now."""
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
    """Which options the optimum uses."""
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
            *("option", f"{_counted(report)} hours", "share"),
            *(f"idle {_counted(report)} hours", f"cost, {report.prices.currency}"),
        ),
        rows,
        report.options,
        "Idle: reserved and not used. Costs are of all resources; those on demand include jobs "
        "that start again after a revocation.",
    )


def errors_table(report: MixReport) -> NumbersTable:
    """What a wrong forecast costs."""
    optimum = _share_of(report, "optimum")
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


def record(answer: PurchaseAnswer) -> dict[str, Any]:
    """All of it for machines to read."""
    report = answer.report
    online = report.online
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
        "policy": None
        if online is None
        else {
            "jobs": online.outcome.jobs,
            "hours": online.outcome.hours,
            "cost": online.outcome.cost,
            "all_on_demand_cost": online.outcome.all_on_demand_cost,
            "optimum_cost": online.optimum_cost,
            "mean_runtime_error": online.mean_error,
            "by_runtime_error": online.by_runtime_error.to_dicts(),
        },
    }


def _advice(answer: PurchaseAnswer, plan: RiskPlan) -> str:
    report = answer.report
    low, high = plan.cost_shares[0.05], plan.cost_shares[0.95]
    share = _expected_share(report)
    yearly = share * report.costs["cost"][0] / (report.hours / HOURS_PER_YEAR)
    return (
        f"{_owned(report)}{_to_reserve(answer)}: {percent(share)} of what renting everything "
        f"on demand costs in the first year (90 % of futures: {percent(low)} to "
        f"{percent(high)}{_of_cores(report)}), {_money(yearly, report)} a year."
    )


def _owned(report: MixReport) -> str:
    """What one has, and until when."""
    if not report.commitments:
        return ""
    parts = [
        f"{each.count:,} {each.instance} "
        + ("for good" if each.until is None else f"until {each.until}")
        for each in report.commitments
    ]
    return f"You have {_together(parts)}. "


def _committed(report: MixReport) -> str:
    used = dict(report.options.select("option", "used_hours").iter_rows())
    idle = dict(report.options.select("option", "idle_hours").iter_rows())
    hours = used.get(COMMITTED, 0.0) + idle.get(COMMITTED, 0.0)
    in_use = f" It is in use {percent(used[COMMITTED] / hours)} of the time." if hours else ""
    cost = (
        f"costs {_money(report.sunk_cost, report)} in any case, which"
        if report.sunk_cost
        else "is used for nothing, which"
    )
    return f"What is committed {cost} is in none of these costs; it is used first.{in_use}"


def _exact(report: MixReport, exact: ExactComparison) -> str:
    left_out = [
        *(["schedules"] if report.terms.scheduled else []),
        *(["sustained use"] if report.terms.sustained_tiers else []),
        *(["what is committed"] if report.commitments else []),
    ]
    without = f" without {_together(left_out)}," if left_out else ""
    return (
        f"How far is that optimum from the exact one, which is too large to compute? Of demand "
        f"averaged over {_days(exact.slot_hours)}, which is smoother and cheaper,{without} the "
        f"exact optimum is {percent(exact.exact)} and ours {percent(exact.levels)}: "
        f"{percent(max(exact.above, 0.0))} above."
    )


def _together(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _to_reserve(answer: PurchaseAnswer) -> str:
    owned = answer.report.commitments
    verb, rest = ("Beyond that reserve", "the rest") if owned else ("Reserve", "all")
    if not answer.report.terms.reserved:
        return f"Nothing can be reserved at these prices, rent {rest}"
    if not answer.machines:
        pays = any(units for plan in answer.report.risk.values() for units in plan.units.values())
        why = "what would pay is less than the smallest machine"
        if not pays:
            why = f"no level pays at a risk of {percent(answer.risk)}"
        return f"{verb} nothing ({why}), rent {rest}"
    parts = [
        f"{each.count:,} {each.instance.name} {_term(each.option)}" for each in answer.machines
    ]
    return f"{verb} {_together(parts)}, and rent the rest"


def _term(option: str) -> str:
    """The term of a reservation in words, from its name."""
    years = int(option.removeprefix("reserved-").removesuffix("y"))
    return f"for {count(years, 'year')}"


def _policy(online: OnlineReport) -> str:
    outcome = online.outcome
    share = outcome.cost / outcome.all_on_demand_cost
    return (
        f"A policy that could be followed, which learned from the log's first part, pays "
        f"{percent(share)} for the rest of it: {number(outcome.cost / online.optimum_cost)} times "
        "what could have been with hindsight and machines of any size."
    )


def _sensitivity(report: MixReport) -> str:
    optimum = _share_of(report, "optimum")
    errors = report.by_demand_error
    if not errors.height:
        return "No error of the forecast was tried."
    worst = errors.row(int(errors["share"].arg_max() or 0), named=True)
    more = worst["share"] / optimum - 1.0
    if more < _NOTHING:
        return "None of the errors tried costs anything."
    amount = "much" if worst["error"] > 0.0 else "little"
    return (
        f"Of the errors tried, {percent(abs(worst['error']))} too {amount} reserved costs most: "
        f"{percent(more)} above the optimum."
    )


def _policy_table(report: MixReport, online: OnlineReport) -> NumbersTable:
    outcome = online.outcome
    share = outcome.cost / outcome.all_on_demand_cost
    tried = [("as predicted", online.mean_error, outcome.cost, share)]
    tried += [
        ("right" if error == 0.0 else "wrong at random", error, cost, relative)
        for error, cost, relative in online.by_runtime_error.iter_rows()
    ]
    rows = [
        (name, percent(error), number(round(cost)), percent(relative))
        for name, error, cost, relative in tried
    ]
    predicted = pl.DataFrame(
        {
            "error": [online.mean_error],
            "cost": [outcome.cost],
            "share": [share],
        }
    )
    return NumbersTable(
        "runtime-error",
        "What do wrong runtimes cost a policy that must predict them?",
        ("runtimes", "mean error", f"cost, {report.prices.currency}", "of all on demand"),
        rows,
        pl.concat([predicted, online.by_runtime_error]),
        f"{count(outcome.jobs, 'job')} after the part of the log that it learned from; on real "
        "machines, of which a job takes whole ones.",
    )


def _course_figure(answer: PurchaseAnswer) -> Figure | MissingFigure:
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


def _months_figure(report: MixReport) -> Figure | MissingFigure:
    """The optimum's mix by month, and what it has reserved."""
    title = "What would have been best, month by month?"
    months = report.over_time.filter(pl.col("month") * HOURS_PER_MONTH < report.hours)
    last = int(months["month"].max())  # type: ignore[arg-type]
    if last < 1:
        return MissingFigure(title, "The time planned for is less than two months.")
    options = months["option"].unique(maintain_order=True).to_list()
    styles = named_styles(["other", *options])[1:]
    lengths = np.minimum(HOURS_PER_MONTH, report.hours - np.arange(last + 1) * HOURS_PER_MONTH)
    at = np.arange(last + 1, dtype=np.float64)
    traces = []
    committed = np.zeros(last + 1)
    for style, option in zip(styles, options, strict=True):
        own = months.filter(pl.col("option") == option).sort("month")
        used = own["used_hours"].to_numpy() / lengths
        traces.append(_area(style, at, used, report.counted))
        if option.startswith("reserved") or option == "committed":
            committed += used + own["idle_hours"].to_numpy() / lengths
    if committed.any():
        traces.append(_level_line(_HELD, at, committed, report.counted))
    shares = ", ".join(
        f"{option} {percent(share)}"
        for option, share in report.options.select("option", "share").iter_rows()
    )
    return Figure(
        "months",
        title,
        [f"Share of {_counted(report)} hours: {shares}."],
        traces,
        layout(
            _HEIGHT,
            xaxis=axis("month", rangemode="tozero", tickangle=0, tickformat=",~r", nticks=9),
            yaxis=axis(report.counted, rangemode="tozero", tickformat=",~r", nticks=6),
            hovermode="x",
        ),
        months,
        "Means of the months, in the optimum; a month is a twelfth of a year. The line is what is "
        f"{'committed or reserved' if report.commitments else 'reserved'}.",
    )


def _errors_figure(report: MixReport) -> Figure | MissingFigure:
    title = "How much does the forecast matter?"
    errors = report.by_demand_error.sort("error")
    if errors.height < 2:
        return MissingFigure(title, "Fewer than two errors were tried.")
    (style,) = named_styles(["optimum"])
    x, y = errors["error"].to_numpy(), errors["share"].to_numpy()
    across = scale_of("reserved too little (−) or too much (+)", "share", x, log=False)
    across.axis["rangemode"] = "normal"
    up = scale_of("cost, of all on demand", "share", y, log=False)
    up.axis["rangemode"] = "normal"
    best = int(y.argmin())
    if y.max() <= y[best] * (1.0 + _NOTHING):
        return MissingFigure(title, "None of the errors tried costs anything.")
    return curve_figure(
        "sensitivity",
        title,
        [
            f"Least with {signed(percent(float(x[best])))}: {percent(float(y[best]))}."
            if x[best]
            else f"The optimum costs {percent(float(y[best]))} of all on demand."
        ],
        [Curve(style, x, y, [best], [percent(float(y[best]))])],
        across,
        up,
        table=errors,
        level=(1.0, "all on demand") if y.max() > _NEAR_ALL else None,
    )


def _area(style: PolicyStyle, x: Floats, y: Floats, what: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": style.drawn,
        "x": packed(x),
        "y": packed(y),
        "stackgroup": "demand",
        "line": {"color": style.colour, "dash": "solid", "width": 0.6, "shape": "hvh"},
        "fillcolor": style.colour,
        "hovertemplate": f"%{{y:,.4~g}} {literal(what)}<extra>{style.drawn}</extra>",
        "showlegend": True,
    }


def _level_line(style: PolicyStyle, x: Floats, y: Floats, what: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": style.drawn,
        "x": packed(x),
        "y": packed(y),
        "line": {"color": style.colour, "dash": style.dash, "width": 2, "shape": "hvh"},
        "hovertemplate": f"%{{y:,.4~g}} {literal(what)}<extra>{style.drawn}</extra>",
        "showlegend": True,
    }


def _notes(answer: PurchaseAnswer) -> list[str]:
    report = answer.report
    said = [
        "A level is reserved if the chance that it does not pay is at most "
        f"{percent(answer.risk)}: futures are blocks of four weeks of the log put together "
        "anew, with years of growth.",
        f"On demand a core costs {report.prices.core_per_hour:.4g} and a GiB "
        f"{report.prices.gib_per_hour:.4g} {report.prices.currency} an hour. Months are twelfths "
        "of a year.",
    ]
    if report.prices.gpu_per_hour is not None and report.counted == "GPUs":
        said.append(
            f"A GPU costs {report.prices.gpu_per_hour:.4g} {report.prices.currency} an hour on "
            "demand: what the cheapest machine with GPUs costs beyond its cores and memory. "
            "Relative prices of other options are those of all machines on sale."
        )
    if report.commitments:
        said.append(
            "Time is counted from the day of the prices: what is committed until a day is there "
            "until then, and what is reserved comes on top of it."
        )
    if not report.memory_known:
        said.append("The log does not say what memory jobs need: 4 GiB for each core is assumed.")
    return said


def _counted(report: MixReport) -> str:
    return report.counted.removesuffix("s")


def _hours(course: pl.DataFrame) -> Floats:
    return np.asarray((course["end_hours"] - course["begin_hours"]).to_numpy())


def _expected_share(report: MixReport) -> float:
    """The advised cost of all resources, relative to all on demand."""
    pairs = list(zip(report.plans, report.resources, strict=True))
    costs = [
        report.risk[plan.resource].expected_cost_share * plan.demand_hours * each.per_hour
        for plan, each in pairs
    ]
    return sum(costs) / sum(
        plan.demand_hours * each.per_hour * each.standard_work for plan, each in pairs
    )


def _of_cores(report: MixReport) -> str:
    return f", of {report.counted}" if len(report.plans) > 1 else ""


def _share_of(report: MixReport, policy: str) -> float:
    return report.share(policy)


def _yearly(report: MixReport, policy: str) -> str:
    cost = report.costs.filter(pl.col("policy") == policy)["cost"][0]
    return _money(cost / (report.hours / HOURS_PER_YEAR), report)


def _machines(answer: PurchaseAnswer) -> int:
    return sum(each.count for each in answer.machines)


def _money(amount: float, report: MixReport) -> str:
    said = number(round(amount)) if amount >= 1000.0 else number(amount)
    return f"{said} {report.prices.currency}"


def _days(hours: float) -> str:
    years = hours / HOURS_PER_YEAR
    whole = math.isclose(years, round(years), rel_tol=1e-6) and years >= 1.0
    return count(round(years), "year") if whole else duration(hours * 3600.0)


def _span(course: pl.DataFrame) -> str:
    return duration(float(_hours(course).max()) * 3600.0)
