"""State: which jobs wait, run and have ended, and the transitions between the three."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from foresail.control.capacity import Capacity
from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause
from foresail.model.roster import Roster
from foresail.model.slowdown import Slowdowns
from foresail.model.view import PendingJob, RunningJob


class JobState(StrEnum):
    """Where a job is in its life."""

    ABSENT = "absent"
    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"


TRANSITIONS: Final[Mapping[str, tuple[JobState, JobState]]] = MappingProxyType(
    {
        "submit": (JobState.ABSENT, JobState.PENDING),
        "start": (JobState.PENDING, JobState.RUNNING),
        "cancel": (JobState.PENDING, JobState.ENDED),
        "requeue": (JobState.RUNNING, JobState.PENDING),
        "end": (JobState.RUNNING, JobState.ENDED),
    }
)
"""The life of a job: from where to where each method of ``State`` takes it. Anything else is
impossible and raises ``ImpossibleTransition``."""


class ImpossibleTransition(Exception):  # noqa: N818 - it says what it is
    """The cluster reported, or control attempted, what cannot have happened; with the story."""

    def __init__(
        self, job_id: str, now: float, source: JobState, target: JobState, story: str
    ) -> None:
        self.job_id = job_id
        self.source = source
        self.target = target
        super().__init__(
            f"job {job_id!r} cannot go from {source} to {target} at {now:g} s; it {story}"
        )


@dataclass(frozen=True, slots=True)
class EndedJob:
    """What is remembered of a job that has ended: enough for dependencies and for errors."""

    end_seconds: float
    ended_because: EndedBecause


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A pending job that will never run: ``predecessor`` ended, but has not ``COMPLETED``."""

    job: Job
    predecessor: str
    predecessor_ended: EndedBecause


class State:
    """Everything that is true now. Only the methods named after transitions change it.

    To be read, not written, by others: ``startable`` (pending jobs that may start, by id),
    ``waiting_for`` (pending jobs held back by dependencies), ``too_wide`` (pending jobs that the
    empty cluster has no room for), ``running`` (by start), each with the ``Roster`` that knows its
    order and its changes; ``stopping`` (running jobs that were told to stop), ``estimates``
    (current estimate of a running job's runtime), ``ended``, ``capacity``, ``submissions`` (how
    many jobs there have been: the next one's arrival number).
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.capacity = Capacity(cluster)
        self._slowdowns = Slowdowns(cluster)
        self.startable_roster: Roster[PendingJob] = Roster(_by_arrival)
        self.waiting_for_roster: Roster[PendingJob] = Roster(_by_arrival)
        self.too_wide_roster: Roster[PendingJob] = Roster(_by_arrival)
        self.running_roster: Roster[RunningJob] = Roster(_by_start)
        self.startable = self.startable_roster.by_id
        self.waiting_for = self.waiting_for_roster.by_id
        self.too_wide = self.too_wide_roster.by_id
        self.running = self.running_roster.by_id
        self.stopping: set[str] = set()
        self.estimates: dict[str, float] = {}
        self.ended: dict[str, EndedJob] = {}
        self._living: dict[str, PendingJob] = {}
        self._dependents: dict[str, list[str]] = {}
        self.submissions = 0
        self._starts = 0

    def of(self, job_id: str) -> JobState:
        """Where the job is in its life."""
        if job_id in self.running:
            return JobState.RUNNING
        if job_id in self._living:
            return JobState.PENDING
        return JobState.ENDED if job_id in self.ended else JobState.ABSENT

    def submitted_job(self, job_id: str) -> PendingJob:
        """A pending or running job as it was submitted, with its prediction.

        Raises
        ------
        KeyError
            If the job is neither.
        """
        return self._living[job_id]

    def pending_job(self, job_id: str) -> PendingJob | None:
        """A job that waits, whatever for; None if it does not."""
        return (
            self.startable.get(job_id) or self.waiting_for.get(job_id) or self.too_wide.get(job_id)
        )

    def pending(self) -> list[PendingJob]:
        """All pending jobs, whatever they wait for, by arrival."""
        jobs = [*self.startable.values(), *self.waiting_for.values(), *self.too_wide.values()]
        return sorted(jobs, key=_by_arrival)

    def unmet(self, job: Job) -> str | None:
        """The first job it depends on that has not ended successfully; None if all have."""
        for predecessor in job.after:
            end = self.ended.get(predecessor)
            if end is None or end.ended_because is not EndedBecause.COMPLETED:
                return predecessor
        return None

    def submit(self, pending: PendingJob, now: float) -> list[Withdrawn]:
        """Absent to pending; returns the job itself if a predecessor has already failed."""
        job = pending.job
        self._require(job.job_id, "submit", now)
        self.submissions += 1
        self._living[job.job_id] = pending
        for predecessor in job.after:
            self._dependents.setdefault(predecessor, []).append(job.job_id)
        if self.unmet(job) is not None:
            self.waiting_for_roster.put(job.job_id, pending)
            return self._settle_dependent(job.job_id, now)
        self._queue(pending)
        return []

    def believe(self, job_id: str, prediction: Distribution) -> None:
        """Give a job that may start another prediction; the one at submission is kept beside it."""
        believed = replace(self.startable[job_id], prediction=prediction)
        self.startable_roster.put(job_id, believed)

    def start(self, job_id: str, placement: Placement, now: float) -> RunningJob:
        """Pending to running, with the planned estimate of the runtime there."""
        self._require(job_id, "start", now)
        pending = self.startable_roster.take(job_id)
        self.capacity.take(pending.job, placement)
        slowdown = self._slowdowns.of(pending.job, placement)
        estimate = slowdown * pending.planned_seconds
        running = RunningJob(
            job=pending.job,
            start_seconds=now,
            start_order=self._starts,
            placement=placement,
            prediction=pending.prediction,
            expected_end_seconds=now + estimate,
            slowdown=slowdown,
            reservation=pending.reservation,
        )
        self._starts += 1
        self.running_roster.put(job_id, running)
        self.estimates[job_id] = estimate
        return running

    def correct(self, job_id: str, estimate_seconds: float, count: int | None = None) -> RunningJob:
        """Give a running job its next estimate of its total runtime, or the one of this number."""
        before = self.running[job_id]
        after = replace(
            before,
            expected_end_seconds=before.start_seconds + estimate_seconds,
            corrections=before.corrections + 1 if count is None else count,
        )
        self.running_roster.put(job_id, after)
        self.estimates[job_id] = estimate_seconds
        return after

    def stop(self, job_id: str) -> None:
        """Note that a running job was told to stop; it holds its resources until it has."""
        self.stopping.add(job_id)

    def requeue(self, job_id: str, now: float) -> None:
        """Running to pending: a preempted job goes back to its place in the queue."""
        self._require(job_id, "requeue", now)
        self._release(job_id)
        self._queue(self._living[job_id])

    def end(self, job_id: str, because: EndedBecause, now: float) -> list[Withdrawn]:
        """Running to ended; returns the jobs that will never run because of it."""
        self._require(job_id, "end", now)
        self._release(job_id)
        return self._finish(job_id, because, now)

    def cancel(self, job_id: str, now: float) -> list[Withdrawn]:
        """Pending to ended, by the user; returns the jobs that will never run because of it."""
        self._require(job_id, "cancel", now)
        return self._finish(job_id, EndedBecause.CANCELLED, now)

    def _queue(self, pending: PendingJob) -> None:
        fits = self.capacity.could_hold(pending.job)
        roster = self.startable_roster if fits else self.too_wide_roster
        roster.put(pending.job.job_id, pending)

    def _release(self, job_id: str) -> None:
        running = self.running_roster.take(job_id)
        self.capacity.give_back(running.job, running.placement)
        self.stopping.discard(job_id)
        del self.estimates[job_id]

    def _finish(self, job_id: str, because: EndedBecause, now: float) -> list[Withdrawn]:
        for roster in (self.startable_roster, self.waiting_for_roster, self.too_wide_roster):
            if job_id in roster.by_id:
                roster.take(job_id)
        del self._living[job_id]
        self.ended[job_id] = EndedJob(now, because)
        withdrawn: list[Withdrawn] = []
        for dependent in self._dependents.pop(job_id, ()):
            if dependent in self.waiting_for:
                withdrawn += self._settle_dependent(dependent, now)
        return withdrawn

    def _settle_dependent(self, job_id: str, now: float) -> list[Withdrawn]:
        """Let a waiting job through, withdraw it, or leave it, as its predecessors have ended."""
        pending = self.waiting_for[job_id]
        unmet = self.unmet(pending.job)
        if unmet is None:
            self.waiting_for_roster.take(job_id)
            self._queue(pending)
            return []
        for predecessor in pending.job.after:
            end = self.ended.get(predecessor)
            if end is not None and end.ended_because is not EndedBecause.COMPLETED:
                withdrawn = Withdrawn(pending.job, predecessor, end.ended_because)
                return [withdrawn, *self._finish(job_id, EndedBecause.CANCELLED, now)]
        return []

    def _require(self, job_id: str, transition: str, now: float) -> None:
        source, target = TRANSITIONS[transition]
        actual = self.of(job_id)
        if actual is not source:
            raise ImpossibleTransition(job_id, now, actual, target, self._story(job_id))

    def _story(self, job_id: str) -> str:
        if job_id in self.running:
            running = self.running[job_id]
            return (
                f"was submitted at {running.job.submit_seconds:g} s and has run since "
                f"{running.start_seconds:g} s"
            )
        if job_id in self._living:
            return f"was submitted at {self._living[job_id].job.submit_seconds:g} s and waits"
        if job_id in self.ended:
            end = self.ended[job_id]
            return f"ended ({end.ended_because}) at {end.end_seconds:g} s"
        return "was never submitted"


def _by_arrival(pending: PendingJob) -> int:
    return pending.arrival


def _by_start(running: RunningJob) -> int:
    return running.start_order
