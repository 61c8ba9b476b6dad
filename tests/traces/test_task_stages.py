"""Specifications of a workload with a tasks table: real stages, their counts and order."""

import polars as pl
import pytest

from foresail.model.cluster import Resources
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

JOBS = jobs_table(
    {
        "job_id": ["chain", "plain", "apart"],
        "submit_seconds": [0.0, 1.0, 2.0],
        "runtime_seconds": [9.0, 9.0, 9.0],
        "tasks": [3, 2, 7],
        "cpus_per_task": [2.0, 1.0, 1.0],
        "memory_bytes_per_task": [64.0, None, None],
        "gpus_per_task": [1.0, None, None],
    }
)
ROWS = [
    ("chain", "map", None, 0, 5.0, 4.0, 8.0),
    ("chain", "sort", None, 0, 5.0, None, None),
    ("chain", "map", None, 1, 6.0, 4.0, 16.0),
    ("plain", None, None, 0, 1.0, None, None),
    ("chain", "reduce", "map,sort", 0, 5.0, None, None),
    ("plain", None, None, 1, 1.0, None, None),
    ("plain", None, None, 2, 1.0, None, None),
]


def specifications(tasks):
    workload = Workload(JOBS, WorkloadMeta("made", "made"), tasks=tasks)
    return {job.job_id: job for job in workload.specifications()}


@pytest.fixture
def jobs():
    return specifications(pl.DataFrame(ROWS, schema=schema.TASKS, orient="row"))


def test_stages_are_those_of_the_tasks(jobs):
    """Names, counts, what they wait for, and the largest request within a stage."""
    first, middle, second = jobs["chain"].stages
    assert (first.name, first.tasks, first.after) == ("map", 2, ())
    assert first.request == Resources(4.0, 16.0, 1.0)
    assert (middle.name, middle.tasks) == ("sort", 1)
    assert (second.name, second.tasks, second.after) == ("reduce", 1, ("map", "sort"))
    assert second.request == Resources(2.0, 64.0, 1.0)


@pytest.mark.parametrize("after", ["reduce", "absent", "map,absent"])
def test_a_stage_that_waits_for_no_earlier_one_is_refused(after):
    """For itself, or for one that is not there: such a job could never end."""
    rows = [
        ("chain", "map", None, 0, 5.0, None, None),
        ("chain", "reduce", after, 0, 5.0, 1.0, 1.0),
    ]
    with pytest.raises(InputError, match="'reduce' of job 'chain'"):
        specifications(pl.DataFrame(rows, schema=schema.TASKS, orient="row"))


def test_a_stage_without_a_name_is_the_main_one(jobs):
    """The count is that of the tasks, not of the jobs table."""
    (stage,) = jobs["plain"].stages
    assert (stage.name, stage.tasks) == ("main", 3)


def test_a_job_without_tasks_stays_a_gang(jobs):
    """As it is without a tasks table."""
    assert jobs["apart"] == specifications(None)["apart"]
    assert jobs["apart"].stages[0].tasks == 7
