"""The misordering of jobs in a log against what was put in."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from foresail.analysis.finding import Finding, Unavailable
from foresail.model.errors import InputError
from foresail.traces.measured import tasks_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.analyses.misordering import (
    MisorderingParameters,
    misordered_by_sampling,
    misordering,
)


def _workload(
    job_deviation: float, task_deviation: float, *, jobs: int = 3000, tasks: int = 40
) -> Workload:
    """Gaussian jobs of three users whose means differ by a factor of ten."""
    random = np.random.default_rng(11)
    user = np.arange(jobs) % 3
    scale = np.array([10.0, 100.0, 1000.0])[user]
    mean = random.normal(1.0, job_deviation, jobs)
    runtimes = scale[:, None] * (mean[:, None] + random.normal(0, task_deviation, (jobs, tasks)))
    ids = np.char.mod("j%d", np.arange(jobs))
    table = jobs_table(
        {
            "job_id": ids,
            "submit_seconds": np.arange(jobs, dtype=float),
            "runtime_seconds": runtimes.max(axis=1),
            "tasks": np.full(jobs, tasks),
            "user": np.char.mod("u%d", user),
        }
    )
    rows = tasks_table(
        {
            "job_id": np.repeat(ids, tasks),
            "task": np.tile(np.arange(tasks), jobs),
            "runtime_seconds": runtimes.ravel(),
        }
    )
    return Workload(table, WorkloadMeta("made", "made"), tasks=rows)


def _examine(workload: Workload) -> Finding:
    finding = misordering(MisorderingParameters()).examine(workload)
    assert isinstance(finding, Finding)
    return finding


@pytest.mark.parametrize(("job_deviation", "task_deviation"), [(0.2, 0.1), (0.1, 0.3)])
def test_deviations_are_found(job_deviation, task_deviation):
    """Fitted deviations are those drawn, whatever the users' scales; the model's error with it."""
    scalars = _examine(_workload(job_deviation, task_deviation)).scalars
    assert scalars["job_deviation"] == pytest.approx(job_deviation, rel=0.05)
    assert scalars["task_deviation"] == pytest.approx(task_deviation, rel=0.02)
    assert scalars["samples_to_win"] == pytest.approx(
        (task_deviation / job_deviation) ** 2, rel=0.1
    )
    for m in (1, 3):
        expected = misordered_by_sampling(job_deviation, task_deviation, m)
        assert scalars[f"misordered_after_{m}_observed"] == pytest.approx(expected, abs=0.03)


def test_jobs_that_do_not_differ():
    """Without variation among jobs no number of samples beats history."""
    finding = _examine(_workload(0.0, 0.1, tasks=10))
    assert finding.scalars["job_deviation"] < 0.02
    assert finding.scalars["misordered_after_1_model"] > 0.4


def test_table_and_plot():
    """One row per estimate and number of samples that jobs have tasks for, more than sampled."""
    finding = _examine(_workload(0.2, 0.1, jobs=300, tasks=6))
    table = finding.tables["misordering"]
    assert table.filter(pl.col("estimate") == "history")["misordered"].unique().to_list() == [0.5]
    observed = table.filter(pl.col("estimate").str.contains("this log"))
    assert observed["samples"].to_list() == [1, 2, 3, 4, 5]
    (plot,) = finding.plots
    assert {plot.x, plot.y, plot.series} <= set(table.columns)
    assert "from 1 task on" in finding.verdict


def test_what_a_log_must_have():
    """Tasks, a feature and two jobs of several tasks that share it are needed, and said so."""
    workload = _workload(0.1, 0.1, jobs=3, tasks=2)
    study = misordering(MisorderingParameters())
    without = study.examine(Workload(workload.jobs, workload.meta))
    assert isinstance(without, Unavailable)
    assert "tasks table" in without.reason
    strangers = study.examine(workload)
    assert isinstance(strangers, Unavailable)
    assert "two jobs" in strangers.reason
    nameless = workload.with_jobs(workload.jobs.with_columns(user=pl.lit(None, pl.String)))
    unnamed = study.examine(nameless)
    assert isinstance(unnamed, Unavailable)
    assert "user" in unnamed.reason


def test_misordering_parameters_out_of_range():
    """No features, or no sampled task, is refused."""
    with pytest.raises(InputError, match="features"):
        MisorderingParameters(features=())
    with pytest.raises(InputError, match="samples"):
        MisorderingParameters(samples=(0, 1))
