"""The schedule of a run, a row for each attempt, and its jobs as a workload to be replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

import polars as pl

from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import DeadlineValue, Job, StartConditions
from foresail.model.view import Rejection, Reservation
from foresail.record.job_life import EndedAttempt, JobHistory
from foresail.record.log_text import LogClock
from foresail.record.records import Record
from foresail.record.run_fold import RunFold
from foresail.traces import schema
from foresail.traces.schema import NODES
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

ScheduleRow = tuple[Any, ...]
"""Entries that an attempt adds to a schedule: columns ``_OF_ATTEMPT``; a part's ``_OF_PART``."""

_OF_ATTEMPT: Final = (
    "job_id",
    "attempt",
    "start_seconds",
    "end_seconds",
    "ended_because",
    "predicted_seconds",
    "predicted_low_seconds",
    "predicted_high_seconds",
    "corrections",
    "backfilled",
    "placement",
)


_OF_PART: Final = ("stage", "tasks", "cpus")
_HELD: Final = "held_cpus"


def attempt_row(
    outcome: Outcome,
    predicted_seconds: tuple[float, float, float],
    corrections: int,
    backfilled: bool,
    placement: Placement,
) -> ScheduleRow:
    """The row of an attempt that has ended.

    ``predicted_seconds`` are mean, 10 % and 90 % quantile of what was believed of its job's
    runtime; ``backfilled`` says whether it started before a job that had been submitted earlier.
    """
    return (
        outcome.job_id,
        outcome.attempt,
        outcome.start_seconds,
        outcome.end_seconds,
        str(outcome.ended_because),
        *predicted_seconds,
        corrections,
        backfilled,
        placement_text(placement),
    )


def part_columns(outcome: Outcome, cpus: float) -> ScheduleRow:
    """Return the last columns of the row of a part of a job; ``cpus`` are what it held."""
    return outcome.stage, ",".join(map(str, outcome.tasks)) or None, cpus


def was_accepted(answer: Reservation | Rejection | None) -> bool | None:
    """Return whether a job's request for a reservation was accepted; None where it made none."""
    return None if answer is None else isinstance(answer, Reservation)


def schedule_table(rows: Iterable[ScheduleRow], jobs: pl.DataFrame) -> pl.DataFrame:
    """The rows and what is said of their jobs, by ``schema.SCHEDULE`` and ``schema.PARTS``.

    ``rows`` of ``attempt_row`` come in any order; ``jobs`` has the other columns, a row for each
    job in order of submission. A job without an attempt has a row without one.
    """
    rows = list(rows)
    whole = [row for row in rows if len(row) == len(_OF_ATTEMPT)]
    parts = [row for row in rows if len(row) != len(_OF_ATTEMPT)]
    schemas = {name: schema.SCHEDULE[name] for name in _OF_ATTEMPT}
    attempts = pl.DataFrame(whole, schema=schemas, orient="row").sort("attempt")
    if parts:
        kinds = {**schema.SCHEDULE, **schema.PARTS}
        schemas = {name: kinds[name] for name in (*_OF_ATTEMPT, *_OF_PART)}
        table = pl.DataFrame(parts, schema=schemas, orient="row").rename({"cpus": _HELD})
        by_start = table.sort("start_seconds", maintain_order=True)
        attempts = pl.concat([attempts, by_start], how="diagonal")
    table = jobs.join(attempts, on="job_id", how="left", maintain_order="left_right")
    if parts:
        runtime = pl.col("nominal_runtime_seconds")
        table = table.with_columns(
            cpus=pl.coalesce(_HELD, "cpus"),
            nominal_runtime_seconds=pl.when(pl.col("stage").is_null()).then(runtime),
        )
    columns = {**schema.SCHEDULE, **schema.PARTS} if parts else schema.SCHEDULE
    return schema.laid_out(table, columns)


def with_eligibility(
    table: pl.DataFrame, jobs: Iterable[Job], kept_back_until: Mapping[str, float]
) -> pl.DataFrame:
    """The schedule, saying of some jobs when they were eligible: of all that waited for anything.

    That is their submission or begin, the last end of a job that they waited for, or what is said
    of them (seconds, by id); and their start, if a job was only to have started, or failed, before.
    """
    jobs = list(jobs)
    if not (jobs or kept_back_until):
        return table
    ends = dict(table.group_by("job_id").agg(pl.col("end_seconds").max()).drop_nulls().iter_rows())
    since = {
        job.job_id: max([job.eligible_seconds, *(ends.get(each, 0.0) for each in job.after)])
        for job in jobs
    }
    since |= {each: max(since.get(each, 0.0), kept_back_until[each]) for each in kept_back_until}
    logged = pl.col("job_id").replace_strict(since, default=None, return_dtype=pl.Float64)
    eligible = pl.when(logged.is_not_null()).then(pl.min_horizontal(logged, "start_seconds"))
    return table.with_columns(eligible_seconds=eligible)


def placement_text(placement: Placement) -> str:
    """The place, or ``place:tasks`` separated by commas if several; nodes where they are named."""
    places = placement.places
    if len(places) == 1:
        return places[0][0]
    return ",".join(f"{name}:{tasks}" for name, tasks in places)


_STATUSES: Final[Mapping[EndedBecause, str]] = {
    EndedBecause.COMPLETED: "completed",
    EndedBecause.CANCELLED: "cancelled",
}


def workload_of(records: Iterable[Record], source: str) -> Workload:
    """The jobs of a run that have ended after they ran, in order of submission, from its whole log.

    Others have no runtime to be replayed with: they are left out and counted (``meta.header``). Of
    one that was preempted or lost, the last attempt counts. What waited for a job that is left out
    does not wait for it any more, nor what did for another reason than that it completes. A job
    that was to begin later comes then, as Slurm counts. Nodes are those that there were in the end.
    """
    run, clock = RunFold(), LogClock()
    for record in records:
        clock.see(record)
        run.take(record)
    cluster = run.state.cluster
    submitted, ran = run.history.submitted, run.history.ended
    rows = [_row(job, ran[job_id], ran) for job_id, job in submitted.items() if job_id in ran]
    zero = min((row["submit_seconds"] for row in rows), default=clock.zero)
    for row in rows:
        row["submit_seconds"] -= zero
        if row["deadline_seconds"] is not None:
            row["deadline_seconds"] -= zero
    table = jobs_table(pl.DataFrame(rows, schema=schema.JOBS).to_dict())
    begin = clock.start_unix_seconds
    meta = WorkloadMeta(
        source=source,
        reader="foresail run",
        processors=int(cluster.total.cpus),
        origin_unix_seconds=None if begin is None else begin + zero - clock.zero,
        header={"left out": str(len(submitted) - len(rows))},
    )
    return Workload(table, meta, _nodes(cluster))


def _nodes(cluster: Cluster) -> pl.DataFrame | None:
    """Return the nodes' resources; None where they have no names."""
    rows = [
        {
            "node": node.name,
            "partition": partition.name,
            "count": 1,
            "cpus": node.total.cpus,
            "memory_bytes": node.total.memory_bytes,
            "gpus": node.total.gpus,
            "model": node.attributes.get("model"),
        }
        for partition in cluster.partitions
        for node in partition.nodes
    ]
    return pl.DataFrame(rows, NODES) if rows else None


def _row(job: Job, outcome: Outcome, ran: Mapping[str, Outcome]) -> dict[str, Any]:
    stage, value = job.stages[0], job.value
    conditions = job.conditions or StartConditions()
    otherwise = {job_id for each in conditions.dependencies for job_id in each.job_ids}
    after = [job_id for job_id in job.after if job_id in ran and job_id not in otherwise]
    cpu_time = outcome.used.get("cpu_time")
    return {
        "job_id": job.job_id,
        "submit_seconds": job.eligible_seconds,
        "recorded_wait_seconds": outcome.start_seconds - job.eligible_seconds,
        "runtime_seconds": outcome.runtime_seconds,
        "tasks": job.tasks,
        "cpus_per_task": stage.request.cpus,
        "memory_bytes_per_task": stage.request.memory_bytes or None,
        "gpus_per_task": stage.request.gpus,
        "requested_seconds": job.requested_seconds,
        "used_cpu_seconds": None if cpu_time is None else cpu_time / stage.request.cpus,
        "used_memory_bytes": outcome.used.get("memory_max"),
        "status": _STATUSES.get(outcome.ended_because, "failed"),
        "user": job.user,
        "executable": job.name,
        "after_jobs": ",".join(after) or None,
        "deadline_seconds": job.deadline_seconds,
        "value": value.value if isinstance(value, DeadlineValue) else None,
    }


_OF_JOB: Final[Mapping[str, Callable[[EndedAttempt], Any]]] = {
    "job_id": attrgetter("job.job_id"),
    "submit_seconds": attrgetter("job.submit_seconds"),
    "cpus": attrgetter("job.cpus"),
    "user": attrgetter("job.user"),
    "requested_seconds": attrgetter("job.requested_seconds"),
    "deadline_seconds": attrgetter("job.deadline_seconds"),
    "accepted": lambda past: was_accepted(past.running.reservation),
}
"""Fields of a job that never change, by an attempt of it."""


def table_of_run(jobs: JobHistory) -> pl.DataFrame:
    """One row per attempt that ended, by job in order of submission; as ``schema.SCHEDULE``."""
    latest = {past.job.job_id: past for past in jobs.past}
    ran = [latest[job_id] for job_id in jobs.submitted if job_id in latest]
    columns = {name: [*map(field, ran)] for name, field in _OF_JOB.items()}
    table = pl.DataFrame(columns, {name: schema.SCHEDULE[name] for name in _OF_JOB})
    waited = (each.job for each in latest.values() if each.job.after or each.job.conditions)
    return with_eligibility(schedule_table(map(_ended_row, jobs.past), table), waited, {})


def _ended_row(past: EndedAttempt) -> ScheduleRow:
    ran, belief = past.running, past.running.prediction
    predicted = belief.mean(), belief.quantile(0.10), belief.quantile(0.90)
    return attempt_row(past.outcome, predicted, ran.corrections, ran.backfilled, ran.placement)


def with_usage(workload: Workload, samples: Sequence[Mapping[str, Any]]) -> Workload:
    """The workload with a usage table: a row a sample, each job as its one task.

    A sample is what an attempt used from one moment to another (Unix seconds): ``job_id``,
    ``start_seconds``, ``end_seconds``, ``average_cpus`` and ``memory_bytes``. It is divided evenly
    among the tasks of a job, for the table is per task; of jobs that are not in the workload there
    are no rows. Without samples there is no table.
    """
    if not samples:
        return workload
    tasks = workload.jobs.select("job_id", "tasks")
    zero = workload.meta.origin_unix_seconds or 0.0
    per_task = pl.DataFrame(samples).join(tasks, on="job_id")
    known = {
        "task": pl.lit(0),
        "start_seconds": pl.col("start_seconds") - zero,
        "end_seconds": pl.col("end_seconds") - zero,
        "average_cpus": pl.col("average_cpus") / pl.col("tasks"),
        "average_memory_bytes": pl.col("memory_bytes") / pl.col("tasks"),
        "job_id": pl.col("job_id"),
    }
    table = per_task.select(
        known.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in schema.USAGE.items()
    )
    return (
        replace(workload, usage=table.sort("job_id", "start_seconds")) if len(table) else workload
    )
