"""Runtimes derived from the work: cpu time over a number of cpus."""

import polars as pl
import pytest

from foresail.evaluation.replaying import evaluate
from foresail.evaluation.tables import derived_runtimes
from foresail.model.errors import InputError
from foresail.traces.schema import USAGE
from made_evaluations import as_part, made_workload
from toys import Oracle


def derived(workload, predictor):
    """What is derived, with the predictor's own runtimes as the baseline."""
    return derived_runtimes(workload, predictor, evaluate(workload, predictor))


def usage(rows):
    """A usage table from (job, start, end, average cpus)."""
    return pl.DataFrame(
        {
            "job_id": [row[0] for row in rows],
            "task": [0] * len(rows),
            "start_seconds": [row[1] for row in rows],
            "end_seconds": [row[2] for row in rows],
            "average_cpus": [row[3] for row in rows],
            **{name: [None] * len(rows) for name in list(USAGE)[5:]},
        },
        schema=USAGE,
    )


@pytest.fixture
def workload():
    """Job 1 uses 1 cpu and then 3, half of each; job 2 all of 4; both asked for 4."""
    return made_workload(
        {
            "submit_seconds": [0.0, 10.0],
            "runtime_seconds": [100.0, 50.0],
            "cpus_per_task": [4.0, 4.0],
        },
        usage=usage([("1", 0.0, 50.0, 1.0), ("1", 50.0, 100.0, 3.0), ("2", 10.0, 60.0, 4.0)]),
    )


def test_by_hand(workload):
    """With exact estimates only what is divided by decides."""
    found = {each.name: each for each in derived(workload, as_part(Oracle()))}
    errors = {
        name: dict(
            each.histogram.filter(pl.col("jobs") > 0).select("bucket_percent", "jobs").rows()
        )
        for name, each in found.items()
    }
    assert errors == {
        "runtime": {0: 2},
        "predicted_cpu": {0: 2},
        "actual_cpu": {0: 2},
        "requested_cpu": {-50: 1, 0: 1},
        "initial_cpu": {0: 1, 100: 1},
    }
    assert found["initial_cpu"].shares.within_factor_two == 1.0


def test_without_a_usage_table():
    """From what the jobs table says was used; nothing is known of the first period."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 10.0],
            "runtime_seconds": [100.0, 50.0],
            "used_cpu_seconds": [50.0, 50.0],
        }
    )
    found = {each.name: each for each in derived(workload, as_part(Oracle()))}
    assert list(found) == ["runtime", "predicted_cpu", "actual_cpu", "requested_cpu"]
    assert found["requested_cpu"].shares.under == 0.5


def test_unknown_use_is_said():
    """Without any measured use there is nothing to derive from."""
    workload = made_workload({"submit_seconds": [0.0], "runtime_seconds": [1.0]})
    with pytest.raises(InputError, match="cpu time is known"):
        derived(workload, "recent")
