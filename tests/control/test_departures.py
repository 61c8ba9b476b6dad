"""Maintenance that is known beforehand: who waits for it, who goes first; nothing is lost."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.control.policy import parse_policy
from foresail.metrics.summary import summary
from foresail.model.cluster import Node, Resources
from foresail.model.event import NodeAdded, NodeRemoved
from foresail.simulator.conditions import ClusterConditions
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate_on_nodes

POLICIES = ("priority", "easy", "conservative", "3sigma", "foresail")


def made(*jobs, nodes=2):
    """Jobs (id, submission, runtime, requested time, tasks of a whole node) on nodes of 4 cpus."""
    names = ("job_id", "submit_seconds", "runtime_seconds", "requested_seconds", "tasks")
    columns = {
        name: list(values) for name, values in zip(names, zip(*jobs, strict=True), strict=True)
    }
    columns["cpus_per_task"] = [4.0] * len(jobs)
    table = pl.DataFrame(
        {
            "node": [f"n{number}" for number in range(1, nodes + 1)],
            "partition": ["p"] * nodes,
            "count": [1] * nodes,
            "cpus": [4.0] * nodes,
            "memory_bytes": [1e9] * nodes,
            "gpus": [0.0] * nodes,
            "model": pl.Series([None] * nodes, dtype=pl.String),
        }
    )
    return Workload(jobs_table(columns), WorkloadMeta("made", "made", 4 * nodes), nodes=table)


def away(begin, end, *numbers, known_from=0.0):
    """Nodes of these numbers go, and come back."""
    nodes = [Node(f"n{each}", Resources(4.0, 1e9), {"rack": "p"}) for each in numbers]
    return (
        *(NodeRemoved(begin, node.name, known_from) for node in nodes),
        *(NodeAdded(end, node, "p") for node in nodes),
    )


def starts(workload, policy, changes):
    """The schedule, and the last start of each job."""
    conditions = ClusterConditions(node_changes=changes)
    schedule = simulate_on_nodes(workload, parse_policy(policy), conditions)
    return schedule, dict(schedule.jobs.select("job_id", "start_seconds").iter_rows())


@pytest.mark.parametrize("policy", POLICIES)
def test_the_long_job_waits_and_short_ones_go_first(policy):
    """All nodes are away from 1000 to 2000: nothing is lost, and nothing stands idle for that."""
    workload = made(
        ("long", 0, 3000, 3600, 2), ("short", 10, 200, 300, 1), ("after", 1500, 100, 100, 1)
    )
    schedule, found = starts(workload, policy, away(1000.0, 2000.0, 1, 2))
    assert found["short"] == 10.0
    assert found["long"] >= 2000.0
    assert found["after"] >= 2000.0
    told = summary(schedule)
    assert (told.lost_attempts, told.avoidable_idle_share) == (0, 0.0)
    assert told.utilization == pytest.approx(
        (8 * 3000 + 4 * 200 + 4 * 100) / (8 * (told.makespan_seconds - 1000))
    )
    kept_back = told.mean_wait_seconds - told.mean_eligible_wait_seconds
    assert kept_back == pytest.approx(2000 / 3)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_not_known_beforehand_is_lost(policy):
    """The same nodes go without a word, or are known to go once the job runs."""
    workload = made(("long", 0, 3000, 3600, 2))
    for known_from in (None, 500.0):
        schedule, _ = starts(workload, policy, away(1000.0, 2000.0, 1, 2, known_from=known_from))
        why = "lost" if known_from is None else "revoked"
        assert schedule.jobs["ended_because"].to_list() == [why, "completed"]


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_that_stay_are_used_by_what_ends_too_late(policy):
    """One of two nodes goes: long jobs run on the other in turn, a short one beside the first."""
    workload = made(("a", 0, 700, 2000, 1), ("b", 0, 700, 2000, 1), ("short", 1, 300, 400, 1))
    schedule, found = starts(workload, policy, away(1000.0, 5000.0, 1))
    assert "revoked" not in schedule.jobs["ended_because"]
    assert sorted(found[each] for each in "ab") == [0.0, 700.0]
    if policy in ("priority", "3sigma"):
        assert found["short"] == 1.0


def test_a_job_without_a_requested_time_could_run_for_ever():
    """It waits until the nodes are back, though it would have ended in time."""
    workload = made(("open", 0, 10, None, 2))
    assert starts(workload, "priority", away(1000.0, 2000.0, 1, 2))[1] == {"open": 2000.0}


def test_a_job_that_ends_to_the_second_starts():
    """And one second later it does not."""
    exact = made(("a", 0, 1000, 1000, 2), ("b", 1, 10, 1000, 1))
    _, found = starts(exact, "priority", away(1000.0, 2000.0, 1, 2))
    assert found == {"a": 0.0, "b": 2000.0}


_jobs = st.lists(
    st.tuples(st.integers(0, 80), st.integers(1, 60), st.integers(0, 30), st.integers(1, 3)),
    min_size=1,
    max_size=8,
)
_absences = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 150), st.integers(1, 60)),
    max_size=4,
    unique_by=lambda each: each[0],
)


@given(_jobs, _absences, st.sampled_from(POLICIES))
def test_nothing_is_lost_that_keeps_its_requested_time(jobs, absences, policy):
    """Whatever goes, is known to go, and comes back; and every job runs in the end."""
    workload = made(
        *(
            (f"j{number}", submit, runtime, runtime + spare, tasks)
            for number, (submit, runtime, spare, tasks) in enumerate(sorted(jobs))
        ),
        nodes=3,
    )
    changes = [
        change
        for node, begin, seconds in absences
        for change in away(float(begin), float(begin + seconds), node)
    ]
    schedule, found = starts(workload, policy, tuple(changes))
    assert schedule.jobs["ended_because"].to_list() == ["completed"] * len(jobs)
    assert all(math.isfinite(start) for start in found.values())
