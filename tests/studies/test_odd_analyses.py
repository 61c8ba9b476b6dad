"""Studies of tasks and usage on workloads with nothing, or nonsense, in them."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.analysis.finding import Finding, Unavailable
from foresail.model.registry import find
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

STUDIES = ("cpu_volatility", "misordering", "task_variability", "usage_sampling")


def _workload(jobs: int, *, tasks: bool, usage: bool) -> Workload:
    """Jobs of one user with infinite, zero and unknown runtimes, with tables of that many rows."""
    odd = np.resize(np.array([10.0, np.inf, 0.0, np.nan]), jobs)
    ids = np.char.mod("j%d", np.arange(jobs)) if jobs else np.array([], dtype=str)
    table = jobs_table(
        {
            "job_id": ids,
            "submit_seconds": np.arange(jobs) * 43200.0,
            "runtime_seconds": odd,
            "tasks": np.ones(jobs, dtype=np.int64),
            "user": ["u"] * jobs,
        }
    )
    of_tasks = tasks_table({"job_id": ids, "task": np.zeros(jobs, int), "runtime_seconds": odd})
    of_usage = usage_table(
        {
            "job_id": ids,
            "task": np.zeros(jobs, int),
            "start_seconds": np.zeros(jobs),
            "end_seconds": np.full(jobs, 300.0),
            "average_cpus": np.zeros(jobs),
            "sampled_cpus": np.zeros(jobs),
        }
    )
    return Workload(
        table,
        WorkloadMeta("odd", "odd"),
        tasks=of_tasks if tasks else None,
        usage=of_usage if usage else None,
    )


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("jobs", [0, 1, 2, 80])
@pytest.mark.parametrize("tables", [False, True], ids=["bare", "tables"])
def test_nothing_and_nonsense(name, jobs, tables):
    """A study finds something finite or says what is missing; it never fails."""
    entry = find("analysis", name)
    found = entry.build(entry.parameters()).examine(_workload(jobs, tasks=tables, usage=tables))
    assert isinstance(found, Finding | Unavailable)
    assert found.title
    if isinstance(found, Finding):
        assert "inf" not in found.verdict
        assert "nan" not in found.verdict
    else:
        assert found.reason


@pytest.mark.parametrize("name", STUDIES)
def test_studies_are_registered_with_a_sentence(name):
    """The reference of plug-ins has a first line for each."""
    entry = find("analysis", name)
    assert entry.summary.endswith((".", "?"))
