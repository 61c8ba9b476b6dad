"""Views by hand for schedulers that plan ahead: one line a job, one line a node."""

from __future__ import annotations

import numpy as np

from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.distributions.empirical import Empirical
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.view import ClusterView, PendingJob, RunningJob

ONE_CPU = Resources(cpus=1.0)


def racks(*sizes, gpu=()):
    """A cluster of racks r1, r2, ... of so many one-cpu nodes; some offer the attribute gpu."""
    partitions = []
    for rack, size in enumerate(sizes, start=1):
        attributes = {"rack": f"r{rack}"} | ({"gpu": "yes"} if rack in gpu else {})
        nodes = tuple(Node(f"n{rack}{at}", ONE_CPU, attributes) for at in range(1, size + 1))
        partitions.append(Partition(f"r{rack}", ONE_CPU * size, nodes))
    return Cluster(tuple(partitions))


def nodes(**sizes):
    """A cluster of one partition ``r1`` of nodes by name: cpus, bytes of memory and gpus."""
    each = tuple(Node(name, Resources(*size), {"rack": name[0]}) for name, size in sizes.items())
    return Cluster((Partition("r1", sum((node.total for node in each), Resources()), each),))


def job(name, tasks, submit=0.0, deadline=None, preference=None, *, request=ONE_CPU):
    """A gang of tasks, of one cpu unless it is said."""
    value = None if deadline is None else DeadlineValue(deadline)
    stages = (Stage(tasks, request),)
    return Job(name, submit, stages, value=value, preference=preference)


def waiting(*jobs):
    """Pending jobs from (job, belief); a number is a point."""
    beliefs = [Point(each) if isinstance(each, (int, float)) else each for _, each in jobs]
    return tuple(
        PendingJob(each, arrival, belief, belief.mean())
        for arrival, ((each, _), belief) in enumerate(zip(jobs, beliefs, strict=True))
    )


def running(job, belief, nodes, *, start=0.0, order=0, end=None):
    """A running job on named nodes, or on so many cpus of the partition ``all``."""
    belief = Point(belief) if isinstance(belief, (int, float)) else belief
    if isinstance(nodes, int):
        placement = Placement.whole("all", nodes)
    else:
        by_rack = {}
        for node in nodes:
            rack = f"r{node[1]}" if node[0] == "n" else "r1"
            by_rack[rack] = by_rack.get(rack, 0) + 1
        placement = Placement(tuple(by_rack.items()), tuple((node, 1) for node in nodes))
    end = start + belief.mean() if end is None else end
    return RunningJob(job, start, order, placement, belief, end)


def view_of(cluster, pending, busy=(), now=0.0):
    """What a scheduler sees of them."""
    free = {partition.name: partition.total for partition in cluster.partitions}
    free_nodes = {
        node.name: node.total for partition in cluster.partitions for node in partition.nodes
    }
    for each in busy:
        for name, tasks in each.placement.tasks_by_partition:
            free[name] -= each.job.stages[0].request * tasks
        for name, tasks in each.placement.tasks_by_node:
            free_nodes[name] -= each.job.stages[0].request * tasks
    return ClusterView(now, cluster, free, tuple(pending), tuple(busy), free_nodes=free_nodes)


def built(text):
    """The scheduler of a short form."""
    return parse_policy(text).scheduler.build()


def outcome(scheduler, view):
    """Start of every job that is started or planned, by name; and who is stopped."""
    decision = scheduler.decide(view)
    starts = {each.job_id: view.now for each in decision.starts}
    starts |= {each.job_id: each.start_seconds for each in decision.plan}
    return starts, [each.job_id for each in decision.preemptions]


def crowd(seed, now=0.0, jobs=9):
    """Jobs with and without deadlines for twice the nodes that there are, some of them held."""
    random = np.random.default_rng(seed)
    asked = []
    for at in range(jobs):
        deadline = float(random.integers(20, 90)) if random.random() < 0.6 else None
        belief = Empirical(random.integers(5, 50, 4).astype(float))
        asked.append((job(f"j{at}", int(random.integers(1, 5)), 0.0, deadline), belief))
    busy = [running(job(f"r{at}", 1), 40.0, [f"n1{at + 1}"], order=at) for at in range(3)]
    return view_of(racks(4, 2), waiting(*asked), busy, now)
