"""Requests of clients to the machines of a service: each waits for its reply, then sends anew."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, merged_part, part

_CLOSED: Final = 0
_LEFT: Final = 1
_GONE: Final = 2
_BACK: Final = 3


class Chance(NamedTuple):
    """Draws that are gone through in order, and round again: shape (draws,) each."""

    which: NDArray[np.float64]
    hit: NDArray[np.float64]
    """Uniform from 0 to 1: which machine is sent to, and whether it has what is asked for in
    memory."""
    work: NDArray[np.float64]
    """Exponential with mean 1."""


class Clients(NamedTuple):
    """Clients and the replicas that answer them; seconds."""

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


@bare_kernel
def serve_clients(
    seconds: float,
    of: Clients,
    current: NDArray[np.int64],
    outages: NDArray[np.float64],
    chance: Chance,
    ready: NDArray[np.float64],
    machines: NDArray[np.float64],
    latency: NDArray[np.float64],
) -> tuple[int, int]:
    """Fill in the latencies of those that were answered, in order of sending.

    Every client sends to one of the machines in the balancer, waits for the answer and sends at
    once again; after a failure, somewhat later. A machine has some workers, which take its requests
    in order. Its memory is cold when it comes back: the share of requests that it answers from
    there rises to the warm share with a time constant. It ends when the time is over or
    ``latency`` is full.

    ``current`` has each machine's next outage, the end of its outages, and one to work in;
    ``outages`` rows of when each closes, has left, is gone and is back. ``ready`` is when each
    client sends next; ``machines`` has when each worker is free, and since when the memory is cold.

    Returns how many requests were sent, and how many answered: others are lost with their machine,
    sent to one on its way out, or while there was none.
    """
    workers = machines.shape[1] - 1
    requests = answered = drawn = 0
    while answered < latency.size:
        client = _first_of(ready, ready.size)
        now = ready[client]
        if now >= seconds:
            break
        inside = _note_inside(now, current, outages, machines)
        requests += 1
        drawn = (drawn + 1) % chance.which.size
        if inside == 0:
            ready[client] = now + of.retry_seconds
            continue
        i = current[int(chance.which[drawn] * inside), 2]
        k = current[i, 0]
        goes = k < current[i, 1]
        if goes and now >= outages[k, _CLOSED]:
            ready[client] = now + of.retry_seconds
            continue
        worker = _first_of(machines[i], workers)
        begin = max(now, machines[i, worker])
        for_long = 1.0 - math.exp(-(begin - machines[i, workers]) / of.warming_seconds)
        hits = chance.hit[drawn] < of.in_memory * for_long
        mean = of.hit_seconds if hits else of.miss_seconds
        end = begin + mean * chance.work[drawn]
        if goes and end > outages[k, _GONE]:
            machines[i, worker] = outages[k, _GONE]
            ready[client] = outages[k, _GONE] + of.retry_seconds
            continue
        machines[i, worker] = end
        latency[answered] = end - now
        answered += 1
        ready[client] = end
    return requests, answered


@part
def _first_of(times: NDArray[np.float64], count: int) -> int:
    """The place of the least of the first so many."""
    first, least = 0, times[0]
    for at in range(1, count):
        if times[at] < least:
            first, least = at, times[at]
    return first


@merged_part
def _note_inside(
    now: float,
    current: NDArray[np.int64],
    outages: NDArray[np.float64],
    machines: NDArray[np.float64],
) -> int:
    """Move machines on to their next outages, and list those that are sent to; how many."""
    inside = 0
    for i in range(machines.shape[0]):
        while current[i, 0] < current[i, 1] and outages[current[i, 0], _BACK] <= now:
            for worker in range(machines.shape[1]):  # and the memory is cold
                machines[i, worker] = outages[current[i, 0], _BACK]
            current[i, 0] += 1
        k = current[i, 0]
        if k == current[i, 1] or now < outages[k, _LEFT]:
            current[inside, 2] = i
            inside += 1
    return inside
