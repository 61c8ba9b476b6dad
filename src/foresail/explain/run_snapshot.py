"""What was true and believed at one moment of a run, rebuilt from its event log alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foresail.control.waiting_reasons import as_it_stands
from foresail.explain.misfit import misfit
from foresail.model.cluster import Cluster
from foresail.model.decision import Placement, PlannedStart, Start, Withdraw
from foresail.model.errors import InputError
from foresail.model.event import (
    Cancelled,
    Event,
    NodeDown,
    NodeDrained,
    NodeRemoved,
    NodeResumed,
    NodeUp,
)
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause
from foresail.model.reason import Reason, ReasonCode
from foresail.model.view import PendingJob, RunningJob
from foresail.record.job_life import EndedAttempt, ImpossibleTransition
from foresail.record.log_clock import LogClock
from foresail.record.plans import PlanFold
from foresail.record.records import (
    Decided,
    EventTaken,
    Instructed,
    Manifest,
    PolicyChanged,
    ReasonsChanged,
    Record,
    Solved,
)
from foresail.record.run_fold import RunFold
from foresail.record.state import State


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
class RunSnapshot:
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
        All partitions and nodes as they are then, those that are down among them.
    running
        In order of start.
    waiting
        In order of submission.
    past
        Attempts that have ended, in order of ending.
    stopping
        Running jobs that were told to stop.
    down
        Since when (seconds) nodes are down or drained, by name.
    draining
        Whether nothing new is started.
    idle_cpus
        Cpus of nodes that are up which no job holds.
    solved
        What the solver said of the last plan; None where nothing was solved.
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
    clock, plan = LogClock(), PlanFold()
    end: float | None = None
    busiest, most = 0.0, (-1, -1, -1)
    for record in records:
        clock.see(record)
        plan.take(record)
        end = max(getattr(record, "time", clock.zero), clock.zero if end is None else end)
        if isinstance(record, Decided):
            left = record.pending - len(record.starts)
            found = (len(plan.starts), left, record.running)
            if found > most:
                busiest, most = record.time, found
    if end is None or most < (0, 0, 0):
        raise InputError(
            "holds no scheduling pass: nothing was planned or started yet",
            source=source,
            expected="the event log of a run with jobs",
        )
    return RunExtent(clock.zero, end, busiest)


def snapshot_of(records: Iterable[Record], now: float) -> RunSnapshot:
    """The state of a run at a time (seconds on the log's clock), steps at that very time included.

    A log that has been continued begins anew with each manifest.

    Raises
    ------
    InputError
        If the log does not fit together: a job starts or ends that was never submitted.
    """
    clock, fold = LogClock(), LogFold()
    for record in records:
        clock.see(record)
        if getattr(record, "time", now) > now:
            break
        fold.follow(record)
    return fold.snapshot(now, clock)


class LogFold:
    """Takes a log's records in order, and knows what is true after each whole step.

    What became of jobs is folded as for a recovery (``foresail.record.run_fold``); beside it stand
    reasons, and what was said of the plan.
    """

    def __init__(self) -> None:
        self._run = RunFold()
        self._begin("")

    def _begin(self, policy: str) -> None:
        self._policy = policy
        self._reasons: dict[str, tuple[Reason, float]] = {}
        self._down: dict[str, float] = {}
        self._drained: dict[str, float] = {}
        self._solved: Solved | None = None

    def follow(self, record: Record) -> None:
        """Take the next record.

        Raises
        ------
        InputError
            If it speaks of a job in a state that the job is not in.
        """
        match record:
            case Manifest(policy=policy):
                self._begin(policy)
            case PolicyChanged(policy=policy):
                self._policy = policy
            case EventTaken(time=now, event=event):
                self._happen(event, now)
            case ReasonsChanged(reasons=reasons, time=since):
                self._reasons |= {job_id: (reason, since) for job_id, reason in reasons.items()}
            case Instructed(instruction=Start(job_id=job_id, stage="") | Withdraw(job_id=job_id)):
                self._reasons.pop(job_id, None)
            case Solved():
                self._solved = record
        try:
            self._run.take(record)
        except (KeyError, ImpossibleTransition) as error:
            raise misfit(error) from error

    def _happen(self, event: Event, now: float) -> None:
        match event:
            case Cancelled(job_id=job_id):
                self._reasons.pop(job_id, None)
            case NodeDown(node=node):
                self._down.setdefault(node, now)
            case NodeUp(node=node) | NodeRemoved(node=node):
                self._down.pop(node, None)
                if isinstance(event, NodeRemoved):
                    self._drained.pop(node, None)
            case NodeDrained(node=node):
                self._drained.setdefault(node, now)
            case NodeResumed(node=node):
                self._drained.pop(node, None)

    def snapshot(self, now: float, clock: LogClock) -> RunSnapshot:
        """All of it, at a time that no record taken is later than."""
        state, plan = self._run.state, self._run.plan
        waiting = state.pending()
        living = {each.job.job_id for each in waiting}
        planned = {each.job_id: each for each in plan.planned() if each.job_id in living}
        free = state.free.by_partition().values()
        known = _ReasonContext(
            now, state, max(0.0, sum(room.cpus for room in free)), plan.made_at, planned
        )
        return RunSnapshot(
            now=now,
            zero_seconds=clock.zero,
            start_unix_seconds=clock.start_unix_seconds,
            policy=self._policy,
            cluster=state.cluster,
            running=tuple(state.running_roster.in_order()),
            waiting=tuple(known.waiting(each, self._reasons) for each in waiting),
            past=tuple(map(_past, self._run.history.past)),
            stopping=frozenset(state.running[unit].job.job_id for unit in state.stopping),
            down={**self._drained, **self._down},
            draining=self._run.draining,
            idle_cpus=known.idle_cpus,
            solved=self._solved,
        )


def _past(attempt: EndedAttempt) -> PastAttempt:
    outcome = attempt.outcome
    start, end = outcome.start_seconds, outcome.end_seconds
    held = attempt.job.held(outcome.stage, outcome.tasks)
    return PastAttempt(held, start, end, attempt.placement, outcome.ended_because)


@dataclass(frozen=True, slots=True)
class _ReasonContext:
    """What reasons are told with: when the scheduler was last asked, and what it planned."""

    now: float
    state: State
    idle_cpus: float
    asked_at: float
    planned: Mapping[str, PlannedStart]

    def waiting(
        self, pending: PendingJob, reasons: Mapping[str, tuple[Reason, float]]
    ) -> WaitingJob:
        job_id = pending.job.job_id
        reason, since = reasons.get(job_id, (None, self.now))
        is_asked = since <= self.asked_at
        if reason is not None and (current := self._current(reason, pending)):
            reason, since = current, self.now
        return WaitingJob(pending, reason, since, is_asked, self.planned.get(job_id))

    def _current(self, reason: Reason, pending: PendingJob) -> Reason | None:
        """The reason with its numbers as they are now, where the state tells them."""
        match reason.code:
            case ReasonCode.RESERVED | ReasonCode.WOULD_DELAY:
                subject = reason.numbers.get("head", pending.job.job_id)
                planned = self.planned.get(str(subject))
                if planned is not None:
                    return Reason(reason.code, {**reason.numbers, "start": planned.start_seconds})
        current = as_it_stands(reason, pending, self.state)
        return None if current is reason else current
