"""What jobs were measured to use, as the usage table of an exported session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace

import polars as pl

from foresail.live.cluster_plugin import UseSample
from foresail.traces import schema
from foresail.traces.workload import Workload


def with_usage(workload: Workload, samples: Iterable[UseSample]) -> Workload:
    """The workload with a usage table: a row a sample, each job as its one task.

    What was used is divided evenly among the tasks of a job, for the table is per task; of jobs
    that are not in the workload nothing is told. Without samples there is no table.
    """
    rows = [asdict(each) for each in samples]
    if not rows:
        return workload
    tasks = workload.jobs.select("job_id", "tasks")
    zero = workload.meta.origin_unix_seconds or 0.0
    per_task = pl.DataFrame(rows).join(tasks, on="job_id")
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
