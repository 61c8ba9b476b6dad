"""Shared machines the obvious way: exact fractions, all computed anew at every instant."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from foresail.model.event import EndedBecause
from foresail.simulator.simulated_cluster import ComingEnd

GRAIN = Fraction(1, 2**20)


@dataclass
class SlowTask:
    """A task on a machine: what is left of its segments as (seconds at full pace, cpus, memory)."""

    allocation: object
    task: int
    machine: str
    begins: Fraction
    left: list
    cpu_request: Fraction
    memory_request: float
    priority: int
    began: bool = False
    fresh: bool = False
    pace: Fraction = Fraction(1)
    allocated: Fraction = Fraction(0)
    ends: Fraction = Fraction(0)
    settled: Fraction = Fraction(0)
    work: Fraction = Fraction(0)

    @property
    def demand(self):
        return self.left[0][1] if self.began else Fraction(0)

    @property
    def memory(self):
        return self.left[0][2] if self.began else 0.0

    def settle(self, now):
        """Take what was done since it was settled last off its segment."""
        if self.began:
            seconds, cpus, memory = self.left[0]
            done = min((now - self.settled) * self.pace, seconds)
            self.work += done * cpus
            self.left[0] = (seconds - done, cpus, memory)
        self.settled = now


def filled(cpus, wanting):
    """Weighted water filling as cgroups have it: what is left over is shared out again.

    ``wanting`` are pairs of request and demand; gives what each gets.
    """
    given = [Fraction(0)] * len(wanting)
    left = Fraction(cpus)
    hungry = [i for i, (_, demand) in enumerate(wanting) if demand > 0]
    while left > 0 and hungry:
        weight = sum(wanting[i][0] for i in hungry)
        shares = {i: left * wanting[i][0] / weight for i in hungry}
        for i, share in shares.items():
            portion = min(wanting[i][1] - given[i], share)
            given[i] += portion
            left -= portion
        still = [i for i in hungry if given[i] < wanting[i][1]]
        if still == hungry:
            break
        hungry = still
    return given


class SlowMachines:
    """The execution model: see ``foresail_studies.executions.shared_nodes``.

    ``capacities`` are cpus and the memory evicted at, by machine; ``series`` the segments of every
    task of a job's stage; ``requests`` cpus, memory and priority by job and stage.
    """

    def __init__(self, capacities, series, requests):
        self.capacities = capacities
        self.series = series
        self.requests = requests
        self.tasks = []
        self.to_relieve = {}
        self.news = []

    @property
    def next_seconds(self):
        times = [task.ends if task.began else task.begins for task in self.tasks]
        return min([*times, *self.to_relieve.values()], default=float("inf"))

    def started(self, allocation, placement, now):
        stage = allocation.job_id, allocation.stage
        nodes = [node for node, count in placement.tasks_by_node for _ in range(count)]
        for task, node in zip(allocation.tasks or range(len(nodes)), nodes, strict=True):
            left = [
                (Fraction(seconds), Fraction(cpus), memory)
                for seconds, cpus, memory in self.series[stage][task]
            ]
            cpus, memory, priority = self.requests[stage]
            begins = Fraction(now)
            self.tasks.append(
                SlowTask(allocation, task, node, begins, left, Fraction(cpus), memory, priority)
            )
        return ()

    def ended(self, allocation, now):
        for task in [each for each in self.tasks if each.allocation == allocation]:
            task.settle(Fraction(now))
            self.tasks.remove(task)
            self.to_relieve[task.machine] = Fraction(now)
        return ()

    def advanced(self, now):
        now = Fraction(now)
        due = {
            task.machine for task in self.tasks if (task.ends if task.began else task.begins) <= now
        }
        due |= {machine for machine, time in self.to_relieve.items() if time <= now}
        due = [machine for machine in self.capacities if machine in due]
        self.to_relieve = {}
        ends = {}
        for task in [each for name in due for each in self.on(name)]:
            if task.began and task.ends <= now and len(task.left) == 1:
                self.tell(now, "completed", task)
                self.tasks.remove(task)
                if all(each.allocation != task.allocation for each in self.tasks):
                    ends[task.allocation] = ComingEnd(task.allocation, float(now))
        for task in [each for name in due for each in self.on(name)]:
            if not task.began and task.begins <= now:
                task.began = True
            elif task.began and task.ends <= now:
                task.work += task.left[0][0] * task.left[0][1]
                task.left.pop(0)
            else:
                continue
            task.settled, task.fresh, task.allocated = now, True, task.demand
            self.tell(now, "changed", task)
        for name in due:
            for task in self.evicted(name):
                task.settle(now)
                self.tell(now, "evicted", task)
                self.tasks.remove(task)
                ends[task.allocation] = ComingEnd(task.allocation, float(now), EndedBecause.LOST)
            self.share(name, now)
        return tuple(ends.values())

    def used(self, allocation, now):
        return {}

    def on(self, name):
        return [task for task in self.tasks if task.machine == name]

    def evicted(self, name):
        """The worst first, until less is held than the threshold."""
        tasks = self.on(name)
        held = sum(task.memory for task in tasks)
        worst = sorted(
            (task for task in tasks if task.memory > 0),
            key=lambda task: (
                task.priority,
                -(task.memory - task.memory_request),
                -task.memory,
                -tasks.index(task),
            ),
        )
        victims = []
        while held >= self.capacities[name][1] and worst:
            victims.append(worst.pop(0))
            held -= victims[-1].memory
        return victims

    def share(self, name, now):
        tasks = self.on(name)
        given = filled(self.capacities[name][0], [(t.cpu_request, t.demand) for t in tasks])
        for task, allocated in zip(tasks, given, strict=True):
            had, task.allocated = task.allocated, allocated
            pace = allocated / task.demand if task.demand else Fraction(1)
            if task.began and (task.fresh or pace != task.pace):
                if not task.fresh:
                    task.settle(now)
                task.pace, task.fresh = pace, False
                exact = now + task.left[0][0] / pace
                task.ends = max(round(exact / GRAIN) * GRAIN, now + GRAIN)
            if allocated < had:
                self.tell(now, "throttled", task)
            elif allocated > had:
                self.tell(now, "released", task)

    def tell(self, now, kind, task):
        amounts = (float(task.demand), float(task.allocated), float(task.memory))
        self.news.append((float(now), kind, (task.allocation, task.task), task.machine, *amounts))
