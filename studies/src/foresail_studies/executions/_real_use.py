"""Real use of tasks over time: the truth of shared machines, checked before it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.traces.schema import STAGE, TASKS
from foresail.traces.workload import ONLY_STAGE, Workload
from foresail_studies.executions.kernels.shared_machines import (
    SEGMENT_COLUMNS,
    SEGMENT_CPUS,
    SEGMENT_MEMORY,
    SEGMENT_SECONDS,
)
from foresail_studies.use_record import EVICTION_SHARE

_ROUNDING_SECONDS: Final = 1e-6
_ROW: Final = "row"
_GIVEN: Final = "given"
_TASK: Final = ("job_id", STAGE, "task")


@dataclass(frozen=True)
class RealUse:
    """Segments of use of every task."""

    segments: NDArray[np.float64]
    """Seconds at full pace, cpus and bytes of memory; shape (segments, 3)."""
    bounds: Mapping[tuple[str, str], NDArray[np.int64]]
    """Per job id and name of a stage (empty: the only one), the first segment of each of its tasks
    and, at last, the end of the last task's; shape (tasks + 1,)."""

    def of_tasks(self, job_id: str, stage: str, tasks: Iterable[int]) -> dict[str, float]:
        """Return the use of a stage's tasks, as ``foresail.traces.measured`` has it of a job."""
        bounds = self.bounds[job_id, stage]
        parts = [self.segments[bounds[task] : bounds[task + 1]] for task in tasks]
        rows = np.concatenate(parts)
        seconds = rows[:, SEGMENT_SECONDS]
        cpus, memory = rows[:, SEGMENT_CPUS], rows[:, SEGMENT_MEMORY]
        work, held, lasted = float(seconds @ cpus), float(seconds @ memory), float(seconds.sum())
        used = {
            "cpu": work / lasted,
            "memory": held / lasted,
            "cpu_time": work / len(parts),
            "memory_time": held / len(parts),
            "cpu_max": float(cpus.max()),
            "memory_max": float(memory.max()),
        }
        if len(parts) > 1:
            averages = [
                each[:, SEGMENT_SECONDS] @ each / each[:, SEGMENT_SECONDS].sum() for each in parts
            ]
            spreads = np.std(averages, axis=0)
            used["cpu_spread"] = float(spreads[SEGMENT_CPUS])
            used["memory_spread"] = float(spreads[SEGMENT_MEMORY])
        return used


def real_use(workload: Workload, cluster: Cluster) -> RealUse:
    """Return what every task uses: the averages of the usage table, period by period.

    Raises ``InputError`` if there is no usage table, a number in it is none or negative, a task's
    periods are not one after the other, end before the task does, or are missing, are of a stage
    that the job does not have, or no machine of the cluster can hold what a task asks for or uses.
    """
    if cluster.has_speeds:
        raise InputError(
            "tasks cannot share nodes of different speeds: what they use is known at speed 1",
            source=workload.meta.source,
            field="speed",
            expected="1 for all nodes",
        )
    usage = workload.usage
    if usage is None or not usage.height:
        raise InputError(
            "the workload does not say what tasks use",
            source=workload.meta.source,
            expected="a workload folder with a usage table",
        )
    source = workload.meta.source
    stages = _stages(workload)
    usage = _with_stages(usage.with_row_index(_ROW, offset=1), stages)
    _refuse_stages(usage, stages, source)
    _refuse_periods(usage, source)
    usage = usage.join(workload.jobs.select("job_id"), on="job_id", maintain_order="left")
    _refuse_series(usage, stages, workload)
    _refuse_wide(usage, workload, cluster)
    usage = usage.sort(*_TASK, maintain_order=True)
    segments = np.empty((usage.height, SEGMENT_COLUMNS))
    segments[:, SEGMENT_SECONDS] = (usage["end_seconds"] - usage["start_seconds"]).to_numpy()
    segments[:, SEGMENT_CPUS] = usage["average_cpus"].to_numpy()
    segments[:, SEGMENT_MEMORY] = usage["average_memory_bytes"].to_numpy()
    tasks = usage.group_by(*_TASK, maintain_order=True).len()
    ends = np.cumsum(tasks["len"].to_numpy().astype(np.int64))
    by_stage = tasks.group_by("job_id", STAGE, maintain_order=True).len()
    last = np.cumsum(by_stage["len"].to_numpy().astype(np.int64))
    begins = np.concatenate(([0], ends))
    bounds = {
        (job_id, stage): begins[end - count : end + 1]
        for (job_id, stage, count), end in zip(by_stage.iter_rows(), last, strict=True)
    }
    only = stages.select("job_id", "only").drop_nulls().iter_rows()
    bounds |= {(job_id, ""): bounds[job_id, stage] for job_id, stage in only}
    return RealUse(segments, bounds)


def _stages(workload: Workload) -> pl.DataFrame:
    """The stages of every job and how many tasks they have, as the job's specification has them.

    ``only`` is a stage's name where it is its job's only one.
    """
    jobs = workload.jobs.select("job_id", "tasks", "runtime_seconds")
    known = _tasks(workload).group_by("job_id", STAGE, maintain_order=True).agg(known=pl.len())
    stages = jobs.join(known, on="job_id", how="left", maintain_order="left").with_columns(
        pl.col(STAGE).fill_null(ONLY_STAGE), tasks=pl.coalesce("known", "tasks")
    )
    alone = pl.len().over("job_id") == 1
    return stages.with_columns(only=pl.when(alone).then(pl.col(STAGE)))


def _tasks(workload: Workload) -> pl.DataFrame:
    """The rows of the tasks table, every stage with its name; none without such a table."""
    tasks = pl.DataFrame(schema=TASKS) if workload.tasks is None else workload.tasks
    return tasks.with_columns(pl.col(STAGE).fill_null(ONLY_STAGE))


def _with_stages(usage: pl.DataFrame, stages: pl.DataFrame) -> pl.DataFrame:
    """The rows with the stage of each, and as it was given."""
    given = pl.col(STAGE) if STAGE in usage.columns else pl.lit(None, pl.String)
    only = stages.select("job_id", "only").drop_nulls()
    rows = usage.with_columns(given.alias(_GIVEN))
    rows = rows.join(only, on="job_id", how="left", maintain_order="left")
    return rows.with_columns(pl.coalesce(_GIVEN, "only", pl.lit(ONLY_STAGE)).alias(STAGE))


def _refuse_periods(usage: pl.DataFrame, source: str) -> None:
    """Numbers that are none, and periods that do not follow each other."""
    for name in ("average_cpus", "average_memory_bytes"):
        value = pl.col(name)
        bad = value.is_null() | ~value.is_finite() | (value < 0.0)
        _refuse_row(usage, bad, name, "a number, 0 or above", source)
    start, end = pl.col("start_seconds"), pl.col("end_seconds")
    never = start.is_null() | ~end.is_finite() | ~(end > start)
    _refuse_row(usage, never.fill_null(value=True), "end_seconds", "later than its start", source)
    before = end.shift().over(_TASK)
    apart = (start - before).abs() > _ROUNDING_SECONDS
    expected = "when the period before it ends"
    _refuse_row(usage, apart.fill_null(value=False), "start_seconds", expected, source)


def _refuse_stages(usage: pl.DataFrame, stages: pl.DataFrame, source: str) -> None:
    """Rows of stages that their jobs do not have."""
    of_jobs = usage.join(stages, on="job_id", how="semi", maintain_order="left")
    unknown = of_jobs.join(stages, on=["job_id", STAGE], how="anti", maintain_order="left")
    if unknown.height:
        job_id, named, row = unknown.select("job_id", _GIVEN, _ROW).row(0)
        problem = f"the use of a task of job {job_id} is of a stage that the job does not have"
        if named is None:
            problem = f"the use of a task of job {job_id} names no stage, and the job has several"
        raise InputError(
            problem,
            source=source,
            field=f"usage.{STAGE}, row {row}",
            value=named,
            expected=" or ".join(stages.filter(job_id=job_id)[STAGE]),
        )


def _refuse_series(usage: pl.DataFrame, stages: pl.DataFrame, workload: Workload) -> None:
    """Tasks without use, and use that ends before its task."""
    source = workload.meta.source
    measured = usage.group_by(*_TASK).agg(
        (pl.col("end_seconds").max() - pl.col("start_seconds").min()).alias("measured"),
        pl.col(_ROW).last(),
    )
    by_stage = measured.group_by("job_id", STAGE).agg(
        pl.len(), pl.col("measured").max(), pl.col(_ROW).max()
    )
    told = stages.join(by_stage, on=["job_id", STAGE], how="left", maintain_order="left")
    missing = told.filter((pl.col("len").fill_null(0) != pl.col("tasks")).fill_null(value=True))
    if missing.height:
        first = missing.row(0, named=True)
        of = "" if first["only"] else f"stage {first[STAGE]} of "
        raise InputError(
            f"the usage table has not as many tasks of {of}job {first['job_id']} as there are",
            source=source,
            field="usage.task",
            value=first["len"] or 0,
            expected=f"periods of {first['tasks']} tasks",
        )
    real = told.rename({"runtime_seconds": "seconds"})
    if workload.tasks is not None:
        tasks_of = _tasks(workload).select(*_TASK, seconds="runtime_seconds")
        real = measured.join(tasks_of, on=_TASK).sort(_ROW)
    early = real.filter(pl.col("measured") < pl.col("seconds") - _ROUNDING_SECONDS)
    if early.height:
        raise InputError(
            f"the use of a task of job {early['job_id'][0]} ends before the task does",
            source=source,
            field=f"usage.end_seconds, row {early[_ROW][0]}",
            value=f"after {early['measured'][0]:g} s",
            expected=f"after {early['seconds'][0]:g} s, its runtime",
        )


def _refuse_wide(usage: pl.DataFrame, workload: Workload, cluster: Cluster) -> None:
    """Tasks that ask for more than any machine has, or use it."""
    machines = {node.total for partition in cluster.partitions for node in partition.nodes}
    if not machines:
        raise InputError(
            "tasks share named machines alone",
            source=workload.meta.source,
            expected="a workload folder with a nodes table",
        )
    source = workload.meta.source
    kinds = sorted(machines, key=lambda each: (each.cpus, each.memory_bytes))
    most = " or ".join(f"{each.cpus:g} cpus and {each.memory_bytes:g} bytes" for each in kinds)
    for table, rows, cpus, memory in _asking(workload):
        asks, needs = pl.col(cpus), pl.col(memory).fill_null(0.0)
        unknown = asks.is_null() | ~(asks > 0.0)
        expected = "above 0: cpus are shared out in proportion to it"
        _refuse_row(rows, unknown, cpus, expected, source, table)
        wide = ~_any(asks <= each.cpus for each in kinds)
        _refuse_row(rows, wide, cpus, f"at most a machine's {most}", source, table)
        fits = _any((asks <= each.cpus) & (needs <= each.memory_bytes) for each in kinds)
        _refuse_row(rows, ~fits, memory, f"at most a machine's {most}", source, table)
    used, held = pl.col("average_cpus"), pl.col("average_memory_bytes")
    limits = [(each, each.memory_bytes * EVICTION_SHARE) for each in kinds]
    wide = ~_any(used <= each.cpus for each in kinds)
    _refuse_row(usage, wide, "average_cpus", f"at most a machine's {most}", source)
    fits = _any((used <= each.cpus) & (held < limit) for each, limit in limits)
    expected = f"below {EVICTION_SHARE:.0%} of a machine's memory ({most})"
    _refuse_row(usage, ~fits, "average_memory_bytes", expected, source)


def _asking(workload: Workload) -> Iterator[tuple[str, pl.DataFrame, str, str]]:
    """The tables that say what is asked for, and their columns of cpus and memory.

    What a task's row does not say is as its job asks.
    """
    of_job = ("cpus_per_task", "memory_bytes_per_task")
    jobs = workload.jobs.with_row_index(_ROW, offset=1)
    yield "jobs", jobs, *of_job
    if workload.tasks is not None:
        tasks = workload.tasks.with_row_index(_ROW, offset=1)
        tasks = tasks.join(jobs.select("job_id", *of_job), on="job_id")
        of_task = ("cpus", "memory_bytes")
        asked = map(pl.coalesce, of_task, of_job)
        yield "tasks", tasks.with_columns(asked), *of_task


def _any(conditions: Iterable[pl.Expr]) -> pl.Expr:
    return pl.any_horizontal(*conditions)


def _refuse_row(
    rows: pl.DataFrame, bad: pl.Expr, name: str, expected: str, source: str, table: str = "usage"
) -> None:
    """Refuse a table by the first of its rows that is bad."""
    found = rows.filter(bad)
    if found.height:
        raise InputError(
            f"{found.height} rows of the {table} table cannot be, the first is of job "
            f"{found['job_id'][0]}",
            source=source,
            field=f"{table}.{name}, row {found[_ROW][0]}",
            value=found[name][0],
            expected=expected,
        )
