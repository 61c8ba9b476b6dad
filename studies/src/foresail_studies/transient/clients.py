"""Latency of a service while its machines are taken: clients that wait for every answer.

The published experiment (paper 003, section 3.5; spec 2.7): some clients send as fast as they are
answered, to replicas whose working set is in memory, or partly or mostly on disk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.errors import require_at_least, require_positive, require_share
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
from foresail_studies.transient.serving import Protection, Served, TransientMachines, absence

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
