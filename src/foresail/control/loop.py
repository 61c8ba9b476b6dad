"""The controller: takes events, lets predictors learn and predict, asks the scheduler, checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Final, get_args

from foresail.control import check, plug_in_errors
from foresail.control.departures import Departures, earliest_begin
from foresail.control.step_log import StepLog
from foresail.control.waiting_reasons import WaitingReasons
from foresail.model import decision as decisions
from foresail.model import event as news
from foresail.model.cluster import Cluster
from foresail.model.job import Job
from foresail.model.protocols import Correction, Predictor, ReferenceSchedule, Scheduler
from foresail.model.view import ClusterView, PendingJob, Rejection, Reservation, RunningJob
from foresail.record.job_life import JobHistory, JobState, PartsOfJob, Withdrawn
from foresail.record.records import Counters, EventLog, NullLog
from foresail.record.run_fold import RunFold
from foresail.record.state import State, Visible


def _ranked(*groups: Iterable[type[news.Event]]) -> Mapping[type[news.Event], int]:
    return {kind: rank for rank, group in enumerate(groups) for kind in group}


_KNOWN: Final = (news.ClockRead, news.HistoryOutcome)
_OF_NO_PARTITION: Final = (news.EstimateExpired, *_KNOWN)
_OF_NODES: Final = get_args(
    news.NodeEvent
    | news.Occupied
    | news.OperatorEvent
    | news.ClusterUnavailable
    | news.ClusterAvailable
)
_JOBS: Final = (
    (news.EstimateExpired,),
    (news.Cancelled,),
    (news.Submitted,),
    (news.JobChanged,),
    (news.Held, news.Released),
    (news.Began,),
)
_ENDS_FIRST: Final = _ranked(_KNOWN, (news.Ended, news.NotStarted), _OF_NODES, *_JOBS, (news.Tick,))
_SUBMISSIONS_FIRST: Final = _ranked(
    _KNOWN, *_JOBS, (news.Ended, news.NotStarted), _OF_NODES, (news.Tick,)
)


_MOST_CORRECTIONS: Final = 100_000
"""Corrections of one estimate; a correction that takes more does not get anywhere."""


class Controller:
    """The one loop of simulations and live clusters: events in, instructions out.

    It performs no input or output (but for what the log it is given does), reads no clock and uses
    no randomness: equal steps give equal instructions.

    A job depends on those of ``Job.after`` as Slurm's ``afterok`` has it: it may start once all of
    them have completed, and is withdrawn as soon as one of them has ended in another way; its
    ``conditions`` may want otherwise. No scheduler sees a job before it may start. A job that the
    empty cluster has no room for waits for ever, with a reason. An attempt that was preempted or
    lost is observed by the predictor as such: its runtime is only a lower bound, which must not be
    learned as a completed one; the job keeps its prediction and is requeued in its place.
    A job whose stages and tasks start apart lives in parts, under a scheduler that starts
    these (``starts_tasks``); it is observed once, when its last part has ended, and ends with it.
    If one fails, the job has failed, and what runs of it is stopped. Where nodes come and go, a job
    may be too wide for what is left, and no longer so once others have come.

    ``conventions`` give the order of things at the same instant; records of everything go to
    ``log``.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheduler: Scheduler,
        predictor: Predictor,
        correction: Correction,
        conventions: news.Conventions = news.STANDARD,
        log: EventLog | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.predictor = predictor
        self.correction = correction
        self.conventions = conventions
        self.counters = Counters()
        self.first_refusal: decisions.Refusal | None = None
        self.reservations: dict[str, Reservation | Rejection] = {}
        """The answer to every job that has asked for a reservation, by id; to be read only."""
        self._refreshes = predictor.refreshes_predictions
        self._learned_of: set[str | None] = set()
        self._has_news = True
        self._room_came = True
        self._touched: dict[str, bool] | None = None
        self._let_through = False
        writes = log is not None and not isinstance(log, NullLog)
        self.state = State(
            cluster,
            starts_tasks=scheduler.starts_tasks,
            reference=scheduler.reference(cluster),
            history=JobHistory() if writes else None,
        )
        """State of waiting, running and ended jobs; to be read only."""
        self._reasons = WaitingReasons(self.state)
        self._log: StepLog | None = None
        if log is not None and writes:
            self._log = StepLog(log, self.state, self._reasons)
        self.now = 0.0
        """Time (seconds) of the last step."""
        self.names_nodes = True
        """Tasks get nodes where there are some; False where the cluster chooses these itself."""
        self._assigned = check.Assignment()
        self._departures: Departures | None = None
        self._planned: Sequence[decisions.PlannedStart] = ()
        self._head: decisions.PlannedStart | None = None
        self._instructions: list[decisions.Instruction] = []
        self._ranks = _ENDS_FIRST if conventions.ties == "ends_first" else _SUBMISSIONS_FIRST
        self._frees_at_ends = conventions.free == "actual"
        self._passes_per_event = conventions.passes == "per_event"
        self._passes_per_tick = conventions.passes == "per_tick"

    @property
    def cluster(self) -> Cluster:
        """Return the nodes and capacity that jobs run on."""
        return self.state.cluster

    @property
    def pending(self) -> tuple[PendingJob, ...]:
        """All pending jobs, those that may not start yet (or ever) among them, by arrival."""
        return tuple(self.state.pending())

    @property
    def running(self) -> Mapping[news.Unit, RunningJob]:
        """Return what runs, whole jobs by id, in order of start; to be read only."""
        return self.state.running

    @property
    def plan(self) -> dict[str, float]:
        """Planned start (seconds) by job id, as the last scheduling pass left it."""
        return {each.job_id: each.start_seconds for each in self._planned}

    @property
    def compares_with(self) -> Scheduler | None:
        """The scheduler, if it compares with another schedule."""
        return self.scheduler if self.scheduler.compares else None

    @property
    def draining(self) -> bool:
        """Return whether nothing new is started any more."""
        return self._reasons.draining

    def drain(self) -> None:
        """Start nothing new from the next step on; what runs runs to its end."""
        self._reasons.draining = True
        if self._log is not None:
            self._log.drained()

    def reopen(self) -> None:
        """Start jobs again from the next step on: the end of a drain."""
        self._reasons.draining = False
        self._has_news = True
        if self._log is not None:
            self._log.reopened()

    def forget_ended(self, latest: int) -> None:
        """Know nothing more of jobs that ended long ago, but for so many of the latest.

        Jobs that others wait for are kept. What predictors and schedulers have learned, they keep.
        """
        job_ids = self.state.long_ended(latest)
        if not job_ids:
            return
        self.state.forget(job_ids)
        for job_id in job_ids:
            self.reservations.pop(job_id, None)
        if self._log is not None:
            self._log.forgotten(job_ids)

    def take_over(self, run: RunFold) -> None:
        """Go on from where a run stood, by its records; nothing is decided anew.

        The predictor, which is to know what was known when the run began, is asked and taught again
        what was asked and learned since; the scheduler is handed what it kept and had promised. The
        fold, made with ``compares_with``, has brought up to date what it compares with.

        Raises ``InputError`` if jobs live in parts, and the scheduler does not start these,
        ``ValueError`` if only one of the two, scheduler or fold, compares with another schedule.
        """
        self._require_fit(run.has_parts)
        if run.compares is (self.compares_with is None):
            raise ValueError("the fold was made for a scheduler that compares otherwise")
        run.teach(self.predictor)
        run.report_ends(self.scheduler)
        self.state = run.state
        if run.state.reference is not None:
            for job_id, due in run.state.reference.found(run.plan.made_at):
                run.state.falls_due(job_id, due)
        self._has_news, self._room_came = run.has_news, run.room_came
        self._touched = {} if len(run.state.cluster.partitions) > 1 else None
        self.counters = run.counters
        self.reservations = run.reservations
        self._reasons = WaitingReasons(run.state)
        self._reasons.draining = run.draining
        self.now = run.now
        self._planned = run.plan.planned()
        self._head = next((each for each in self._planned if each.job_id == run.plan.head), None)
        self._learned_of = set(run.learned_of)
        if self._log is None:
            self.state.history = None
        else:
            self._log.take_over(run, self._reasons)
        if run.memory is not None:
            self.scheduler.remember(run.memory, run.remembered_on)
        promised = [each for each in run.promised if each.end_seconds > run.now]
        self.scheduler.take_over(promised, run.state.cluster)

    def _require_fit(self, has_parts: bool) -> None:
        if has_parts and not self.scheduler.starts_tasks:
            raise plug_in_errors.no_parts()

    def fork(
        self, scheduler: Scheduler, predictor: Predictor, correction: Correction
    ) -> Controller:
        """Another that goes on from here by itself, under other parts, and writes no log.

        The predictor is to know what there is to know by now, and which jobs run. A scheduler of
        the same kind is handed what this one keeps, and any that promises what was promised.
        """
        twin = Controller(self.cluster, scheduler, predictor, correction, self.conventions)
        twin._require_fit(self.state.has_parts)
        reference = twin._reference_after(self)
        twin.state = self.state.copy()
        twin.state.reference = reference
        twin.counters = replace(self.counters)
        twin.reservations = dict(self.reservations)
        twin._reasons = WaitingReasons(twin.state)
        twin._reasons.draining = self.draining
        twin.now = self.now
        twin._planned, twin._head = self._planned, self._head
        twin._learned_of, twin._has_news = set(self._learned_of), self._has_news
        twin._let_through, twin._room_came = self._let_through, self._room_came
        twin._touched = copy(self._touched)
        if type(self.scheduler) is type(scheduler):
            kept = self.scheduler.memory()
            if kept is not None:
                scheduler.remember(kept, self.cluster)
        promised = [
            answer
            for job_id, answer in self.reservations.items()
            if isinstance(answer, Reservation)
            and answer.end_seconds > self.now
            and self.state.stage_of(job_id) in (JobState.PENDING, JobState.RUNNING)
        ]
        scheduler.take_over(promised, self.cluster)
        return twin

    def _reference_after(self, other: Controller) -> ReferenceSchedule | None:
        """Return the other's reference schedule if it compares with the same, else a new one."""
        reference = self.state.reference
        if reference is None:
            return None
        if other.state.reference is not None and type(self.scheduler) is type(other.scheduler):
            return other.state.reference.copy()
        state = other.state
        running = [each.job.job_id for each in state.running_roster.in_order()]
        for job_id in [*running, *state.startable]:
            reference.entered(state.submitted_job(job_id), other.now)
        for job_id in running:
            reference.started(job_id, other.now)
        return reference

    def step(self, now: float, events: Iterable[news.Event]) -> list[decisions.Instruction]:
        """Take the events of one instant and say what the cluster is to do about them.

        ``now`` is seconds from the workload's origin, never earlier than in the step before;
        ``events`` have happened since that step, in any order but for submissions, which arrive in
        the order given. An expired estimate of a job that has ended, or whose estimate has been
        corrected since, is no longer news and is skipped. Instructions are to be carried out in
        the order returned.

        Raises ``ImpossibleTransition`` if an event cannot have happened, with the job's story.
        """
        self.now = now
        self._instructions = []
        self._let_through = False
        if self.state.begin_step(now):
            self._has_news, self._touched = True, None
        ordered = list(events)
        if len(ordered) > 1:
            ordered.sort(key=self._rank)
        if self._log is not None:
            self._log.begin(now, ordered)
        asked = False
        for event in ordered:
            if self._take(event):
                asked = True
                if self._passes_per_event:
                    self._schedule()
        if asked and not self._passes_per_event:
            self._schedule()
        if self._head is not None and not self.state.startable:
            self._planned, self._head = (), None
        if self._log is not None:
            self._log.sized(self.scheduler.sizes())
            self._log.end(self._instructions)
        return self._instructions

    @property
    def look_again_seconds(self) -> float:
        """Return when a ``Tick`` is to be reported if nothing happens until then; infinite: never.

        Beside those asked for by ``TickAt``: for what the scheduler compares with, for jobs that
        may begin then, and at once for those that a start has let through.
        """
        if self._let_through:
            return self.now
        state = self.state
        if state.reference is None or self.draining or state.unavailable or not state.startable:
            return state.next_begin_seconds
        return min(state.next_begin_seconds, state.reference.next_seconds())

    def reasons(self) -> dict[str, decisions.Reason]:
        """Return the reason why each pending job waits, by job id in order of arrival."""
        return self._reasons.of_all()

    def reasons_of(self, job_ids: Iterable[str]) -> dict[str, decisions.Reason]:
        """Return the reasons of some jobs, of those that wait, by job id; for few of many."""
        pending_job = self.state.pending_job
        return self._reasons.reasons([each for job_id in job_ids if (each := pending_job(job_id))])

    def _rank(self, event: news.Event) -> tuple[float, int]:
        """The place of an event as the conventions order them; ends by start, all else as given.

        What waits begins before it is cancelled or withdrawn, and ends after it has begun; what is
        new has come before.
        """
        rank: float = self._ranks[type(event)]
        if isinstance(event, news.Ended):
            running = self.state.running.get(news.unit_of(event.outcome))
            if running is None or running.attempt < event.outcome.attempt:
                return self._ranks[news.Began] + 0.5, 0
            return rank, running.start_order
        if (
            isinstance(event, news.Cancelled)
            and self.state.stage_of(event.job_id) is JobState.ABSENT
        ):
            return self._ranks[news.Began] + 0.25, 0
        if isinstance(event, news.NodeAdded):  # something may have begun there
            there = (node.name for each in self.cluster.partitions for node in each.nodes)
            return (rank if event.node.name in there else self._ranks[news.ClockRead] + 0.25), 0
        if (
            isinstance(event, news.Began)
            and self.state.stage_of(event.job_id) is not JobState.ABSENT
        ):
            rank, running = (
                self._ranks[news.Cancelled] - 0.5,
                self.state.running.get(news.unit_of(event)),
            )
            if running is None or running.attempt == event.attempt:  # else that ends before
                rank = min(rank, self._ranks[news.Ended] - 0.5)
        return rank, 0

    def _take(self, event: news.Event) -> bool:
        """Handle one event; returns whether it asks for a scheduling pass."""
        kind = type(event)
        if kind in news.MAKES_ROOM:
            self._has_news = self._room_came = True
        elif kind is not news.Tick and kind is not news.ClockRead:
            self._has_news = True
        if self._touched is not None:
            self._touch(event, self._touched)
        match event:
            case news.Ended():
                self._end(event)
            case news.Submitted():
                self._submit(event)
            case news.Began():
                self._begin(event)
            case news.NotStarted():
                self._unstart(event)
            case news.JobChanged():
                self._change(event)
            case news.EstimateExpired():
                self.state.apply(event, self.now)
                self._correct(news.unit_of(event))
                return False
            case news.Cancelled():
                self._cancel(event)
            case news.HistoryOutcome():
                self.predictor.observe(event.job, event.outcome)
                if self.state.history is not None:
                    self.state.history.earlier.append((event.job, event.outcome))
                return False
            case news.Tick():
                return self._has_news or not self.scheduler.ignores_time
            case news.ClockRead():
                self.state.apply(event, self.now)
                return False
            case _:
                self.state.apply(event, self.now)
        return not self._passes_per_tick

    def _touch(self, event: news.Event, touched: dict[str, bool]) -> None:
        """Note which partitions an event is of."""
        if type(event) in _OF_NO_PARTITION:
            return
        records: Sequence[str] = ()
        match event:
            case news.Submitted(job=job) if not job.after:
                records = self.state.free.records_of(job.partition)
            case news.Ended(outcome=outcome) if not self.state.waiting_for:
                running = self.state.running.get(news.unit_of(outcome))
                if running is not None and outcome.ended_because not in news.REQUEUED:
                    records = [name for name, _ in running.placement.tasks_by_partition]
        if records:
            touched |= dict.fromkeys(records, isinstance(event, news.Ended)) | {
                each: True for each in records if touched.get(each)
            }
        else:
            self._touched = None

    def as_if_submitted(self, job: Job) -> PendingJob:
        """A job as it would wait had it just been submitted; nothing comes of it."""
        prediction = self.predictor.predict(job, self.now)
        if not hasattr(prediction, "quantile"):
            raise plug_in_errors.no_belief(self.predictor, prediction, job.job_id)
        mean = prediction.mean()
        if not mean >= 0.0:  # it may be no number
            raise plug_in_errors.no_time(self.predictor, job.job_id, mean)
        pending = PendingJob(job, self.state.submissions, prediction, mean)
        planned = self.scheduler.planned_seconds(pending)
        return pending if planned == mean else PendingJob(job, pending.arrival, prediction, planned)

    def _submit(self, event: news.Submitted) -> None:
        job = event.job
        pending = self._reserved(self.as_if_submitted(job))
        withdrawn = self.state.submit(pending, self.now)
        if self._log is not None:
            self._log.predicted(pending)
        if pending.reservation is not None:
            self._log_reservation(job.job_id, pending.reservation)
        if withdrawn:
            self._withdraw(withdrawn)

    def _change(self, event: news.JobChanged) -> None:
        """Let a job be another, and ask anew how long it will run."""
        job = self.state.changed(event.job, self.now)
        if job is None:  # it has ended
            return
        self.predictor.withdrawn(self.state.submitted_job(job.job_id).job, self.now)
        pending = self.as_if_submitted(job)
        units = self.state.change(pending, self.now)
        if self._log is not None:
            self._log.predicted(pending)
        for number, unit in enumerate(units):
            running = self.state.running[unit]
            if number == 0:
                self.predictor.started(job, self.now)
            if running.expected_end_seconds > self.now:
                self._wake(running)
            else:
                self._correct(unit)

    def _reserved(self, pending: PendingJob) -> PendingJob:
        """The job with the answer to its request for a reservation, if it makes one."""
        job = pending.job
        is_best_effort = job.value is None or job.deadline_seconds is None
        if is_best_effort or not self.scheduler.takes_reservations:
            return pending
        answer: Reservation | Rejection | None = Rejection("the cluster has no room for it")
        if self.state.free.could_hold(job):
            earliest = earliest_begin(job, self.state, self.reservations, self.now)
            usable = self.state.usable_cluster
            answer = self.scheduler.reserve(pending, earliest, self.now, usable)
        if answer is not None:
            self.reservations[job.job_id] = answer
        return replace(pending, reservation=answer)

    def _log_reservation(self, job_id: str, answer: Reservation | Rejection) -> None:
        """Record the answer to a job's request, and be there when what is promised begins."""
        if isinstance(answer, Reservation):
            self._instruct(decisions.TickAt(job_id, answer.start_seconds))
        if self._log is not None:
            self._log.reservation_answered(job_id, answer)

    def _release(self, job_id: str) -> None:
        """Whatever is left of a job's reservation is free again."""
        if isinstance(self.reservations.get(job_id), Reservation):
            self.scheduler.release(job_id, self.now)

    def _end(self, event: news.Ended) -> None:
        end = self.state.end(event.outcome, self.now)
        job, outcome = end.running.job, end.outcome
        if end.parts is not None:
            self.predictor.part_ended(job, outcome)
            self.scheduler.part_ended(job, outcome)
            if end.parts.because is outcome.ended_because:
                self._stop_rest(end.parts)
            if end.whole is None:
                return
            outcome = end.whole
        is_requeued = outcome.ended_because in news.REQUEUED
        if self.reservations and not is_requeued:
            self._release(job.job_id)
        if end.withdrawn:
            self._withdraw(end.withdrawn)
        self.predictor.observe(job, outcome)
        if is_requeued:
            self.scheduler.requeued(job, outcome)
        if self._refreshes:
            self._learned_of.add(job.user)

    def _begin(self, event: news.Began) -> None:
        """Take over what runs, or when and where it really began."""
        unit, state = news.unit_of(event), self.state
        before = state.running.get(unit)
        running = state.begin(event, self.now)
        if before is None and state.begins_its_job(running):
            self.predictor.started(running.job, event.start_seconds)
        if running.expected_end_seconds <= self.now:
            self._correct(unit)
        elif before is None or running.expected_end_seconds != before.expected_end_seconds:
            self._wake(running)

    def _unstart(self, event: news.NotStarted) -> None:
        """Put a job back whose start was not carried out: nothing is observed."""
        job = self.state.submitted_job(event.job_id).job
        withdrawn = self.state.unstart(event, self.now)
        if job.job_id in self.state.ended:  # it was cancelled
            self._release(job.job_id)
            self.predictor.withdrawn(job, self.now)
        elif self.state.nothing_begun(job.job_id):
            self.predictor.not_started(job, self.now)
        self._withdraw(withdrawn)

    def _cancel(self, event: news.Cancelled) -> None:
        """End a job that waits; what runs of one is stopped."""
        job_id = event.job_id
        self._leave_queue(job_id, event.by)
        if job_id in self.state.running:
            self._stop(job_id)
        parts = self.state.parts_of(job_id)
        if parts is not None:
            self._stop_rest(parts)
        if job_id not in self.state.cancelled:
            self._release(job_id)

    def _leave_queue(self, job_id: str, by: str = "") -> None:
        """A job that waits will not run, nor will those that depend on it."""
        pending = self.state.pending_job(job_id)
        withdrawn = self.state.cancel(job_id, self.now, by)
        if pending is not None and job_id in self.state.ended:
            self.predictor.withdrawn(pending.job, self.now)
        self._withdraw(withdrawn)

    def _stop_rest(self, parts: PartsOfJob) -> None:
        """Stop what runs of a job that has failed."""
        for part in parts.running:
            self._stop(part)

    def _stop(self, unit: news.Unit) -> None:
        """Stop what runs, once; what is not ours is for the cluster to stop."""
        running = self.state.running[unit]
        if unit not in self.state.stopping and running.ours:
            self._instruct(
                decisions.Preempt(running.job.job_id, running.attempt, running.stage, running.tasks)
            )

    def _instruct(self, instruction: decisions.Instruction) -> None:
        """Give an instruction from which nothing follows but what the state notes."""
        self.state.apply(instruction, self.now)
        self._instructions.append(instruction)

    def _refresh_predictions(self) -> None:
        """Let the predictor change its mind about waiting jobs of users whose jobs have ended."""
        users = self._learned_of if self._refreshes else ()
        state, likens = self.state, self.predictor.likens_jobs
        kinds = state.startable_roster.kinds_of(users)
        if not likens:
            kinds = [(kind, (job_id,)) for kind, job_ids in kinds for job_id in job_ids]
            kinds.sort(key=lambda each: state.submitted_job(*each[1]).arrival)
        jobs = [state.submitted_job(next(iter(job_ids))).job for _, job_ids in kinds]
        beliefs = self.predictor.all_refreshed(jobs, self.now)
        if self._log is not None:
            pairs = [
                (state.startable[job_id], belief)
                for (_, job_ids), belief in zip(kinds, beliefs, strict=True)
                for job_id in job_ids
            ]
            for pending, belief in sorted(pairs, key=lambda pair: pair[0].arrival):
                self._log.refreshed(pending, belief)
        if likens:
            state.believe_of_kinds([kind for kind, _ in kinds], beliefs)
        else:
            state.believe_all(jobs, beliefs)
        self._learned_of.clear()

    def _withdraw(self, withdrawn: Iterable[Withdrawn]) -> None:
        for each in withdrawn:
            because = (
                f"job {each.predecessor}, which it depends on, ended: {each.predecessor_ended}"
            )
            if each.predecessor_ended is news.EndedBecause.COMPLETED:
                because += "; it was to run only after a failure"
            self._release(each.job.job_id)
            self.predictor.withdrawn(each.job, self.now)
            self.state.note_withdrawn(each.job.job_id, because)
            self._instructions.append(decisions.Withdraw(each.job.job_id, because))

    def _correct(self, unit: news.Unit) -> None:
        """Correct an expired estimate until it is later than now.

        An estimate that its correction does not raise (the request has been reached) stays.
        """
        state = self.state
        running = state.running.get(unit)
        if running is None or running.expected_end_seconds > self.now:
            return
        initial = running.slowdown * state.submitted_job(running.job.job_id).planned_seconds
        prediction = running.prediction
        if running.slowdown != 1.0:
            prediction = prediction.scaled(running.slowdown)
        while running.expected_end_seconds <= self.now:
            current = state.estimates[unit]
            estimate = self.correction.correct(
                running.job, prediction, initial, current, running.corrections
            )
            if not estimate > current:
                if not estimate >= 0.0:
                    raise plug_in_errors.no_time(self.correction, running.job.job_id, estimate)
                return
            if running.corrections == _MOST_CORRECTIONS:
                at_most = f"fewer than {_MOST_CORRECTIONS:,} corrections of a job, by more each"
                raise plug_in_errors.no_time(self.correction, running.job.job_id, estimate, at_most)
            running = state.correct(unit, estimate)
            self.counters.corrections += 1
            if self._log is not None:
                self._log.corrected(running, current, estimate)
        self._wake(running)

    def _wake(self, running: RunningJob) -> None:
        end = running.expected_end_seconds
        if end < math.inf:
            self.state.wakes[running.unit] = end
            self._instructions.append(
                decisions.WakeAt(running.job.job_id, end, running.stage, running.tasks)
            )

    def _schedule(self) -> None:
        """One scheduling pass, if any job may start."""
        state = self.state
        if self._reasons.draining or state.unavailable or not state.startable:
            self._note_plan(_NOTHING)
            return
        self.counters.passes += 1
        if state.reference is not None:
            for job_id, due in state.reference.found(self.now):
                state.falls_due(job_id, due)
        if self._learned_of:
            self._refresh_predictions()
        free, running = visible = state.visible(None if self._frees_at_ends else self.now)
        try:
            decision = self._decide(visible)
            verdict = check.check_decision(
                decision, state.startable, state.running, state.stopping, free
            )
        except (Exception, SystemExit) as error:
            raise plug_in_errors.blamed(error) from error
        if verdict.refusals:
            self.first_refusal = self.first_refusal or verdict.refusals[0]
            self.counters.refusals += len(verdict.refusals)
        self._has_news = bool(decision.starts or decision.preemptions)
        self._room_came = False
        self._touched = {} if len(state.cluster.partitions) > 1 else None
        head_delayed = self._note_plan(decision)
        if self._log is not None:
            self._log.decided(
                decision,
                len(running),
                free,
                head=None if self._head is None else self._head.job_id,
                head_delayed=head_delayed,
            )
            self._log_solution(self._log)
            self._log.refused(verdict.refusals)
        if verdict is not check.NOTHING_DECIDED:
            self._carry_out(verdict)
        for tick in decision.ticks:
            if not isinstance(tick, decisions.TickAt):
                raise plug_in_errors.no_decision(self.scheduler, tick)
            self._instruct(tick)

    def foresee(self, removals: Iterable[news.NodeRemoved]) -> Departures:
        """Know beforehand which nodes go, those that say from when on; what follows from that."""
        departures = Departures(removals)
        self._departures = departures if departures.are_known else None
        return departures

    def _decide(self, visible: Visible) -> decisions.Decision:
        """Ask the scheduler; what it said before need not be kept."""
        state, departures = self.state, self._departures
        free, running = visible
        self._reasons.of_pass = {}
        shown: Sequence[PendingJob] = state.startable_roster.listed()
        kept_back, leaving = _NO_REASONS, _NOTHING_LEAVES
        if departures is not None:
            shown, kept_back = departures.shown(shown, state, self.now)
            leaving = departures.leaving(self.now)
        view = ClusterView(
            self.now,
            state.cluster,
            free.by_partition(),
            shown,
            running,
            free.by_node(),
            state.waiting_for_roster.listed() if state.waiting_for else (),
            self._planned,
            self._room_came,
            leaving,
            self._touched,
        )
        decision = self.scheduler.decide(view)
        if not isinstance(decision, decisions.Decision):
            raise plug_in_errors.no_decision(self.scheduler, decision)
        if self.names_nodes and decision.starts and not self.scheduler.starts_tasks:
            backfills = self.scheduler.backfills is not False
            decision = self._assigned(decision, view, state.startable, backfills)
        if departures is None:
            return decision
        return departures.allowed(decision, kept_back, state, self.now)

    def _log_solution(self, log: StepLog) -> None:
        """Record how well the scheduler says that it solved the pass, and what it keeps of it."""
        last, kept = self.scheduler.last, self.scheduler.memory()
        if last is not None:
            log.solved(last)
        if kept is not None:
            log.remembered(kept)

    def _carry_out(self, verdict: check.Verdict) -> None:
        state, now, instructions = self.state, self.now, self._instructions
        dependent = len(state.waiting_for)
        for start in verdict.starts:
            running = state.start(news.unit_of(start), start.placement, now)
            again = running.attempt > 1
            instructions.append(replace(start, attempt=running.attempt) if again else start)
            self._wake(running)
            if state.begins_its_job(running):
                self.predictor.started(running.job, now)
        self._let_through = len(state.waiting_for) < dependent
        for preempt in verdict.preemptions:
            attempt = state.running[news.unit_of(preempt)].attempt
            self._instruct(replace(preempt, attempt=attempt))
        for withdraw in verdict.withdrawals:
            instructions.append(withdraw)
            self._release(withdraw.job_id)
            self._leave_queue(withdraw.job_id)
            state.note_withdrawn(withdraw.job_id, withdraw.because)

    def _note_plan(self, decision: decisions.Decision) -> bool:
        """Keep the plan and the reasons of a pass; whether the job planned first is delayed."""
        self._reasons.of_pass = decision.reasons
        before, self._planned = self._head, decision.plan
        head = self._head = decision.plan[0] if decision.plan else None
        if before is None or head is None or before.job_id != head.job_id:
            return False
        if head.start_seconds <= before.start_seconds + 1e-6:  # as logged, give or take rounding
            return False
        self.counters.delayed_heads += 1
        return True


_NOTHING: Final = decisions.Decision()
_NO_REASONS: Final[Mapping[str, decisions.Reason]] = MappingProxyType({})
_NOTHING_LEAVES: Final[Mapping[str, float]] = MappingProxyType({})
