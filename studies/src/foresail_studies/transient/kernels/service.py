"""Requests of clients to the machines of a service: each waits for its reply, then sends anew."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, merged_part, part

REQUESTS: Final = 0
IN_FLIGHT: Final = 1
AT_HANDOVER: Final = 2
WITHOUT_MACHINE: Final = 3
SERVED: Final = 4
COUNTS: Final = 5
"""Requests sent; those lost with their machine, sent to one on its way out, sent while there was
none; and those that were answered."""


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


@bare_kernel
def serve_clients(
    settings: NDArray[np.float64],
    current: NDArray[np.int64],
    outages: NDArray[np.float64],
    chance: Chance,
    ready: NDArray[np.float64],
    machines: NDArray[np.float64],
    latency: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None:
    """Fill in the latencies of those that were answered, in order of sending, and the counts.

    Every client sends to one of the machines in the balancer, waits for the answer and sends at
    once again; after a failure, somewhat later. A machine has some workers, which take its requests
    in order. Its memory is cold when it comes back: the share of requests that it answers from
    there rises to the warm share with a time constant. It ends when the time is over or
    ``latency`` is full.

    ``settings`` are seconds: how long it lasts, a hit, a miss, the warm share, the time constant,
    and until a client tries again. ``current`` has each machine's next outage, the end of its
    outages, and one to work in; ``outages`` rows of when each closes, has left, is gone and is
    back. ``ready`` is when each client sends next; ``machines`` has when each worker is free, and
    since when the memory is cold.
    """
    seconds, hit_seconds, miss_seconds = settings[0], settings[1], settings[2]
    warm_share, warming_seconds, retry_seconds = settings[3], settings[4], settings[5]
    workers = machines.shape[1] - 1
    drawn = 0
    while counts[SERVED] < latency.size:
        client = _first_of(ready, ready.size)
        now = ready[client]
        if now >= seconds:
            return
        inside = _note_inside(now, current, outages, machines)
        counts[REQUESTS] += 1
        drawn = (drawn + 1) % chance.which.size
        if inside == 0:
            counts[WITHOUT_MACHINE] += 1
            ready[client] = now + retry_seconds
            continue
        i = current[int(chance.which[drawn] * inside), 2]
        k = current[i, 0]
        goes = k < current[i, 1]
        if goes and now >= outages[k, _CLOSED]:
            counts[AT_HANDOVER] += 1
            ready[client] = now + retry_seconds
            continue
        worker = _first_of(machines[i], workers)
        begin = max(now, machines[i, worker])
        warm = warm_share * (1.0 - math.exp(-(begin - machines[i, workers]) / warming_seconds))
        mean = hit_seconds if chance.hit[drawn] < warm else miss_seconds
        end = begin + mean * chance.work[drawn]
        if goes and end > outages[k, _GONE]:
            counts[IN_FLIGHT] += 1
            machines[i, worker] = outages[k, _GONE]
            ready[client] = outages[k, _GONE] + retry_seconds
            continue
        machines[i, worker] = end
        latency[counts[SERVED]] = end - now
        counts[SERVED] += 1
        ready[client] = end


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
