"""How long jobs of a run waited for which reason, from its event log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from foresail.model.reason import ReasonCode
from foresail.record.records import (
    Decided,
    EventTaken,
    Instructed,
    Manifest,
    Predicted,
    ReasonsChanged,
    Record,
)
from foresail.record.run_fold import RunFold
from foresail.record.subjects import about


@dataclass(frozen=True, slots=True)
class ReasonShare:
    """A reason, the seconds that jobs waited for it, and how many did.

    None is no reason: the scheduler had not been asked since they came.
    """

    code: ReasonCode | None
    seconds: float
    jobs: int


def waits_by_reason(records: Iterable[Record]) -> tuple[ReasonShare, ...]:
    """Waiting time by reason, the longest first.

    Every second that a job waits, from its submission (or from when it goes back to the queue) to
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

    def take(self, record: Record) -> None:
        self.now = getattr(record, "time", self.now)
        self.run.take(record)
        match record:
            case Manifest():
                self.end()
            case EventTaken() | Instructed() | Predicted():
                self._look_at(about(record))
            case Decided():
                self._see()
            case ReasonsChanged(reasons=reasons):
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
