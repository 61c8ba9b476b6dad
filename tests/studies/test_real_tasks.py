"""Real instances are read as jobs of many tasks, and SLearn is judged on them."""

import math

import numpy as np
import polars as pl
import pytest

from declared import require_claims_about_cases
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail.traces.reading import read
from foresail_studies.readers.real_tasks import AlibabaInstancesReader
from foresail_studies.study import study_part
from shared import shared

NAME = "slearn-real-tasks"


def instances(folder, jobs, seed=1):
    """A file of so many one-stage jobs of 5 tasks, their seconds in two kinds; its path."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 2, jobs)
    level = np.where(kind == 0, 20.0, 400.0) * random.lognormal(0.0, 0.5, jobs)
    of = np.repeat(np.arange(jobs), 5)
    table = pl.DataFrame(
        {
            "submit_seconds": of.astype(np.int32),
            "job": [f"j_{each}" for each in of],
            "stage": np.where(kind[of] == 0, "M1", "R1"),
            "runtime_seconds": (level[of] * random.lognormal(0.0, 0.1, of.size)).astype(np.float32),
            "planned_cpu_percent": np.full(of.size, 50.0, np.float32),
            "planned_memory_share": np.full(of.size, 0.25, np.float32),
        }
    )
    table.write_parquet(folder / "instances.parquet")
    return folder / "instances.parquet"


def test_stages_are_jobs_and_instances_their_tasks(tmp_path):
    """The example's two stages: three instances, cores as planned, kinds that resemble others."""
    (example,) = AlibabaInstancesReader.examples()
    workload = read(example.write(tmp_path))
    assert workload.meta.reader == "alibaba_instances"
    rows = workload.jobs.select(
        *("job_id", "submit_seconds", "runtime_seconds", "tasks", "cpus_per_task", "executable")
    ).rows()
    assert rows == [
        ("j_1.M1", 0.0, 14.0, 2, 1.0, "M 100.0 0.3"),
        ("j_1.R2_1", 5.0, 3.0, 1, 0.5, "R 50.0 0.5"),
    ]
    assert workload.tasks.select("job_id", "task", "runtime_seconds", "cpus").rows() == [
        ("j_1.M1", 0, 12.0, 1.0),
        ("j_1.M1", 1, 14.0, 1.0),
        ("j_1.R2_1", 0, 3.0, 0.5),
    ]


def test_another_parquet_file_is_not_taken_for_it(tmp_path):
    """A table with other columns is of no reader."""
    path = tmp_path / "other.parquet"
    pl.DataFrame({"job": ["a"]}).write_parquet(path)
    with pytest.raises(InputError):
        read(path)


def test_the_published_log_is_read_whole():
    """All 1,369,428 instances of half an hour, in 28,442 stages."""
    workload = read(shared("traces/alibaba-2018-hour/instances-first-half-hour.parquet"))
    assert len(workload) == 28_442
    assert workload.tasks.height == 1_369_428 == workload.jobs["tasks"].sum()


def test_the_study_scales_the_threshold_and_measures_every_system(tmp_path):
    """Of the earlier half's wide jobs 35.4 % are below it; speed-ups over SLearn itself are 1."""
    path = instances(tmp_path, 400)
    study = study_part(NAME, [f'log="{path}"', "jobs=60"], quick=True).build()
    thresholds = {
        float(case.task.policy.split("seconds=")[1].rstrip(")"))
        for case in study.cases
        if case.system == "slearn"
    }
    workload = read(path)
    earlier = workload.jobs["job_id"][:200]
    seconds = workload.tasks.group_by("job_id").agg(pl.col("runtime_seconds").sum())
    sizes = seconds.filter(pl.col("job_id").is_in(earlier.implode()))["runtime_seconds"]
    assert min(thresholds) == pytest.approx(np.quantile(sizes, 28.73 / 81.16), rel=1e-5)
    assert max(thresholds) == 1000.0
    found = {case.system: case.task.measure() for case in study.cases if case.seed == 0}
    assert found["slearn"]["speedup"] == 1.0
    assert found["task_fifo"]["speedup"] > found["slearn-oracle"]["speedup"]
    assert all(math.isfinite(each["speedup"]) for each in found.values())
    full = study_part(NAME, [f'log="{path}"'], quick=False).build()
    require_claims_about_cases(NAME, study, full)


def test_the_study_needs_a_log(tmp_path):
    """Without a log, or with one that does not exist, nothing is run."""
    assert find("study", NAME)
    with pytest.raises(InputError, match="needs a real log"):
        study_part(NAME, [], quick=True)
    with pytest.raises(InputError, match="there is no such log"):
        study_part(NAME, [f'log="{tmp_path / "no.parquet"}"'], quick=True)
