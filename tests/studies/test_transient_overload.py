"""Clients of a service whose machines are taken, by an obvious loop."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail_studies.transient.kernels.service import Chance, Clients
from foresail_studies.transient.service import (
    absences,
    serve_all,
    served,
    taken_at_random,
)


def slow_service(seconds, of, first, table, chance, most):
    """The kernel, in the words of a queue: one client after the other, in order of time."""
    ready = [0.0] * of.clients
    machines = [table[a:b].tolist() for a, b in pairwise(first)]
    cold = [-math.inf] * len(machines)
    free = [[0.0] * of.workers for _ in machines]
    latency = []
    requests = drawn = 0
    while len(latency) < most:
        now = min(ready)
        client = ready.index(now)
        if now >= seconds:
            break
        for i, mine in enumerate(machines):
            while mine and mine[0][3] <= now:
                cold[i] = mine.pop(0)[3]
                free[i] = [cold[i]] * of.workers
        inside = [i for i, mine in enumerate(machines) if not mine or now < mine[0][1]]
        requests += 1
        drawn = (drawn + 1) % len(chance.which)
        if not inside:
            ready[client] = now + of.retry_seconds
            continue
        i = inside[int(chance.which[drawn] * len(inside))]
        outage = machines[i][0] if machines[i] else None
        if outage and now >= outage[0]:
            ready[client] = now + of.retry_seconds
            continue
        begin = max(now, min(free[i]))
        worker = free[i].index(min(free[i]))
        share = of.in_memory * (1.0 - math.exp(-(begin - cold[i]) / of.warming_seconds))
        mean = of.hit_seconds if chance.hit[drawn] < share else of.miss_seconds
        end = begin + mean * chance.work[drawn]
        if outage and end > outage[2]:
            free[i][worker] = outage[2]
            ready[client] = outage[2] + of.retry_seconds
            continue
        free[i][worker] = ready[client] = end
        latency.append(end - now)
    return latency, requests


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_clients_are_those_of_an_obvious_loop(seed, machines, workers, clients):
    """Every latency and all requests, with outages of all kinds."""
    random = np.random.default_rng(seed)
    first, rows = [0], []
    for _ in range(machines):
        edges = np.sort(random.uniform(0.0, 10.0, 4 * random.integers(0, 3))).reshape(-1, 4)
        rows += edges.tolist()
        first.append(len(rows))
    table = np.array(rows, dtype=float).reshape(-1, 4)
    chance = Chance(random.random(64), random.random(64), random.exponential(1.0, 64))
    of = Clients(clients, workers, 0.05, 0.2, 0.7, 1.0, 0.01)
    latency, requests = served(10.0, of, np.array(first), table, chance, 500)
    slow, told = slow_service(10.0, of, first, table, chance, 500)
    assert requests == told
    np.testing.assert_allclose(latency, slow)


def test_without_outages_little_is_waited():
    """One client never queues: its latency is that of the work; many are slower."""
    random = np.random.default_rng(1)
    alone, _ = serve_all(3, np.zeros((0, 3)), 200.0, Clients(clients=1), None, random)
    assert alone.mean() == pytest.approx(0.012, rel=0.03)
    assert alone.size / 200.0 == pytest.approx(1.0 / 0.012, rel=0.03)
    crowd, failed = serve_all(3, np.zeros((0, 3)), 200.0, Clients(clients=60), None, random)
    assert crowd.mean() > 2.0 * 0.012
    # Twelve workers are nearly always busy.
    assert crowd.size / 200.0 == pytest.approx(12 / 0.012, rel=0.1)
    assert failed == 0


def test_revocations_slow_a_service_down():
    """More of them: less throughput, longer latencies; fewer failures with the daemon."""
    found = {}
    for rate in (0.0, 4.0):
        outages = taken_at_random(10, rate, 30.0, 300.0, np.random.default_rng(2))
        for replaced in (None, 120.0):
            random = np.random.default_rng(3)
            found[rate, replaced] = serve_all(10, outages, 300.0, Clients(), replaced, random)
    (calm, _), (rough, failed) = found[0.0, None], found[4.0, None]
    assert calm.size > 1.1 * rough.size
    assert calm.mean() < 0.9 * rough.mean()
    assert failed > 5 * found[4.0, 120.0][1] > 0


def test_taken_at_random():
    """About as often as asked; a machine that is gone is not taken again."""
    found = taken_at_random(10, 2.0, 30.0, 60_000.0, np.random.default_rng(8))
    assert len(found) == pytest.approx(2_000, rel=0.2)
    for i in range(10):
        _, begin, end = found[found[:, 0] == i].T
        assert (begin[1:] >= end[:-1]).all()


def test_a_new_machine_is_warned_of_only_once_it_is_there():
    """A machine that is taken again soon cannot have been warned of before it came back."""
    outages = np.array([(0, 100.0, 200.0), (0, 230.0, 300.0)])
    closed = absences(outages, 1000.0, np.random.default_rng(8))[:, 0]
    assert 0.0 <= closed[0] <= 5.0
    assert 200.0 <= closed[1] <= 205.0


def test_replaced_on_the_warning():
    """Another machine takes its place while the old one is still there, if that is quicker."""
    outages = np.array([(0, 500.0, 600.0), (1, 700.0, 702.0)])
    closed, left, gone, back = absences(outages, 30.0, np.random.default_rng(8)).T
    assert ((closed >= gone - 120.0) & (closed <= gone - 115.0)).all()
    np.testing.assert_allclose(left, closed + 0.1)
    np.testing.assert_allclose(back, left + 30.0)
    without = absences(outages, None, np.random.default_rng(8))
    assert without[0].tolist() == [500.0, 501.0, 500.0, 600.0]
