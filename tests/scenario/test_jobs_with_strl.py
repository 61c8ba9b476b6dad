"""Workloads whose jobs have STRL of their own: simulated where that is kept to, else refused."""

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.model.cluster import Node, Resources
from foresail.model.errors import InputError
from foresail.model.event import NodeAdded
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from scenario.small_cluster import asking, in_parts

PLANNING = "tetrisched(window_slots=8,slot_seconds=5),requested"


def run(jobs, policy=PLANNING, **options):
    """The schedule on the workload's nodes."""
    return run_scenario(Scenario(jobs, parse_policy(policy), "nodes", **options))


def test_a_job_runs_on_its_nodes_from_its_start_on(tmp_path):
    """Not before 100 s, when all others are over, and on n2 and n4 though n1 is as free."""
    text = "nCk({n2, n4}, 2, 100s, 10s, 5)"
    log = tmp_path / "log.jsonl"
    schedule = run(asking(text), event_log=log)
    (row,) = schedule.jobs.filter(pl.col("job_id") == "4").iter_rows(named=True)
    assert row["start_seconds"] == 103.0
    starts = [line for line in log.read_text().splitlines() if '"Start"' in line and '"4"' in line]
    assert all('["n2",1],["n4",1]' in line for line in starts)
    assert starts


def test_it_runs_longer_where_its_request_says_so():
    """Its gpu option is gone before the others have left, the other one takes twice as long."""
    text = "max(nCk({n1, n2}, 2, 200s, 5s, 1), nCk({n3, n4}, 2, 100s, 10s, 5))"
    schedule = run(asking(text))
    (row,) = schedule.jobs.filter(pl.col("job_id") == "4").iter_rows(named=True)
    assert (row["start_seconds"], row["end_seconds"]) == (103.0, 113.0)


@pytest.mark.parametrize("text", ["nCk({n5, n6}, 2, 0, 5, 1)", "nCk(new, 2, 0, 5, 1)"])
def test_it_waits_for_nodes_that_come_later(text):
    """Two nodes come at 50 and 60 s; by name or by their partition they may be asked for at 3 s."""
    later = tuple(
        NodeAdded(seconds, Node(name, Resources(cpus=1.0)), "new")
        for name, seconds in (("n5", 50.0), ("n6", 60.0))
    )
    schedule = run(asking(text), conditions=ClusterConditions(node_changes=later))
    (row,) = schedule.jobs.filter(pl.col("job_id") == "4").iter_rows(named=True)
    assert (row["start_seconds"], row["placement"]) == (60.0, "n5:1,n6:1")


@pytest.mark.parametrize(
    "policy",
    ["easy,requested", "fcfs", "guarded,requested"],
)
def test_a_scheduler_that_would_run_it_elsewhere_is_refused(policy):
    """Before anything runs, whatever engine it would have had."""
    with pytest.raises(InputError) as raised:
        run(asking("nCk(all, 2, 0, 5, 1)"), policy)
    assert "field 'strl': this scheduler would run jobs where" in str(raised.value)


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        (asking("nCk(all, 3, 0, 5, 1)"), "job 4: all tasks of a job start together (found 'k=3')"),
        (asking("nCk(al, 2, 0, 5, 1)"), "job 4: an unknown name (line 1, column 5 of the request)"),
        (asking("nCk(all, 2, 0, 5, 1)", preferred="same:rack"), "its STRL says that"),
        (asking("nCk(all, 2, 0, 5, 1)", value=2.0), "its STRL says that (found 2.0)"),
        (asking("nCk(all, 2, 0, 5, 1)", made=in_parts()), "job 4: a job of stages"),
    ],
)
def test_a_wrong_request_is_told_with_its_job(jobs, words):
    """File, job, field, what was found and what was expected."""
    with pytest.raises(InputError) as raised:
        run(jobs)
    assert str(raised.value).startswith("small, field ")
    assert words in str(raised.value)
