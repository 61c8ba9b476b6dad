"""A run as a workload: its jobs as they came and how long they really ran, to be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import polars as pl

from foresail.model.cluster import Cluster
from foresail.model.job import DeadlineValue, Job, StartConditions
from foresail.model.outcome import EndedBecause, Outcome
from foresail.record.log_clock import LogClock
from foresail.record.records import Record
from foresail.record.run_fold import RunFold
from foresail.traces.schema import NODES
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

_STATUSES: Final[Mapping[EndedBecause, str]] = {
    EndedBecause.COMPLETED: "completed",
    EndedBecause.CANCELLED: "cancelled",
}
_SCHEMA: Final = {
    "job_id": pl.String(),
    "submit_seconds": pl.Float64(),
    "recorded_wait_seconds": pl.Float64(),
    "runtime_seconds": pl.Float64(),
    "tasks": pl.Int64(),
    "cpus_per_task": pl.Float64(),
    "memory_bytes_per_task": pl.Float64(),
    "gpus_per_task": pl.Float64(),
    "requested_seconds": pl.Float64(),
    "used_cpu_seconds": pl.Float64(),
    "used_memory_bytes": pl.Float64(),
    "status": pl.String(),
    "user": pl.String(),
    "executable": pl.String(),
    "after_jobs": pl.String(),
    "deadline_seconds": pl.Float64(),
    "value": pl.Float64(),
}


def workload_of(records: Iterable[Record], source: str) -> Workload:
    """The jobs of a run that have ended after they ran, in order of submission.

    Jobs that were withdrawn before, and those that run or wait yet, have no runtime to be replayed
    with: they are left out and counted (``meta.header``). Of one that was preempted or lost, the
    last attempt counts. What waited for a job that is left out does not wait for it any more, nor
    what did for another reason than that it completes. A job that was to begin later comes then: it
    has waited since it might start, as Slurm counts. Nodes are those that there were in the end.

    Parameters
    ----------
    records
        A log from its manifest on.
    source
        What the workload is said to come from.
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
    table = jobs_table(pl.DataFrame(rows, schema=_SCHEMA).to_dict())
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
    """What nodes had; None where they have no names."""
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
        "used_cpu_seconds": _share(outcome.used.get("cpu_time"), stage.request.cpus),
        "used_memory_bytes": outcome.used.get("memory_max"),
        "status": _STATUSES.get(outcome.ended_because, "failed"),
        "user": job.user,
        "executable": job.name,
        "after_jobs": ",".join(after) or None,
        "deadline_seconds": job.deadline_seconds,
        "value": value.value if isinstance(value, DeadlineValue) else None,
    }


def _share(amount: float | None, among: float) -> float | None:
    return None if amount is None else amount / among
