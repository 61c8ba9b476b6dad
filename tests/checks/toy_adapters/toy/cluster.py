"""A toy cluster, a folder of its own: timers that stand for jobs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from foresail.model.adapter import Capabilities
from foresail.model.changing_nodes import changed
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, Preempt, Start
from foresail.model.event import Began, Ended, EndedBecause, NodeRemoved, NotStarted, Outcome
from foresail.model.registry import register


@dataclass(frozen=True, slots=True)
class ToyParameters:
    """Parameters of the toy.

    Parameters
    ----------
    seconds
        How long jobs run of which nothing else is known.
    """

    seconds: float = 0.05


class World:
    """What goes on whether an adapter is there or not."""

    def __init__(self):
        self.seconds = {}
        self.begun = Counter()
        self.ends = {}
        self.known = set()
        self.at = {}
        self.changes = []
        self.refusals = {}
        self.begins = []


def two_nodes():
    nodes = tuple(Node(name, Resources(cpus=1.0)) for name in ("toy-1", "toy-2"))
    return Cluster((Partition("all", Resources(cpus=2.0), nodes),))


class ToyAdapter:
    capabilities = Capabilities(
        places=True,
        preempts=True,
        changes_nodes=True,
        refuses_starts=True,
        begins_jobs=True,
        runs_commands=True,
    )
    wake_descriptor = None

    def __init__(self, world, seconds):
        self.world = world
        self.seconds = seconds
        self.running = {}
        self.stopped = set()
        self.refused = []
        self.told = len(world.changes)
        self.cluster = two_nodes()
        for change in world.changes:
            self.cluster = changed(self.cluster, change)

    @property
    def next_seconds(self):
        over = [event.time for event in self.refused]
        if self.world.begins:
            return 0.0
        return min([self.world.ends[key] for key in self.running] + over, default=math.inf)

    def history(self):
        return ()

    def resume(self, running, known, now):
        for start in running:
            self.start(start, now)
        return self.reports(now)

    def carry_out(self, instruction, now):
        self.capabilities.require(instruction)
        key = instruction.job_id, instruction.attempt
        match instruction:
            case Start() if key not in self.world.known:
                self.start(instruction, now)
            case Preempt() if key in self.running:
                self.world.ends[key] = now
                self.stopped.add(key)

    def start(self, start, now):
        key = start.job_id, start.attempt
        if key not in self.world.known:
            self.world.known.add(key)
            if key in self.world.refusals:
                self.refused.append(replace(self.world.refusals[key], time=now))
                return
            self.world.begun[start.job_id] += 1
            self.world.ends[key] = now + self.world.seconds.get(start.job_id, self.seconds)
            self.world.at[key] = {name for name, _ in start.placement.tasks_by_node}
        self.running[key] = min(now, self.world.ends[key])

    def reports(self, now):
        begun = self.begin(now)
        over = sorted((self.world.ends[key], key) for key in self.running)
        ended = [self.end(key, end) for end, key in over if end <= now]
        refused, self.refused = self.refused, []
        return [
            *begun,
            *ended,
            *(replace(each, time=now) for each in refused),
            *self.node_events(now),
        ]

    def begin(self, now):
        begun, self.world.begins = self.world.begins, []
        for event in begun:
            self.start(Start(event.job_id, event.placement, event.attempt), now)
        return [replace(event, time=now, start_seconds=now) for event in begun]

    def node_events(self, now):
        events = []
        for change in self.world.changes[self.told :]:
            self.cluster = changed(self.cluster, change)
            if isinstance(change, NodeRemoved):
                gone = [key for key in self.running if change.node in self.world.at[key]]
                events += [self.end(key, now, EndedBecause.REVOKED) for key in gone]
            events.append(replace(change, time=now))
        self.told = len(self.world.changes)
        return events

    def end(self, key, end, because=EndedBecause.COMPLETED):
        stopped = EndedBecause.PREEMPTED if key in self.stopped else because
        return Ended(end, Outcome(key[0], self.running.pop(key), end, stopped, attempt=key[1]))

    def close(self):
        pass


class Trial:
    def __init__(self, adapter, seconds):
        self.world = World()
        self.adapter = adapter
        self.seconds = seconds

    def connect(self):
        return self.adapter(self.world, self.seconds)

    def start_of(self, seconds):
        job_id = f"toy-{len(self.world.seconds)}"
        self.world.seconds[job_id] = seconds
        named = (("toy-1", 1),) if self.adapter.capabilities.places else ()
        return Start(job_id, Placement((("all", 1),), named))

    def happen(self, event):
        if isinstance(event, Began):
            self.world.begins.append(event)
        elif isinstance(event, NotStarted):
            self.world.refusals[event.job_id, event.attempt] = event
        else:
            self.world.changes.append(event)

    def in_queue(self, job_id):
        """It has none."""

    def times_begun(self, job_id):
        return self.world.begun[job_id]


@register("cluster", "toy", parameters=ToyParameters)
class ToyCluster:
    """Timers that stand for jobs."""

    capabilities = ToyAdapter.capabilities

    def __init__(self, parameters):
        self.seconds = parameters.seconds

    def connect(self, run):
        return ToyAdapter(World(), self.seconds)

    def trial(self, folder):
        return Trial(ToyAdapter, self.seconds)
