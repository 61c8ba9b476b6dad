"""A run by its event log alone: as it stood at a moment, and for which reasons its jobs waited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from foresail.control.waiting_reasons import Shortages
from foresail.model import event as events
from foresail.model.cluster import Cluster
from foresail.model.decision import PlannedStart, Reason, ReasonCode, Start, Withdraw
from foresail.model.errors import InputError
from foresail.model.view import PendingJob, RunningJob
from foresail.record import records as logged
from foresail.record.job_life import EndedAttempt, ImpossibleTransition
from foresail.record.log_text import LogClock
from foresail.record.plans import PlanFold
from foresail.record.run_fold import RunFold, misfit


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that waits."""

    pending: PendingJob
    reason: Reason | None
    """Reason for which it waits; None if the log does not say."""
    reason_since_seconds: float
    """Time at which its numbers were so: now, where known, else when it became the reason."""
    is_asked: bool
    """True if the scheduler has been asked since then."""
    planned: PlannedStart | None


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The state of a run once all that happened up to a time had been answered.

    Jobs run in order of start, wait in order of submission, and are past in order of ending.
    """

    now: float
    zero_seconds: float
    """The time, and the start of the run, both on the log's clock."""
    start_unix_seconds: float | None
    policy: str
    cluster: Cluster
    """All partitions and nodes as they are then, those that are down among them."""
    running: tuple[RunningJob, ...]
    waiting: tuple[WaitingJob, ...]
    past: tuple[EndedAttempt, ...]
    stopping: frozenset[str]
    """Running jobs that are being stopped."""
    down: Mapping[str, float]
    """Times (seconds) since which nodes are down or drained, by name."""
    draining: bool
    """True if nothing new is started."""
    idle_cpus: float
    """Cpus of nodes that are up which no job holds."""
    solved: logged.Solved | None
    """Report of the solver on the last plan; None where nothing was solved."""

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


def extent_of(records: Iterable[logged.Record], source: object = None) -> RunExtent:
    """Return the length of a run, and its busiest moment: most jobs planned, else waiting.

    Raises ``InputError`` if the log has no scheduling pass: nothing was ever planned or started.
    """
    clock, plan = LogClock(), PlanFold()
    end: float | None = None
    busiest, most = 0.0, (-1, -1, -1)
    for record in records:
        clock.see(record)
        plan.take(record)
        end = max(getattr(record, "time", clock.zero), clock.zero if end is None else end)
        if isinstance(record, logged.Decided):
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


def snapshot_of(records: Iterable[logged.Record], now: float) -> RunSnapshot:
    """The state of a run at a time (seconds on the log's clock), steps at that very time included.

    A log that has been continued begins anew with each manifest.

    Raises ``InputError`` if the log does not fit together.
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
        self._solved: logged.Solved | None = None

    def follow(self, record: logged.Record) -> None:
        """Take the next record; raises ``InputError`` if it speaks of a job in another state."""
        match record:
            case logged.Manifest(policy=policy):
                self._begin(policy)
            case logged.PolicyChanged(policy=policy):
                self._policy = policy
            case logged.EventTaken(time=now, event=event):
                self._happen(event, now)
            case logged.ReasonsChanged(reasons=reasons, time=since):
                self._reasons |= {job_id: (reason, since) for job_id, reason in reasons.items()}
            case logged.Instructed(
                instruction=Start(job_id=job_id, stage="") | Withdraw(job_id=job_id)
            ):
                self._reasons.pop(job_id, None)
            case logged.Solved():
                self._solved = record
        try:
            self._run.take(record)
        except (KeyError, ImpossibleTransition) as error:
            raise misfit(error) from error

    def _happen(self, event: events.Event, now: float) -> None:
        match event:
            case events.Cancelled(job_id=job_id):
                self._reasons.pop(job_id, None)
            case events.NodeDown(node=node):
                self._down.setdefault(node, now)
            case events.NodeUp(node=node) | events.NodeRemoved(node=node):
                self._down.pop(node, None)
                if isinstance(event, events.NodeRemoved):
                    self._drained.pop(node, None)
            case events.NodeDrained(node=node):
                self._drained.setdefault(node, now)
            case events.NodeResumed(node=node):
                self._drained.pop(node, None)

    def snapshot(self, now: float, clock: LogClock) -> RunSnapshot:
        """All of it, at a time that no record taken is later than."""
        state, plan = self._run.state, self._run.plan
        waiting = state.pending()
        living = {each.job.job_id for each in waiting}
        planned = {each.job_id: each for each in plan.planned() if each.job_id in living}
        free = state.free.by_partition().values()
        known = _ReasonContext(
            now, Shortages(state), max(0.0, sum(each.cpus for each in free)), plan.made_at, planned
        )
        return RunSnapshot(
            now=now,
            zero_seconds=clock.zero,
            start_unix_seconds=clock.start_unix_seconds,
            policy=self._policy,
            cluster=state.cluster,
            running=tuple(state.running_roster.in_order()),
            waiting=tuple(known.waiting(each, self._reasons) for each in waiting),
            past=tuple(self._run.history.past),
            stopping=frozenset(state.running[unit].job.job_id for unit in state.stopping),
            down={**self._drained, **self._down},
            draining=self._run.draining,
            idle_cpus=known.idle_cpus,
            solved=self._solved,
        )


@dataclass(frozen=True, slots=True)
class _ReasonContext:
    """Context of reasons: when the scheduler was last asked, and what it planned."""

    now: float
    shortages: Shortages
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
        """The reason with its numbers as they are now, where the state has them."""
        match reason.code:
            case ReasonCode.RESERVED | ReasonCode.GOES_FIRST | ReasonCode.WOULD_DELAY:
                subject = reason.numbers.get("head", pending.job.job_id)
                planned = self.planned.get(str(subject))
                if planned is not None:
                    return Reason(reason.code, {**reason.numbers, "start": planned.start_seconds})
        current = self.shortages.corrected(reason, pending)
        return None if current is reason else current


@dataclass(frozen=True, slots=True)
class ReasonShare:
    """A reason, the seconds that jobs waited for it, and how many did.

    None is no reason: the scheduler had not been asked since they came.
    """

    code: ReasonCode | None
    seconds: float
    jobs: int


def waits_by_reason(records: Iterable[logged.Record]) -> tuple[ReasonShare, ...]:
    """Waiting time by reason, the longest first.

    Every second that a job waits, from its submission (or from when it is requeued) to
    its start, counts for the reason that was the last to be given. Those still waiting count up to
    the end of the log.
    """
    waits = _Waits()
    for record in records:
        waits.take(record)
    waits.end()
    found = [
        ReasonShare(code, seconds, len(waits.jobs[code]))
        for code, seconds in waits.seconds.items()
        if seconds > 0.0
    ]
    return tuple(sorted(found, key=lambda each: -each.seconds))


@dataclass(slots=True)
class _Waits:
    run: RunFold = field(default_factory=RunFold)
    seconds: dict[ReasonCode | None, float] = field(default_factory=dict)
    jobs: dict[ReasonCode | None, set[str]] = field(default_factory=dict)
    waiting: dict[str, tuple[float, ReasonCode | None]] = field(default_factory=dict)
    unseen: dict[str, ReasonCode | None] = field(default_factory=dict)
    now: float = 0.0

    def take(self, record: logged.Record) -> None:
        self.now = getattr(record, "time", self.now)
        self.run.take(record)
        match record:
            case logged.Manifest():
                self.end()
            case logged.EventTaken() | logged.Instructed() | logged.Predicted():
                self._look_at(logged.about(record))
            case logged.Decided():
                self._see()
            case logged.ReasonsChanged(reasons=reasons):
                for job_id in self.waiting.keys() & reasons.job_ids:
                    self._hear(job_id, reasons.code)

    def _look_at(self, job_id: str | None) -> None:
        """Note that a job has come to wait, or waits no more."""
        waits = job_id is not None and self.run.state.pending_job(job_id) is not None
        if job_id is None or waits == (job_id in self.waiting):
            return
        if waits:
            self.waiting[job_id] = (self.now, None)
            self.unseen[job_id] = None
        else:
            self._settle(job_id)

    def _see(self) -> None:
        """The scheduler has been asked."""
        for job_id, code in self.unseen.items():
            if code is not None and job_id in self.waiting:
                self._give(job_id, code)
        self.unseen.clear()

    def _hear(self, job_id: str, code: ReasonCode) -> None:
        if job_id in self.unseen and code is ReasonCode.NOT_CHOSEN:
            self.unseen[job_id] = code  # counts once the scheduler has been asked
        else:
            self._give(job_id, code)

    def _give(self, job_id: str, code: ReasonCode) -> None:
        self._settle(job_id)
        self.waiting[job_id] = (self.now, code)

    def _settle(self, job_id: str) -> None:
        """Count what a job has waited since its last reason was given."""
        since, code = self.waiting.pop(job_id, (self.now, None))
        if self.now > since:
            self.seconds[code] = self.seconds.get(code, 0.0) + self.now - since
            self.jobs.setdefault(code, set()).add(job_id)

    def end(self) -> None:
        for job_id in tuple(self.waiting):
            self._settle(job_id)
