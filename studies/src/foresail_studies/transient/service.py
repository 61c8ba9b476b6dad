"""Study ``transient-service``: how a service fares while its machines are taken.

Without a daemon the requests in flight on a machine are lost with it, and the load balancer sends
more until its next health check. A daemon that hears of the revocation before has the machine
cordoned and out of the balancer by then; only what arrives between these two steps is lost
(TR-Kubernetes, Ambati's thesis, chapter 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import require_at_least
from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters
from foresail_studies.transient.kernels.service import Chance, Clients, serve_clients

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


def served(
    seconds: float, clients: Clients, first: Integers, absent: Floats, chance: Chance, most: int
) -> tuple[Floats, int]:
    """Latencies of requests that were answered, in order of sending, at most so many; and requests.

    ``absent`` are absences in order of machine and time, of which those of each machine begin at
    ``first``, which has one more.
    """
    machines = np.zeros((first.size - 1, clients.workers + 1))
    machines[:, clients.workers] = -np.inf
    current = np.stack((first[:-1], first[1:], np.zeros(first.size - 1, np.int64)), axis=1)
    ready, latency = np.zeros(clients.clients), np.empty(most)
    outages = np.ascontiguousarray(absent)
    requests, answered = serve_clients(
        seconds, clients, current, outages, chance, ready, machines, latency
    )
    return latency[:answered], requests


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
    latency, requests = served(seconds, clients, first, away[order], chance, most)
    return latency, requests - latency.size


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
_REPLICAS: Final = 10
_CLIENTS: Final = 20
_ABSENT_SECONDS: Final = 30.0
"""From when a replica is out of service until another takes its place, with a cold memory."""


@dataclass(frozen=True, slots=True)
class Minutes:
    """Clients that send for some minutes, while replicas are taken at random."""

    system: str
    in_memory: float
    revocations_per_minute: float
    seconds: float
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
        outages = taken_at_random(_REPLICAS, rate, _ABSENT_SECONDS, self.seconds, drawing)
        clients = Clients(_CLIENTS, in_memory=self.in_memory)
        replaced = None if self.system == _WITHOUT else _ABSENT_SECONDS
        random = np.random.default_rng([self.seed, 1])
        return serve_all(_REPLICAS, outages, self.seconds, clients, replaced, random)


@dataclass(frozen=True, slots=True)
class ServiceParameters(StudyParameters, quick="seeds=5", minutes=(0.5, 2)):
    """Parameters of ``transient-service``."""

    seeds: int = 20
    """How often revocations and requests are drawn."""
    seconds: float = 300.0
    """How long clients send."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        require_at_least(self, 1, "seconds")


@register("study", "transient-service", parameters=ServiceParameters)
def transient_service(parameters: ServiceParameters) -> Study:
    """Measure a service while its machines are taken (section 3.5.3)."""
    cases = [
        GridPoint(group, rate, system, seed, Minutes(system, warm, rate, parameters.seconds, seed))
        for seed in range(parameters.seeds)
        for group, warm in _IN_MEMORY.items()
        for system in (_WITHOUT, _WITH)
        for rate in _RATES
    ]
    return declared(
        "transient-service",
        _MEASURES,
        cases,
        clients=_CLIENTS,
        replicas=_REPLICAS,
        seconds=f"{parameters.seconds:g}",
        absent=f"{_ABSENT_SECONDS:g}",
    )
