"""Waiting policies on a trace, slow and obvious: the reference of the compiled simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs
from foresail.cloud.waiting.policies import WaitingPolicy


@dataclass
class Machine:
    """What is free, and when that changed last (a count of changes)."""

    cores: int
    memory: float
    changed: int


@dataclass
class SlowRun:
    """One job after the other, by scanning lists."""

    jobs: TraceJobs
    fixed: FixedMachines
    policy: WaitingPolicy
    estimates: list[float]
    waits: list[float]
    lost: list[float]
    ranks: list[float]
    start: dict[int, float] = field(default_factory=dict)
    place: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.changes = 0
        self.machines = []
        for _ in range(self.fixed.count):
            self.changes += 1
            self.machines.append(Machine(self.fixed.cores, self.fixed.memory_bytes, self.changes))
        self.running: list[tuple[float, int, Machine]] = []
        self.queue: list[int] = []
        self.expiry: dict[int, float] = {}
        self.trials: list[tuple[float, int]] = []
        self.tried: set[int] = set()
        rules = self.policy.rules
        self.patience = rules.patience_seconds

    def memory(self, job: int) -> float:
        return 0.0 if self.jobs.memory_bytes is None else float(self.jobs.memory_bytes[job])

    def best(self, job: int) -> Machine | None:
        cores, memory = self.jobs.cores[job], self.memory(job)
        fitting = [m for m in self.machines if m.cores >= cores and m.memory >= memory]
        return min(fitting, key=lambda m: (m.cores, -m.changed), default=None)

    def change(self, machine: Machine, cores: int, memory: float) -> None:
        self.changes += 1
        machine.cores += cores
        machine.memory += memory
        machine.changed = self.changes

    def begin(self, job: int, machine: Machine, now: float) -> None:
        self.change(machine, -int(self.jobs.cores[job]), -self.memory(job))
        self.start[job] = now
        self.place[job] = "fixed"
        self.running.append((now + float(self.jobs.runtime_seconds[job]), job, machine))

    def rent(self, job: int, now: float, place: str) -> None:
        self.start[job] = now
        self.place[job] = place

    def dispatch(self, now: float) -> None:
        while True:
            ahead = sorted(self.queue, key=lambda job: (self.ranks[job], job))
            if self.policy.queue == "strict-fcfs":
                ahead = ahead[:1]
            chosen = next((job for job in ahead if self.best(job) is not None), None)
            if chosen is None:
                return
            self.queue.remove(chosen)
            self.begin(chosen, self.best(chosen), now)

    def arrive(self, job: int, now: float) -> None:
        rules = self.policy.rules
        if self.fixed.count == 0 or (
            self.jobs.cores[job] > self.fixed.cores or self.memory(job) > self.fixed.memory_bytes
        ):
            self.rent(job, now, "rented")
            return
        blocked = self.policy.queue == "strict-fcfs" and self.queue
        machine = None if blocked else self.best(job)
        if self.policy.conserving and machine is not None:
            self.begin(job, machine, now)
            return
        if job not in self.tried:
            if self.estimates[job] < rules.short_seconds:
                self.rent(job, now, "rented")
                return
            if rules.speculation_seconds > 0 and machine is None:
                self.tried.add(job)
                self.rent(job, now + self.lost[job], "tried")
                if self.jobs.runtime_seconds[job] > rules.speculation_seconds:
                    self.trials.append((now + self.lost[job] + rules.speculation_seconds, job))
                return
        if self.waits[job] > rules.waiting_seconds:
            self.rent(job, now, "rented")
        elif machine is not None:
            self.begin(job, machine, now)
        elif self.patience <= 0:
            self.rent(job, now, "rented")
        else:
            self.queue.append(job)
            self.expiry[job] = now + self.patience

    def run(self) -> tuple[list[float], list[str]]:
        """Start times and places by job."""
        coming = list(range(len(self.jobs)))
        while True:
            release = min((end for end, _, _ in self.running), default=math.inf)
            trial = min(self.trials, default=(math.inf, -1))
            arrival = float(self.jobs.submit_seconds[coming[0]]) if coming else math.inf
            leaver = min(((self.expiry[job], job) for job in self.queue), default=(math.inf, -1))
            now = min(release, trial[0], arrival, leaver[0])
            if now == math.inf:
                break
            if release == now:
                for entry in sorted(e for e in self.running if e[0] == now):
                    self.running.remove(entry)
                    job = entry[1]
                    self.change(entry[2], int(self.jobs.cores[job]), self.memory(job))
                self.dispatch(now)
            elif trial[0] == now:
                self.trials.remove(trial)
                self.arrive(trial[1], now)
            elif arrival == now:
                self.arrive(coming.pop(0), now)
            else:
                self.queue.remove(leaver[1])
                self.rent(leaver[1], now, "expired")
                if self.policy.queue == "strict-fcfs":
                    self.dispatch(now)
        count = range(len(self.jobs))
        return [self.start[job] for job in count], [self.place[job] for job in count]
