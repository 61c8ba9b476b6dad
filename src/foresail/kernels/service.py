"""Requests of clients to the machines of a service: each waits for its reply, then sends anew."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel

REQUESTS: Final = 0
IN_FLIGHT: Final = 1
AT_HANDOVER: Final = 2
WITHOUT_MACHINE: Final = 3
SERVED: Final = 4
COUNTS: Final = 5
"""Requests sent; those lost with their machine, sent to one on its way out, sent while there was
none; and those that were answered."""


class Outages(NamedTuple):
    """Outages in order of machine, then time; seconds.

    Parameters
    ----------
    first
        Shape (machines + 1,): where the outages of each machine begin.
    closed, left, gone, back
        Shape (outages,): as ``foresail.cloud.transient.serving.Absence``.
    """

    first: NDArray[np.int64]
    closed: NDArray[np.float64]
    left: NDArray[np.float64]
    gone: NDArray[np.float64]
    back: NDArray[np.float64]


class Chance(NamedTuple):
    """Draws that are gone through in order, and round again: shape (draws,) each.

    Parameters
    ----------
    which, hit
        Uniform from 0 to 1: which machine is sent to, and whether it has what is asked for in
        memory.
    work
        Exponential with mean 1.
    """

    which: NDArray[np.float64]
    hit: NDArray[np.float64]
    work: NDArray[np.float64]


@kernel
def serve_clients(
    seconds: float,
    clients: int,
    workers: int,
    hit_seconds: float,
    miss_seconds: float,
    warm_share: float,
    warming_seconds: float,
    retry_seconds: float,
    outages: Outages,
    chance: Chance,
    latency: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """Fill in the latencies of those that were answered, in order of sending, and the counts.

    Every client sends to one of the machines in the balancer, waits for the answer and sends at
    once again; after a failure, ``retry_seconds`` later. A machine has some workers, which take its
    requests in order. Its memory is cold when it comes back: the share of requests that it answers
    from there rises to ``warm_share`` with the time constant ``warming_seconds``.

    ``latency`` ends the simulation when it is full.
    """
    machines = outages.first.size - 1
    current = outages.first[:-1].copy()
    cold_since = np.full(machines, -np.inf)
    free = np.zeros((machines, workers))
    ready = np.zeros(clients)
    there = np.empty(machines, np.int64)
    drawn = 0
    counts[:] = 0
    while counts[SERVED] < latency.size:
        client = int(np.argmin(ready))
        now = ready[client]
        if now >= seconds:
            return
        inside = 0
        for i in range(machines):
            while current[i] < outages.first[i + 1] and outages.back[current[i]] <= now:
                cold_since[i] = outages.back[current[i]]
                free[i, :] = cold_since[i]
                current[i] += 1
            k = current[i]
            if k == outages.first[i + 1] or now < outages.left[k]:
                there[inside] = i
                inside += 1
        counts[REQUESTS] += 1
        drawn = (drawn + 1) % chance.which.size
        if inside == 0:
            counts[WITHOUT_MACHINE] += 1
            ready[client] = now + retry_seconds
            continue
        i = there[int(chance.which[drawn] * inside)]
        k = current[i]
        goes = k < outages.first[i + 1]
        if goes and now >= outages.closed[k]:
            counts[AT_HANDOVER] += 1
            ready[client] = now + retry_seconds
            continue
        worker = int(np.argmin(free[i]))
        begin = max(now, free[i, worker])
        warm = warm_share * (1.0 - np.exp(-(begin - cold_since[i]) / warming_seconds))
        mean = hit_seconds if chance.hit[drawn] < warm else miss_seconds
        end = begin + mean * chance.work[drawn]
        if goes and end > outages.gone[k]:
            counts[IN_FLIGHT] += 1
            free[i, worker] = outages.gone[k]
            ready[client] = outages.gone[k] + retry_seconds
            continue
        free[i, worker] = end
        latency[counts[SERVED]] = end - now
        counts[SERVED] += 1
        ready[client] = end
