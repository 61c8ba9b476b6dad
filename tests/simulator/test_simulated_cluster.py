"""The simulated cluster by itself: allocations of stages and tasks, outages, ends that move."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from foresail.checks.clusters import check_adapter
from foresail.control.loop import Controller
from foresail.model.allocation import Allocation
from foresail.model.cluster import Cluster, Node, Partition
from foresail.model.decision import Placement, Preempt, Start
from foresail.model.event import Ended, NodeDown, NodeUp
from foresail.model.job import Job, Stage
from foresail.model.outcome import GOES_BACK, EndedBecause
from foresail.model.resources import Resources
from foresail.simulator.conditions import IDEAL, ClusterConditions, Outage
from foresail.simulator.driver import Driver
from foresail.simulator.execution import ComingEnd, FixedRuntimes
from foresail.simulator.simulated_cluster import SimulatedCluster
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
    return SimulatedCluster(RACK, model, outages)


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
    cluster.resume([start], 5.0)
    assert told(cluster) == [(10.0, "dag.#1", "completed")]
    cluster.carry_out(start, 11.0)
    assert cluster.next_seconds == math.inf
    cluster.carry_out(Start("dag", on("n1"), attempt=2), 12.0)
    cluster.carry_out(Preempt("dag"), 13.0)  # of the first attempt
    assert told(cluster) == [(22.0, "dag.#2", "completed")]


def test_what_an_earlier_driver_had_started_begins_if_it_never_did():
    """The simulated machines remember nothing but what they run."""
    cluster = fixed(lambda _: 10.0)
    cluster.resume([Start("dag", on("n1"))], 5.0)
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
    for job_id in "321":
        cluster.start(Allocation(job_id), on("n1"), 0.0)
    assert [event.time for event in cluster.reports(12.0)] == [5.0, 6.0, 10.0, 12.0]
    assert cluster.next_seconds == 15.0
    assert not cluster.reports(14.0)


class Trial:
    """A simulated cluster for the conformance suite; its machines are those of every driver."""

    def __init__(self):
        self.seconds = {}
        self.begun = Counter()
        self.adapter = SimulatedCluster(Cluster.of_processors(1), self)

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


def test_it_is_a_cluster_adapter():
    """By the rules that all of them keep to."""
    check_adapter("simulated", Trial)


class Shared:
    """Processor sharing: of allocations on a node, each runs at its share of the speed."""

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
    cluster = SimulatedCluster(RACK, shared(a=10.0, b=4.0, c=5.0))
    cluster.start(Allocation("a"), on("n1"), 0.0)
    assert cluster.next_seconds == 10.0
    cluster.start(Allocation("c"), on("n2"), 1.0)
    cluster.start(Allocation("b"), on("n1"), 2.0)
    assert told(cluster) == [
        (6.0, "c.#1", "completed"),
        (10.0, "b.#1", "completed"),
        (14.0, "a.#1", "completed"),
    ]


@pytest.mark.parametrize("because", sorted(GOES_BACK))
def test_ends_move_when_others_are_stopped_or_lost(because):
    """Side by side until 6 each has done 3 of 10; the one that is left ends at 13."""
    is_lost = because is EndedBecause.LOST
    outages = (Outage("n2", 6.0, 20.0),) if is_lost else ()
    cluster = SimulatedCluster(RACK, shared(a=10.0, b=10.0), outages)
    cluster.start(Allocation("a"), on("n1"), 0.0)
    cluster.start(Allocation("b"), on("n1", "n2"), 0.0)
    if not is_lost:
        cluster.carry_out(Preempt("b"), 6.0)
    ends = [each for each in told(cluster) if "#" in each[1]]
    assert ends == [(6.0, "b.#1", because.value), (13.0, "a.#1", "completed")]


def test_a_stop_is_not_moved_by_what_starts_after_it():
    """Job b was told to stop at 4 and holds its node until that is reported; c comes in between."""
    cluster = SimulatedCluster(RACK, shared(b=10.0, c=3.0))
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
    cluster = SimulatedCluster(controller.cluster, shared(a=10.0, b=10.0))
    driver = Driver(controller, cluster, jobs)
    ends = [(each.job_id, each.start_seconds, each.end_seconds) for each in driver.run()]
    assert ends == [("a", 0.0, 15.0), ("b", 5.0, 20.0)]
    assert controller.counters.corrections == 2


@pytest.mark.parametrize("runtime", [3.0, 30.0])
def test_what_began_before_the_beginning(runtime):
    """What should have ended by then ends at once; outages that are over are no news."""
    model = FixedRuntimes(lambda _: runtime, lambda _: Job.gang("a", 0.0, 1), RACK, IDEAL)
    outages = (Outage("n1", 1.0, 12.0), Outage("n2", 11.0, 14.0), Outage("n3", 1.0, 2.0))
    cluster = SimulatedCluster(RACK, model, outages, begin_seconds=10.0)
    cluster.start(Allocation("a"), on("n3"), 2.0)
    expected = [(11.0, "NodeDown", "n2"), (12.0, "NodeUp", "n1"), (14.0, "NodeUp", "n2")]
    end = (max(10.0, 2.0 + runtime), "a.#1", "completed")
    assert told(cluster) == sorted([*expected, end])
