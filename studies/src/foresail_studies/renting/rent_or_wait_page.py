"""The page about owning and waiting, and its words: how many machines, who waits, the price."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from operator import itemgetter
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.cloud.waiting.jobs import USUAL_SHARE, FixedMachines
from foresail.model.arrays import Floats
from foresail.model.words import count, duration, number, percent
from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.renting.page import CloudPage, Column, NumbersTable, numbers_table
from foresail.reports.style import PolicyStyle, named_styles
from foresail_studies.renting.owning import (
    BestFor,
    FrontierPoint,
    OwningAnswer,
    best_by_value,
    pareto,
)


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


_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Circumstances of a question, beside the answer."""

    log: str
    """Its name, or what arrives."""
    machine_name: str
    machine: FixedMachines
    """Owned machines."""
    currency: str
    catalogue: str
    valid_on: date
    """Of the prices: their currency, where they come from and of which day."""
    known: str
    """Knowledge of runtimes and waits that policies had, in words."""
    queue: str = ""
    """Which waiting job starts, in words."""
    too_wide: float = 0.0
    """Share of work that no owned machine holds."""
    memory_known: bool = True
    """Whether the jobs say what memory they need."""
    by_formula: bool = False
    """Whether formulas answered, not a simulation."""


def situation(answer: OwningAnswer, asked: Circumstances) -> str:
    """Say what was asked about."""
    machine = asked.machine
    kind = "Poisson arrivals" if asked.by_formula else count(round(answer.jobs), "job")
    return (
        f"{asked.log}: {kind} over {duration(answer.period_seconds)} that would keep "
        f"{number(answer.mean_machines)} machines {asked.machine_name} busy "
        f"({_size(machine)} each, {money(machine.price_per_hour, asked)} an "
        f"hour owned); prices {asked.catalogue} of {asked.valid_on}."
    )


def _size(machine: FixedMachines) -> str:
    cores = count(machine.cores, "core")
    return f"{cores} and {count(round(machine.gpus), 'gpu')}" if machine.gpus else cores


def notes(answer: OwningAnswer, asked: Circumstances) -> list[str]:
    """Say how it was computed."""
    said = [
        "Owned machines are paid all the time. A rented machine is the cheapest type that holds "
        "the job, is paid while it runs, and no other job shares it.",
        f"Runtimes and waits: {asked.known}.",
    ]
    if asked.queue:
        said.append(f"{asked.queue[0].upper()}{asked.queue[1:]}.")
    if asked.by_formula:
        return [
            *said,
            "By formula: Poisson arrivals, exponential runtimes, one machine for each job. Real "
            "jobs come in bursts and wait longer.",
        ]
    if answer.certainty is not None:
        unit = block_name(answer.certainty.block_seconds)
        said.append(
            f"Intervals: {unit}s of the log drawn anew, with replacement, 1,000 times; the same "
            f"draws for all settings. They say what other {unit}s like these would change, not "
            "what another kind of year would."
        )
    if not asked.memory_known:
        said.append("The log does not say what memory jobs need: cores alone decide what fits.")
    return said


def value_range(best: BestFor, currency: str = "") -> str:
    """Values of a waiting hour in words."""
    unit = f" {currency}" if currency else ""
    if math.isinf(best.most):
        return f"{number(best.least)}{unit} or more"
    if best.least == 0.0:
        return f"up to {number(best.most)}{unit}"
    return f"{number(best.least)} to {number(best.most)}{unit}"


def limits(point: FrontierPoint) -> str:
    """The thresholds of a point, each after a comma."""
    parts = []
    if point.waiting_seconds is not None:
        parts.append(f"limit {duration(point.waiting_seconds)}")
    if point.short_seconds is not None:
        parts.append(f"short is below {duration(point.short_seconds)}")
    return "".join(f", {part}" for part in parts)


def named(point: FrontierPoint) -> str:
    """A point's policy with its thresholds."""
    return f"{point.policy}{limits(point)}"


def between(say: Callable[[float], str], ends: tuple[float, float], joint: str = " to ") -> str:
    """An interval in words."""
    return joint.join(say(end) for end in ends)


def block_name(seconds: float) -> str:
    """Say what is drawn anew: ``week`` or ``day``."""
    return "week" if seconds > _DAY else "day"


def money(amount: float, asked: Circumstances) -> str:
    """An amount with its currency."""
    return f"{number(amount)} {asked.currency}"


_YEAR: Final = 365.0 * 86400.0
_FEW_MACHINES: Final = 5.0
_SOME: Final = 0.01
_WHO_WAITS: Final = {
    "all-jobs-wait": "let every job wait",
    "no-jobs-wait": "let no job wait",
    "all-jobs-wait-threshold": "let every job wait, up to the limit",
    "short-waits-wait": "let jobs wait whose wait stays within the limit",
    "long-jobs-wait": "let only long jobs wait",
    "compound": "let only long jobs wait, and only if that stays within the limit",
    "weighing": "let jobs wait that are expected to save more by it than their delay is worth",
    "speculative": "try jobs on a rented machine first, and let those wait that turn out long",
}


def sentences(answer: OwningAnswer, asked: Circumstances) -> list[str]:
    """The advice, what it rests on and how sure it is, in words."""
    said = [_advice(answer, asked)]
    if answer.today is not None:
        said.append(_today(answer, answer.today, asked))
        said += _as_quick(answer, answer.today)
    said.append(_worth(answer, asked))
    if answer.unaided is not None and answer.truths:
        other = answer.unaided
        said.append(
            f"That policy must know {' and '.join(answer.truths)} ({asked.known}). Of those that "
            f"need not, {named(other)} with {count(other.machines, 'machine')} is best: "
            f"{percent(other.price)}, mean wait {duration(other.mean_wait_seconds)}."
        )
    said += _lowest_prices(answer)
    said += _certain(answer)
    said += _cautions(answer, asked)
    return said


def _advice(answer: OwningAnswer, asked: Circumstances) -> str:
    best = answer.advised
    interval = "" if best.prices is None else f" (95 %: {between(percent, best.prices)})"
    waits = "" if best.waits is None else f" (95 %: {between(duration, best.waits)})"
    yearly = best.cost * _YEAR / answer.period_seconds
    period = duration(answer.period_seconds)
    is_year = abs(answer.period_seconds / _YEAR - 1.0) < _SOME
    per_year = "" if is_year else f", {money(yearly, asked)} a year at that rate"
    if not best.machines:
        return (
            "Own none, and rent a machine for every job at once: that costs "
            f"{money(best.cost, asked)} for {period}{per_year}, and whatever else was tried costs "
            "more."
        )
    return (
        f"Own {count(best.machines, 'machine')} {asked.machine_name} and "
        f"{_WHO_WAITS[best.policy]} ({best.policy}{limits(best)}): {percent(best.price)} of what "
        f"renting for every job costs{interval}, that is {money(best.cost, asked)} for "
        f"{period}{per_year}; mean wait {duration(best.mean_wait_seconds)}{waits}."
    )


def _today(answer: OwningAnswer, today: FrontierPoint, asked: Circumstances) -> str:
    best = answer.advised
    words = (
        f"Today, with {count(today.machines, 'machine')} and {today.policy}{limits(today)}, it is "
        f"{percent(today.price)} and {duration(today.mean_wait_seconds)}"
    )
    if not today.is_lasting:
        return f"{words}; that cannot last: the queue only grows."
    saved = today.cost - best.cost
    if today == best:
        return f"{words}: stay there."
    verb = "saves" if saved >= 0.0 else "costs another"
    sure = ""
    if answer.certainty is not None and answer.certainty.saving is not None:
        low, high = (each * best.on_demand_cost for each in answer.certainty.saving)
        ends = (low, high) if saved >= 0.0 else (-high, -low)
        sure = f" (95 %: {number(ends[0])} to {number(ends[1])})"
    wait = today.mean_wait_seconds - best.mean_wait_seconds
    change = "less" if wait >= 0.0 else "more"
    return (
        f"{words}: the advice {verb} {money(abs(saved), asked)}{sure}, with "
        f"{duration(abs(wait))} {change} waiting."
    )


def _as_quick(answer: OwningAnswer, today: FrontierPoint) -> list[str]:
    """The cheapest that waits no longer than today, if it is not the advice."""
    quick = [p for p in answer.points if p.mean_wait_seconds <= today.mean_wait_seconds]
    if not quick:
        return []
    cheapest = min(quick, key=lambda point: (point.cost, point.mean_wait_seconds))
    if cheapest in (answer.advised, today):
        return []
    return [
        f"Cheapest without waiting longer than today: {named(cheapest)} with "
        f"{count(cheapest.machines, 'machine')}, {percent(cheapest.price)} and "
        f"{duration(cheapest.mean_wait_seconds)}."
    ]


def _worth(answer: OwningAnswer, asked: Circumstances) -> str:
    worth = answer.worth
    value = f"{money(worth.hour_value, asked)}"
    if worth.stated:
        said = f"An hour of a job's waiting counts as {value}, as stated"
    else:
        said = (
            f"What an hour of a job's waiting is worth was not said: it counts as {value}, "
            f"{percent(USUAL_SHARE)} of what the job's machine costs"
        )
    if math.isfinite(worth.longest_wait_seconds):
        said += f", and the mean wait is to be {duration(worth.longest_wait_seconds)} at most"
    found = {each.point: each for each in best_by_value(answer.points)}
    own = found.get(answer.advised)
    if own is None:
        return f"{said}."
    return f"{said}. The advice holds for {value_range(own, asked.currency)}."


def _certain(answer: OwningAnswer) -> list[str]:
    certainty = answer.certainty
    if certainty is None:
        return []
    unit = block_name(certainty.block_seconds)
    return [
        f"With {unit}s drawn anew from the log's {certainty.blocks}, the advice stays the best of "
        f"all that was tried {percent(certainty.best_share)} of the time, and within 1 % of the "
        f"best {percent(certainty.near_share)}."
    ]


def _lowest_prices(answer: OwningAnswer) -> list[str]:
    """Say how many machines each policy costs least with (by formula)."""
    if not answer.optima:
        return []
    each = [
        f"{named(point)} {point.machines:,} ({percent(point.price)}, mean wait "
        f"{duration(point.mean_wait_seconds)})"
        for point in answer.optima
    ]
    return [f"Waiting not counted, the price is lowest with these machines: {'; '.join(each)}."]


def _cautions(answer: OwningAnswer, asked: Circumstances) -> list[str]:
    said = []
    same = [point.machines for point in answer.points_under(answer.advised.policy)]
    if answer.advised.machines == max(same) and len(set(same)) > 1:
        said.append("That is the largest number of machines that was tried: try more.")
    if asked.too_wide >= _SOME:
        said.append(
            f"{percent(asked.too_wide)} of the work asks for more than one machine has, and is "
            "always rented: larger machines may change the answer."
        )
    elif answer.mean_machines < _FEW_MACHINES and asked.machine.cores > 1:
        said.append(
            f"The work would keep only {number(answer.mean_machines)} such machines busy, so that "
            "one more is a large step: smaller ones may do better."
        )
    if answer.growing:
        said.append(
            f"{count(answer.growing, 'setting')} left out: more comes than the machines can do, so "
            "that the queue only grows."
        )
    if not asked.by_formula and answer.certainty is None:
        said.append(
            f"The log is of {duration(answer.period_seconds)}, too short to say how sure this is: "
            "jobs on five days are the least."
        )
    return said
