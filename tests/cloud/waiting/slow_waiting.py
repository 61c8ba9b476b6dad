"""Waiting policies on a trace, slow and obvious: the reference of the compiled simulation."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace

import numpy as np

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs
from foresail.cloud.waiting.simulating import WaitingPolicy


@dataclass
class Machine:
    """What is free, and when that changed last (a count of changes)."""

    cores: int
    memory: float
    gpus: float
    changed: int


@dataclass
class SlowRun:
    """One job after the other, by scanning lists.

    A wait that is not a number is forecast, from the runtimes that are ``believed``.
    """

    jobs: TraceJobs
    fixed: FixedMachines
    policy: WaitingPolicy
    estimates: list[float]
    waits: list[float]
    lost: list[float]
    ranks: list[float]
    believed: list[float] = field(default_factory=list)
    forecasts: dict[int, float] = field(default_factory=dict)
    start: dict[int, float] = field(default_factory=dict)
    place: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.changes = 0
        self.machines = []
        for _ in range(self.fixed.count):
            self.changes += 1
            size = self.fixed.cores, self.fixed.memory_bytes, self.fixed.gpus
            self.machines.append(Machine(*size, self.changes))
        self.running: list[tuple[float, int, Machine]] = []
        self.queue: list[int] = []
        self.expiry: dict[int, float] = {}
        self.trials: list[tuple[float, int]] = []
        self.tried: set[int] = set()
        rules = self.policy.rules
        self.patience = rules.patience_seconds

    def memory(self, job: int) -> float:
        return 0.0 if self.jobs.memory_bytes is None else float(self.jobs.memory_bytes[job])

    def gpus(self, job: int) -> float:
        return 0.0 if self.jobs.gpus is None else float(self.jobs.gpus[job])

    def best(self, job: int) -> Machine | None:
        cores, memory, gpus = self.jobs.cores[job], self.memory(job), self.gpus(job)
        fitting = [
            m
            for m in self.machines
            if m.cores >= cores and m.memory >= memory and m.gpus >= gpus - 1e-9
        ]
        return min(fitting, key=lambda m: (m.cores, -m.changed), default=None)

    def change(self, machine: Machine, job: int, sign: int) -> None:
        self.changes += 1
        machine.cores += sign * int(self.jobs.cores[job])
        machine.memory += sign * self.memory(job)
        machine.gpus += sign * self.gpus(job)
        machine.changed = self.changes

    def begin(self, job: int, machine: Machine, now: float) -> None:
        self.change(machine, job, -1)
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
            self.jobs.cores[job] > self.fixed.cores
            or self.memory(job) > self.fixed.memory_bytes
            or self.gpus(job) > self.fixed.gpus
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
        if self.wait(job, now, machine) > rules.waiting_seconds:
            self.rent(job, now, "rented")
        elif machine is not None:
            self.begin(job, machine, now)
        elif self.patience <= 0:
            self.rent(job, now, "rented")
        else:
            self.queue.append(job)
            self.expiry[job] = now + self.patience
            if job in self.tried and self.policy.queue == "strict-fcfs":
                self.dispatch(now)

    def wait(self, job: int, now: float, machine: Machine | None) -> float:
        """What is believed of a job's wait."""
        if not math.isnan(self.waits[job]):
            return self.waits[job]
        if machine is not None or self.policy.rules.waiting_seconds == math.inf:
            return 0.0
        self.forecasts[job] = self.forecast(job, now)
        return self.forecasts[job]

    def forecast(self, job: int, now: float) -> float:
        """The wait in a copy of this world where all is as believed, and nobody else comes."""
        ahead = copy.copy(self)
        ahead.jobs = replace(self.jobs, runtime_seconds=np.array(self.believed))
        ahead.start, ahead.place = dict(self.start), dict(self.place)
        ahead.machines = [copy.copy(machine) for machine in self.machines]
        ahead.running = [
            (
                max(self.start[other] + self.believed[other], now),
                other,
                ahead.machines[self.machines.index(machine)],
            )
            for _, other, machine in self.running
        ]
        ahead.trials = []
        ahead.queue = [*self.queue, job]
        ahead.expiry = {**self.expiry, job: math.inf}
        if self.policy.queue == "strict-fcfs":
            ahead.dispatch(now)
        ahead.work([])
        return ahead.start[job] - now

    def run(self) -> tuple[list[float], list[str]]:
        """Start times and places by job."""
        self.work(list(range(len(self.jobs))))
        count = range(len(self.jobs))
        return [self.start[job] for job in count], [self.place[job] for job in count]

    def work(self, coming: list[int]) -> None:
        """Until nothing is left to do."""
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
                    self.change(entry[2], job, 1)
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
