"""One simulated run of a study on shared machines: deadlines, work that got done, contention."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import polars as pl

from foresail.metrics.jobs import whole_jobs
from foresail.metrics.summary import deadline_metrics
from foresail.model.outcome import EndedBecause
from foresail.scenario.beginning import controller_of
from foresail.scenario.by_events import run_by_events
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload
from foresail_studies.generated import generated
from foresail_studies.trial import CycleTrial, clocked

_HOUR = 3600.0


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
