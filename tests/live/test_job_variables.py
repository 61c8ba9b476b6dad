"""What a job is told of itself by variables, where it writes, and by which names."""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from empty_rooms import empty_room
from foresail.live.command_job import CommandJob
from foresail.live.jobs_file import JobLines
from local_runs import LocalRun

HOST = socket.gethostname().partition(".")[0]
PLAIN = {
    "FORESAIL_ATTEMPT": "1",
    "FORESAIL_CPUS": "1",
    "FORESAIL_JOB_ID": "1",
    "FORESAIL_JOB_NAME": "fit",
    "FORESAIL_MEMORY_BYTES": None,
    "FORESAIL_TASKS": "1",
    "FORESAIL_TOKEN": None,
    "SLURM_JOB_ID": "1",
    "SLURM_JOBID": "1",
    "SLURM_JOB_NAME": "fit",
    "SLURM_JOB_USER": "ann",
    "SLURM_CPUS_ON_NODE": "1",
    "SLURM_JOB_CPUS_PER_NODE": "1",
    "SLURM_NTASKS": "1",
    "SLURM_NPROCS": "1",
    "SLURM_CPUS_PER_TASK": None,
    "SLURM_SUBMIT_HOST": HOST,
    "SLURM_JOB_NODELIST": HOST,
    "SLURM_NODELIST": HOST,
    "SLURMD_NODENAME": HOST,
    "SLURM_JOB_NUM_NODES": "1",
    "SLURM_NNODES": "1",
    "SLURM_MEM_PER_NODE": None,
    "SLURM_ARRAY_JOB_ID": None,
    "SLURM_RESTART_COUNT": None,
    "SLURM_GPUS": None,
    "OMP_NUM_THREADS": "1",
}


@pytest.fixture
def ran(tmp_path):
    """Runs an attempt of a job to its end, in the folder ``work``; gives its exit code."""
    work = tmp_path / "work"
    work.mkdir()
    run = LocalRun(tmp_path, cpus=4, gpus=2, cgroups=False)

    def exit_code(job, attempt=1):
        return run.ran(replace(job, directory=str(work)), attempt).exit_code

    yield exit_code
    run.adapter.close()


@pytest.mark.parametrize(
    ("fields", "attempt", "expected"),
    [
        ({}, 1, {}),
        (
            {"cpus": 4, "tasks": 2, "cpus_per_task": 2, "memory_bytes": 3.0 * 2**29, "gpus": 2},
            3,
            {
                "FORESAIL_ATTEMPT": "3",
                "FORESAIL_CPUS": "4",
                "FORESAIL_TASKS": "2",
                "FORESAIL_MEMORY_BYTES": "1610612736",
                "SLURM_CPUS_ON_NODE": "4",
                "SLURM_JOB_CPUS_PER_NODE": "4",
                "SLURM_NTASKS": "2",
                "SLURM_NPROCS": "2",
                "SLURM_CPUS_PER_TASK": "2",
                "SLURM_MEM_PER_NODE": "1536",
                "SLURM_RESTART_COUNT": "2",
                "SLURM_GPUS": "2",
                "SLURM_GPUS_ON_NODE": "2",
                "OMP_NUM_THREADS": "2",
            },
        ),
        (
            {"job_id": "7_3", "environment": {"SLURM_ARRAY_TASK_ID": "3", "SLURM_NTASKS": "99"}},
            1,
            {
                "FORESAIL_JOB_ID": "7_3",
                "FORESAIL_ARRAY_INDEX": "3",
                "SLURM_JOB_ID": "7_3",
                "SLURM_JOBID": "7_3",
                "SLURM_ARRAY_JOB_ID": "7",
            },
        ),
        (
            {"job_id": "7_3", "number": 11},
            1,
            {
                "FORESAIL_JOB_ID": "7_3",
                "SLURM_JOB_ID": "11",
                "SLURM_JOBID": "11",
                "SLURM_ARRAY_JOB_ID": "7",
                "SLURM_ARRAY_TASK_ID": "3",
                "FORESAIL_ARRAY_INDEX": "3",
            },
        ),
        (
            {"environment": {"SLURM_SUBMIT_HOST": "desk", "OMP_NUM_THREADS": "8"}},
            1,
            {"SLURM_SUBMIT_HOST": "desk", "OMP_NUM_THREADS": "8"},
        ),
    ],
    ids=["plain", "tasks", "array of a former version", "array", "given"],
)
def test_what_a_job_is_told_is_so(ran, tmp_path, monkeypatch, fields, attempt, expected):
    """What whoever submits has set wins where that is her business; no secret is told."""
    monkeypatch.setenv("FORESAIL_TOKEN", "foresail_secret")
    text = f"#!{sys.executable}\nimport json, os\nprint(json.dumps(dict(os.environ)))\n"
    job = CommandJob("1", "fit", "", "/", script=text, user="ann", output="told.json")
    assert ran(replace(job, **fields), attempt) == 0
    told = json.loads((tmp_path / "work" / "told.json").read_text())
    wanted = {**PLAIN, "SLURM_SUBMIT_DIR": str(tmp_path / "work"), **expected}
    assert {name: told.get(name) for name in wanted} == wanted
    ours = {name for name in told if name.startswith("FORESAIL_")}
    assert ours <= {*wanted, "FORESAIL_MARK"}


def test_output_goes_where_it_is_said(ran, tmp_path):
    """Both streams to one file, unless there is another for errors; begun anew, or not."""
    work = tmp_path / "work"
    job = CommandJob("7_3", "fit", "echo out; echo err >&2", "/", user="ann")
    assert ran(replace(job, output="%A-%3a-%x-%u-%N-%j-%%.txt")) == 0
    assert (work / f"7-003-fit-ann-{HOST}-7_3-%.txt").read_text() == "out\nerr\n"
    for attempt, appends, left in ((2, False, "out\nout\n"), (3, True, "out\nout\n")):
        (work / "out").write_text("out\n")
        assert (
            ran(replace(job, output="out", errors=str(work / "err"), appends=appends), attempt) == 0
        )
        assert (work / "out").read_text() == left
    assert (work / "err").read_text() == "err\nerr\n"
    again = replace(job, job_id="8", output="out")
    assert ran(again) == 0
    assert (work / "out").read_text() == "out\nerr\n"


def test_a_file_that_cannot_be_written_fails_the_job_and_its_log_says_so(ran, tmp_path):
    job = CommandJob("1", "fit", "touch ran", "/", output="none/such")
    assert ran(job) == 127
    assert "none/such: No such file or directory" in (tmp_path / "logs" / "1.out").read_text()
    assert not (tmp_path / "work" / "ran").exists()


def test_fields_of_a_job_are_kept():
    """What was asked is what is stored, and read again."""
    asked = {
        "command": "true",
        "output": "%j",
        "errors": "e",
        "open_mode": "append",
        "requeue": False,
        "after": "afterany:1,singleton",
        "begin": 5.0,
    }
    job = JobLines(empty_room(2.0), Path("/"), None).job(asked, None)
    assert CommandJob.from_json(job.to_json()) == job
    assert (job.once, job.appends) == (True, True)
    conditions = job.specification(0.0).conditions
    assert (conditions.begin_seconds, conditions.singleton, conditions.once) == (5.0, True, True)
    assert job.after == ("1",)
