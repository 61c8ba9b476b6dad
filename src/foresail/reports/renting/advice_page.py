"""The page an operator takes to the person who signs: what to own, what waits, the price."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.advising.advice import TRUTH, Advice
from foresail.cloud.advising.choosing import ExpectedMonth, certainty
from foresail.cloud.advising.question import WaitingRule
from foresail.cloud.advising.searching import Compared, Sensitivity
from foresail.cloud.advising.trying import RuleResult
from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import HOURS_PER_MONTH
from foresail.cloud.purchasing.offline import COMMITTED
from foresail.model.words import count, duration, number, percent
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.renting import advice_words
from foresail.reports.renting.page import (
    CloudPage,
    Column,
    NumbersTable,
    demand_figure,
    numbers_table,
    records_of,
)
from foresail.reports.style import PolicyStyle, named_styles


def advice_page(advice: Advice, prices: PriceCatalogue) -> CloudPage:
    """The page about one advice."""
    node = advice.market.node
    return CloudPage(
        title="How many nodes to own, and who should wait?",
        situation=(
            f"{advice.source}: {count(advice.jobs, 'job')} over "
            f"{duration(advice.hours * 3600.0)}, on nodes {node.name} "
            f"({advice_words.said_size(advice.market, 1)}) and rented machines; "
            f"prices {prices.name} of {prices.valid_on}."
        ),
        sentences=advice_words.sentences(advice, prices),
        parts=[
            compared_table(advice, prices),
            frontier_figure(advice, prices),
            demand_figure(advice.use_over_time, f"{advice.market.unit}s", "advised"),
            sensitivity_table(advice, prices),
            candidates_table(advice, prices),
        ],
        notes=advice_words.rests_on(advice, prices),
    )


def compared_table(advice: Advice, prices: PriceCatalogue) -> NumbersTable:
    """The advice against today, all on demand, and buying for jobs that never wait."""
    found = numbers_table(
        "compared", "What does it come to?", advice.compared, _compared(advice, prices.currency)
    )
    unit = f"{advice.market.unit}s"
    unwaited = _unwaited(advice)
    rows = [
        (name, f"{_amount(amount)} {unit}", _whole(cost), "–", "0 s", "0 s", "–")
        for name, amount, cost in unwaited
    ]
    more = [{"what": name, unit: amount, "cost_per_month": cost} for name, amount, cost in unwaited]
    asked = advice.question.risk is not None
    pays = "pays as surely as is asked for" if asked else "pays more likely than not"
    return replace(
        found,
        rows=[*found.rows, *rows],
        table=pl.DataFrame([*found.table.to_dicts(), *more], infer_schema_length=None),
        note=" ".join(advice_words.how_sure(advice, prices))
        + " Today: every job waits until there is room. No waiting, foreseen: reserved so that it "
        f"{pays}; in hindsight: knowing all demand. {advice_words.UNWAITED_COUNTS}",
    )


def _compared(advice: Advice, currency: str) -> list[Column[Compared]]:
    """Columns of what is compared; intervals only where there is something to draw them from."""
    sure = advice.futures.informative

    def end(name: str, at: int) -> Callable[[Compared], float | None]:
        return lambda each: getattr(each.certainty, name)[at] if sure else None

    return [
        Column("what is chosen", "what", lambda each: advice_words.COMPARED_NAMES[each.name]),
        Column("nodes", "nodes", lambda each: float(each.tried.nodes), "{:,.0f}".format),
        Column("", "rule", lambda each: each.tried.rule.name),
        Column("", "waiting_seconds", lambda each: each.tried.rule.waiting_seconds),
        Column("", "short_seconds", lambda each: each.tried.rule.short_seconds),
        Column(f"{currency} a month", "cost_per_month", lambda each: each.expected.cost, _whole),
        Column(
            "90 % range",
            "",
            lambda each: each.certainty.cost if sure else None,
            lambda ends: "–" if ends is None else f"{_whole(ends[0])}–{_whole(ends[1])}",
        ),
        Column("", "cost_per_month_low", end("cost", 0)),
        Column("", "cost_per_month_high", end("cost", 1)),
        Column("mean wait", "", lambda each: each, _said_wait),
        Column("", "mean_wait_seconds", lambda each: each.expected.mean_wait_seconds),
        Column("", "mean_wait_seconds_low", end("mean_wait_seconds", 0)),
        Column("", "mean_wait_seconds_high", end("mean_wait_seconds", 1)),
        Column("95 % wait", "", lambda each: each, _said_long_wait),
        Column("", "p95_wait_seconds", lambda each: each.tried.p95_wait_seconds),
        Column("work rented", "rented_work", lambda each: each.tried.rented_work, percent),
        Column("", "lasting", lambda each: each.tried.is_lasting),
    ]


def _said_wait(each: Compared) -> str:
    return duration(each.expected.mean_wait_seconds) if each.tried.is_lasting else "only grows"


def _said_long_wait(each: Compared) -> str:
    return duration(each.tried.p95_wait_seconds) if each.tried.is_lasting else "–"


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


def sensitivity_table(advice: Advice, prices: PriceCatalogue) -> NumbersTable:
    """Tabulate the advice were an assumption wrong, and what this advice comes to if kept."""
    kept = f"kept: {prices.currency}"
    columns: list[Column[Sensitivity]] = [
        Column("if", "change", lambda each: each.change),
        Column("nodes", "nodes", lambda each: each.nodes, "{:,}".format),
        Column(
            "rule",
            "",
            lambda each: advice_words.RULE_NAMES[each.rule.name] if each.nodes else "all is rented",
        ),
        Column("", "rule", lambda each: each.rule.name),
        Column("", "waiting_seconds", lambda each: each.rule.waiting_seconds),
        Column("", "short_seconds", lambda each: each.rule.short_seconds),
        Column(prices.currency, "cost_per_month", lambda each: each.cost, _whole),
        Column("wait", "mean_wait_seconds", lambda each: each.mean_wait_seconds, duration),
        Column(kept, "kept_cost_per_month", lambda each: each.kept_cost, _whole),
        Column("wait", "kept_mean_wait_seconds", lambda each: each.kept_wait_seconds, duration),
    ]
    return numbers_table(
        "sensitivity",
        "What would change the advice?",
        advice.sensitivities,
        columns,
        f"{prices.currency} a month and mean wait, of what would be advised then and of the advice "
        "kept as it is. Where demand changes, the rule is the advised one.",
    )


def candidates_table(advice: Advice, prices: PriceCatalogue) -> NumbersTable:
    """The best of every kind of rule, and what one has to know to follow it."""
    expected = advice.weights.expected
    best: dict[str, RuleResult] = {}
    for each in sorted(advice.tried, key=lambda tried: expected(tried).worth):
        if each.is_lasting:
            best.setdefault(advice_words.rule_name(each.rule), each)
    columns: list[Column[RuleResult]] = [
        Column("", "name", lambda each: advice_words.rule_name(each.rule)),
        Column("rule", "rule", lambda each: each.rule.name, advice_words.RULE_NAMES.__getitem__),
        Column("", "waits", lambda each: each.rule.waits),
        Column("", "trials", lambda each: each.rule.trials),
        Column("nodes", "nodes", lambda each: each.nodes, "{:,}".format),
        Column("limit", "", lambda each: each.rule, _said_limit),
        Column("", "waiting_seconds", lambda each: each.rule.waiting_seconds),
        Column(
            "short",
            "short_seconds",
            lambda each: each.rule.short_seconds,
            lambda it: duration(it) if it else "–",
        ),
        Column(prices.currency, "cost_per_month", lambda each: expected(each).cost, _whole),
        Column(
            "mean wait",
            "mean_wait_seconds",
            lambda each: expected(each).mean_wait_seconds,
            duration,
        ),
        Column("with wait", "worth_per_month", lambda each: expected(each).worth, _whole),
        Column(
            "has to be known",
            "rests_on",
            lambda each: advice_words.needs_to_know(each.rule, advice),
        ),
    ]
    return numbers_table(
        "candidates",
        "What was considered?",
        best.values(),
        columns,
        f"The best of each kind on the log as it is, whatever the risk and the targets: "
        f"{prices.currency} a month, and the same with waiting at its price. Limit: of a wait. "
        "Short: rented at once below, or tried for so long. " + " ".join(_notes_on_rules(advice)),
    )


def _said_limit(rule: WaitingRule) -> str:
    has_limit = math.isfinite(rule.waiting_seconds) and rule.name != "no-jobs-wait"
    return duration(rule.waiting_seconds) if has_limit else "–"


def _notes_on_rules(advice: Advice) -> list[str]:
    """Say where runtimes, waits and lifetimes come from."""
    remarks = [
        "True runtimes are not known on submission: what needs them is not advised."
        if advice.believed_by == TRUTH
        else f"Runtimes are those that {advice.believed_by} believed on submission.",
        "Knowing waits, a rule rents a machine at once to a job that should wait beyond the "
        "limit, by a linear model of the state of nodes and queue that learned from the first "
        "third of the log and is used after it.",
    ]
    if advice.transient is not None:
        remarks.append(
            "Knowing lifetimes, it tries jobs on transient machines, which are taken back as the "
            "history says; a trial that is lost is begun anew on demand."
        )
    return [*remarks, "Both are tried with the best limits of the plain rule."]


_POINT: Final = "solid", "star"


def frontier_figure(advice: Advice, prices: PriceCatalogue) -> Figure:
    """Cost a month against mean wait, a line for each rule, with the advice and today."""
    names = list(dict.fromkeys(each.rule.name for each in advice.tried))
    styles = named_styles([advice_words.RULE_NAMES[name] for name in names])
    drawn = {style.drawn for style in styles}
    curves, findings = [], []
    for name, style in zip(names, styles, strict=True):
        points = _undominated(advice, name)
        if not points:
            continue
        curves.append(_curve(advice, style, points, banded=name == advice.advised.tried.rule.name))
        best = min(points, key=lambda each: advice.weights.expected(each).worth)
        expected = advice.weights.expected(best)
        findings.append(
            f"{style.label}: best {advice_words.money(expected.cost, prices)} with "
            f"{count(best.nodes, 'node')} and a mean wait of "
            f"{duration(expected.mean_wait_seconds)}."
        )
    for each, label in ((advice.advised, "advised"), (advice.today, "today")):
        if each is not None and each.tried.is_lasting:
            curves.append(_mark(each.expected, f"{label}: {each.tried.nodes:,}"))
    on_demand = advice.on_demand.expected.cost
    figure = curve_figure(
        "frontier",
        "What does less waiting cost?",
        findings,
        curves,
        Axis("mean wait", "duration", log=True, room=2.0),
        Axis(f"cost, {prices.currency} a month"),
        table=_tried_table(advice),
        note="A line joins what was tried of a rule that is neither dearer nor slower than the "
        "rest of it; waits below a second are drawn there."
        + (" Band: 90 % range." if advice.futures.informative else ""),
        level=(on_demand, "all on demand"),
    )
    # The advice and today are named where they are drawn.
    traces = [
        {**each, "showlegend": each.get("showlegend") and each["name"] in drawn}
        for each in figure.traces
    ]
    return replace(figure, traces=traces)


def _tried_table(advice: Advice) -> pl.DataFrame:
    """A row for all that was tried."""
    of_result = ("p95_wait_seconds", "waiting_jobs", "rented_jobs", "rented_work", "utilisation")
    rows = []
    for each in advice.tried:
        rule, expected = each.rule, advice.weights.expected(each)
        rows.append(
            {
                "rule": rule.name,
                "waits": rule.waits,
                "trials": rule.trials,
                "nodes": each.nodes,
                "waiting_seconds": rule.waiting_seconds,
                "short_seconds": rule.short_seconds,
                "cost_per_month": expected.cost,
                "nodes_cost_per_month": expected.nodes_cost,
                "rented_cost_per_month": expected.rented_cost,
                "mean_wait_seconds": expected.mean_wait_seconds,
                **{name: getattr(each, name) for name in of_result},
                "lasting": each.is_lasting,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def _undominated(advice: Advice, name: str) -> list[RuleResult]:
    """Points of a rule than which none is both cheaper and quicker, by rising wait."""
    named = [
        each
        for each in advice.tried
        if each.rule.name == name and each.is_lasting and (each.nodes or name == "no-jobs-wait")
    ]
    places = {
        each: (expected.mean_wait_seconds, expected.cost)
        for each in named
        for expected in [advice.weights.expected(each)]
    }
    kept: list[RuleResult] = []
    for each in sorted(named, key=places.__getitem__):
        if not kept or places[each][1] < places[kept[-1]][1]:
            kept.append(each)
    return kept


def _curve(
    advice: Advice, style: PolicyStyle, points: Sequence[RuleResult], *, banded: bool
) -> Curve:
    expected = [advice.weights.expected(each) for each in points]
    low = high = None
    if banded and advice.futures.informative:
        ends = [certainty(each, advice.weights, advice.futures).cost for each in points]
        low, high = np.array([end[0] for end in ends]), np.array([end[1] for end in ends])
    return Curve(
        style,
        np.array([each.mean_wait_seconds for each in expected]),
        np.array([each.cost for each in expected]),
        # A single point is no line.
        marked=[0] if len(points) == 1 else (),
        text=[""] if len(points) == 1 else (),
        low=low,
        high=high,
    )


def _mark(expected: ExpectedMonth, label: str) -> Curve:
    style = PolicyStyle(label, label, label, "@ink", *_POINT)
    wait, cost = np.array([expected.mean_wait_seconds]), np.array([expected.cost])
    return Curve(style, wait, cost, [0], [label])


def record(advice: Advice, prices: PriceCatalogue) -> dict[str, Any]:
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
                "words": advice_words.rule_words(rule),
                "needs_to_know": advice_words.needs_to_know(rule, advice),
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
        "compared": records_of(advice.compared, _compared(advice, prices.currency)),
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
            "words": advice_words.rests_on(advice, prices),
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
