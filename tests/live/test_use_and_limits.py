"""What jobs use is measured, kept, and learned from; who holds too much memory is ended."""

from __future__ import annotations

import sys

import pytest

from foresail.live.adapters.local.cluster import (
    LocalCluster,
    LocalParameters,
    measured,
)
from foresail.live.cluster_plugin import UseSample
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from foresail_studies.predictors.dspredict import UsagePredictor
from local_runs import LocalRun

_HOLDS = "import time; held = bytearray(150 * 2**20); time.sleep(30)"
_SPINS = "import time\nwhile time.process_time() < 1.0: pass"


@pytest.fixture
def run(tmp_path):
    run = LocalRun(tmp_path, sample_seconds=0.2)
    yield run
    run.adapter.close()


def python(job_id, code, **fields):
    return CommandJob(job_id, "name", (sys.executable, "-c", code), "/", **fields)


def test_a_job_that_holds_more_memory_than_it_may_is_ended_at_its_limit(run):
    outcome = run.ran(python("1", _HOLDS, memory_bytes=100 * 2.0**20))
    assert outcome.ended_because is EndedBecause.LIMIT
    assert "more than it may" in run.notes[0]


def test_one_that_holds_less_is_not(run):
    outcome = run.ran(python("1", _HOLDS.replace("30", "1"), memory_bytes=400 * 2.0**20))
    assert outcome.ended_because is EndedBecause.COMPLETED
    assert outcome.used["memory_max"] > 150 * 2**20


def test_the_use_of_cpus_is_measured_and_dspredict_learns_it(run):
    job = python("1", _SPINS, user="ann")
    outcome = run.ran(job)
    assert all(each.job_id == "1" for each in run.samples)
    assert 0.2 < outcome.used["cpu_time"] < 1.5
    assert outcome.used["cpu"] < 1.3
    predictor = UsagePredictor()
    for _ in range(3):
        predictor.observe(job.specification(0.0), outcome, outcome.used)
    belief = predictor.predict(job.specification(9.0), 9.0)["cpu"]
    assert belief.mean() == pytest.approx(outcome.used["cpu"])


def test_what_is_measured_is_told_per_task():
    looks = [UseSample("1", 1, 0.0, 10.0, 2.0, 100.0), UseSample("1", 1, 10.0, 40.0, 4.0, 500.0)]
    assert measured(looks, 2) == {
        "cpu": 1.75,
        "memory": 200.0,
        "cpu_time": 70.0,
        "memory_time": 8000.0,
        "cpu_max": 2.0,
        "memory_max": 250.0,
    }
    assert measured([], 2) == {}


def test_the_machine_is_divided_into_nodes(tmp_path):
    run = LocalRun(tmp_path, cpus=5, nodes=2)
    nodes = run.adapter.cluster.partitions[0].nodes
    assert [each.total.cpus for each in nodes] == [3.0, 2.0]
    assert run.adapter.cluster.total.cpus == 5.0
    assert len({each.name for each in nodes}) == 2
    run.adapter.close()
    for wrong in ({"nodes": 3, "cpus": 2}, {"nodes": -1}, {"sample_seconds": 0.0}):
        with pytest.raises(InputError, match=r"nodes|sample_seconds"):
            LocalCluster(LocalParameters(**wrong)).connect(run.context)
