"""Simulated runs of schedulers that plan ahead, with what every cycle cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.metrics.summary import summaries
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision
from foresail.model.event import IN_CYCLES, Outcome
from foresail.model.protocols import Predictor, Scheduler
from foresail.model.registry import find
from foresail.model.view import ClusterView, PendingJob, Rejection, Reservation
from foresail.schedulers._planning.core import CycleRecord, PlanAhead
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.engine import simulate_events
from foresail.traces.generating import generate
from foresail.traces.nodes import cluster_of
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload
from foresail_studies.generators.tetrisched import GsHetParameters

Floats = NDArray[np.float64]

Keeper = Callable[[PlanAhead, ClusterView], object]


def keep_nothing(scheduler: PlanAhead, view: ClusterView) -> None:
    """What is shown every cycle and keeps none."""
    del scheduler, view


class Watched(Scheduler):
    """A scheduler that plans ahead, with the record and the processor time of every cycle.

    ``keeper`` is shown the scheduler and what it saw after each.
    """

    def __init__(self, inner: PlanAhead, keeper: Keeper = keep_nothing) -> None:
        self._inner = inner
        self._keeper = keeper
        self.records: list[CycleRecord] = []
        self.processor_seconds: list[float] = []

    def planned_seconds(self, pending: PendingJob) -> float:
        """As the scheduler has it."""
        return self._inner.planned_seconds(pending)

    def reserve(
        self, pending: PendingJob, earliest_seconds: float, now: float, cluster: Cluster
    ) -> Reservation | Rejection | None:
        """As the scheduler has it."""
        return self._inner.reserve(pending, earliest_seconds, now, cluster)

    def release(self, job_id: str, now: float) -> None:
        """As the scheduler has it."""
        self._inner.release(job_id, now)

    def decide(self, view: ClusterView) -> Decision:
        """As the scheduler has it, timed."""
        began = time.thread_time()
        decision = self._inner.decide(view)
        seconds = time.thread_time() - began
        if self._inner.last is not None:
            self.records.append(self._inner.last)
            self.processor_seconds.append(seconds)
            self._keeper(self._inner, view)
        return decision


@dataclass(frozen=True)
class Cycles:
    """A run."""

    name: str
    workload: Workload
    schedule: Schedule
    """What was run, and what came of it."""
    records: tuple[CycleRecord, ...]
    """Of every cycle in which jobs waited."""
    processor_seconds: Floats
    """Of these cycles, without what other processes took; shape (cycles,)."""
    run_processor_seconds: float
    """Of the whole run: simulator, controller, predictor and scheduler."""

    def of(self, field: str) -> Floats:
        """A field of all records; shape (cycles,)."""
        return np.array([getattr(each, field) for each in self.records])

    def sentence(self) -> str:
        """Deadlines missed, cycle times in processor time and gaps, for people."""
        (summary,) = summaries([self.schedule])
        median, slow = 1e3 * np.quantile(self.processor_seconds, (0.5, 0.99))
        below = int((self.of("value") < self.of("greedy_value")).sum())
        return (
            f"{self.name}: {summary.slo_miss_rate:.2%} of {summary.slo_jobs} deadlines missed; "
            f"{len(self.records)} cycles, {np.median(self.of('pending')):.0f} jobs "
            f"waiting (at most {self.of('pending').max():.0f}); processor time a cycle: median "
            f"{median:.1f} ms, p99 {slow:.1f} ms, most {1e3 * self.processor_seconds.max():.1f} "
            f"ms; gap median {np.median(self.of('gap')):.2%}, p90 "
            f"{np.quantile(self.of('gap'), 0.9):.2%}; below greedy in {below}; "
            f"whole run {self.run_processor_seconds:.1f} s of processor time"
        )


def e2e(
    hours: float = 1.0,
    cycle_seconds: float = 10.0,
    seed: int = 1,
    keeper: Keeper = keep_nothing,
    **settings: Any,
) -> Cycles:
    """3Sigma's E2E at load 1.4 on 256 nodes."""
    return _trained("e2e", cycle_seconds, seed, keeper, hours=hours, **settings)


def scalability(
    hours: float = 0.3, cycle_seconds: float = 10.0, keeper: Keeper = keep_nothing
) -> Cycles:
    """4,000 jobs an hour on 12,583 nodes."""
    return _trained("scalability", cycle_seconds, 1, keeper, jobs_per_hour=4000, hours=hours)


@dataclass(frozen=True, slots=True)
class _TenThousandNodes(GsHetParameters):
    """Jobs of 1 to 100 nodes on 40 racks, ten of them with gpus."""

    racks: ClassVar[int] = 40
    gpu_racks: ClassVar[int] = 10
    width_shares: ClassVar[tuple[float, float]] = (1e-4, 0.01)
    nodes: int = 10_000


def gs_het(
    load: float = 1.2,
    seed: int = 1,
    relative_gap: float = 0.02,
    keeper: Keeper = keep_nothing,
    **settings: Any,
) -> Cycles:
    """TetriSched's GS_HET on 10,000 nodes in 40 racks, ten of them with gpus; jobs of 1 to 100."""
    parameters = _TenThousandNodes(load=load, **{"hours": 0.15, **settings})
    workload = generate("gs_het", parameters, seed)
    policy = f"tetrisched(relative_gap={relative_gap:g},reservations=off)"
    return cycles_of(f"gs_het, load {load}", workload, policy, 4.0, keeper=keeper)


RUNS: Final[dict[str, Callable[..., Cycles]]] = {
    "e2e": e2e,
    "scalability": scalability,
    "gs_het": gs_het,
}


def _trained(name: str, cycle_seconds: float, seed: int, keeper: Keeper, **settings: Any) -> Cycles:
    entry = find("generator", name)
    workload = generate(name, entry.parameters(**settings), seed)
    history = generate(name, entry.parameters(part="history", **settings), seed)
    title = f"{name}, {cycle_seconds:g} s"
    return cycles_of(title, workload, "3sigma", cycle_seconds, history, keeper)


def cycles_of(
    name: str,
    workload: Workload,
    text: str,
    cycle_seconds: float,
    history: Workload | None = None,
    keeper: Keeper = keep_nothing,
) -> Cycles:
    """The run of a policy whose predictor has learned from a history."""
    assert workload.nodes is not None
    scheduler, predictor, correction = parse_policy(text).build()
    assert isinstance(scheduler, PlanAhead)
    if history is not None:
        _train(predictor, history)
    watched = Watched(scheduler, keeper)
    cluster = cluster_of(workload.nodes)
    controller = Controller(cluster, watched, predictor, correction, IN_CYCLES)
    began = time.process_time()
    schedule = simulate_events(
        workload, controller, text, conditions=ClusterConditions(cycle_seconds)
    )
    return Cycles(
        name,
        workload,
        schedule,
        tuple(watched.records),
        np.array(watched.processor_seconds),
        time.process_time() - began,
    )


def _train(predictor: Predictor, history: Workload) -> None:
    truth = history.truth()
    for job in history.specifications():
        predictor.predict(job, job.submit_seconds)
        end = job.submit_seconds + truth[job.job_id]
        predictor.observe(job, Outcome(job.job_id, job.submit_seconds, end))
