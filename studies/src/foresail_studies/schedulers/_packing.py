"""Machines with the tasks on them, and one decision: which jobs start now, on which of them.

What a task uses is laid out on the steps that packing counts in; room is made for one that waits.
Behind that: observed use of tasks, and the work and memory of those that begin anew (Park's
dissertation, 5.3.2).
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from foresail.distributions.basic import normalised
from foresail.distributions.operations import Atoms, atoms_of, bin_onto_nodes
from foresail.model.cluster import Resources
from foresail.model.distribution import Booleans, Distribution, Floats
from foresail.model.event import REQUEUED, Allocation, EndedBecause, Outcome
from foresail.model.job import Job
from foresail_studies.schedulers.kernels import packing as kernel
from foresail_studies.schedulers.kernels.packing import TaskUse

_NODES: Final = 17
_ROUNDING: Final = 1e-9


def task_use(
    cpus: Distribution, memory_bytes: Distribution, cpu_request: float, steps: Floats, bins: int
) -> TaskUse:
    """Lay out the belief about a task's use, each probability shared by the steps around its value.

    The expected use is kept, but for what lies beyond the largest machine: a task that runs at all
    uses no more than all of it. Otherwise one that may use so much would fit nowhere, ever.

    Parameters
    ----------
    cpus, memory_bytes
        Beliefs about its use.
    cpu_request
        What it asked for: shares of cpus are in proportion to it.
    steps
        Of cpus and of memory.
    bins
        How many steps an excess over the least use may have.
    """
    use = TaskUse(np.zeros(kernel.TASK_COLUMNS), np.zeros((kernel.RESOURCES, bins)))
    use.row[kernel.TASK_REQUEST] = cpu_request
    for resource, belief in ((kernel.CPU, cpus), (kernel.MEMORY, memory_bytes)):
        atoms = atoms_of(belief, _NODES)
        believe_atoms(use, resource, atoms.values, atoms.masses, steps)
    return use


def believe_atoms(
    use: TaskUse, resource: int, amounts: Floats, probabilities: Floats, steps: Floats
) -> None:
    """Replace what is believed of one resource by some amounts, in ascending order."""
    values = np.minimum(amounts, (use.masses.shape[1] - 1) * steps[resource])
    atoms, least = Atoms(values, probabilities), float(values[0])
    masses = _masses_on_steps(atoms, least, steps[resource], use.masses.shape[1])
    use.masses[resource] = masses
    use.row[kernel.TASK_LEAST + resource] = least
    use.row[kernel.TASK_EXPECTED + resource] = atoms.mean()
    use.row[kernel.TASK_HIGHEST + resource] = np.flatnonzero(masses)[-1]


def _masses_on_steps(atoms: Atoms, least: float, step: float, bins: int) -> Floats:
    """The probability of each excess above an amount that is not above the least atom's.

    What is above the last step that the largest machine has room for counts as that.
    """
    room = math.floor(((bins - 1) * step - least) / step + _ROUNDING)
    nodes = np.arange(room + 1, dtype=np.float64)
    excess = np.minimum((atoms.values - least) / step, nodes[-1])
    masses = np.zeros(bins)
    masses[: nodes.size] = bin_onto_nodes(excess, atoms.masses, nodes)
    return masses


class PackedMachines:
    """The distribution of what is used of each machine, as tasks come and go.

    Parameters
    ----------
    capacities
        Of cpus and memory; shape (machines, 2). That of memory is where it evicts.
    bins
        Into how many steps the largest machine is divided.
    """

    def __init__(self, capacities: Floats, bins: int) -> None:
        count = len(capacities)
        self.bins = bins
        self.capacities = capacities
        self.steps = np.maximum(capacities.max(axis=0, initial=0.0), 1e-300) / (bins - 1)
        self.table = np.zeros((count, kernel.MACHINE_COLUMNS))
        self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES] = capacities
        self.masses = np.zeros((count, kernel.RESOURCES, bins))
        self.masses[:, :, 0] = 1.0
        self.ranks = np.random.default_rng(0).permutation(count)
        self._tasks: list[dict[Hashable, TaskUse]] = [{} for _ in range(count)]

    def add(self, machine: int, task: Hashable, use: TaskUse) -> None:
        """A task runs there from now on."""
        self._tasks[machine][task] = use
        self._add(machine, use)

    def remove(self, machine: int, task: Hashable) -> None:
        """A task runs there no more: all others are added up again.

        Taking it off would leave errors that depend on what else came and went: a run that was
        recovered would decide otherwise.
        """
        del self._tasks[machine][task]
        self._make_anew(machine)

    def believe(self, changes: Iterable[tuple[int, Hashable, TaskUse]]) -> None:
        """Something else is believed of tasks that run, each on a machine."""
        changed = set()
        for machine, task, use in changes:
            self._tasks[machine][task] = use
            changed.add(machine)
        for machine in changed:
            self._make_anew(machine)

    def offer(self, up: Booleans) -> None:
        """Have these machines alone taken into account; shape (machines,)."""
        offered = np.where(up[:, np.newaxis], self.capacities, -1.0)
        self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES] = offered

    def empty(self) -> PackedMachines:
        """The machines that are offered, with nothing on them; others have room for nothing."""
        offered = self.table[:, kernel.CAPACITY : kernel.CAPACITY + kernel.RESOURCES]
        other = PackedMachines(offered, self.bins)
        other.steps, other.ranks = self.steps, self.ranks
        return other

    def use_of(self, machine: int, task: Hashable) -> TaskUse:
        """Return what is believed of a task that runs there."""
        return self._tasks[machine][task]

    def tasks_on(self, machine: int) -> Sequence[Hashable]:
        """Return what runs there, in order of start."""
        return tuple(self._tasks[machine])

    def _make_anew(self, machine: int) -> None:
        """Add up what all tasks of a machine use."""
        row, masses = self.table[machine], self.masses[machine]
        row[kernel.CAPACITY + kernel.RESOURCES :] = 0.0
        masses[:] = 0.0
        masses[:, 0] = 1.0
        for use in self._tasks[machine].values():
            self._add(machine, use)

    def _add(self, machine: int, use: TaskUse) -> None:
        kernel.add_tasks(self.table[machine], self.masses[machine], use.row, use.masses, 1)


Risks = tuple[float, float]
"""With what probability cpus and memory may be too few once a task has come: below these. Nothing
at all counts as below 0."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may start, or what of it may."""

    use: TaskUse
    """What each of its tasks uses."""
    tasks: int
    """How many there are to place."""
    work: float
    """Cpu seconds of each."""
    value: float
    full_seconds: float
    zero_seconds: float
    least_value: float = 0.0
    """What it is worth if it ends within some seconds from now, when that has fallen to zero, and
    what is left of it in any case."""

    @property
    def row(self) -> tuple[float, ...]:
        """A row of ``kernels.packing``'s jobs."""
        span = (self.full_seconds, self.zero_seconds)
        return (self.work, self.tasks, self.value, *span, self.least_value)


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate (its number) that starts, the machine of each of its tasks, and its worth."""

    candidate: int
    machines: tuple[int, ...]
    worth: float


def choose(
    machines: PackedMachines, candidates: Sequence[Candidate], most_risks: Risks
) -> list[Choice]:
    """The candidates that start, the one that is worth most first.

    The machines are as they are now, and stay so; ``most_risks`` are those of cpus and of memory.
    """
    if not candidates or not len(machines.table):
        return []
    jobs = np.array([each.row for each in candidates])
    count, machine_count = len(candidates), len(machines.table)
    widest = max(each.tasks for each in candidates)
    table, masses = machines.table.copy(), machines.masses.copy()
    reached = np.zeros_like(masses)
    kernel.accumulate(table, masses, reached)
    rows = np.array([each.use.row for each in candidates])
    task_masses = np.array([each.use.masses for each in candidates])
    bounds = np.zeros(count)
    kernel.most_worth(jobs, rows, task_masses, machines.steps, bounds)
    worth = np.zeros(count)
    places = np.full((count, widest), kernel.NOWHERE)
    order = np.zeros(count, np.int64)
    at = kernel.MachineTables(table, masses, reached)
    kept = kernel.MachineTables(
        np.zeros((widest, *table.shape[1:])),
        np.zeros((widest, *masses.shape[1:])),
        np.zeros((widest, *masses.shape[1:])),
    )
    started = kernel.plan(
        at,
        machines.ranks,
        jobs,
        kernel.TaskUse(rows, task_masses),
        bounds,
        np.argsort(-bounds, kind="stable"),
        kernel.RiskLimits(np.array(most_risks), machines.steps),
        np.zeros((count, machine_count, kernel.RESOURCES), np.int32),
        np.zeros(count, np.int64),
        np.zeros(machine_count, np.int64),
        np.zeros(count, np.int64),
        worth,
        places,
        order,
        kernel.PlacingRoom(
            np.zeros(widest, np.int64),
            np.zeros(widest, np.int64),
            kept,
            np.zeros((widest, kernel.RESOURCES), np.int32),
            np.zeros((widest, 4)),
        ),
    )
    return [
        Choice(int(job), tuple(places[job, : candidates[job].tasks].tolist()), float(worth[job]))
        for job in order[:started]
    ]


_ANY_RISK: Final[Risks] = (2.0, 2.0)


def most_at_once(empty: PackedMachines, use: TaskUse, tasks: int, most_risks: Risks) -> int:
    """Return how many of some tasks there is room for on empty machines, at least one."""
    capacities, counts = np.unique(empty.capacities, axis=0, return_counts=True)
    room = 0
    for capacity, count in zip(capacities, counts, strict=True):
        machine = PackedMachines(capacity[np.newaxis], empty.bins)
        each = kernel.tasks_that_fit(
            kernel.MachineTables(machine.table, machine.masses, np.zeros_like(machine.masses)),
            use,
            tasks,
            kernel.RiskLimits(np.array(most_risks), empty.steps),
            np.zeros((1, kernel.RESOURCES), np.int32),
        )
        room += int(count) * int(each)
    return max(1, min(tasks, room))


def make_way(
    machines: PackedMachines, urgent: Sequence[Candidate], most_risks: Risks
) -> tuple[set[int], Sequence[Choice]]:
    """Machines on which nothing else may start, and which of the urgent start there at any risk.

    The first that does not fit now is to run where it would run if nothing else did. If the risks
    leave no room for it even then, it starts once nothing runs there.
    """
    placed = choose(machines, urgent, most_risks)
    waits = sorted(set(range(len(urgent))) - {each.candidate for each in placed})
    if not waits:
        return set(), ()
    first, empty = waits[0], machines.empty()
    choices = choose(empty, [urgent[first]], most_risks)
    fits = bool(choices)
    choices = choices or choose(empty, [urgent[first]], _ANY_RISK)
    there = {machine for choice in choices for machine in choice.machines}
    if not fits and not any(machines.tasks_on(machine) for machine in there):
        return there, [Choice(first, each.machines, each.worth) for each in choices]
    return there - {machine for each in placed for machine in each.machines}, ()


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


class ObservedUse:
    """Measurements of what runs: each amount counts for as long as it was seen.

    Most tasks have once used no more than was believed possible. Of them nothing is kept.
    """

    def __init__(self) -> None:
        self._seen: dict[Allocation, _Seen] = {}
        self._settled: set[Allocation] = set()

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
            if outcome.ended_because in REQUEUED:
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

    Where nothing that is known takes longer, as much again is taken to be left (Park's
    dissertation, section 5.3.2).
    """
    if done <= 0.0:
        return work.mean()
    if float(work.survival(done)) <= 0.0:
        return 2.0 * done
    return work.given(done).mean()
