"""Placing gangs on nodes: against a slow and obvious search, over many random clusters."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from foresail.checks.rules import tiny_view
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job, Stage
from foresail.model.placing import FreeRoom, NodesByPreference
from foresail.model.preference import Preference

PREFERENCES = ("partition:r0", "partition:r1,r2", "attribute:gpu", "same:rack", "spread:rack", None)


def random_cluster(draw):
    speeds = draw.choice([(1.0,), (0.5, 1.0, 2.0)])
    partitions = []
    for rack in range(draw.randint(1, 3)):
        nodes = []
        for number in range(draw.randint(1, 4)):
            gpus = float(draw.choice([0, 0, 2]))
            attributes = {"rack": f"r{rack}"} if draw.random() < 0.9 else {}
            total = Resources(float(draw.randint(1, 6)), float(draw.randint(1, 8)), gpus)
            nodes.append(
                Node(
                    f"n{rack}{number}",
                    total,
                    attributes | ({"gpu": "x"} if gpus else {}),
                    draw.choice(speeds),
                )
            )
        total = sum((node.total for node in nodes), Resources())
        partitions.append(Partition(f"r{rack}", total, tuple(nodes)))
    return Cluster(tuple(partitions))


def random_job(draw, number):
    request = Resources(
        float(draw.choice([0, 0.5, 1, 1, 2])),
        float(draw.choice([0, 0, 1, 3])),
        float(draw.choice([0, 0, 0, 1])),
    )
    text = draw.choice(PREFERENCES)
    preference = None if text is None else Preference.parse(text, 2.0)
    stage = Stage(draw.randint(1, 6), request)
    return Job(f"j{number}", 0.0, (stage,), preference=preference)


def random_groups(draw, cluster):
    """None, for a single group, or numbers of groups, some of which may have no nodes."""
    names = [node.name for partition in cluster.partitions for node in partition.nodes]
    groups = {name: draw.randint(0, 4) for name in names}
    return draw.choice([None, groups])


def fits(request, free):
    """How many tasks; none of those that ask for nothing."""
    count = 0
    while request != Resources() and (request * (count + 1)).fits_in(free):
        count += 1
    return count


def in_order(nodes, free):
    """The fastest first, then those with fewest gpus, then the fullest."""
    return sorted(nodes, key=lambda node: (-node.speed, node.total.gpus, free[node.name].cpus))


def packed(job, nodes, free):
    left, placed = job.tasks, {}
    for node in in_order(nodes, free):
        tasks = min(fits(job.stages[0].request, free[node.name]), left)
        if tasks:
            placed[node.name] = tasks
            left -= tasks
    return None if left else placed


def spread(job, nodes, free):
    racks = {}
    for node in in_order(nodes, free):
        if fits(job.stages[0].request, free[node.name]) and len(racks) < job.tasks:
            racks.setdefault(node.attributes["rack"], node.name)
    return dict.fromkeys(racks.values(), 1) if len(racks) == job.tasks else None


def obvious(job, cluster, free):
    """Tasks by node: preferred nodes first, one after the other; None if the gang does not fit."""
    everywhere = [(node, p.name) for p in cluster.partitions for node in p.nodes]
    nodes = [node for node, _ in everywhere]
    preference = job.preference
    tries = []
    if preference is not None:
        names = preference.names
        racked = [node for node in nodes if "rack" in node.attributes]
        if preference.kind == "partition":
            tries = [packed(job, [n for n, home in everywhere if home in names], free)]
        elif preference.kind == "attribute":
            tries = [packed(job, [n for n in nodes if "gpu" in n.attributes], free)]
        elif preference.kind == "same":
            for rack in sorted({node.attributes["rack"] for node in racked}):
                tries.append(packed(job, [n for n in racked if n.attributes["rack"] == rack], free))
        else:
            tries = [spread(job, racked, free)]
    tries.append(packed(job, nodes, free))
    return next((found for found in tries if found is not None), None)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_nodes_as_an_obvious_search(seed):
    """Jobs come and go on many clusters, seen whole or as they were at a later moment."""
    draw = random.Random(seed)
    for _ in range(25):
        cluster = random_cluster(draw)
        places = NodesByPreference(cluster, random_groups(draw, cluster))
        free = {node.name: node.total for p in cluster.partitions for node in p.nodes}
        rooms = {p.name: p.total for p in cluster.partitions}
        room, held = FreeRoom(_view(cluster, free, rooms), places), []
        for number in range(25):
            if held and draw.random() < 0.4:
                job, placement, tasks = held.pop(draw.randrange(len(held)))
                room.add(job, placement)
                sign = 1
            else:
                job = random_job(draw, number)
                expected = obvious(job, cluster, free)
                placement = room.placement(job)
                assert (None if placement is None else dict(placement.tasks_by_node)) == expected
                if placement is None:
                    continue
                assert sum(tasks for _, tasks in placement.tasks_by_partition) == job.tasks
                tasks, sign = expected, -1
                room.take(job, placement)
                held.append((job, placement, tasks))
            for name, count in tasks.items():
                free[name] += job.stages[0].request * (sign * count)
            for name, count in placement.tasks_by_partition:
                rooms[name] += job.stages[0].request * (sign * count)
            if draw.random() < 0.3:
                room = FreeRoom(_view(cluster, dict(free), dict(rooms)), places)


def obvious_within(job, shares, cluster, groups, free):
    """Tasks by node: each share on the nodes of its groups; None if one of them does not fit."""
    nodes = [node for partition in cluster.partitions for node in partition.nodes]
    request, placed = job.stages[0].request, {}
    for wanted, tasks in shares:
        part = Job("part", 0.0, (Stage(tasks, request),))
        found = packed(part, [node for node in nodes if groups[node.name] in wanted], free)
        if found is None:
            return None
        placed |= found
    return placed


@pytest.mark.parametrize("seed", range(4))
def test_shares_in_groups_of_nodes(seed):
    """Jobs come and go, with so many tasks in each of some sets of groups, also of empty ones."""
    draw = random.Random(seed)
    placed = 0
    for _ in range(30):
        cluster = random_cluster(draw)
        groups = {node.name: draw.randint(0, 4) for p in cluster.partitions for node in p.nodes}
        free = {node.name: node.total for p in cluster.partitions for node in p.nodes}
        rooms = {p.name: Resources(1e9, 1e9, 1e9) for p in cluster.partitions}
        room = FreeRoom(_view(cluster, dict(free), rooms), NodesByPreference(cluster, groups))
        held = []
        for number in range(30):
            if held and draw.random() < 0.3:
                job, placement = held.pop(draw.randrange(len(held)))
                room.add(job, placement)
                sign = 1
            else:
                request = random_job(draw, number).stages[0].request
                numbers = draw.sample(range(5), 5)
                cuts = sorted(draw.sample(range(1, 5), draw.randint(0, 2)))
                sets = [numbers[a:b] for a, b in pairwise([0, *cuts, draw.randint(4, 5)])]
                shares = [(each, draw.randint(1, 3)) for each in sets if each]
                job = Job(f"j{number}", 0.0, (Stage(sum(n for _, n in shares), request),))
                expected = obvious_within(job, shares, cluster, groups, free)
                placement = room.within(job, shares)
                assert (None if placement is None else dict(placement.tasks_by_node)) == expected
                if placement is None:
                    continue
                room.take(job, placement)
                held.append((job, placement))
                placed, sign = placed + 1, -1
            for name, count in placement.tasks_by_node:
                free[name] += job.stages[0].request * (sign * count)
    assert placed > 50


def _view(cluster, free, rooms):
    view = tiny_view()
    return type(view)(0.0, cluster, rooms, view.pending, view.running, free_nodes=free)


def test_a_job_without_nodes_leaves_less_of_a_partition():
    """Stages hold three of four cpus in r0, so one of the four idle nodes there can be used."""
    nodes = tuple(Node(f"n{number}", Resources(1.0)) for number in range(4))
    cluster = Cluster((Partition("r0", Resources(4.0), nodes),))
    free = {node.name: node.total for node in nodes}
    room = FreeRoom(_view(cluster, free, {"r0": Resources(4.0)}), NodesByPreference(cluster))
    dag = Job("dag", 0.0, (Stage(1, Resources(1.0), "a"), Stage(3, Resources(1.0), "b", ("a",))))
    placement = room.placement(dag)
    assert placement.tasks_by_partition == (("r0", 4),)
    assert placement.tasks_by_node == ()
    room.take(dag, placement)
    one, two = (Job(str(n), 0.0, (Stage(n, Resources(1.0)),)) for n in (1, 2))
    assert room.placement(two) is None
    assert room.placement(one).tasks_by_node == (("n0", 1),)
    assert math.isclose(room.cpus, 1.0)
    room.add(dag, placement)
    assert len(room.placement(two).tasks_by_node) == 2


NODES = (Node("n1", Resources(2.0, 10.0)), Node("n2", Resources(2.0, 10.0)))
CLUSTER = Cluster((Partition("all", Resources(4.0, 20.0), NODES),))
SHARED = replace(CLUSTER, shared=True)
PLACE = Placement((("all", 3),), (("n1", 3),))


def three_tasks(cpus):
    return Job("a", 0.0, (Stage(3, Resources(cpus, 1.0)),))


def test_more_is_asked_for_than_there_is():
    """Three tasks of two cpus on a node of two; and what is free is less than nothing then."""
    assert FreeResources(CLUSTER).misplacement(three_tasks(2.0), PLACE) is not None
    room = FreeResources(SHARED)
    assert room.misplacement(three_tasks(2.0), PLACE) is None
    room.take(three_tasks(2.0), PLACE)
    assert room.by_node()["n1"].cpus == -4.0
    assert room.misplacement(three_tasks(2.0), PLACE) is None
    room.close("n1")
    assert not room.has_room(three_tasks(2.0), PLACE)


def test_a_job_is_too_wide_if_no_node_holds_a_task():
    """Six cpus in three tasks are more than four; a task of three fits no node."""
    assert not FreeResources(CLUSTER).could_hold(three_tasks(2.0))
    assert FreeResources(SHARED).could_hold(three_tasks(2.0))
    assert not FreeResources(SHARED).could_hold(three_tasks(3.0))
