"""Clients of a service whose machines are taken, by an obvious loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail_studies.transient.kernels.service import (
    COUNTS,
    SERVED,
    Chance,
    Outages,
    serve_clients,
)
from foresail_studies.transient.serving import (
    Clients,
    Cordoned,
    TransientMachines,
    Unprotected,
    serve_waiting_clients,
    taken_at_random,
)


def slow_service(seconds, clients, workers, times, warm, retry, outages, chance, most):
    """The kernel, in the words of a queue: one client after the other, in order of time."""
    hit_seconds, miss_seconds, warming = times
    ready = [0.0] * clients
    machines = [
        [list(each) for each in zip(*(column[a:b] for column in outages[1:]), strict=True)]
        for a, b in zip(outages.first[:-1], outages.first[1:], strict=True)
    ]
    cold = [-math.inf] * len(machines)
    free = [[0.0] * workers for _ in machines]
    latency, failed = [], {"flight": 0, "handover": 0, "none": 0}
    requests = drawn = 0
    while len(latency) < most:
        now = min(ready)
        client = ready.index(now)
        if now >= seconds:
            break
        for i, mine in enumerate(machines):
            while mine and mine[0][3] <= now:
                cold[i] = mine.pop(0)[3]
                free[i] = [cold[i]] * workers
        inside = [i for i, mine in enumerate(machines) if not mine or now < mine[0][1]]
        requests += 1
        drawn = (drawn + 1) % len(chance.which)
        if not inside:
            failed["none"] += 1
            ready[client] = now + retry
            continue
        i = inside[int(chance.which[drawn] * len(inside))]
        outage = machines[i][0] if machines[i] else None
        if outage and now >= outage[0]:
            failed["handover"] += 1
            ready[client] = now + retry
            continue
        begin = max(now, min(free[i]))
        worker = free[i].index(min(free[i]))
        share = warm * (1.0 - math.exp(-(begin - cold[i]) / warming))
        mean = hit_seconds if chance.hit[drawn] < share else miss_seconds
        end = begin + mean * chance.work[drawn]
        if outage and end > outage[2]:
            failed["flight"] += 1
            free[i][worker] = outage[2]
            ready[client] = outage[2] + retry
            continue
        free[i][worker] = ready[client] = end
        latency.append(end - now)
    return latency, [requests, failed["flight"], failed["handover"], failed["none"], len(latency)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_clients_are_those_of_an_obvious_loop(seed, machines, workers, clients):
    """Every latency and every count, with outages of all kinds."""
    random = np.random.default_rng(seed)
    first, rows = [0], []
    for _ in range(machines):
        edges = np.sort(random.uniform(0.0, 10.0, 4 * random.integers(0, 3))).reshape(-1, 4)
        rows += edges.tolist()
        first.append(len(rows))
    table = np.array(rows, dtype=float).reshape(-1, 4).T
    outages = Outages(np.array(first), *(np.ascontiguousarray(column) for column in table))
    chance = Chance(random.random(64), random.random(64), random.exponential(1.0, 64))
    latency, counts = np.empty(500), np.zeros(COUNTS, np.int64)
    serve_clients(
        10.0, clients, workers, 0.05, 0.2, 0.7, 1.0, 0.01, outages, chance, latency, counts
    )
    slow, told = slow_service(
        10.0, clients, workers, (0.05, 0.2, 1.0), 0.7, 0.01, outages, chance, 500
    )
    assert counts.tolist() == told
    np.testing.assert_allclose(latency[: counts[SERVED]], slow)


def test_without_outages_little_is_waited():
    """One client never queues: its latency is that of the work; many are slower."""
    calm = TransientMachines(np.ones(3), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 200.0)
    random = np.random.default_rng(1)
    alone = serve_waiting_clients(calm, Clients(clients=1), Unprotected(), random)
    assert alone.latency_seconds.mean() == pytest.approx(0.012, rel=0.03)
    assert alone.throughput == pytest.approx(1.0 / 0.012, rel=0.03)
    crowd = serve_waiting_clients(calm, Clients(clients=60), Unprotected(), random)
    assert crowd.latency_seconds.mean() > 2.0 * 0.012
    # Twelve workers are nearly always busy.
    assert crowd.throughput == pytest.approx(12 / 0.012, rel=0.1)
    assert crowd.served.failed == 0


def test_revocations_slow_a_service_down():
    """More of them: less throughput, longer latencies; fewer failures with the daemon."""
    found = {}
    for rate in (0.0, 4.0):
        machines = taken_at_random(
            10,
            revocations_per_minute=rate,
            absent_seconds=30.0,
            seconds=300.0,
            random=np.random.default_rng(2),
        )
        for protection in (Unprotected(), Cordoned()):
            found[rate, type(protection)] = serve_waiting_clients(
                machines, Clients(), protection, np.random.default_rng(3)
            )
    calm, rough = found[0.0, Unprotected], found[4.0, Unprotected]
    assert calm.throughput > 1.1 * rough.throughput
    assert calm.latency_seconds.mean() < 0.9 * rough.latency_seconds.mean()
    assert rough.served.failed > 5 * found[4.0, Cordoned].served.failed > 0


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"clients": 0}, "clients"),
        ({"in_memory": 1.5}, "in_memory"),
        ({"warming_seconds": -1.0}, "warming_seconds"),
        ({"hit_seconds": 0.0}, "hit_seconds"),
    ],
)
def test_impossible_clients(wrong, field):
    """The number is named."""
    with pytest.raises(InputError, match=field):
        Clients(**wrong)
