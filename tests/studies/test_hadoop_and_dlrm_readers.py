"""Readers of SWIM, SLS and Alibaba DLRM: counts, units, what is unknown, and bad files."""

import json

import polars as pl
import pytest

from checks.read_files import examples_of
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail.traces import schema
from foresail.traces.reading import read
from shared import shared

SLS_JOB = {
    "am.type": "mapreduce",
    "job.start.ms": 1786000,
    "job.end.ms": 200000,
    "job.queue.name": "queue_1",
    "job.id": "job_0",
    "job.user": "default",
    "job.tasks": [
        {"c.dur": 490000, "c.mem": 9400, "c.type": "reduce", "c.nr": 3},
        {"c.dur": 1000, "c.mem": 512, "c.type": "map", "c.nr": 2},
    ],
}


def example(tmp_path, name):
    """The example of a reader, read."""
    (shown,) = examples_of(find("reader", name))
    return read(shown.write(tmp_path))


def read_text(tmp_path, text, **options):
    path = tmp_path / "log.txt"
    path.write_text(text)
    return read(path, **options)


def test_swim_knows_no_durations(tmp_path):
    """Submission and bytes are known; tasks and runtime are null."""
    workload = example(tmp_path, "swim")
    assert workload.meta.reader == "swim"
    assert workload.jobs["submit_seconds"].to_list() == [49.0, 101.0]
    assert workload.jobs["runtime_seconds"].null_count() == 2
    assert workload.jobs["tasks"].null_count() == 2
    assert workload.jobs["shuffle_bytes"].to_list() == ["2339561", "0"]


def test_dlrm_units_and_unknowns(tmp_path):
    """Memory is GiB; the instance that was there before is submitted at zero, and counted."""
    workload = example(tmp_path, "alibaba_dlrm")
    first, second = workload.jobs.rows(named=True)
    assert (first["submit_seconds"], first["runtime_seconds"]) == (0.0, None)
    assert (second["recorded_wait_seconds"], second["runtime_seconds"]) == (2.0, 100.0)
    assert second["memory_bytes_per_task"] == 240 * 2.0**30
    assert (first["queue"], first["gpus_per_task"]) == ("HN", 1.0)
    assert workload.meta.repairs == {"created_before_the_log": 1}


def test_sls_classes_become_tasks(tmp_path):
    """Each class is a stage of so many tasks; durations are milliseconds, memory MiB."""
    workload = read_text(
        tmp_path, json.dumps(SLS_JOB, indent=1) + json.dumps({**SLS_JOB, "job.id": "job_1"})
    )
    job = workload.jobs.row(0, named=True)
    assert (job["tasks"], job["runtime_seconds"], job["submit_seconds"]) == (5, 490.0, 1786.0)
    assert workload.tasks is not None
    assert dict(workload.tasks.schema) == schema.TASKS
    mine = workload.tasks.filter(pl.col("job_id") == "job_0")
    assert mine["stage"].to_list() == ["reduce"] * 3 + ["map"] * 2
    assert mine["task"].to_list() == [0, 1, 2, 0, 1]
    assert mine["memory_bytes"].to_list() == [9400 * 2.0**20] * 3 + [512 * 2.0**20] * 2
    stages = next(workload.specifications()).stages
    assert [(stage.name, stage.tasks) for stage in stages] == [("reduce", 3), ("map", 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"job.start.ms": 1, "job.id": "a", "job.tasks": []}', "no tasks"),
        ('{"job.start.ms": 1, "job.id": "a"}', "job.tasks"),
        ('{"job.start.ms": 1, "job.id": "a", "job.tasks": [{"c.nr": 1}]}', "c.dur"),
        ('{"job.start.ms": 1, ', "line 1"),
        (json.dumps(SLS_JOB) + "\n" + json.dumps(SLS_JOB), "line 2.*used twice"),
    ],
    ids=["none", "tasks", "duration", "cut off", "twice"],
)
def test_sls_errors_name_the_line(tmp_path, text, said):
    """What is missing or broken is said."""
    with pytest.raises(InputError, match=said):
        read_text(tmp_path, text, reader="sls")


COUNTS = {
    "swim-facebook/FB-2009_samples_24_times_1hr_0.tsv.gz": ("swim", 5894, {}),
    "swim-facebook/FB-2009_samples_24_times_1hr_1.tsv.gz": ("swim", 6638, {}),
    "swim-facebook/FB-2010_samples_24_times_1hr_0.tsv.gz": ("swim", 24442, {}),
    "alibaba-gpu-v2025/disaggregated_DLRM_trace.csv.gz": (
        "alibaba_dlrm",
        23871,
        {"created_before_the_log": 7280, "sorted_by_submit": 5415},
    ),
    "google-3sigma-sample/1000job.trace.gz": ("sls", 1000, {"sorted_by_submit": 994}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_shared_logs(name):
    """The right reader, all jobs, the counted repairs."""
    reader, jobs, repairs = COUNTS[name]
    workload = read(shared(f"traces/{name}"))
    assert workload.meta.reader == reader
    assert len(workload) == jobs
    assert workload.meta.repairs == repairs
