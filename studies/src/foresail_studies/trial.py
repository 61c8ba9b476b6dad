"""One simulated run of a study: a workload from a seed, a policy that has learned, its metrics."""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from foresail.control.policy import Policy, parse_policy
from foresail.metrics.summary import deadline_metrics
from foresail.model.decision import Decision
from foresail.model.protocols import Predictor, Scheduler
from foresail.model.short_form import part_of
from foresail.model.view import ClusterView
from foresail.predictors.stepped import PredictorSnapshot, SteppedPredictor
from foresail.predictors.training import train
from foresail.scenario.beginning import controller_of
from foresail.scenario.by_events import run_by_events
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload
from foresail_studies.generated import generated

_MILLISECONDS = 1000.0
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class CycleTrial:
    """A run in cycles on the nodes of a generated workload."""

    workload: str
    """Short form of a generator, such as ``e2e(hours=2,load=1.6)``."""
    history: str | None
    """Short form of the generator of what the predictor learns from first; None if it learns only
    as it goes."""
    seed: int
    """Of the workload, the history and the conditions."""
    policy: str
    """Short form or name; its ``cycle_seconds`` become those of the trial."""
    cycle_seconds: float
    """The scheduler is asked once in so many seconds."""

    def scenario(self, workload: Workload, **conditions: Any) -> Scenario:
        """The policy on a workload, under further conditions as ``ClusterConditions`` has them."""
        before = None if self.history is None else _LearnedHistory(self.history, self.seed)
        cluster = ClusterConditions(cycle_seconds=self.cycle_seconds, seed=self.seed, **conditions)
        policy = parse_policy(self.policy)
        return Scenario(workload, policy, place="nodes", conditions=cluster, learned_before=before)


@dataclass(frozen=True, slots=True)
class Trial(CycleTrial):
    """One on an ideal cluster, or on one with delays and noise."""

    estimate_error_percent: float | None = None
    """If given, jobs request their real runtime, wrong by so much: what ``requested`` predicts."""
    start_delay_seconds: float = 0.0
    runtime_noise: float = 0.0
    """As in ``ClusterConditions``; 0 on an ideal cluster."""
    discarded_hours: float = 0.0
    """Jobs submitted in so many first hours, when the machine fills, are run and not measured."""

    def measure(self) -> dict[str, float]:
        """Metrics of the schedule, what of it was done by the last submission, and cost.

        All of ``DeadlineMetrics``, with goodput of what was done when the last job was submitted
        (the published runs end about then, while a simulation goes on until all is done); and
        latencies of decisions and predictions.
        """
        workload = generated(self.workload, self.seed)
        if self.estimate_error_percent is not None:
            workload = with_requests(workload, self.estimate_error_percent)
        scenario = self.scenario(
            workload,
            start_delay_seconds=self.start_delay_seconds,
            runtime_noise=self.runtime_noise,
        )
        controller = controller_of(scenario)
        clock = clocked(controller.scheduler)
        schedule = run_by_events(scenario, controller)
        cost = _prediction_cost(workload, controller.predictor)
        return metrics_of(_after(schedule, self.discarded_hours)) | clock.metrics() | cost


def _after(schedule: Schedule, hours: float) -> Schedule:
    """The schedule of the jobs submitted later than so many hours after the first."""
    jobs = schedule.jobs
    begin = pl.col("submit_seconds").min() + _HOUR * hours
    return dataclasses.replace(schedule, jobs=jobs.filter(pl.col("submit_seconds") >= begin))


@dataclass(frozen=True, slots=True)
class _LearnedHistory:
    """Learned state after a generated history, made once for several runs."""

    generator: str
    seed: int

    def teach(self, policy: Policy, predictor: Predictor) -> None:
        """Teach a predictor as if it had been there."""
        if predictor.keeps_state:
            predictor.restore(_learned(self.generator, self.seed, policy.predictor.text))
        else:
            train(generated(self.generator, self.seed), predictor)


@lru_cache(maxsize=3)
def _learned(generator: str, seed: int, predictor: str) -> PredictorSnapshot:
    learner: SteppedPredictor = part_of("predictor", predictor).build()
    train(generated(generator, seed), learner)
    return learner.snapshot()


def with_requests(workload: Workload, error_percent: float) -> Workload:
    """The workload whose jobs request their real runtime, wrong by a percentage above -100."""
    factor = 1.0 + error_percent / 100.0
    return workload.with_jobs(
        workload.jobs.with_columns(requested_seconds=pl.col("runtime_seconds") * factor)
    )


def metrics_of(schedule: Schedule) -> dict[str, float]:
    """Return the metrics of a schedule; goodput counts what was done by the last submission."""
    whole = {name: float(value) for name, value in _flat(schedule).items()}
    last = schedule.jobs["submit_seconds"].max()
    done = schedule.jobs.filter(pl.col("end_seconds") <= last)
    by_then = _flat(dataclasses.replace(schedule, jobs=done)) if done.height else {}
    goodput = {name: value for name, value in by_then.items() if name.endswith("goodput_hours")}
    whole |= {f"{name}_by_the_end": 0.0 for name in whole if name.endswith("goodput_hours")}
    whole |= {f"{name}_by_the_end": float(value) for name, value in goodput.items()}
    whole["best_effort_completed_by_the_end"] = float(by_then.get("best_effort_completed", 0.0))
    return whole


def _prediction_cost(workload: Workload, predictor: Predictor) -> dict[str, float]:
    """Return the milliseconds of a prediction after all was learned; empty for oracles."""
    if predictor.needs_truth:
        return {}
    took = []
    for job in workload.specifications():
        began = time.perf_counter()
        predictor.predict(job, job.submit_seconds)
        took.append(_MILLISECONDS * (time.perf_counter() - began))
    return {
        "prediction_milliseconds_median": float(np.median(took)),
        "prediction_milliseconds_p99": float(np.quantile(took, 0.99)),
        "prediction_milliseconds_max": float(np.max(took)),
    }


def _flat(schedule: Schedule) -> dict[str, float]:
    return dataclasses.asdict(deadline_metrics(schedule))


@dataclass(slots=True)
class Clock:
    """Duration of each decision in seconds: by the wall clock, and of processors."""

    wall_seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    def metrics(self) -> dict[str, float]:
        """Latencies in milliseconds; nothing where nothing was measured."""
        if not self.wall_seconds:
            return {}
        wall = _MILLISECONDS * np.array(self.wall_seconds)
        cpu = _MILLISECONDS * np.array(self.cpu_seconds)
        return {
            "cycle_milliseconds_median": float(np.median(wall)),
            "cycle_milliseconds_p99": float(np.quantile(wall, 0.99)),
            "cycle_milliseconds_max": float(wall.max()),
            "cycle_cpu_milliseconds_mean": _MILLISECONDS * math.fsum(self.cpu_seconds) / wall.size,
            "cycle_cpu_milliseconds_median": float(np.median(cpu)),
            "cycle_cpu_milliseconds_p99": float(np.quantile(cpu, 0.99)),
            "cycle_cpu_milliseconds_max": float(cpu.max()),
            "cycles": float(wall.size),
        }


def clocked(scheduler: Scheduler) -> Clock:
    """Time a scheduler's decisions from now on, but for those where no job waits.

    In place, not by a wrapper: a controller looks at what else a scheduler can do.
    """
    decide, clock = scheduler.decide, Clock()

    def timed(view: ClusterView) -> Decision:
        if not view.pending:
            return decide(view)
        wall, cpu = time.perf_counter(), time.process_time()
        decision = decide(view)
        clock.wall_seconds.append(time.perf_counter() - wall)
        clock.cpu_seconds.append(time.process_time() - cpu)
        return decision

    scheduler.decide = timed  # type: ignore[method-assign]
    return clock
