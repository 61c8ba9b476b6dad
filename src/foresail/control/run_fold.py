"""The state of a run, folded from its records: what happened and what was instructed.

Nothing is decided: no scheduler, predictor or correction is asked. Whatever version of them wrote
the records, the state is the one that their run was in.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from foresail.control.beliefs import belief_of
from foresail.control.counters import Counters
from foresail.control.jobs_fold import JobsFold
from foresail.control.plan_fold import PlanFold
from foresail.control.records import (
    Corrected,
    Counted,
    Decided,
    Drained,
    EventTaken,
    Instructed,
    Manifest,
    Predicted,
    Record,
    Refused,
    Reopened,
    ReservationAnswered,
)
from foresail.control.state import JobState, State
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction, Preempt, Start, Withdraw
from foresail.model.event import (
    Cancelled,
    Ended,
    Event,
    HistoryOutcome,
    NodeDown,
    NodeUp,
    Submitted,
)
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, Outcome
from foresail.model.reservation import Rejection, Reservation
from foresail.model.view import PendingJob


class RunFold:
    """Takes a run's records in order, and knows the state of the run after each whole step.

    A belief is as exact as the log keeps it: a point as it was, any other by its quantiles
    (``foresail.control.beliefs``). Reasons are not kept; the next step gives them anew.

    To be read by others: ``jobs`` (what became of them), ``state``, ``plan``, ``counters``,
    ``reservations`` (the answer to every job that asked for one), ``draining``, ``steps`` (how
    many there were), ``now`` (time of the last), ``learned_of`` (users whose jobs have ended since
    the last pass), ``observations`` (what there was to learn, in order).
    """

    def __init__(self) -> None:
        self._begin(Cluster(()))

    def _begin(self, cluster: Cluster) -> None:
        self.jobs = JobsFold()
        self.plan = PlanFold()
        self.counters = Counters()
        self.reservations: dict[str, Reservation | Rejection] = {}
        self.draining = False
        self.steps = 0
        self.now = 0.0
        self.learned_of: set[str | None] = set()
        self.observations: list[tuple[Job, Outcome]] = []
        self._state = State(cluster)
        self._submitted: dict[str, Job] = {}
        self._arriving: PendingJob | None = None
        self._beliefs: dict[str, Predicted] = {}

    @property
    def state(self) -> State:
        """Which jobs wait, run and have ended."""
        self._arrive()
        for job_id, record in self._beliefs.items():
            self._state.believe(job_id, belief_of(record))
        self._beliefs.clear()
        return self._state

    @property
    def promised(self) -> tuple[Reservation, ...]:
        """Reservations of jobs that wait or run, in the order in which they were made."""
        living = (JobState.PENDING, JobState.RUNNING)
        return tuple(
            answer
            for job_id, answer in self.reservations.items()
            if isinstance(answer, Reservation) and self._state.of(job_id) in living
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
            case Manifest(cluster=cluster):
                self._begin(cluster)
            case EventTaken(step=step, time=now, event=event):
                self.steps, self.now = step + 1, now
                self._happen(event, now)
            case Predicted():
                self._believe(record)
            case Instructed(time=now, instruction=instruction):
                self._obey(instruction, now)
            case Corrected(job_id=job_id):
                self._state.correct(job_id, record.next_seconds, record.count)
                self.counters.corrections += 1
            case Decided():
                self.learned_of.clear()
                self.counters.passes += 1
                self.counters.delayed_heads += record.head_delayed
            case ReservationAnswered(job_id=job_id, answer=answer):
                self.reservations[job_id] = answer
                if self._arriving is not None:
                    self._arriving = replace(self._arriving, reservation=answer)
            case Refused():
                self.counters.refusals += 1
            case Drained():
                self.draining = True
            case Reopened():
                self.draining = False
            case Counted():
                self.counters = Counters(**asdict(record))
        self.jobs.take(record)
        self.plan.take(record)

    def _happen(self, event: Event, now: float) -> None:
        state = self._state
        match event:
            case Submitted(job=job):
                self._submitted[job.job_id] = job
            case Ended(outcome=outcome):
                self._end(outcome, now)
            case Cancelled(job_id=job_id):
                self._beliefs.pop(job_id, None)
                state.cancel(job_id, now)
            case HistoryOutcome(job=job, outcome=outcome):
                self.observations.append((job, outcome))
            case NodeDown(node=node):
                state.capacity.close(node)
            case NodeUp(node=node):
                state.capacity.open(node)

    def _end(self, outcome: Outcome, now: float) -> None:
        running = self._state.running.get(outcome.job_id)
        if outcome.ended_because in GOES_BACK:
            self._state.requeue(outcome.job_id, now)
        else:
            self._state.end(outcome.job_id, outcome.ended_because, now)
        if running is not None:
            lived = replace(outcome, slowdown=running.slowdown)
            self.observations.append((running.job, lived))
            self.learned_of.add(running.job.user)

    def _believe(self, record: Predicted) -> None:
        """The first belief makes a submitted job one that waits; the latest one replaces it."""
        job = self._submitted.pop(record.job_id, None)
        if job is None:
            self._beliefs[record.job_id] = record
        else:
            arrival, belief = self._state.submissions, belief_of(record)
            self._arriving = PendingJob(job, arrival, belief, record.planned_seconds)

    def _arrive(self) -> None:
        """Let the job wait whose belief was the last record, and maybe its reservation."""
        if self._arriving is not None:
            pending, self._arriving = self._arriving, None
            self._state.submit(pending, self.now)

    def _obey(self, instruction: Instruction, now: float) -> None:
        state = self._state
        match instruction:
            case Start(job_id=job_id, placement=placement):
                refreshed = self._beliefs.pop(job_id, None)
                if refreshed is not None:
                    state.believe(job_id, belief_of(refreshed))
                state.start(job_id, placement, now)
            case Preempt(job_id=job_id):
                state.stop(job_id)
            case Withdraw(job_id=job_id):
                self._beliefs.pop(job_id, None)
                if state.of(job_id) is JobState.PENDING:  # not with what it depends on
                    state.cancel(job_id, now)
