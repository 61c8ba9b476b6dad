"""The recorded cluster: it does again what a log says, also where it is led elsewhere."""

from dataclasses import replace

import pytest

from foresail.checks.clusters import check_adapter
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.twin import RecordedAdapter, differences
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, Preempt, Start
from foresail.model.event import Ended, NodeAdded, NodeDown, NodeRemoved
from foresail.model.outcome import EndedBecause, Outcome
from foresail.record.log_text import read_log
from foresail.record.records import EventTaken, Instructed
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions, Outage
from scenario.small_cluster import in_parts, workload

NODES = tuple(Node(name, Resources(cpus=1.0)) for name in ("n1", "n2"))
RACK = Cluster((Partition("rack", Resources(cpus=2.0), NODES),))


def started(job_id, node="n1", attempt=1):
    return Start(job_id, Placement((("rack", 1),), ((node, 1),)), attempt)


def ended(job_id, start, end, because=EndedBecause.COMPLETED, code=None):
    return Ended(end, Outcome(job_id, start, end, because, code))


def recorded(*records):
    """A cluster of which each (step, time, instruction or event) was recorded."""
    adapter = RecordedAdapter(RACK)
    for step, now, what in records:
        is_instruction = isinstance(what, Start | Preempt)
        adapter.take((Instructed if is_instruction else EventTaken)(step, now, what))
    return adapter


class Trial:
    """A log that is written just before it happens."""

    def __init__(self):
        self.adapter = recorded()
        self.jobs = 0

    def connect(self):
        return self.adapter

    def start_of(self, seconds):
        self.jobs += 1
        start = started(str(self.jobs))
        self.adapter.take(Instructed(self.jobs, 0.0, start))
        self.adapter.take(EventTaken(self.jobs, seconds, ended(start.job_id, 0.0, seconds)))
        return start

    def change_nodes(self, change):
        self.adapter.take(EventTaken(0, change.time, change))

    def times_begun(self, job_id):
        return sum(each.job_id == job_id for each in self.adapter._begun)


def test_it_is_a_cluster_adapter():
    """By the rules that all of them keep to, with nodes that change."""
    check_adapter("recorded", Trial)


def test_what_is_led_as_the_run_was_reports_what_that_heard():
    """To the word: exit codes, and ends of which the driver heard later."""
    end = ended("a", 10.25, 14.5, EndedBecause.FAILED, code=3)
    cluster = recorded((0, 10.0, started("a")), (1, 15.0, end))
    cluster.carry_out(started("a"), 10.0)
    assert cluster.next_seconds == 15.0
    assert (cluster.reports(14.9), cluster.reports(15.0)) == ([], [end])
    assert cluster.reports(99.0) == []


def test_a_report_is_what_one_step_heard():
    """Also of two steps at the same time, as the clock of a run may have it."""
    a, b = ended("a", 0.0, 5.0), ended("b", 0.0, 5.0)
    cluster = recorded(
        (0, 0.0, started("a")), (0, 0.0, started("b", "n2")), (1, 5.0, b), (2, 5.0, a)
    )
    cluster.carry_out(started("a"), 0.0)
    cluster.carry_out(started("b", "n2"), 0.0)
    assert [cluster.reports(5.0) for _ in range(3)] == [[b], [a], []]


def test_an_attempt_that_starts_later_ends_later():
    """It runs as long as it did; one that is not started does not end."""
    cluster = recorded(
        (0, 1.0, started("a")),
        (0, 1.0, started("b", "n2")),
        (1, 4.0, ended("a", 1.0, 4.0)),
        (2, 5.0, ended("b", 1.0, 5.0)),
    )
    cluster.carry_out(started("a"), 3.0)
    assert cluster.reports(5.9) == []
    assert cluster.reports(9.0) == [ended("a", 3.0, 6.0)]


def test_what_was_stopped_waits_for_that():
    """It ends as long after it is told to as it did, and never without that."""
    stopped = ended("a", 0.0, 9.0, EndedBecause.PREEMPTED)
    records = (0, 0.0, started("a")), (1, 7.0, Preempt("a")), (2, 9.0, stopped)
    as_it_was, sooner, never = (recorded(*records) for _ in range(3))
    for cluster in (as_it_was, sooner, never):
        cluster.carry_out(started("a"), 0.0)
    as_it_was.carry_out(Preempt("a"), 7.0)
    assert as_it_was.reports(9.0) == [stopped]
    sooner.carry_out(Preempt("a"), 3.0)
    assert sooner.reports(9.0) == [ended("a", 0.0, 5.0, EndedBecause.PREEMPTED)]
    assert never.reports(1e9) == []


def test_a_job_that_ended_before_it_was_stopped_does_so_again():
    """The instruction came too late, as it does between any two processes."""
    end = ended("a", 0.0, 8.0)
    cluster = recorded((0, 0.0, started("a")), (1, 7.0, Preempt("a")), (2, 8.0, end))
    cluster.carry_out(started("a"), 0.0)
    cluster.carry_out(Preempt("a"), 7.0)
    assert cluster.reports(8.0) == [end]


def test_a_node_takes_along_what_runs_there_now():
    """Whether or not it did in the log; what is elsewhere now runs on."""
    cluster = recorded(
        (0, 0.0, started("a", "n1")),
        (1, 5.0, NodeDown(5.0, "n1")),
        (2, 6.0, NodeRemoved(6.0, "n2")),
        (3, 7.0, NodeAdded(7.0, NODES[1], "rack")),
        (4, 9.0, ended("a", 0.0, 9.0)),
    )
    cluster.carry_out(started("a", "n2"), 0.0)
    assert cluster.reports(5.0) == [NodeDown(5.0, "n1")]
    lost = ended("a", 0.0, 6.0, EndedBecause.LOST)
    assert cluster.reports(6.0) == [lost, NodeRemoved(6.0, "n2")]
    assert [node.name for each in cluster.cluster.partitions for node in each.nodes] == ["n1"]
    cluster.reports(7.0)
    assert cluster.cluster == RACK
    assert cluster.reports(99.0) == []


def test_what_was_not_stopped_ends_when_it_is():
    """At once, and once: a second instruction changes nothing."""
    cluster = recorded((0, 0.0, started("a")), (1, 8.0, ended("a", 0.0, 8.0)))
    cluster.carry_out(started("a"), 2.0)
    cluster.carry_out(Preempt("a", attempt=2), 3.0)
    cluster.carry_out(Preempt("a"), 4.0)
    cluster.carry_out(Preempt("a"), 5.0)
    assert cluster.reports(99.0) == [ended("a", 2.0, 4.0, EndedBecause.PREEMPTED)]
    assert cluster.reports(99.0) == []


def test_a_new_driver_finds_what_the_log_began():
    """Ends that are past are reported; what the log never began begins."""
    cluster = recorded((0, 0.0, started("a")), (1, 5.0, ended("a", 0.0, 5.0)))
    assert cluster.resume([started("a"), started("b", "n2")], 8.0) == [ended("a", 0.0, 5.0)]
    cluster.carry_out(Preempt("b"), 9.0)
    assert cluster.reports(9.0) == [ended("b", 8.0, 9.0, EndedBecause.PREEMPTED)]


CONDITIONS = {
    "outages": ClusterConditions(outages=(Outage("n1", 4.0, 20.0), Outage("n2", 9.0, 11.0))),
    "changes": ClusterConditions(node_changes=(NodeRemoved(5.0, "n1"), NodeRemoved(9.0, "n3"))),
    "delays": ClusterConditions(start_delay_seconds=2.0, runtime_noise=0.3),
    "cycles": ClusterConditions(cycle_seconds=4.0),
}


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize(
    "policy", ["prio,recent", "easy,recent,incremental", "tetrisched", "task_fifo,recent"]
)
def test_simulations_are_decided_again(tmp_path, policy, conditions):
    """Nodes that take jobs along, jobs that are stopped, tasks apart, ends at the same instant."""
    path = tmp_path / "events.jsonl"
    jobs = in_parts() if policy.startswith("task_fifo") else workload()
    scenario = Scenario(jobs, parse_policy(policy), "nodes", conditions=conditions)
    run_scenario(replace(scenario, event_log=path))

    def build(manifest):
        parts = parse_policy(manifest.policy).build()
        return Controller(manifest.cluster, *parts, manifest.conventions)

    assert list(differences(read_log(path), build)) == []
