"""Pictures of the advice: price against waiting, and demand over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.advising.advice import Advice
from foresail.cloud.advising.choosing import ExpectedMonth, certainty
from foresail.cloud.advising.trying import RuleResult
from foresail.cloud.waiting.owning import pareto
from foresail.model.words import count, duration, number, percent
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.renting.advice_words import RULE_NAMES, PricesTold, money
from foresail.reports.style import PolicyStyle, named_styles

_POINT: Final = "solid", "star"


def frontier_figure(advice: Advice, prices: PricesTold) -> Figure:
    """Cost a month against mean wait, a line for each rule, with the advice and today."""
    names = list(dict.fromkeys(each.rule.name for each in advice.tried))
    styles = named_styles([RULE_NAMES[name] for name in names])
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
            f"{style.label}: best {money(expected.cost, prices)} with "
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
        table=tried_table(advice),
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


def tried_table(advice: Advice) -> pl.DataFrame:
    """A row for all that was tried."""
    rows = []
    for each in advice.tried:
        expected = advice.weights.expected(each)
        rows.append(
            {
                "rule": each.rule.name,
                "waits": each.rule.waits,
                "trials": each.rule.trials,
                "nodes": each.nodes,
                "waiting_seconds": each.rule.waiting_seconds,
                "short_seconds": each.rule.short_seconds,
                "cost_per_month": expected.cost,
                "nodes_cost_per_month": expected.nodes_cost,
                "rented_cost_per_month": expected.rented_cost,
                "mean_wait_seconds": expected.mean_wait_seconds,
                "p95_wait_seconds": each.p95_wait_seconds,
                "waiting_jobs": each.waiting_jobs,
                "rented_jobs": each.rented_jobs,
                "rented_work": each.rented_work,
                "utilisation": each.utilisation,
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
    expected = {each: advice.weights.expected(each) for each in named}
    return pareto(named, lambda each: (expected[each].mean_wait_seconds, expected[each].cost))


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


def demand_figure(advice: Advice) -> Figure:
    """Draw what is in use over time, were there always room, and the advised nodes."""
    table = advice.use_over_time
    days = table["hour"].to_numpy() / 24.0
    mean, highest = table["mean"].to_numpy(), table["highest"].to_numpy()
    unit = advice.market.unit
    size = advice.advised.tried.nodes * advice.market.node_size
    hours = float(np.diff(table["hour"].to_numpy()[:2])[0]) if days.size > 1 else advice.hours
    style = named_styles(["", f"{unit}s in use"])[1]
    above = float((mean > size).mean())
    slot = duration(hours * 3600.0)
    finding = (
        f"{number(float(mean.mean()))} {unit}s are in use on average, "
        f"{number(float(highest.max()))} in the busiest hour; "
        + (
            f"averaged over {slot}, more than the {number(size)} advised are wanted for "
            f"{percent(above)} of the time."
            if size
            else "none are advised to be owned."
        )
    )
    figure = curve_figure(
        "demand",
        "How much is needed, and when?",
        [finding],
        [Curve(style, days, mean, low=mean, high=highest)],
        Axis("day of the log"),
        Axis(f"{unit}s in use"),
        table=table,
        note=f"Means of {slot}, with the busiest hour of each as the band; "
        "as if every job had started when it was submitted.",
        level=(size, f"advised: {number(size)} {unit}s") if size else None,
    )
    return replace(figure, layout=_drawn_through(figure.layout))


def _drawn_through(drawing: Mapping[str, Any]) -> dict[str, Any]:
    """The level in front of the demand, its words legible over it."""
    line = {"color": "@ink", "width": 1.6, "dash": "dash"}
    return {
        **drawing,
        "shapes": [{**s, "line": line, "layer": "above"} for s in drawing.get("shapes", ())],
        "annotations": [
            {**a, "bgcolor": "@paper", "font": {"color": "@ink", "size": 12}, "yshift": 3}
            for a in drawing.get("annotations", ())
        ],
    }
