"""The page about the cost of synchronisation: speed-up, cost and both against the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from foresail.model.arrays import Floats
from foresail.model.words import count, number, percent
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.renting.page import CloudPage, Column, NumbersTable, numbers_table
from foresail.reports.style import named_styles
from foresail_studies.renting.barrier_costs import Costs, DrawnCosts
from foresail_studies.renting.barriers import BarrierProgram


def synchronization_page(
    setting: BarrierProgram, found: Sequence[Costs | DrawnCosts], how: str
) -> CloudPage:
    """The page about several models, with what was found of each at the same numbers of workers.

    ``how`` says in words what the speeds of transient workers are.
    """
    models = [costs_of(each) for each in found]
    workers = models[0].workers
    return CloudPage(
        title="How many workers, and how should they wait for each other?",
        situation=(
            f"{number(setting.operations)} operations with {count(setting.barriers, 'barrier')} on "
            f"{workers.min()} to {count(int(workers.max()), 'worker')}; transient workers cost "
            f"{percent(1.0 - setting.transient_discount)} of on-demand ones; {how}."
        ),
        sentences=[*_verdict(models), *map(said, models)],
        parts=[
            best_table(models),
            _figure("speedup", "How much faster does it get?", "speed-up", found),
            _figure("cost", "What does that cost?", "cost, 1: one on-demand worker", found),
            _figure("ratio", "Which gives most for the money?", "speed-up over cost", found),
        ],
        notes=[
            "Speed-up and cost are those of one on-demand worker that meets no barrier, divided "
            "and multiplied. At each barrier every worker's messages take "
            f"{number(setting.network_seconds)} s."
        ],
    )


def said(costs: Costs) -> str:
    """A model's best, in words."""
    fast, good = costs.fastest, costs.best_value
    return (
        f"{costs.name}: fastest with {count(int(costs.workers[fast]), 'worker')} "
        f"({number(float(costs.speedup[fast]))} times as fast, cost "
        f"{number(float(costs.cost[fast]))}); most for the money with "
        f"{count(int(costs.workers[good]), 'worker')} (speed-up over cost "
        f"{number(float(costs.ratio[good]))})."
    )


def best_table(models: Sequence[Costs]) -> NumbersTable:
    """Each model's best numbers of workers; the CSV file has all."""
    three = "{:.3f}".format
    columns: list[Column[Costs]] = [
        Column("model", "", lambda each: each.name),
        Column("fastest with", "", lambda each: each.workers[each.fastest]),
        Column("speed-up", "", lambda each: each.speedup[each.fastest], three),
        Column("cost", "", lambda each: each.cost[each.fastest], three),
        Column("best value with", "", lambda each: each.workers[each.best_value]),
        Column("speed-up / cost", "", lambda each: each.ratio[each.best_value], three),
    ]
    said = "The CSV has all numbers of workers."
    found = numbers_table("models", "The best of each model", models, columns, said)
    return replace(found, table=pl.concat([each.table() for each in models]))


def _verdict(models: Sequence[Costs]) -> list[str]:
    if len(models) < 2:
        return []
    fastest = max(models, key=lambda each: float(each.speedup.max()))
    best = max(models, key=lambda each: float(each.ratio.max()))
    words = f"Fastest of all is {fastest.name}; most for the money gives {best.name}"
    return [f"{words}."]


def _figure(column: str, title: str, label: str, found: Sequence[Costs | DrawnCosts]) -> Figure:
    """One column of all models; where speeds were drawn, with its 95 % interval."""
    models = [costs_of(each) for each in found]
    values = [getattr(each, column) for each in models]
    curves = []
    for style, each, costs, y in zip(
        named_styles([costs.name for costs in models]), found, models, values, strict=True
    ):
        best = costs.best_value if column == "ratio" else costs.fastest
        low = high = None
        if isinstance(each, DrawnCosts):
            low, high = _interval(each, column)
        curves.append(
            Curve(
                style,
                costs.workers.astype(np.float64),
                y,
                [best],
                ["" if column == "cost" else f"{y[best]:.3g}"],
                low,
                high,
            )
        )
    findings = [
        f"{curve.style.label}: {number(float(curve.y[curve.marked[0]]))} with "
        f"{count(int(curve.x[curve.marked[0]]), 'worker')}"
        f"{', where it is fastest' if column == 'cost' else ', the most'}."
        for curve in curves
    ]
    drawn = any(isinstance(each, DrawnCosts) for each in found)
    return curve_figure(
        "value" if column == "ratio" else column,
        title,
        findings,
        curves,
        Axis("workers"),
        Axis(label, log=column == "cost"),
        table=pl.concat([each.table() for each in models]),
        note="Band: 95 % interval of the mean time." if drawn else "",
        level=None if column == "ratio" else (1.0, "one on-demand worker"),
    )


def _interval(drawn: DrawnCosts, column: str) -> tuple[Floats, Floats]:
    """A column where the mean time is at either end of its interval."""
    seconds, half = drawn.costs.seconds, drawn.half_interval_seconds
    power = {"speedup": -1.0, "cost": 1.0}.get(column, -2.0)
    value = getattr(drawn.costs, column)
    ends = [value * ((seconds + shift * half) / seconds) ** power for shift in (-1.0, 1.0)]
    return np.minimum(*ends), np.maximum(*ends)


def costs_of(found: Costs | DrawnCosts) -> Costs:
    """The costs, drawn or by formula."""
    return found.costs if isinstance(found, DrawnCosts) else found


def synchronization_record(found: Sequence[Costs | DrawnCosts]) -> dict[str, Any]:
    """Costs of each model, for programs."""
    content = []
    for each in found:
        costs = costs_of(each)
        content.append(
            {
                "model": costs.name,
                "workers": costs.workers.tolist(),
                "seconds": costs.seconds.tolist(),
                "speedup": costs.speedup.tolist(),
                "cost": costs.cost.tolist(),
                "speedup_per_cost": costs.ratio.tolist(),
                "fastest_workers": int(costs.workers[costs.fastest]),
                "best_value_workers": int(costs.workers[costs.best_value]),
            }
        )
        if isinstance(each, DrawnCosts):
            content[-1]["half_interval_seconds"] = each.half_interval_seconds.tolist()
    return {"models": content}
