"""Use by tasks: the tasks and usage tables, and quantities of jobs made of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.errors import UnknownNameError
from foresail.traces import schema
from foresail.traces.schema import STAGE
from foresail.traces.workload import Workload


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
    """The columns of a usage table by which two rows are of one task."""
    return ("job_id", schema.STAGE, "task") if schema.STAGE in usage.columns else ("job_id", "task")


QUANTITIES: Final = MappingProxyType(
    {
        "runtime": "seconds",
        "cpu": "cores",
        "memory": "bytes",
        "cpu_time": "core seconds",
        "memory_time": "byte seconds",
        "cpu_max": "cores",
        "memory_max": "bytes",
        "cpu_spread": "cores",
        "memory_spread": "bytes",
    }
)
"""Names of the quantities and their units; all but the runtime are per task. Bytes are shares of a
machine where ``meta.header`` has ``memory_unit``."""

_VALUE: Final = "__value__"
_SECONDS: Final = pl.col("end_seconds") - pl.col("start_seconds")


def quantity(workload: Workload, name: str) -> NDArray[np.float64]:
    """A value per job, shape (jobs,), nan where the workload does not know it.

    ``cpu`` and ``memory`` are averages over the tasks' measured time, ``cpu_time`` and
    ``memory_time`` sums over it per measured task, ``cpu_max`` and ``memory_max`` the highest of
    any task and period (paper 000, 5.1.1 and 5.3.1), ``cpu_spread`` and ``memory_spread`` the
    standard deviation of the tasks' averages, of jobs with several. They come from the usage table
    where there is one, else from what the jobs table says was used, which has neither of these.

    Raises ``UnknownNameError`` if ``name`` is not one of ``QUANTITIES``.
    """
    if name not in QUANTITIES:
        raise UnknownNameError("quantity", name, QUANTITIES)
    if name == "runtime":
        values = workload.jobs["runtime_seconds"]
    elif workload.usage is None:
        found = workload.jobs.with_columns(_FROM_JOBS[name].cast(pl.Float64).alias(_VALUE))
        values = found[_VALUE]
    else:
        rows = _numbered_through(workload.usage)
        if name in _OF_TASKS:
            by_task = rows.group_by("job_id", "task", maintain_order=True)
            rows = by_task.agg(_average(_OF_TASKS[name]).alias(_VALUE))
        per_job = rows.group_by("job_id").agg(_FROM_USAGE[name].alias(_VALUE))
        values = workload.jobs.join(per_job, on="job_id", how="left", maintain_order="left")[_VALUE]
    return values.fill_null(np.nan).to_numpy().astype(np.float64)


def used_by_job(workload: Workload) -> dict[str, dict[str, float]]:
    """All quantities but the runtime that are known of each job, by its id."""
    names = [name for name in QUANTITIES if name != "runtime"]
    columns = [quantity(workload, name).tolist() for name in names]
    rows = zip(workload.jobs["job_id"].to_list(), *columns, strict=True)
    return {
        job_id: {name: value for name, value in zip(names, values, strict=True) if value == value}
        for job_id, *values in rows
    }


def _numbered_through(usage: pl.DataFrame) -> pl.DataFrame:
    """The same with the tasks of a job numbered through all of its stages, where it names them."""
    if STAGE not in usage.columns:
        return usage
    return usage.with_columns(task=pl.struct(STAGE, "task").rank("dense").over("job_id"))


def _integral(column: str) -> pl.Expr:
    """Value times seconds over the periods in which the value is known."""
    return (pl.col(column) * _SECONDS).sum()


def _if_known(column: str, value: pl.Expr) -> pl.Expr:
    return pl.when(pl.col(column).is_not_null().any()).then(value)


def _average(column: str) -> pl.Expr:
    seconds = _SECONDS.filter(pl.col(column).is_not_null()).sum()
    return pl.when(seconds > 0).then(_integral(column) / seconds)


def _per_task(column: str) -> pl.Expr:
    tasks = pl.col("task").filter(pl.col(column).is_not_null()).n_unique()
    return _if_known(column, _integral(column) / tasks)


_OF_TASKS: Final = {"cpu_spread": "average_cpus", "memory_spread": "average_memory_bytes"}
_SPREAD: Final = pl.when(pl.col(_VALUE).count() > 1).then(pl.col(_VALUE).std(ddof=0))

_FROM_USAGE: Final = {
    "cpu": _average("average_cpus"),
    "memory": _average("average_memory_bytes"),
    "cpu_time": _per_task("average_cpus"),
    "memory_time": _per_task("average_memory_bytes"),
    "cpu_max": pl.col("maximum_cpus").max(),
    "memory_max": pl.col("maximum_memory_bytes").max(),
    **dict.fromkeys(_OF_TASKS, _SPREAD),
}

_CPU_TIME: Final = pl.col("used_cpu_seconds") * pl.col("cpus_per_task")
_RAN: Final = pl.col("runtime_seconds") > 0

_FROM_JOBS: Final = {
    "cpu": pl.when(_RAN).then(_CPU_TIME / pl.col("runtime_seconds")),
    "memory": pl.col("used_memory_bytes"),
    "cpu_time": _CPU_TIME,
    "memory_time": pl.col("used_memory_bytes") * pl.col("runtime_seconds"),
    **dict.fromkeys(("cpu_max", "memory_max", *_OF_TASKS), pl.lit(None)),
}
