"""Which nodes jobs get: the tightest that fit, whatever the order of the table of nodes."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.control.policy import parse_policy
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate_on_nodes

PLANNING = ("3sigma", "tetrisched")
QUEUES = ("easy", "foresail", "conservative", "fcfs")
COLUMNS = ("submit_seconds", "runtime_seconds", "tasks", "cpus_per_task", "gpus_per_task")


def made(nodes, *jobs):
    """Nodes (name, cpus, gpus), and jobs of some columns that ask for as long as they take."""
    rows = [dict(zip(("node", "cpus", "gpus"), each, strict=True)) for each in nodes]
    table = pl.DataFrame(rows).with_columns(partition=pl.lit("p"), memory_bytes=1e9)
    columns = {
        name: list(map(float, values)) if name != "tasks" else list(values)
        for name, values in zip(COLUMNS, zip(*jobs, strict=True), strict=True)
    }
    columns |= {"job_id": [f"j{number}" for number in range(len(jobs))]}
    columns |= {"requested_seconds": columns["runtime_seconds"]}
    meta = WorkloadMeta("made", "made", int(sum(cpus for _, cpus, _ in nodes)))
    return Workload(jobs_table(columns), meta, nodes=schema.laid_out(table, schema.NODES))


def placed(policy, nodes, *jobs):
    """Start and places of each job, by id."""
    schedule = simulate_on_nodes(made(nodes, *jobs), parse_policy(policy))
    columns = schedule.jobs.select("job_id", "start_seconds", "placement")
    return {job_id: (start, place) for job_id, start, place in columns.iter_rows()}


@pytest.mark.parametrize("policy", [*PLANNING, *QUEUES, "priority", "capacity"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_small_job_leaves_the_large_node_to_another(policy, reverse):
    """Nodes of 53 and 31 cpus; a job of 30, a minute later one of 50 that waits for nothing."""
    nodes = [("A", 53.0, 0.0), ("B", 31.0, 0.0)]
    jobs = (0, 610, 1, 30, 0), (60, 610, 1, 50, 0)
    found = placed(policy, nodes[::-1] if reverse else nodes, *jobs)
    assert found["j1"][0] - 60.0 < 5.0  # the next cycle
    assert "B" in str(found["j0"][1])


@pytest.mark.parametrize("policy", [*PLANNING, *QUEUES, "priority", "capacity"])
def test_gpus_are_left_to_jobs_that_ask_for_some(policy):
    """A job without gpus is on the node that has none, though the other one is tighter."""
    nodes = [("gpu", 4.0, 2.0), ("plain", 16.0, 0.0)]
    found = placed(policy, nodes, (0, 600, 1, 4, 0), (60, 600, 1, 4, 2))
    assert "plain" in str(found["j0"][1])
    assert found["j1"][0] - 60.0 < 5.0


@pytest.mark.parametrize("policy", ["easy", "foresail", "priority", "3sigma"])
@settings(max_examples=6, deadline=None)
@given(st.data())
def test_the_order_of_the_table_of_nodes_changes_nothing(policy, data):
    """Not when jobs start, and not where."""
    sizes = st.tuples(st.sampled_from([2.0, 3.0, 4.0, 7.0, 8.0]), st.sampled_from([0.0, 0.0, 1.0]))
    chosen = data.draw(st.lists(sizes, min_size=2, max_size=5))
    nodes = [(f"n{number}", *size) for number, size in enumerate(chosen)]
    most = max(cpus for _, cpus, _ in nodes)
    tasks = st.sampled_from([(1, 1), (1, 2), (2, 1), (1, int(most))])
    job = st.tuples(st.integers(0, 100), st.integers(1, 200), tasks)
    drawn = sorted(data.draw(st.lists(job, min_size=1, max_size=12)))
    jobs = [(submitted, runtime, *wide, 0) for submitted, runtime, wide in drawn]
    shuffled = data.draw(st.permutations(nodes))
    assert placed(policy, nodes, *jobs) == placed(policy, shuffled, *jobs)


@pytest.mark.parametrize("policy", QUEUES)
def test_a_job_waits_whose_room_is_in_pieces(policy):
    """Three cpus are free on each of two nodes: a job of six starts once one node is free."""
    nodes = [("a", 8.0, 0.0), ("b", 8.0, 0.0)]
    jobs = (0, 100, 1, 5, 0), (0, 200, 1, 5, 0), (10, 50, 1, 6, 0)
    assert placed(policy, nodes, *jobs)["j2"][0] == 100.0


@pytest.mark.parametrize(
    ("runtime", "policy", "expected"), [(500, "easy", "b"), (70, "easy", "a"), (70, "fcfs", "b")]
)
def test_a_job_in_pieces_gets_the_node_that_is_free_first(runtime, policy, expected):
    """Who comes later starts there only if that ends in time; in order of arrival, no earlier."""
    nodes = [(name, 8.0, 0.0) for name in "abc"]
    first = (0, 100, 1, 5, 0), (0, 200, 1, 5, 0), (0, 300, 1, 5, 0), (10, 50, 1, 6, 0)
    found = placed(policy, nodes, *first, (20, runtime, 1, 3, 0))
    assert found["j3"] == (100.0, "a")
    assert found["j4"] == (100.0 if policy == "fcfs" else 20.0, expected)
