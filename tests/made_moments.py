"""Made-up moments of runs: clusters of any size, with who runs, waits and is planned on them."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from foresail.distributions.quantiles import Quantiles
from foresail.explain.run_snapshot import RunSnapshot, WaitingJob
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, PlannedStart, Reason, ReasonCode
from foresail.model.event import EndedBecause, NodeAdded, NodeChanged, NodeRemoved, Outcome
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.view import PendingJob, RunningJob
from foresail.record.job_life import EndedAttempt
from foresail.record.records import Solved

NOW = 3600.0


def random_node_changes(cluster, horizon_seconds, count, seed):
    """So many changes at whole times: nodes come, grow, shrink and go, some to come again."""
    chance = random.Random(seed)
    there = {node.name: (node, part.name) for part in cluster.partitions for node in part.nodes}
    known, gone, changes = sorted(there), {}, []
    for now in sorted(chance.randrange(int(horizon_seconds)) for _ in range(count)):
        kind = chance.choice(["added", "back", "changed", "removed", "removed"])
        node, partition = there[chance.choice(sorted(there))]
        if kind == "added" or (kind == "back" and gone):
            name = f"{node.name}-{len(changes)}" if kind == "added" else chance.choice(sorted(gone))
            node, partition = gone.pop(name, (replace(node, name=name), partition))
            there[name] = node, partition
            changes.append(NodeAdded(float(now), node, partition))
        elif kind == "changed":
            node = replace(node, total=Resources(float(chance.randint(1, 3))))
            there[node.name] = node, partition
            changes.append(NodeChanged(float(now), node))
        elif len(there) > len(known) // 2:
            gone[node.name] = there.pop(node.name)
            changes.append(NodeRemoved(float(now), node.name))
    return tuple(changes)


def racks(count: int, nodes: int, cpus: float = 1.0) -> Cluster:
    """So many partitions of so many equal nodes."""
    return Cluster(
        tuple(
            Partition(
                f"rack{rack}",
                Resources(cpus) * nodes,
                tuple(
                    Node(f"rack{rack}-{node}", Resources(cpus), {"rack": f"rack{rack}"})
                    for node in range(1, nodes + 1)
                ),
            )
            for rack in range(1, count + 1)
        )
    )


def moment(cluster: Cluster, *, running=(), waiting=(), past=(), **fields) -> RunSnapshot:
    """An hour after the start of a run."""
    used = sum(each.job.cpus for each in running)
    known = {
        "now": NOW,
        "zero_seconds": 0.0,
        "start_unix_seconds": None,
        "policy": "3sigma,history,exponential_increment",
        "cluster": cluster,
        "running": tuple(running),
        "waiting": tuple(waiting),
        "past": tuple(past),
        "stopping": frozenset(),
        "down": {},
        "draining": False,
        "idle_cpus": cluster.total.cpus - used,
        "solved": None,
    }
    return RunSnapshot(**{**known, **fields})


def job(name: str, tasks: int, deadline: float | None = None) -> Job:
    """Tasks of one cpu each."""
    value = None if deadline is None else DeadlineValue(deadline)
    return Job(name, NOW - 900.0, (Stage(tasks, Resources(1.0)),), None, "ann", value=value)


def belief(mean: float) -> Quantiles:
    """Most likely around the mean, perhaps nothing, perhaps three times as long."""
    return Quantiles((0.0, 0.1, 0.5, 0.9, 1.0), (0.0, mean / 2, mean, 2 * mean, 3 * mean))


def runs(name: str, nodes, start: float, mean: float, deadline: float | None = None) -> RunningJob:
    """A job with a task on each of some nodes of a rack."""
    by_rack: dict[str, int] = {}
    for node in nodes:
        rack = node.rpartition("-")[0]
        by_rack[rack] = by_rack.get(rack, 0) + 1
    placement = Placement(tuple(by_rack.items()), tuple((node, 1) for node in nodes))
    made = job(name, len(nodes), deadline)
    return RunningJob(made, start, 0, placement, belief(mean), start + mean)


def ended(running: RunningJob, end: float) -> EndedAttempt:
    """The same attempt, over."""
    start = running.start_seconds
    outcome = Outcome(running.job.job_id, start, end, EndedBecause.COMPLETED)
    return EndedAttempt(running, outcome, end - start)


def waits(
    name: str,
    tasks: int,
    planned: float | None = None,
    rack: str = "rack1",
    deadline: float | None = None,
    mean: float = 300.0,
) -> WaitingJob:
    """A job that waits, planned to start in a rack or not at all."""
    made = PendingJob(job(name, tasks, deadline), 0, belief(mean), mean)
    plan = None if planned is None else PlannedStart(name, planned, Placement.whole(rack, tasks))
    if planned is None:
        reason = Reason(ReasonCode.NO_ROOM, {"cpus": float(tasks), "free": 0.0})
    else:
        reason = Reason(ReasonCode.RESERVED, {"cpus": float(tasks), "start": planned})
    return WaitingJob(made, reason, NOW, True, plan)


SOLVED = Solved(7, NOW, value=1234.5, bound=1249.3, gap=0.012, columns=85, cycle_seconds=0.04)


def huge(rack_count: int = 10, nodes: int = 1000, seed: int = 3) -> RunSnapshot:
    """Thousands of nodes, nearly all of them busy, and hundreds of jobs planned."""
    random = np.random.default_rng(seed)
    cluster = racks(rack_count, nodes)
    running, past, waiting = [], [], []
    for rack in range(1, rack_count + 1):
        node = 1
        while node <= nodes:
            width = int(random.integers(1, 40))
            names = [f"rack{rack}-{at}" for at in range(node, min(node + width, nodes + 1))]
            start = NOW - float(random.exponential(600.0))
            mean = float(random.exponential(900.0)) + 60.0
            late = start + 1.5 * mean if random.random() < 0.5 else None
            each = runs(f"r{rack}-{node}", names, start, mean, late)
            if random.random() < 0.9:
                running.append(each)
            else:
                past.append(ended(each, min(start + 100.0, NOW)))
            node += width
    for number in range(500):
        at = NOW + 60.0 * float(random.integers(1, 24))
        rack = f"rack{random.integers(1, rack_count + 1)}"
        late = at + 500.0 if random.random() < 0.5 else None
        waiting.append(waits(f"w{number}", int(random.integers(1, 60)), at, rack, late))
    return moment(cluster, running=running, past=past, waiting=waiting, solved=SOLVED)
