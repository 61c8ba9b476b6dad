"""The story of one job: what its event log says, as a short list of sentences with their times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from foresail.explain import story_words
from foresail.explain.chances import chance_of_start
from foresail.explain.reason_words import NOT_ASKED, REASONS, end_words, reason_words
from foresail.explain.story_words import PlanThread, TasksThread, of_part
from foresail.model import event as events
from foresail.model.decision import Instruction, Preempt, Reason, ReasonCode, Start, Withdraw
from foresail.model.free_resources import Slowdowns
from foresail.model.job import Job
from foresail.model.words import by_whom, duration
from foresail.record import records as logged
from foresail.record.beliefs import belief_of
from foresail.record.job_life import ImpossibleTransition, JobState
from foresail.record.log_text import LogClock
from foresail.record.run_fold import RunFold, misfit
from foresail.record.state import State

_NEWS: Final = 0.25
"""Share by which an expected runtime must change to be reported again."""

_REQUEUED: Final = {
    events.EndedBecause.PREEMPTED: "Stopped",
    events.EndedBecause.LOST: "Lost",
    events.EndedBecause.REVOKED: "Ended, as its place was taken back,",
}
"""Words for an attempt that was not the job's last."""


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One thing that happened to a job, with the numbers behind it.

    ``time`` is in seconds from the run's start; ``when`` the same for people, to the second.
    """

    time: float
    when: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Story:
    """All that a log says about a job, in order; no lines if it does not know it."""

    job_id: str
    start_unix_seconds: float | None
    """Unix time of the run's start, where the log knows it."""
    lines: tuple[StoryLine, ...]

    @property
    def heading(self) -> str:
        """Return whose story it is and from when on its times count."""
        if self.start_unix_seconds is None:
            return f"Job {self.job_id}; times count from the start of the run."
        moment = datetime.fromtimestamp(self.start_unix_seconds, UTC)
        return (
            f"Job {self.job_id}; times count from the start of the run, "
            f"{moment:%Y-%m-%d %H:%M:%S} UTC."
        )


def story(records: Iterable[logged.Record], job_id: str, *, knows_others: bool = True) -> Story:
    """Everything a log says about one job.

    All records from its first to its last, or (``knows_others`` is false) those that are about it;
    and before them the manifest, and those of nodes.

    Times count from second zero of a simulation, and from the first record of a live run, whose
    clock is Unix time.

    Raises ``InputError`` if the log does not fit together: a job starts or ends that was never
    submitted.
    """
    builder = _StoryBuilder(job_id, knows_others=knows_others)
    lines = [line for record in records for line in builder.lines(record)]
    rest = (*builder.last_lines(), *builder.passed_over(math.inf))
    return Story(job_id, builder.start_unix_seconds, (*lines, *rest))


class _StoryBuilder:
    """Reads a log once and remembers what later sentences compare with."""

    def __init__(self, job_id: str, *, knows_others: bool) -> None:
        self._job_id = job_id
        self._clock = LogClock()
        self._run = RunFold()
        self._job: Job | None = None
        self._waits_since = 0.0
        self._starts: Counter[events.Unit] = Counter()
        self._replanning = PlanThread(job_id, knows_others=knows_others)
        self._tasks = TasksThread()
        self._shown_mean: float | None = None
        self._shown_estimate = 0.0
        self._reason: ReasonCode | None = None
        self._is_asked = False
        self._waits_for_pass = False
        self._passed_seconds: float | None = None

    @property
    def start_unix_seconds(self) -> float | None:
        """Unix time of the run's start, where the log knows it."""
        return self._clock.start_unix_seconds

    def lines(self, record: logged.Record) -> Iterator[StoryLine]:
        """Yield what the record says about the job, after all those before it.

        Raises ``InputError`` if it speaks of a job in a state that the job is not in.
        """
        self._clock.see(record)
        yield from self.passed_over(getattr(record, "time", -math.inf))
        try:
            sentence = self._sentence(record)
            self._take(record)
        except (KeyError, ImpossibleTransition) as error:
            raise misfit(error) from error
        if sentence is not None:
            yield from self.last_lines()
            yield self._line(getattr(record, "time", self._clock.zero), sentence)

    def _take(self, record: logged.Record) -> None:
        """Lead on the life of the job, as if there were no others that it waits for."""
        match record:
            case logged.Manifest():
                self._job, self._starts = None, Counter()
            case logged.EventTaken(event=events.Submitted(job=job) as event) if (
                job.job_id == self._job_id
            ):
                self._job, self._waits_since = job, event.time
                alone = replace(job, after=(), conditions=None)
                record = replace(record, event=events.Submitted(event.time, alone))
            case _ if logged.about(record) not in (self._job_id, logged.NODES):
                return
        waited = self._state.pending_job(self._job_id)
        self._run.take(record)
        match record:
            case logged.EventTaken(event=events.Ended(time=time)):
                if not waited and self._state.pending_job(self._job_id):
                    self._waits_since = time
            case logged.Instructed(instruction=Start() as start):
                self._starts[events.unit_of(start)] += 1

    @property
    def _state(self) -> State:
        return self._run.state

    @property
    def _known(self) -> Job:
        """The job as it was submitted."""
        if self._job is None:
            raise KeyError(self._job_id)
        return self._job

    def last_lines(self) -> Iterator[StoryLine]:
        """Yield the lines left over where nothing else follows, or before it does."""
        starts = self._tasks.starts()
        if starts is not None:
            last = story_words.elapsed(starts.last_seconds - self._clock.zero)
            yield self._line(starts.first_seconds, starts.sentence(last))

    def passed_over(self, now: float) -> Iterator[StoryLine]:
        """Yield that the pass that a job waited for has not started it, once that is over."""
        passed = self._passed_seconds
        if passed is not None and passed < now:
            self._passed_seconds = None
            yield self._line(passed, f"Pending: {REASONS[ReasonCode.NOT_CHOSEN]}.")

    def _line(self, time: float, sentence: str) -> StoryLine:
        since = time - self._clock.zero
        return StoryLine(since, story_words.elapsed(since), sentence)

    def _sentence(self, record: logged.Record) -> str | None:
        match record:
            case logged.EventTaken(event=event):
                self._replanning.happened(event)
                return self._of_event(event)
            case logged.Instructed(time=now, instruction=instruction):
                return self._of_instruction(instruction, now)
            case logged.Decided(time=now):
                if self._waits_for_pass:
                    self._waits_for_pass, self._passed_seconds = False, now
                self._is_asked = True
                return self._replanning.sentence(record)
            case logged.Refused(refusal=refusal) if refusal.job_id == self._job_id:
                return f"The scheduler's wish was refused: {refusal.sentence}."
            case logged.Predicted(job_id=self._job_id):
                return self._of_belief(record)
            case logged.ReservationAnswered(job_id=self._job_id, answer=answer):
                return story_words.answer_words(answer, record.time)
            case logged.ReasonsChanged(reasons=reasons, time=now):
                reason = reasons.reason(self._job_id)
                return None if reason is None else self._of_reason(reason, now)
            case logged.Corrected():
                return self._of_correction(record)
            case logged.Sized(size=size) if size.job_id == self._job_id:
                return self._tasks.sized(size)
        return None

    def _of_reason(self, reason: Reason, now: float) -> str | None:
        """Return why it waits; a plan that moves is reported with the plan."""
        same = reason.code is self._reason is ReasonCode.RESERVED
        self._reason = reason.code
        self._waits_for_pass, self._passed_seconds = False, None
        if same and self._replanning.is_shown:
            return None
        if reason.code is ReasonCode.NOT_CHOSEN and not self._is_asked:
            self._waits_for_pass = True
            return f"Pending: {NOT_ASKED}."
        return f"Pending: {reason_words(reason, now)}."

    def _of_belief(self, record: logged.Predicted) -> str | None:
        """Return the belief; later only if that is quite another one."""
        if self._shown_mean is None:
            self._shown_mean = record.mean_seconds
            return story_words.prediction_words(record) + self._if_started(record)
        if abs(record.mean_seconds - self._shown_mean) < _NEWS * self._shown_mean:
            return None
        self._shown_mean = record.mean_seconds
        return f"Meanwhile something else is believed. {story_words.prediction_words(record)}"

    def _if_started(self, record: logged.Predicted) -> str:
        chance = chance_of_start(self._known, belief_of(record), record.time)
        if chance is None:
            return ""
        return (
            f" Started at once, it would meet its deadline with {100 * chance:.0f} % probability."
        )

    def _of_correction(self, record: logged.Corrected) -> str | None:
        self._replanning.outlived(record.job_id)
        if record.job_id != self._job_id or self._tasks.is_one_of_many(record):
            return None
        if record.count > 1 and record.next_seconds < (1.0 + _NEWS) * self._shown_estimate:
            return None
        self._shown_estimate = record.next_seconds
        return of_part(
            record,
            f"Has run for the {duration(record.previous_seconds)} expected of it and runs "
            f"on; {duration(record.next_seconds)} are expected now (correction "
            f"{record.count}).",
        )

    def _of_event(self, event: events.Event) -> str | None:
        match event:
            case events.Submitted(job=job) if job.job_id == self._job_id:
                self._is_asked = False
                self._tasks.submitted(job)
                return story_words.submission_words(job)
            case events.Ended(outcome=outcome) if outcome.job_id == self._job_id:
                self._is_asked = False
                self._reason = None
                return self._tasks.ended(outcome, self._of_end(outcome))
            case events.Began(job_id=self._job_id):
                return self._of_beginning(event)
            case events.NotStarted(job_id=self._job_id):
                self._is_asked, self._reason = False, ReasonCode.NOT_STARTED
                later = duration(event.again_after_seconds)
                said = f"Not started after all: {event.sentence}. It may start again in {later}."
                return of_part(event, said)
            case events.JobChanged(job_id=self._job_id, job=job):
                self._is_asked = False
                return f"Changed. {story_words.submission_words(job)}"
            case events.Cancelled(job_id=self._job_id, by=by):
                return self._of_cancellation(by)
        return None

    def _of_beginning(self, event: events.Began) -> str | None:
        """Return that it runs, unless that and where was reported with its start."""
        running = self._state.running.get(events.unit_of(event))
        if running is not None and running.placement == event.placement:
            return None
        self._replanning.forget()
        self._is_asked, self._reason = False, None
        by_whom_started = "" if event.ours else " by no start of ours"
        since = duration(max(0.0, event.time - event.start_seconds))
        where = story_words.place_words(event.placement)
        said = f"Runs{by_whom_started}, for {since} by now: {where}."
        return of_part(event, said)

    def _of_cancellation(self, by: str) -> str | None:
        stands = self._state.stage_of(self._job_id)
        if stands not in (JobState.PENDING, JobState.RUNNING):
            return None
        who = f", {by_whom(by, self._known.user)}" if by else ""
        if stands is JobState.RUNNING:
            return f"Cancelled while it ran{who}: it is being stopped."
        return f"Cancelled before it started{who}."

    def _of_end(self, outcome: events.Outcome) -> str:
        ran = duration(outcome.runtime_seconds)
        if outcome.ended_because in _REQUEUED:
            return (
                f"{_REQUEUED[outcome.ended_because]} after running for {ran}: that work is lost, "
                "and it is requeued in its place."
            )
        job = self._known
        deadline = job.deadline_seconds
        margin = (
            "" if deadline is None else story_words.margin_words(deadline - outcome.end_seconds)
        )
        words = end_words(outcome, job, self._state.cancelled.get(self._job_id, ""))
        why = "" if words is None else f": {words}"
        return f"Ended ({outcome.ended_because}{why}) after running for {ran}{margin}."

    def _at_start(self, start: Start, now: float) -> str:
        """The chance of the deadline where it runs, and what that place costs."""
        job, state = self._known, self._state
        slowdown = Slowdowns(state.cluster).factor(job, start.placement)
        chance = chance_of_start(job, state.belief(job.job_id), now, slowdown)
        slow = f", where it runs {slowdown:g} times as long as at best" if slowdown > 1 else ""
        if chance is None:
            return slow
        return f"{slow}; it should meet its deadline with {100 * chance:.0f} % probability"

    def _of_instruction(self, instruction: Instruction, now: float) -> str | None:
        if instruction.job_id != self._job_id:
            return None
        self._waits_for_pass, self._passed_seconds = False, None
        match instruction:
            case Start(placement=placement):
                attempt = 1 + self._starts[events.unit_of(instruction)]
                again = f" again (attempt {attempt})" if attempt > 1 else ""
                waited = duration(now - self._waits_since)
                self._replanning.forget()
                self._reason = None
                chance = self._at_start(instruction, now)
                where = story_words.place_words(placement)
                sentence = f"Started{again} after {waited} of waiting: {where}{chance}."
                return self._tasks.started(instruction, sentence, now)
            case Preempt() if self._job_id in self._state.cancelled:
                return None  # reported with the cancellation
            case Preempt():
                parts = self._state.parts_of(self._job_id)
                if parts is not None and parts.because is not None:
                    return of_part(instruction, "Stopped: the job has failed.")
                room = f"Preempted, to make room{self._replanning.for_whom()}."
                return of_part(instruction, room)
            case Withdraw(because=because):
                return f"Withdrawn: {because}."
        return None
