"""Validation: every oddity is found, counted and exemplified; a clean workload gives nothing."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from foresail.model.registry import find
from foresail.traces.facts import facts
from foresail.traces.measured import tasks_table
from foresail.traces.validation import validate
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

CLEAN = {
    "job_id": ["a", "b"],
    "submit_seconds": [0.0, 100.0],
    "runtime_seconds": [50.0, 60.0],
    "requested_seconds": [50.0, 100.0],
    "tasks": [4, 8],
    "status": ["completed", "failed"],
}


def workload(**changes) -> Workload:
    meta = WorkloadMeta("log", "test", processors=8)
    return Workload(jobs_table(CLEAN | changes), meta)


def test_clean():
    """Nothing is found in a sound workload."""
    report = validate(workload())
    assert report.clean
    assert report.jobs == 2


@pytest.mark.parametrize(
    ("changes", "name", "job_id", "value"),
    [
        ({"runtime_seconds": [50.0, None]}, "unknown_runtime", "b", None),
        ({"runtime_seconds": [0.0, 9.0]}, "zero_runtime", "a", "runtime_seconds = 0.0"),
        ({"runtime_seconds": [51.0, 9.0]}, "runtime_beyond_request", "a", "runtime_seconds = 51.0"),
        ({"requested_seconds": [None, 1e9]}, "unknown_requested_time", "a", None),
        (
            {"requested_seconds": [0.0, 1e9]},
            "unknown_requested_time",
            "a",
            "requested_seconds = 0.0",
        ),
        ({"tasks": [None, 8]}, "unknown_width", "a", None),
        ({"tasks": [8, 9]}, "wider_than_machine", "b", "tasks = 9"),
        ({"status": ["done", "failed"]}, "unknown_status", "a", "status = done"),
        ({"status": ["partial", None]}, "partial_execution", "a", "status = partial"),
    ],
)
def test_findings(changes, name, job_id, value):
    """Each oddity is found under its name with the first job that has it."""
    found = {finding.name: finding for finding in validate(workload(**changes)).findings}
    assert found[name].count == 1
    assert found[name].example == f"job {job_id}" + ("" if value is None else f", {value}")


def test_cancelled_and_long():
    """Cancelled jobs that did not run, and jobs of more than a year."""
    odd = workload(
        status=["cancelled", "completed"],
        runtime_seconds=[None, 4e7],
        requested_seconds=[None, None],
    )
    names = {finding.name for finding in validate(odd).findings}
    assert names == {
        "cancelled_before_start",
        "most_dropped",
        "no_requested_times",
        "runtime_beyond_the_log",
        "unknown_runtime",
    }


def test_whole_workload_findings():
    """Repairs of the reader and an unknown machine are findings too."""
    odd = workload().with_meta(processors=None, repairs={"sorted_by_submit": 3})
    found = {finding.name: finding.count for finding in validate(odd).findings}
    assert found == {"sorted_by_submit": 3, "unknown_processors": 1}


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({}, None),
        ({"after_stages": ["reduce", "map"]}, "after_stages = reduce"),
        ({"after_stages": [None, "shuffle"]}, "after_stages = shuffle"),
        ({"runtime_seconds": [-1.0, 60.0]}, "runtime_seconds = -1.0"),
    ],
)
def test_tasks_that_cannot_be(changes, value):
    """What a run would refuse: stages in a circle, or that are not there; times that are none."""
    rows = {"job_id": ["b", "b"], "task": [0, 0], "stage": ["map", "reduce"]}
    stages = {"after_stages": [None, "map"], "runtime_seconds": [20.0, 60.0]}
    odd = replace(workload(), tasks=tasks_table({**rows, **stages, **changes}))
    values = [(each.name, each.example) for each in validate(odd).findings]
    assert values == ([] if value is None else [("impossible_tasks", value)])
    assert validate(replace(odd, jobs=odd.jobs.clear())).clean


def test_remedies_name_filters_that_exist():
    """Every filter that a remedy names is registered."""
    odd = workload(
        job_id=["a", "a"],
        status=["partial", "cancelled"],
        runtime_seconds=[99.0, None],
        requested_seconds=[50.0, 0.0],
        tasks=[9, None],
    )
    named = [
        word
        for finding in validate(odd).findings
        for word in finding.remedy.replace(",", " ").split()
        if "_" in word
    ]
    assert len(set(named)) >= 5
    for name in named:
        find("filter", name)


def test_facts():
    """Facts are computed over the jobs for which they are known."""
    found = facts(workload(user=["x", None], recorded_wait_seconds=[None, None]))
    assert (found.jobs, found.users, found.span_seconds) == (2, 1, 100.0)
    assert found.work_cpu_seconds == 4 * 50 + 8 * 60
    assert found.offered_load == pytest.approx(680 / 800)
    assert found.quantiles["cpus"] == (4.0, 4.0, 8.0, 8.0, 8.0)
    assert found.mean["runtime_seconds"] == 55.0
    assert "recorded_wait_seconds" not in found.quantiles
    assert found.known["user"] == 0.5
    assert "group" in found.missing
    assert "user" not in found.missing


def test_facts_of_one_job():
    """A workload without a span has no offered load."""
    one = workload().with_jobs(workload().jobs.head(1))
    assert facts(one).offered_load is None
    unknown = one.with_jobs(one.jobs.with_columns(runtime_seconds=pl.lit(None, pl.Float64)))
    assert facts(unknown).work_cpu_seconds == 0


def test_use_beyond_the_processors_is_told():
    """Two jobs of 6 cpus side by side on 8 for half of the time; one after the other is fine."""
    together = {"tasks": [6, 6], "runtime_seconds": [100.0, 100.0]}
    together |= {"requested_seconds": [100.0, 100.0], "submit_seconds": [0.0, 50.0]}
    apart = workload(**together, recorded_wait_seconds=[0.0, 50.0])
    assert validate(apart).clean
    (found,) = validate(workload(**together, recorded_wait_seconds=[0.0, 0.0])).findings
    assert found.name == "use_beyond_processors"
    assert "8 processors during 33.3 % of the time, 12 at most" in found.sentence
