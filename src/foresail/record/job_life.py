"""The life of a job: its states, its parts, what comes of an attempt, and what a run remembers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from foresail.model.construction import quickly_made
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, EndedBecause, Outcome, Part
from foresail.model.view import RunningJob, StartableTasks, TaskNumbers


class PartsOfJob:
    """State of the stages and tasks of one job.

    A stage may start once those before it have completed. The job has completed when all of its
    tasks have. If a part ends in another way, but for those that go back to wait, the job has
    failed: nothing more of it starts, and it has ended when the last part that runs has.

    To be read by others: ``job``, ``startable`` (what may start, by stage), ``running`` (parts, in
    order of start), ``begun_seconds`` (when the first part started), ``first_start`` (the number
    of that start), ``went_back`` (how often a part did, of those that have), ``because`` (why it
    has failed), ``belief`` (what is believed of its runtime since it was submitted, if that is
    something else).

    Raises ``InputError`` if two stages have one name, one has none, or one waits for another that
    is not before it.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.running: dict[Part, None] = {}
        self.begun_seconds: float | None = None
        self.first_start: int | None = None
        self.went_back: dict[Part, int] = {}
        self.because: EndedBecause | None = None
        self.belief: Distribution | None = None
        self._stages = {stage.name: stage for stage in job.stages}
        self._left: dict[str, TaskNumbers] = {}  # to start, of stages that may
        self._to_complete = {stage.name: stage.tasks for stage in job.stages}
        self._require_order()
        self._open_stages()

    def _require_order(self) -> None:
        earlier: set[str] = set()
        for stage in self.job.stages:
            if not stage.name or stage.name in earlier or not earlier.issuperset(stage.after):
                raise InputError(
                    f"the stages of job {self.job.job_id!r} cannot be started one after the other",
                    field="stages",
                    value=stage.name,
                    expected="names of their own, each after those that it waits for",
                )
            earlier.add(stage.name)

    def copy(self) -> PartsOfJob:
        """Another, in which all is now as it is here."""
        twin = object.__new__(PartsOfJob)
        twin.__dict__.update(self.__dict__)
        twin.running = dict(self.running)
        twin.went_back = dict(self.went_back)
        twin._left = dict(self._left)
        twin._to_complete = dict(self._to_complete)
        return twin

    @property
    def startable(self) -> tuple[StartableTasks, ...]:
        """Return the parts that may start now, by stage; nothing if the job has failed."""
        if self.because is not None:
            return ()
        return tuple(
            StartableTasks(self._stages[name], tasks) for name, tasks in self._left.items() if tasks
        )

    @property
    def ended_because(self) -> EndedBecause | None:
        """Return why the job has ended; None if it has not."""
        if self.running:
            return None
        return self.because if self._to_complete else EndedBecause.COMPLETED

    def smallest(self) -> Iterator[Job]:
        """Yield what must find room at once for every stage to run, each as a job of its own."""
        for stage in self.job.stages:
            yield self.job.part(stage, stage.tasks if stage.together else 1)

    def start(self, part: Part, now: float, number: int) -> None:
        """A part that may start does, as that of this number of all starts.

        Raises ``KeyError`` if it may not.
        """
        self._left[part.stage] = self._left[part.stage].without(self._tasks(part))
        self.running[part] = None
        if self.begun_seconds is None:
            self.begun_seconds, self.first_start = now, number

    def end(self, part: Part, because: EndedBecause) -> None:
        """A part that runs has ended.

        Raises ``KeyError`` if it does not run.
        """
        del self.running[part]
        tasks = self._tasks(part)
        if because in GOES_BACK:
            self._left[part.stage] = self._left[part.stage].including(tasks)
            self.went_back[part] = 1 + self.went_back.get(part, 0)
        elif because is not EndedBecause.COMPLETED:
            self.because = self.because or because
        else:
            self._to_complete[part.stage] -= len(tasks)
            if not self._to_complete[part.stage]:
                del self._to_complete[part.stage], self._left[part.stage]
                self._open_stages()

    def cancel(self) -> None:
        """Nothing more of it starts; it has ended with what runs of it."""
        self.because = self.because or EndedBecause.CANCELLED

    def outcome(self, last: Outcome) -> Outcome:
        """Return the outcome of the whole job, with its last part; it began with the first."""
        because = self.ended_because
        assert self.begun_seconds is not None
        assert because is not None
        return replace(
            last,
            start_seconds=self.begun_seconds,
            ended_because=because,
            attempt=1,
            slowdown=1.0,
            stage="",
            tasks=(),
        )

    def _tasks(self, part: Part) -> Collection[int]:
        return part.tasks or range(self._stages[part.stage].tasks)

    def _open_stages(self) -> None:
        """Let stages start that wait for no other any more."""
        for name in self._to_complete:
            stage = self._stages[name]
            if name not in self._left and self._to_complete.keys().isdisjoint(stage.after):
                self._left[name] = TaskNumbers.below(stage.tasks)


class JobState(StrEnum):
    """State of a job in its life."""

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
    """Remembered facts of an ended job: enough for dependencies and for errors."""

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
    """Consequences of the end of an attempt."""

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
        """Return the id of the job."""
        return self.running.job

    @property
    def placement(self) -> Placement:
        """Return where it ran."""
        return self.running.placement


class JobHistory:
    """Fate of the jobs of a run.

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
