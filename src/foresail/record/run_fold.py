"""The state of a run, folded from its records: what happened and what was instructed.

Nothing is decided: no scheduler, predictor or correction is asked. Whatever version of them wrote
the records, the state is the one that their run was in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from foresail.distributions.basic import Point
from foresail.model.allocation import Part, unit_of
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction, Preempt, Start, Withdraw
from foresail.model.event import (
    MAKES_ROOM,
    Cancelled,
    ClockRead,
    Ended,
    Event,
    Held,
    HistoryOutcome,
    NodeEvent,
    OperatorEvent,
    Released,
    Submitted,
    Tick,
)
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, Outcome
from foresail.model.protocols import ComparesWith, Predictor, Scheduler, capabilities_of_scheduler
from foresail.model.reservation import Rejection, Reservation
from foresail.model.view import PendingJob
from foresail.record.beliefs import belief_of, is_told
from foresail.record.counters import Counters
from foresail.record.jobs_fold import JobsFold
from foresail.record.lessons import (
    Asked,
    AskedAgain,
    JobWithdrawn,
    Lesson,
    Observed,
    ObservedPart,
    Started,
    teach,
)
from foresail.record.plan_fold import PlanFold
from foresail.record.records import (
    Corrected,
    Decided,
    Drained,
    EventTaken,
    Forgotten,
    Instructed,
    Manifest,
    PolicyChanged,
    Predicted,
    Record,
    Remembered,
    Reopened,
    ReservationAnswered,
)
from foresail.record.state import JobState, State, Withdrawn

_LIVING: Final = (JobState.PENDING, JobState.RUNNING)


def folded(records: Iterable[Record], compares_with: ComparesWith | None = None) -> RunFold:
    """Where a run stands after these records, for one that goes on from there.

    Raises
    ------
    KeyError, ImpossibleTransition
        If a record cannot follow from those before.
    """
    fold = RunFold(compares_with)
    for record in records:
        fold.take(record)
        if isinstance(record, Forgotten):
            fold.forget(record.job_ids)
    return fold


class RunFold:
    """Takes a run's records in order, and knows the state of the run after each whole step.

    A belief is as exact as the log keeps it: a point as it was, any other by its quantiles
    (``foresail.record.beliefs``), until a predictor is asked again. Reasons are not kept; the next
    step gives them anew.

    To be read by others: ``policy`` (what decides, in short form), ``jobs`` (what became of
    them), ``state``, ``plan``, ``counters``, ``reservations`` (the answer to every job that
    asked for one), ``draining``, ``steps`` (how many there were), ``now`` (time of the last),
    ``learned_of`` (users whose jobs have ended since the last pass), ``has_news`` (whether
    anything but time has happened since, or was decided by it), ``room_came`` (whether any of that
    may have made room), ``memory`` (what the scheduler
    kept from it, if it told) and ``remembered_on`` (the cluster as it was then).

    Parameters
    ----------
    compares_with
        Makes what is to be told of each passage of a job: the scheduler that will go on, if it
        compares with another schedule. None: nothing is told.
    """

    def __init__(self, compares_with: ComparesWith | None = None) -> None:
        self._compares_with = compares_with
        self._begin(Cluster(()), "", starts_tasks=False)

    def _begin(self, cluster: Cluster, policy: str, *, starts_tasks: bool) -> None:
        self.policy = policy
        self.jobs = JobsFold()
        self.plan = PlanFold()
        self.counters = Counters()
        self.reservations: dict[str, Reservation | Rejection] = {}
        self.draining = False
        self.steps = 0
        self.now = 0.0
        self.learned_of: set[str | None] = set()
        self.has_news = True
        self.room_came = True
        self.memory: Mapping[str, Any] | None = None
        self.remembered_on = cluster
        self._lessons: dict[tuple[object, ...], Lesson] = {}
        self._recalled = 0
        compared = self._compares_with
        reference = None if compared is None else compared.reference(cluster)
        self._state = State(cluster, starts_tasks=starts_tasks, reference=reference)
        self._submitted: dict[str, Job] = {}
        self._arriving: PendingJob | None = None
        self._wishes: dict[str, list[Event]] = {}  # of the step in which their jobs were submitted
        self._believed: set[str] = set()  # of whom the state does not have the latest belief

    @property
    def state(self) -> State:
        """Which jobs wait, run and have ended."""
        self._arrive()
        first, latest = self.jobs.first_beliefs, self.jobs.beliefs
        for job_id in self._believed:
            if self._state.of(job_id) in _LIVING:
                beliefs = belief_of(first[job_id]), belief_of(latest[job_id])
                self._state.believe_again(job_id, *beliefs)
        self._believed.clear()
        return self._state

    @property
    def has_parts(self) -> bool:
        """Whether a job that waits or runs starts in parts."""
        self._arrive()
        return self._state.has_parts

    @property
    def compares(self) -> bool:
        """Whether a schedule that is compared with is told of each passage of a job."""
        return self._state.reference is not None

    @property
    def lessons(self) -> Sequence[Lesson]:
        """What the predictor was asked and told, in order.

        Of what it was asked again, which teaches it nothing, the last of each job that waits or
        runs.
        """
        return tuple(self._lessons.values())

    def teach(self, predictor: Predictor) -> None:
        """Bring a fresh predictor to where the run's was.

        What it believes takes the place of what the log keeps of beliefs, where that is the same:
        another version, or one that knows other earlier runs, may believe something else.
        """
        self._arrive()
        first, latest = self.jobs.first_beliefs, self.jobs.beliefs
        for job_id, beliefs in teach(predictor, self.lessons).items():
            if (
                self._state.of(job_id) in _LIVING
                and is_told(beliefs.first, first[job_id])
                and (
                    (beliefs.latest is beliefs.first and latest[job_id] is first[job_id])
                    or is_told(beliefs.latest, latest[job_id])
                )
            ):
                self._state.believe_again(job_id, beliefs.first, beliefs.latest)
                self._believed.discard(job_id)

    def tell_ends(self, scheduler: Scheduler) -> None:
        """Tell a fresh scheduler of parts that have ended, and of restarts, if it wants to know."""
        can = capabilities_of_scheduler(scheduler)
        for lesson in self.lessons:
            match lesson:
                case ObservedPart(job=job, outcome=outcome) if can.observes_tasks is not None:
                    can.observes_tasks.part_ended(job, outcome)
                case Observed(job=job, outcome=outcome) if (
                    can.observes_restarts is not None and outcome.ended_because in GOES_BACK
                ):
                    can.observes_restarts.went_back(job, outcome)

    @property
    def promised(self) -> tuple[Reservation, ...]:
        """Reservations of jobs that wait or run, in the order in which they were made."""
        return tuple(
            answer
            for job_id, answer in self.reservations.items()
            if isinstance(answer, Reservation) and self._state.of(job_id) in _LIVING
        )

    def take(self, record: Record) -> None:
        """Take the next record.

        Raises
        ------
        KeyError, ImpossibleTransition
            If it cannot follow from those before.
        """
        if not isinstance(record, ReservationAnswered):
            self._arrive()
        match record:
            case Manifest(cluster=cluster, policy=policy):
                self._begin(cluster, policy, starts_tasks=record.starts_tasks)
            case PolicyChanged(policy=policy):
                self.policy, self.has_news, self.memory = policy, True, None
                self._state.starts_tasks = record.starts_tasks
            case EventTaken(step=step, time=now, event=event):
                self.steps, self.now = step + 1, now
                begun = self._state.let_begin(now)
                self.has_news = self.has_news or begun or not isinstance(event, ClockRead | Tick)
                self.room_came = self.room_came or type(event) in MAKES_ROOM
                self._happen(event, now)
            case Predicted():
                self._believe(record)
            case Instructed(time=now, instruction=instruction):
                self._state.let_begin(now)  # where the event by which it came is not kept
                self._obey(instruction, now)
            case Corrected():
                self._state.correct(unit_of(record), record.next_seconds, record.count)
            case Decided():
                self.learned_of.clear()
                self.has_news = record.starts != () or record.preemptions != ()
                self.room_came = False
            case ReservationAnswered(job_id=job_id, answer=answer):
                self.reservations[job_id] = answer
                if self._arriving is not None:
                    self._arriving = replace(self._arriving, reservation=answer)
            case Drained():
                self.draining = True
            case Reopened():
                self.draining, self.has_news = False, True
            case Remembered(memory=memory):
                self.memory, self.remembered_on = memory, self._state.cluster
        self.jobs.take(record)
        if not isinstance(record, EventTaken | Predicted):  # as most are
            self.counters.take(record)
            self.plan.take(record)

    def forget(self, job_ids: Collection[str]) -> None:
        """Know nothing more of jobs that have ended, nor what could be learned of them."""
        gone = set(job_ids)
        self.jobs.forget(gone)
        self._state.forget(gone)
        self._believed -= gone
        for job_id in gone:
            self.reservations.pop(job_id, None)
        self._lessons = {
            key: lesson
            for key, lesson in self._lessons.items()
            if key[0] == "recalled" or lesson.job.job_id not in gone
        }

    def _happen(self, event: Event, now: float) -> None:
        state = self._state
        match event:
            case Submitted(job=job):
                self._submitted[job.job_id] = job
                self._lessons["asked", job.job_id] = Asked(job, now)
            case Held() | Released() if event.job_id in self._submitted:
                self._wishes.setdefault(event.job_id, []).append(event)  # its belief comes first
            case Ended(outcome=outcome):
                self._end(outcome, now)
            case Cancelled(job_id=job_id):
                self._cancel(job_id, now)
            case Held(job_id=job_id, by=by):
                state.hold(job_id, now, by)
            case Released(job_id=job_id):
                state.release(job_id, now)
            case HistoryOutcome(job=job, outcome=outcome):
                self._recalled += 1
                self._lessons["recalled", self._recalled] = Observed(job, outcome)
            case _ if isinstance(event, NodeEvent):
                state.change_nodes(event)
            case _ if isinstance(event, OperatorEvent):
                state.operate(event)

    def _cancel(self, job_id: str, now: float) -> None:
        if self._state.of(job_id) is JobState.PENDING:
            self._gone(self.jobs.submitted[job_id], now)
        self._withdraw(self._state.cancel(job_id, now), now)

    def _withdraw(self, withdrawn: Iterable[Withdrawn], now: float) -> None:
        for each in withdrawn:
            self._gone(each.job, now)

    def _gone(self, job: Job, now: float) -> None:
        self._lessons.pop(("asked again", job.job_id), None)
        self._lessons["withdrawn", job.job_id] = JobWithdrawn(job, now)

    def _end(self, outcome: Outcome, now: float) -> None:
        if outcome.stage:
            self._end_part(outcome, now)
            return
        running = self._state.running.get(outcome.job_id)
        if outcome.ended_because in GOES_BACK:
            self._state.requeue(outcome.job_id, now)
        else:
            self._withdraw(self._state.end(outcome.job_id, outcome.ended_because, now), now)
        if running is not None:
            lived = replace(outcome, slowdown=running.slowdown)
            attempt = self.jobs.attempts[outcome.job_id]
            self._lessons.pop(("asked again", outcome.job_id), None)
            self._lessons["ended", outcome.job_id, attempt] = Observed(running.job, lived)
            self.learned_of.add(running.job.user)

    def _end_part(self, outcome: Outcome, now: float) -> None:
        state, part = self._state, Part(outcome.job_id, outcome.stage, outcome.tasks)
        running, parts = state.running.get(part), state.parts_of(part.job_id)
        self._withdraw(state.end_part(part, outcome.ended_because, now), now)
        if running is None or parts is None:
            return
        lived = replace(outcome, slowdown=running.slowdown)
        self._lessons["ended", part, self.jobs.attempts[part]] = ObservedPart(running.job, lived)
        if parts.ended_because is not None:
            whole = Observed(running.job, parts.outcome(outcome))
            self._lessons["ended", part.job_id] = whole
            self.learned_of.add(running.job.user)

    def _believe(self, record: Predicted) -> None:
        """The first belief makes a submitted job one that waits; the latest one replaces it."""
        job = self._submitted.pop(record.job_id, None)
        self._believed.add(record.job_id)
        if job is None:
            key = ("asked again", record.job_id)
            self._lessons.pop(key, None)
            self._lessons[key] = AskedAgain(self.jobs.submitted[record.job_id], record.time)
        else:
            arrival, belief = self._state.submissions, Point(record.mean_seconds)
            self._arriving = PendingJob(job, arrival, belief, record.planned_seconds)

    def _arrive(self) -> None:
        """Let the job wait whose belief was the last record, and maybe its reservation."""
        if self._arriving is not None:
            pending, self._arriving = self._arriving, None
            self._withdraw(self._state.submit(pending, self.now), self.now)
            for wish in self._wishes.pop(pending.job.job_id, ()):
                self._happen(wish, self.now)

    def _obey(self, instruction: Instruction, now: float) -> None:
        state = self._state
        match instruction:
            case Start(job_id=job_id, placement=placement):
                running = state.start(unit_of(instruction), placement, now)
                if state.begins_its_job(running):
                    key = ("started", job_id, self.jobs.attempts.get(job_id))
                    self._lessons[key] = Started(running.job, now)
            case Preempt():
                state.stop(unit_of(instruction))
            case Withdraw(job_id=job_id):
                if state.of(job_id) is JobState.PENDING:  # not with what it depends on
                    self._cancel(job_id, now)
