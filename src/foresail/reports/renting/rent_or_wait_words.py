"""How many machines to own: what was asked of, how it was computed, and words for its parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

from foresail.cloud.waiting.jobs import FixedMachines
from foresail.cloud.waiting.owning import BestFor, FrontierPoint, OwningAnswer
from foresail.model.words import count, duration, number

_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was asked of, beside the answer."""

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
    """What policies were told of runtimes and waits, in words."""
    queue: str = ""
    """Which waiting job starts, in words."""
    too_wide: float = 0.0
    """Share of work that no owned machine holds."""
    memory_known: bool = True
    """Whether the jobs say what memory they need."""
    by_formula: bool = False
    """Whether formulas answered, not a simulation."""


def situation(answer: OwningAnswer, asked: Circumstances) -> str:
    """What was asked about."""
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
    """How it was computed."""
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
    """What is drawn anew: ``week`` or ``day``."""
    return "week" if seconds > _DAY else "day"


def money(amount: float, asked: Circumstances) -> str:
    """An amount with its currency."""
    return f"{number(amount)} {asked.currency}"
