"""The page about owning and waiting: how many machines, which jobs wait, at what price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.waiting.owning import (
    BestFor,
    FrontierPoint,
    OwningAnswer,
    best_by_value,
    pareto,
)
from foresail.model.arrays import Floats
from foresail.model.words import count, duration, number, percent
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.renting.page import CloudPage, Column, NumbersTable, numbers_table
from foresail.reports.renting.rent_or_wait_sentences import (
    Circumstances,
    between,
    notes,
    sentences,
    situation,
    value_range,
)
from foresail.reports.style import PolicyStyle, named_styles


def policies_table(answer: OwningAnswer, asked: Circumstances) -> NumbersTable:
    """The best of each policy, and today; the CSV file has all that was tried."""
    hull = {each.point: value_range(each) for each in best_by_value(answer.points)}
    chosen = [answer.best_of(name) for name in dict.fromkeys(p.policy for p in answer.points)]
    named = [] if answer.today is None else [("today: ", answer.today)]
    named += [
        ("advised: " if point is answer.advised else "", point)
        for point in dict.fromkeys([answer.advised, *chosen])
    ]
    columns: list[Column[tuple[str, FrontierPoint]]] = [
        Column("policy", "", lambda each: f"{each[0]}{each[1].policy}"),
        Column("own", "", lambda each: each[1].machines, "{:,}".format),
        Column("limit b", "", lambda each: each[1].waiting_seconds, _threshold),
        Column("short t", "", lambda each: each[1].short_seconds, _threshold),
        Column("price", "", itemgetter(1), _said_price),
        Column(f"cost, {asked.currency}", "", lambda each: round(each[1].cost), number),
        Column("mean wait", "", itemgetter(1), _said_wait),
        Column("on demand", "", lambda each: each[1].rented_work, percent),
        Column("price × wait", "", lambda each: each[1].opportunity_cost, duration),
        Column("best for an hour worth", "", lambda each: hull.get(each[1], "")),
    ]
    found = numbers_table(
        "policies",
        "The best of each policy",
        named,
        columns,
        "Price: 1 is renting a machine for every job at once. On demand: share of the work. In "
        "parentheses: 95 % intervals. The CSV has all that was tried.",
    )
    return replace(found, table=points_table(answer))


def _threshold(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _said_price(point: FrontierPoint) -> str:
    ends = "" if point.prices is None else f" ({between('{:.3f}'.format, point.prices, '–')})"
    return f"{point.price:.3f}{ends}"


def _said_wait(point: FrontierPoint) -> str:
    ends = "" if point.waits is None else f" ({between(duration, point.waits, '–')})"
    return f"{duration(point.mean_wait_seconds)}{ends}"


def values_table(answer: OwningAnswer, asked: Circumstances) -> NumbersTable:
    """Tabulate what is best, by what waiting is worth."""
    found = best_by_value(answer.points)
    columns: list[Column[BestFor]] = [
        Column("an hour of a job's waiting", "", lambda each: value_range(each, asked.currency)),
        Column("best", "", lambda each: each.point.policy if each.point.machines else "rent all"),
        Column("own", "", lambda each: each.point.machines, "{:,}".format),
        Column("price", "", lambda each: each.point.price, "{:.3f}".format),
        Column("mean wait", "", lambda each: each.point.mean_wait_seconds, duration),
    ]
    shown = numbers_table(
        "by-value", "What if waiting were worth more, or less?", found, columns, "Of all tried."
    )
    numbers = [
        {"hour_value_from": each.least, "hour_value_to": each.most} | _numbers(each.point)
        for each in found
    ]
    return replace(shown, table=pl.DataFrame(numbers, infer_schema_length=None))


def points_table(answer: OwningAnswer) -> pl.DataFrame:
    """A row for all that was tried and lasts, and for today."""
    points = list(dict.fromkeys([*answer.points, *([answer.today] if answer.today else [])]))
    rows = [
        _numbers(point) | {"advised": point is answer.advised, "today": point is answer.today}
        for point in points
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def record(answer: OwningAnswer, asked: Circumstances) -> dict[str, Any]:
    """All of it for machines to read."""
    found = best_by_value(answer.points)
    certainty = None if answer.certainty is None else asdict(answer.certainty)
    return {
        "log": asked.log,
        "machine": {
            "name": asked.machine_name,
            "cores": asked.machine.cores,
            "gpus": asked.machine.gpus,
            "price_per_hour": asked.machine.price_per_hour,
        },
        "prices": {
            "name": asked.catalogue,
            "date": str(asked.valid_on),
            "currency": asked.currency,
        },
        "period_seconds": answer.period_seconds,
        "jobs": answer.jobs,
        "mean_machines": answer.mean_machines,
        "hour_value": answer.worth.hour_value,
        "hour_value_stated": answer.worth.stated,
        "queue": asked.queue,
        "advised": _numbers(answer.advised),
        "goes_by_truths": list(answer.truths),
        "without_knowledge": None if answer.unaided is None else _numbers(answer.unaided),
        "today": None if answer.today is None else _numbers(answer.today),
        "certainty": certainty,
        "growing_left_out": answer.growing,
        "lowest_prices": [_numbers(point) for point in answer.optima],
        "best_by_value": [
            {"from": each.least, "to": each.most} | _numbers(each.point) for each in found
        ],
        "points": [_numbers(point) for point in answer.points],
    }


def _numbers(point: FrontierPoint) -> dict[str, Any]:
    numbers = {
        name: value for name, value in asdict(point).items() if name not in ("prices", "waits")
    }
    low, high = point.prices or (None, None)
    quick, slow = point.waits or (None, None)
    return numbers | {
        "price": point.price,
        "price_low": low,
        "price_high": high,
        "mean_wait_seconds_low": quick,
        "mean_wait_seconds_high": slow,
        "opportunity_cost_seconds": point.opportunity_cost,
    }


_ROOM: Final = 4.0
"""Times the longest wait that its axis reaches: for what is written beside the last point."""
_RENTING: Final = (1.0, "renting for every job")
_TODAY: Final = PolicyStyle("today", "today", "today", "@ink", "solid", "star")


def frontier_figure(answer: OwningAnswer) -> Figure:
    """Price against mean wait, a line for each policy; today and the advice are marked."""
    names = list(dict.fromkeys(point.policy for point in answer.points))
    curves = []
    for style, name in zip(named_styles(names), names, strict=True):
        # Owning nothing is the level; a line to it would cross what nothing was tried for.
        own = [
            each for each in answer.points_under(name) if each.machines or name == "no-jobs-wait"
        ]
        points = pareto(own, lambda each: (each.mean_wait_seconds, each.cost))
        marked = [at for at, point in enumerate(points) if point is answer.advised]
        words = [f"advised: {answer.advised.machines:,}"] * len(marked)
        curves.append(_curve(style, points, [p.mean_wait_seconds for p in points], marked, words))
    if answer.today is not None:
        today = answer.today
        curves.append(_curve(_TODAY, [today], [today.mean_wait_seconds], [0], ["today"]))
    findings = [_finding(answer, name) for name in names]
    banded = answer.certainty is not None
    return curve_figure(
        "frontier",
        "What does less waiting cost?",
        findings,
        curves,
        Axis("mean wait", "duration", log=True, room=_ROOM),
        Axis("price", "share", from_zero=False),
        table=points_table(answer),
        note="A line joins a policy's numbers of machines (and thresholds), without those that are "
        "both dearer and slower than another of its own; waits below a second are drawn there."
        + (" Band: 95 % interval of the price." if banded else ""),
        level=_RENTING,
    )


def _curve(
    style: PolicyStyle,
    points: Sequence[FrontierPoint],
    across: Sequence[float],
    marked: Sequence[int],
    words: Sequence[str],
) -> Curve:
    prices = np.array([point.price for point in points])
    band = _band([point.prices for point in points])
    return Curve(style, np.array(across), prices, marked, words, *band)


def _band(
    intervals: Sequence[tuple[float, float] | None],
) -> tuple[Floats | None, Floats | None]:
    known = [each for each in intervals if each is not None]
    if len(known) < len(intervals):
        return None, None
    return np.array([low for low, _ in known]), np.array([high for _, high in known])


def _finding(answer: OwningAnswer, policy: str) -> str:
    best = answer.best_of(policy)
    return (
        f"{policy}: {percent(best.price)} at {duration(best.mean_wait_seconds)} with "
        f"{count(best.machines, 'machine')}, its best for the value of waiting."
    )


def rent_or_wait_page(answer: OwningAnswer, asked: Circumstances) -> CloudPage:
    """The page about one answer."""
    return CloudPage(
        title="How many machines to own, and which jobs wait for them?",
        situation=situation(answer, asked),
        sentences=sentences(answer, asked),
        parts=[
            policies_table(answer, asked),
            frontier_figure(answer),
            values_table(answer, asked),
        ],
        notes=notes(answer, asked),
    )
