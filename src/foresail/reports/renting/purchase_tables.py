"""Tables of the purchasing mix: costs, machines to reserve, options, and errors of forecasts."""

from __future__ import annotations

import polars as pl

from foresail.cloud.purchasing.demand import HOURS_PER_YEAR
from foresail.cloud.purchasing.mix import MixReport
from foresail.model.words import number, percent, signed
from foresail.reports.renting.page import NumbersTable
from foresail.reports.renting.purchase_answer import PurchaseAnswer
from foresail.reports.renting.purchase_words import counted_unit, of_counted, period


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
            *("option", f"{counted_unit(report)} hours", "share"),
            *(f"idle {counted_unit(report)} hours", f"cost, {report.prices.currency}"),
        ),
        rows,
        report.options,
        "Idle: reserved and not used. Costs are of all resources; those on demand include jobs "
        "that start again after a revocation.",
    )


def errors_table(report: MixReport) -> NumbersTable:
    """What a wrong forecast costs."""
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
