"""The tasks of a workload as arrays: which stage each is of, and which stages wait for which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from foresail.model.arrays import Floats, Integers
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.workload import ONLY_STAGE, Workload


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
    """Places in ``after`` where those begin that wait for each stage; shapes (stages + 1,) and
    (links,)."""
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
