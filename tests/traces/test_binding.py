"""Jobs that ask for more than processors: refused by a pool of these, or counted by what binds."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.scenario.engines import COMPILED_REPLAY, EVENT_ENGINE
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces import schema
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail.traces.folder import write_folder
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate, simulate_by_events, simulate_on_nodes

app = app_of("compare")

GIB = 2.0**30
FCFS = parse_policy("fcfs,requested")


def made(gpus=None, memory=None, cpus=1.0, nodes=True) -> Workload:
    """Four jobs of an hour at once; two nodes of 8 cpus, 16 GiB and 2 gpus each."""
    asked = {"gpus_per_task": gpus, "memory_bytes_per_task": memory}
    jobs = jobs_table(
        {
            "job_id": ["a", "b", "c", "d"],
            "submit_seconds": [0.0] * 4,
            "runtime_seconds": [3600.0] * 4,
            "requested_seconds": [3600.0] * 4,
            "tasks": [1] * 4,
            "cpus_per_task": [cpus] * 4,
        }
        | {name: [each] * 4 for name, each in asked.items() if each is not None}
    )
    row = {"node": "n", "count": 2, "cpus": 8.0, "memory_bytes": 16 * GIB, "gpus": 2.0}
    table = pl.DataFrame([row | {"partition": None, "model": None}], schema=schema.NODES)
    return Workload(jobs, WorkloadMeta("made", "made", 16), table if nodes else None)


def _one_with_gpus() -> pl.DataFrame:
    """Four jobs of a cpu, the first of a gpu as well."""
    gpus = pl.Series("gpus_per_task", [1.0, 0.0, 0.0, 0.0])
    return made(gpus=1.0).jobs.with_columns(gpus)


@pytest.mark.parametrize("engine", [simulate, simulate_by_events])
@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (made(gpus=2.0), r"4 of 4 jobs ask for gpus.*--on-nodes.*dominant_resource.*drop_gpus"),
        (
            made(gpus=2.0, nodes=False),
            r"4 of 4 jobs ask for gpus.*expected a filter.*replayable.*drop_gpus",
        ),
        (made(gpus=1.0).with_jobs(_one_with_gpus()), r"1 of 4 jobs ask for gpus.*drop_gpus"),
        (made(memory=12 * GIB), r"4 of 4 jobs ask for more memory than processors.*--on-nodes"),
    ],
    ids=["gpus", "gpus without nodes", "gpus of one job", "memory"],
)
def test_a_pool_of_processors_refuses_what_it_cannot_count(engine, workload, words):
    """With the ways out: on nodes, where there are some, or a filter."""
    with pytest.raises(InputError, match=words):
        engine(workload, FCFS)


@pytest.mark.parametrize(
    "workload",
    [
        made(),
        made(gpus=1.0, nodes=False),
        made(memory=1.5 * GIB),
        made(memory=12 * GIB, nodes=False),
    ],
    ids=[
        "processors alone",
        "as many gpus as processors",
        "little memory",
        "nobody knows of how much",
    ],
)
def test_where_processors_bind_they_are_enough(workload):
    """Nothing changes where processors are what the machine runs out of, or nobody can say."""
    assert simulate(workload, FCFS).jobs["start_seconds"].to_list() == [0.0] * 4


def test_memory_that_is_not_counted_is_told_to_whoever_simulates(tmp_path):
    """Once, where jobs ask for some and nobody knows of how much; not where that is known."""
    unknown, known = made(memory=12 * GIB, nodes=False), made(memory=1.5 * GIB)
    for name, workload in (("unknown", unknown), ("known", known)):
        write_folder(workload, tmp_path / name)
    arguments = ["--with", "fcfs,requested"]
    runner, words = CliRunner(), "4 of 4 jobs ask for memory, which is not counted: the log does"
    assert runner.invoke(app, [str(tmp_path / "unknown"), *arguments]).stderr.count(words) == 1
    assert "memory" not in runner.invoke(app, [str(tmp_path / "known"), *arguments]).stderr


@pytest.mark.parametrize("policy", ["easy", "foresail", "conservative"])
def test_what_is_not_counted_holds_up_nobody_in_the_event_engine_either(policy):
    """Memory of which nobody knows how much there is."""
    scenario = Scenario(made(memory=12 * GIB, nodes=False), parse_policy(policy))
    starts = [
        run_scenario(replace(scenario, engine=engine.name)).jobs["start_seconds"].to_list()
        for engine in (COMPILED_REPLAY, EVENT_ENGINE)
    ]
    assert starts[0] == starts[1]
    assert max(starts[1]) < math.inf


@pytest.mark.parametrize("asked", [{"gpus": 2.0}, {"memory": 16 * GIB}], ids=["gpus", "memory"])
def test_counted_by_what_binds_the_pool_is_as_full_as_the_nodes(asked):
    """Each job takes half of all there is of one resource: two run at once, in both simulations."""
    workload = made(**asked)
    counted = apply_filters(workload, [FilterChoice("dominant_resource")])
    assert counted.meta.filters == (("dominant_resource", 4),)
    assert counted.cpus.tolist() == [8.0] * 4
    starts = [0.0, 0.0, 3600.0, 3600.0]
    assert sorted(simulate(counted, FCFS).jobs["start_seconds"]) == starts
    assert (
        sorted(simulate_on_nodes(workload, parse_policy("prio,requested")).jobs["start_seconds"])
        == starts
    )


def test_what_asks_most_of_processors_keeps_them():
    """The filter changes no job whose largest share is that of cpus; without nodes it says so."""
    workload = made(gpus=0.5, cpus=6.0)
    counted = apply_filters(workload, [FilterChoice("dominant_resource")])
    assert (counted.cpus.tolist(), counted.meta.filters[-1][1]) == ([6.0] * 4, 4)
    with pytest.raises(InputError, match="does not say what its nodes"):
        apply_filters(made(gpus=1.0, nodes=False), [FilterChoice("dominant_resource")])
