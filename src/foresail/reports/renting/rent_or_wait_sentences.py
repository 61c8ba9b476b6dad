"""The answer on owning and waiting in sentences: the advice, what it rests on, how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

from foresail.cloud.waiting.jobs import FixedMachines
from foresail.cloud.waiting.offers import USUAL_SHARE
from foresail.cloud.waiting.owning import BestFor, FrontierPoint, OwningAnswer, best_by_value
from foresail.model.words import count, duration, number, percent

_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Circumstances of a question, beside the answer."""

    log: str
    """Its name, or what arrives."""
    machine_name: str
    machine: FixedMachines
    """What is owned."""
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
