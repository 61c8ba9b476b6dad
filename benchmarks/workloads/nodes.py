"""Jobs of 3Sigma on nodes, in cycles: the time of the engine and that of the scheduler apart."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.decision import Decision
from foresail.model.event import IN_CYCLES
from foresail.model.protocols import Scheduler
from foresail.model.registry import find
from foresail.model.view import ClusterView
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.engine import simulate_events
from foresail.simulator.replay import replay
from foresail.traces.generating import generate
from foresail.traces.nodes import cluster_of
from foresail.traces.workload import Workload

_ROUNDS = 3


class _Timed(Scheduler):
    """Another scheduler, timed; it hides ``ignores_time``, so it is asked in every cycle."""

    def __init__(self, inner: Scheduler) -> None:
        self._inner = inner
        self.seconds = 0.0
        self.passes = 0

    def decide(self, view: ClusterView) -> Decision:
        begin = time.perf_counter()
        decision = self._inner.decide(view)
        self.seconds += time.perf_counter() - begin
        self.passes += 1
        return decision


@benchmark("nodes")
def measure() -> Iterator[Measurement]:
    """E2E on 256 nodes every 2 s, and a tenth of an hour on 12,583 nodes every 10 s."""
    e2e = find("generator", "e2e").parameters()
    yield from _measured("nodes e2e", generate("e2e", e2e, 3), 2.0)
    many = find("generator", "scalability").parameters(jobs_per_hour=4000, hours=0.1)
    yield from _measured("nodes scalability", generate("scalability", many, 3), 10.0)


def _measured(name: str, workload: Workload, cycle_seconds: float) -> Iterator[Measurement]:
    assert workload.nodes is not None
    cluster = cluster_of(workload.nodes)
    engine = deciding = float("inf")
    passes = 0
    for _ in range(_ROUNDS):
        scheduler, predictor, correction = parse_policy("prio,requested").build()
        timed = _Timed(scheduler)
        controller = Controller(cluster, timed, predictor, correction, IN_CYCLES)
        begin = time.perf_counter()
        simulate_events(workload, controller, "prio", conditions=ClusterConditions(cycle_seconds))
        engine = min(engine, time.perf_counter() - begin - timed.seconds)
        deciding, passes = min(deciding, timed.seconds), timed.passes
    easy = parse_policy("easy")
    (reference,) = best_in_turns(0.2, lambda: replay(workload, easy))
    yield Measurement(f"{name} engine", engine, "compiled replay", reference, passes, "pass")
    yield Measurement(f"{name} prio", deciding, "compiled replay", reference, passes, "pass")
