"""Requests to a service whose machines are taken: which of them fail, with a warning and without.

Without a daemon the requests in flight on a machine are lost with it, and the load balancer sends
more until its next health check. A daemon that hears of the revocation before has the machine
cordoned and out of the balancer by then; only what arrives between these two steps is lost
(TR-Kubernetes, spec 2.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.estimating import require_markets
from foresail.cloud.transient.joint import JointHistory
from foresail.cloud.transient.plan import CapacityPlan
from foresail.model.arrays import Floats
from foresail.model.errors import require_at_least


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
    """The machines of a plan, gone whenever their market was down.

    Raises
    ------
    InputError
        If the history does not have a market of the plan.
    """
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
    """When each outage makes its machine unfit: shape (outages,), seconds.

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
    """What a protection makes of the outages; a daemon hears a warning at a random time."""
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
