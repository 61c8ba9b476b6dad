"""Simulated runs of studies: a workload from a seed, a policy that has learned, its metrics."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl

from foresail.control.policy import Policy, parse_policy
from foresail.metrics.jobs import whole_jobs
from foresail.metrics.summary import deadline_metrics
from foresail.model.decision import Decision
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
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
from foresail_studies.study import GridPoint, Measure, StudyParameters, generated

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
            workload, start_delay_seconds=self.start_delay_seconds, runtime_noise=self.runtime_noise
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


@dataclass(frozen=True, slots=True)
class SharedTrial(CycleTrial):
    """One on machines that tasks share; the workload knows what each of them uses."""

    machines: int
    """How many there are, all like those of the workload, however many it was made for."""

    def measure(self) -> dict[str, float]:
        """Deadlines, goodput in cpu hours that were used, contention, and latency of decisions."""
        workload = _on_machines(generated(self.workload, self.seed), self.machines)
        scenario = self.scenario(workload, share_nodes=True)
        controller = controller_of(scenario)
        clock = clocked(controller.scheduler)
        schedule = run_by_events(scenario, controller)
        deadlines = deadline_metrics(schedule)
        return {
            "slo_miss_rate": deadlines.slo_miss_rate,
            "slo_never_started": float(deadlines.slo_never_started),
            "best_effort_latency_seconds": deadlines.best_effort_latency_seconds,
            "preemptions": float(deadlines.preemptions),
            **goodput_of(schedule, workload),
            **contention_of(schedule, self.machines),
            **clock.metrics(),
        }


def goodput_of(schedule: Schedule, workload: Workload) -> dict[str, float]:
    """Cpu hours of completed jobs, each as much as its tasks need, however they were run.

    ``slo_used_hours`` are of deadlines that were met. ``used_hours_by_the_end`` and those of jobs
    without a deadline are of what was done when the last job was submitted, for a simulation goes
    on until no job can run; ``unfinished_jobs`` never were done.
    """
    rows = whole_jobs(schedule).join(_used_hours(workload), on="job_id", how="left")
    done = rows.filter(pl.col("ended_because") == EndedBecause.COMPLETED.value)
    by_then = done.filter(pl.col("end_seconds") <= rows["submit_seconds"].max())
    on_time = done.filter(pl.col("end_seconds") <= pl.col("deadline_seconds"))
    best_effort = by_then.filter(pl.col("deadline_seconds").is_null())
    return {
        "slo_used_hours": float(on_time["used_hours"].sum()),
        "used_hours_by_the_end": float(by_then["used_hours"].sum()),
        "best_effort_used_hours_by_the_end": float(best_effort["used_hours"].sum()),
        "unfinished_jobs": float(rows["job_id"].n_unique() - done["job_id"].n_unique()),
    }


def contention_of(schedule: Schedule, machines: int) -> dict[str, float]:
    """Throttles per machine and hour from the first submission to the last end, and evictions."""
    rows = schedule.jobs
    begin, end = rows.select(pl.col("submit_seconds").min(), pl.col("end_seconds").max()).row(0)
    hours = 0.0 if end is None else (end - begin) / _HOUR
    throttles = schedule.meta.counters["cpu_throttles"]
    return {
        "throttles_per_machine_hour": throttles / (machines * hours) if hours else 0.0,
        "memory_evictions": schedule.meta.counters["memory_evictions"],
    }


def _used_hours(workload: Workload) -> pl.DataFrame:
    """Cpu hours of each job's tasks by themselves."""
    if workload.usage is None:
        return pl.DataFrame(schema={"job_id": pl.String, "used_hours": pl.Float64})
    lasts = pl.col("end_seconds") - pl.col("start_seconds")
    used = (pl.col("average_cpus") * lasts).sum() / _HOUR
    return workload.usage.group_by("job_id").agg(used.alias("used_hours"))


def _on_machines(workload: Workload, machines: int) -> Workload:
    """The same jobs on another number of the same machines."""
    if workload.nodes is None:
        return workload
    nodes = workload.nodes.with_columns(count=pl.lit(machines).cast(pl.Int64))
    processors = round(machines * nodes["cpus"][0])
    meta = dataclasses.replace(workload.meta, processors=processors)
    return dataclasses.replace(workload, nodes=nodes, meta=meta)


LATENCY: Final = Measure("best_effort_latency_seconds", "best-effort latency", "duration")
BEST_EFFORT_JOBS: Final = Measure(
    "best_effort_completed_by_the_end", "best-effort jobs done by the last submission"
)
PREEMPTIONS: Final = Measure("preemptions", "jobs stopped")
CYCLE: Final = Measure("cycle_milliseconds_median", "median cycle (ms)")
SLOW_CYCLE: Final = Measure("cycle_milliseconds_p99", "99 % of cycles below (ms)")


@dataclass(frozen=True, slots=True)
class TrialParameters(StudyParameters):
    """Parameters that the studies of trials share."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("hours", "cycle_seconds")

    hours: float = 5.0
    """Length of the run."""
    discarded_hours: float = 1.0
    """Jobs submitted in so many first hours of it, when the machine fills, are not measured."""
    cycle_seconds: float = 2.0
    """How often the scheduler is asked."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        if not 0.0 <= self.discarded_hours < self.hours:
            raise InputError(
                "nothing would be measured",
                field="discarded_hours",
                value=self.discarded_hours,
                expected=f"from 0 to less than {self.hours:g}, the hours of the run",
            )


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """A place in a study, and what is run there: short forms of the run and of its history.

    ``conditions`` are further fields of ``Trial``, of the cluster and of what jobs request.
    """

    workload: str
    history: str | None
    group: str
    x: float | None = None
    conditions: Mapping[str, float] = field(default_factory=dict)


def cases_of(
    parameters: TrialParameters, settings: Iterable[TrialSetting], policies: Mapping[str, str]
) -> list[GridPoint]:
    """Every system with every seed in some settings.

    ``policies`` has the policy of each system by its name; ``{seed}`` in it becomes the seed.
    """
    return [
        GridPoint(
            each.group,
            each.x,
            system,
            seed,
            Trial(
                each.workload,
                each.history,
                seed,
                policy.replace("{seed}", str(seed)),
                parameters.cycle_seconds,
                discarded_hours=parameters.discarded_hours,
                **each.conditions,
            ),
        )
        for each in settings
        for seed in range(parameters.seeds)
        for system, policy in policies.items()
    ]


def named(*systems: str) -> dict[str, str]:
    """Systems that are named policies."""
    return {system: system for system in systems}


def beginning_of(parameters: TrialParameters) -> str:
    """Return a sentence on the hours in which the machine fills, for a study's notes."""
    if parameters.discarded_hours == 0.0:
        return "Runs begin on an empty machine, and all of their jobs are counted."
    first = f"{parameters.discarded_hours:g} of {parameters.hours:g} hours"
    return (
        f"Runs begin on an empty machine; jobs submitted in the first {first} are run and not "
        "counted."
    )
