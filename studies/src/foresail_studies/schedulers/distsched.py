"""DistSched: packs tasks onto shared machines by the distributions of what they use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np

from foresail.distributions.basic import Point
from foresail.distributions.empirical import Empirical
from foresail.distributions.operations import atoms_of
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Decision, Placement, Preempt, Reason, ReasonCode, Start
from foresail.model.distribution import Booleans, Distribution
from foresail.model.errors import require, require_share
from foresail.model.event import Allocation, Outcome
from foresail.model.job import Job, Stage
from foresail.model.protocols import Scheduler
from foresail.model.registry import register
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail_studies.predictors.dspredict import UsageBelief
from foresail_studies.schedulers._packing import (
    Candidate,
    Choice,
    ObservedUse,
    PackedMachines,
    Restarts,
    Risks,
    choose,
    make_way,
    most_at_once,
    task_use,
    work_knowing,
)
from foresail_studies.schedulers.kernels import packing as kernel
from foresail_studies.schedulers.kernels.packing import TaskUse

_EVICTION_SHARE: Final = 0.95
_ROUNDING: Final = 1e-9
_LEAST_CPUS: Final = 1e-9
_FIRST: Final = 1e9
_NODES: Final = 17
_BINS: Final = 64
"""Into how many steps the largest machine is divided."""
_SLO_VALUE: Final = 1000.0
_BEST_EFFORT_VALUE: Final = 1.0
"""What a job with a deadline is worth until then; one without at its submission."""
_HORIZON_SECONDS: Final = 18_000.0
"""How long after its submission a job without a deadline is worth nothing more than others."""


@dataclass(frozen=True, slots=True)
class DistSchedParameters:
    """Parameters of ``distsched``."""

    distribution: bool = True
    """Plan with whole beliefs about cpu and memory; otherwise with their means alone."""
    cpu_risk: float = 0.10
    memory_risk: float = 0.05
    """A task is put where cpus or memory are too few with a smaller probability than these
    (optimistic over-packing); 0: only where they are certainly enough."""
    over_estimates: Literal["off", "on"] = "on"
    """What a job with a deadline is worth after it: nothing (``off``), or less and less
    (``on``)."""
    restarts: bool = True
    """Remember how much work a task had done when it was evicted or stopped, for it has more, and
    how much memory it held. Otherwise that of memory is remembered of a job after three evictions
    alone: tasks that evict each other for ever would never end."""
    observed_use: Literal["no", "replace"] = "replace"
    """``replace``: believe what was measured of a task instead, once it has always used more than
    was believed possible (of cpu or of memory). ``no``: do not look."""
    preemption: bool = True
    """On machines whose cpus are all in use, stop tasks of jobs without a deadline that are in the
    way of those of jobs with one."""
    patience_seconds: float = 14_400.0
    """A job that has waited longer goes first, the oldest alone: its tasks one by one where they
    may start apart, and until they fit nothing else starts on machines that are to be emptied for
    it."""

    def __post_init__(self) -> None:
        require_share(self, "cpu_risk", "memory_risk")
        require(self.patience_seconds >= 0.0, self, "patience_seconds", "0 or more")


@register("scheduler", "distsched", parameters=DistSchedParameters)
class DistSched(Scheduler):
    """Packs tasks by distributions of their use: the most expected value first, risks bounded.

    Where tasks may start apart they do. Where nodes are not shared, a task uses what it asked for;
    where they are not known, each partition counts as one. What it has observed of tasks that share
    nodes, which only simulations have, is not handed on. Source: Park's dissertation, chapter 5.
    """

    starts_tasks = True

    def __init__(self, parameters: DistSchedParameters) -> None:
        self._parameters = parameters
        self._cluster: Cluster | None = None
        self._machines = PackedMachines(np.zeros((0, kernel.RESOURCES)), 2)
        self._is_shared = self._are_nodes = True
        self._names: list[str] = []
        self._partition: dict[str, str] = {}
        self._number: dict[str, int] = {}
        self._placed: dict[Allocation, Sequence[int]] = {}
        self._uses: dict[str, dict[str, tuple[Distribution, float, TaskUse]]] = {}
        self._restarts = Restarts(remembers=parameters.restarts)
        self._measured: Callable[[], Mapping[Allocation, Resources]] = dict
        self._observed = ObservedUse()
        self._looked_seconds = -math.inf
        self._crowded: set[int] = set()

    def watch_use(self, measured: Callable[[], Mapping[Allocation, Resources]]) -> None:
        """Look at what tasks use at every decision."""
        self._measured = measured

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """Remember what is known of a task that was evicted or stopped."""
        self._restarts.note(job, outcome)

    def requeued(self, job: Job, outcome: Outcome) -> None:
        """Remember the same of a job whose tasks start together."""
        self._restarts.note(job, outcome)

    def decide(self, view: ClusterView) -> Decision:
        """The starts of one cycle."""
        self._follow(view)
        use = self._measured() if self._looks and self._is_shared else {}
        if self._parameters.observed_use == "replace":
            self._believe_observed(use, view.now)
        stops: tuple[Preempt, ...] = ()
        is_first = view.now != self._looked_seconds
        self._looked_seconds = view.now
        if self._parameters.preemption and is_first:
            self._crowded.clear()
            stops = tuple(self._stops(use, view))
        free = self._free(view)
        offered = np.array(
            [
                name in free and number not in self._crowded
                for number, name in enumerate(self._names)
            ],
            dtype=np.bool_,
        )
        self._machines.offer(offered)
        late = self._overdue(view)
        starts = self._chosen(view, offered, late)
        if not starts and not late and not view.running:
            starts = self._chosen(view, offered, self._oldest(view))
        chosen = {each.job_id for each in starts}
        waiting = {
            each.job.job_id: Reason(ReasonCode.NOT_CHOSEN, {"ahead": float(ahead)})
            for ahead, each in enumerate(view.pending)
            if each.job.job_id not in chosen
        }
        return Decision(starts=tuple(starts), preemptions=stops, reasons=waiting)

    def _chosen(self, view: ClusterView, offered: Booleans, late: PendingJob | None) -> list[Start]:
        """Return what starts on the machines that are offered; one job goes before all others."""
        waiting = [
            each
            for each in view.pending
            if each is not late and not self._restarts.was_evicted(each.job.job_id, view.now)
        ]
        overdue = [] if late is None else [one for u in _units(late) for one in u.one_by_one()]
        urgent = [self._urgent(each, view.now) for each in overdue]
        kept_free, choices = make_way(self._machines, urgent, self._risks)
        starts = [each for choice in choices for each in self._starts(overdue, choice)]
        rest = offered.copy()
        rest[list(kept_free)] = False
        self._machines.offer(rest)
        units = [*overdue, *(unit for each in waiting for unit in _units(each))]
        candidates = [*urgent, *(self._candidate(each, view.now) for each in units[len(overdue) :])]
        for choice in choose(self._machines, candidates, self._risks):
            starts += self._starts(units, choice)
        return starts

    @property
    def _looks(self) -> bool:
        return self._parameters.observed_use != "no" or self._parameters.preemption

    @property
    def _risks(self) -> Risks:
        return self._parameters.cpu_risk, self._parameters.memory_risk

    def _overdue(self, view: ClusterView) -> PendingJob | None:
        """The oldest job that waits, if its patience is over."""
        oldest = self._oldest(view)
        since = view.now - self._parameters.patience_seconds
        return oldest if oldest is not None and oldest.job.submit_seconds < since else None

    def _oldest(self, view: ClusterView) -> PendingJob | None:
        """The job that has waited for longest, of those that are worth something to the last."""
        keeps_worth = self._parameters.over_estimates == "on"
        for each in view.pending:
            is_due = each.job.deadline_seconds is not None
            evicted = self._restarts.was_evicted(each.job.job_id, view.now)
            if (keeps_worth or not is_due) and not evicted:
                return each
        return None

    def _free(self, view: ClusterView) -> Mapping[str, Resources]:
        """Return what is free on each machine that is up."""
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
                self._place(allocation, each)
        living = {each.job.job_id for each in view.pending}
        living |= {each.job.job_id for each in view.running}
        self._restarts.forget_all_but(living)
        for job_id in [name for name in self._uses if name not in living]:
            del self._uses[job_id]

    def _place(self, allocation: Allocation, running: RunningJob) -> None:
        """Something has started since the last decision, or before a run was interrupted."""
        least = self._restarts.least_memory(allocation.job_id, allocation.stage)
        request = running.held.stages[0].request
        use = self._use(running.job.job_id, running.stage, request, running.prediction, least)
        machines = [self._number[name] for name in _nodes(running.placement)]
        self._placed[allocation] = machines
        for at, machine in enumerate(machines):
            self._machines.add(machine, (allocation, at), use)

    def _believe_observed(self, use: Mapping[Allocation, Resources], now: float) -> None:
        """Replace what is believed of tasks that use more than was believed possible."""
        others = []
        for allocation in self._observed.open(use):
            machines = self._placed.get(allocation)
            if machines is None:
                continue
            believed = self._machines.use_of(machines[0], (allocation, 0))
            other = self._observed.instead(
                allocation, use[allocation], now, believed, self._machines.steps
            )
            if other is not None:
                others.append((allocation, other))
        self._machines.believe(
            (machine, (allocation, at), other)
            for allocation, other in others
            for at, machine in enumerate(self._placed[allocation])
        )

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
                used, held = use[each], running[each].held
                at = self._placed[each].index(machine)
                believed = self._machines.use_of(machine, (each, at))
                return (
                    used.cpus - held.stages[0].request.cpus,
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
        self._machines = PackedMachines(capacities, _BINS)
        self._placed = {}
        self._uses = {}
        self._observed = ObservedUse()

    def _use(
        self, job_id: str, stage: str, request: Resources, prediction: Distribution, least: float
    ) -> TaskUse:
        """Return what a task of a stage is believed to use, worked out once for each belief."""
        known = self._uses.setdefault(job_id, {}).get(stage)
        if known is not None and known[0] is prediction and known[1] == least:
            return known[2]
        told: Mapping[str, Distribution] = {}
        if self._is_shared and isinstance(prediction, UsageBelief):
            told = prediction.per_task
        cpu = told.get("cpu", Point(request.cpus))
        memory = told.get("memory", Point(request.memory_bytes))
        cpu, memory = self._planned(cpu), _at_least(self._planned(memory), least)
        steps, bins = self._machines.steps, self._machines.bins
        use = task_use(cpu, memory, request.cpus, steps, bins)
        self._uses[job_id][stage] = prediction, least, use
        return use

    def _planned(self, belief: Distribution) -> Distribution:
        """Return what is planned with of a belief: all of it, or its mean alone."""
        return belief if self._parameters.distribution else Point(belief.mean())

    def _work(self, unit: _Unit) -> float:
        """Cpu seconds of the longest of some tasks, as far as they are known."""
        belief, job_id = unit.pending.prediction, unit.pending.job.job_id
        told = belief.per_task if isinstance(belief, UsageBelief) else {}
        work = told.get("cpu_time") or belief.scaled(max(unit.stage.request.cpus, _LEAST_CPUS))
        name = unit.stage.name if unit.pending.startable else ""
        return work_knowing(work, self._restarts.work_done(job_id, name, unit.tasks))

    def _candidate(self, unit: _Unit, now: float) -> Candidate:
        """A job, or a stage of one, as the kernel counts it: seconds from now."""
        parameters, job = self._parameters, unit.pending.job
        name = unit.stage.name if unit.pending.startable else ""
        least = self._restarts.least_memory(job.job_id, name)
        use = self._use(job.job_id, name, unit.stage.request, unit.pending.prediction, least)
        work = self._work(unit)
        tasks = len(unit.tasks)
        if not unit.is_whole and tasks > len(self._names):  # each node has room for one, as a rule
            tasks = most_at_once(self._machines.empty(), use, tasks, self._risks)
        deadline = job.deadline_seconds
        if deadline is None:
            begins = job.submit_seconds - now
            return Candidate(
                use,
                tasks,
                work,
                _BEST_EFFORT_VALUE,
                begins,
                begins + _HORIZON_SECONDS,
                1e-6 * _BEST_EFFORT_VALUE,
            )
        worth, left = _SLO_VALUE, deadline - now
        if parameters.over_estimates == "off":
            return Candidate(use, tasks, work, worth, left, left)
        lasts = work / max(float(use.row[kernel.TASK_EXPECTED]), _LEAST_CPUS)
        falls = max(deadline - job.submit_seconds, max(-left, 0.0) + 2.0 * lasts)
        least = 1e-3 * _BEST_EFFORT_VALUE
        return Candidate(use, tasks, work, worth, left, left + falls, least)

    def _urgent(self, unit: _Unit, now: float) -> Candidate:
        """Rank the same before all others."""
        return replace(
            self._candidate(unit, now),
            value=_FIRST * _SLO_VALUE,
            full_seconds=math.inf,
            zero_seconds=math.inf,
        )

    def _starts(self, units: Sequence[_Unit], choice: Choice) -> Iterator[Start]:
        """The starts of a job or a stage, whole or task by task."""
        unit, names = units[choice.candidate], [self._names[each] for each in choice.machines]
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
    """Unit that is placed at once: a job, or what of one of its stages may start.

    ``is_whole`` says whether its tasks start together.
    """

    pending: PendingJob
    stage: Stage
    tasks: Sequence[int]
    is_whole: bool

    def one_by_one(self) -> Iterator[_Unit]:
        """Its tasks, each by itself; itself if they start together."""
        if self.is_whole:
            yield self
        else:
            yield from (self._replace(tasks=(task,)) for task in self.tasks)


def _units(pending: PendingJob) -> Iterator[_Unit]:
    """The job, or its stages of which something may start."""
    if not pending.startable:
        yield _Unit(pending, pending.job.stages[0], range(pending.job.tasks), is_whole=True)
    for each in pending.startable:
        yield _Unit(pending, each.stage, tuple(each.tasks), each.stage.together)


def _at_least(memory: Distribution, least: float) -> Distribution:
    """A belief about memory of a task that is known to hold so much at some time."""
    if least <= 0.0:
        return memory
    atoms = atoms_of(memory, _NODES)
    return Empirical(np.maximum(atoms.values, least), atoms.masses)


def _nodes(placement: Placement) -> Iterator[str]:
    for name, count in placement.places:
        for _ in range(count):
            yield name
