"""Work beside a plan: batch tasks on its surplus, and requests that it cannot take."""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.transient.serving import Absence, TransientMachines
from foresail.model.arrays import Floats
from foresail.model.errors import InputError


@dataclass(frozen=True)
class Surplus:
    """Capacity beyond what the service needs, as steps."""

    times: Floats
    """Shape (steps,): when each begins (seconds), ascending."""
    capacity: Floats
    """Shape (steps,): how much there is, 0 or more."""
    end: float
    """When the last step ends."""

    @property
    def capacity_seconds(self) -> float:
        """All that there is to use."""
        return float(self.capacity @ np.diff(np.append(self.times, self.end)))


@dataclass(frozen=True, slots=True)
class BatchDone:
    """What became of batch tasks, and of the capacity offered to them (capacity × seconds).

    ``finished``, ``lost`` (to evictions), ``unfinished`` (still running at the end) and ``idle``
    make up all that was offered.
    """

    tasks: int
    evictions: int
    finished: float
    lost: float
    unfinished: float
    idle: float


def surplus(machines: TransientMachines, away: Absence, needed: float) -> Surplus:
    """What a service leaves of the machines that are neither gone nor cordoned.

    Pods move freely, so that only the total counts.
    """
    own = machines.capacities[machines.machine]
    times = np.concatenate(([0.0], away.closed, away.back))
    change = np.concatenate(([float(machines.capacities.sum())], -own, own))
    order = np.argsort(times, kind="stable")
    total = np.cumsum(change[order])
    at, last = np.unique(times[order][::-1], return_index=True)
    level = np.maximum(total[::-1][last] - needed, 0.0)
    kept = at < machines.seconds
    return Surplus(at[kept], level[kept], machines.seconds)


def tasks_to_fill(offered: Surplus, units: float, seconds: float) -> int:
    """How many tasks of a size keep a surplus busy throughout.

    Each takes ``units`` of capacity for some ``seconds``, both above 0.
    """
    at_once = math.ceil(float(offered.capacity.max()) / units)
    return math.ceil(offered.capacity_seconds / (units * seconds)) + at_once


def run_batch(offered: Surplus, units: Floats, seconds: Floats) -> BatchDone:
    """Run tasks on a surplus, in order; the youngest are evicted first, and begin anew.

    ``units`` and ``seconds`` are the capacity and the time that each takes, above 0, shape
    (tasks,); all wait from the beginning.

    Raises
    ------
    InputError
        If a task takes nothing.
    """
    if units.shape != seconds.shape or np.any(units <= 0.0) or np.any(seconds <= 0.0):
        raise InputError("a task takes nothing", expected="capacity and seconds above 0")
    pool = _Pool(units, seconds)
    for step, at in enumerate(offered.times.tolist()):
        end = offered.end if step + 1 == offered.times.size else float(offered.times[step + 1])
        pool.resize(float(offered.capacity[step]), at)
        pool.run(at, end)
    return pool.done(offered)


class _Pool:
    def __init__(self, units: Floats, seconds: Floats) -> None:
        self.units, self.seconds = units.tolist(), seconds.tolist()
        self.queue = deque(range(len(self.units)))
        self.started: dict[int, float] = {}
        self.ends: list[tuple[float, int]] = []
        self.capacity = self.used = 0.0
        self.tasks = self.evictions = 0
        self.finished = self.lost = 0.0

    def resize(self, capacity: float, now: float) -> None:
        self.capacity = capacity
        while self.started and self.used > capacity * (1.0 + 1e-12):
            youngest, start = self.started.popitem()
            self.used -= self.units[youngest]
            self.lost += self.units[youngest] * (now - start)
            self.evictions += 1
            self.queue.appendleft(youngest)

    def run(self, now: float, end: float) -> None:
        """Start what fits, and whatever fits whenever something ends."""
        self.start(now)
        while self.ends and self.ends[0][0] <= end:
            at, task = heapq.heappop(self.ends)
            start = self.started.get(task)
            if start is None or start + self.seconds[task] != at:
                continue  # it was evicted since
            del self.started[task]
            self.used -= self.units[task]
            self.finished += self.units[task] * self.seconds[task]
            self.tasks += 1
            self.start(at)

    def start(self, now: float) -> None:
        while self.queue and self.used + self.units[self.queue[0]] <= self.capacity:
            task = self.queue.popleft()
            self.started[task] = now
            self.used += self.units[task]
            heapq.heappush(self.ends, (now + self.seconds[task], task))

    def done(self, offered: Surplus) -> BatchDone:
        unfinished = sum(
            self.units[task] * (offered.end - start) for task, start in self.started.items()
        )
        idle = offered.capacity_seconds - self.finished - self.lost - unfinished
        return BatchDone(self.tasks, self.evictions, self.finished, self.lost, unfinished, idle)


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
