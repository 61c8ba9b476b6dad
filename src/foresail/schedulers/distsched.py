"""DistSched: packs tasks onto shared machines by the distributions of what they use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from foresail.distributions.discretisation import atoms_of
from foresail.distributions.empirical import Empirical
from foresail.distributions.point import Point
from foresail.distributions.usage_belief import UsageBelief
from foresail.model.allocation import Allocation
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, Preempt, Start
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.job import Job, Stage
from foresail.model.outcome import GOES_BACK, EndedBecause, Outcome
from foresail.model.reason import Reason, ReasonCode
from foresail.model.registry import register
from foresail.model.resources import Resources
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._packing.machines import PackedMachines
from foresail.schedulers._packing.observed_use import ObservedUse
from foresail.schedulers._packing.plan import Candidate, choose
from foresail.schedulers._packing.restarting import work_knowing
from foresail.schedulers._packing.task_use import TaskUse, task_use
from foresail.schedulers.kernels import packing as kernel

_EVICTION_SHARE: Final = 0.95
_EVICTIONS_ENOUGH: Final = 3
_ROUNDING: Final = 1e-9
_LEAST_CPUS: Final = 1e-9
_MOST_TASKS: Final = 2.0**31
_NODES: Final = 17


@dataclass(frozen=True, slots=True)
class DistSchedParameters:
    """Parameters of ``distsched``.

    Parameters
    ----------
    distribution
        Plan with whole beliefs about cpu and memory; otherwise with their means alone.
    cpu_risk, memory_risk
        A task is put where cpus or memory are too few with a smaller probability than these
        (optimistic over-packing); 0: only where they are certainly enough.
    over_estimates
        What a job with a deadline is worth after it: nothing (``off``), or less and less (``on``).
    restarts
        Remember how much work a task had done when it was evicted or stopped, for it has more, and
        how much memory it held. Otherwise that of memory is remembered of a job after three
        evictions alone: tasks that evict each other for ever would never end.
    observed_use
        Believe what was measured of a task instead, once it has always used more than was believed
        possible (of cpu or of memory).
    preemption
        On machines whose cpus are all in use, stop tasks of jobs without a deadline that are in the
        way of those of jobs with one.
    slo_value, best_effort_value
        What a job with a deadline is worth until then; one without at its submission.
    best_effort_horizon_seconds
        How long after its submission a job without a deadline is worth nothing more than others.
    bins
        Into how many steps the largest machine is divided.
    seed
        Of the order by lot among machines that are alike.
    """

    distribution: bool = True
    cpu_risk: float = 0.10
    memory_risk: float = 0.05
    over_estimates: Literal["off", "on"] = "on"
    restarts: bool = True
    observed_use: bool = True
    preemption: bool = True
    slo_value: float = 1000.0
    best_effort_value: float = 1.0
    best_effort_horizon_seconds: float = 18_000.0
    bins: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("cpu_risk", "memory_risk"):
            _require(0.0 <= getattr(self, name) <= 1.0, name, getattr(self, name), "from 0 to 1")
        for name in ("slo_value", "best_effort_value", "best_effort_horizon_seconds"):
            value = getattr(self, name)
            _require(0.0 < value < float("inf"), name, value, "above 0")
        _require(2 <= self.bins <= 4096, "bins", self.bins, "from 2 to 4096")
        _require(self.seed >= 0, "seed", self.seed, "0 or above")


@register("scheduler", "distsched", parameters=DistSchedParameters)
class DistSched:
    """Packs tasks by distributions of their use: the most expected value first, risks bounded.

    Where tasks may start apart they do. Where nodes are not shared, a task uses what it asked for;
    where they are not known, each partition counts as one. Source: paper 000, chapter 5.
    """

    starts_tasks: Literal[True] = True

    def __init__(self, parameters: DistSchedParameters) -> None:
        self._parameters = parameters
        self._cluster: Cluster | None = None
        self._machines = PackedMachines(np.zeros((0, kernel.RESOURCES)), 2)
        self._is_shared = self._are_nodes = True
        self._names: list[str] = []
        self._partition: dict[str, str] = {}
        self._number: dict[str, int] = {}
        self._placed: dict[Allocation, list[int]] = {}
        self._uses: dict[str, dict[str, tuple[Distribution, float, TaskUse]]] = {}
        self._done: dict[tuple[str, int], float] = {}
        self._evictions: dict[str, int] = {}
        self._held: dict[str, float] = {}
        self._measured: Callable[[], Mapping[Allocation, Resources]] = dict
        self._observed = ObservedUse()
        self._looked_seconds = -math.inf
        self._crowded: set[int] = set()

    def watch_use(self, measured: Callable[[], Mapping[Allocation, Resources]]) -> None:
        """Look at what tasks use at every decision."""
        self._measured = measured

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """Remember what is known of a task that was evicted or stopped."""
        if outcome.ended_because is EndedBecause.LOST:
            self._evictions[job.job_id] = 1 + self._evictions.get(job.job_id, 0)
            held = outcome.used.get("memory_max", 0.0)
            self._held[job.job_id] = max(self._held.get(job.job_id, 0.0), held)
        if not self._parameters.restarts:
            return
        for task in outcome.tasks:
            key = job.job_id, task
            if outcome.ended_because in GOES_BACK:
                work = outcome.used.get("cpu_time", 0.0)
                self._done[key] = max(self._done.get(key, 0.0), work)
            else:
                self._done.pop(key, None)

    def decide(self, view: ClusterView) -> Decision:
        """The starts of one cycle."""
        self._follow(view)
        looks = self._parameters.observed_use or self._parameters.preemption
        use = self._measured() if looks and self._is_shared else {}
        if self._parameters.observed_use:
            self._believe_observed(use, view.now)
        stops: tuple[Preempt, ...] = ()
        if self._parameters.preemption and view.now != self._looked_seconds:
            self._looked_seconds = view.now
            self._crowded.clear()
            stops = tuple(self._stops(use, view))
        free = self._free(view)
        self._machines.offer(
            np.array(
                [
                    name in free and number not in self._crowded
                    for number, name in enumerate(self._names)
                ],
                dtype=np.bool_,
            )
        )
        pending = list(view.pending)
        units = [unit for each in pending for unit in _units(each)]
        candidates = [self._candidate(each, view.now) for each in units]
        risks = (self._parameters.cpu_risk, self._parameters.memory_risk)
        choices = choose(self._machines, candidates, risks)
        starts: list[Start] = []
        for choice in choices:
            starts += self._starts(units[choice.candidate], choice.machines)
        chosen = {units[choice.candidate].pending.job.job_id for choice in choices}
        waiting = {
            each.job.job_id: Reason(ReasonCode.NOT_CHOSEN, {"ahead": float(ahead)})
            for ahead, each in enumerate(pending)
            if each.job.job_id not in chosen
        }
        return Decision(starts=tuple(starts), preemptions=stops, reasons=waiting)

    def _free(self, view: ClusterView) -> Mapping[str, Resources]:
        """What is free on each machine that is up."""
        return view.free_nodes if self._are_nodes else view.free

    def _follow(self, view: ClusterView) -> None:
        """Let the machines be as the view has them: what runs where."""
        if view.cluster is not self._cluster:
            self._set_up(view.cluster)
        running = {each.allocation: each for each in view.running}
        for allocation in [each for each in self._placed if each not in running]:
            self._observed.forget(allocation)
            for at, machine in enumerate(self._placed.pop(allocation)):
                self._machines.remove(machine, (allocation, at))
        for allocation, each in running.items():
            if allocation not in self._placed:
                request = each.held.stages[0].request
                use = self._use(each.job.job_id, each.stage, request, each.prediction)
                places = [self._number[name] for name in _nodes(each.placement)]
                self._placed[allocation] = places
                for at, machine in enumerate(places):
                    self._machines.add(machine, (allocation, at), use)
        living = {each.job.job_id for each in view.pending}
        living |= {each.job.job_id for each in view.running}
        remembered: tuple[dict[str, Any], ...] = (self._uses, self._evictions, self._held)
        for kept in remembered:
            for job_id in [name for name in kept if name not in living]:
                del kept[job_id]

    def _believe_observed(self, use: Mapping[Allocation, Resources], now: float) -> None:
        """Replace what is believed of tasks that use more than was believed possible."""
        for allocation, measured in use.items():
            places = self._placed.get(allocation)
            if places is None:
                continue
            believed = self._machines.use_of(places[0], (allocation, 0))
            other = self._observed.instead(
                allocation, measured, now, believed, self._machines.steps
            )
            if other is not None:
                for at, machine in enumerate(places):
                    self._machines.believe(machine, (allocation, at), other)

    def _stops(self, use: Mapping[Allocation, Resources], view: ClusterView) -> Iterator[Preempt]:
        """Tasks without a deadline that are in the way of others with one.

        Nothing new starts where one is stopped until the next cycle.
        """
        running = {each.allocation: each for each in view.running}
        on: dict[int, list[Allocation]] = {}
        for allocation in use:
            for machine in self._placed.get(allocation, ()):
                on.setdefault(machine, []).append(allocation)
        cpus = self._machines.table[:, kernel.CAPACITY + kernel.CPU]
        full = {
            machine: tasks
            for machine, tasks in on.items()
            if sum(use[task].cpus for task in tasks) >= cpus[machine] * (1.0 - _ROUNDING)
        }
        contended = Counter(
            job_id for tasks in full.values() for job_id in {task.job_id for task in tasks}
        )
        stopped: set[Allocation] = set()
        for machine, tasks in full.items():
            are_due = [running[each].job.deadline_seconds is not None for each in tasks]
            victims = [each for each, is_due in zip(tasks, are_due, strict=True) if not is_due]
            if not victims or not any(are_due) or stopped & set(tasks):
                continue

            def harm(each: Allocation, machine: int = machine) -> tuple[float, ...]:
                used, job = use[each], running[each].job
                believed = self._machines.use_of(machine, (each, self._placed[each].index(machine)))
                return (
                    used.cpus - job.stages[0].request.cpus,
                    used.cpus - float(believed.row[kernel.TASK_EXPECTED]),
                    contended[each.job_id],
                    used.cpus,
                )

            worst = max(victims, key=harm)
            stopped.add(worst)
            self._crowded.add(machine)
            yield Preempt(worst.job_id, worst.attempt, worst.stage, worst.tasks)

    def _set_up(self, cluster: Cluster) -> None:
        """Machines of a cluster, with nothing on them."""
        places = [
            (each.name, part.name, each.total)
            for part in cluster.partitions
            for each in (part.nodes or (part,))
        ]
        self._cluster = cluster
        self._names = [name for name, _, _ in places]
        self._partition = {name: partition for name, partition, _ in places}
        self._are_nodes = any(part.nodes for part in cluster.partitions)
        self._number = {name: number for number, name in enumerate(self._names)}
        self._is_shared = cluster.shared
        share = _EVICTION_SHARE if cluster.shared else 1.0
        capacities = np.array([(each.cpus, share * each.memory_bytes) for _, _, each in places])
        self._machines = PackedMachines(capacities, self._parameters.bins, self._parameters.seed)
        self._placed = {}
        self._uses = {}
        self._observed = ObservedUse()

    def _use(
        self, job_id: str, stage: str, request: Resources, prediction: Distribution
    ) -> TaskUse:
        """What a task of a stage is believed to use, worked out once for each belief."""
        known = self._uses.setdefault(job_id, {}).get(stage)
        least = self._least_memory(job_id)
        if known is not None and known[0] is prediction and known[1] == least:
            return known[2]
        told: Mapping[str, Distribution] = {}
        if self._is_shared and isinstance(prediction, UsageBelief):
            told = prediction.per_task
        cpu = told.get("cpu", Point(request.cpus))
        memory = told.get("memory", Point(request.memory_bytes))
        if not self._parameters.distribution:
            cpu, memory = Point(cpu.mean()), Point(memory.mean())
        if least > 0.0:
            atoms = atoms_of(memory, _NODES)
            memory = Empirical(np.maximum(atoms.values, least), atoms.masses)
        steps, bins = self._machines.steps, self._machines.bins
        use = task_use(cpu, memory, request.cpus, steps, bins)
        self._uses[job_id][stage] = prediction, least, use
        return use

    def _least_memory(self, job_id: str) -> float:
        """What a task of the job has held when it was evicted, as far as that is to be known."""
        enough = 1 if self._parameters.restarts else _EVICTIONS_ENOUGH
        return self._held[job_id] if self._evictions.get(job_id, 0) >= enough else 0.0

    def _work(self, unit: _Unit) -> float:
        """Cpu seconds of the longest of some tasks, as far as they are known."""
        belief, job_id = unit.pending.prediction, unit.pending.job.job_id
        told = belief.per_task if isinstance(belief, UsageBelief) else {}
        work = told.get("cpu_time") or belief.scaled(max(unit.stage.request.cpus, _LEAST_CPUS))
        done = max((self._done.get((job_id, task), 0.0) for task in unit.tasks), default=0.0)
        return work_knowing(work, done)

    def _candidate(self, unit: _Unit, now: float) -> Candidate:
        """A job, or a stage of one, as the kernel counts it: seconds from now."""
        parameters, job = self._parameters, unit.pending.job
        name = unit.stage.name if unit.pending.startable else ""
        use = self._use(job.job_id, name, unit.stage.request, unit.pending.prediction)
        work = self._work(unit)
        tasks = len(unit.tasks) if unit.is_whole else min(len(unit.tasks), self._most_tasks(use))
        deadline = job.deadline_seconds
        if deadline is None:
            begins = job.submit_seconds - now
            return Candidate(
                use,
                tasks,
                work,
                parameters.best_effort_value,
                begins,
                begins + parameters.best_effort_horizon_seconds,
                1e-6 * parameters.best_effort_value,
            )
        worth, left = parameters.slo_value, deadline - now
        if parameters.over_estimates == "off":
            return Candidate(use, tasks, work, worth, left, left)
        lasts = work / max(float(use.row[kernel.TASK_EXPECTED]), _LEAST_CPUS)
        falls = max(deadline - job.submit_seconds, max(-left, 0.0) + 2.0 * lasts)
        least = 1e-3 * parameters.best_effort_value
        return Candidate(use, tasks, work, worth, left, left + falls, least)

    def _most_tasks(self, use: TaskUse) -> int:
        """How many tasks that need not start together there is room for at once, at least one."""
        expected = use.row[kernel.TASK_EXPECTED : kernel.TASK_EXPECTED + kernel.RESOURCES]
        each = self._machines.capacities[:, expected > 0.0] / expected[expected > 0.0]
        whole = np.floor(each.min(axis=1, initial=_MOST_TASKS) + _ROUNDING)
        return max(1, int(whole.sum()))

    def _starts(self, unit: _Unit, machines: Sequence[int]) -> Iterator[Start]:
        """The starts of a job or a stage, whole or task by task."""
        names = [self._names[machine] for machine in machines]
        job_id, stage = unit.pending.job.job_id, unit.stage.name
        if not unit.pending.startable:
            yield Start(job_id, self._placement(names))
        elif unit.is_whole:
            yield Start(job_id, self._placement(names), stage=stage)
        else:
            for task, name in zip(unit.tasks, names, strict=False):
                yield Start(job_id, self._placement([name]), stage=stage, tasks=(task,))

    def _placement(self, names: Sequence[str]) -> Placement:
        nodes = {name: names.count(name) for name in dict.fromkeys(names)}
        partitions: dict[str, int] = {}
        for name, count in nodes.items():
            partition = self._partition[name]
            partitions[partition] = partitions.get(partition, 0) + count
        return Placement(tuple(partitions.items()), tuple(nodes.items()) if self._are_nodes else ())


class _Unit(NamedTuple):
    """What is placed at once: a job, or what of one of its stages may start.

    ``is_whole`` says whether its tasks start together.
    """

    pending: PendingJob
    stage: Stage
    tasks: Sequence[int]
    is_whole: bool


def _units(pending: PendingJob) -> Iterator[_Unit]:
    """The job, or its stages of which something may start."""
    if not pending.startable:
        yield _Unit(pending, pending.job.stages[0], range(pending.job.tasks), is_whole=True)
    for each in pending.startable:
        yield _Unit(pending, each.stage, tuple(each.tasks), each.stage.together)


def _nodes(placement: Placement) -> Iterator[str]:
    for name, count in placement.tasks_by_node or placement.tasks_by_partition:
        for _ in range(count):
            yield name


def _require(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise InputError("out of range", field=field, value=value, expected=expected)
