"""DistSched's decision the obvious way: dictionaries of amounts, every outcome by itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod


@dataclass(frozen=True)
class SlowMachine:
    """Capacities, and the probabilities of what runs there: cpu and memory by amount."""

    cpus: float
    memory: float
    cpu_used: dict = field(default_factory=lambda: {0.0: 1.0})
    memory_used: dict = field(default_factory=lambda: {0.0: 1.0})
    requested: float = 0.0

    def after(self, job, tasks=1):
        """The machine with some tasks of a job more."""
        return replace(
            self,
            cpu_used=with_tasks(self.cpu_used, job.cpu, tasks),
            memory_used=with_tasks(self.memory_used, job.memory, tasks),
            requested=self.requested + tasks * job.request,
        )

    def risks(self, job, tasks=1):
        """With so many tasks of a job: memory, cpu."""
        after = self.after(job, tasks)
        return over(after.memory_used, self.memory), over(after.cpu_used, self.cpus)


@dataclass(frozen=True)
class SlowJob:
    """Probabilities of what a task uses, and what ending after some seconds is worth."""

    cpu: dict
    memory: dict
    request: float
    work: float
    tasks: int
    worth: object


def with_tasks(used, task, tasks):
    """What is used with some tasks more, each by itself."""
    for _ in range(tasks):
        used = summed(used, task)
    return used


def summed(one, other):
    total = Counter()
    for (a, p), (b, q) in product(one.items(), other.items()):
        total[a + b] += p * q
    return dict(total)


def over(used, capacity):
    return sum(p for amount, p in used.items() if amount > capacity + 1e-9)


def mean(used):
    return sum(amount * p for amount, p in used.items())


def actual(capacity, request, requested, cpus, used, tasks):
    """Section 7.2."""
    share = capacity * request / (tasks * request + requested)
    if cpus <= share:
        return cpus
    if used > capacity - tasks * share + 1e-9:
        return share
    return min(cpus, (capacity - used) / tasks)


def evicts(job, machine, tasks):
    """That memory is short where so many tasks of a job are, all alike: section 7.3."""
    alike = {tasks * amount: p for amount, p in job.memory.items()}
    return over(summed(alike, machine.memory_used), machine.memory)


def worth_of(job, machines, places):
    """Sections 7.3 and 7.5, over all combinations of what machines' tasks use."""
    counts = Counter(places)
    stays = prod(1.0 - evicts(job, machines[m], n) for m, n in counts.items())
    total = 0.0
    for cpus, p in job.cpu.items():
        for used in product(*(machines[m].cpu_used.items() for m in counts)):
            gets = min(
                actual(machines[m].cpus, job.request, machines[m].requested, cpus, amount, n)
                for (m, n), (amount, _) in zip(counts.items(), used, strict=True)
            )
            seconds = job.work / gets if gets else float("inf")
            total += p * prod(q for _, q in used) * job.worth(seconds)
    return stays * total


def slow_plan(machines, jobs, most_cpu, most_memory, ranks):
    """Section 7.7, every option made anew whenever a job has started."""

    def feasible(risks):
        return all(
            risk <= 1e-9 or risk < most
            for risk, most in zip(risks, (most_memory, most_cpu), strict=True)
        )

    def key(at, job, placed):
        memory, cpu = machines[at].risks(job, placed[at] + 1)
        machine = machines[at].after(job, placed[at])
        free = (machine.memory - mean(machine.memory_used), machine.cpus - mean(machine.cpu_used))
        return (round(memory, 6), round(cpu, 6), *(round(each, 6) for each in free), ranks[at])

    def option(job):
        placed, places = Counter(), []
        for _ in range(job.tasks):
            there = [
                i for i, each in enumerate(machines) if feasible(each.risks(job, placed[i] + 1))
            ]
            if not there:
                return None
            best = min(there, key=lambda i: key(i, job, placed))
            places.append(best)
            placed[best] += 1
        return places, worth_of(job, machines, places)

    machines = list(machines)
    waiting = dict(enumerate(jobs))
    started = []
    while True:
        options = {number: option(job) for number, job in waiting.items()}
        ready = [(n, o) for n, o in options.items() if o is not None and o[1] > 0.0]
        if not ready:
            return started
        number, (places, worth) = max(ready, key=lambda each: (round(each[1][1], 9), -each[0]))
        started.append((number, tuple(places), worth))
        job = waiting.pop(number)
        for place, tasks in Counter(places).items():
            machines[place] = machines[place].after(job, tasks)
