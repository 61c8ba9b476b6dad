"""What is believed of tasks that run is the same to a scheduler that goes on from a memory."""

from __future__ import annotations

import json

import numpy as np

from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.job import Job, Stage
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.view import ClusterView, RunningJob
from foresail.schedulers.distsched import DistSched, DistSchedParameters

TOTAL = Resources(8.0, 100.0)
CLUSTER = Cluster((Partition("p", TOTAL, (Node("n", TOTAL),)),), shared=True)
JOB = Job("a", 0.0, (Stage(2, Resources(1.0, 5.0), "s", together=False),))


def view(now, *tasks):
    """These tasks of the job run."""
    on_node = Placement((("p", 1),), (("n", 1),))
    running = tuple(
        RunningJob(JOB, 0.0, task, on_node, Point(60.0), 60.0, stage="s", tasks=(task,))
        for task in tasks
    )
    return ClusterView(now, CLUSTER, {}, (), running, free_nodes={"n": TOTAL})


def test_a_task_that_ran_when_another_was_evicted_is_believed_as_at_its_start():
    """What the evicted one held is known of those that start after it, not of those that ran."""
    lost = Outcome(
        "a", 0.0, 10.0, EndedBecause.LOST, stage="s", tasks=(1,), used={"memory_max": 30.0}
    )
    first = DistSched(DistSchedParameters())
    first.decide(view(0.0, 0, 1))
    first.part_ended(JOB, lost)
    first.decide(view(15.0, 0))
    memory = json.loads(json.dumps(first.memory()))
    assert memory["held"] == [["a", "s", [0], 1, 0.0]]
    other = DistSched(DistSchedParameters())
    other.part_ended(JOB, lost)
    other.remember(memory, CLUSTER)
    for scheduler in (first, other):
        scheduler.decide(view(30.0, 0))
    assert np.array_equal(first._machines.table, other._machines.table)
    ignorant = DistSched(DistSchedParameters())
    ignorant.part_ended(JOB, lost)
    ignorant.decide(view(30.0, 0))
    assert not np.array_equal(first._machines.table, ignorant._machines.table)
