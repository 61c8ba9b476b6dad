"""The page an operator takes to the person who signs: what to own, what waits, the price."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from foresail.cloud.advising.advice import TRUTH, Advice
from foresail.cloud.advising.searching import Compared
from foresail.cloud.advising.trying import RuleResult
from foresail.cloud.purchasing.demand import HOURS_PER_MONTH
from foresail.cloud.purchasing.offline_plan import COMMITTED
from foresail.model.words import count, duration, number, percent
from foresail.reports.document import in_columns
from foresail.reports.renting.advice_figures import demand_figure, frontier_figure
from foresail.reports.renting.advice_words import (
    COMPARED_NAMES,
    RULE_NAMES,
    UNWAITED_COUNTS,
    PricesTold,
    has_to_be_told,
    how_sure,
    rests_on,
    rule_name,
    rule_words,
    said_size,
    sentences,
)
from foresail.reports.renting.page import CloudPage, NumbersTable


def advice_page(advice: Advice, prices: PricesTold) -> CloudPage:
    """The page about one advice."""
    node = advice.market.node
    return CloudPage(
        title="How many nodes to own, and who should wait?",
        situation=(
            f"{advice.source}: {count(advice.jobs, 'job')} over "
            f"{duration(advice.hours * 3600.0)}, on nodes {node.name} "
            f"({said_size(advice.market, 1)}) and rented machines; prices {prices.name} of "
            f"{prices.valid_on}."
        ),
        sentences=sentences(advice, prices),
        parts=[
            compared_table(advice, prices),
            frontier_figure(advice, prices),
            demand_figure(advice),
            sensitivity_table(advice, prices),
            candidates_table(advice, prices),
        ],
        notes=rests_on(advice, prices),
    )


def compared_table(advice: Advice, prices: PricesTold) -> NumbersTable:
    """The advice against today, all on demand, and buying for jobs that never wait."""
    rows = [_row(each, advice) for each in advice.compared]
    numbers = [_numbers(each, advice) for each in advice.compared]
    unit = f"{advice.market.unit}s"
    for name, amount, cost in _unwaited(advice):
        said = f"{_amount(amount)} {unit}"
        rows.append((name, said, _whole(cost), "–", "0 s", "0 s", "–"))
        numbers.append({"what": name, unit: amount, "cost_per_month": cost})
    pays = (
        "pays more likely than not"
        if advice.question.risk is None
        else "pays as surely as is asked for"
    )
    return NumbersTable(
        "compared",
        "What does it come to?",
        (
            "what is chosen",
            "nodes",
            f"{prices.currency} a month",
            "90 % range",
            "mean wait",
            "95 % wait",
            "work rented",
        ),
        rows,
        pl.DataFrame(numbers, infer_schema_length=None),
        " ".join(how_sure(advice, prices))
        + " Today: every job waits until there is room. No waiting, foreseen: reserved so that it "
        f"{pays}; in hindsight: knowing all demand. {UNWAITED_COUNTS}",
    )


def _row(each: Compared, advice: Advice) -> tuple[str, ...]:
    low, high = each.certainty.cost
    interval = "–" if not advice.futures.informative else f"{_whole(low)}–{_whole(high)}"
    lasting = each.tried.is_lasting
    return (
        COMPARED_NAMES[each.name],
        f"{each.tried.nodes:,}",
        _whole(each.expected.cost),
        interval,
        duration(each.expected.mean_wait_seconds) if lasting else "only grows",
        duration(each.tried.p95_wait_seconds) if lasting else "–",
        percent(each.tried.rented_work),
    )


def _numbers(each: Compared, advice: Advice) -> dict[str, Any]:
    low, high = each.certainty.cost
    briefest, longest = each.certainty.mean_wait_seconds
    told = advice.futures.informative
    return {
        "what": COMPARED_NAMES[each.name],
        "nodes": float(each.tried.nodes),
        "rule": each.tried.rule.name,
        "waiting_seconds": each.tried.rule.waiting_seconds,
        "short_seconds": each.tried.rule.short_seconds,
        "cost_per_month": each.expected.cost,
        "cost_per_month_low": low if told else None,
        "cost_per_month_high": high if told else None,
        "mean_wait_seconds": each.expected.mean_wait_seconds,
        "mean_wait_seconds_low": briefest if told else None,
        "mean_wait_seconds_high": longest if told else None,
        "p95_wait_seconds": each.tried.p95_wait_seconds,
        "rented_work": each.tried.rented_work,
        "lasting": each.tried.is_lasting,
    }


def _unwaited(advice: Advice) -> list[tuple[str, float, float]]:
    """Name, amount (in the market's unit) and cost a month of what is bought if no job waits.

    What is committed is in the amount and in the cost.
    """
    report = advice.unwaited
    resource = "GPUs" if advice.market.unit == "gpu" else "cores"
    dear = advice.on_demand.expected.rented_cost
    sunk = sum(each.count * each.price_per_hour for each in report.commitments)
    rows = []
    if resource in report.risk:
        plan = report.risk[resource]
        rows.append(
            (
                "no waiting, foreseen",
                report.held_units(resource) + sum(plan.units.values()),
                dear * plan.expected_cost_share + sunk * HOURS_PER_MONTH,
            )
        )
    bought = next(each for each in report.plans if each.resource == resource)
    reserved = sum(each.units * each.hours for each in bought.reservations)
    kinds = ("used_hours", "idle_hours")
    held = sum(bought.by_option(kind).get(COMMITTED, 0.0) for kind in kinds)
    spent = report.sunk_cost / report.hours * HOURS_PER_MONTH
    rows.append(
        (
            "no waiting, hindsight",
            (reserved + held) / bought.hours,
            dear * report.share("optimum") + spent,
        )
    )
    return rows


def _amount(amount: float) -> str:
    return number(round(amount)) if amount >= 10.0 or amount == round(amount) else f"{amount:.1f}"


def _whole(amount: float) -> str:
    return number(round(amount)) if amount >= 100.0 else number(amount)


def sensitivity_table(advice: Advice, prices: PricesTold) -> NumbersTable:
    """Tabulate the advice were an assumption wrong, and what this advice comes to if kept."""
    headings, rows = in_columns(
        advice.sensitivities,
        ("if", lambda each: each.change),
        ("nodes", lambda each: f"{each.nodes:,}"),
        ("rule", lambda each: RULE_NAMES[each.rule.name] if each.nodes else "all is rented"),
        (prices.currency, lambda each: _whole(each.cost)),
        ("wait", lambda each: duration(each.mean_wait_seconds)),
        (f"kept: {prices.currency}", lambda each: _whole(each.kept_cost)),
        ("wait", lambda each: duration(each.kept_wait_seconds)),
    )
    table = pl.DataFrame(
        [
            {
                "change": each.change,
                "nodes": each.nodes,
                "rule": each.rule.name,
                "waiting_seconds": each.rule.waiting_seconds,
                "short_seconds": each.rule.short_seconds,
                "cost_per_month": each.cost,
                "mean_wait_seconds": each.mean_wait_seconds,
                "kept_cost_per_month": each.kept_cost,
                "kept_mean_wait_seconds": each.kept_wait_seconds,
            }
            for each in advice.sensitivities
        ],
        infer_schema_length=None,
    )
    return NumbersTable(
        "sensitivity",
        "What would change the advice?",
        headings,
        rows,
        table,
        f"{prices.currency} a month and mean wait, of what would be advised then and of the advice "
        "kept as it is. Where demand changes, the rule is the advised one.",
    )


def candidates_table(advice: Advice, prices: PricesTold) -> NumbersTable:
    """The best of every kind of rule, and what one has to know to follow it."""
    best: dict[str, RuleResult] = {}
    for each in sorted(advice.tried, key=lambda tried: advice.weights.expected(tried).worth):
        if each.is_lasting:
            best.setdefault(rule_name(each.rule), each)
    expected = advice.weights.expected
    headings, rows = in_columns(
        best.values(),
        ("rule", lambda each: RULE_NAMES[each.rule.name]),
        ("nodes", lambda each: f"{each.nodes:,}"),
        ("limit", lambda each: duration(each.rule.waiting_seconds) if _is_limited(each) else "–"),
        (
            "short",
            lambda each: duration(each.rule.short_seconds) if each.rule.short_seconds else "–",
        ),
        (prices.currency, lambda each: _whole(expected(each).cost)),
        ("mean wait", lambda each: duration(expected(each).mean_wait_seconds)),
        ("with wait", lambda each: _whole(expected(each).worth)),
        ("has to be known", lambda each: has_to_be_told(each.rule, advice)),
    )
    records = [
        {
            "name": name,
            "rule": each.rule.name,
            "waits": each.rule.waits,
            "trials": each.rule.trials,
            "nodes": each.nodes,
            "waiting_seconds": each.rule.waiting_seconds,
            "short_seconds": each.rule.short_seconds,
            "cost_per_month": expected(each).cost,
            "mean_wait_seconds": expected(each).mean_wait_seconds,
            "worth_per_month": expected(each).worth,
            "rests_on": has_to_be_told(each.rule, advice),
        }
        for name, each in best.items()
    ]
    return NumbersTable(
        "candidates",
        "What was considered?",
        headings,
        rows,
        pl.DataFrame(records, infer_schema_length=None),
        f"The best of each kind on the log as it is, whatever the risk and the targets: "
        f"{prices.currency} a month, and the same with waiting at its price. Limit: of a wait. "
        "Short: rented at once below, or tried for so long. " + " ".join(_told_how(advice)),
    )


def _told_how(advice: Advice) -> list[str]:
    """Say where runtimes, waits and lifetimes come from."""
    told = [
        "True runtimes are not known on submission: what needs them is not advised."
        if advice.believed_by == TRUTH
        else f"Runtimes are those that {advice.believed_by} believed on submission.",
        "Knowing waits, a rule rents a machine at once to a job that should wait beyond the "
        "limit, by a linear model of the state of nodes and queue that learned from the first "
        "third of the log and is used after it.",
    ]
    if advice.transient is not None:
        told.append(
            "Knowing lifetimes, it tries jobs on transient machines, which are taken back as the "
            "history says; a trial that is lost is begun anew on demand."
        )
    return [*told, "Both are tried with the best limits of the plain rule."]


def _is_limited(tried: RuleResult) -> bool:
    return math.isfinite(tried.rule.waiting_seconds) and tried.rule.name != "no-jobs-wait"


def record(advice: Advice, prices: PricesTold) -> dict[str, Any]:
    """All of it for machines: what to apply first, then what it comes to and rests on."""
    best, market, question = advice.advised, advice.market, advice.question
    rule = best.tried.rule
    return {
        "format": "foresail-advice-1",
        "apply": {
            "nodes": best.tried.nodes,
            "node": market.node.name,
            "node_cores": market.node.cores,
            "node_gpus": market.node.gpus,
            "bought_as": market.bought_as,
            "node_price_per_hour": market.node_price_per_hour,
            "jobs_span_nodes": market.spanning,
            "waiting_policy": {
                "name": rule.name,
                "waiting_seconds": rule.waiting_seconds,
                "short_seconds": rule.short_seconds,
                "queue": rule.queue,
                "runtimes_believed_by": advice.believed_by,
                "waits": rule.waits,
                "wait_model": advice.wait_model,
                "trials_on": rule.trials if rule.name == "speculative" else None,
                "words": rule_words(rule),
                "has_to_be_told": has_to_be_told(rule, advice),
            },
            "rent": "on demand" if advice.transient is None else "on demand or transient",
        },
        "targets_met": not advice.missed,
        "target_missed": advice.missed[0].target if advice.missed else None,
        "targets_missed": [
            {
                "target": each.target,
                "best_cost_per_month": each.best.cost,
                "best_mean_wait_seconds": each.best.mean_wait_seconds,
            }
            for each in advice.missed
        ],
        "currency": prices.currency,
        "compared": [_numbers(each, advice) for each in advice.compared],
        "better_than": {each.name: each.worse_than_advised for each in advice.compared[1:]},
        "no_waiting": [
            {
                "what": name,
                f"{market.unit}s": amount,
                "nodes": amount / market.node_size,
                "cost_per_month": cost,
            }
            for name, amount, cost in _unwaited(advice)
        ],
        "risk": {
            "asked": question.risk,
            "last_tenth_pays": advice.chance_to_pay,
            "best_nodes_on_the_log": advice.best_nodes,
            "nodes_within_the_risk": None
            if advice.within_risk is None
            else advice.within_risk.nodes,
            "growth": question.growth,
            "growth_spread": question.growth_spread,
        },
        "with_perfect_knowledge": {
            "cost_per_month": advice.foreseen.cost,
            "mean_wait_seconds": advice.foreseen.mean_wait_seconds,
        },
        "chosen_on_the_first_half": _held_out(advice),
        "sensitivity": sensitivity_table(advice, prices).table.to_dicts(),
        "candidates": candidates_table(advice, prices).table.to_dicts(),
        "rests_on": {
            "log": advice.source,
            "jobs": advice.jobs,
            "jobs_left_out": advice.left_out,
            "hours": advice.hours,
            "prices": prices.name,
            "prices_source": prices.source,
            "prices_date": str(prices.valid_on),
            "wait_price_per_hour": advice.weights.wait_price_per_hour,
            "wait_price_stated": question.wait_price_per_hour is not None,
            "words": rests_on(advice, prices),
        },
    }


def _held_out(advice: Advice) -> dict[str, Any] | None:
    """Return what choosing on the first half came to in the second."""
    held = advice.held_out
    if held is None:
        return None
    return {
        "blocks": held.blocks,
        "later_blocks": held.later_blocks,
        "nodes": held.chosen.nodes,
        "rule": held.chosen.rule.name,
        "waits": held.chosen.rule.waits,
        "cost_per_month": held.lived.cost,
        "mean_wait_seconds": held.lived.mean_wait_seconds,
        "worth_per_month": held.lived.worth,
        "advised_worth_per_month": held.advised.worth,
        "best_worth_per_month": held.best.worth,
    }
