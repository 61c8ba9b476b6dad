"""What became of every job of a run: a fold of its records, as they are made or as they were."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass

from foresail.model.allocation import Part, Unit, job_of, unit_of
from foresail.model.decision import (
    Instruction,
    Placement,
    Start,
    TickAt,
    WakeAt,
    Withdraw,
)
from foresail.model.event import (
    Cancelled,
    ClockRead,
    Ended,
    EstimateExpired,
    Event,
    Held,
    Released,
    Submitted,
)
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, Outcome
from foresail.model.reservation import Rejection, Reservation
from foresail.model.words import by_whom
from foresail.record.parts import PartsOfJob
from foresail.record.records import (
    Corrected,
    EventTaken,
    Instructed,
    Manifest,
    Predicted,
    Record,
    ReservationAnswered,
)


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that has ended."""

    job: Job
    outcome: Outcome
    """Of which job, and how it ended."""
    belief: Predicted
    """What was believed of its runtime when it started."""
    placement: Placement
    """Where it ran."""
    corrections: int
    """How often its estimate was corrected."""
    overtook: bool
    """Whether it started before a job that had been submitted earlier."""
    answer: Reservation | Rejection | None
    """What the job was promised at its submission; None if it asked for nothing."""


@dataclass(slots=True)
class _BegunAttempt:
    belief: Predicted
    placement: Placement
    overtook: bool
    corrections: int = 0


class JobsFold:
    """Takes a run's records in order, and knows what became of its jobs.

    To be read by others: ``now`` (time of the last step), ``submitted`` (jobs in order),
    ``attempts`` (how many were started, of each whole job and part), ``wakes`` (when the
    estimate of what runs expires), ``ticks`` (when a job's reservation begins), ``waiting``
    (since when, of jobs that wait), ``held`` (jobs that are not to start), ``cancelled`` (jobs
    that were when they ran, and have not ended, and by whom), ``moved`` (the job that the last
    event or instruction let wait, or wait no more), ``first_beliefs`` and ``beliefs`` (of a job
    that waits or runs, at its submission and since), ``past`` (attempts in order of ending),
    ``ended`` (the last outcome of jobs that are done with; of one that ran in parts, that of
    the whole), ``withdrawn`` (why a job will never run), ``clock`` (the last reading of the
    machine's clocks).
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.now = 0.0
        self.clock: ClockRead | None = None
        self.submitted: dict[str, Job] = {}
        self.attempts: dict[Unit, int] = {}
        self.wakes: dict[Unit, float] = {}
        self.ticks: dict[str, float] = {}
        self.past: list[EndedAttempt] = []
        self.ended: dict[str, Outcome] = {}
        self.withdrawn: dict[str, str] = {}
        self.first_beliefs: dict[str, Predicted] = {}
        self.beliefs: dict[str, Predicted] = {}
        self._answers: dict[str, Reservation | Rejection] = {}
        self._running: dict[Unit, _BegunAttempt] = {}
        self._in_parts: dict[str, PartsOfJob] = {}
        self._numbers: dict[str, int] = {}
        self._arrivals = 0
        self.waiting: dict[str, float] = {}
        self.held: set[str] = set()
        self.cancelled: dict[str, str] = {}
        self.moved: str | None = None
        self._line: list[tuple[int, str]] = []  # a heap; jobs that wait no more are among them

    def take(self, record: Record) -> None:
        """Take the next record.

        Raises
        ------
        KeyError
            If it speaks of a job in a state that the job is not in.
        """
        match record:
            case EventTaken(time=now, event=event):
                self.moved = None
                self._happen(event, now)
            case Instructed(instruction=instruction):
                self.moved = None
                self._obey(instruction)
            case Predicted(job_id=job_id):
                self.first_beliefs.setdefault(job_id, record)
                self.beliefs[job_id] = record
            case Corrected(count=count):
                self._running[unit_of(record)].corrections = count
            case ReservationAnswered(job_id=job_id, answer=answer):
                self._answers[job_id] = answer
            case Manifest():
                self._begin()

    def forget(self, job_ids: Collection[str]) -> None:
        """Know nothing more of jobs that are done with."""
        gone = set(job_ids)
        for job_id in gone:
            del self.submitted[job_id]
            self.ended.pop(job_id, None)
            self.withdrawn.pop(job_id, None)
        for unit in [unit for unit in self.attempts if job_of(unit) in gone]:
            del self.attempts[unit]
        self.past[:] = [each for each in self.past if each.job.job_id not in gone]
        self._line = []
        for job_id in self.waiting:
            self._line_up(job_id)

    def runs(self, job_id: str) -> bool:
        """Whether a job, or a part of it, runs."""
        parts = self._in_parts.get(job_id)
        return job_id in self._running if parts is None else bool(parts.running)

    def has_failed(self, job_id: str) -> bool:
        """Whether a part of a job has failed while others of it run."""
        parts = self._in_parts.get(job_id)
        return parts is not None and parts.because is not None

    def _happen(self, event: Event, now: float) -> None:
        self.now = now
        if self.ticks:
            self.ticks = {job_id: time for job_id, time in self.ticks.items() if time > now}
        match event:
            case Submitted(job=job):
                self._numbers[job.job_id] = self._arrivals
                self._arrivals += 1
                self.submitted[job.job_id] = job
                self._wait(job.job_id, event.time)
            case Ended(outcome=outcome):
                self._end(outcome, event.time)
            case ClockRead():
                self.clock = event
            case EstimateExpired():
                self.wakes.pop(unit_of(event), None)
            case Cancelled(job_id=job_id, by=by):
                self._cancel(job_id, by)
            case Held(job_id=job_id) if job_id in self.waiting:
                self.held.add(job_id)
            case Released(job_id=job_id) if job_id in self.held:
                self.held.remove(job_id)
                self._line_up(job_id)

    def _wait(self, job_id: str, since: float) -> None:
        self.waiting[job_id] = since
        self.moved = job_id
        self._line_up(job_id)

    def _line_up(self, job_id: str) -> None:
        """Let others overtake a job that waits, unless it is kept back by its own wish."""
        conditions = self.submitted[job_id].conditions
        if conditions is None or not conditions.keep_out_of_line:
            heapq.heappush(self._line, (self._numbers[job_id], job_id))

    def _wait_no_more(self, job_id: str) -> None:
        del self.waiting[job_id]
        self.moved = job_id

    def _cancel(self, job_id: str, by: str) -> None:
        """A job that waits is done with; one that runs will be; of any other it is no news."""
        if self.runs(job_id):
            self.cancelled[job_id] = by
            if job_id in self._in_parts:
                self._in_parts[job_id].cancel()
                self.waiting.pop(job_id, None)
        elif job_id in self.waiting:
            self._leave(job_id, f"cancelled {by_whom(by, self.submitted[job_id].user)}")

    def _leave(self, job_id: str, because: str) -> None:
        self._wait_no_more(job_id)
        self.withdrawn[job_id] = because
        self._in_parts.pop(job_id, None)
        self._is_over(job_id)

    def _obey(self, instruction: Instruction) -> None:
        match instruction:
            case Start(job_id, placement):
                unit = unit_of(instruction)
                self.attempts[unit] = self.attempts.get(unit, 0) + 1
                if isinstance(unit, Part):
                    self._start_part(unit)
                else:
                    self._wait_no_more(job_id)
                overtook = self._numbers[job_id] > self._first_in_line()
                self._running[unit] = _BegunAttempt(self.beliefs[job_id], placement, overtook)
            case WakeAt(time=time):
                self.wakes[unit_of(instruction)] = time
            case TickAt(job_id, time):
                self.ticks[job_id] = time
            case Withdraw(job_id, because) if job_id in self.waiting:  # not cancelled just now
                self._leave(job_id, because)

    def _first_in_line(self) -> float:
        """Number of the first submission that still waits."""
        while self._line and (
            self._line[0][1] not in self.waiting or self._line[0][1] in self.held
        ):
            heapq.heappop(self._line)
        return self._line[0][0] if self._line else float("inf")

    def _end(self, outcome: Outcome, time: float) -> None:
        job_id, unit = outcome.job_id, unit_of(outcome)
        running = self._running.pop(unit)
        self.wakes.pop(unit, None)
        self.past.append(
            EndedAttempt(
                job=self.submitted[job_id],
                outcome=outcome,
                belief=running.belief,
                placement=running.placement,
                corrections=running.corrections,
                overtook=running.overtook,
                answer=self._answers.get(job_id),
            )
        )
        if isinstance(unit, Part):
            self._end_part(unit, outcome, time)
        elif outcome.ended_because in GOES_BACK:
            self.beliefs[job_id] = self.first_beliefs[job_id]
            self._wait(job_id, time)
        else:
            self._done(job_id, outcome)

    def _start_part(self, part: Part) -> None:
        """A part starts; its job waits on if more of it may start."""
        job_id = part.job_id
        if job_id not in self._in_parts:
            self._in_parts[job_id] = PartsOfJob(self.submitted[job_id])
        parts = self._in_parts[job_id]
        parts.start(part, self.now, 0)
        if not parts.startable:
            self._wait_no_more(job_id)

    def _end_part(self, part: Part, outcome: Outcome, time: float) -> None:
        """A part has ended; its job waits, waits no more, or has ended, too."""
        job_id = part.job_id
        parts = self._in_parts[job_id]
        parts.end(part, outcome.ended_because)
        if parts.startable and job_id not in self.waiting:
            self._wait(job_id, time)
        elif not parts.startable and job_id in self.waiting:
            self._wait_no_more(job_id)
        if parts.ended_because is not None:
            self._done(job_id, parts.outcome(outcome))
            del self._in_parts[job_id]

    def _done(self, job_id: str, outcome: Outcome) -> None:
        self.ended[job_id] = outcome
        self.cancelled.pop(job_id, None)
        self._is_over(job_id)

    def _is_over(self, job_id: str) -> None:
        """A job neither waits nor runs any more, nor will; its attempts know what led to them."""
        self.held.discard(job_id)
        self.ticks.pop(job_id, None)
        self.first_beliefs.pop(job_id, None)
        self.beliefs.pop(job_id, None)
        self._answers.pop(job_id, None)
        self._numbers.pop(job_id, None)
