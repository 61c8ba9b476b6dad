"""State: which jobs wait, run and have ended, and the transitions between the three.

What lives is a job, or the parts of one whose stages and tasks start apart.
"""

from __future__ import annotations

import copy
import heapq
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from operator import attrgetter
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from foresail.model.allocation import Part, Unit
from foresail.model.changing_nodes import changed, without
from foresail.model.cluster import Cluster
from foresail.model.construction import quickly_made, replaced
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.due import Due
from foresail.model.event import (
    NodeDown,
    NodeDrained,
    NodeEvent,
    NodeRemoved,
    NodeResumed,
    NodeUp,
    OperatorEvent,
)
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause
from foresail.model.protocols import ReferenceSchedule
from foresail.model.roster import Roster
from foresail.model.slowdown import Slowdowns
from foresail.model.start_conditions import Dependency, DependencyKind
from foresail.model.view import PendingJob, RunningJob
from foresail.record.eligibility import Eligibility
from foresail.record.parts import PartsOfJob

_Key = TypeVar("_Key", bound=Hashable)
_Entry = TypeVar("_Entry")
_Namesakes: TypeAlias = dict[tuple[str | None, str], dict[str, None]]
"""Ids of living jobs in order of arrival, by user and name."""


class JobState(StrEnum):
    """Where a job is in its life."""

    ABSENT = "absent"
    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"


TRANSITIONS: Final[Mapping[str, tuple[JobState, JobState]]] = MappingProxyType(
    {
        "submit": (JobState.ABSENT, JobState.PENDING),
        "start": (JobState.PENDING, JobState.RUNNING),
        "cancel": (JobState.PENDING, JobState.ENDED),
        "requeue": (JobState.RUNNING, JobState.PENDING),
        "end": (JobState.RUNNING, JobState.ENDED),
    }
)
"""The life of a job: from where to where each method of ``State`` takes it. Anything else is
impossible and raises ``ImpossibleTransition``, but for a cancellation that comes too late: what
runs is to end, and what has ended stays as it is."""


class ImpossibleTransition(Exception):  # noqa: N818 - it says what it is
    """The cluster reported, or control attempted, what cannot have happened; with the story."""

    def __init__(
        self, job_id: str, now: float, source: JobState, target: JobState, story: str
    ) -> None:
        self.job_id = job_id
        self.source = source
        self.target = target
        super().__init__(
            f"job {job_id!r} cannot go from {source} to {target} at {now:g} s; it {story}"
        )


@quickly_made
@dataclass(frozen=True, slots=True)
class EndedJob:
    """What is remembered of a job that has ended: enough for dependencies and for errors."""

    end_seconds: float
    ended_because: EndedBecause


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A pending job that will never run: ``predecessor`` has ended, but not as it was to."""

    job: Job
    predecessor: str
    predecessor_ended: EndedBecause


class State:
    """Everything that is true now. Only the methods named after transitions change it.

    To be read, not written, by others: ``startable`` (pending jobs that may start, by id),
    ``waiting_for`` (pending jobs held back by dependencies), ``too_wide`` (pending jobs that the
    empty cluster has no room for), ``held_back`` (pending jobs that could start or are too wide,
    and are held, are to begin later, or have enough others of their array before them),
    ``running`` (by start), each with the ``Roster`` that knows its order and its
    changes; ``held`` (all that are held, be it behind others, and by whom), ``cancelled`` (of
    those that run and are to end), ``stopping`` (what runs and was told to stop), ``estimates``
    (current estimate of the runtime of what runs), ``ended``, ``free``, ``down`` and ``drained``
    (nodes on which nothing starts, by name, and what was wished of the latter), ``submissions``
    (how many jobs there have been: the next one's arrival number), ``reference`` (what is told of
    each passage of a job, if anything is), ``next_begin_seconds`` (when the next job may begin
    that may not yet; infinite for never).

    What runs is known by its ``Unit``: a whole job by its id. A job that starts in parts can run
    and wait at once, and waits as what of it may start now.

    Parameters
    ----------
    cluster
        What there is to run on.
    starts_tasks
        Whether jobs whose stages or tasks may start apart do; else each starts as a whole.
    reference
        A schedule, before its first job, that the one of this state is compared with.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        starts_tasks: bool = False,
        reference: ReferenceSchedule | None = None,
    ) -> None:
        self.cluster = cluster
        self.starts_tasks = starts_tasks
        self.reference = reference
        self.free = FreeResources(cluster)
        self._in_use: FreeResources | None = None
        self._slowdowns = Slowdowns(cluster)
        self.startable_roster: Roster[str, PendingJob] = Roster(_by_arrival)
        self.waiting_for_roster: Roster[str, PendingJob] = Roster(_by_arrival)
        self.too_wide_roster: Roster[str, PendingJob] = Roster(_by_arrival)
        self.held_roster: Roster[str, PendingJob] = Roster(_by_arrival)
        self.running_roster: Roster[Unit, RunningJob] = Roster(_by_start)
        self._show_rosters()
        self.held: dict[str, str] = {}
        self.cancelled: set[str] = set()
        self.down: set[str] = set()
        self.drained: dict[str, NodeDrained] = {}
        self.stopping: set[Unit] = set()
        self.estimates: dict[Unit, float] = {}
        self.ended: dict[str, EndedJob] = {}
        self._living: dict[str, PendingJob] = {}
        self._in_parts: dict[str, PartsOfJob] = {}
        self._dependents: dict[str, list[str]] = {}
        self._namesakes: _Namesakes | None = None  # no singleton has come yet
        self._eligibility = Eligibility()
        self.next_begin_seconds = math.inf
        self.submissions = 0
        self._starts = 0
        self._went_back: dict[str, int] = {}  # of whole jobs; each part's job knows its own
        self._line: list[tuple[int, str]] = []  # a heap; jobs that wait no more are among them

    def long_ended(self, latest: int) -> tuple[str, ...]:
        """Jobs that have ended, but for so many of the latest, and that no job waits for."""
        waited_for = set(chain.from_iterable(each.job.after for each in self.waiting_for.values()))
        oldest = islice(self.ended, max(0, len(self.ended) - latest))
        return tuple(job_id for job_id in oldest if job_id not in waited_for)

    def forget(self, job_ids: Collection[str]) -> None:
        """Know nothing more of jobs that have ended: as if they had never been submitted."""
        for job_id in job_ids:
            del self.ended[job_id]
        self._line_up()

    def copy(self) -> State:
        """Another state, in which all is now as it is here; it is compared with nothing."""
        twin = copy.copy(self)
        twin.reference = None
        twin.free = self.free.copy()
        twin.startable_roster = _twin(self.startable_roster, _by_arrival)
        twin.waiting_for_roster = _twin(self.waiting_for_roster, _by_arrival)
        twin.too_wide_roster = _twin(self.too_wide_roster, _by_arrival)
        twin.held_roster = _twin(self.held_roster, _by_arrival)
        twin.running_roster = _twin(self.running_roster, _by_start)
        twin._show_rosters()
        twin.held, twin.cancelled = dict(self.held), set(self.cancelled)
        twin.down, twin.drained = set(self.down), dict(self.drained)
        twin.stopping = set(self.stopping)
        twin.estimates = dict(self.estimates)
        twin.ended = dict(self.ended)
        twin._living = dict(self._living)
        twin._in_parts = {job_id: parts.copy() for job_id, parts in self._in_parts.items()}
        twin._dependents = {job_id: list(each) for job_id, each in self._dependents.items()}
        if self._namesakes is not None:
            twin._namesakes = {name: dict(each) for name, each in self._namesakes.items()}
        twin._eligibility = self._eligibility.copy()
        twin._went_back = dict(self._went_back)
        twin._line = list(self._line)
        return twin

    def _show_rosters(self) -> None:
        self.startable = self.startable_roster.by_id
        self.waiting_for = self.waiting_for_roster.by_id
        self.too_wide = self.too_wide_roster.by_id
        self.held_back = self.held_roster.by_id
        self.running = self.running_roster.by_id

    def of(self, job_id: str) -> JobState:
        """Where the job is in its life."""
        if job_id in self.running:
            return JobState.RUNNING
        if job_id in self._living:
            runs = job_id in self._in_parts and self._in_parts[job_id].running
            return JobState.RUNNING if runs else JobState.PENDING
        return JobState.ENDED if job_id in self.ended else JobState.ABSENT

    def submitted_job(self, job_id: str) -> PendingJob:
        """A pending or running job as it was submitted, with its prediction.

        Raises
        ------
        KeyError
            If the job is neither.
        """
        return self._living[job_id]

    def parts_of(self, job_id: str) -> PartsOfJob | None:
        """What became so far of a living job that starts in parts; None if it does not."""
        return self._in_parts.get(job_id)

    @property
    def usable_cluster(self) -> Cluster:
        """The cluster without the nodes that are down or drained."""
        return without(self.cluster, self.down | self.drained.keys())

    def could_hold_now(self, job: Job) -> bool:
        """Whether the nodes that are in use would have room for a job if they were empty."""
        if self._in_use is None:
            self._in_use = FreeResources(self.usable_cluster)
        return self._in_use.could_hold(job)

    @property
    def has_parts(self) -> bool:
        """Whether a job that waits or runs starts in parts."""
        return bool(self._in_parts)

    def pending_job(self, job_id: str) -> PendingJob | None:
        """A job that waits, whatever for; None if it does not."""
        return (
            self.startable.get(job_id)
            or self.waiting_for.get(job_id)
            or self.too_wide.get(job_id)
            or self.held_back.get(job_id)
        )

    def pending(self) -> list[PendingJob]:
        """All pending jobs, whatever they wait for, by arrival."""
        jobs = [pending for roster in self.pending_rosters for pending in roster.by_id.values()]
        return sorted(jobs, key=_by_arrival)

    @property
    def pending_rosters(self) -> tuple[Roster[str, PendingJob], ...]:
        """Where pending jobs are, each in one of them."""
        return (
            self.startable_roster,
            self.waiting_for_roster,
            self.too_wide_roster,
            self.held_roster,
        )

    def unmet(self, job: Job) -> tuple[str, DependencyKind] | None:
        """The first job that it waits for, and what is to become of that; None if it has."""
        for dependency in _dependencies(job):
            for predecessor in dependency.job_ids:
                if not self._is_met(predecessor, dependency.kind):
                    return predecessor, dependency.kind
            if dependency.kind is DependencyKind.AFTER_NOT_OK and not any(
                map(self._has_failed, dependency.job_ids)
            ):
                return dependency.job_ids[-1], dependency.kind
        singleton = job.conditions is not None and job.conditions.singleton
        if singleton and job.name is not None and self._namesakes is not None:
            first = next(iter(self._namesakes[job.user, job.name]))
            if first != job.job_id:
                return first, DependencyKind.SINGLETON
        return None

    def _is_met(self, predecessor: str, kind: DependencyKind) -> bool:
        """Whether a job has become what another waits for; of a failure, whether it has ended."""
        if predecessor in self.ended:
            return kind is not DependencyKind.AFTER_OK or not self._has_failed(predecessor)
        if kind is not DependencyKind.AFTER:
            return False
        return self.of(predecessor) is JobState.RUNNING or predecessor in self._went_back

    def _has_failed(self, job_id: str) -> bool:
        """Whether a job has ended, but not completed."""
        end = self.ended.get(job_id)
        return end is not None and end.ended_because is not EndedBecause.COMPLETED

    def _never_met(self, job: Job) -> str | None:
        """A job that has ended in a way in which another can never start; None if there is none."""
        for dependency in _dependencies(job):
            failed = next(filter(self._has_failed, dependency.job_ids), None)
            match dependency.kind:
                case DependencyKind.AFTER_OK if failed is not None:
                    return failed
                case DependencyKind.AFTER_NOT_OK if failed is None and all(
                    each in self.ended for each in dependency.job_ids
                ):
                    return dependency.job_ids[-1]
        return None

    def why_held_back(self, job_id: str) -> tuple[float | None, int]:
        """When a job that is held back, though not held, may begin; else how many run at once."""
        conditions = self.held_back[job_id].job.conditions
        assert conditions is not None
        if self._eligibility.begins_later(job_id):
            return conditions.begin_seconds, 0
        return None, conditions.most_at_once or 0

    def let_begin(self, now: float) -> bool:
        """Let jobs take part whose begin has come; whether one may start by that."""
        if self.next_begin_seconds > now:
            return False
        before = len(self.startable)
        for job_id, begin in self._eligibility.begun(now):
            pending = self.held_back.get(job_id)
            if pending is not None:
                self.held_roster.take(job_id)
                self._queue(pending, begin)
        self.next_begin_seconds = self._eligibility.next_seconds
        return len(self.startable) > before

    def submit(self, pending: PendingJob, now: float) -> list[Withdrawn]:
        """Absent to pending; returns the job itself if what it waits for cannot happen any more."""
        job = pending.job
        if job.job_id in self._living or job.job_id in self.ended:
            raise self._impossible(job.job_id, "submit", now)
        if self.starts_tasks and job.starts_in_parts:
            parts = self._in_parts[job.job_id] = PartsOfJob(job)
            pending = replaced(pending, startable=parts.startable)
        self.submissions += 1
        self._living[job.job_id] = pending
        if self._namesakes is not None:
            _add_namesake(self._namesakes, job)
        if job.conditions is not None:
            if job.conditions.singleton and self._namesakes is None:
                self._namesakes = {}
                for each in self._living.values():
                    _add_namesake(self._namesakes, each.job)
            self._eligibility.add(job, job.conditions, now)
            self.next_begin_seconds = self._eligibility.next_seconds
        for predecessor in job.after:
            if predecessor not in self.ended:
                self._dependents.setdefault(predecessor, []).append(job.job_id)
        if (job.after or job.conditions is not None) and self.unmet(job) is not None:
            self.waiting_for_roster.put(job.job_id, pending)
            if self._stands_in_line(pending):
                heapq.heappush(self._line, (pending.arrival, job.job_id))
            return self._settle_dependent(job.job_id, now)
        self._queue(pending, now)
        return []

    def falls_due(self, job_id: str, due: Due) -> None:
        """Note when a job is due."""
        if job_id in self._living:
            self._living[job_id] = replaced(self._living[job_id], due=due)
        pending = self.startable.get(job_id)
        if pending is not None:
            self.startable_roster.put(job_id, replaced(pending, due=due))

    def believe(self, job_id: str, prediction: Distribution) -> None:
        """Give a job that may start another prediction; the one at submission is kept beside it."""
        believed = replaced(self.startable[job_id], prediction=prediction)
        self.startable_roster.put(job_id, believed)
        self._believe_of_parts(job_id, prediction)

    def believe_again(self, job_id: str, first: Distribution, latest: Distribution) -> None:
        """Give a pending or running job the very beliefs that the state was made without."""
        before = self._living[job_id]
        living = self._living[job_id] = replaced(before, prediction=first)
        for roster in self.pending_rosters:
            waiting = roster.by_id.get(job_id)
            if waiting is not None:
                alike = waiting is before and latest is first
                roster.put(job_id, living if alike else replaced(waiting, prediction=latest))
                break
        if job_id in self.running:
            running = replaced(self.running[job_id], prediction=latest)
            self.running_roster.put(job_id, running)
        self._believe_of_parts(job_id, latest)

    def _believe_of_parts(self, job_id: str, prediction: Distribution) -> None:
        """What is believed of a job is believed of its parts that run, and those that will."""
        if job_id in self._in_parts:
            parts = self._in_parts[job_id]
            parts.belief = prediction
            for part in parts.running:
                believed = replaced(self.running[part], prediction=prediction)
                self.running_roster.put(part, believed)

    def start(self, unit: Unit, placement: Placement, now: float) -> RunningJob:
        """Pending to running, with the planned estimate of the runtime there."""
        job_id, stage, tasks = (unit, "", ()) if isinstance(unit, str) else unit
        if unit in self.running or job_id not in self._living:
            raise self._impossible(job_id, "start", now)
        pending = self.startable[job_id]
        overtook = self._first_arrival_in_line() < pending.arrival
        held = pending.job
        if isinstance(unit, str):
            self.startable_roster.take(job_id)
            went_back = self._went_back.get(job_id, 0)
        else:
            held = held.held(stage, tasks)
            parts = self._in_parts[job_id]
            went_back = parts.went_back.get(unit, 0)
            parts.start(unit, now, self._starts)
            self._show(parts)
        slowdown = self._slowdowns.of(pending.job, placement)
        estimate = slowdown * pending.planned_seconds
        running = RunningJob(
            pending.job,
            now,
            self._starts,
            placement,
            pending.prediction,
            now + estimate,
            0,  # corrections
            slowdown,
            pending.reservation,
            1 + went_back,
            overtook,
            stage,
            tasks,
        )
        self.free.take(held, placement)
        if pending.job.conditions is not None:
            self._eligibility.starts(pending.job, pending.arrival)
        self._starts += 1
        self.running_roster.put(unit, running)
        self.estimates[unit] = estimate
        if self.reference is not None:
            self.reference.started(job_id, now)
        if job_id in self._dependents:
            for dependent in self._dependents[job_id]:
                if dependent in self.waiting_for:
                    self._settle_dependent(dependent, now)
        return running

    def begins_its_job(self, running: RunningJob) -> bool:
        """Whether it is all of its job, or the part that started first."""
        if not running.stage:
            return True
        return self._in_parts[running.job.job_id].first_start == running.start_order

    def correct(self, unit: Unit, estimate_seconds: float, count: int | None = None) -> RunningJob:
        """Give what runs its next estimate of its total runtime, or the one of this number."""
        before = self.running[unit]
        after = replaced(
            before,
            expected_end_seconds=before.start_seconds + estimate_seconds,
            corrections=before.corrections + 1 if count is None else count,
        )
        self.running_roster.put(unit, after)
        self.estimates[unit] = estimate_seconds
        return after

    def stop(self, unit: Unit) -> None:
        """Note that what runs was told to stop; it holds its resources until it has."""
        self.stopping.add(unit)

    def requeue(self, job_id: str, now: float) -> None:
        """Running to pending: a preempted job goes back to its place in the queue."""
        if job_id not in self.running:
            raise self._impossible(job_id, "requeue", now)
        self._release(job_id)
        self._went_back[job_id] = 1 + self._went_back.get(job_id, 0)
        self._eligibility.stops(self._living[job_id].job)
        self._put(self._living[job_id])
        self._settle_array(self._living[job_id].job, now)
        if self.reference is not None:
            self.reference.went_back(job_id, now)

    def end(self, job_id: str, because: EndedBecause, now: float) -> list[Withdrawn]:
        """Running to ended; returns the jobs that will never run because of it."""
        if job_id not in self.running:
            raise self._impossible(job_id, "end", now)
        self._release(job_id)
        return self._finish(job_id, because, now)

    def end_part(self, part: Part, because: EndedBecause, now: float) -> list[Withdrawn]:
        """A part has ended, and what waited for it may start, or goes back to wait itself.

        The job has ended with its last part, or with the last that runs once one has failed.
        Returns the jobs that will never run because of that.
        """
        if part not in self.running:
            raise self._impossible(part.job_id, "end", now)
        self._release(part)
        parts = self._in_parts[part.job_id]
        parts.end(part, because)
        self._show(parts)
        ended_because = parts.ended_because
        return [] if ended_because is None else self._finish(part.job_id, ended_because, now)

    def cancel(self, job_id: str, now: float) -> list[Withdrawn]:
        """Pending to ended, by the user; returns the jobs that will never run because of it.

        A job that runs is among ``cancelled`` until it has ended, and starts no more; one that has
        ended stays as it is.
        """
        match self.of(job_id):
            case JobState.ABSENT:
                raise self._impossible(job_id, "cancel", now)
            case JobState.PENDING:
                self._leave(job_id)
                return self._finish(job_id, EndedBecause.CANCELLED, now)
            case JobState.RUNNING:
                self.cancelled.add(job_id)
                self._leave(job_id)
                if job_id in self._in_parts:
                    self._in_parts[job_id].cancel()
        return []

    def hold(self, job_id: str, now: float, by: str = "") -> None:
        """Let a job that waits wait until it is released; one that does not is left alone."""
        pending = self.pending_job(job_id)
        if pending is None or job_id in self.held:
            return
        self.held[job_id] = by
        if job_id in self.waiting_for:
            self.waiting_for_roster.put(job_id, pending)  # its reason is another
            return
        if job_id in self.startable and self.reference is not None:
            self.reference.left(job_id, now)
        self._leave(job_id)
        self.held_roster.put(job_id, pending)
        self._settle_array(pending.job, now)

    def release(self, job_id: str, now: float) -> None:
        """Let a job that was held take part again; one that was not is left alone."""
        if job_id not in self.held:
            return
        del self.held[job_id]
        pending = self.held_back.get(job_id)
        if pending is not None:
            self.held_roster.take(job_id)
            self._queue(pending, now)
        elif job_id in self.waiting_for:
            pending = self.waiting_for[job_id]
            self.waiting_for_roster.put(job_id, pending)
            if self._stands_in_line(pending):
                heapq.heappush(self._line, (pending.arrival, job_id))

    def change_nodes(self, event: NodeEvent) -> None:
        """Nodes are down or up, or there are others; jobs then may be too wide, or no longer.

        Raises
        ------
        InputError
            If there is no such node, or (of one that is added) there is one.
        """
        self._in_use = None
        match event:
            case NodeDown(node=node):
                self.free.close(node)
                self.down.add(node)
            case NodeUp(node=node):
                self.down.discard(node)
                self._open_if_used(node)
            case _:
                if isinstance(event, NodeRemoved):
                    self.down.discard(event.node)
                    self.drained.pop(event.node, None)
                self.cluster = changed(self.cluster, event)
                self.free.change(self.cluster)
                self._slowdowns = Slowdowns(self.cluster)
                self._sort_by_width()

    def operate(self, event: OperatorEvent) -> None:
        """A node is drained or used again; one that there is not is left alone."""
        node = event.node
        nodes = (each for partition in self.cluster.partitions for each in partition.nodes)
        if not any(node == each.name for each in nodes):
            return
        self._in_use = None
        match event:
            case NodeDrained():
                self.drained.setdefault(node, event)
                self.free.close(node)
            case NodeResumed():
                self.drained.pop(node, None)
                self._open_if_used(node)

    def _open_if_used(self, node: str) -> None:
        if node not in self.down and node not in self.drained:
            self.free.open(node)

    def _sort_by_width(self) -> None:
        """Let those wait apart that there is no room for now, and no others."""
        could_hold = self._could_hold
        too_wide = self.too_wide_roster.in_order()
        for pending in self.startable_roster.in_order():
            if not could_hold(pending):
                self.startable_roster.take(pending.job.job_id)
                self.too_wide_roster.put(pending.job.job_id, pending)
        for pending in too_wide:
            if could_hold(pending):
                self.too_wide_roster.take(pending.job.job_id)
                self.startable_roster.put(pending.job.job_id, pending)
        self._line_up()

    def _line_up(self) -> None:
        """Only jobs that wait stand in line."""
        behind = [each for each in self.waiting_for.values() if each.job.job_id not in self.held]
        waiting = [*self.startable.values(), *behind]
        self._line = [
            (each.arrival, each.job.job_id) for each in waiting if self._stands_in_line(each)
        ]
        heapq.heapify(self._line)

    def _stands_in_line(self, pending: PendingJob) -> bool:
        """Whether others overtake it if they start before."""
        conditions = pending.job.conditions
        return self._could_hold(pending) and not (conditions and conditions.keep_out_of_line)

    def _could_hold(self, pending: PendingJob) -> bool:
        """Whether the empty cluster has room for what of the job needs to start at once."""
        if pending.job.job_id in self._in_parts:
            parts = self._in_parts[pending.job.job_id]
            return all(self.free.could_hold(each) for each in parts.smallest())
        return self.free.could_hold(pending.job)

    def _show(self, parts: PartsOfJob) -> None:
        """Let a job wait for what of it may start now, or no more."""
        job_id, startable = parts.job.job_id, parts.startable
        for roster in (self.startable_roster, self.too_wide_roster, self.held_roster):
            if job_id in roster.by_id:
                shown = replaced(roster.by_id[job_id], startable=startable)
                if startable:
                    roster.put(job_id, shown)
                else:
                    roster.take(job_id)
                return
        if startable:
            first = self._living[job_id]
            belief = first.prediction if parts.belief is None else parts.belief
            self._put(replaced(first, prediction=belief, startable=startable))

    def _queue(self, pending: PendingJob, now: float) -> None:
        """Let a job wait that has not before."""
        self._put(pending)
        if self.reference is not None and pending.job.job_id in self.startable:
            self.reference.entered(pending, now)
        if pending.job.conditions is not None:
            self._settle_array(pending.job, now)

    def _settle_array(self, job: Job, now: float) -> None:
        """Let the next of a job's array through, or none beyond those that there is room for."""
        members = None if job.conditions is None else self._eligibility.members(job)
        if members is None:
            return
        last, beyond = members.edges()
        if beyond is not None and beyond not in self.held_back:
            is_startable = beyond in self.startable
            if is_startable and self.reference is not None:
                self.reference.left(beyond, now)
            roster = self.startable_roster if is_startable else self.too_wide_roster
            self.held_roster.put(beyond, roster.take(beyond))
        if last is not None and last in self.held_back:
            self._queue(self.held_roster.take(last), now)

    def _put(self, pending: PendingJob) -> None:
        job_id = pending.job.job_id
        conditions = pending.job.conditions
        if job_id in self.held or not (
            conditions is None or self._eligibility.lets_through(pending.job, pending.arrival)
        ):
            self.held_roster.put(job_id, pending)
        elif self._could_hold(pending):
            self.startable_roster.put(job_id, pending)
            if conditions is None or not conditions.keep_out_of_line:
                heapq.heappush(self._line, (pending.arrival, job_id))
        else:
            self.too_wide_roster.put(job_id, pending)

    def _first_arrival_in_line(self) -> float:
        """Of the jobs that wait, and are not too wide or kept back by their own wish."""
        line = self._line
        while line:
            arrival, job_id = line[0]
            if job_id in self.startable or (job_id in self.waiting_for and job_id not in self.held):
                return arrival
            heapq.heappop(line)
        return math.inf

    def _release(self, unit: Unit) -> None:
        running = self.running_roster.take(unit)
        self.free.give_back(running.held, running.placement)
        self.stopping.discard(unit)
        del self.estimates[unit]

    def _leave(self, job_id: str) -> None:
        for roster in self.pending_rosters:
            if job_id in roster.by_id:
                roster.take(job_id)
        pending = self._living[job_id]
        self._eligibility.leaves(pending.job, pending.arrival)

    def _finish(self, job_id: str, because: EndedBecause, now: float) -> list[Withdrawn]:
        pending = self._living.pop(job_id)
        job = pending.job
        if self.reference is not None:
            self.reference.left(job_id, now)
        self._in_parts.pop(job_id, None)
        self._went_back.pop(job_id, None)
        self.held.pop(job_id, None)
        self.cancelled.discard(job_id)
        self.ended[job_id] = EndedJob(now, because)
        withdrawn: list[Withdrawn] = []
        for dependent in self._dependents.pop(job_id, ()):
            if dependent in self.waiting_for:
                withdrawn += self._settle_dependent(dependent, now)
        if job.conditions is not None:
            self._eligibility.remove(job, pending.arrival)
            self.next_begin_seconds = self._eligibility.next_seconds
            self._settle_array(job, now)
        if self._namesakes is not None and job.name is not None:
            withdrawn += self._leave_namesakes(self._namesakes, job, job.name, now)
        return withdrawn

    def _leave_namesakes(
        self, every: _Namesakes, job: Job, name: str, now: float
    ) -> list[Withdrawn]:
        """Let the next singleton of a user and name start once all before it have ended."""
        namesakes = every[job.user, name]
        del namesakes[job.job_id]
        if not namesakes:
            del every[job.user, name]
            return []
        first = next(iter(namesakes))
        return self._settle_dependent(first, now) if first in self.waiting_for else []

    def _settle_dependent(self, job_id: str, now: float) -> list[Withdrawn]:
        """Let a waiting job through, withdraw it, or leave it, as its predecessors have ended."""
        pending = self.waiting_for[job_id]
        unmet = self.unmet(pending.job)
        if unmet is None:
            self.waiting_for_roster.take(job_id)
            self._queue(pending, now)
            return []
        if (never := self._never_met(pending.job)) is not None:
            self._leave(job_id)
            withdrawn = Withdrawn(pending.job, never, self.ended[never].ended_because)
            return [withdrawn, *self._finish(job_id, EndedBecause.CANCELLED, now)]
        return []

    def _impossible(self, job_id: str, transition: str, now: float) -> ImpossibleTransition:
        target = TRANSITIONS[transition][1]
        return ImpossibleTransition(job_id, now, self.of(job_id), target, self._story(job_id))

    def _story(self, job_id: str) -> str:
        if job_id in self.running:
            running = self.running[job_id]
            return (
                f"was submitted at {running.job.submit_seconds:g} s and has run since "
                f"{running.start_seconds:g} s"
            )
        if self.of(job_id) is JobState.RUNNING:
            submitted = self._living[job_id].job.submit_seconds
            return f"was submitted at {submitted:g} s and runs in part"
        if job_id in self._living:
            return f"was submitted at {self._living[job_id].job.submit_seconds:g} s and waits"
        if job_id in self.ended:
            end = self.ended[job_id]
            return f"ended ({end.ended_because}) at {end.end_seconds:g} s"
        return "was never submitted"


def _add_namesake(namesakes: _Namesakes, job: Job) -> None:
    if job.name is not None:
        namesakes.setdefault((job.user, job.name), {})[job.job_id] = None


def _dependencies(job: Job) -> Iterator[Dependency]:
    """What a job waits to become of others; not what singletons do."""
    others = () if job.conditions is None else job.conditions.dependencies
    yield from others
    otherwise = {job_id for each in others for job_id in each.job_ids}
    completed = tuple(each for each in job.after if each not in otherwise)
    yield Dependency(DependencyKind.AFTER_OK, completed)


def _twin(roster: Roster[_Key, _Entry], number: Callable[[_Entry], int]) -> Roster[_Key, _Entry]:
    """Another roster with the same entries."""
    twin: Roster[_Key, _Entry] = Roster(number)
    for key, entry in roster.by_id.items():
        twin.put(key, entry)
    return twin


_by_arrival: Final[Callable[[PendingJob], int]] = attrgetter("arrival")
_by_start: Final[Callable[[RunningJob], int]] = attrgetter("start_order")
