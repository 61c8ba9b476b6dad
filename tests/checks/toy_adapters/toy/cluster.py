"""A toy cluster, a folder of its own: timers that stand for jobs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster
from foresail.model.decision import Placement, Preempt, Start
from foresail.model.event import Ended
from foresail.model.outcome import EndedBecause, Outcome
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


class ToyAdapter:
    capabilities = Capabilities(preempts=True)
    cluster = Cluster.of_processors(2)
    wake_descriptor = None

    def __init__(self, world, seconds):
        self.world = world
        self.seconds = seconds
        self.running = {}
        self.stopped = set()

    @property
    def next_seconds(self):
        return min((self.world.ends[key] for key in self.running), default=math.inf)

    def history(self):
        return ()

    def resume(self, running, now):
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
            self.world.begun[start.job_id] += 1
            self.world.ends[key] = now + self.world.seconds.get(start.job_id, self.seconds)
        self.running[key] = min(now, self.world.ends[key])

    def reports(self, now):
        over = sorted((self.world.ends[key], key) for key in self.running)
        return [self.end(key, end) for end, key in over if end <= now]

    def end(self, key, end):
        stopped = EndedBecause.PREEMPTED if key in self.stopped else EndedBecause.COMPLETED
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
        return Start(job_id, Placement.whole("all", 1))

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
