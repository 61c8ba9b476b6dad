"""Jobs of several stages whose tasks share nodes: schedules drawn by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.scenario.beginning import controller_of
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.engine import simulate_events
from foresail.traces import schema
from foresail.traces.folder import convert, read_folder, write_folder
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

SHARED = ClusterConditions(share_nodes=True)


def chain(after="map", requests=(1.0, 1.0)):
    """Two maps of 10 s, then two reduces of 30 s, on one node of four cpus.

    The maps need 3 cpus each, the reduces 4 and 2.
    """
    cpus = [requests[0]] * 2 + [requests[1]] * 2
    stage, task = ["map", "map", "reduce", "reduce"], [0, 1, 0, 1]
    runtime = [10.0, 10.0, 30.0, 30.0]
    of = {"job_id": ["a"] * 4, "stage": stage, "task": task}
    tasks = {
        **of,
        "after_stages": [None, None, after, after],
        "runtime_seconds": runtime,
        "cpus": cpus,
        "memory_bytes": [1.0] * 4,
    }
    usage = {
        **of,
        "start_seconds": [0.0] * 4,
        "end_seconds": runtime,
        "average_cpus": [3.0, 3.0, 4.0, 2.0],
        "average_memory_bytes": [1.0] * 4,
    }
    jobs = {
        "job_id": ["a"],
        "submit_seconds": [0.0],
        "runtime_seconds": [40.0],
        "tasks": [2],
        "cpus_per_task": [1.0],
    }
    nodes = pl.DataFrame(
        [("n", "all", 1, 4.0, 100.0, 0.0, None)], schema=schema.NODES, orient="row"
    )
    meta = WorkloadMeta("chain", "drawn", 4)
    return Workload(jobs_table(jobs), meta, nodes, tasks_table(tasks), usage_table(usage))


def run(workload, policy="task_fifo,requested"):
    """Starts and ends by stage and task."""
    schedule = run_scenario(Scenario(workload, parse_policy(policy), "nodes", conditions=SHARED))
    rows = schedule.jobs.select("stage", "tasks", "start_seconds", "end_seconds")
    return {(stage, tasks): (start, end) for stage, tasks, start, end in rows.iter_rows()}


def test_two_stages_one_after_the_other():
    """Each map gets 2 cpus of 3: 15 s. Each reduce gets 2: the one that needs them ends after 30 s.

    By then the other has done half, and has all 4 for the 15 s that are left.
    """
    assert run(chain()) == {
        ("map", "0"): (0.0, 15.0),
        ("map", "1"): (0.0, 15.0),
        ("reduce", "0"): (15.0, 60.0),
        ("reduce", "1"): (15.0, 45.0),
    }


def test_stages_side_by_side_share_cpus_by_their_own_requests():
    """First 0.5 for each map and 1.5 for each reduce: a sixth, 3/8 and 3/4 of the full pace.

    From 40 s on 0.8, 0.8 and 2.4 for what is left: the maps (10/3 s) end at 52.5 s, when the reduce
    (15 s) has 7.5 s left, for which it has all.
    """
    ran = run(chain(after=None, requests=(0.5, 1.5)))
    assert {name: start for name, (start, _) in ran.items()} == dict.fromkeys(ran, 0.0)
    assert {name: end for name, (_, end) in ran.items()} == pytest.approx(
        {("map", "0"): 52.5, ("map", "1"): 52.5, ("reduce", "0"): 60.0, ("reduce", "1"): 40.0}
    )


def test_a_folder_keeps_the_stages_of_use(tmp_path):
    """Read back, and converted again, it runs the same."""
    write_folder(chain(), tmp_path / "chain")
    convert(tmp_path / "chain", tmp_path / "again")
    for name in ("chain", "again"):
        workload = read_folder(tmp_path / name)
        assert workload.usage["stage"].to_list() == ["map", "map", "reduce", "reduce"]
        assert run(workload) == run(chain())
    usage = chain().usage.with_columns(stage=pl.Series([0, 0, 1, 1]))
    write_folder(replace(chain(), usage=usage), tmp_path / "numbers")
    with pytest.raises(InputError) as caught:
        read_folder(tmp_path / "numbers")
    assert (caught.value.field, caught.value.value) == ("stage", "Int64")
    assert caught.value.expected == "String"


def test_what_was_used_is_told_by_stage():
    """As it is kept beside an event log."""
    tables = []
    scenario = Scenario(chain(), parse_policy("task_fifo,requested"), "nodes", conditions=SHARED)
    simulate_events(
        scenario.workload,
        controller_of(scenario),
        "task_fifo",
        conditions=SHARED,
        used=tables.append,
    )
    ended = tables[0].filter(what="completed").select("seconds", "stage", "task")
    assert ended.rows() == [
        (15.0, "map", 0),
        (15.0, "map", 1),
        (45.0, "reduce", 1),
        (60.0, "reduce", 0),
    ]
