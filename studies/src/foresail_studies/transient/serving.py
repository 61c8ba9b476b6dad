"""Uses of a plan over time: requests whose machines are taken, batch tasks, and overload.

Without a daemon the requests in flight on a machine are lost with it, and the load balancer sends
more until its next health check. A daemon that hears of the revocation before has the machine
cordoned and out of the balancer by then; only what arrives between these two steps is lost
(TR-Kubernetes, spec 2.6).
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.histories import JointHistory
from foresail.cloud.transient.estimating import require_markets
from foresail.cloud.transient.plan import CapacityPlan
from foresail.model.arrays import Floats
from foresail.model.errors import InputError, require_at_least


@dataclass(frozen=True)
class TransientMachines:
    """Machines over a stretch of time that begins at 0."""

    capacities: NDArray[np.float64]
    """Shape (machines,): of each."""
    machine: NDArray[np.int64]
    """Shape (outages,): which machine is gone."""
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    """Shape (outages,): from when until when (seconds); those of a machine do not overlap."""
    seconds: float
    """Length of the stretch."""


def machines_of(history: JointHistory, planned: CapacityPlan) -> TransientMachines:
    """The machines of a plan, gone whenever their market was down."""
    require_markets(history, planned)
    edges = np.concatenate(([0.0], np.cumsum(history.seconds)))
    capacities: list[float] = []
    machine: list[int] = []
    begin: list[float] = []
    end: list[float] = []
    for each in planned.rented:
        up = history.up[:, history.names.index(each.type.name)]
        change = np.flatnonzero(np.diff(up, prepend=True, append=True))
        for _ in range(each.count):
            machine += [len(capacities)] * (change.size // 2)
            begin += edges[change[0::2]].tolist()
            end += edges[change[1::2]].tolist()
            capacities.append(each.type.capacity)
    return TransientMachines(
        np.array(capacities),
        np.array(machine, dtype=np.int64),
        np.array(begin),
        np.array(end),
        history.total_seconds,
    )


_FAR: Final = 60.0
"""Mean durations that no request takes."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests to a service, shared evenly among its machines."""

    requests_per_second: float = 1_500.0
    """Of all machines together; they arrive independently of each other."""
    mean_request_seconds: float = 0.013
    """How long one takes, exponentially distributed."""

    def __post_init__(self) -> None:
        require_at_least(self, 0, "requests_per_second", "mean_request_seconds")


@dataclass(frozen=True, slots=True)
class Unprotected:
    """No machine hears the warning."""

    detection_seconds: float = 1.0
    """Until the load balancer notices that a machine is gone."""

    def __post_init__(self) -> None:
        require_at_least(self, 0, "detection_seconds")


@dataclass(frozen=True, slots=True)
class Cordoned:
    """A daemon hears the warning and takes the machine out of service before it is gone."""

    warning_seconds: float = 120.0
    """How long before."""
    poll_seconds: float = 5.0
    """Between two looks for a warning; it is heard within this time."""
    handover_seconds: float = 0.1
    """Between the scheduler's step and the load balancer's: what arrives in between fails."""
    detection_seconds: float = 1.0
    """As for ``Unprotected``, for a warning that comes too late."""
    replacement_seconds: float | None = None
    """Until another takes its place, from when it is out of service; None: nothing does before it
    is back."""

    def __post_init__(self) -> None:
        require_at_least(self, 0, "warning_seconds", "poll_seconds", "handover_seconds")
        require_at_least(self, 0, "detection_seconds", "replacement_seconds")


Protection = Unprotected | Cordoned


@dataclass(frozen=True, slots=True)
class Served:
    """Requests, and those that failed: in flight, sent to a machine on its way out, or to none."""

    requests: int
    failed_in_flight: int
    failed_at_handover: int
    failed_without_machine: int

    @property
    def failed(self) -> int:
        """All that failed."""
        return self.failed_in_flight + self.failed_at_handover + self.failed_without_machine


@dataclass(frozen=True)
class Absence:
    """Times at which each outage makes its machine unfit: shape (outages,), seconds.

    From ``closed`` on it does no more work that is begun; from ``left`` on the balancer sends none;
    at ``gone`` what is in flight is lost; from ``back`` on all is well.
    """

    closed: Floats
    left: Floats
    gone: Floats
    back: Floats


def absence(
    machines: TransientMachines, protection: Protection, random: np.random.Generator
) -> Absence:
    """Times of outages under a protection; a daemon hears a warning at a random time."""
    gone, back = machines.begin, machines.end
    noticed = np.minimum(gone + protection.detection_seconds, back)
    if isinstance(protection, Unprotected):
        return Absence(gone, noticed, gone, back)
    warned = np.maximum(gone - protection.warning_seconds, _last_back(machines))
    heard = warned + random.uniform(0.0, 1.0, gone.size) * protection.poll_seconds
    closed = np.minimum(heard, gone)
    left = np.where(heard <= gone, closed + protection.handover_seconds, noticed)
    left = np.minimum(left, back)
    if protection.replacement_seconds is not None:
        back = np.minimum(back, left + protection.replacement_seconds)
    return Absence(closed, left, gone, back)


def _last_back(machines: TransientMachines) -> Floats:
    """Shape (outages,): when the machine came back from the outage before; 0 before the first."""
    order = np.lexsort((machines.begin, machines.machine))
    same = np.diff(machines.machine[order], prepend=-1) == 0
    last = np.where(same, np.roll(machines.end[order], 1), 0.0)
    found = np.empty_like(last)
    found[order] = last
    return found


def serve(
    machines: TransientMachines,
    traffic: Traffic,
    protection: Protection,
    random: np.random.Generator,
) -> Served:
    """Send requests to the machines for all of their time.

    Between two changes of who is in the balancer, arrivals are spread over its machines; each takes
    its time and fails if its machine is closed on arrival, or gone before it ends. Requests far
    from any outage are only counted.
    """
    away = absence(machines, protection, random)
    far = 2.0 * _FAR * traffic.mean_request_seconds
    no_machine = np.full(away.closed.size, -1)
    times = np.concatenate((away.left, away.back, away.closed - far))
    change = np.repeat([-1, 1, 0], away.left.size)
    which = np.concatenate((machines.machine, machines.machine, no_machine))
    order = np.argsort(times, kind="stable")
    inside = np.ones(machines.capacities.size, dtype=np.int64)
    counts = np.zeros(4, dtype=np.int64)
    now = 0.0
    for place in order:
        until = min(float(times[place]), machines.seconds)
        if until > now:
            members = np.flatnonzero(inside > 0)
            counts += _sent(members, machines, away, now, until, traffic, random)
            now = until
        inside[which[place]] += change[place]
    members = np.flatnonzero(inside > 0)
    counts += _sent(members, machines, away, now, machines.seconds, traffic, random)
    return Served(*counts.tolist())


def _sent(
    members: NDArray[np.int64],
    machines: TransientMachines,
    away: Absence,
    begin: float,
    end: float,
    traffic: Traffic,
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """Requests, and those that failed by reason, between two changes of the balancer."""
    many = int(random.poisson(traffic.requests_per_second * (end - begin)))
    if not members.size:
        return np.array([many, 0, 0, many])
    near = (away.back > begin) & (away.closed < end + _FAR * traffic.mean_request_seconds)
    near &= np.isin(machines.machine, members)
    if not near.any():
        return np.array([many, 0, 0, 0])
    arrived = random.uniform(begin, end, many)
    ended = arrived + random.exponential(traffic.mean_request_seconds, many)
    chosen = members[random.integers(0, members.size, many)]
    refused = np.zeros(many, dtype=np.bool_)
    lost = np.zeros(many, dtype=np.bool_)
    for outage in np.flatnonzero(near):
        mine = chosen == machines.machine[outage]
        late = arrived >= away.closed[outage]
        refused |= mine & late & (arrived < away.left[outage])
        lost |= mine & ~late & (ended > away.gone[outage])
    return np.array([many, int((lost & ~refused).sum()), int(refused.sum()), 0])


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
    """Outcome of batch tasks, and of the capacity offered to them (capacity × seconds).

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
    """Capacity that a service leaves of machines that are neither gone nor cordoned.

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
    """Count the tasks of a size that keep a surplus busy throughout.

    Each takes ``units`` of capacity for some ``seconds``, both above 0.
    """
    at_once = math.ceil(float(offered.capacity.max()) / units)
    return math.ceil(offered.capacity_seconds / (units * seconds)) + at_once


def run_batch(offered: Surplus, units: Floats, seconds: Floats) -> BatchDone:
    """Run tasks on a surplus, in order; the youngest are evicted first, and begin anew.

    ``units`` and ``seconds`` are the capacity and the time that each takes, above 0, shape
    (tasks,); all wait from the beginning.

    Raises ``InputError`` if a task takes nothing.
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
    """Outcome of requests when there is too little capacity."""

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

    Raises ``InputError`` if a number is below 0, or a unit does nothing.
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
