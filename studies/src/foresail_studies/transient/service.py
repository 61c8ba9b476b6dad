"""Study ``transient-service``: how a service fares while its machines are taken.

Without a daemon the requests in flight on a machine are lost with it, and the load balancer sends
more until its next health check. A daemon that hears of the revocation before has the machine
cordoned and out of the balancer by then; only what arrives between these two steps is lost
(TR-Kubernetes, spec 2.6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import require_at_least, require_positive, require_share
from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters
from foresail_studies.transient.kernels.service import (
    COUNTS,
    REQUESTS,
    SERVED,
    Chance,
    serve_clients,
)

_DETECTION_SECONDS: Final = 1.0
"""Until the load balancer notices that a machine is gone."""
_WARNING_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 5.0
"""How long before a machine is taken a warning comes, and between two looks for one."""
_HANDOVER_SECONDS: Final = 0.1
"""Between the scheduler's step and the load balancer's: what arrives in between fails."""
_DRAWS: Final = 1 << 20


def taken_at_random(
    machines: int,
    revocations_per_minute: float,
    absent_seconds: float,
    seconds: float,
    random: np.random.Generator,
) -> Floats:
    """Outages in order of time: machine, begin and end (s), shape (outages, 3).

    There are so many revocations of all machines together, at times that know of no other. Each
    machine is gone for ``absent_seconds``, and is not taken while it is.
    """
    many = int(random.poisson(revocations_per_minute * seconds / 60.0))
    times = np.sort(random.uniform(0.0, seconds, many))
    taken = random.integers(0, machines, many)
    back = np.zeros(machines)
    rows = []
    for time, machine in zip(times.tolist(), taken.tolist(), strict=True):
        if time >= back[machine]:
            back[machine] = time + absent_seconds
            rows.append((machine, time, min(time + absent_seconds, seconds)))
    return np.array(rows, np.float64).reshape(-1, 3)


def absences(
    outages: Floats, replacement_seconds: float | None, random: np.random.Generator
) -> Floats:
    """Times at which each outage makes its machine unfit: shape (outages, 4), seconds.

    From the first on it does no more work that is begun; from the second on the balancer sends
    none; at the third what is in flight is lost; from the last on all is well. A daemon hears a
    warning at a random time, and another machine takes the place of the one that is out of service
    after ``replacement_seconds``; None: there is no daemon.
    """
    machine, gone, back = outages.T
    noticed = np.minimum(gone + _DETECTION_SECONDS, back)
    if replacement_seconds is None:
        return np.column_stack([gone, noticed, gone, back])
    # A machine cannot be warned of before it came back from the outage before.
    order = np.lexsort((gone, machine))
    same = np.diff(machine[order], prepend=-1.0) == 0.0
    there = np.empty_like(back)
    there[order] = np.where(same, np.roll(back[order], 1), 0.0)
    heard = np.maximum(gone - _WARNING_SECONDS, there)
    heard += random.uniform(0.0, 1.0, gone.size) * _POLL_SECONDS
    closed = np.minimum(heard, gone)
    left = np.where(heard <= gone, closed + _HANDOVER_SECONDS, noticed)
    left = np.minimum(left, back)
    return np.column_stack([closed, left, gone, np.minimum(back, left + replacement_seconds)])


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


def served(
    seconds: float,
    clients: Clients,
    first: Integers,
    absent: Floats,
    chance: Chance,
    most: int,
) -> tuple[Floats, NDArray[np.int64]]:
    """Latencies of requests that were answered, in order of sending, at most so many; and counts.

    ``absent`` are absences in order of machine and time, of which those of each machine begin at
    ``first``, which has one more.
    """
    machines = np.zeros((first.size - 1, clients.workers + 1))
    machines[:, clients.workers] = -np.inf
    latency, counts = np.empty(most), np.zeros(COUNTS, np.int64)
    serve_clients(
        np.array(
            [
                seconds,
                clients.hit_seconds,
                clients.miss_seconds,
                clients.in_memory,
                clients.warming_seconds,
                clients.retry_seconds,
            ]
        ),
        np.stack((first[:-1], first[1:], np.zeros(first.size - 1, np.int64)), axis=1),
        np.ascontiguousarray(absent),
        chance,
        np.zeros(clients.clients),
        machines,
        latency,
        counts,
    )
    return latency[: counts[SERVED]], counts


def serve_all(
    machines: int,
    outages: Floats,
    seconds: float,
    clients: Clients,
    replacement_seconds: float | None,
    random: np.random.Generator,
) -> tuple[Floats, int]:
    """Latencies of the requests that clients send for so long, and how many requests failed."""
    away = absences(outages, replacement_seconds, random)
    order = np.lexsort((outages[:, 1], outages[:, 0]))
    first = np.searchsorted(outages[order, 0], np.arange(machines + 1))
    fastest = min(clients.hit_seconds, clients.miss_seconds)
    # Each client is answered one by one; of so many exponential times the sum is hardly less.
    most = math.ceil(2.0 * clients.clients * (seconds / fastest + 1_000.0))
    chance = Chance(random.random(_DRAWS), random.random(_DRAWS), random.exponential(1.0, _DRAWS))
    latency, counts = served(seconds, clients, first, away[order], chance, most)
    return latency, int(counts[REQUESTS] - counts[SERVED])


_MEASURES: Final = (
    Measure("throughput", "requests answered a second"),
    Measure("throughput_kept", "throughput, of that without revocations", "share"),
    Measure("latency_seconds", "mean latency", "duration"),
    Measure("p95_latency_seconds", "95 % of latencies below", "duration"),
    Measure("failed", "failed requests"),
)

_WITH: Final = "with the daemon"
_WITHOUT: Final = "without"
_IN_MEMORY: Final = {"memory": 1.0, "partly": 0.6, "disk": 0.2}
"""Share of the working set, by the group's short name."""
_RATES: Final = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True, slots=True)
class Minutes:
    """Clients that send for some minutes, while replicas are taken at random."""

    system: str
    in_memory: float
    revocations_per_minute: float
    replicas: int
    clients: int
    seconds: float
    absent_seconds: float
    seed: int

    def measure(self) -> Mapping[str, float]:
        """Throughput, latency and failures."""
        latency, failed = self._run(self.revocations_per_minute)
        calm, _ = self._run(0.0)
        return {
            "throughput": latency.size / self.seconds,
            "throughput_kept": latency.size / calm.size,
            "latency_seconds": float(latency.mean()),
            "p95_latency_seconds": float(np.quantile(latency, 0.95)),
            "failed": float(failed),
        }

    def _run(self, rate: float) -> tuple[Floats, int]:
        drawing = np.random.default_rng([self.seed, 0])
        outages = taken_at_random(self.replicas, rate, self.absent_seconds, self.seconds, drawing)
        return serve_all(
            self.replicas,
            outages,
            self.seconds,
            Clients(clients=self.clients, in_memory=self.in_memory),
            None if self.system == _WITHOUT else self.absent_seconds,
            np.random.default_rng([self.seed, 1]),
        )


@dataclass(frozen=True, slots=True)
class ServiceParameters(StudyParameters, quick="seeds=5", minutes=(0.5, 2)):
    """Parameters of ``transient-service``."""

    seeds: int = 20
    """How often revocations and requests are drawn."""
    replicas: int = 10
    clients: int = 20
    """Of the service, and those that send to it."""
    seconds: float = 300.0
    """How long they send."""
    absent_seconds: float = 30.0
    """From when a replica is out of service until another takes its place, with a cold memory."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        require_at_least(self, 1, "replicas", "clients", "seconds", "absent_seconds")


@register("study", "transient-service", parameters=ServiceParameters)
def transient_service(parameters: ServiceParameters) -> Study:
    """Measure a service while its machines are taken (section 3.5.3)."""
    cases = [
        GridPoint(
            group,
            rate,
            system,
            seed,
            Minutes(
                system,
                in_memory,
                rate,
                parameters.replicas,
                parameters.clients,
                parameters.seconds,
                parameters.absent_seconds,
                seed,
            ),
        )
        for seed in range(parameters.seeds)
        for group, in_memory in _IN_MEMORY.items()
        for system in (_WITHOUT, _WITH)
        for rate in _RATES
    ]
    return declared(
        "transient-service",
        _MEASURES,
        cases,
        clients=parameters.clients,
        replicas=parameters.replicas,
        seconds=f"{parameters.seconds:g}",
        absent=f"{parameters.absent_seconds:g}",
    )
