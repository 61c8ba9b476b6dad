"""The scheduler of tasks as the controller's: nodes, outages, failures, jobs that go."""

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster
from foresail.model.job import JobSize
from foresail.record.log_text import read_log
from foresail.record.records import Sized
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions, Outage
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

POLICIES = (
    "slearn",
    "slearn(deadlines=by_odds)",
    "las(queues=3,first_threshold_seconds=20)",
    "task_fifo",
)


def workload(jobs, slots=4, **columns):
    """Jobs by their tasks' runtimes, a second apart."""
    table = jobs_table(
        {
            "job_id": list(jobs),
            "submit_seconds": [float(number) for number in range(len(jobs))],
            "runtime_seconds": [max(each) for each in jobs.values()],
            "tasks": [len(each) for each in jobs.values()],
            **columns,
        }
    )
    rows = [
        (job, "main", None, task, runtime, 1.0, None)
        for job, runtimes in jobs.items()
        for task, runtime in enumerate(runtimes)
    ]
    nodes = pl.DataFrame(
        [{"node": f"n{at}", "partition": "all", "count": 1, "cpus": 1.0} for at in range(slots)],
        schema=schema.NODES,
    )
    tasks = pl.DataFrame(rows, schema=schema.TASKS, orient="row")
    return Workload(table, WorkloadMeta("made", "hand", slots), nodes, tasks)


JOBS = {"a": [10.0] * 6, "b": [3.0] * 5, "c": [7.0], "d": [5.0, 50.0, 5.0]}


@pytest.mark.parametrize("policy", POLICIES)
def test_on_nodes_as_on_processors(policy):
    """A node of one cpu for each slot is the same place."""
    scenario = Scenario(workload(JOBS), parse_policy(policy))
    pool, nodes = (
        run_scenario(each).jobs.sort("job_id", "tasks")
        for each in (scenario, Scenario(workload(JOBS), parse_policy(policy), place="nodes"))
    )
    assert pool["start_seconds"].to_list() == nodes["start_seconds"].to_list()


@pytest.mark.parametrize("policy", POLICIES)
def test_lost_tasks_run_again(policy):
    """Two nodes go down while tasks run there; each task is completed in the end, once."""
    outages = (Outage("n0", 5.0, 40.0), Outage("n1", 12.0, 13.0))
    scenario = Scenario(
        workload(JOBS),
        parse_policy(policy),
        place="nodes",
        conditions=ClusterConditions(outages=outages),
    )
    rows = run_scenario(scenario).jobs
    completed = rows.filter(pl.col("ended_because") == "completed")
    assert completed.height == sum(map(len, JOBS.values()))
    assert completed.select("job_id", "tasks").is_unique().all()
    assert (rows["ended_because"] == "lost").sum() >= 2


@pytest.mark.parametrize("policy", POLICIES)
def test_the_rest_of_a_job_that_failed_never_starts(policy):
    """Its limit ends the first task, and the others of the queue go on."""
    jobs = {"long": [100.0] * 9, "next": [5.0] * 6}
    limited = workload(jobs, requested_seconds=[20.0, None])
    scenario = Scenario(limited, parse_policy(policy), enforce_limits=True)
    rows = run_scenario(scenario).jobs
    assert (
        rows.filter(pl.col("job_id") == "long")["ended_because"].is_in(["completed"]).not_().all()
    )
    done = rows.filter(pl.col("job_id") == "next")
    assert (done["ended_because"] == "completed").all()
    assert done.height == 6


def test_a_task_that_fits_nowhere_now_keeps_others_waiting():
    """What the queues offer next is waited for, so that it does start; all end."""
    wide = workload({"a": [10.0] * 3, "b": [4.0] * 2, "c": [2.0] * 2})
    tasks = wide.tasks.with_columns(cpus=pl.when(pl.col("job_id") == "b").then(2.0).otherwise(1.0))
    scenario = Scenario(
        Workload(wide.jobs, wide.meta, None, tasks),
        parse_policy("task_fifo"),
        place=Cluster.of_processors(4),
    )
    rows = run_scenario(scenario).jobs
    start = dict(rows.group_by("job_id").agg(pl.col("start_seconds").min()).iter_rows())
    assert start["a"] == 0.0
    assert start["b"] == 10.0
    assert start["c"] >= start["b"]
    assert (rows["ended_because"] == "completed").all()


def sizes_told(policy, path):
    """What the log of a run under a policy says of the sizes of jobs."""
    run_scenario(Scenario(workload(JOBS), parse_policy(policy), event_log=path))
    return [each for each in read_log(path) if isinstance(each, Sized)]


def test_what_pilots_tell_is_logged(tmp_path):
    """Who is sampled, by which tasks, and what follows from them; a thin job is not sampled."""
    told = sizes_told("slearn(pilot_percent=34)", tmp_path / "events.jsonl")
    of_a = [each for each in told if each.size.job_id == "a"]
    assert [each.time for each in of_a] == [0.0, 10.0]
    first, last = (each.size for each in of_a)
    assert (first.queue, len(set(first.pilots)), first.told, first.seconds) == (1, 2, (), None)
    assert last.pilots == first.pilots
    assert (last.queue, last.told, last.seconds) == (0, (10.0, 10.0), 60.0)
    assert [each.size for each in told if each.size.job_id == "c"] == [JobSize("c", 0, 1, "main")]


def test_schedulers_that_sample_nothing_tell_no_sizes(tmp_path):
    """There is nothing that they have learned of a job."""
    assert sizes_told("task_fifo", tmp_path / "events.jsonl") == []
