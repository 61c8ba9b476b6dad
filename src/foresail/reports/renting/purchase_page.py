"""The page about the purchasing mix, and its words: what to reserve, what to rent, the cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from operator import itemgetter
from typing import Any, Final

import polars as pl

from foresail.cloud.purchasing.demand import HOURS_PER_YEAR
from foresail.cloud.purchasing.forecast import RiskPlan
from foresail.cloud.purchasing.mix import MixReport
from foresail.cloud.purchasing.offline import COMMITTED
from foresail.cloud.purchasing.resources import ReservedMachines
from foresail.model.words import count, duration, listed, number, percent, signed
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.renting import page


def costs_table(answer: PurchaseAnswer) -> page.NumbersTable:
    """Tabulate what each way to buy costs."""
    report, share = answer.report, answer.expected_share
    cost = share * report.costs["cost"][0]
    low, high = answer.plan.cost_shares[0.05], answer.plan.cost_shares[0.95]
    advised = f"advised, risk {percent(answer.risk)}"
    ways = [{**each, "low": None, "high": None} for each in report.costs.to_dicts()]
    ways.insert(-1, {"policy": advised, "cost": cost, "share": share, "low": low, "high": high})
    years = report.hours / HOURS_PER_YEAR
    columns: list[page.Column[dict[str, Any]]] = [
        page.field("way to buy", "policy"),
        page.field(f"cost, {report.prices.currency}", "cost", _whole),
        page.Column("a year", "", lambda each: each["cost"] / years, _whole),
        page.field("of all on demand", "share", percent),
        page.Column("90 % of futures", "", itemgetter("low", "high"), _between),
        page.field("", "low"),
        page.field("", "high"),
    ]
    ending = " What is committed may end after it, so that later years cost more."
    return page.numbers_table(
        "costs",
        "What does each way to buy cost?",
        ways,
        columns,
        f"Over {period(report.hours)}. “Optimum” knew the future and bought any amounts: a bound. "
        "The advice: the mean over drawn futures of the first year, and its 5 % and 95 % "
        f"quantiles{_of_counted(report)}."
        f"{ending if any(each.until for each in report.commitments) else ''}",
    )


def _whole(amount: float) -> str:
    return number(round(amount))


def _between(ends: tuple[float | None, float | None]) -> str:
    return "" if ends[0] is None else f"{percent(ends[0])} to {percent(ends[1])}"


def advice_table(answer: PurchaseAnswer) -> page.NumbersTable:
    """Tabulate what to reserve now."""
    with_gpus, machines = answer.report.counted == "GPUs", answer.machines
    price, currency = "{:.4f}".format, answer.report.prices.currency
    gpus = "GPUs" if with_gpus else ""
    columns: list[page.Column[ReservedMachines]] = [
        page.Column("machine", "machine", lambda each: each.instance.name),
        page.Column("count", "count", lambda each: each.count, "{:,}".format),
        page.Column("for", "option", lambda each: each.option),
        page.Column("cores", "cores", lambda each: each.instance.cores * each.count, number),
        page.Column(gpus, "gpus", lambda each: each.instance.gpus * each.count, number),
        page.Column(f"{currency} per hour", "price_per_hour", lambda each: each.per_hour, price),
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
    return page.numbers_table(
        "reserve",
        "What to reserve now",
        machines,
        columns,
        f"Whole machines {ratio}, below the amounts: {amounts}."
        if amounts
        else "No level pays at this risk, or nothing is sold for a term.",
        total=("together", sums[0], "", *sums[1:]),
    )


def options_table(report: MixReport) -> page.NumbersTable:
    """Tabulate which options the optimum uses."""
    unit = report.counted.removesuffix("s")  # a core or a GPU
    found = page.numbers_table(
        "options",
        "Which options does the optimum use?",
        report.options.to_dicts(),
        [
            page.field("option", "option"),
            page.field(f"{unit} hours", "used_hours", _whole),
            page.field("share", "share", percent),
            page.field(f"idle {unit} hours", "idle_hours", _whole),
            page.field(f"cost, {report.prices.currency}", "cost", _whole),
        ],
        "Idle: reserved and not used. Costs are of all resources; those on demand include jobs "
        "that start again after a revocation.",
    )
    return replace(found, table=report.options)


def errors_table(report: MixReport) -> page.NumbersTable:
    """Tabulate what a wrong forecast costs."""
    optimum = report.share("optimum")
    return page.numbers_table(
        "forecast-error",
        "What does it cost to reserve too little, or too much?",
        report.by_demand_error.to_dicts(),
        [
            page.field("reserved", "error", lambda it: _signed(it) if it else "as planned"),
            page.field(f"cost, {report.prices.currency}", "cost", _whole),
            page.field("of all on demand", "share", percent),
            page.Column(
                "above the optimum", "", lambda each: each["share"] / optimum - 1.0, _signed
            ),
        ],
        "All of the optimum's commitments made smaller or larger by a share; the rest is rented.",
    )


def _signed(share: float) -> str:
    return signed(percent(share))


def purchase_page(answer: PurchaseAnswer) -> page.CloudPage:
    """The page about one answer."""
    report = answer.report
    sold = "without" if report.terms.transient is None else "with"
    held_as = "committed or reserved" if report.commitments else "reserved"
    parts: list[page.NumbersTable | Figure | MissingFigure] = [
        costs_table(answer),
        advice_table(answer),
        page.demand_figure(answer.use, report.counted, held_as),
        options_table(report),
        errors_table(report),
    ]
    return page.CloudPage(
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


@dataclass(frozen=True, eq=False)
class PurchaseAnswer:
    """Content of the page."""

    log: str
    """Its name."""
    catalogue: str
    valid_on: date
    """Origin of the prices, and their day."""
    risk: float
    """Risk at which the advice is made."""
    report: MixReport
    """Mix that was found."""
    machines: Sequence[ReservedMachines]
    """The advised amounts as machines."""
    use: pl.DataFrame
    """Demand over the log (``foresail.cloud.over_time.use_over_time``), its level the advised."""

    @property
    def plan(self) -> RiskPlan:
        """Return what to reserve of the resource that is counted."""
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
    }


_LONGER: Final = 1.01
"""Beyond rounding to slots."""
_NOTHING: Final = 5e-4


def sentences(answer: PurchaseAnswer) -> list[str]:
    """Say what to buy, what it costs and how sure that is, in words."""
    report, plan = answer.report, answer.plan
    said = [_advice(answer, plan)]
    optimum = report.share("optimum")
    on_demand = report.costs.filter(pl.col("policy") == "all on demand")["cost"][0]
    yearly = on_demand / (report.hours / HOURS_PER_YEAR)
    rest = f"In hindsight nothing could cost less than {percent(optimum)}"
    if "all reserved" in report.costs["policy"]:
        rest += f"; reserving for the busiest hour {percent(report.share('all reserved'))}"
    said.append(f"{rest}, relative to all on demand ({money(yearly, report)} a year).")
    said.append(_sensitivity(report))
    if report.hours > report.log_hours * _LONGER:
        times = report.hours / report.log_hours
        said.append(
            f"The log is of {period(report.log_hours)}, shorter than the "
            f"{period(report.hours)} that are planned for: it is assumed to repeat {number(times)} "
            "times."
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
    return said


def _advice(answer: PurchaseAnswer, plan: RiskPlan) -> str:
    report = answer.report
    low, high = plan.cost_shares[0.05], plan.cost_shares[0.95]
    share = answer.expected_share
    yearly = share * report.costs["cost"][0] / (report.hours / HOURS_PER_YEAR)
    return (
        f"{_owned(report)}{_to_reserve(answer)}: {percent(share)} of what renting everything "
        f"on demand costs in the first year (90 % of futures: {percent(low)} to "
        f"{percent(high)}{_of_counted(report)}), {money(yearly, report)} a year."
    )


def _owned(report: MixReport) -> str:
    """Say what one has, and until when."""
    if not report.commitments:
        return ""
    parts = [
        f"{each.count:,} {each.instance} "
        + ("for good" if each.until is None else f"until {each.until}")
        for each in report.commitments
    ]
    return f"You have {listed(parts)}. "


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
    return f"{verb} {listed(parts)}, and rent the rest"


def _term(option: str) -> str:
    """The term of a reservation in words, from its name."""
    years = int(option.removeprefix("reserved-").removesuffix("y"))
    return f"for {count(years, 'year')}"


def _sensitivity(report: MixReport) -> str:
    optimum = report.share("optimum")
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


def _committed(report: MixReport) -> str:
    used = dict(report.options.select("option", "used_hours").iter_rows())
    idle = dict(report.options.select("option", "idle_hours").iter_rows())
    hours = used.get(COMMITTED, 0.0) + idle.get(COMMITTED, 0.0)
    in_use = f" It is in use {percent(used[COMMITTED] / hours)} of the time." if hours else ""
    cost = (
        f"costs {money(report.sunk_cost, report)} in any case, which"
        if report.sunk_cost
        else "is used for nothing, which"
    )
    return f"What is committed {cost} is in none of these costs; it is used first.{in_use}"


def notes(answer: PurchaseAnswer) -> list[str]:
    """Say how it was found, and what is assumed."""
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


def money(amount: float, report: MixReport) -> str:
    """An amount with its currency, to three digits at least."""
    return f"{number(amount)} {report.prices.currency}"


def period(hours: float) -> str:
    """Hours as whole years, or in the unit that suits them."""
    years = hours / HOURS_PER_YEAR
    whole = math.isclose(years, round(years), rel_tol=1e-6) and years >= 1.0
    return count(round(years), "year") if whole else duration(hours * 3600.0)


def _of_counted(report: MixReport) -> str:
    """Say which resource a figure is of, where there are several."""
    return f", of {report.counted}" if len(report.plans) > 1 else ""
