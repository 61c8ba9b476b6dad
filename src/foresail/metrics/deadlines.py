"""Are deadlines met, and what gets done: misses, goodput, latency, lost work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import polars as pl

from foresail.metrics.jobs import attempts, went_back, whole_jobs
from foresail.metrics.usage import Span, held_share
from foresail.model.outcome import EndedBecause
from foresail.traces.schedule import Schedule

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class DeadlineMetrics:
    """How the jobs with deadlines (SLO jobs) and the others (best-effort jobs) of a schedule fared.

    Spec 3sigma-distsched section 6.4. Goodput is the work of jobs that have completed, in cpu hours
    of their nominal runtimes, so that a job does not count for more where it runs slowly; these are
    the machine hours of the published studies where a node has one cpu.
    """

    slo_jobs: int
    slo_missed: int
    slo_never_started: int
    """Jobs with a deadline; those that have not completed by it, for whatever reason; those of them
    that never ran."""
    slo_miss_rate: float
    """Share of one; NaN where no job has a deadline."""
    accepted_slo_jobs: int
    """SLO jobs that were promised nodes at submission."""
    slo_attainment: float
    accepted_slo_attainment: float
    unreserved_slo_attainment: float
    """Shares of SLO jobs that completed by their deadline: of all; of those that were promised
    nodes; of those that asked for that in vain. NaN where there are none (spec tetrisched section
    10)."""
    goodput_hours: float
    slo_goodput_hours: float
    slo_on_time_goodput_hours: float
    best_effort_goodput_hours: float
    """Of all jobs; of those with deadlines; of those that met theirs; of the others."""
    best_effort_latency_seconds: float
    """Mean time from submission to the end of best-effort jobs that have completed; NaN without."""
    best_effort_completed: int
    """How many these are."""
    effective_load: float
    """Cpu time that attempts held between the first and the last submission, lost ones and slow
    ones too, as a share of what there was; NaN where all jobs come at once."""
    preemptions: int
    lost_attempts: int
    """Attempts that were stopped for other jobs; that ended with a node."""
    lost_hours: float
    """Cpu hours that these held: work that was done for nothing."""
    killed_jobs: int
    killed_hours: float
    """Jobs that were ended at their requested time, unfinished, and the cpu hours that they held;
    these count as used, and are no goodput."""


def deadline_metrics(schedule: Schedule) -> DeadlineMetrics:
    """The metrics of one schedule."""
    rows = whole_jobs(schedule)
    slo = pl.col("deadline_seconds").is_not_null()
    done = rows.filter(pl.col("ended_because") == EndedBecause.COMPLETED.value)
    on_time = done.filter(pl.col("end_seconds") <= pl.col("deadline_seconds"))
    slo_jobs = _jobs(rows.filter(slo))
    missed = slo_jobs - _jobs(on_time)
    accepted, rejected = (rows.filter(slo, accepted=answer) for answer in (True, False))
    best_effort = done.filter(~slo)
    killed = schedule.jobs.filter(pl.col("ended_because") == EndedBecause.LIMIT.value)
    latency = (best_effort["end_seconds"] - best_effort["submit_seconds"]).to_numpy()
    return DeadlineMetrics(
        slo_jobs=slo_jobs,
        slo_missed=missed,
        slo_never_started=_jobs(rows.filter(slo & pl.col("start_seconds").is_null())),
        slo_miss_rate=missed / slo_jobs if slo_jobs else math.nan,
        accepted_slo_jobs=_jobs(accepted),
        slo_attainment=_attainment(on_time, rows.filter(slo)),
        accepted_slo_attainment=_attainment(on_time.filter(accepted=True), accepted),
        unreserved_slo_attainment=_attainment(on_time.filter(accepted=False), rejected),
        goodput_hours=_hours(done),
        slo_goodput_hours=_hours(done.filter(slo)),
        slo_on_time_goodput_hours=_hours(on_time),
        best_effort_goodput_hours=_hours(best_effort),
        best_effort_latency_seconds=float(latency.mean()) if latency.size else math.nan,
        best_effort_completed=_jobs(best_effort),
        effective_load=effective_load(schedule),
        preemptions=_ended(schedule.jobs, EndedBecause.PREEMPTED),
        lost_attempts=_ended(schedule.jobs, EndedBecause.LOST),
        lost_hours=_held_hours(schedule.jobs.filter(went_back())),
        killed_jobs=_jobs(killed),
        killed_hours=_held_hours(killed),
    )


def effective_load(schedule: Schedule) -> float:
    """Cpu time held between the first and the last submission, as a share of what there was.

    Unlike ``usage.utilization`` it counts what was lost, and all submissions, also of jobs that
    never started.
    """
    submitted = schedule.jobs["submit_seconds"].to_numpy()
    begin, end = (submitted.min(), submitted.max()) if submitted.size else (0.0, 0.0)
    return held_share(schedule.meta, attempts(schedule), Span(float(begin), float(end)))


def _jobs(rows: pl.DataFrame) -> int:
    return rows["job_id"].n_unique()


def _attainment(on_time: pl.DataFrame, rows: pl.DataFrame) -> float:
    jobs = _jobs(rows)
    return _jobs(on_time) / jobs if jobs else math.nan


def _held_hours(rows: pl.DataFrame) -> float:
    held = pl.col("cpus") * (pl.col("end_seconds") - pl.col("start_seconds"))
    return float(rows.select(held.sum()).item()) / _HOUR


def _hours(rows: pl.DataFrame) -> float:
    """Cpu hours of nominal runtimes; of real ones where these are all that is known."""
    real = pl.col("end_seconds") - pl.col("start_seconds")
    runtime = pl.coalesce("nominal_runtime_seconds", real)
    return float(rows.select((pl.col("cpus") * runtime).sum()).item()) / _HOUR


def _ended(rows: pl.DataFrame, because: EndedBecause) -> int:
    return rows.filter(pl.col("ended_because") == because.value).height
