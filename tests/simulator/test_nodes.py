"""The simulated cluster with nodes: preferences, preemption, outages, cycles, delays and noise."""

import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.metrics.summary import deadline_metrics
from foresail.model.changing_nodes import changed
from foresail.model.cluster import Partition, Resources
from foresail.model.decision import Decision, ReasonCode, Start
from foresail.model.errors import InputError
from foresail.model.event import (
    IN_CYCLES,
    STANDARD,
    Allocation,
    Ended,
    NodeAdded,
    NodeChanged,
    NodeDown,
    NodeRemoved,
    NodeUp,
    Submitted,
)
from foresail.model.free_resources import FreeResources
from foresail.model.protocols import Scheduler
from foresail.model.registry import entries
from foresail.record.log_text import MemoryLog
from foresail.record.records import EventTaken, Instructed, Manifest, ReasonsChanged
from foresail.schedulers.stopping import Priority
from foresail.simulator.conditions import ClusterConditions, Outage, random_outages
from foresail.simulator.engine import simulate_events
from foresail.traces import schema
from foresail.traces.nodes import cluster_of
from made_moments import random_node_changes
from made_scenarios import simulate_on_nodes
from made_workloads import nodes, random_workload, workload
from toys import Constant, Doubling

PRIO = parse_policy("prio,requested,doubling")


def spans(schedule):
    """Start and end of every attempt, by job and in order."""
    by_job = defaultdict(list)
    for row in schedule.jobs.iter_rows(named=True):
        by_job[row["job_id"]].append((row["start_seconds"], row["end_seconds"]))
    return dict(by_job)


def test_a_job_elsewhere_than_preferred_runs_longer():
    """The first gang takes the preferred rack; the second cannot and is slower in the other."""
    likes = {"tasks": 2, "preferred": "partition:r1", "slowdown_elsewhere": 1.5}
    schedule = simulate_on_nodes(workload({"a": likes, "b": likes}), PRIO)
    assert spans(schedule) == {"a": [(0, 10)], "b": [(0, 15)]}
    assert schedule.jobs["placement"].to_list() == ["n11:1,n12:1", "n21:1,n22:1"]


@pytest.mark.parametrize(
    ("preferred", "placed", "seconds"),
    [
        ("attribute:gpu", "n21:1,n22:1", 10),
        ("same:rack", "n11:1,n12:1", 10),
        ("spread:rack", "n11:1,n21:1", 10),
        ("partition:r1", "n11:1,n12:1,n21:1", 30),
        (None, "n11:1,n12:1", 10),
    ],
)
def test_every_kind_of_preference(preferred, placed, seconds):
    """Each is given where it can be; where it cannot, the job is slower."""
    job = {"tasks": placed.count(":"), "preferred": preferred, "slowdown_elsewhere": 3.0}
    schedule = simulate_on_nodes(workload({"a": job}, nodes(gpu_racks=(2,))), PRIO)
    row = schedule.jobs.row(0, named=True)
    assert row["placement"] == placed
    assert row["end_seconds"] == seconds


def with_speeds(*speeds):
    """Nodes n11, n12, n21, n22 of these speeds."""
    return nodes().with_columns(pl.Series(schema.SPEED, speeds))


def test_a_gang_is_as_fast_as_the_slowest_of_its_nodes():
    """It gets the fastest that are free; what it does not prefer makes a place slower yet."""
    likes = {"preferred": "partition:r1", "slowdown_elsewhere": 1.5}
    made = workload({"a": {}, "b": {"tasks": 2}, "c": likes}, with_speeds(1.0, 0.5, 4.0, 2.0))
    schedule = simulate_on_nodes(made, PRIO)
    assert schedule.jobs["placement"].to_list() == ["n21", "n11:1,n22:1", "n12"]
    assert spans(schedule) == {"a": [(0, 2.5)], "b": [(0, 10)], "c": [(0, 20)]}
    elsewhere = workload({"c": {**likes, "tasks": 3}}, with_speeds(1.0, 0.5, 4.0, 2.0))
    assert spans(simulate_on_nodes(elsewhere, PRIO)) == {"c": [(0, 15)]}


def test_a_node_that_changes_its_speed():
    """What starts from then on runs as fast as it is."""
    made = workload({"a": {}, "b": {"submit_seconds": 10.0}}, nodes(racks=1, of=1))
    faster = NodeChanged(5.0, replace(cluster_of(made.nodes).partitions[0].nodes[0], speed=4.0))
    schedule = simulate_on_nodes(made, PRIO, ClusterConditions(node_changes=(faster,)))
    assert spans(schedule) == {"a": [(0, 10)], "b": [(10, 12.5)]}


@pytest.mark.parametrize("cycle", [None, 2.0])
def test_a_job_with_a_deadline_stops_the_youngest_without(cycle):
    """Work is lost, the victim starts anew later, and the other keeps running."""
    made = workload(
        {
            "old": {"runtime_seconds": 100.0},
            "young": {"submit_seconds": 2.0, "runtime_seconds": 50.0, "tasks": 2},
            "urgent": {"submit_seconds": 10.0, "tasks": 3, "deadline_seconds": 30.0},
        }
    )
    schedule = simulate_on_nodes(made, PRIO, ClusterConditions(cycle_seconds=cycle))
    first = 0.0 if cycle is None else cycle
    assert spans(schedule) == {
        "old": [(first, first + 100)],
        "young": [(2, 10), (20, 70)],
        "urgent": [(10, 20)],
    }
    because = schedule.jobs.filter(pl.col("job_id") == "young")["ended_because"].to_list()
    assert because == ["preempted", "completed"]


def test_what_runs_on_a_node_that_goes_down_is_lost_and_run_again():
    """The gang restarts on other nodes; nothing is placed on the node until it is back."""
    made = workload({"a": {"tasks": 2}, "b": {"submit_seconds": 6.0, "tasks": 3}})
    conditions = ClusterConditions(outages=(Outage("n11", 5.0, 40.0),))
    schedule = simulate_on_nodes(made, PRIO, conditions)
    assert spans(schedule) == {"a": [(0, 5), (5, 15)], "b": [(15, 25)]}
    wide = workload({"a": {"tasks": 4, "submit_seconds": 7.0}})
    assert spans(simulate_on_nodes(wide, PRIO, conditions)) == {"a": [(40, 50)]}


def test_several_tasks_share_a_node_the_fullest_first():
    """Beside a, b has the two cpus left; c opens another node; d needs what no node has left."""
    table = pl.DataFrame(
        [{"node": f"n{i}", "partition": "all", "count": 1, "cpus": 4.0} for i in (1, 2)],
        schema_overrides=schema.NODES,
    ).select(
        pl.col(name)
        if name in ("node", "partition", "count", "cpus")
        else pl.lit(None, kind).alias(name)
        for name, kind in schema.NODES.items()
    )
    made = workload(
        {
            "a": {"cpus_per_task": 2.0},
            "b": {"tasks": 2, "cpus_per_task": 1.0},
            "c": {"cpus_per_task": 3.0},
            "d": {"cpus_per_task": 2.0},
            "e": {"cpus_per_task": 1.0},
        },
        table,
    )
    schedule = simulate_on_nodes(made, PRIO)
    placed = dict(zip(schedule.jobs["job_id"], schedule.jobs["placement"], strict=True))
    assert placed == {"a": "n1", "b": "n1", "c": "n2", "d": "n1", "e": "n2"}
    assert spans(schedule)["d"] == [(10, 20)]
    assert spans(schedule)["e"] == [(0, 10)]


def staged(made, stages):
    """The same workload where a job has stages: (name, after, tasks of one cpu)."""
    rows = [
        {"job_id": job, "stage": name, "after_stages": after, "task": task, "cpus": 1.0}
        for job, parts in stages.items()
        for name, after, tasks in parts
        for task in range(tasks)
    ]
    kinds = {name: kind for name, kind in schema.TASKS.items() if name in rows[0]}
    return replace(
        made,
        tasks=pl.DataFrame(rows, schema=kinds).with_columns(
            runtime_seconds=pl.lit(None, pl.Float64), memory_bytes=pl.lit(None, pl.Float64)
        ),
    )


def test_a_job_of_several_stages_holds_its_widest_in_its_partition():
    """The DAG holds two of four cpus in r1, whatever the nodes; b has the rest, c the other rack.

    d needs four of the two that are left and waits; e prefers r2, where nothing is left before 10.
    """
    chain = [("map", None, 1), ("reduce", "map", 2)]
    made = workload(
        {
            "dag": {"tasks": 3, "runtime_seconds": 30.0},
            "b": {"tasks": 2},
            "c": {"tasks": 4},
            "d": {"submit_seconds": 1.0, "tasks": 4, "preferred": "partition:r1"},
            "e": {
                "submit_seconds": 2.0,
                "tasks": 3,
                "preferred": "partition:r2",
                "slowdown_elsewhere": 2.0,
            },
        },
        nodes(racks=2, of=4),
    )
    made = staged(made, {"dag": chain, "e": chain})
    schedule = simulate_on_nodes(made, PRIO)
    placed = dict(zip(schedule.jobs["job_id"], schedule.jobs["placement"], strict=True))
    assert spans(schedule) == {
        "dag": [(0, 30)],
        "b": [(0, 10)],
        "c": [(0, 10)],
        "d": [(10, 20)],
        "e": [(10, 20)],
    }
    assert placed["dag"] == "r1"
    assert placed["e"] == "r2"
    assert placed["d"].count("n1") == placed["d"].count("n2") == 2
    assert schedule.meta.counters["refusals"] == 0


def test_stages_that_no_partition_holds_wait_for_ever():
    """Three tasks at once in racks of two: it is counted and has a row, and the ticks end."""
    made = staged(workload({"a": {"tasks": 4}, "b": {}}), {"a": [("x", None, 1), ("y", "x", 3)]})
    schedule = simulate_on_nodes(made, PRIO, ClusterConditions(cycle_seconds=5.0))
    assert spans(schedule) == {"a": [(None, None)], "b": [(5, 15)]}
    assert schedule.meta.counters["never_started"] == 1


class Never(Scheduler):
    """Starts nobody, and would not have noticed if anything had happened."""

    def __init__(self):
        self.asked = 0

    def decide(self, view):
        self.asked += 1
        return Decision()


class NeverInTime(Never):
    ignores_time = True


@pytest.mark.parametrize(("scheduler", "passes"), [(Never, 100), (NeverInTime, 1)])
def test_cycles_end_when_nothing_can_change(scheduler, passes):
    """A scheduler that starts nobody is asked in vain for a while; one without a clock, once."""
    made = workload({"a": {"deadline_seconds": 50.0}})
    asked = scheduler()
    controller = Controller(cluster_of(made.nodes), asked, Constant(10.0), Doubling(), IN_CYCLES)
    schedule = simulate_events(made, controller, "toy", conditions=ClusterConditions(2.0))
    assert asked.asked == passes
    assert schedule.meta.counters["never_started"] == 1
    assert schedule.jobs.select("start_seconds", "deadline_seconds").rows() == [(None, 50.0)]


@pytest.mark.parametrize("seed", range(3))
def test_ticks_without_news_change_nothing(seed, monkeypatch):
    """The same schedule whether or not the scheduler is asked when only time has passed."""
    made = random_workload(seed)
    conditions = ClusterConditions(cycle_seconds=1.0)
    quick = simulate_on_nodes(made, PRIO, conditions)
    monkeypatch.delattr(Priority, "ignores_time")
    slow = simulate_on_nodes(made, PRIO, conditions)
    assert quick.jobs.equals(slow.jobs)
    assert quick.meta.counters["passes"] < slow.meta.counters["passes"]


def test_lost_and_stopped_attempts_are_counted():
    """One of each kind, and a job that goes back stands where it was submitted."""
    made = workload(
        {
            "a": {"tasks": 4},
            "b": {"submit_seconds": 1.0},
            "urgent": {"submit_seconds": 2.0, "deadline_seconds": 90.0},
        }
    )
    conditions = ClusterConditions(outages=(Outage("n11", 3.0, 4.0),))
    schedule = simulate_on_nodes(made, PRIO, conditions)
    counters = schedule.meta.counters
    assert (counters["preempted"], counters["lost"]) == (1, 1)
    assert schedule.jobs["nominal_runtime_seconds"].to_list() == [10.0] * 5
    metrics = deadline_metrics(schedule)
    assert (metrics.preemptions, metrics.lost_attempts, metrics.slo_missed) == (1, 1, 0)


@pytest.mark.parametrize("cycle", [None, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_node_is_double_booked_and_no_job_is_lost(seed, cycle):
    """Under outages, noise and delays: every job completes once, gangs whole, nodes used once."""
    made = random_workload(seed)
    outages = random_outages(cluster_of(made.nodes), 400.0, 150.0, 30.0, seed)
    conditions = ClusterConditions(cycle, 0.5, 0.3, outages, seed=seed)
    schedule = simulate_on_nodes(made, PRIO, conditions)
    jobs = schedule.jobs
    assert jobs.filter(pl.col("ended_because") == "completed").height == len(made)
    assert schedule.meta.counters["refusals"] == 0
    busy = defaultdict(list)
    tasks = dict(zip(made.jobs["job_id"], made.jobs["tasks"], strict=True))
    for row in jobs.iter_rows(named=True):
        places = [place.split(":")[0] for place in row["placement"].split(",")]
        assert len(places) == tasks[row["job_id"]]
        for place in places:
            busy[place].append((row["start_seconds"], row["end_seconds"]))
    for outage in outages:
        busy[outage.node].append((outage.down_seconds, outage.up_seconds))
    for times in busy.values():
        ordered = sorted(span for span in times if span[0] < span[1])
        for before, after in pairwise(ordered):
            assert before[1] <= after[0]
    if cycle is not None:
        assert (jobs["start_seconds"] % cycle == 0).all()
    again = simulate_on_nodes(made, PRIO, conditions)
    assert again.jobs.equals(jobs)


def free_over_time(events, cluster):
    """The least that is ever free, by place, from a log; ends and node events of an instant first.

    What a log tells of a step happened before what the step instructed.
    """
    room, jobs, placed = FreeResources(cluster), {}, {}
    least = {}
    for record in events:
        match record:
            case EventTaken(event=Submitted(job=job)):
                jobs[job.job_id] = job
            case EventTaken(event=Ended(outcome=outcome)):
                room.give_back(jobs[outcome.job_id], placed.pop(outcome.job_id))
            case EventTaken(event=NodeDown(node=node)):
                room.close(node)
            case EventTaken(event=NodeUp(node=node)):
                room.open(node)
            case EventTaken(event=NodeAdded() | NodeChanged() | NodeRemoved() as change):
                cluster = changed(cluster, change)
                room.change(cluster)
            case Instructed(instruction=Start(job_id=job_id, placement=placement)):
                assert room.has_room(jobs[job_id], placement)
                placed[job_id] = placement
                room.take(jobs[job_id], placement)
        for place, free in (*room.by_partition().items(), *room.by_node().items()):
            least[place] = min(least.get(place, 0.0), free.cpus)
    return least


@pytest.mark.parametrize(
    "scheduler", [entry.name for entry in entries("scheduler") if entry.name != "external"]
)
@pytest.mark.parametrize("cycle", [None, 20.0])
def test_nodes_that_come_and_go_are_never_overfull_and_lose_no_job(scheduler, cycle):
    """Whatever the scheduler: every job completes, but those that are too wide for what is left.

    Some are lost in the middle of their work with a node, and some wait for others to come.
    """
    made = random_workload(1, jobs=40)
    cluster = cluster_of(made.nodes)
    lost = wide = 0
    for seed in range(3):
        conditions = ClusterConditions(
            cycle,
            outages=random_outages(cluster, 300.0, 400.0, 30.0, seed),
            node_changes=random_node_changes(cluster, 250.0, 15, seed),
        )
        policy = parse_policy(f"{scheduler},requested,doubling")
        conventions = STANDARD if cycle is None else IN_CYCLES
        log = MemoryLog(Manifest(policy.text, cluster, conventions))
        controller = Controller(cluster, *policy.build(), conventions, log)
        schedule = simulate_events(made, controller, policy.label, conditions=conditions)
        least = free_over_time(log.records, cluster)
        assert min(least.values()) > -1e-9
        jobs = schedule.jobs
        completed = set(jobs.filter(pl.col("ended_because") == "completed")["job_id"])
        left = controller.reasons()
        assert completed | left.keys() == set(made.jobs["job_id"])
        assert {reason.code for reason in left.values()} <= {ReasonCode.TOO_WIDE}
        said = {
            job_id
            for record in log.records
            if isinstance(record, ReasonsChanged) and record.reasons.code is ReasonCode.TOO_WIDE
            for job_id in record.reasons.job_ids
        }
        assert left.keys() <= said
        lost += schedule.meta.counters["lost"]
        wide += len(said)
    assert lost
    assert wide


def test_noise_is_the_same_under_every_policy():
    """An attempt's delay and noise depend on its job alone, and have the stated mean."""
    noisy = ClusterConditions(start_delay_seconds=2.0, runtime_noise=0.5, seed=3)
    held = [sum(noisy.delay_and_runtime(Allocation(f"j{number}"), 10.0)) for number in range(4000)]
    assert sum(held) / len(held) == pytest.approx(12.0, rel=0.03)
    assert held[7] == sum(
        ClusterConditions(None, 2.0, 0.5, seed=3).delay_and_runtime(Allocation("j7"), 10.0)
    )
    assert held[7] != sum(noisy.delay_and_runtime(Allocation("j7", attempt=2), 10.0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ClusterConditions(cycle_seconds=0.0), "cycle_seconds"),
        (lambda: ClusterConditions(runtime_noise=-1.0), "runtime_noise"),
        (lambda: ClusterConditions(outages=(Outage("n11", 5.0, 5.0),)), "up_seconds"),
        (
            lambda: simulate_on_nodes(
                workload({"a": {}}), PRIO, ClusterConditions(outages=(Outage("n99", 5.0, 6.0),))
            ),
            "no such node",
        ),
        (lambda: simulate_on_nodes(workload({"a": {"preferred": "near"}}), PRIO), "preferred"),
        (lambda: cluster_of(nodes().with_columns(cpus=pl.lit(0.0))), "without cpus"),
        (lambda: cluster_of(pl.concat([nodes(), nodes()])), "same name"),
        (lambda: cluster_of(nodes().head(0)), "no nodes"),
        (lambda: cluster_of(with_speeds(1.0, 0.0, 1.0, 1.0)), "not a speed"),
        (lambda: cluster_of(with_speeds(1.0, -2.0, 1.0, 1.0)), "not a speed"),
        (lambda: cluster_of(with_speeds(1.0, math.nan, 1.0, 1.0)), "not a speed"),
        (lambda: cluster_of(with_speeds(1.0, 1.0, 1.0, math.inf)), "not a speed"),
        (lambda: cluster_of(with_speeds("1", "1", "1", "1")), "no numbers"),
        (lambda: Partition("all", Resources(4.0), speed=0.0), "not a speed"),
        (
            lambda: simulate_on_nodes(
                workload({"a": {}}, with_speeds(1.0, 1.0, 2.0, 1.0)),
                PRIO,
                ClusterConditions(cycle_seconds=2.0, share_nodes=True),
            ),
            "cannot share nodes of different speeds",
        ),
    ],
)
def test_bad_input(make, words):
    """Each is refused with what was expected."""
    with pytest.raises(InputError, match=words):
        make()
