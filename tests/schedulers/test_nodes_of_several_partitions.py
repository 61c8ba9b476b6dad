"""Partitions that share nodes: jobs of any number of them, on processors and on named nodes."""

import random
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.control.policy import parse_policy
from foresail.model.cluster import Node, Resources
from foresail.model.event import NodeAdded
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

SHARED = {"A": 4, "A,B": 4, "B": 4}
NODES = schema.laid_out(
    pl.DataFrame({"node": ["a", "ab", "b", "c"], "partition": ["A", "A,B", "B", "C"], "cpus": 4.0}),
    schema.NODES,
)
BELONG = {"a": "A", "ab": "AB", "b": "B", "c": "C"}
POLICIES = (
    "easy",
    "fcfs",
    "conservative",
    "easy(order=shortest),recent,incremental",
    "foresail",
    "easy(reservations=2)",
)
ON_NODES = ("priority", "easy", "conservative", "3sigma", "tetrisched", "capacity")


def schedule(jobs, partitions, policy="easy", nodes=None):
    """Of jobs as (partition, submission, cpus, runtime) that ask for just as long."""
    columns = dict(
        zip(("partition", "submit", "tasks", "run"), zip(*jobs, strict=True), strict=True)
    )
    table = jobs_table(
        {
            "job_id": [str(number) for number in range(len(jobs))],
            "submit_seconds": list(map(float, columns["submit"])),
            "runtime_seconds": list(map(float, columns["run"])),
            "requested_seconds": [max(float(each), 1.0) for each in columns["run"]],
            "tasks": columns["tasks"],
            "partition": pl.Series(columns["partition"], dtype=pl.String),
            "user": [f"u{number % 3}" for number in range(len(jobs))],
        }
    )
    meta = WorkloadMeta("made", "hand", sum(partitions.values()) if partitions else 16)
    workload = Workload(table, meta, nodes, partitions=partitions)
    place = "processors" if partitions else "nodes"
    return run_scenario(Scenario(workload, parse_policy(policy), place))


def starts(*arguments):
    return schedule(*arguments).jobs["start_seconds"].to_list()


def test_a_job_spans_what_is_its_own_and_what_is_shared():
    """Six of A's eight: the four that are A's alone first, so that B has the most of the rest."""
    made = schedule([("A", 0, 6, 10), ("B", 0, 6, 10), ("A", 0, 1, 5)], SHARED).jobs
    assert made["start_seconds"].to_list() == [0.0, 0.0, 10.0]
    assert made["placement"].to_list() == ["A:4,A,B:2", "B:4,A,B:2", "A"]


def test_who_came_first_has_what_is_shared():
    """B's job of eight waits for A's of six, and A's next waits for it: it needs what is shared."""
    jobs = [("A", 0, 6, 10), ("B", 1, 8, 10), ("A", 2, 8, 10), ("B", 3, 4, 30)]
    assert starts(jobs, SHARED) == [0.0, 10.0, 20.0, 20.0]


def test_short_jobs_have_what_is_kept_for_others():
    """Four are kept for B's job that starts at 10; A's of 7 s has them until then."""
    jobs = [("B", 0, 4, 10), ("B", 1, 8, 10), ("A", 2, 8, 20), ("A", 3, 8, 7)]
    assert starts(jobs, SHARED) == [0.0, 10.0, 20.0, 3.0]
    assert starts(jobs, SHARED, "fcfs") == [0.0, 10.0, 20.0, 40.0]


def test_a_job_of_several_partitions_runs_in_one():
    """In B when A is full; never across both, though A and B have room for half of it each."""
    assert starts([("A", 0, 6, 10), ("A,B", 1, 4, 10)], {"A": 6, "B": 6}) == [0.0, 1.0]
    assert starts([("A", 0, 3, 9), ("B", 0, 3, 9), ("B,A", 1, 4, 9)], {"A": 6, "B": 6}) == [0, 0, 9]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_nobody_shares_is_as_if_it_were_apart(policy):
    """One of B's processors belongs to C too, which no job names: as if B had it alone."""
    for seed in range(6):
        draw = random.Random(seed)
        jobs = [
            (draw.choice("AB"), t, draw.randint(1, 5), draw.choice([1, 9, 40])) for t in range(30)
        ]
        shared = schedule(jobs, {"A": 5, "B": 4, "B,C": 1}, policy).jobs
        apart = schedule(jobs, {"A": 5, "B": 5}, policy).jobs
        columns = ["job_id", "start_seconds", "end_seconds"]
        assert shared.select(columns).equals(apart.select(columns)), seed


def most_held(rows, count):
    """Most that attempts hold at once, each so much."""
    changes = [(r["start_seconds"], 1, c) for r, c in zip(rows, count, strict=True)]
    changes += [(r["end_seconds"], 0, -c) for r, c in zip(rows, count, strict=True)]
    held = most = 0
    for _, _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most


def places_of(text, names):
    """Names of places, and how many tasks each has (None: all)."""
    found = re.findall(rf"({'|'.join(sorted(names, key=len, reverse=True))})(?::(\d+))?", text)
    return {name: int(many) if many else None for name, many in found}


JOBS = st.lists(
    st.tuples(
        st.sampled_from(["A", "B", "A,B", "C", None, "nowhere"]),
        st.integers(0, 40),
        st.integers(1, 8),
        st.sampled_from([0, 1, 5, 20]),
    ).map(lambda job: (*job[:2], min(job[2], 4) if job[0] in ("C", None) else job[2], job[3])),
    min_size=1,
    max_size=14,
)


@settings(max_examples=12, deadline=None)
@given(
    JOBS, st.sampled_from([*((each, False) for each in POLICIES), *((n, True) for n in ON_NODES)])
)
def test_no_partition_is_overfull(jobs, how):
    """Every job runs, within one partition that it names, and no processor has two at once."""
    policy, on_nodes = how
    jobs = sorted(jobs, key=lambda job: job[1])
    sizes = {**SHARED, "C": 4}
    belong = BELONG if on_nodes else {name: name for name in sizes}
    made = schedule(jobs, {} if on_nodes else sizes, policy, NODES if on_nodes else None).jobs
    made = made.filter(pl.col("end_seconds").is_not_null())
    assert made["job_id"].n_unique() == len(jobs)
    of_place = {name: ([], []) for name in belong}
    for row in made.iter_rows(named=True):
        places = places_of(row["placement"], belong)
        asked = [name for name in (row["partition"] or "").split(",") if name in "ABC" and name]
        assert not asked or any(all(name in belong[p] for p in places) for name in asked)
        for name, tasks in places.items():
            of_place[name][0].append(row)
            of_place[name][1].append(row["cpus"] if tasks is None else tasks)
    assert all(most_held(*held) <= 4 for held in of_place.values())


@pytest.mark.parametrize("policy", ["easy", "fcfs", "conservative"])
def test_a_partition_that_shares_nothing_knows_nothing_of_others(policy):
    """C's jobs start as they do without any others, whatever A and B do meanwhile."""
    for seed in range(4):
        draw = random.Random(seed)
        jobs = [
            (
                draw.choice(["A", "B", "A,B", "C", "C"]),
                t,
                draw.randint(1, 4),
                draw.choice([1, 9, 40]),
            )
            for t in range(40)
        ]
        every = schedule(jobs, {**SHARED, "C": 4}, policy).jobs
        mine = schedule(
            [job for job in jobs if job[0] == "C"],
            {"A": 1, "C": 4},
            policy,
        ).jobs
        start = every.filter(pl.col("partition") == "C")["start_seconds"]
        assert start.to_list() == mine["start_seconds"].to_list()


def test_nodes_that_come_may_be_shared():
    """A node of both comes at 5 s: A's job of eight has its four and those."""
    nodes = NODES.filter(pl.col("partition") != "A,B")
    added = NodeAdded(5.0, Node("new", Resources(4.0)), "A,B")
    table = jobs_table(
        {
            "job_id": ["1", "2"],
            "submit_seconds": [0.0, 6.0],
            "runtime_seconds": [10.0, 10.0],
            "requested_seconds": [10.0, 10.0],
            "tasks": [8, 4],
            "partition": ["A", "B"],
        }
    )
    workload = Workload(table, WorkloadMeta("made", "hand", 12), nodes)
    scenario = Scenario(
        workload,
        parse_policy("priority"),
        "nodes",
        conditions=ClusterConditions(node_changes=(added,)),
    )
    made = run_scenario(scenario).jobs
    assert made["start_seconds"].to_list() == [5.0, 6.0]
    assert made["placement"].to_list() == ["a:4,new:4", "b"]
