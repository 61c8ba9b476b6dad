"""The page about owning and waiting: how many machines, which jobs wait, at what price."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.waiting.frontier import BestFor, Point, best_by_value, pareto
from foresail.cloud.waiting.jobs import FixedMachines
from foresail.cloud.waiting.owning import USUAL_SHARE, OwningAnswer
from foresail.model.words import count, duration, number, percent
from foresail.reports.cloud_page import CloudPage, NumbersTable
from foresail.reports.curve_figure import Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.json_values import finite
from foresail.reports.plot_axes import scale_of
from foresail.reports.style import PolicyStyle, named_styles

_DAY: Final = 86400.0
_YEAR: Final = 365.0 * _DAY
_ROOM: Final = 4.0
"""Times the longest wait that its axis reaches: for what is written beside the last point."""
_FEW_MACHINES: Final = 5.0
_SOME: Final = 0.01
_TODAY: Final = PolicyStyle("today", "today", "today", "@ink", "solid", "star")
_WHO_WAITS: Final = {
    "ajw": "let every job wait",
    "njw": "let no job wait",
    "ajw-t": "let every job wait, up to the limit",
    "sww": "let jobs wait whose wait stays within the limit",
    "ljw": "let only long jobs wait",
    "compound": "let only long jobs wait, and only if that stays within the limit",
    "weighing": "let jobs wait that are expected to save more by it than their delay is worth",
    "speculative": "try jobs on a rented machine first, and let those wait that turn out long",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was asked of, beside the answer.

    Parameters
    ----------
    log
        Its name, or what arrives.
    machine_name, machine
        What is owned.
    currency, catalogue, valid_on
        Of the prices: their currency, where they come from and of which day.
    known
        What policies were told of runtimes and waits, in words.
    queue
        Who of those who wait starts, in words.
    too_wide
        Share of work that no owned machine holds.
    memory_known
        Whether the jobs say what memory they need.
    by_formula
        Whether formulas answered, not a simulation.
    """

    log: str
    machine_name: str
    machine: FixedMachines
    currency: str
    catalogue: str
    valid_on: date
    known: str
    queue: str = ""
    too_wide: float = 0.0
    memory_known: bool = True
    by_formula: bool = False


def rent_or_wait_page(answer: OwningAnswer, asked: Circumstances) -> CloudPage:
    """The page about one answer."""
    machine = asked.machine
    kind = "Poisson arrivals" if asked.by_formula else count(round(answer.jobs), "job")
    return CloudPage(
        title="How many machines to own, and which jobs wait for them?",
        situation=(
            f"{asked.log}: {kind} over {duration(answer.period_seconds)} that would keep "
            f"{number(answer.mean_machines)} machines {asked.machine_name} busy "
            f"({_size(machine)} each, {_money(machine.price_per_hour, asked)} an "
            f"hour owned); prices {asked.catalogue} of {asked.valid_on}."
        ),
        sentences=sentences(answer, asked),
        parts=[
            policies_table(answer, asked),
            _frontier_figure(answer),
            values_table(answer, asked),
            _by_machines(answer, "price-by-machines", "What does each further machine bring?"),
            _by_machines(answer, "wait-by-machines", "How long do jobs wait?"),
        ],
        notes=notes(answer, asked),
    )


def _size(machine: FixedMachines) -> str:
    cores = count(machine.cores, "core")
    return f"{cores} and {count(round(machine.gpus), 'gpu')}" if machine.gpus else cores


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
            f"need not, {_named(other)} with {count(other.machines, 'machine')} is best: "
            f"{percent(other.price)}, mean wait {duration(other.mean_wait_seconds)}."
        )
    said += _lowest_prices(answer)
    said += _certain(answer)
    said += _cautions(answer, asked)
    return said


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
            _range(each, asked.currency),
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
    """All of it for machines to read; what is not finite is None."""
    found = best_by_value(answer.points)
    certainty = None if answer.certainty is None else asdict(answer.certainty)
    content = {
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
    return {name: finite(value) for name, value in content.items()}


def notes(answer: OwningAnswer, asked: Circumstances) -> list[str]:
    """How it was computed."""
    said = [
        "Owned machines are paid all the time. A rented machine is the cheapest type that holds "
        "the job, is paid while it runs, and nobody shares it.",
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
        unit = _block(answer.certainty.block_seconds)
        said.append(
            f"Intervals: {unit}s of the log drawn anew, with replacement, 1,000 times; the same "
            f"draws for all settings. They say what other {unit}s like these would change, not "
            "what another kind of year would."
        )
    if not asked.memory_known:
        said.append("The log does not say what memory jobs need: cores alone decide what fits.")
    return said


def _advice(answer: OwningAnswer, asked: Circumstances) -> str:
    best = answer.advised
    limits = _limits(best)
    interval = "" if best.prices is None else f" (95 %: {_between(percent, best.prices)})"
    waits = "" if best.waits is None else f" (95 %: {_between(duration, best.waits)})"
    yearly = best.cost * _YEAR / answer.period_seconds
    period = duration(answer.period_seconds)
    is_year = abs(answer.period_seconds / _YEAR - 1.0) < _SOME
    per_year = "" if is_year else f", {_money(yearly, asked)} a year at that rate"
    if not best.machines:
        return (
            "Own none, and rent a machine for every job at once: that costs "
            f"{_money(best.cost, asked)} for {period}{per_year}, and whatever else was tried costs "
            "more."
        )
    return (
        f"Own {count(best.machines, 'machine')} {asked.machine_name} and "
        f"{_WHO_WAITS[best.policy]} ({best.policy}{limits}): {percent(best.price)} of what "
        f"renting for every job costs{interval}, that is {_money(best.cost, asked)} for "
        f"{period}{per_year}; mean wait {duration(best.mean_wait_seconds)}{waits}."
    )


def _today(answer: OwningAnswer, today: Point, asked: Circumstances) -> str:
    best = answer.advised
    words = (
        f"Today, with {count(today.machines, 'machine')} and {today.policy}{_limits(today)}, it is "
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
        f"{words}: the advice {verb} {_money(abs(saved), asked)}{sure}, with "
        f"{duration(abs(wait))} {change} waiting."
    )


def _as_quick(answer: OwningAnswer, today: Point) -> list[str]:
    """The cheapest that waits no longer than today, if it is not the advice."""
    quick = [p for p in answer.points if p.mean_wait_seconds <= today.mean_wait_seconds]
    if not quick:
        return []
    cheapest = min(quick, key=lambda point: (point.cost, point.mean_wait_seconds))
    if cheapest in (answer.advised, today):
        return []
    return [
        f"Cheapest without waiting longer than today: {_named(cheapest)} with "
        f"{count(cheapest.machines, 'machine')}, {percent(cheapest.price)} and "
        f"{duration(cheapest.mean_wait_seconds)}."
    ]


def _worth(answer: OwningAnswer, asked: Circumstances) -> str:
    worth = answer.worth
    value = f"{_money(worth.hour_value, asked)}"
    if worth.users:
        said = (
            f"An hour of a job's waiting counts as its user says ({count(worth.users, 'user')}), "
            f"and as {_money(worth.others_value, asked)} for all others: {value} on average"
        )
    elif worth.stated:
        said = f"An hour of a job's waiting counts as {value}, as stated"
    else:
        said = (
            f"Nobody said what an hour of a job's waiting is worth: it counts as {value}, "
            f"{percent(USUAL_SHARE)} of what the job's machine costs"
        )
    if math.isfinite(worth.longest_wait_seconds):
        said += f", and the mean wait is to be {duration(worth.longest_wait_seconds)} at most"
    found = {each.point: each for each in best_by_value(answer.points)}
    own = found.get(answer.advised)
    if own is None:
        return f"{said}."
    return f"{said}. The advice holds for {_range(own, asked.currency)}."


def _certain(answer: OwningAnswer) -> list[str]:
    certainty = answer.certainty
    if certainty is None:
        return []
    unit = _block(certainty.block_seconds)
    return [
        f"With {unit}s drawn anew from the log's {certainty.blocks}, the advice stays the best of "
        f"all that was tried {percent(certainty.best_share)} of the time, and within 1 % of the "
        f"best {percent(certainty.near_share)}."
    ]


def _lowest_prices(answer: OwningAnswer) -> list[str]:
    """How many machines each policy costs least with (by formula)."""
    if not answer.optima:
        return []
    each = [
        f"{_named(point)} {point.machines:,} ({percent(point.price)}, mean wait "
        f"{duration(point.mean_wait_seconds)})"
        for point in answer.optima
    ]
    return [f"Waiting not counted, the price is lowest with these machines: {'; '.join(each)}."]


def _cautions(answer: OwningAnswer, asked: Circumstances) -> list[str]:
    said = []
    same = [point.machines for point in answer.of(answer.advised.policy)]
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
            f"The log is of {duration(answer.period_seconds)}, too short to say how sure this is."
        )
    return said


def _frontier_figure(answer: OwningAnswer) -> Figure:
    names = list(dict.fromkeys(point.policy for point in answer.points))
    curves = []
    for style, name in zip(named_styles(names), names, strict=True):
        # Owning nothing is the level; a line to it would cross what nothing was tried for.
        points = pareto([each for each in answer.of(name) if each.machines or name == "njw"])
        marked = [at for at, point in enumerate(points) if point is answer.advised]
        words = [f"advised: {answer.advised.machines:,}"] * len(marked)
        curves.append(_curve(style, points, [p.mean_wait_seconds for p in points], marked, words))
    if answer.today is not None:
        today = answer.today
        curves.append(_curve(_TODAY, [today], [today.mean_wait_seconds], [0], ["today"]))
    waits = np.concatenate([curve.x for curve in curves])
    across = scale_of("mean wait", "duration", waits, log=True, longest=_ROOM * float(waits.max()))
    up = scale_of("price", "share", np.concatenate([c.y for c in curves]), log=False)
    up.axis["rangemode"] = "normal"
    findings = [_finding(answer, name) for name in names]
    banded = answer.certainty is not None
    return curve_figure(
        "frontier",
        "What does less waiting cost?",
        findings,
        curves,
        across,
        up,
        table=points_table(answer),
        note="A line joins a policy's numbers of machines (and thresholds), without those that are "
        "both dearer and slower than another of its own; waits below a second are drawn there."
        + (" Band: 95 % interval of the price." if banded else ""),
        level=(1.0, "renting for every job"),
    )


def _by_machines(answer: OwningAnswer, name: str, title: str) -> Figure:
    """Price or mean wait against the machines owned, at each policy's best thresholds."""
    of_price = name.startswith("price")
    policies = list(dict.fromkeys(point.policy for point in answer.points))
    curves = []
    findings = []
    for style, policy in zip(named_styles(policies), policies, strict=True):
        best: dict[int, Point] = {}
        for point in answer.of(policy):
            other = best.get(point.machines)
            value = answer.worth.hour_value
            if other is None or point.worth(value) < other.worth(value):
                best[point.machines] = point
        points = [best[machines] for machines in sorted(best)]
        curves.append(_line(style, points, of_price))
        extreme = min(points, key=lambda p: p.price if of_price else -p.mean_wait_seconds)
        value_said = percent(extreme.price) if of_price else duration(extreme.mean_wait_seconds)
        findings.append(
            f"{policy}: {'cheapest' if of_price else 'longest'} with "
            f"{count(extreme.machines, 'machine')}, {value_said}."
        )
    values = np.concatenate([curve.y for curve in curves])
    machines = np.concatenate([curve.x for curve in curves])
    across = scale_of("machines owned", "number", machines, log=False)
    up = (
        scale_of("price", "share", values, log=False)
        if of_price
        else scale_of("mean wait", "duration", values, log=True)
    )
    return curve_figure(
        name,
        title,
        findings,
        curves,
        across,
        up,
        table=points_table(answer),
        note="At each policy's best thresholds for the value of waiting."
        + ("" if answer.certainty is None else " Band: 95 % interval."),
        level=(1.0, "renting for every job") if of_price else None,
    )


def _line(style: PolicyStyle, points: Sequence[Point], of_price: bool) -> Curve:
    machines = np.array([point.machines for point in points], dtype=np.float64)
    values = [point.price if of_price else point.mean_wait_seconds for point in points]
    bands = [point.prices if of_price else point.waits for point in points]
    return Curve(style, machines, np.array(values), (), (), *_band(bands))


def _curve(
    style: PolicyStyle,
    points: Sequence[Point],
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


def _row(before: str, point: Point, hull: dict[Point, BestFor]) -> tuple[str, ...]:
    prices = "" if point.prices is None else f" ({point.prices[0]:.3f}–{point.prices[1]:.3f})"
    waits = "" if point.waits is None else f" ({_between(duration, point.waits, '–')})"
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
        _range(hull[point]) if point in hull else "",
    )


def _range(best: BestFor, currency: str = "") -> str:
    """Values of a waiting hour in words."""
    unit = f" {currency}" if currency else ""
    if math.isinf(best.most):
        return f"{number(best.least)}{unit} or more"
    if best.least == 0.0:
        return f"up to {number(best.most)}{unit}"
    return f"{number(best.least)} to {number(best.most)}{unit}"


def _numbers(point: Point) -> dict[str, Any]:
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


def _limits(point: Point) -> str:
    parts = []
    if point.waiting_seconds is not None:
        parts.append(f"limit {duration(point.waiting_seconds)}")
    if point.short_seconds is not None:
        parts.append(f"short is below {duration(point.short_seconds)}")
    return "".join(f", {part}" for part in parts)


def _named(point: Point) -> str:
    return f"{point.policy}{_limits(point)}"


def _between(say: Callable[[float], str], ends: tuple[float, float], joint: str = " to ") -> str:
    return joint.join(say(end) for end in ends)


def _block(seconds: float) -> str:
    return "week" if seconds > _DAY else "day"


def _money(amount: float, asked: Circumstances) -> str:
    said = number(round(amount)) if amount >= 1000.0 else number(amount)
    return f"{said} {asked.currency}"
