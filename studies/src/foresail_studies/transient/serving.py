"""A service while its machines are taken, with a daemon that hears of it and without.

Without a daemon the requests in flight on a machine are lost with it, and the load balancer sends
more until its next health check. A daemon that hears of the revocation before has the machine
cordoned and out of the balancer by then; only what arrives between these two steps is lost
(TR-Kubernetes, spec 2.6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.distribution import Floats
from foresail.model.errors import InputError, require_at_least, require_positive, require_share
from foresail_studies.transient.kernels.service import (
    AT_HANDOVER,
    COUNTS,
    IN_FLIGHT,
    REQUESTS,
    SERVED,
    WITHOUT_MACHINE,
    Chance,
    Outages,
    serve_clients,
)


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


def taken_at_random(
    machines: int,
    *,
    revocations_per_minute: float,
    absent_seconds: float,
    seconds: float,
    random: np.random.Generator,
) -> TransientMachines:
    """Equal machines of capacity 1, one of which is taken at times that know of no other.

    There are ``revocations_per_minute`` of all machines together, in a stretch of so many seconds.
    Each machine is gone for ``absent_seconds``, and is not taken while it is.

    Raises ``InputError`` if a number is not as above.
    """
    if machines < 1:
        raise InputError("no number of machines", value=machines, expected="1 or more")
    for field, value in (
        ("revocations_per_minute", revocations_per_minute),
        ("absent_seconds", absent_seconds),
        ("seconds", seconds),
    ):
        if not 0.0 <= value < math.inf:
            raise InputError("cannot be", field=field, value=value, expected="0 or more")
    many = int(random.poisson(revocations_per_minute * seconds / 60.0))
    times = np.sort(random.uniform(0.0, seconds, many))
    taken = random.integers(0, machines, many)
    back = np.zeros(machines)
    kept = np.zeros(many, dtype=np.bool_)
    for i in range(many):
        if times[i] >= back[taken[i]]:
            kept[i] = True
            back[taken[i]] = times[i] + absent_seconds
    begin = times[kept]
    return TransientMachines(
        np.ones(machines),
        taken[kept].astype(np.int64),
        begin,
        np.minimum(begin + absent_seconds, seconds),
        seconds,
    )


_DRAWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients and the replicas that answer them; seconds.

    Raises ``InputError`` if a number is out of its range.
    """

    clients: int = 20
    """Each sends as soon as it was answered."""
    workers: int = 4
    """Requests that one machine answers at once."""
    hit_seconds: float = 0.012
    miss_seconds: float = 0.040
    """Mean time to answer from memory and from disk, exponentially distributed."""
    in_memory: float = 1.0
    """Share of requests that a machine answers from memory once it has run for long."""
    warming_seconds: float = 20.0
    """Time constant with which a new machine comes to that."""
    retry_seconds: float = 0.001
    """Until a client sends again after a failure."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "clients", "workers")
        require_share(self, "in_memory")
        require_positive(self, "hit_seconds", "miss_seconds", "warming_seconds", "retry_seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Quickness:
    """Latencies that the clients saw."""

    served: Served
    """Requests, and those that failed."""
    latency_seconds: NDArray[np.float64]
    """Of every request that was answered, in order of sending."""
    seconds: float
    """How long it lasted."""

    @property
    def throughput(self) -> float:
        """Requests that were answered, per second."""
        return self.latency_seconds.size / self.seconds


def serve_waiting_clients(
    machines: TransientMachines,
    clients: Clients,
    protection: Protection,
    random: np.random.Generator,
) -> Quickness:
    """Send requests for all of the machines' time."""
    away = absence(machines, protection, random)
    order = np.lexsort((away.gone, machines.machine))
    first = np.searchsorted(machines.machine[order], np.arange(machines.capacities.size + 1))
    fastest = min(clients.hit_seconds, clients.miss_seconds)
    # Each client is answered one by one; of so many exponential times the sum is hardly less.
    most = math.ceil(2.0 * clients.clients * (machines.seconds / fastest + 1_000.0))
    latency = np.empty(most)
    counts = np.zeros(COUNTS, np.int64)
    serve_clients(
        machines.seconds,
        clients.clients,
        clients.workers,
        clients.hit_seconds,
        clients.miss_seconds,
        clients.in_memory,
        clients.warming_seconds,
        clients.retry_seconds,
        Outages(first, away.closed[order], away.left[order], away.gone[order], away.back[order]),
        Chance(random.random(_DRAWS), random.random(_DRAWS), random.exponential(1.0, _DRAWS)),
        latency,
        counts,
    )
    return Quickness(
        Served(
            int(counts[REQUESTS]),
            int(counts[IN_FLIGHT]),
            int(counts[AT_HANDOVER]),
            int(counts[WITHOUT_MACHINE]),
        ),
        latency[: counts[SERVED]],
        machines.seconds,
    )
