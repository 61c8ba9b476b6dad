"""How many machines to own, in tables, and as a record for machines to read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from foresail.cloud.waiting.owning import BestFor, FrontierPoint, OwningAnswer, best_by_value
from foresail.model.words import duration, number, percent
from foresail.reports.renting.page import NumbersTable
from foresail.reports.renting.rent_or_wait_words import Circumstances, between, value_range


def policies_table(answer: OwningAnswer, asked: Circumstances) -> NumbersTable:
    """The best of each policy, and today."""
    hull = {each.point: each for each in best_by_value(answer.points)}
    chosen = [answer.best_of(name) for name in dict.fromkeys(p.policy for p in answer.points)]
    rows = []
    if answer.today is not None:
        rows.append(_row("today: ", answer.today, hull))
    rows += [
        _row("advised: " if point is answer.advised else "", point, hull)
        for point in dict.fromkeys([answer.advised, *chosen])
    ]
    headings = (
        "policy",
        "own",
        "limit b",
        "short t",
        "price",
        f"cost, {asked.currency}",
        "mean wait",
        "on demand",
        "price × wait",
        "best for an hour worth",
    )
    return NumbersTable(
        "policies",
        "The best of each policy",
        headings,
        rows,
        points_table(answer),
        "Price: 1 is renting a machine for every job at once. On demand: share of the work. In "
        "parentheses: 95 % intervals. The CSV has all that was tried.",
    )


def values_table(answer: OwningAnswer, asked: Circumstances) -> NumbersTable:
    """What is best, by what waiting is worth."""
    found = best_by_value(answer.points)
    rows = [
        (
            value_range(each, asked.currency),
            each.point.policy if each.point.machines else "rent all",
            f"{each.point.machines:,}",
            f"{each.point.price:.3f}",
            duration(each.point.mean_wait_seconds),
        )
        for each in found
    ]
    table = pl.DataFrame(
        [
            {"hour_value_from": each.least, "hour_value_to": each.most} | _numbers(each.point)
            for each in found
        ],
        infer_schema_length=None,
    )
    return NumbersTable(
        "by-value",
        "What if waiting were worth more, or less?",
        ("an hour of a job's waiting", "best", "own", "price", "mean wait"),
        rows,
        table,
        "Among what was tried.",
    )


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
        "users_with_own_value": answer.worth.users,
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


def _row(before: str, point: FrontierPoint, hull: dict[FrontierPoint, BestFor]) -> tuple[str, ...]:
    prices = "" if point.prices is None else f" ({point.prices[0]:.3f}–{point.prices[1]:.3f})"
    waits = "" if point.waits is None else f" ({between(duration, point.waits, '–')})"
    return (
        f"{before}{point.policy}",
        f"{point.machines:,}",
        "" if point.waiting_seconds is None else duration(point.waiting_seconds),
        "" if point.short_seconds is None else duration(point.short_seconds),
        f"{point.price:.3f}{prices}",
        number(round(point.cost)),
        f"{duration(point.mean_wait_seconds)}{waits}",
        percent(point.rented_work),
        duration(point.opportunity_cost),
        value_range(hull[point]) if point in hull else "",
    )


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
