"""What tasks use, read from a workload's tables; and the tables that are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest

from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.errors import InputError
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.executions._real_use import real_use

MACHINES = Cluster(
    (Partition("all", Resources(6.0, 120.0), (Node("small", Resources(2.0, 100.0)),
     Node("large", Resources(4.0, 20.0)))),)
)  # fmt: skip

JOBS = {
    "job_id": ["late", "early"],
    "submit_seconds": [5.0, 0.0],
    "runtime_seconds": [30.0, 10.0],
    "tasks": [2, 1],
    "cpus_per_task": [1.0, 2.0],
    "memory_bytes_per_task": [20.0, 10.0],
}
USAGE = {
    "job_id": ["late", "late", "late", "early"],
    "task": [0, 0, 1, 3],
    "start_seconds": [7.0, 17.0, 7.0, 100.0],
    "end_seconds": [17.0, 37.0, 27.0, 110.0],
    "average_cpus": [0.5, 1.5, 0.25, 2.0],
    "average_memory_bytes": [5.0, 6.0, 7.0, 8.0],
}


def made(usage=(), jobs=(), tasks=None):
    """A workload with some columns replaced; without a usage table for None."""
    table = None if usage is None else usage_table({**USAGE, **dict(usage)})
    meta = WorkloadMeta("made", "made")
    return Workload(jobs_table({**JOBS, **dict(jobs)}), meta, tasks=tasks, usage=table)


def test_segments_are_the_periods_of_every_task():
    use = real_use(made(), MACHINES)
    late, early = use.bounds["late", ""], use.bounds["early", ""]
    tasks = [use.segments[first:end].tolist() for first, end in pairwise(late)]
    assert tasks == [[[10.0, 0.5, 5.0], [20.0, 1.5, 6.0]], [[20.0, 0.25, 7.0]]]
    assert use.segments[early[0] : early[1]].tolist() == [[10.0, 2.0, 8.0]]
    assert len(early) == 2


def refusal(workload, cluster=MACHINES):
    with pytest.raises(InputError) as caught:
        real_use(workload, cluster)
    return caught.value


# The usage table is sorted by job: the row of "early" is the first.
@pytest.mark.parametrize(
    ("column", "values", "row", "value"),
    [
        ("average_cpus", [0.5, -1.5, 0.25, 2.0], 3, -1.5),
        ("average_cpus", [0.5, 1.5, float("nan"), 2.0], 4, float("nan")),
        ("average_cpus", [0.5, 1.5, 0.25, 4.5], 1, 4.5),
        ("average_memory_bytes", [5.0, None, 7.0, 8.0], 3, None),
        ("average_memory_bytes", [5.0, 6.0, 95.0, 8.0], 4, 95.0),
        ("end_seconds", [17.0, 17.0, 27.0, 110.0], 3, 17.0),
        ("start_seconds", [7.0, 18.0, 7.0, 100.0], 3, 18.0),
    ],
)
def test_a_row_that_cannot_be(column, values, row, value):
    """Negative, no number, more than any machine has, or not after the period before."""
    error = refusal(made({column: values}))
    assert error.field == f"usage.{column}, row {row}"
    assert error.value == pytest.approx(value, nan_ok=True)
    assert error.expected


def test_memory_counts_on_the_machine_that_has_the_cpus():
    """Small has the memory but not the cpus, large has the cpus but not the memory."""
    usage = {"average_cpus": [0.5, 3.0, 0.25, 2.0], "average_memory_bytes": [5.0, 30.0, 7.0, 8.0]}
    assert refusal(made(usage)).field == "usage.average_memory_bytes, row 3"


@pytest.mark.parametrize(
    ("jobs", "field"),
    [
        ({"cpus_per_task": [1.0, 5.0]}, "jobs.cpus_per_task, row 1"),
        ({"cpus_per_task": [3.0, 2.0]}, "jobs.memory_bytes_per_task, row 2"),
        ({"cpus_per_task": [0.0, 2.0]}, "jobs.cpus_per_task, row 2"),
    ],
)
def test_a_task_that_no_machine_holds(jobs, field):
    """Too many cpus; three cpus with 20 bytes, which large has, and with 21, which none has."""
    if field.endswith("2") and jobs["cpus_per_task"][0] == 3.0:
        real_use(made(jobs=jobs), MACHINES)
        jobs = {**jobs, "memory_bytes_per_task": [21.0, 10.0]}
    assert refusal(made(jobs=jobs)).field == field


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"cpus": [1.0, 5.0, None]}, "tasks.cpus, row 3"),
        ({"cpus": [1.0, 0.0, None]}, "tasks.cpus, row 3"),
        (
            {"cpus": [None, 3.0, None], "memory_bytes": [None, 21.0, None]},
            "tasks.memory_bytes, row 3",
        ),
    ],
)
def test_a_task_that_asks_for_more_than_its_job(asked, field):
    """By its own row; what that does not say is as the job asks. Other jobs' rows do not count."""
    rows = {"job_id": ["late", "late", "early"], "task": [0, 1, 3], "runtime_seconds": [10.0] * 3}
    fits = {name: [1.0 if each else each for each in values] for name, values in asked.items()}
    fits["cpus"][1] = 1.0
    real_use(made(tasks=tasks_table({**rows, **fits})), MACHINES)
    tasks = tasks_table({**rows, **asked})
    assert refusal(made(tasks=tasks)).field == field
    real_use(made(tasks=tasks.with_columns(job_id=pl.lit("other"))), MACHINES)


STAGES = {
    "job_id": ["late", "late", "late", "late", "early"],
    "stage": ["map", "map", "reduce", "reduce", None],
    "after_stages": [None, None, "map", "map", None],
    "task": [0, 1, 0, 1, 0],
    "runtime_seconds": [5.0, 10.0, 20.0, 30.0, 10.0],
}


def in_stages(usage=(), tasks=()):
    """A job of two stages, and one of one; the rows of the stages are mixed."""
    rows = {
        "job_id": ["late", "late", "late", "early", "late", "late"],
        "stage": ["reduce", "map", "map", None, "reduce", "reduce"],
        "task": [1, 0, 1, 7, 0, 1],
        "start_seconds": [0.0, 0.0, 0.0, 0.0, 0.0, 10.0],
        "end_seconds": [10.0, 5.0, 10.0, 10.0, 20.0, 30.0],
        "average_cpus": [0.25, 1.0, 2.0, 1.0, 0.5, 0.75],
        "average_memory_bytes": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    return made({**rows, **dict(usage)}, tasks=tasks_table({**STAGES, **dict(tasks)}))


def told(use, job_id, stage):
    return [use.segments[first:end].tolist() for first, end in pairwise(use.bounds[job_id, stage])]


def test_every_stage_has_tasks_of_its_own():
    """By their numbers within the stage; what one stage uses is not what the other does."""
    workload = in_stages()
    use = real_use(workload, MACHINES)
    mapped = [[[5.0, 1.0, 2.0]], [[10.0, 2.0, 3.0]]]
    reduced = [[[20.0, 0.5, 5.0]], [[10.0, 0.25, 1.0], [20.0, 0.75, 6.0]]]
    assert told(use, "late", "map") == mapped
    assert told(use, "late", "reduce") == reduced
    assert told(use, "early", "") == told(use, "early", "main") == [[[10.0, 1.0, 4.0]]]
    assert ("late", "") not in use.bounds
    assert use.of_tasks("late", "map", (0, 1))["cpu_time"] == 12.5
    assert use.of_tasks("late", "reduce", (0, 1))["cpu_time"] == 13.75
    mixed = workload.usage.sample(fraction=1.0, shuffle=True, seed=3).sort("start_seconds")
    again = real_use(replace(workload, usage=mixed), MACHINES)
    assert told(again, "late", "map") == mapped
    assert told(again, "late", "reduce") == reduced


def test_a_stage_without_a_name_is_the_one_that_the_tasks_table_gives_none():
    """As that does; of a job with one stage it is that one, whatever its name."""
    unnamed = {"stage": [None, None, "reduce", "reduce", "only"], "after_stages": [None] * 5}
    usage = {"stage": ["reduce", None, None, None, "reduce", "reduce"]}
    use = real_use(in_stages(usage, unnamed), MACHINES)
    assert told(use, "late", "main") == [[[5.0, 1.0, 2.0]], [[10.0, 2.0, 3.0]]]
    assert told(use, "early", "only") == [[[10.0, 1.0, 4.0]]]


@pytest.mark.parametrize(
    ("stage", "row", "problem"),
    [
        ("sort", 6, "job late is of a stage that the job does not have"),
        (None, 2, "job late names no stage"),
    ],
)
def test_a_stage_that_the_job_does_not_have(stage, row, problem):
    error = refusal(in_stages({"stage": ["reduce", stage, "map", None, "reduce", "reduce"]}))
    assert problem in error.problem
    assert (error.source, error.value) == ("made", stage)
    assert error.field == f"usage.stage, row {row}"
    assert error.expected == "map or reduce"


def test_without_a_column_of_stages_those_of_several_are_refused():
    workload = in_stages()
    error = refusal(replace(workload, usage=workload.usage.drop("stage")))
    assert "job late" in error.problem
    assert error.field.startswith("usage.stage, row")


def test_a_stage_without_use():
    """Of one of its tasks, or of all of them."""
    workload = in_stages()
    some = workload.usage.filter(~((pl.col("stage") == "reduce") & (pl.col("task") == 0)))
    error = refusal(replace(workload, usage=some))
    assert "of stage reduce of job late" in error.problem
    assert (error.source, error.field, error.value) == ("made", "usage.task", 1)
    assert error.expected == "periods of 2 tasks"
    tasks = {name: [*values, values[2]] for name, values in STAGES.items()}
    error = refusal(in_stages(tasks={**tasks, "stage": [*STAGES["stage"], "sort"]}))
    assert "of stage sort of job late" in error.problem
    assert error.value == 0


def test_use_of_a_stage_that_ends_early():
    """Before the task of the same number in the same stage."""
    error = refusal(in_stages(tasks={"runtime_seconds": [5.0, 10.0, 20.5, 30.0, 10.0]}))
    assert (error.value, error.expected) == ("after 20 s", "after 20.5 s, its runtime")


def test_series_that_end_early():
    """Before the job where tasks are not known; before the task where they are."""
    error = refusal(made(jobs={"runtime_seconds": [31.0, 10.0]}))
    assert (error.field, error.value) == ("usage.end_seconds, row 4", "after 30 s")
    runtimes = {"job_id": ["late", "late", "early"], "task": [0, 1, 3]}
    tasks = tasks_table({**runtimes, "runtime_seconds": [30.0, 21.0, 10.0]})
    error = refusal(made(tasks=tasks))
    assert (error.field, error.value) == ("usage.end_seconds, row 4", "after 20 s")


def test_tasks_without_use():
    assert refusal(made(None)).expected.startswith("a workload folder")
    error = refusal(made(jobs={"tasks": [2, 2]}))
    assert (error.field, error.value) == ("usage.task", 1)
    assert refusal(made(), Cluster.of_processors(4)).expected.endswith("nodes table")


def test_rows_of_jobs_that_are_not_there_do_not_count():
    usage = made().usage
    further = usage.with_columns(pl.lit("other").alias("job_id"))
    workload = Workload(made().jobs, made().meta, usage=pl.concat([usage, further]))
    assert {job_id for job_id, _ in real_use(workload, MACHINES).bounds} == {"early", "late"}
