"""The tasks of a workload as arrays, and what is refused."""

import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.measured import task_stages
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def workload(rows, jobs=("a", "b"), tasks=2):
    table = jobs_table(
        {
            "job_id": list(jobs),
            "submit_seconds": [float(number) for number in range(len(jobs))],
            "runtime_seconds": [5.0] * len(jobs),
            "tasks": [tasks] * len(jobs),
        }
    )
    given = pl.DataFrame(
        [
            (job, stage, after, task, runtime, 1.0, None)
            for job, stage, after, task, runtime in rows
        ],
        schema=schema.TASKS,
        orient="row",
    )
    return Workload(table, WorkloadMeta("made", "hand", 3), None, given)


def test_stages_follow_what_they_wait_for():
    """Whatever the order of rows; a job without rows has equal tasks; others' rows are left out."""
    found = task_stages(
        workload(
            [
                ("b", "last", "left, right", 0, 4.0),
                ("b", "left", None, 0, 1.0),
                ("b", "right", "left", 0, 2.0),
                ("b", "left", None, 1, 3.0),
                ("c", None, None, 0, 9.0),
            ]
        )
    )
    assert found.stage_name.to_list() == ["main", "left", "right", "last"]
    assert found.first_stage.tolist() == [0, 1, 4]
    assert found.first_task.tolist() == [0, 2, 4, 5, 6]
    assert found.runtime_seconds.tolist() == [5.0, 5.0, 1.0, 3.0, 2.0, 4.0]
    assert found.task.tolist() == [0, 1, 0, 1, 0, 0]
    assert found.waits.tolist() == [0, 0, 1, 2]
    assert found.first_after.tolist() == [0, 0, 2, 3, 3]
    assert found.after.tolist() == [2, 3, 3]
    assert found.job_tasks.tolist() == [2, 4]
    assert found.job_seconds.tolist() == [10.0, 10.0]


@pytest.mark.parametrize(
    ("rows", "problem", "field"),
    [
        ([("a", None, None, 0, -1.0)], "unknown or negative", "runtime_seconds"),
        ([("a", None, None, 0, float("nan"))], "unknown or negative", "runtime_seconds"),
        ([("a", None, None, 0, float("inf"))], "unknown or negative", "runtime_seconds"),
        ([("a", None, None, 0, None)], "unknown or negative", "runtime_seconds"),
        ([("a", None, None, 0, 1.0)] * 2, "twice", "task"),
        ([("a", "x", "y", 0, 1.0)], "does not have", "after_stages"),
        ([("a", "x", "x", 0, 1.0)], "wait for each other", "after_stages"),
        (
            [("a", "x", "y", 0, 1.0), ("a", "y", "x", 0, 1.0)],
            "wait for each other",
            "after_stages",
        ),
    ],
)
def test_what_is_refused(rows, problem, field):
    """The job is named, with the field."""
    with pytest.raises(InputError, match=f"job a: .*{problem}") as refused:
        task_stages(workload(rows))
    assert refused.value.field == field


def test_jobs_without_tasks_are_refused():
    """One without rows must say how many tasks it has."""
    with pytest.raises(InputError, match="a job has no tasks"):
        task_stages(workload([], tasks=0))
    with pytest.raises(InputError, match="no jobs"):
        task_stages(workload([], jobs=()))
