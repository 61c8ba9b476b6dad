"""Requests that the machines left cannot take: they queue, and are turned away after a while.

A fluid, exact for a stream without chance: between two changes of capacity the queue grows or
shrinks by the difference between what comes and what can be done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.transient.batch import Surplus
from foresail.model.errors import InputError

_SLACK: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Overload:
    """What becomes of requests when there is too little capacity."""

    requests: float
    """All that came."""
    queued: float
    turned_away: float
    """Those that had to queue and were answered; and those that found the queue too long."""
    mean_wait_seconds: float
    """Of those that queued, whatever came of them."""
    overloaded_seconds: float
    """Time in which more came than could be done."""


def overload(
    capacity: Surplus,
    requests_per_second: float,
    requests_per_unit_second: float,
    longest_wait_seconds: float,
) -> Overload:
    """Run a steady stream of requests through a capacity that comes and goes.

    ``capacity`` is what there is, each unit of which can do ``requests_per_unit_second``. Who would
    queue for longer than ``longest_wait_seconds`` is turned away.

    Raises
    ------
    InputError
        If a number is below 0, or a unit does nothing.
    """
    for field, value, holds in (
        ("requests_per_second", requests_per_second, requests_per_second >= 0.0),
        ("requests_per_unit_second", requests_per_unit_second, requests_per_unit_second > 0.0),
        ("longest_wait_seconds", longest_wait_seconds, longest_wait_seconds >= 0.0),
    ):
        if not holds or not math.isfinite(value):
            raise InputError("cannot be", field=field, value=value, expected="0 or more")
    queue = queued = away = area = busy = 0.0
    rates = capacity.capacity * requests_per_unit_second
    lengths = np.diff(np.append(capacity.times, capacity.end))
    for rate, length in zip(rates.tolist(), lengths.tolist(), strict=True):
        most = rate * longest_wait_seconds
        away += max(queue - most, 0.0)
        queue = min(queue, most)
        excess = requests_per_second - rate
        if excess > _SLACK * requests_per_second:
            filling = min((most - queue) / excess, length)
            area += filling * (queue + 0.5 * filling * excess)
            queue += filling * excess
            full = length - filling
            area += full * queue
            away += full * excess
            # A job that joins the queue waits; while it is full, as many join as are done.
            queued += filling * requests_per_second + full * rate
            busy += length
        elif queue > 0.0:
            emptying = min(queue / -excess, length) if excess < 0.0 else length
            area += emptying * (queue + 0.5 * emptying * excess)
            queue = max(queue + emptying * excess, 0.0)
            queued += emptying * requests_per_second
    total = requests_per_second * (capacity.end - float(capacity.times[0]))
    return Overload(
        requests=total,
        queued=max(min(queued, total - away), 0.0),
        turned_away=away,
        mean_wait_seconds=area / queued if queued else 0.0,
        overloaded_seconds=busy,
    )
