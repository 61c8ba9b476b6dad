"""The generator of jobs that share machines has the properties that its parameters state."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.simulator.real_use import real_use
from foresail.traces.generating import ACHIEVED, generate
from foresail.traces.generators.packing import PackingParameters
from foresail.traces.nodes import cluster_of


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
    workload = made(load=0.8, utilisation=0.9)
    most = workload.usage["maximum_cpus"]
    assert most.max() == 8.0
    assert (workload.usage["average_cpus"] <= most).all()
    assert (workload.usage["maximum_memory_bytes"] <= 48 * 2**30).all()


def correlation_of(workload):
    """Of the logarithms of what a job's first two tasks hold, around their application's mean."""
    tasks = workload.usage.filter(pl.col("task") < 2).group_by("job_id", "task")
    held = tasks.agg(pl.col("average_memory_bytes").mean().log().alias("held"))
    held = held.join(workload.jobs.select("job_id", "executable", "tasks"), on="job_id")
    around = pl.col("held") - pl.col("held").filter(pl.col("task") == 0).mean().over("executable")
    pairs = held.with_columns(around=around).filter(pl.col("tasks") > 1).sort("job_id", "task")
    return float(np.corrcoef(pairs["around"].to_numpy().reshape(-1, 2).T)[0, 1])


def test_use_of_tasks_is_as_correlated_as_is_asked_for():
    """Not, by half, and wholly, but for what changes with time; as before if nothing is asked."""
    for asked in (0.0, 0.5, 0.98):
        found = correlation_of(made(part="history", use_correlation=asked))
        assert found == pytest.approx(asked, abs=0.12)
    default = made(part="history").usage
    deviations = PackingParameters().use_log_deviations
    assert deviations == (0.4, 0.15)
    alike = made(part="history", use_correlation=0.4**2 / (0.4**2 + 0.15**2)).usage
    assert np.allclose(default["average_cpus"], alike["average_cpus"])


def by_phase(workload, column):
    """Per application with some tasks, what they use in the first tenth of their runtime and later.

    In the tenth before the last fifth, that is, as shares of their average; and how many tasks.
    """
    tasks = workload.tasks.select("job_id", "task", seconds="runtime_seconds")
    rows = workload.usage.join(tasks, on=["job_id", "task"]).filter(pl.col("seconds") >= 300)
    rows = rows.join(workload.jobs.select("job_id", "executable", "submit_seconds"), on="job_id")
    lasts = pl.col("end_seconds") - pl.col("start_seconds")
    middle = ((pl.col("start_seconds") + pl.col("end_seconds")) / 2 - pl.col("submit_seconds")) / (
        pl.col("seconds")
    )

    def mean(condition):
        chosen = pl.when(condition).then(lasts).otherwise(0.0)
        return (pl.col(column) * chosen).sum() / chosen.sum()

    found = rows.group_by("executable", maintain_order=True).agg(
        (mean(middle < 0.1) / mean(middle >= 0.0)).alias("early"),
        (mean((middle > 0.55) & (middle < 0.75)) / mean(middle >= 0.0)).alias("late"),
        pl.struct("job_id", "task").n_unique().alias("tasks"),
    )
    return found.filter(pl.col("tasks") > 100)


def test_tasks_load_and_then_compute_by_so_much():
    """Memory falls by the contrast from loading to computing, and cpus rise by it."""
    workload = made(part="history", phase_contrast=4.0)
    for column, falls in (("average_memory_bytes", 4.0), ("average_cpus", 1.0 / 4.0)):
        found = by_phase(workload, column).drop_nulls()
        assert found.height > 15
        assert (found["early"] / found["late"]).median() == pytest.approx(falls, rel=0.15)


def test_phases_change_no_job_and_no_average():
    """Other than use over time all is as without them, but for what no machine has."""
    flat, phased = made(), made(phase_contrast=3.0)
    used = ["used_cpu_seconds", "used_memory_bytes"]
    assert flat.jobs.drop(used).equals(phased.jobs.drop(used))
    assert phased.tasks.equals(flat.tasks)
    for column in ("average_cpus", "average_memory_bytes"):
        lasts = pl.col("end_seconds") - pl.col("start_seconds")
        without, used = (
            each.usage.select((pl.col(column) * lasts).sum()).item() for each in (flat, phased)
        )
        assert used == pytest.approx(without, rel=0.05)
    real_use(phased, cluster_of(phased.nodes))
    assert phased.meta.header["phase_contrast"] == "3.0"


def test_a_contrast_below_one_is_refused():
    with pytest.raises(InputError, match="phase_contrast"):
        PackingParameters(phase_contrast=0.5)
