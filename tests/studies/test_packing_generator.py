"""The generator of jobs that share machines has the properties that its parameters state."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from foresail.traces.generating import ACHIEVED, generate
from foresail.traces.nodes import cluster_of
from foresail_studies.executions._real_use import real_use
from foresail_studies.generators.packing import PackingParameters


def made(seed=3, **parameters):
    return generate("packing", PackingParameters(jobs=60, machines=40, **parameters), seed)


def test_load_deadlines_and_machines():
    """Work near the load; deadlines at the given slacks (golden G16); use that can be simulated."""
    workload = made(load=0.6)
    assert float(workload.meta.header[ACHIEVED + "load"]) == pytest.approx(0.6, rel=0.15)
    slo = workload.jobs.drop_nulls("deadline_seconds")
    slack = (slo["deadline_seconds"] - slo["submit_seconds"]) / slo["runtime_seconds"]
    assert slo.height == 30
    assert set(np.round(slack.to_numpy(), 9)) <= {1.2, 1.4, 1.6, 1.8}
    cluster = cluster_of(workload.nodes)
    assert cluster.total.cpus == 40 * 8
    assert real_use(workload, cluster).segments.shape[0] == workload.usage.height


def test_requests_are_as_far_from_use_as_published():
    """A fifth of the jobs ask for their use within a factor of two, 74 % for more (figure 5.1)."""
    parameters = PackingParameters(jobs=1500, machines=40, users=200, most_tasks=3)
    workload = generate("packing", parameters, 5)
    seconds = pl.col("end_seconds") - pl.col("start_seconds")
    core_seconds = pl.col("average_cpus") * seconds
    used = workload.usage.group_by("job_id").agg(cpus=core_seconds.sum() / seconds.sum())
    asked = workload.jobs.join(used, on="job_id")
    ratio = (asked["cpus_per_task"] / asked["cpus"]).to_numpy()
    assert np.mean((ratio >= 0.5) & (ratio <= 2.0)) == pytest.approx(0.2, abs=0.05)
    assert np.mean(ratio > 2.0) == pytest.approx(0.74, abs=0.05)
    assert 0.5 < np.mean(ratio > 10.0) / np.mean(ratio > 2.0) < 0.6


def test_history_is_of_the_same_applications_and_other_jobs():
    run, history = made(), made(part="history", history_hours=6.0)
    assert len(history) == 180
    requests = ["executable", "cpus_per_task", "memory_bytes_per_task"]
    known = history.jobs.select(requests).unique()
    shared = run.jobs.select(requests).unique().join(known, on="executable")
    assert shared.height > 10
    assert shared.filter(pl.col("cpus_per_task") != pl.col("cpus_per_task_right")).is_empty()
    assert not run.jobs["runtime_seconds"].is_in(history.jobs["runtime_seconds"].implode()).all()


def test_no_task_uses_more_than_a_machine_has():
    """Not even for a moment, or who plans with maxima could start it nowhere."""
    workload = made(load=0.8)
    most = workload.usage["maximum_cpus"]
    assert most.max() == 8.0
    assert (workload.usage["average_cpus"] <= most).all()
    assert (workload.usage["maximum_memory_bytes"] <= 48 * 2**30).all()
