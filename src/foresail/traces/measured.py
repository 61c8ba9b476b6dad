"""The tasks and usage tables, made from some of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.traces import schema


def tasks_table(data: pl.DataFrame | Mapping[str, Any]) -> pl.DataFrame:
    """A tasks table, sorted by job and task; absent columns become null, further ones go.

    Tasks of the same number stay in order, so that stages do not change places.
    """
    table = schema.laid_out(pl.DataFrame(data), schema.TASKS)
    return table.sort("job_id", "task", maintain_order=True)


def usage_table(data: pl.DataFrame | Mapping[str, Any]) -> pl.DataFrame:
    """A usage table, sorted by job, stage, task and start; absent columns become null, others go.

    Stages are a further column, ``schema.STAGE``, where they are given.
    """
    given, columns = pl.DataFrame(data), schema.USAGE
    if schema.STAGE in given.columns:
        columns = {**columns, schema.STAGE: pl.String()}
    table = schema.laid_out(given, columns)
    return table.sort(*task_keys(table), "start_seconds")


def task_keys(usage: pl.DataFrame) -> tuple[str, ...]:
    """The columns of a usage table that tell whether two rows are of one task."""
    return ("job_id", schema.STAGE, "task") if schema.STAGE in usage.columns else ("job_id", "task")


def with_use(jobs: pl.DataFrame, usage: pl.DataFrame) -> pl.DataFrame:
    """The jobs with what they used on average per task, from the usage table.

    As elsewhere in the jobs table, ``used_cpu_seconds`` is per requested cpu; it is null where the
    request is unknown or 0. Sums go row by row, so that they are the same on every machine.
    """
    row_of_job = jobs.select("job_id").with_row_index("row")
    rows = usage.join(row_of_job, on="job_id", how="inner", maintain_order="left")
    row = rows["row"].to_numpy()
    seconds = (rows["end_seconds"] - rows["start_seconds"]).to_numpy()
    cpu = np.bincount(row, seconds * _known(rows["average_cpus"]), jobs.height)
    memory = np.bincount(row, seconds * _known(rows["average_memory_bytes"]), jobs.height)
    remembered = np.where(rows["average_memory_bytes"].is_not_null(), seconds, 0.0)
    memory_seconds = np.bincount(row, remembered, jobs.height)
    tasks = np.bincount(rows.unique(["row", *task_keys(rows)])["row"], minlength=jobs.height)
    cpus = pl.col("cpus_per_task")
    used = pl.DataFrame({"cpu": cpu, "memory": memory, "seconds": memory_seconds, "tasks": tasks})
    found = used.select(
        cpu=pl.when(pl.col("tasks") > 0).then(pl.col("cpu") / pl.col("tasks")),
        memory=pl.when(pl.col("seconds") > 0).then(pl.col("memory") / pl.col("seconds")),
    )
    return jobs.with_columns(
        used_cpu_seconds=pl.when(cpus > 0).then(found["cpu"] / cpus),
        used_memory_bytes=found["memory"],
    )


def _known(values: pl.Series) -> NDArray[np.float64]:
    """The values with 0 for what is unknown."""
    return values.fill_null(0.0).to_numpy()
