"""Observed use of tasks, and the work and memory of those that begin anew (paper 000, 5.3.2)."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from foresail.distributions.basic import normalised
from foresail.model.arrays import Floats
from foresail.model.cluster import Resources
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, Allocation, EndedBecause, Outcome
from foresail.schedulers._packing.plan import believe_atoms
from foresail.schedulers.kernels import packing as kernel
from foresail.schedulers.kernels.packing import TaskUse


@dataclass(slots=True)
class _Seen:
    """Seconds for which an allocation was seen to use each amount, of each resource, until a time.

    ``least`` are the smallest amounts. ``replaced`` are the resources that are believed to be used
    as they were seen; ``settled`` those of which that can never be so any more.
    """

    until: float
    latest: tuple[float, float]
    least: list[float]
    seconds: tuple[dict[float, float], dict[float, float]] = field(default_factory=lambda: ({}, {}))
    replaced: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)

    def plain(self) -> dict[str, Any]:
        """Plain values, as JSON holds them."""
        return {
            "until": self.until,
            "latest": list(self.latest),
            "least": self.least,
            "seconds": [list(each.items()) for each in self.seconds],
            "replaced": sorted(self.replaced),
            "settled": sorted(self.settled),
        }


def _seen_of(plain: Mapping[str, Any]) -> _Seen:
    cpus, memory = plain["latest"]
    by_amount = [dict(each) for each in plain["seconds"]]
    replaced, settled = set(plain["replaced"]), set(plain["settled"])
    return _Seen(
        *(plain["until"], (cpus, memory), list(plain["least"])),
        *((by_amount[0], by_amount[1]), replaced, settled),
    )


class ObservedUse:
    """Measurements of what runs: each amount counts for as long as it was seen.

    Most tasks have once used no more than was believed possible. Of them nothing is kept.
    """

    def __init__(self) -> None:
        self._seen: dict[Allocation, _Seen] = {}
        self._settled: set[Allocation] = set()
        self._looked = -math.inf
        self._fresh: set[Allocation] = set()  # had not been measured when a memory was kept

    def memory(self, running: Iterable[Allocation]) -> dict[str, Any]:
        """Plain values of those that run, but for most of them: all is said of these."""
        known = self._seen.keys() | self._settled
        return {
            "seen": [[*each, seen.plain()] for each, seen in self._seen.items()],
            "fresh": [list(each) for each in running if each not in known],
        }

    def remember(self, memory: Mapping[str, Any], looked: float) -> None:
        """Go on from what another one knew when it had looked last."""
        self._looked = looked
        for *each, plain in memory["seen"]:
            self._seen[allocation_of(each)] = _seen_of(plain)
        self._fresh = {allocation_of(each) for each in memory["fresh"]}

    def resume(
        self, allocation: Allocation, start_seconds: float, use: TaskUse, steps: Floats
    ) -> TaskUse:
        """Return what is believed of one that runs and was believed to use ``use`` at its start."""
        seen = self._seen.get(allocation)
        if seen is not None:
            return _as_seen(use, seen, seen.replaced, steps)
        if start_seconds < self._looked and allocation not in self._fresh:
            self._settled.add(allocation)
        return use

    def open(self, use: Mapping[Allocation, Resources]) -> list[Allocation]:
        """Those that may have to be believed to use something else: few of those seen before."""
        return [each for each in use if each not in self._settled]

    def instead(
        self,
        allocation: Allocation,
        measured: Resources,
        now: float,
        believed: TaskUse,
        steps: Floats,
    ) -> TaskUse | None:
        """Note a measurement; what is to be believed instead, if that is not as before.

        A resource of which the task has always used more than its belief holds possible is believed
        to be used as it was seen: amounts by the time for which they were.
        """
        amounts = (measured.cpus, measured.memory_bytes)
        seen = self._seen.get(allocation)
        if seen is None:
            self._seen[allocation] = _Seen(now, amounts, list(amounts))
            return None
        lasted = now - seen.until
        moved = set()
        for resource, latest in enumerate(seen.latest):
            if resource in seen.settled:
                continue
            seen.least[resource] = min(seen.least[resource], amounts[resource])
            if lasted <= 0.0:
                continue
            seconds = seen.seconds[resource]
            seconds[latest] = seconds.get(latest, 0.0) + lasted
            if resource not in seen.replaced:
                most = believed.row[kernel.TASK_LEAST + resource]
                most += believed.row[kernel.TASK_HIGHEST + resource] * steps[resource]
                if seen.least[resource] <= most:
                    seen.settled.add(resource)
                    seconds.clear()
                    continue
                seen.replaced.add(resource)
            elif len(seconds) == 1:
                continue  # as was believed last time
            moved.add(resource)
        seen.until, seen.latest = now, amounts
        if len(seen.settled) == kernel.RESOURCES:
            del self._seen[allocation]
            self._settled.add(allocation)
        return _as_seen(believed, seen, moved, steps) if moved else None

    def forget(self, allocation: Allocation) -> None:
        """It runs no more."""
        self._seen.pop(allocation, None)
        self._settled.discard(allocation)


def allocation_of(plain: Sequence[Any]) -> Allocation:
    """An allocation from its fields as JSON holds them."""
    job_id, stage, tasks, attempt = plain
    return Allocation(job_id, stage, tuple(tasks), attempt)


def _as_seen(use: TaskUse, seen: _Seen, resources: Iterable[int], steps: Floats) -> TaskUse:
    """Use with some resources used as they were seen: by it, whatever its kin use."""
    other = TaskUse(use.row.copy(), use.masses.copy())
    for resource in resources:
        seconds = sorted(seen.seconds[resource].items())
        amounts, lasted = np.array(seconds).T
        believe_atoms(other, resource, amounts, normalised(lasted, float(lasted.sum())), steps)
    return other


_EVICTIONS_ENOUGH: Final = 3


class Restarts:
    """Work that tasks had done, and memory they held, when they were evicted or stopped.

    Parameters
    ----------
    remembers
        Whether to know all of that. Otherwise what tasks of a stage held is known after three
        evictions of its job alone: tasks that evict each other for ever would never end.
    """

    def __init__(self, *, remembers: bool) -> None:
        self._remembers = remembers
        self._done: dict[str, dict[tuple[str, int], float]] = {}
        self._evictions: dict[str, int] = {}
        self._held: dict[str, dict[str, float]] = {}
        self._evicted: dict[str, float] = {}

    def note(self, job: Job, outcome: Outcome) -> None:
        """A job, or some tasks of it, have ended or go back to the queue."""
        job_id = job.job_id
        if outcome.ended_because is EndedBecause.LOST:
            self._evicted[job_id] = outcome.end_seconds
            self._evictions[job_id] = 1 + self._evictions.get(job_id, 0)
            held = self._held.setdefault(job_id, {})
            most = outcome.used.get("memory_max", 0.0)
            held[outcome.stage] = max(held.get(outcome.stage, 0.0), most)
        if not self._remembers:
            return
        done = self._done.setdefault(job_id, {})
        for task in outcome.tasks or range(job.tasks):
            key = outcome.stage, task
            if outcome.ended_because in GOES_BACK:
                done[key] = max(done.get(key, 0.0), outcome.used.get("cpu_time", 0.0))
            else:
                done.pop(key, None)

    def was_evicted(self, job_id: str, now: float) -> bool:
        """Tell whether it was just evicted: at once it might happen again, for ever."""
        return self._evicted.get(job_id) == now

    def least_memory(self, job_id: str, stage: str) -> float:
        """Memory that a task of the stage held when evicted, as far as that is to be known."""
        enough = 1 if self._remembers else _EVICTIONS_ENOUGH
        if self._evictions.get(job_id, 0) < enough:
            return 0.0
        return self._held[job_id].get(stage, 0.0)

    def work_done(self, job_id: str, stage: str, tasks: Iterable[int]) -> float:
        """The most that one of these tasks had done (cpu seconds)."""
        done = self._done.get(job_id, {})
        return max((done.get((stage, task), 0.0) for task in tasks), default=0.0) if done else 0.0

    def forget_all_but(self, living: Container[str]) -> None:
        """Only jobs that wait or run are still of interest."""
        kept: tuple[dict[str, object], ...] = (
            self._done,
            self._evictions,
            self._held,
            self._evicted,
        )  # type: ignore[assignment]
        for each in kept:
            for job_id in [name for name in each if name not in living]:
                del each[job_id]


def work_knowing(work: Distribution, done: float) -> float:
    """Expected cpu seconds of a task that has once done so much without being through.

    Where nothing that is known takes longer, as much again is taken to be left (paper 000, section
    5.3.2).
    """
    if done <= 0.0:
        return work.mean()
    if float(work.survival(done)) <= 0.0:
        return 2.0 * done
    return work.given(done).mean()
