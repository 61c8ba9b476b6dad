"""The life of a job: its states, what comes of an attempt, and what a run remembers of jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from foresail.model.construction import quickly_made
from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.view import RunningJob
from foresail.record.parts import PartsOfJob


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
"""From where to where each passage of a job leads. Anything else is impossible and raises
``ImpossibleTransition``, but for a cancellation that comes too late: what runs is to end, and what
has ended stays as it is."""


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


@quickly_made
@dataclass(frozen=True, slots=True)
class EndedJob:
    """What is remembered of a job that has ended: enough for dependencies and for errors."""

    end_seconds: float
    ended_because: EndedBecause


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A pending job that will never run: ``predecessor`` has ended, but not as it was to."""

    job: Job
    predecessor: str
    predecessor_ended: EndedBecause


@quickly_made
@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """What comes of the end of an attempt."""

    running: RunningJob
    """As it ran to its end."""
    outcome: Outcome
    """How it ended, with how many times longer it took where it ran."""
    withdrawn: Sequence[Withdrawn] = ()
    """Pending jobs that will never run because of it."""
    parts: PartsOfJob | None = None
    """Of a job that starts in parts, what became of them."""
    whole: Outcome | None = None
    """Of a job that starts in parts, how all of it has ended; None if it has not."""


@quickly_made
@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that has ended: as it ran to its end, and how that was."""

    running: RunningJob
    outcome: Outcome
    planned_seconds: float
    """Runtime that was planned with when the job was submitted."""

    @property
    def job(self) -> Job:
        """Of which job."""
        return self.running.job

    @property
    def placement(self) -> Placement:
        """Where it ran."""
        return self.running.placement


class JobHistory:
    """What became of the jobs of a run.

    To be read by others: ``submitted`` (jobs in order), ``past`` (attempts in order of ending),
    ``ended`` (the last outcome of jobs that are done with; of one that ran in parts, that of the
    whole), ``withdrawn`` (why a job will never run).
    """

    def __init__(self) -> None:
        self.submitted: dict[str, Job] = {}
        self.past: list[EndedAttempt] = []
        self.ended: dict[str, Outcome] = {}
        self.withdrawn: dict[str, str] = {}

    def forget(self, job_ids: Collection[str]) -> None:
        """Know nothing more of jobs that are done with."""
        gone = set(job_ids)
        for job_id in gone:
            del self.submitted[job_id]
            self.ended.pop(job_id, None)
            self.withdrawn.pop(job_id, None)
        self.past[:] = [each for each in self.past if each.job.job_id not in gone]
