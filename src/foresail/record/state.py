"""State: which jobs wait, run and have ended, and the transitions between the three.

What lives is a job, or the parts of one whose stages and tasks start apart.
"""

from __future__ import annotations

import copy
import heapq
import math
from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Final, TypeAlias

from foresail.model import event as events
from foresail.model.changing_nodes import changed, without
from foresail.model.cluster import Cluster, Resources
from foresail.model.containers import Roster, replaced
from foresail.model.decision import Instruction, Placement, Preempt, TickAt, WakeAt
from foresail.model.distribution import Distribution
from foresail.model.free_resources import FreeResources, Slowdowns
from foresail.model.job import DependencyKind, Job
from foresail.model.protocols import ReferenceSchedule
from foresail.model.view import Due, PendingJob, RunningJob
from foresail.model.words import by_whom
from foresail.record import job_life

_PENDING: Final = ("startable_roster", "waiting_for_roster", "too_wide_roster", "held_roster")
_COPIED: Final = (
    *("held", "cancelled", "down", "drained", "stopping", "estimates", "wakes", "ticks", "ended"),
    "occupied",
    *("not_started", "_living", "_requeued", "_line"),
)
"""Fields that a copy has of its own and that hold nothing that changes."""
_OTHERS: Final = (
    *("cluster", "starts_tasks", "reference", "history", "free", "unavailable", "clock"),
    *("startable", "waiting_for", "too_wide", "held_back", "running", "running_roster"),
    *("next_begin_seconds", "submissions", "_in_use", "_slowdowns", "_in_parts", "_starts"),
    *("_dependencies", "_eligibility"),
)


Visible: TypeAlias = tuple[FreeResources, Sequence[RunningJob]]
"""Room that counts as free, and the running jobs that hold the rest."""


class State:
    """Everything that is true now: one life of each job, which events and instructions lead on.

    Controllers, recovery and whatever else reads a log change it by ``apply`` and by the methods
    named after transitions, from which there is more to learn.

    To be read, not written, by others: ``startable`` (pending jobs that may start, by id),
    ``waiting_for`` (pending jobs held back by dependencies), ``too_wide`` (pending jobs that the
    empty cluster has no room for), ``held_back`` (pending jobs that could start or are too wide,
    and are held, are to begin later, or have enough others of their array before them), ``running``
    (by start), each with the ``Roster`` that knows its order and its changes; ``held`` (all that
    are held, and by whom), ``not_started`` (those whose start was not carried out, and that may not
    start again yet), ``cancelled`` (those that run and are to end, and by whom), ``stopping`` (what
    runs and is being stopped), ``estimates`` (of the runtime of what runs), ``wakes`` (when they
    expire), ``ticks`` (when jobs' reservations begin), ``clock`` (the last reading of the machine's
    clocks), ``ended``, ``free``, ``down`` and ``drained`` (nodes on which nothing starts, by name),
    ``occupied`` (what is held of nodes by what is no job), ``submissions`` (the next job's arrival
    number), ``reference`` (the schedule that follows each passage of a job, before its first one),
    ``history`` (what became of the jobs; None: nothing is known), ``next_begin_seconds`` (when the
    next job may begin that may not yet; infinite for never).

    What runs is known by its ``Unit``: a whole job by its id. A job that ``starts_tasks`` lets
    start in parts can run and wait at once, and waits as what of it may start now.
    """

    __slots__ = (*_PENDING, *_COPIED, *_OTHERS)

    def __init__(
        self,
        cluster: Cluster,
        *,
        starts_tasks: bool = False,
        reference: ReferenceSchedule | None = None,
        history: job_life.JobHistory | None = None,
    ) -> None:
        self.cluster = cluster
        self.starts_tasks = starts_tasks
        self.reference = reference
        self.history = history
        self.free = FreeResources(cluster)
        self._in_use: FreeResources | None = None
        self._slowdowns = Slowdowns(cluster)
        self.startable_roster: Roster[str, PendingJob] = Roster(_by_arrival, _by_likeness)
        self.waiting_for_roster: Roster[str, PendingJob] = Roster(_by_arrival)
        self.too_wide_roster: Roster[str, PendingJob] = Roster(_by_arrival)
        self.held_roster: Roster[str, PendingJob] = Roster(_by_arrival)
        self.running_roster: Roster[events.Unit, RunningJob] = Roster(_by_start)
        self._show_rosters()
        self.held: dict[str, str] = {}
        self.not_started: dict[str, events.NotStarted] = {}
        self.cancelled: dict[str, str] = {}
        self.unavailable = ""
        """Reason for which the cluster cannot be reached; empty where it can be."""
        self.down: set[str] = set()
        self.occupied: dict[str, Resources] = {}
        self.drained: dict[str, events.NodeDrained] = {}
        self.stopping: set[events.Unit] = set()
        self.estimates: dict[events.Unit, float] = {}
        self.wakes: dict[events.Unit, float] = {}
        self.ticks: dict[str, float] = {}
        self.clock: events.ClockRead | None = None
        self.ended: dict[str, job_life.EndedJob] = {}
        self._living: dict[str, PendingJob] = {}
        self._in_parts: dict[str, job_life.PartsOfJob] = {}
        self._dependencies = job_life.Dependencies(self.ended)
        self._eligibility = job_life.Eligibility()
        self.next_begin_seconds = math.inf
        self.submissions = 0
        self._starts = 0
        self._requeued: dict[str, int] = {}  # of whole jobs; each part's job knows its own
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
        if self.history is not None:
            self.history.forget(job_ids)
        self._line_up()

    def copy(self) -> State:
        """Another state, in which all is now as it is here, with no reference and no history."""
        twin = copy.copy(self)
        twin.reference = twin.history = None
        twin.free = self.free.copy()
        for name in (*_PENDING, "running_roster"):
            setattr(twin, name, getattr(self, name).copy())
        twin._show_rosters()
        for name in _COPIED:
            setattr(twin, name, copy.copy(getattr(self, name)))
        twin._in_parts = {job_id: parts.copy() for job_id, parts in self._in_parts.items()}
        twin._dependencies = self._dependencies.copy(twin.ended)
        twin._eligibility = self._eligibility.copy()
        return twin

    def _show_rosters(self) -> None:
        self.startable = self.startable_roster.by_id
        self.waiting_for = self.waiting_for_roster.by_id
        self.too_wide = self.too_wide_roster.by_id
        self.held_back = self.held_roster.by_id
        self.running = self.running_roster.by_id

    def stage_of(self, job_id: str) -> job_life.JobState:
        """Return where the job is in its life."""
        if job_id in self.running:
            return job_life.JobState.RUNNING
        if job_id in self._living:
            runs = job_id in self._in_parts and self._in_parts[job_id].running
            return job_life.JobState.RUNNING if runs else job_life.JobState.PENDING
        return job_life.JobState.ENDED if job_id in self.ended else job_life.JobState.ABSENT

    def submitted_job(self, job_id: str) -> PendingJob:
        """A pending or running job as it was submitted, with its prediction.

        Raises ``KeyError`` if the job is neither.
        """
        return self._living[job_id]

    def attempts(self, job_id: str) -> int:
        """Return how many attempts of a whole job that waits have begun."""
        return self._requeued.get(job_id, 0)

    def parts_of(self, job_id: str) -> job_life.PartsOfJob | None:
        """Return the parts of a living job that starts in parts; None if it does not."""
        return self._in_parts.get(job_id)

    @property
    def usable_cluster(self) -> Cluster:
        """The cluster without the nodes that are down or drained."""
        return without(self.cluster, self.down | self.drained.keys())

    def could_hold_now(self, job: Job) -> bool:
        """Return whether the nodes in use would have room for a job if they were empty."""
        if self._in_use is None:
            self._in_use = FreeResources(self.usable_cluster)
        return self._in_use.could_hold(job)

    @property
    def has_parts(self) -> bool:
        """Return whether a job that waits or runs starts in parts."""
        return bool(self._in_parts)

    def pending_job(self, job_id: str) -> PendingJob | None:
        """A job that waits, whatever for; None if it does not."""
        return (
            self.startable.get(job_id)
            or self.waiting_for.get(job_id)
            or self.too_wide.get(job_id)
            or self.held_back.get(job_id)
        )

    def visible(self, now: float | None) -> Visible:
        """Return what counts as free, and the running jobs that hold the rest.

        What should have ended by ``now`` (seconds) holds nothing; with None all that runs does.
        """
        free = self.free
        running: Sequence[RunningJob] = self.running_roster.listed()
        if self.down or self.drained:
            running = tuple(job for job in running if not free.frees_nothing(job.placement))
        if now is None:
            return free, running
        late = [job for job in self.running.values() if job.expected_end_seconds <= now]
        gone = [job for job in late if not free.frees_nothing(job.placement)]
        if not gone:
            return free, running
        free = free.copy()
        for job in gone:
            free.give_back(job.held, job.placement)
        return free, tuple(job for job in running if job.expected_end_seconds > now)

    def pending(self) -> list[PendingJob]:
        """All pending jobs, whatever they wait for, by arrival."""
        jobs = [pending for roster in self.pending_rosters for pending in roster.by_id.values()]
        return sorted(jobs, key=_by_arrival)

    @property
    def pending_rosters(self) -> tuple[Roster[str, PendingJob], ...]:
        """Return the rosters of pending jobs, each job in one of them."""
        return (
            self.startable_roster,
            self.waiting_for_roster,
            self.too_wide_roster,
            self.held_roster,
        )

    def unmet(self, job: Job) -> tuple[str, DependencyKind] | None:
        """The first job that it waits for, and what is to become of that; None if it has."""
        runs, ran = job_life.JobState.RUNNING, self._requeued
        return self._dependencies.unmet(
            job, lambda each: self.stage_of(each) is runs or each in ran
        )

    def why_held_back(self, job_id: str) -> tuple[float | None, int]:
        """Return when a job kept back without a hold may begin; else how many run at once."""
        begin = self._eligibility.begin_of(job_id)
        if begin is not None:
            return begin, 0
        conditions = self.held_back[job_id].job.conditions
        assert conditions is not None
        return None, conditions.most_at_once or 0

    def begin_step(self, now: float) -> bool:
        """Let time pass until a step; returns whether a job may start by that."""
        if self.ticks:
            self.ticks = {job_id: time for job_id, time in self.ticks.items() if time > now}
        return self.next_begin_seconds <= now and self.let_begin(now)

    def let_begin(self, now: float) -> bool:
        """Let jobs take part whose begin has come; whether one may start by that."""
        if self.next_begin_seconds > now:
            return False
        before = len(self.startable)
        for job_id, begin in self._eligibility.begun(now):
            pending = self.held_back.get(job_id)
            was_put_off = self.not_started.pop(job_id, None) is not None
            if pending is not None:
                self.held_roster.take(job_id)
                if was_put_off:  # it may be known by now when it is due
                    due = self._living[job_id].due
                    self._wait_again(replaced(pending, due=due), begin)
                else:
                    self._queue(pending, begin)
        self.next_begin_seconds = self._eligibility.next_seconds
        return len(self.startable) > before

    def submit(self, pending: PendingJob, now: float) -> list[job_life.Withdrawn]:
        """Absent to pending; returns the job itself if what it waits for cannot happen any more."""
        job = pending.job
        if job.job_id in self._living or job.job_id in self.ended:
            raise self._impossible(job.job_id, "submit", now)
        if self.starts_tasks and job.starts_in_parts:
            parts = self._in_parts[job.job_id] = job_life.PartsOfJob(job)
            pending = replaced(pending, startable=parts.startable)
        self.submissions += 1
        self._living[job.job_id] = pending
        if self.history is not None:
            self.history.submitted[job.job_id] = job
        self._dependencies.add(job, self._living)
        if job.conditions is not None:
            self._eligibility.add(job, job.conditions, now)
            self.next_begin_seconds = self._eligibility.next_seconds
        if (job.after or job.conditions is not None) and self.unmet(job) is not None:
            self.waiting_for_roster.put(job.job_id, pending)
            if self._stands_in_line(pending):
                heapq.heappush(self._line, (pending.arrival, job.job_id))
            return self._settle_dependent(job.job_id, now)
        self._queue(pending, now)
        return []

    def belief(self, job_id: str) -> Distribution:
        """Return the belief about a pending or running job; ``KeyError`` if it is neither."""
        if job_id in self._in_parts:
            return self._in_parts[job_id].belief or self._living[job_id].prediction
        return (self.pending_job(job_id) or self.running[job_id]).prediction

    def falls_due(self, job_id: str, due: Due) -> None:
        """Note when a job is due."""
        before = self._living[job_id]
        living = self._living[job_id] = replaced(before, due=due)
        if (pending := self.startable.get(job_id)) is not None:  # as a rule the same: one is kept
            due_then = living if pending is before else replaced(pending, due=due)
            self.startable_roster.put(job_id, due_then)

    def believe_all(self, jobs: Sequence[Job], beliefs: Sequence[Distribution]) -> None:
        """Give jobs that may start other predictions; those at submission are kept beside them."""
        for job_id, belief in zip([each.job_id for each in jobs], beliefs, strict=True):
            self.startable_roster.put(job_id, replaced(self.startable[job_id], prediction=belief))
            self._believe_of_parts(job_id, belief)

    def believe_of_kinds(
        self, kinds: Sequence[tuple[Hashable, ...]], beliefs: Sequence[Distribution]
    ) -> None:
        """Give all jobs that may start, of each ``Job.likeness``, the same prediction."""
        for kind, belief in zip(kinds, beliefs, strict=True):
            self.startable_roster.alter(kind, {"prediction": belief})
            for job_id in self.startable_roster.of_kind(kind) if self._in_parts else ():
                self._believe_of_parts(job_id, belief)

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
        """Set the belief about a job for its parts that run, and those that will."""
        if job_id in self._in_parts:
            parts = self._in_parts[job_id]
            parts.belief = prediction
            for part in parts.running:
                believed = replaced(self.running[part], prediction=prediction)
                self.running_roster.put(part, believed)

    def changed(self, job: Job, now: float) -> Job | None:
        """The job that a living one becomes when it is changed into this; None if it has ended.

        Raises ``ImpossibleTransition`` if there is no such job.
        """
        job_id = job.job_id
        if job_id not in self._living:
            if job_id in self.ended:
                return None
            there, story = job_life.JobState.PENDING, self._story(job_id)
            raise job_life.ImpossibleTransition(job_id, now, job_life.JobState.ABSENT, there, story)
        before = self._living[job_id].job
        same: tuple[str, ...] = ("submit_seconds", "user", "after", "conditions")
        if job_id in self.running or job_id in self._in_parts:
            same += ("stages", "partition")
        return replaced(job, **{name: getattr(before, name) for name in same})

    def change(self, changed: PendingJob, now: float) -> list[events.Unit]:
        """Let a job that waits or runs be what it is to be (``changed``), with what it is believed.

        Returns what runs of it, with a first estimate again.
        """
        job, job_id = changed.job, changed.job.job_id
        before = self._living[job_id]
        pending, was_startable = self.pending_job(job_id), job_id in self.startable
        living = self._living[job_id] = replaced(
            before,
            job=job,
            prediction=changed.prediction,
            planned_seconds=changed.planned_seconds,
            due=before.due if pending is None else None,  # it comes anew in the reference
        )
        if self.history is not None:
            self.history.submitted[job_id] = job
        if pending is not None:
            shown = replaced(living, startable=pending.startable)
            if job_id in self.waiting_for:
                self.waiting_for_roster.put(job_id, shown)
            else:
                self._leave(job_id)
                self._put(shown)
        parts = self._in_parts.get(job_id)
        units: list[events.Unit] = [job_id] if parts is None else [*parts.running]
        units = [unit for unit in units if unit in self.running]
        for unit in units:
            running = replaced(self.running[unit], job=job, prediction=changed.prediction)
            self.running_roster.put(unit, running)
            self.correct(unit, running.slowdown * changed.planned_seconds, 0)
        if parts is not None:
            parts.belief = changed.prediction
        if self.reference is not None and (was_startable or job_id in self.startable):
            self.reference.left(job_id, now)
            if job_id in self.startable:
                self.reference.entered(self.startable[job_id], now)
        for each in (job_id, self._dependencies.rename(before.job, job)):
            if each is not None and each in self.waiting_for:
                self._settle_dependent(each, now)
        return units

    def start(self, unit: events.Unit, placement: Placement, now: float) -> RunningJob:
        """Pending to running, with the planned estimate of the runtime there."""
        job_id = events.job_of(unit)
        if unit in self.running or job_id not in self._living:
            raise self._impossible(job_id, "start", now)
        pending = self.startable[job_id]
        if isinstance(unit, str):
            self.startable_roster.take(job_id)
            attempt = 1 + self._requeued.get(job_id, 0)
        else:
            attempt = 1 + self._in_parts[job_id].requeued.get(unit, 0)
        return self._run(pending, unit, placement, attempt, now, now)

    def begin(self, event: events.Began, now: float) -> RunningJob:
        """Pending to running as the cluster says, whatever the job waits for; or it is as it says.

        Raises ``ImpossibleTransition`` if the job neither waits, nor runs in this attempt, or runs
        as a whole though it starts in parts.
        """
        unit, job_id = events.unit_of(event), event.job_id
        running = self.running.get(unit)
        if running is not None and running.attempt == event.attempt:
            return self._confirm(running, event)
        pending, in_parts = self.pending_job(job_id), job_id in self._in_parts
        if running is not None or pending is None or in_parts is isinstance(unit, str):
            raise self._impossible(job_id, "start", now)
        if isinstance(unit, events.Part):
            self._in_parts[job_id].requeued[unit] = event.attempt - 1
        else:
            self._requeued[job_id] = event.attempt - 1
            if self.reference is not None and job_id not in self.startable:
                self.reference.entered(pending, now)
            self.held.pop(job_id, None)
            self.not_started.pop(job_id, None)
            self._leave(job_id)
            self._eligibility.let_go(job_id)
            self.next_begin_seconds = self._eligibility.next_seconds
        start, attempt = event.start_seconds, event.attempt
        begun = self._run(pending, unit, event.placement, attempt, start, now, ours=event.ours)
        self._settle_array(pending.job, now)
        return begun

    def _confirm(self, running: RunningJob, event: events.Began) -> RunningJob:
        """Let what runs have begun when and where the cluster says."""
        unit = running.unit
        if running.placement != event.placement:
            self.free.give_back(running.held, running.placement)
            self.free.take(running.held, event.placement)
        slowdown = self._slowdowns.factor(running.job, event.placement)
        estimate = self.estimates[unit] = self.estimates[unit] * slowdown / running.slowdown
        confirmed = replaced(
            running,
            start_seconds=event.start_seconds,
            placement=event.placement,
            expected_end_seconds=event.start_seconds + estimate,
            slowdown=slowdown,
        )
        self.running_roster.put(unit, confirmed)
        return confirmed

    def _run(
        self,
        pending: PendingJob,
        unit: events.Unit,
        placement: Placement,
        attempt: int,
        start_seconds: float,
        now: float,
        *,
        ours: bool = True,
    ) -> RunningJob:
        """Let run what waits in no roster any more, or a part that waits."""
        backfilled = self._first_arrival_in_line() < pending.arrival
        if isinstance(unit, events.Part):
            job_id, stage, tasks = unit
            held = pending.job.held(stage, tasks)
            parts = self._in_parts[job_id]
            parts.start(unit, now, self._starts)
            self._show(parts)
        else:
            job_id, stage, tasks, held = unit, "", (), pending.job
        slowdown = self._slowdowns.factor(pending.job, placement)
        estimate = slowdown * pending.planned_seconds
        went_first = self.reference is not None and self.reference.started(job_id, now)
        running = RunningJob(
            pending.job,
            start_seconds,
            self._starts,
            placement,
            pending.prediction,
            start_seconds + estimate,
            0,  # corrections
            slowdown,
            pending.reservation,
            attempt,
            backfilled,
            stage,
            tasks,
            ours,
            went_first,
        )
        self.free.take(held, placement)
        if pending.job.conditions is not None:
            self._eligibility.starts(pending.job, pending.arrival)
        self._starts += 1
        self.running_roster.put(unit, running)
        self.estimates[unit] = estimate
        if self._dependencies.dependents:
            self._settle_all(self._dependencies.dependents.get(job_id, ()), now)
        return running

    def begins_its_job(self, running: RunningJob) -> bool:
        """Return whether it is all of its job, or the part that started first."""
        if not running.stage:
            return True
        return self._in_parts[running.job.job_id].first_start == running.start_order

    def correct(
        self, unit: events.Unit, estimate_seconds: float, count: int | None = None
    ) -> RunningJob:
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

    def stop(self, unit: events.Unit) -> None:
        """Note that what runs is being stopped; it holds its resources until it has."""
        self.stopping.add(unit)

    def end(self, outcome: events.Outcome, now: float) -> job_life.AttemptEnd:
        """Running to ended, or back to its place in the queue, where the attempt goes back.

        Of a part, what waited for it may start. Its job has ended with its last part, or with the
        last that runs once one has failed.
        """
        unit, because = events.unit_of(outcome), outcome.ended_because
        running = self.running.get(unit)
        if running is None:
            is_requeued = isinstance(unit, str) and because in events.REQUEUED
            raise self._impossible(outcome.job_id, "requeue" if is_requeued else "end", now)
        living = self._living[outcome.job_id]
        self._release(unit)
        if self.history is not None:
            self.history.past.append(
                job_life.EndedAttempt(running, outcome, living.planned_seconds)
            )
        if outcome.slowdown != running.slowdown:
            outcome = replaced(outcome, slowdown=running.slowdown)
        if isinstance(unit, events.Part):
            return self._end_part(unit, running, outcome, now)
        if because in events.REQUEUED:
            self._requeue(living, now)
            return job_life.AttemptEnd(running, outcome)
        if self.history is not None:
            self.history.ended[unit] = self.history.past[-1].outcome
        return job_life.AttemptEnd(running, outcome, self._finish(unit, because, now))

    def _requeue(self, living: PendingJob, now: float) -> None:
        job_id = living.job.job_id
        self._requeued[job_id] = 1 + self._requeued.get(job_id, 0)
        self._eligibility.stops(living.job)
        self._wait_again(living, now)
        if self.reference is not None:
            self.reference.requeued(job_id, now)

    def _wait_again(self, living: PendingJob, now: float) -> None:
        self._put(living)
        self._settle_array(living.job, now)

    def _end_part(
        self, part: events.Part, running: RunningJob, outcome: events.Outcome, now: float
    ) -> job_life.AttemptEnd:
        parts = self._in_parts[part.job_id]
        parts.end(part, outcome.ended_because)
        self._show(parts)
        because = parts.ended_because
        if because is None:
            return job_life.AttemptEnd(running, outcome, (), parts)
        whole = parts.outcome(outcome)
        if self.history is not None:
            self.history.ended[part.job_id] = whole
        withdrawn = self._finish(part.job_id, because, now)
        return job_life.AttemptEnd(running, outcome, withdrawn, parts, whole)

    def unstart(self, event: events.NotStarted, now: float) -> list[job_life.Withdrawn]:
        """Running back to pending: a start was not carried out, and so nothing has happened.

        The job keeps its place and may not start before its time; one that was cancelled meanwhile
        has ended. Returns the jobs that will never run because of that.
        """
        unit, job_id = events.unit_of(event), event.job_id
        running = self.running.get(unit)
        if running is None or running.attempt != event.attempt:
            raise self._impossible(job_id, "unstart", now)
        living, because = self._living[job_id], events.EndedBecause.CANCELLED
        self._release(unit)
        if isinstance(unit, events.Part):
            parts = self._in_parts[job_id]
            parts.unstart(unit, running.start_order)
            if parts.ended_because is None:
                self._leave(job_id)
                self._put_off(event, now)
                self._show(parts)
                return []
            because = parts.ended_because
        elif job_id not in self.cancelled:
            self._put_off(event, now)
            self._requeue(living, now)
            return []
        if job_id in self.cancelled:
            by = by_whom(self.cancelled[job_id], living.job.user)
            self.note_withdrawn(job_id, f"cancelled {by}")
        elif self.history is not None:
            last = events.Outcome(job_id, now, now, because, attempt=event.attempt)
            self.history.ended[job_id] = last
        self._leave(job_id)
        return self._finish(job_id, because, now)

    def nothing_begun(self, job_id: str) -> bool:
        """Return whether nothing of a living job that waits has begun."""
        parts = self._in_parts.get(job_id)
        return parts is None or parts.begun_seconds is None

    def _put_off(self, event: events.NotStarted, now: float) -> None:
        self.not_started[event.job_id] = event
        self._eligibility.put_off(event.job_id, now + event.again_after_seconds)
        self.next_begin_seconds = self._eligibility.next_seconds

    def cancel(self, job_id: str, now: float, by: str = "") -> list[job_life.Withdrawn]:
        """Pending to ended, by a user; returns the jobs that will never run because of it.

        A job that runs is among ``cancelled`` until it has ended, and starts no more; one that has
        ended stays as it is.
        """
        match self.stage_of(job_id):
            case job_life.JobState.ABSENT:
                raise self._impossible(job_id, "cancel", now)
            case job_life.JobState.PENDING:
                user = self._living[job_id].job.user
                self.note_withdrawn(job_id, f"cancelled {by_whom(by, user)}")
                self._leave(job_id)
                return self._finish(job_id, events.EndedBecause.CANCELLED, now)
            case job_life.JobState.RUNNING:
                self.cancelled[job_id] = by
                self._leave(job_id)
                if job_id in self._in_parts:
                    self._in_parts[job_id].cancel()
        return []

    def note_withdrawn(self, job_id: str, because: str) -> None:
        """Remember why a job will never run."""
        if self.history is not None:
            self.history.withdrawn[job_id] = because

    def apply(self, news: events.Event | Instruction, now: float) -> None:
        """Let an event or an instruction change what is true that nothing else follows from.

        Raises ``InputError`` if it is of a node that there is not, or (of one that is added) that
        there is.
        """
        match news:
            case WakeAt(time=time) if events.unit_of(news) in self.running:
                self.wakes[events.unit_of(news)] = time
            case TickAt(job_id, time) if job_id in self._living:
                self.ticks[job_id] = time
            case Preempt() if events.unit_of(news) in self.running:
                self.stop(events.unit_of(news))
            case events.EstimateExpired():
                self.wakes.pop(events.unit_of(news), None)
            case events.Held(job_id=job_id, by=by):
                self.hold(job_id, now, by)
            case events.Released(job_id=job_id):
                self.release(job_id, now)
            case events.ClockRead():
                self.clock = news
            case events.ClusterUnavailable(because=because):
                self.unavailable = because or "unknown"
            case events.ClusterAvailable():
                self.unavailable = ""
            case events.Occupied(node=node, resources=resources):
                self._occupy(node, resources)
            case _ if isinstance(news, events.NodeEvent):
                self.change_nodes(news)
            case _ if isinstance(news, events.OperatorEvent):
                self.operate(news)

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

    def change_nodes(self, event: events.NodeEvent) -> None:
        """Nodes are down or up, or there are others; jobs then may be too wide, or no longer.

        Raises ``InputError`` if there is no such node, or (of one that is added) there is one.
        """
        self._in_use = None
        match event:
            case events.NodeDown(node=node):
                self.free.close(node)
                self.down.add(node)
            case events.NodeUp(node=node):
                self.down.discard(node)
                self._open_if_used(node)
            case _:
                if isinstance(event, events.NodeRemoved):
                    self.down.discard(event.node)
                    self.drained.pop(event.node, None)
                    self._occupy(event.node, Resources())
                self.cluster = changed(self.cluster, event)
                self.free.change(self.cluster)
                self._slowdowns = Slowdowns(self.cluster)
                self._sort_by_width()

    def _occupy(self, node: str, resources: Resources) -> None:
        before = self.occupied.pop(node, Resources())
        if resources != before:
            self.free.occupy(node, resources - before)
        if resources != Resources():
            self.occupied[node] = resources

    def operate(self, event: events.OperatorEvent) -> None:
        """A node, or a partition without nodes, is drained or used again, if there is such."""
        node = event.node
        places = (each for some in self.cluster.partitions for each in some.nodes or (some,))
        if not any(node == each.name for each in places):
            return
        self._in_use = None
        match event:
            case events.NodeDrained():
                if node not in self.drained or event.until_seconds is not None:
                    self.drained[node] = event
                self.free.close(node)
            case events.NodeResumed():
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
        """Return whether a later job that starts first delays it."""
        conditions = pending.job.conditions
        return self._could_hold(pending) and not (conditions and conditions.keep_out_of_line)

    def _could_hold(self, pending: PendingJob) -> bool:
        """Return whether the empty cluster has room for what of the job needs to start at once."""
        if pending.job.job_id in self._in_parts:
            parts = self._in_parts[pending.job.job_id]
            return all(self.free.could_hold(each) for each in parts.smallest())
        return self.free.could_hold(pending.job)

    def _show(self, parts: job_life.PartsOfJob) -> None:
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
        if (
            job_id in self.held
            or job_id in self.not_started
            or not (
                conditions is None or self._eligibility.lets_through(pending.job, pending.arrival)
            )
        ):
            self.held_roster.put(job_id, pending)
        elif self._could_hold(pending):
            self.startable_roster.put(job_id, pending)
            if conditions is None or not conditions.keep_out_of_line:
                heapq.heappush(self._line, (pending.arrival, job_id))
        else:
            self.too_wide_roster.put(job_id, pending)

    def _first_arrival_in_line(self) -> float:
        """Return the first arrival among jobs neither too wide nor kept back by their own wish."""
        line = self._line
        while line:
            arrival, job_id = line[0]
            if job_id in self.startable or (job_id in self.waiting_for and job_id not in self.held):
                return arrival
            heapq.heappop(line)
        return math.inf

    def _release(self, unit: events.Unit) -> None:
        running = self.running_roster.take(unit)
        self.free.give_back(running.held, running.placement)
        self.stopping.discard(unit)
        self.wakes.pop(unit, None)
        del self.estimates[unit]

    def _leave(self, job_id: str) -> None:
        for roster in self.pending_rosters:
            if job_id in roster.by_id:
                roster.take(job_id)
        pending = self._living[job_id]
        self._eligibility.leaves(pending.job, pending.arrival)

    def _finish(
        self, job_id: str, because: events.EndedBecause, now: float
    ) -> list[job_life.Withdrawn]:
        pending = self._living.pop(job_id)
        job = pending.job
        if self.reference is not None:
            self.reference.left(job_id, now)
        for known in (self._in_parts, self._requeued, self.held, self.ticks, self.cancelled):
            if known:
                known.pop(job_id, None)
        self.ended[job_id] = job_life.EndedJob(now, because)
        dependents = self._dependencies.dependents.pop(job_id, None)
        withdrawn = self._settle_all(dependents, now) if dependents else []
        was_put_off = self.not_started.pop(job_id, None) is not None
        if job.conditions is not None or was_put_off:
            self._eligibility.remove(job, pending.arrival)
            self.next_begin_seconds = self._eligibility.next_seconds
            self._settle_array(job, now)
        namesake = self._dependencies.leave_namesakes(job)
        if namesake is not None and namesake in self.waiting_for:
            withdrawn += self._settle_dependent(namesake, now)
        return withdrawn

    def _settle_all(self, groups: Sequence[list[str]], now: float) -> list[job_life.Withdrawn]:
        """Settle jobs; if one goes on waiting, so do those that wait for the same."""
        withdrawn: list[job_life.Withdrawn] = []
        for alike in groups:
            for job_id in filter(self.waiting_for.__contains__, alike):
                withdrawn += self._settle_dependent(job_id, now)
                left = self.waiting_for.get(job_id)
                unmet = None if left is None else self.unmet(left.job)
                if unmet is not None and unmet[1] is not DependencyKind.SINGLETON:
                    break
        return withdrawn

    def _settle_dependent(self, job_id: str, now: float) -> list[job_life.Withdrawn]:
        """Let a waiting job through, withdraw it, or leave it, as its predecessors have ended."""
        pending = self.waiting_for[job_id]
        unmet = self.unmet(pending.job)
        if unmet is None:
            self.waiting_for_roster.take(job_id)
            self._queue(pending, now)
            return []
        if (never := self._dependencies.never_met(pending.job)) is not None:
            self._leave(job_id)
            withdrawn = job_life.Withdrawn(pending.job, never, self.ended[never].ended_because)
            return [withdrawn, *self._finish(job_id, events.EndedBecause.CANCELLED, now)]
        return []

    def _impossible(
        self, job_id: str, transition: str, now: float
    ) -> job_life.ImpossibleTransition:
        target = job_life.TRANSITIONS[transition][1]
        return job_life.ImpossibleTransition(
            job_id, now, self.stage_of(job_id), target, self._story(job_id)
        )

    def _story(self, job_id: str) -> str:
        if job_id in self.running:
            running = self.running[job_id]
            return (
                f"was submitted at {running.job.submit_seconds:g} s and has run since "
                f"{running.start_seconds:g} s"
            )
        if self.stage_of(job_id) is job_life.JobState.RUNNING:
            submitted = self._living[job_id].job.submit_seconds
            return f"was submitted at {submitted:g} s and runs in part"
        if job_id in self._living:
            return f"was submitted at {self._living[job_id].job.submit_seconds:g} s and waits"
        if job_id in self.ended:
            end = self.ended[job_id]
            return f"ended ({end.ended_because}) at {end.end_seconds:g} s"
        return "was never submitted"


_by_arrival: Final[Callable[[PendingJob], int]] = attrgetter("arrival")
_by_likeness: Final[Callable[[PendingJob], tuple[Hashable, ...]]] = attrgetter("job.likeness")


_by_start: Final[Callable[[RunningJob], int]] = attrgetter("start_order")
