"""What DistSched knows of tasks, it knows by their stage."""

from __future__ import annotations

from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, Preempt
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.view import ClusterView, RunningJob
from foresail_studies.schedulers._packing import Restarts
from foresail_studies.schedulers.distsched import DistSched, DistSchedParameters

TOTAL = Resources(8.0, 100.0)
CLUSTER = Cluster((Partition("p", TOTAL, (Node("n", TOTAL),)),), shared=True)
CHAIN = Job(
    "chain",
    0.0,
    (
        Stage(1, Resources(1.0, 5.0), "map", together=False),
        Stage(1, Resources(5.0, 5.0), "side", together=False),
    ),
)
DUE = Job("due", 0.0, (Stage(1, Resources(1.0, 5.0), together=False),), value=DeadlineValue(1000.0))


def running(job, order, stage):
    on_node = Placement((("p", 1),), (("n", 1),))
    return RunningJob(job, 0.0, order, on_node, Point(60.0), 60.0, stage=stage, tasks=(0,))


def test_what_uses_most_above_the_request_of_its_own_stage_is_stopped():
    """Half a cpu above 1, not the one that has the 5 that it asked for."""
    runs = (running(CHAIN, 0, "map"), running(CHAIN, 1, "side"), running(DUE, 2, "main"))
    cpus = (1.5, 5.0, 1.5)
    used = {
        each.allocation: Resources(amount, 1.0) for each, amount in zip(runs, cpus, strict=True)
    }
    scheduler = DistSched(DistSchedParameters())
    scheduler.watch_use(lambda: used)
    decision = scheduler.decide(ClusterView(30.0, CLUSTER, {}, (), runs, free_nodes={"n": TOTAL}))
    assert decision.preemptions == (Preempt("chain", 1, "map", (0,)),)


def test_what_a_task_held_is_known_of_its_stage():
    """Of others as well once it has run, but not of another stage."""
    restarts = Restarts(remembers=True)
    lost = Outcome(
        "chain", 0.0, 9.0, EndedBecause.LOST, stage="side", tasks=(0,), used={"memory_max": 30.0}
    )
    restarts.note(CHAIN, lost)
    assert restarts.least_memory("chain", "side") == 30.0
    assert restarts.least_memory("chain", "map") == 0.0
    restarts.forget_all_but(())
    assert restarts.least_memory("chain", "side") == 0.0
