"""Values per job and quantity, from a usage table or from the jobs table."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from foresail.model.errors import UnknownNameError
from foresail.traces import schema
from foresail.traces.measured import QUANTITIES, quantity, usage_table, used_by_job
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.readers.google import with_use


def _workload(usage: pl.DataFrame | None = None) -> Workload:
    jobs = jobs_table(
        {
            "job_id": ["a", "b", "c"],
            "submit_seconds": [0.0, 1.0, 2.0],
            "runtime_seconds": [100.0, 0.0, None],
            "tasks": [2, 1, 1],
            "cpus_per_task": [4.0, 1.0, 1.0],
            "used_cpu_seconds": [50.0, 0.0, None],
            "used_memory_bytes": [1e9, 2e9, None],
        }
    )
    return Workload(jobs, WorkloadMeta("made", "made"), usage=usage)


USAGE = pl.DataFrame(
    {
        "job_id": ["a", "a", "a", "c"],
        "task": [0, 0, 1, 0],
        "start_seconds": [0.0, 300.0, 0.0, 0.0],
        "end_seconds": [300.0, 400.0, 100.0, 300.0],
        "average_cpus": [1.0, 2.0, 4.0, 0.5],
        "maximum_cpus": [2.0, 2.5, 4.5, None],
        "sampled_cpus": [None, None, None, None],
        "average_memory_bytes": [10.0, None, 30.0, None],
        "maximum_memory_bytes": [12.0, 11.0, 35.0, None],
    },
    schema=schema.USAGE,
)

FROM_USAGE = {
    "runtime": [100.0, 0.0, np.nan],
    "cpu": [(300 + 200 + 400) / 500, np.nan, 0.5],
    "memory": [(3000 + 3000) / 400, np.nan, np.nan],
    "cpu_time": [900 / 2, np.nan, 150.0],
    "memory_time": [6000 / 2, np.nan, np.nan],
    "cpu_max": [4.5, np.nan, np.nan],
    "memory_max": [35.0, np.nan, np.nan],
    "cpu_spread": [(4.0 - (300 + 200) / 400) / 2, np.nan, np.nan],
    "memory_spread": [(30.0 - 10.0) / 2, np.nan, np.nan],
}

FROM_JOBS = {
    "runtime": [100.0, 0.0, np.nan],
    "cpu": [2.0, np.nan, np.nan],
    "memory": [1e9, 2e9, np.nan],
    "cpu_time": [200.0, 0.0, np.nan],
    "memory_time": [1e11, 0.0, np.nan],
    "cpu_max": [np.nan, np.nan, np.nan],
    "memory_max": [np.nan, np.nan, np.nan],
    "cpu_spread": [np.nan, np.nan, np.nan],
    "memory_spread": [np.nan, np.nan, np.nan],
}


@pytest.mark.parametrize("name", sorted(QUANTITIES))
def test_from_usage(name):
    """Averages over measured time, sums per task, highest of any period, spread of tasks' averages.

    What was not measured, and the spread of one task, is nan.
    """
    assert_allclose(quantity(_workload(USAGE), name), FROM_USAGE[name])


@pytest.mark.parametrize("name", sorted(QUANTITIES))
def test_from_jobs(name):
    """Without a usage table what the jobs table says was used; it knows no maxima."""
    assert_allclose(quantity(_workload(), name), FROM_JOBS[name])


def test_unknown_quantity():
    """A misspelt name is refused with the nearest known."""
    with pytest.raises(UnknownNameError, match="memory_time"):
        quantity(_workload(), "memory-time")


def test_tasks_of_the_same_number_in_different_stages_are_different_tasks():
    """Two of job a: 0 of map and 0 of reduce; of c there is one, whatever its stage is called."""
    stages = pl.Series("stage", ["map", "map", "reduce", None], dtype=pl.String)
    usage = USAGE.with_columns(task=pl.lit(0, pl.Int64)).with_columns(stages)
    for name in QUANTITIES:
        assert_allclose(quantity(_workload(usage), name), FROM_USAGE[name])
    two = used_by_job(_workload(USAGE))
    assert used_by_job(_workload(usage)) == two
    assert usage_table(usage).columns == [*schema.USAGE, "stage"]
    used = with_use(_workload().jobs, USAGE)["used_cpu_seconds"].to_list()
    assert with_use(_workload().jobs, usage)["used_cpu_seconds"].to_list() == used
