"""The story of one job: what its event log says, as a short dated list of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from foresail.control.records import (
    Corrected,
    EventTaken,
    Instructed,
    Manifest,
    Predicted,
    ReasonChanged,
    Record,
    Refused,
)
from foresail.model.decision import Instruction, Preempt, Start, Withdraw
from foresail.model.event import Cancelled, Ended, Event, Submitted
from foresail.model.job import Job
from foresail.reports.words import count, duration


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened to a job.

    Parameters
    ----------
    time
        Seconds from the origin of the run.
    when
        The same for people: a date in UTC where the log knows one, else seconds.
    sentence
        What happened, with the numbers behind it.
    """

    time: float
    when: str
    sentence: str


def story(records: Iterable[Record], job_id: str) -> list[Line]:
    """Everything a log says about one job, in order; empty if the log does not know it."""
    teller = _Teller(job_id)
    return [line for record in records for line in teller.lines(record)]


class _Teller:
    """Reads a log once and remembers what later sentences compare with."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._origin: float | None = None
        self._waits_since = 0.0

    def lines(self, record: Record) -> Iterator[Line]:
        """What the record says about the job: one line or none."""
        if isinstance(record, Manifest):
            self._origin = record.origin_unix_seconds
            return
        sentence = self._sentence(record)
        if sentence is not None:
            time = getattr(record, "time", 0.0)
            yield Line(time, self._when(time), sentence)

    def _when(self, time: float) -> str:
        if self._origin is None:
            return f"{time:,.0f} s"
        moment = datetime.fromtimestamp(self._origin + time, UTC)
        return f"{moment:%Y-%m-%d %H:%M:%S}"

    def _sentence(self, record: Record) -> str | None:
        match record:
            case EventTaken(event=event):
                return self._of_event(event)
            case Instructed(time=now, instruction=instruction):
                return self._of_instruction(instruction, now)
            case Refused(refusal=refusal) if refusal.job_id == self._job_id:
                return f"The scheduler's wish was refused: {refusal.sentence}."
            case Predicted(job_id=self._job_id):
                return _of_prediction(record)
            case ReasonChanged(job_id=self._job_id, reason=reason):
                return f"Pending: {reason.sentence}."
            case Corrected(job_id=self._job_id):
                return (
                    f"Has run for the {duration(record.previous_seconds)} expected of it and runs "
                    f"on; {duration(record.next_seconds)} are expected now (correction "
                    f"{record.count})."
                )
        return None

    def _of_event(self, event: Event) -> str | None:
        match event:
            case Submitted(time=now, job=job) if job.job_id == self._job_id:
                self._waits_since = now
                return _of_submission(job)
            case Ended(time=now, outcome=outcome) if outcome.job_id == self._job_id:
                self._waits_since = now
                code = "" if outcome.exit_code is None else f", exit code {outcome.exit_code}"
                ran = duration(outcome.runtime_seconds)
                return f"Ended ({outcome.ended_because}{code}) after running for {ran}."
            case Cancelled(job_id=self._job_id):
                return "Cancelled before it started."
        return None

    def _of_instruction(self, instruction: Instruction, now: float) -> str | None:
        if instruction.job_id != self._job_id:
            return None
        match instruction:
            case Start(placement=placement):
                places = ", ".join(
                    f"{count(tasks, 'task')} on {place}"
                    for place, tasks in placement.tasks_by_node or placement.tasks_by_partition
                )
                return f"Started after {duration(now - self._waits_since)} of waiting: {places}."
            case Preempt():
                return "Told to stop; it goes back to its place in the queue."
            case Withdraw(because=because):
                return f"Withdrawn: {because}."
        return None


def _of_submission(job: Job) -> str:
    user = "" if job.user is None else f" by {job.user}"
    limit = (
        "no time limit"
        if job.requested_seconds is None
        else f"a limit of {duration(job.requested_seconds)}"
    )
    after = f", to run after {', '.join(job.after)}" if job.after else ""
    return f"Submitted{user}: {count(job.tasks, 'task')}, {job.cpus:g} cpus, {limit}{after}."


def _of_prediction(belief: Predicted) -> str:
    planned = (
        ""
        if belief.planned_seconds == belief.mean_seconds
        else f"; planned with {duration(belief.planned_seconds)}"
    )
    if belief.low_seconds == belief.high_seconds:
        return f"Expected to run for {duration(belief.mean_seconds)}{planned}."
    return (
        f"Expected to run for {duration(belief.mean_seconds)}, with 80 % probability between "
        f"{duration(belief.low_seconds)} and {duration(belief.high_seconds)}{planned}."
    )
