"""Tasks and what they used: their tables, quantities of jobs made of these, tasks as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError, UnknownNameError
from foresail.traces import schema
from foresail.traces.schema import STAGE
from foresail.traces.workload import ONLY_STAGE, Workload


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


def quantity(workload: Workload, name: str) -> Floats:
    """A value per job, shape (jobs,), nan where the workload does not know it.

    ``cpu`` and ``memory`` are averages over the tasks' measured time, ``cpu_time`` and
    ``memory_time`` sums over it per measured task, ``cpu_max`` and ``memory_max`` the highest of
    any task and period (Park's dissertation, 5.1.1 and 5.3.1), ``cpu_spread`` and ``memory_spread``
    the standard deviation of the tasks' averages, of jobs with several. They come from the usage
    table where there is one, else from what the jobs table says was used, which has neither of
    these.

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


def _average(column: str) -> pl.Expr:
    seconds = _SECONDS.filter(pl.col(column).is_not_null()).sum()
    return pl.when(seconds > 0).then(_integral(column) / seconds)


def _per_task(column: str) -> pl.Expr:
    tasks = pl.col("task").filter(pl.col(column).is_not_null()).n_unique()
    return pl.when(pl.col(column).is_not_null().any()).then(_integral(column) / tasks)


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


@dataclass(frozen=True, slots=True)
class TaskStages:
    """Jobs in order of submission, their stages each after those it waits for, and their tasks."""

    first_stage: Integers
    """Places where each job's stages begin, and where the last one's end; shape (jobs + 1,)."""
    first_task: Integers
    """Places where each stage's tasks begin, and where the last one's end; shape (stages + 1,)."""
    waits: Integers
    """Number of stages that each waits for; shape (stages,)."""
    first_after: Integers
    after: Integers
    """Begins in ``after`` of those that wait for each stage; shapes (stages + 1,), (links,)."""
    stage_name: pl.Series
    task: Integers
    """A stage's name, and a task's number in it; shapes (stages,) and (tasks,)."""
    runtime_seconds: Floats
    """The truth; shape (tasks,)."""

    @property
    def stage_job(self) -> Integers:
        """The row of each stage's job; shape (stages,)."""
        jobs = self.first_stage.size - 1
        rows: Integers = np.repeat(np.arange(jobs), np.diff(self.first_stage))
        return rows

    @property
    def width(self) -> Integers:
        """Tasks of each stage; shape (stages,)."""
        width: Integers = np.diff(self.first_task)
        return width

    @property
    def stage_seconds(self) -> Floats:
        """Seconds of all tasks of each stage; shape (stages,)."""
        seconds: Floats = np.add.reduceat(self.runtime_seconds, self.first_task[:-1])
        return seconds

    @property
    def job_tasks(self) -> Integers:
        """Tasks of each job; shape (jobs,)."""
        tasks: Integers = np.diff(self.first_task[self.first_stage])
        return tasks

    @property
    def job_seconds(self) -> Floats:
        """Seconds of all tasks of each job: its size; shape (jobs,)."""
        seconds: Floats = np.add.reduceat(self.stage_seconds, self.first_stage[:-1])
        return seconds


def task_stages(workload: Workload) -> TaskStages:
    """The tasks of a workload.

    A job without rows of its own in the tasks table has equal tasks, each as long as the job; rows
    of jobs that are not there (as after a filter) are left out.

    Raises ``InputError`` if there are no jobs, a job has no tasks, or its submission is unknown; if
    a task is there twice, or its runtime is unknown or negative; if a stage waits for one that its
    job does not have, or stages wait for each other.
    """
    if len(workload) == 0:
        raise workload.meta.nothing_left("no jobs to replay", "a log and filters that leave some")
    rows = _rows(workload)
    _refuse(
        workload,
        rows.filter(~_is_known_time("runtime_seconds") | (pl.col("runtime_seconds") < 0.0)),
        "the runtime of a task is unknown or negative",
        "runtime_seconds",
        "0 seconds or more",
    )
    untimed = workload.jobs.filter(~_is_known_time("submit_seconds"))
    _refuse(workload, untimed, "the submission is unknown", "submit_seconds", "a time in seconds")
    twice = rows.filter(~pl.struct("job", "stage", "task").is_first_distinct())
    _refuse(workload, twice, "a task is there twice", "task", "each once")
    stages = rows.group_by("job", "stage", maintain_order=True).agg(
        pl.col("job_id").first(), pl.col("after_stages").drop_nulls().first(), pl.col("row").min()
    )
    links = _links(workload, stages.with_row_index("at"))
    level = _levels(workload, stages, links)
    ordered = stages.with_columns(level=level).with_row_index("given")
    ordered = ordered.sort("job", "level", "row").with_row_index("number")
    number = np.empty(ordered.height, dtype=np.int64)
    number[ordered["given"].to_numpy()] = np.arange(ordered.height)
    tasks = rows.join(ordered.select("job", "stage", "number"), on=["job", "stage"]).sort(
        "number", "task", "row"
    )
    width = np.bincount(tasks["number"].to_numpy(), minlength=ordered.height)
    before, later = number[links[:, 0]], number[links[:, 1]]
    by_before = np.lexsort((later, before))
    return TaskStages(
        _begins(np.bincount(ordered["job"].to_numpy(), minlength=len(workload))),
        _begins(width),
        np.bincount(later, minlength=ordered.height).astype(np.int64),
        _begins(np.bincount(before, minlength=ordered.height)),
        later[by_before],
        ordered["stage"],
        tasks["task"].to_numpy().astype(np.int64),
        tasks["runtime_seconds"].to_numpy().astype(np.float64),
    )


def _is_known_time(name: str) -> pl.Expr:
    return pl.col(name).is_finite().fill_null(value=False)


def _begins(counts: Integers) -> Integers:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _rows(workload: Workload) -> pl.DataFrame:
    """A row per task of every job: those of the table, then equal ones where there are none."""
    jobs = workload.jobs.with_row_index("job").select("job", "job_id", "runtime_seconds", "tasks")
    given = workload.tasks if workload.tasks is not None else pl.DataFrame(schema=schema.TASKS)
    known = given.with_columns(pl.col("stage").fill_null(ONLY_STAGE)).join(
        jobs.select("job", "job_id"), on="job_id", how="inner", maintain_order="left"
    )
    equal = jobs.join(known.select("job").unique(), on="job", how="anti", maintain_order="left")
    none = equal.filter(~(pl.col("tasks").fill_null(0) > 0))
    _refuse(workload, none, "a job has no tasks", "tasks", "one or more")
    numbered = equal.with_columns(task=pl.int_ranges(0, "tasks")).explode("task")
    columns = ("job", "job_id", "stage", "after_stages", "task", "runtime_seconds")
    made = numbered.with_columns(
        stage=pl.lit(ONLY_STAGE), after_stages=pl.lit(None, dtype=pl.String)
    ).with_columns(pl.col("task").cast(pl.Int64))
    return pl.concat([known.select(columns), made.select(columns)]).with_row_index("row")


def _links(workload: Workload, stages: pl.DataFrame) -> Integers:
    """Pairs of a stage and one that waits for it, as rows of ``stages``; shape (links, 2)."""
    named = (
        stages.drop_nulls("after_stages")
        .with_columns(before=pl.col("after_stages").str.split(","))
        .explode("before")
        .with_columns(pl.col("before").str.strip_chars())
    )
    found = named.join(
        stages.select("job", before="stage", earlier="at"),
        on=["job", "before"],
        how="left",
        maintain_order="left",
    )
    missing = found.filter(pl.col("earlier").is_null())
    _refuse(
        workload,
        missing,
        "a stage waits for one that its job does not have",
        "after_stages",
        "names of the job's other stages, separated by commas",
    )
    links: Integers = found.select("earlier", "at").to_numpy().astype(np.int64).reshape(-1, 2)
    return links


def _levels(workload: Workload, stages: pl.DataFrame, links: Integers) -> Integers:
    """Return how many stages must have ended one after the other before each."""
    level = np.zeros(stages.height, dtype=np.int64)
    most = int(stages.group_by("job").len()["len"].max())  # type: ignore[arg-type]
    for _ in range(most):
        reached = level.copy()
        np.maximum.at(reached, links[:, 1], level[links[:, 0]] + 1)
        if np.array_equal(reached, level):
            return level
        level = reached
    _refuse(
        workload,
        stages[[int(np.argmax(level))]],
        "stages wait for each other, and none of them can ever start",
        "after_stages",
        "an order in which stages can follow one another",
    )
    return level


def _refuse(workload: Workload, bad: pl.DataFrame, problem: str, field: str, expected: str) -> None:
    if bad.height:
        raise InputError(
            f"job {bad['job_id'][0]}: {problem} ({bad.height} in all)",
            source=workload.meta.source,
            field=field,
            value=bad[field][0],
            expected=expected,
        )
