"""What was true and believed at one moment of a run, rebuilt from its event log alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from foresail.control.beliefs import belief_of
from foresail.control.log_clock import LogClock
from foresail.control.records import (
    Corrected,
    Decided,
    Drained,
    EventTaken,
    Instructed,
    Manifest,
    Predicted,
    ReasonChanged,
    Record,
    Reopened,
    ReservationAnswered,
    Solved,
)
from foresail.model.cluster import Cluster
from foresail.model.decision import (
    Instruction,
    Placement,
    PlannedStart,
    Preempt,
    Start,
    Withdraw,
)
from foresail.model.errors import InputError
from foresail.model.event import Cancelled, Ended, Event, NodeDown, NodeUp, Submitted
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, EndedBecause
from foresail.model.reason import Reason, ReasonCode
from foresail.model.slowdown import Slowdowns
from foresail.model.view import PendingJob, RunningJob


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits.

    Parameters
    ----------
    pending
        The job, and what is believed of its runtime.
    reason
        Why it waits; None if the log does not say.
    reason_since_seconds
        When its numbers were so: now, where that is known, else when it became the reason.
    is_asked
        Whether the scheduler has been asked since then.
    planned
        When and in which partitions it is planned to start; None if it is not planned.
    """

    pending: PendingJob
    reason: Reason | None
    reason_since_seconds: float
    is_asked: bool
    planned: PlannedStart | None


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """An attempt that has ended, and where it ran."""

    job: Job
    start_seconds: float
    end_seconds: float
    placement: Placement
    ended_because: EndedBecause


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a run once all that happened up to a time had been answered.

    Parameters
    ----------
    now, zero_seconds
        The time, and the start of the run, both on the log's clock.
    start_unix_seconds
        Unix time of the run's start, where it is known.
    policy
        Its short form.
    cluster
        All partitions and nodes, those that are down among them.
    running
        In order of start.
    waiting
        In order of submission.
    past
        Attempts that have ended, in order of ending.
    stopping
        Running jobs that were told to stop.
    down
        Since when (seconds) nodes are down, by name.
    draining
        Whether nothing new is started.
    idle_cpus
        Cpus of nodes that are up which no job holds.
    solved
        What the solver said of the last plan; None where nobody solved anything.
    """

    now: float
    zero_seconds: float
    start_unix_seconds: float | None
    policy: str
    cluster: Cluster
    running: tuple[RunningJob, ...]
    waiting: tuple[WaitingJob, ...]
    past: tuple[PastAttempt, ...]
    stopping: frozenset[str]
    down: Mapping[str, float]
    draining: bool
    idle_cpus: float
    solved: Solved | None

    @property
    def since_start(self) -> float:
        """Whole seconds from the start of the run."""
        return float(round(self.now - self.zero_seconds))


@dataclass(frozen=True, slots=True)
class RunExtent:
    """From when to when a log reaches, and when most was planned (seconds on the log's clock)."""

    zero_seconds: float
    end_seconds: float
    busiest_seconds: float


def extent_of(records: Iterable[Record], source: object = None) -> RunExtent:
    """How long a run was, and its busiest moment: the first with most jobs planned, else waiting.

    Raises
    ------
    InputError
        If the log has no scheduling pass: nothing was ever planned or started.
    """
    clock = LogClock()
    follower = Follower()
    end: float | None = None
    busiest, most = 0.0, (-1, -1, -1)
    for record in records:
        clock.see(record)
        follower.follow(record)
        end = max(getattr(record, "time", clock.zero), clock.zero if end is None else end)
        if isinstance(record, Decided):
            left = record.pending - len(record.starts)
            found = (follower.planned_jobs, left, record.running)
            if found > most:
                busiest, most = record.time, found
    if end is None or most < (0, 0, 0):
        raise InputError(
            "holds no scheduling pass: nothing was planned or started yet",
            source=source,
            expected="the event log of a run with jobs",
        )
    return RunExtent(clock.zero, end, busiest)


def moment_of(records: Iterable[Record], now: float) -> Moment:
    """The state of a run at a time (seconds on the log's clock), steps at that very time included.

    A log that has been continued begins anew with each manifest.

    Raises
    ------
    InputError
        If the log does not fit together: a job starts or ends that was never submitted.
    """
    clock, follower = LogClock(), Follower()
    for record in records:
        clock.see(record)
        if getattr(record, "time", now) > now:
            break
        follower.follow(record)
    return follower.moment(now, clock)


class Follower:
    """Takes a log's records in order, and knows what is true after each."""

    def __init__(self) -> None:
        self._begin(Cluster(()), "")
        self._past: list[PastAttempt] = []

    def _begin(self, cluster: Cluster, policy: str) -> None:
        self._cluster, self._policy = cluster, policy
        self._slowdowns = Slowdowns(cluster)
        self._jobs: dict[str, tuple[Job, int]] = {}
        self._submitted: dict[str, PendingJob] = {}
        self._waiting: dict[str, PendingJob] = {}
        self._running: dict[str, RunningJob] = {}
        self._reasons: dict[str, tuple[Reason, float]] = {}
        self._starts: dict[str, float] = {}
        self._places: dict[str, Placement] = {}
        self._planned_at = -math.inf
        self._stopping: set[str] = set()
        self._down: dict[str, float] = {}
        self._draining = False
        self._solved: Solved | None = None
        self._started = 0

    @property
    def planned_jobs(self) -> int:
        """How many jobs are planned for later."""
        return len(self._starts)

    def follow(self, record: Record) -> None:
        """Take the next record.

        Raises
        ------
        InputError
            If it speaks of a job that was never submitted.
        """
        try:
            self._follow(record)
        except KeyError as error:
            raise InputError(
                "the log does not fit together: this job was never submitted",
                value=error.args[0],
                expected="a whole event log",
            ) from error

    def _follow(self, record: Record) -> None:
        match record:
            case Manifest(cluster=cluster, policy=policy):
                self._begin(cluster, policy)
            case EventTaken(time=now, event=event):
                self._happen(event, now)
            case Predicted():
                self._believe(record)
            case ReservationAnswered(job_id=job_id, answer=answer):
                pending = replace(self._submitted[job_id], reservation=answer)
                self._submitted[job_id] = pending
                if job_id in self._waiting:
                    self._waiting[job_id] = pending
            case Decided():
                self._plan(record)
            case ReasonChanged(job_id=job_id, reason=reason, time=since):
                self._reasons[job_id] = (reason, since)
            case Corrected(job_id=job_id) if job_id in self._running:
                running = self._running[job_id]
                self._running[job_id] = replace(
                    running,
                    expected_end_seconds=running.start_seconds + record.next_seconds,
                    corrections=record.count,
                )
            case Instructed(time=now, instruction=instruction):
                self._obey(instruction, now)
            case Drained():
                self._draining = True
                self._starts.clear()
            case Reopened():
                self._draining = False
            case Solved():
                self._solved = record

    def _happen(self, event: Event, now: float) -> None:
        match event:
            case Submitted(job=job):
                self._jobs[job.job_id] = (job, len(self._jobs))
            case Ended(outcome=outcome):
                running = self._running.pop(outcome.job_id)
                self._stopping.discard(outcome.job_id)
                because = outcome.ended_because
                self._past.append(
                    PastAttempt(running.job, running.start_seconds, now, running.placement, because)
                )
                if because in GOES_BACK:
                    self._waiting[outcome.job_id] = self._submitted[outcome.job_id]
            case Cancelled(job_id=job_id):
                self._leave(job_id)
            case NodeDown(node=node):
                self._down.setdefault(node, now)
            case NodeUp(node=node):
                self._down.pop(node, None)

    def _believe(self, record: Predicted) -> None:
        """The first belief makes a submitted job one that waits; a later one replaces it."""
        job, arrival = self._jobs[record.job_id]
        pending = PendingJob(job, arrival, belief_of(record), record.planned_seconds)
        if record.job_id not in self._submitted:
            self._submitted[record.job_id] = pending
            self._waiting[record.job_id] = pending
        elif record.job_id in self._waiting:
            before = self._waiting[record.job_id]
            self._waiting[record.job_id] = replace(before, prediction=pending.prediction)

    def _plan(self, record: Decided) -> None:
        for job_id in record.dropped:
            self._starts.pop(job_id, None)
            self._places.pop(job_id, None)
        if record.slides:
            later = record.time - self._planned_at
            self._starts = {job_id: start + later for job_id, start in self._starts.items()}
        self._starts.update(record.plan)
        self._places.update((name, Placement(places)) for name, places in record.places.items())
        self._planned_at = record.time

    def _obey(self, instruction: Instruction, now: float) -> None:
        match instruction:
            case Start(job_id=job_id, placement=placement):
                pending = self._waiting[job_id]
                self._leave(job_id)
                slowdown = self._slowdowns.of(pending.job, placement)
                self._running[job_id] = RunningJob(
                    job=pending.job,
                    start_seconds=now,
                    start_order=self._started,
                    placement=placement,
                    prediction=pending.prediction,
                    expected_end_seconds=now + slowdown * pending.planned_seconds,
                    slowdown=slowdown,
                    reservation=pending.reservation,
                )
                self._started += 1
            case Preempt(job_id=job_id):
                self._stopping.add(job_id)
            case Withdraw(job_id=job_id):
                self._leave(job_id)

    def _leave(self, job_id: str) -> None:
        """A job waits no longer."""
        self._waiting.pop(job_id, None)
        self._reasons.pop(job_id, None)
        self._starts.pop(job_id, None)
        self._places.pop(job_id, None)

    def moment(self, now: float, clock: LogClock) -> Moment:
        """All of it, at a time that no record taken is later than."""
        waiting = sorted(self._waiting.values(), key=lambda each: each.arrival)
        idle = self._idle_cpus()
        return Moment(
            now=now,
            zero_seconds=clock.zero,
            start_unix_seconds=clock.start_unix_seconds,
            policy=self._policy,
            cluster=self._cluster,
            running=tuple(self._running.values()),
            waiting=tuple(self._waiting_job(each, now, idle) for each in waiting),
            past=tuple(self._past),
            stopping=frozenset(self._stopping),
            down=dict(self._down),
            draining=self._draining,
            idle_cpus=idle,
            solved=self._solved,
        )

    def _idle_cpus(self) -> float:
        down = sum(
            node.total.cpus
            for partition in self._cluster.partitions
            for node in partition.nodes
            if node.name in self._down
        )
        held = sum(running.job.cpus for running in self._running.values())
        return max(0.0, self._cluster.total.cpus - down - held)

    def _waiting_job(self, pending: PendingJob, now: float, idle_cpus: float) -> WaitingJob:
        job_id = pending.job.job_id
        planned = None
        if job_id in self._starts:
            somewhere = Placement(())
            place = self._places.get(job_id, somewhere)
            planned = PlannedStart(job_id, self._starts[job_id], place)
        reason, since = self._reasons.get(job_id, (None, now))
        is_asked = since <= self._planned_at
        if reason is not None and (current := self._current(reason, pending, idle_cpus)):
            reason, since = current, now
        return WaitingJob(pending, reason, since, is_asked, planned)

    def _current(self, reason: Reason, pending: PendingJob, idle_cpus: float) -> Reason | None:
        """The reason with its numbers as they are now, where the state tells them."""
        match reason.code:
            case ReasonCode.RESERVED | ReasonCode.WOULD_DELAY:
                subject = reason.numbers.get("head", pending.job.job_id)
                start = self._starts.get(str(subject))
                if start is not None:
                    return Reason(reason.code, {**reason.numbers, "start": start})
            case ReasonCode.NO_ROOM if idle_cpus < pending.job.cpus:
                return Reason(reason.code, {**reason.numbers, "free": idle_cpus})
        return None
