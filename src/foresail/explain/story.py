"""The story of one job: what its event log says, as a short list of sentences with their times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

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
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.preference import Preference, PreferenceKind
from foresail.model.reason import Reason, ReasonCode
from foresail.model.words import count, duration

_EARLIEST_UNIX_SECONDS: Final = 1e9
"""September 2001: no simulation lasts from its second zero to such a time."""

_IN_VAIN: Final = {EndedBecause.PREEMPTED: "Stopped", EndedBecause.LOST: "Lost"}
"""What is said of an attempt that was not the job's last."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened to a job.

    Parameters
    ----------
    time
        Seconds from the run's start.
    when
        The same for people, to the second.
    sentence
        What happened, with the numbers behind it.
    """

    time: float
    when: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to a job.

    Parameters
    ----------
    job_id
        Its id.
    start_unix_seconds
        Unix time of the run's start, where the log knows it.
    lines
        All that the log says about the job, in order; empty if it does not know it.
    """

    job_id: str
    start_unix_seconds: float | None
    lines: tuple[Line, ...]

    @property
    def heading(self) -> str:
        """Whose story it is and from when on its times count."""
        if self.start_unix_seconds is None:
            return f"Job {self.job_id}; times count from the start of the run."
        moment = datetime.fromtimestamp(self.start_unix_seconds, UTC)
        return (
            f"Job {self.job_id}; times count from the start of the run, "
            f"{moment:%Y-%m-%d %H:%M:%S} UTC."
        )


def story(records: Iterable[Record], job_id: str) -> Story:
    """Everything a log says about one job.

    Times count from second zero of a simulation, and from the first record of a live run, whose
    clock is Unix time.
    """
    teller = _Teller(job_id)
    lines = tuple(line for record in records for line in teller.lines(record))
    return Story(job_id, teller.start_unix_seconds, lines)


def elapsed(seconds: float) -> str:
    """Time since a start, to the second: ``0.4 s``, ``95 s``, ``21 min 40 s``, ``2 d 3 h 0 min``.

    From a day on, to the minute.
    """
    if round(seconds) < 120:
        return f"{seconds:.1f} s" if 0 < seconds < 10 and seconds % 1 else f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h {minutes} min"
    if hours:
        return f"{hours} h {minutes} min {rest} s"
    return f"{minutes} min {rest} s"


class _Teller:
    """Reads a log once and remembers what later sentences compare with."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._zero: float | None = None
        self.start_unix_seconds: float | None = None
        self._waits_since = 0.0
        self._deadline: float | None = None
        self._starts = 0

    def lines(self, record: Record) -> Iterator[Line]:
        """What the record says about the job: one line or none."""
        if isinstance(record, Manifest):
            if self._zero is None:
                self.start_unix_seconds = record.origin_unix_seconds
            return
        time = getattr(record, "time", None)
        if time is not None and self._zero is None:
            self._begin(time)
        sentence = self._sentence(record)
        if sentence is not None:
            since = (time or 0.0) - (self._zero or 0.0)
            yield Line(since, elapsed(since), sentence)

    def _begin(self, first: float) -> None:
        """Take the first time of the log for what it is."""
        live = self.start_unix_seconds is None and first >= _EARLIEST_UNIX_SECONDS
        self._zero = first if live else 0.0
        if live:
            self.start_unix_seconds = first

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
                return f"Pending: {_of_reason(reason, record.time)}."
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
                self._deadline = job.deadline_seconds
                return _of_submission(job)
            case Ended(time=now, outcome=outcome) if outcome.job_id == self._job_id:
                self._waits_since = now
                return self._of_end(outcome)
            case Cancelled(job_id=self._job_id):
                return "Cancelled before it started."
        return None

    def _of_end(self, outcome: Outcome) -> str:
        ran = duration(outcome.runtime_seconds)
        if outcome.ended_because in _IN_VAIN:
            return (
                f"{_IN_VAIN[outcome.ended_because]} after running for {ran}: that work is lost, "
                "and it goes back to its place in the queue."
            )
        code = "" if outcome.exit_code is None else f", exit code {outcome.exit_code}"
        margin = "" if self._deadline is None else _margin(self._deadline - outcome.end_seconds)
        return f"Ended ({outcome.ended_because}{code}) after running for {ran}{margin}."

    def _of_instruction(self, instruction: Instruction, now: float) -> str | None:
        if instruction.job_id != self._job_id:
            return None
        match instruction:
            case Start(placement=placement):
                places = ", ".join(
                    f"{count(tasks, 'task')} on {place}"
                    for place, tasks in placement.tasks_by_node or placement.tasks_by_partition
                )
                self._starts += 1
                again = f" again (attempt {self._starts})" if self._starts > 1 else ""
                waited = duration(now - self._waits_since)
                return f"Started{again} after {waited} of waiting: {places}."
            case Preempt():
                return "Told to stop, to make room."
            case Withdraw(because=because):
                return f"Withdrawn: {because}."
        return None


def _margin(seconds: float) -> str:
    """Whether a deadline was met, and by how much."""
    if seconds >= 0:
        return f", {duration(seconds)} before its deadline"
    return f", {duration(-seconds)} after its deadline"


def _of_reason(reason: Reason, now: float) -> str:
    """The reason in words; a time in it is said as how far off it is."""
    start = reason.numbers.get("start")
    if not isinstance(start, float | int):
        return reason.sentence
    later = duration(max(start - now, 0.0))
    if reason.code is ReasonCode.RESERVED:
        return f"next in line: {reason.numbers['cpus']:g} cpus should be free in {later}"
    return f"would delay job {reason.numbers['head']}, which should start in {later}"


def _where(preference: Preference) -> str:
    names = ", ".join(preference.names)
    match preference.kind:
        case PreferenceKind.PARTITION:
            return f"in {names}"
        case PreferenceKind.ATTRIBUTE:
            return f"on nodes with {names}"
        case PreferenceKind.SAME:
            return f"with all tasks in one {names}"
        case PreferenceKind.SPREAD:
            return f"with no two tasks in one {names}"


def _of_submission(job: Job) -> str:
    user = "" if job.user is None else f" by {job.user}"
    limit = (
        "no time limit"
        if job.requested_seconds is None
        else f"a limit of {duration(job.requested_seconds)}"
    )
    after = f", to run after {', '.join(job.after)}" if job.after else ""
    deadline = (
        ""
        if job.deadline_seconds is None
        else f", a deadline in {duration(job.deadline_seconds - job.submit_seconds)}"
    )
    best = ""
    if job.preference is not None and job.preference.slowdown > 1:
        best = (
            f" It runs best {_where(job.preference)}, and {job.preference.slowdown:g} times as "
            "long elsewhere."
        )
    return (
        f"Submitted{user}: {count(job.tasks, 'task')}, {job.cpus:g} cpus, "
        f"{limit}{deadline}{after}.{best}"
    )


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
