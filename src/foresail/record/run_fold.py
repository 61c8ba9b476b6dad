"""The state of a run, folded from its records: what happened and what was instructed.

Nothing is decided: no scheduler, predictor or correction is asked. Whatever version of them wrote
the records, the state is the one that their run was in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from foresail.model import event as events
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction, Start, Withdraw
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.protocols import Predictor, Scheduler
from foresail.model.view import PendingJob, Rejection, Reservation, RunningJob
from foresail.record import beliefs as learned
from foresail.record import records as logged
from foresail.record.beliefs import CallKind
from foresail.record.job_life import ImpossibleTransition, JobHistory, JobState, Withdrawn
from foresail.record.plans import PlanFold
from foresail.record.state import State

_LIVING: Final = (JobState.PENDING, JobState.RUNNING)


def folded(records: Iterable[logged.Record], compares_with: Scheduler | None = None) -> RunFold:
    """Fold records into the state of a run, for one that goes on from there.

    Raises ``KeyError, ImpossibleTransition`` if a record cannot follow from those before.
    """
    fold = RunFold(compares_with)
    for record in records:
        fold.take(record)
        if isinstance(record, logged.Forgotten):
            fold.forget(record.job_ids)
    return fold


def misfit(error: KeyError | ImpossibleTransition) -> InputError:
    """The error of a fold as one of the file that it was handed."""
    return InputError(
        f"the log does not fit together: {error}",
        value=getattr(error, "job_id", error.args[0]),
        expected="a whole event log",
    )


class RunFold:
    """Takes a run's records in order, and knows the state of the run after each whole step.

    A belief is as exact as the log keeps it: a point as it was, any other by its quantiles
    (``foresail.record.beliefs``), until a predictor is asked again. Reasons are not kept; the next
    step gives them anew.

    To be read by others: ``policy`` (what decides, in short form), ``state``, ``plan``,
    ``counters``, ``reservations`` (the answer to every job that asked for one), ``draining``,
    ``steps`` (how many there were), ``now`` (time of the last), ``learned_of`` (users whose jobs
    have ended since the last pass), ``has_news`` (anything but time has happened since, or was
    decided by it), ``room_came`` (any of that may have made room), ``memory`` (what the scheduler
    kept from it, if it said) and ``remembered_on`` (the cluster as it was then).

    Parameters
    ----------
    compares_with
        Makes the schedule that follows each event of a job: the scheduler that will go on, if it
        compares with another schedule. None: none follows.
    """

    def __init__(self, compares_with: Scheduler | None = None) -> None:
        self._compares_with = compares_with
        self._begin(Cluster(()), "", starts_tasks=False)

    def _begin(self, cluster: Cluster, policy: str, *, starts_tasks: bool) -> None:
        self.policy = policy
        self.counters = logged.Counters()
        self.reservations: dict[str, Reservation | Rejection] = {}
        self.draining = False
        self.steps = 0
        self.now = 0.0
        self.learned_of: set[str | None] = set()
        self.has_news = True
        self.room_came = True
        self.memory: Mapping[str, Any] | None = None
        self.remembered_on = cluster
        self._plan = PlanFold()
        self._calls: dict[tuple[object, ...], learned.PredictorCall] = {}
        self._recalled = self._changes = 0
        compared = self._compares_with
        reference = None if compared is None else compared.reference(cluster)
        self.history = JobHistory()
        self._state = State(
            cluster, starts_tasks=starts_tasks, reference=reference, history=self.history
        )
        self._awaited: deque[events.Submitted | events.JobChanged]  # whose beliefs are to come
        self._awaited = deque()
        self._arriving: PendingJob | None = None
        self._later: list[events.Event] = []  # of the step, behind one of these jobs

    @property
    def state(self) -> State:
        """Return which jobs wait, run and have ended."""
        self._arrive()
        return self._state

    @property
    def plan(self) -> PlanFold:
        """Return what is planned: nothing where no job may start."""
        if self.state.unavailable or not self.state.startable:
            self._plan.void()
        return self._plan

    @property
    def has_parts(self) -> bool:
        """Return whether a job that waits or runs starts in parts."""
        self._arrive()
        return self._state.has_parts

    @property
    def compares(self) -> bool:
        """Return whether the schedule that is compared with follows each event of a job."""
        return self._state.reference is not None

    @property
    def predictor_calls(self) -> Sequence[learned.PredictorCall]:
        """The calls of the predictor that matter, in order.

        Of those that made a belief anew, which teach nothing, the last of each job that waits or
        runs.
        """
        return tuple(self._calls.values())

    def teach(self, predictor: Predictor) -> None:
        """Bring a fresh predictor to where the run's was.

        What it believes takes the place of what the log keeps of beliefs, where that is the same:
        another version, or one that knows other earlier runs, may believe something else.
        """
        state = self.state
        for job_id, beliefs in learned.teach(predictor, self.predictor_calls).items():
            if state.stage_of(job_id) in _LIVING:
                first, latest = state.submitted_job(job_id).prediction, state.belief(job_id)
                unchanged = beliefs.latest is beliefs.first and latest is first
                if learned.is_alike(beliefs.first, first) and (
                    unchanged or learned.is_alike(beliefs.latest, latest)
                ):
                    state.believe_again(job_id, beliefs.first, beliefs.latest)

    def report_ends(self, scheduler: Scheduler) -> None:
        """Report ended parts, and restarts, to a fresh scheduler that observes these."""
        for call in self.predictor_calls:
            match call:
                case learned.Observed(job=job, outcome=outcome, is_part=True):
                    scheduler.part_ended(job, outcome)
                case learned.Observed(job=job, outcome=outcome) if (
                    outcome.ended_because in events.REQUEUED
                ):
                    scheduler.requeued(job, outcome)

    @property
    def promised(self) -> tuple[Reservation, ...]:
        """Reservations of jobs that wait or run, in the order in which they were made."""
        return tuple(
            answer
            for job_id, answer in self.reservations.items()
            if isinstance(answer, Reservation) and self._state.stage_of(job_id) in _LIVING
        )

    def take(self, record: logged.Record) -> None:
        """Take the next record.

        Raises ``KeyError, ImpossibleTransition`` if it cannot follow from those before.
        """
        if not isinstance(record, logged.ReservationAnswered):
            self._arrive()
        match record:
            case logged.Manifest(cluster=cluster, policy=policy):
                self._begin(cluster, policy, starts_tasks=record.starts_tasks)
            case logged.PolicyChanged(policy=policy):
                self.policy, self.has_news, self.memory = policy, True, None
                self._state.starts_tasks = record.starts_tasks
            case logged.EventTaken(step=step, time=now, event=event):
                if step >= self.steps and (self._state.unavailable or not self._state.startable):
                    self._plan.void()
                self.steps, self.now = step + 1, now
                begun = self._state.begin_step(now)
                self.has_news = (
                    self.has_news or begun or not isinstance(event, events.ClockRead | events.Tick)
                )
                self.room_came = self.room_came or type(event) in events.MAKES_ROOM
                if self._awaited and not isinstance(event, events.Submitted | events.JobChanged):
                    self._later.append(event)
                else:
                    self._happen(event, now)
            case logged.Predicted():
                self._believe(record)
            case logged.Instructed(time=now, instruction=instruction):
                self._state.let_begin(now)  # where the event by which it came is not kept
                self._obey(instruction, now)
            case logged.Corrected():
                unit, known = events.unit_of(record), self._state.stage_of(record.job_id)
                if unit in self._state.running or known is JobState.ABSENT:  # else it ended at once
                    self._state.correct(unit, record.next_seconds, record.count)
            case logged.Decided():
                self.learned_of.clear()
                self.has_news = record.starts != () or record.preemptions != ()
                self.room_came = False
            case logged.ReservationAnswered(job_id=job_id, answer=answer):
                self.reservations[job_id] = answer
                if self._arriving is not None:
                    self._arriving = replace(self._arriving, reservation=answer)
            case logged.Drained():
                self.draining = True
            case logged.Reopened():
                self.draining, self.has_news = False, True
            case logged.Remembered(memory=memory):
                self.memory, self.remembered_on = memory, self._state.cluster
        if not isinstance(record, logged.EventTaken | logged.Predicted):  # as most are
            self.counters.take(record)
            self._plan.take(record)

    def forget(self, job_ids: Collection[str]) -> None:
        """Know nothing more of jobs that have ended, nor what could be learned of them."""
        gone = set(job_ids)
        self._state.forget(gone)
        for job_id in gone:
            self.reservations.pop(job_id, None)
        self._calls = {
            key: call
            for key, call in self._calls.items()
            if key[0] == "recalled" or call.job.job_id not in gone
        }

    def _happen(self, event: events.Event, now: float) -> None:
        match event:
            case events.Submitted(job=job):
                self._awaited.append(event)
                self._calls["asked", job.job_id] = learned.Asked(CallKind.ASKED, job, now)
            case events.JobChanged(job_id=job_id):
                is_new = any(each.job.job_id == job_id for each in self._awaited)
                if is_new or self._state.stage_of(job_id) in _LIVING:
                    self._awaited.append(event)
            case events.Ended(outcome=outcome):
                self._end(outcome, now)
            case events.Began():
                was_running = events.unit_of(event) in self._state.running
                running = self._state.begin(event, now)
                if not was_running and self._state.begins_its_job(running):
                    self._start(running, event.start_seconds)
            case events.NotStarted(job_id=job_id):
                job = self._state.submitted_job(job_id).job
                withdrawn = self._state.unstart(event, now)
                if job_id in self._state.ended:
                    self._withdraw_job(job, now)
                elif self._state.nothing_begun(job_id):
                    self._calls.pop(("asked again", job_id), None)
                    key = ("not begun", events.unit_of(event), event.attempt)
                    self._calls[key] = learned.Asked(CallKind.NOT_BEGUN, job, now)
                self._withdraw(withdrawn, now)
            case events.Cancelled(job_id=job_id, by=by):
                self._cancel(job_id, now, by)
            case events.HistoryOutcome(job=job, outcome=outcome):
                self._recalled += 1
                self._calls["recalled", self._recalled] = learned.Observed(job, outcome)
                self.history.earlier.append((job, outcome))
            case _:
                self._state.apply(event, now)

    def _start(self, running: RunningJob, now: float) -> None:
        key = ("started", running.unit, running.attempt)
        self._calls[key] = learned.Asked(CallKind.STARTED, running.job, now)

    def _cancel(self, job_id: str, now: float, by: str = "") -> None:
        if self._state.stage_of(job_id) is JobState.PENDING:
            self._withdraw_job(self._state.submitted_job(job_id).job, now)
        self._withdraw(self._state.cancel(job_id, now, by), now)

    def _withdraw(self, withdrawn: Iterable[Withdrawn], now: float) -> None:
        for each in withdrawn:
            self._withdraw_job(each.job, now)

    def _withdraw_job(self, job: Job, now: float) -> None:
        self._calls.pop(("asked again", job.job_id), None)
        self._calls["withdrawn", job.job_id] = learned.Asked(CallKind.WITHDRAWN, job, now)

    def _end(self, outcome: events.Outcome, now: float) -> None:
        end = self._state.end(outcome, now)
        self._withdraw(end.withdrawn, now)
        job, key = end.running.job, ("ended", end.running.unit, end.running.attempt)
        if end.parts is None:
            self._calls.pop(("asked again", job.job_id), None)
            self._calls[key] = learned.Observed(job, end.outcome)
            self.learned_of.add(job.user)
            return
        self._calls[key] = learned.Observed(job, end.outcome, is_part=True)
        if end.whole is not None:
            self._calls["ended", job.job_id] = learned.Observed(job, end.whole)
            self.learned_of.add(job.user)

    def _believe(self, record: logged.Predicted) -> None:
        """The first belief makes a submitted job one that waits; the latest one replaces it."""
        job_id, state, belief = record.job_id, self._state, learned.belief_of(record)
        if self._awaited and self._awaited[0].job.job_id == job_id:
            event = self._awaited.popleft()
            known = PendingJob(event.job, state.submissions, belief, record.planned_seconds)
            if isinstance(event, events.Submitted):
                self._arriving = known
            else:
                self._change(known, record.time)
                self._go_on()
        elif state.stage_of(job_id) in _LIVING:  # what followed in the step has not ended it
            first = state.submitted_job(job_id)
            state.believe_again(job_id, first.prediction, belief)
            key = ("asked again", job_id)
            self._calls.pop(key, None)
            self._calls[key] = learned.Asked(CallKind.ASKED_AGAIN, first.job, record.time)

    def _change(self, known: PendingJob, now: float) -> None:
        job_id = known.job.job_id
        before, job = self._state.submitted_job(job_id).job, self._state.changed(known.job, now)
        assert job is not None, "it lives"
        units = self._state.change(replace(known, job=job), now)
        self._changes += 1
        self._calls.pop(("asked again", job_id), None)
        self._calls["changed from", self._changes] = learned.Asked(CallKind.WITHDRAWN, before, now)
        self._calls["changed to", self._changes] = learned.Asked(CallKind.ASKED, job, now)
        if units:
            self._calls["changed, and runs", self._changes] = learned.Asked(
                CallKind.STARTED, job, now
            )

    def _arrive(self) -> None:
        """Let the job wait whose belief was the last record, and maybe its reservation."""
        if self._arriving is not None:
            pending, self._arriving = self._arriving, None
            self._withdraw(self._state.submit(pending, self.now), self.now)
            self._go_on()

    def _go_on(self) -> None:
        """Let happen what was behind jobs whose beliefs have come."""
        if not self._awaited:
            later, self._later = self._later, []
            for event in later:
                self._happen(event, self.now)

    def _obey(self, instruction: Instruction, now: float) -> None:
        state = self._state
        match instruction:
            case Start(placement=placement):
                running = state.start(events.unit_of(instruction), placement, now)
                if state.begins_its_job(running):
                    self._start(running, now)
            case Withdraw(job_id=job_id, because=because):
                if state.stage_of(job_id) is JobState.PENDING:  # not with what it depends on
                    self._cancel(job_id, now)
                state.note_withdrawn(job_id, because)
            case _:
                state.apply(instruction, now)
