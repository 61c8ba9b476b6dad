"""Nodes that tasks share: there is room for whatever is put there, unless the node is down."""

from __future__ import annotations

from dataclasses import replace

from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job, Stage

NODES = (Node("n1", Resources(2.0, 10.0)), Node("n2", Resources(2.0, 10.0)))
CLUSTER = Cluster((Partition("all", Resources(4.0, 20.0), NODES),))
SHARED = replace(CLUSTER, shared=True)
PLACE = Placement((("all", 3),), (("n1", 3),))


def job(cpus):
    return Job("a", 0.0, (Stage(3, Resources(cpus, 1.0)),))


def test_more_is_asked_for_than_there_is():
    """Three tasks of two cpus on a node of two; and what is free is less than nothing then."""
    assert FreeResources(CLUSTER).misplacement(job(2.0), PLACE) is not None
    room = FreeResources(SHARED)
    assert room.misplacement(job(2.0), PLACE) is None
    room.take(job(2.0), PLACE)
    assert room.by_node()["n1"].cpus == -4.0
    assert room.misplacement(job(2.0), PLACE) is None
    room.close("n1")
    assert not room.has_room(job(2.0), PLACE)


def test_a_job_is_too_wide_if_no_node_holds_a_task():
    """Six cpus in three tasks are more than four; a task of three fits no node."""
    assert not FreeResources(CLUSTER).could_hold(job(2.0))
    assert FreeResources(SHARED).could_hold(job(2.0))
    assert not FreeResources(SHARED).could_hold(job(3.0))
