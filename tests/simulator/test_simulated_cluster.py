"""The simulated cluster by itself: allocations of stages and tasks, outages, ends that move."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

from foresail.checks.clusters import check_adapter
from foresail.control.loop import Controller
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, Preempt, Start
from foresail.model.errors import InputError
from foresail.model.event import (
    Allocation,
    Ended,
    EndedBecause,
    NodeAdded,
    NodeChanged,
    NodeDown,
    NodeRemoved,
    NodeUp,
)
from foresail.model.job import Job, Stage
from foresail.simulator.conditions import IDEAL, ClusterConditions, Outage
from foresail.simulator.driver import Driver
from foresail.simulator.simulated_cluster import ComingEnd, FixedRuntimes, SimulatedCluster
from toys import Constant, Doubling, Fcfs

RACK = Cluster(
    (
        Partition(
            "rack",
            Resources(cpus=6.0),
            tuple(Node(name, Resources(cpus=2.0)) for name in ("n1", "n2", "n3")),
        ),
    )
)


def single(job_id):
    """A job that holds one cpu."""
    return Job.gang(job_id, 0.0, 1)


def on(*nodes):
    """One task on each node, or several on one that is named several times."""
    counts = tuple((name, nodes.count(name)) for name in dict.fromkeys(nodes))
    return Placement((("rack", len(nodes)),), counts)


def fixed(seconds, *outages, conditions=IDEAL, requested=None, limits=False):
    """A cluster on which allocations run so long; their job has a map stage and a reduce stage."""
    stages = (Stage(3, Resources(1.0), "map"), Stage(1, Resources(1.0), "reduce", ("map",)))
    job = Job("dag", 0.0, stages, requested)
    truth = seconds if callable(seconds) else seconds.__getitem__
    model = FixedRuntimes(truth, lambda _: job, RACK, conditions, enforces_limits=limits)
    return SimulatedCluster(RACK, model, lambda _: job, ClusterConditions(outages=outages))


def told(cluster, until=math.inf):
    """What a cluster reports instant by instant, as text."""
    lines = []
    while (now := cluster.next_seconds) <= until and now < math.inf:
        for event in cluster.reports(now):
            assert event.time == now
            match event:
                case Ended(outcome=outcome):
                    lines.append((now, name(outcome.allocation), outcome.ended_because.value))
                    assert outcome.end_seconds == now
                case NodeDown(node=node) | NodeUp(node=node):
                    lines.append((now, type(event).__name__, node))
    return lines


def name(allocation):
    job_id, stage, tasks, attempt = allocation
    return f"{job_id}.{stage}{list(tasks) or ''}#{attempt}"


def test_stages_and_single_tasks_are_allocations_of_one_job():
    """Two tasks of a stage start together and the third later; the next stage follows the last."""
    early, late = Allocation("dag", "map", (0, 1)), Allocation("dag", "map", (2,))
    reduce = Allocation("dag", "reduce")
    cluster = fixed({early: 10.0, late: 7.0, reduce: 5.0})
    cluster.start(early, on("n1", "n2"), 0.0)
    cluster.carry_out(Start("dag", on("n3"), stage="map", tasks=(2,)), 5.0)
    assert told(cluster) == [
        (10.0, "dag.map[0, 1]#1", "completed"),
        (12.0, "dag.map[2]#1", "completed"),
    ]
    cluster.carry_out(Start("dag", on("n1"), stage="reduce"), 12.0)
    assert told(cluster) == [(17.0, "dag.reduce#1", "completed")]


def test_a_node_takes_along_only_the_allocations_that_it_holds():
    """The single task on n3 is lost and starts again elsewhere; the others of its stage run on."""
    cluster = fixed(lambda allocation: 10.0 * allocation.attempt, Outage("n3", 4.0, 6.0))
    cluster.start(Allocation("dag", "map", (0, 1)), on("n1", "n2"), 0.0)
    cluster.start(Allocation("dag", "map", (2,)), on("n3"), 0.0)
    assert told(cluster, 4.0) == [(4.0, "dag.map[2]#1", "lost"), (4.0, "NodeDown", "n3")]
    cluster.start(Allocation("dag", "map", (2,), attempt=2), on("n1"), 4.0)
    assert told(cluster) == [
        (6.0, "NodeUp", "n3"),
        (10.0, "dag.map[0, 1]#1", "completed"),
        (24.0, "dag.map[2]#2", "completed"),
    ]


def test_single_tasks_are_stopped_by_name():
    """One of two tasks is stopped at once, and a second time in vain."""
    cluster = fixed(lambda _: 10.0)
    for task in (0, 1):
        cluster.start(Allocation("dag", "map", (task,)), on("n1"), 0.0)
    stop = Preempt("dag", stage="map", tasks=(1,))
    cluster.carry_out(stop, 3.0)
    assert told(cluster, 3.0) == [(3.0, "dag.map[1]#1", "preempted")]
    cluster.carry_out(stop, 4.0)
    assert told(cluster) == [(10.0, "dag.map[0]#1", "completed")]


def test_each_task_has_its_own_delay():
    """Noise depends on all of an allocation's name."""
    noisy = ClusterConditions(start_delay_seconds=5.0, runtime_noise=0.2, seed=1)
    names = [Allocation("dag"), *(Allocation("dag", "map", (task,)) for task in range(3))]
    held = [sum(noisy.delay_and_runtime(each, 10.0)) for each in names]
    assert len(set(held)) == len(held)
    assert held == [sum(noisy.delay_and_runtime(each, 10.0)) for each in names]


def test_limits_end_allocations():
    """At the time that the job asked for, where limits are enforced."""
    cluster = fixed(lambda _: 10.0, requested=4.0, limits=True)
    cluster.start(Allocation("dag"), on("n1"), 1.0)
    assert told(cluster) == [(5.0, "dag.#1", "limit")]


def test_an_instruction_that_comes_twice_changes_nothing():
    """Neither while the attempt runs nor when it has ended; the next attempt is another."""
    cluster = fixed(lambda _: 10.0)
    start = Start("dag", on("n1"))
    cluster.carry_out(start, 0.0)
    cluster.resume([start], (), 5.0)
    assert told(cluster) == [(10.0, "dag.#1", "completed")]
    cluster.carry_out(start, 11.0)
    assert cluster.next_seconds == math.inf
    cluster.carry_out(Start("dag", on("n1"), attempt=2), 12.0)
    cluster.carry_out(Preempt("dag"), 13.0)  # of the first attempt
    assert told(cluster) == [(22.0, "dag.#2", "completed")]


def test_what_an_earlier_driver_had_started_begins_if_it_never_did():
    """The simulated machines remember nothing but what they run."""
    cluster = fixed(lambda _: 10.0)
    cluster.resume([Start("dag", on("n1"))], (), 5.0)
    assert told(cluster) == [(15.0, "dag.#1", "completed")]


def test_an_end_is_no_loss_and_a_loss_comes_once():
    """Job a ends when its node goes down; b loses both of its nodes at once."""
    outages = [Outage(node, 10.0, 20.0) for node in ("n1", "n2", "n3")]
    cluster = fixed(lambda each: 10.0 if each.job_id == "a" else 50.0, *outages)
    cluster.start(Allocation("a"), on("n1"), 0.0)
    cluster.start(Allocation("b"), on("n2", "n3"), 0.0)
    ends = [(job, why) for now, job, why in told(cluster, 10.0) if job.endswith("#1")]
    assert ends == [("a.#1", "completed"), ("b.#1", "lost")]


def test_reports_of_several_instants_come_in_order():
    """Whoever asks late is told all that was missed."""
    cluster = fixed(lambda each: 5.0 * int(each.job_id), Outage("n3", 6.0, 12.0))
    for job_id, node in (("3", "n1"), ("2", "n1"), ("1", "n2")):
        cluster.start(Allocation(job_id, "reduce"), on(node), 0.0)
    assert [event.time for event in cluster.reports(12.0)] == [5.0, 6.0, 10.0, 12.0]
    assert cluster.next_seconds == 15.0
    assert not cluster.reports(14.0)


class Trial:
    """A simulated cluster for the conformance suite; its machines are those of every driver."""

    def __init__(self):
        self.seconds = {}
        self.begun = Counter()
        self.adapter = SimulatedCluster(Cluster.of_processors(1), self, single)

    def connect(self):
        return self.adapter

    def start_of(self, seconds):
        job_id = str(len(self.seconds))
        self.seconds[job_id] = seconds
        return Start(job_id, Placement.whole("all", 1))

    def times_begun(self, job_id):
        return self.begun[job_id]

    def started(self, allocation, placement, now):
        self.begun[allocation.job_id] += 1
        return (ComingEnd(allocation, now + self.seconds[allocation.job_id]),)

    def ended(self, allocation, now):
        return ()

    def nodes_changed(self, cluster, now):
        pass

    next_seconds = math.inf

    def used(self, allocation, now):
        return {}

    def advanced(self, now):
        raise AssertionError("nothing happens within it")


class ChangingTrial(Trial):
    """One with nodes, of which others may come and go at any time."""

    def __init__(self):
        super().__init__()
        never = NodeRemoved(1e9, "n3")
        self.adapter = SimulatedCluster(
            RACK, self, single, ClusterConditions(node_changes=(never,))
        )

    def start_of(self, seconds):
        return replace(super().start_of(seconds), placement=on("n1"))

    def in_queue(self, job_id):
        """It has none."""

    def happen(self, event):
        self.adapter._node_events.append(event)
        self.adapter._soonest = None


@pytest.mark.parametrize("trial", [Trial, ChangingTrial])
def test_it_is_a_cluster_adapter(trial):
    """By the rules that all of them keep to, whether or not its nodes change."""
    check_adapter("simulated", trial)


class Shared:
    """Processor sharing: of allocations on a node, each runs at its share of the speed."""

    next_seconds = math.inf

    def used(self, allocation, now):
        return {}

    def __init__(self, seconds):
        self.seconds = seconds
        self.left = {}
        self.nodes = {}
        self.since = {}

    def on_node(self, node):
        return [each for each in self.left if self.nodes[each] == node]

    def passed(self, node, now):
        """Note what was done on a node since anything changed there."""
        together = self.on_node(node)
        for each in together:
            self.left[each] -= (now - self.since[node]) / len(together)
        self.since[node] = now

    def ends(self, node, now):
        together = self.on_node(node)
        return [ComingEnd(each, now + self.left[each] * len(together)) for each in together]

    def started(self, allocation, placement, now):
        node = placement.tasks_by_partition[0][0]
        if placement.tasks_by_node:
            node = placement.tasks_by_node[0][0]
        self.passed(node, now)
        self.nodes[allocation] = node
        self.left[allocation] = self.seconds[allocation.job_id]
        return self.ends(node, now)

    def ended(self, allocation, now):
        node = self.nodes[allocation]
        self.passed(node, now)
        del self.left[allocation]
        return self.ends(node, now)


def shared(**seconds):
    model = Shared(seconds)
    model.since = dict.fromkeys(("n1", "n2", "n3", "all"), 0.0)
    return model


def test_ends_move_when_others_start_and_end():
    """Job a has done 2 of 10 when b comes with 4: b ends at 2 + 2 * 4, a has 4 left then.

    c, on another node, is not touched.
    """
    cluster = SimulatedCluster(RACK, shared(a=10.0, b=4.0, c=5.0), single)
    cluster.start(Allocation("a"), on("n1"), 0.0)
    assert cluster.next_seconds == 10.0
    cluster.start(Allocation("c"), on("n2"), 1.0)
    cluster.start(Allocation("b"), on("n1"), 2.0)
    assert told(cluster) == [
        (6.0, "c.#1", "completed"),
        (10.0, "b.#1", "completed"),
        (14.0, "a.#1", "completed"),
    ]


@pytest.mark.parametrize("because", [EndedBecause.PREEMPTED, EndedBecause.LOST])
def test_ends_move_when_others_are_stopped_or_lost(because):
    """Side by side until 6 each has done 3 of 10; the one that is left ends at 13."""
    is_lost = because is EndedBecause.LOST
    conditions = ClusterConditions(outages=(Outage("n2", 6.0, 20.0),)) if is_lost else IDEAL
    cluster = SimulatedCluster(RACK, shared(a=10.0, b=10.0), single, conditions)
    cluster.start(Allocation("a"), on("n1"), 0.0)
    cluster.start(Allocation("b"), on("n1", "n2"), 0.0)
    if not is_lost:
        cluster.carry_out(Preempt("b"), 6.0)
    ends = [each for each in told(cluster) if "#" in each[1]]
    assert ends == [(6.0, "b.#1", because.value), (13.0, "a.#1", "completed")]


def test_a_stop_is_not_moved_by_what_starts_after_it():
    """Job b was told to stop at 4 and holds its node until that is reported; c comes in between."""
    cluster = SimulatedCluster(RACK, shared(b=10.0, c=3.0), single)
    cluster.start(Allocation("b"), on("n1"), 0.0)
    cluster.stop(Allocation("b"), 4.0)
    cluster.start(Allocation("c"), on("n1"), 4.0)
    assert told(cluster) == [(4.0, "b.#1", "preempted"), (7.0, "c.#1", "completed")]


def test_the_controller_follows_ends_that_move():
    """Both believe in 10 s, and share from 5 on: corrected at 10 and 20, a ends at 15, b at 20.

    a: 5 alone, 5 at half speed until 15. b: 5 done by then, and the other 5 alone until 20.
    """
    controller = Controller(Cluster.of_processors(2), Fcfs(), Constant(10.0), Doubling())
    jobs = [Job.gang("a", 0.0, 1), Job.gang("b", 5.0, 1)]
    cluster = SimulatedCluster(controller.cluster, shared(a=10.0, b=10.0), single)
    driver = Driver(controller, cluster, jobs)
    ends = [(each.job_id, each.start_seconds, each.end_seconds) for each in driver.run()]
    assert ends == [("a", 0.0, 15.0), ("b", 5.0, 20.0)]
    assert controller.counters.corrections == 2


@pytest.mark.parametrize("runtime", [3.0, 30.0])
def test_what_began_before_the_beginning(runtime):
    """What should have ended by then ends at once; outages that are over are no news."""
    model = FixedRuntimes(lambda _: runtime, lambda _: Job.gang("a", 0.0, 1), RACK, IDEAL)
    outages = (Outage("n1", 1.0, 12.0), Outage("n2", 11.0, 14.0), Outage("n3", 1.0, 2.0))
    conditions = ClusterConditions(outages=outages)
    cluster = SimulatedCluster(RACK, model, single, conditions, begin_seconds=10.0)
    cluster.start(Allocation("a"), on("n3"), 2.0)
    expected = [(11.0, "NodeDown", "n2"), (12.0, "NodeUp", "n1"), (14.0, "NodeUp", "n2")]
    end = (max(10.0, 2.0 + runtime), "a.#1", "completed")
    assert told(cluster) == sorted([*expected, end])


def changing(seconds, *changes, **more):
    """A cluster whose nodes change, and on which every job holds one cpu a task for so long."""

    def job_of(job_id):
        return Job.gang(job_id, 0.0, len(job_id))

    model = FixedRuntimes(lambda _: seconds, job_of, RACK, IDEAL)
    conditions = ClusterConditions(node_changes=changes, **more)
    return SimulatedCluster(RACK, model, job_of, conditions)


def test_nodes_come_change_and_go():
    """n4 comes with room for what n1 had; the first started keep their place when n2 shrinks."""
    one, four = Node("n2", Resources(cpus=1.0)), Node("n4", Resources(cpus=4.0))
    cluster = changing(
        20.0, NodeAdded(1.0, four, "rack"), NodeChanged(3.0, one), NodeRemoved(5.0, "n1")
    )
    for job_id, node in (("a", "n1"), ("b", "n2"), ("c", "n2")):
        cluster.start(Allocation(job_id), on(node), 0.0)
    events = [(each.time, type(each).__name__) for each in cluster.reports(1.0)]
    assert events == [(1.0, "NodeAdded")]
    assert cluster.cluster.total.cpus == 10.0
    cluster.start(Allocation("d"), on("n4"), 1.0)
    lost = [each.outcome.job_id for each in cluster.reports(3.0) if isinstance(each, Ended)]
    assert lost == ["c"]
    assert cluster.cluster.total.cpus == 9.0
    *ended, last = cluster.reports(5.0)
    assert [each.outcome.job_id for each in ended] == ["a"]
    assert ended[0].outcome.ended_because is EndedBecause.LOST
    assert last == NodeRemoved(5.0, "n1")
    assert [node.name for node in cluster.cluster.partitions[0].nodes] == ["n2", "n3", "n4"]
    assert told(cluster) == [(20.0, "b.#1", "completed"), (21.0, "d.#1", "completed")]


def test_a_partition_loses_its_latest_when_jobs_name_no_nodes():
    """Five of six cpus are held; with four left there is no room for the two of the last job."""
    cluster = changing(9.0, NodeRemoved(4.0, "n2"))
    for job_id in ("a", "b", "c", "dd"):
        cluster.start(Allocation(job_id), Placement((("rack", len(job_id)),)), 0.0)
    lost = [each.outcome.job_id for each in cluster.reports(4.0) if isinstance(each, Ended)]
    assert lost == ["dd"]


def test_a_node_is_not_down_while_it_is_not_there():
    """Its outage begins before it comes, ends after it has gone, and is told of neither."""
    there = Node("n4", Resources(cpus=1.0))
    changes = (NodeAdded(5.0, there, "rack"), NodeRemoved(9.0, "n4"))
    outages = (Outage("n4", 1.0, 3.0), Outage("n4", 8.0, 12.0))
    kinds = [type(each).__name__ for each in changing(1.0, *changes, outages=outages).reports(20.0)]
    assert kinds == ["NodeAdded", "NodeDown", "NodeRemoved"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (NodeRemoved(1.0, "n9"), "no such node"),
        (NodeChanged(1.0, Node("n9", Resources(1.0))), "no such node"),
        (NodeAdded(1.0, Node("n1", Resources(1.0)), "rack"), "such a node already"),
    ],
)
def test_changes_that_cannot_be_are_refused_before_anything_runs(change, words):
    """With the name of the node."""
    with pytest.raises(InputError, match=words):
        changing(1.0, change)
