"""The life of a job: its states and parts, what it waits for, what a run remembers of it."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from foresail.model.containers import quickly_made
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.event import REQUEUED, EndedBecause, Outcome, Part
from foresail.model.job import Dependency, DependencyKind, Job, StartConditions
from foresail.model.view import PendingJob, RunningJob, StartableTasks, TaskNumbers


class PartsOfJob:
    """State of the stages and tasks of one job.

    A stage may start once those before it have completed. The job has completed when all of its
    tasks have. If a part ends in another way, but for those that go back to wait, the job has
    failed: nothing more of it starts, and it has ended when the last part that runs has.

    To be read by others: ``job``, ``startable`` (what may start, by stage), ``running`` (parts, in
    order of start), ``begun_seconds`` (when the first part started), ``first_start`` (the number
    of that start), ``requeued`` (how often a part did, of those that have), ``because`` (why it
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
        self.requeued: dict[Part, int] = {}
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
        twin.requeued = dict(self.requeued)
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
        """A part that runs has ended; raises ``KeyError`` if it does not run."""
        del self.running[part]
        tasks = self._tasks(part)
        if because in REQUEUED:
            self._left[part.stage] = self._left[part.stage].including(tasks)
            self.requeued[part] = 1 + self.requeued.get(part, 0)
        elif because is not EndedBecause.COMPLETED:
            self.because = self.because or because
        else:
            self._to_complete[part.stage] -= len(tasks)
            if not self._to_complete[part.stage]:
                del self._to_complete[part.stage], self._left[part.stage]
                self._open_stages()

    def unstart(self, part: Part, number: int) -> None:
        """The start of this number of a part was not carried out; it may have been the only one."""
        self.end(part, EndedBecause.LOST)
        untouched = {stage.name: stage.tasks for stage in self.job.stages} == self._to_complete
        if number == self.first_start and not self.running and untouched:
            self.begun_seconds = self.first_start = None

    def cancel(self) -> None:
        """Start nothing more of it; it has ended with what runs of it."""
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
        "unstart": (JobState.RUNNING, JobState.PENDING),
        "end": (JobState.RUNNING, JobState.ENDED),
    }
)
"""Beginning and end of each passage of a job. Anything else is impossible and raises
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
    """The running job as it ran to its end."""
    outcome: Outcome
    """End of the attempt, with how many times longer it took where it ran."""
    withdrawn: Sequence[Withdrawn] = ()
    """Pending jobs that will never run because of it."""
    parts: PartsOfJob | None = None
    """Parts of a job that starts in parts, and what became of them."""
    whole: Outcome | None = None
    """Outcome of all of a job that starts in parts; None if it has not ended."""


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
    ``ended`` (the last outcome of jobs that have finished; of one that ran in parts, that of the
    whole), ``withdrawn`` (why a job will never run), ``earlier`` (attempts of earlier runs).
    """

    def __init__(self) -> None:
        self.submitted: dict[str, Job] = {}
        self.past: list[EndedAttempt] = []
        self.ended: dict[str, Outcome] = {}
        self.withdrawn: dict[str, str] = {}
        self.earlier: list[tuple[Job, Outcome]] = []

    def forget(self, job_ids: Collection[str]) -> None:
        """Know nothing more of jobs that have finished."""
        gone = set(job_ids)
        for job_id in gone:
            del self.submitted[job_id]
            self.ended.pop(job_id, None)
            self.withdrawn.pop(job_id, None)
        self.past[:] = [each for each in self.past if each.job.job_id not in gone]


_Namesakes: TypeAlias = dict[tuple[str | None, str], dict[str, None]]
"""Ids of living jobs in order of arrival, by user and name."""


class Dependencies:
    """Conditions that jobs set on the ends of others.

    To be read by others: ``dependents`` (jobs that wait for one that has not ended, by its id; a
    list for those that wait for the same, as members of an array do). ``ended`` is what has ended.
    """

    def __init__(self, ended: Mapping[str, EndedJob]) -> None:
        self._ended = ended
        self.dependents: dict[str, list[list[str]]] = {}
        self._last: Job | None = None
        self._like_last: list[str] = []
        self._namesakes: _Namesakes | None = None  # no singleton has come yet

    def copy(self, ended: Mapping[str, EndedJob]) -> Dependencies:
        """Another, in which all is as it is here."""
        twin = Dependencies(ended)
        self._last = None  # lists that both have grow no more
        twin.dependents = {job_id: list(each) for job_id, each in self.dependents.items()}
        if self._namesakes is not None:
            twin._namesakes = {name: dict(each) for name, each in self._namesakes.items()}
        return twin

    def add(self, job: Job, living: Mapping[str, PendingJob]) -> None:
        """Take a job that has been submitted, and is among the living."""
        if self._namesakes is not None:
            _add_namesake(self._namesakes, job)
        elif job.conditions is not None and job.conditions.singleton:
            self._namesakes = {}
            for each in living.values():
                _add_namesake(self._namesakes, each.job)
        if not job.after:
            return
        last, self._last = self._last, job
        if last is None or (last.after, last.conditions) != (job.after, job.conditions):
            self._like_last = []
            for predecessor in job.after:
                if predecessor not in self._ended:
                    self.dependents.setdefault(predecessor, []).append(self._like_last)
        self._like_last.append(job.job_id)

    def leave_namesakes(self, job: Job) -> str | None:
        """Leave the namesakes at its end; returns the next of them, which may be a singleton."""
        if self._namesakes is None or job.name is None:
            return None
        namesakes = self._namesakes[job.user, job.name]
        del namesakes[job.job_id]
        if not namesakes:
            del self._namesakes[job.user, job.name]
        return next(iter(namesakes), None)

    def rename(self, before: Job, after: Job) -> str | None:
        """Let a job have another name; returns the next of those that had the same before."""
        if self._namesakes is None or before.name == after.name:
            return None
        following = self.leave_namesakes(before)
        _add_namesake(self._namesakes, after)
        return following

    def unmet(
        self, job: Job, has_begun: Callable[[str], bool]
    ) -> tuple[str, DependencyKind] | None:
        """The first job that one waits for, and what is to become of that; None if it has.

        ``has_begun`` says of living jobs which have.
        """
        for dependency in _dependencies(job):
            kind = dependency.kind
            for predecessor in dependency.job_ids:
                if predecessor in self._ended:
                    is_met = kind is not DependencyKind.AFTER_OK or not self._has_failed(
                        predecessor
                    )
                else:
                    is_met = kind is DependencyKind.AFTER and has_begun(predecessor)
                if not is_met:
                    return predecessor, kind
            if kind is DependencyKind.AFTER_NOT_OK and not any(
                map(self._has_failed, dependency.job_ids)
            ):
                return dependency.job_ids[-1], kind
        singleton = job.conditions is not None and job.conditions.singleton
        if singleton and job.name is not None and self._namesakes is not None:
            first = next(iter(self._namesakes[job.user, job.name]))
            if first != job.job_id:
                return first, DependencyKind.SINGLETON
        return None

    def never_met(self, job: Job) -> str | None:
        """A job that has ended in a way in which another can never start; None if there is none."""
        for dependency in _dependencies(job):
            failed = next(filter(self._has_failed, dependency.job_ids), None)
            match dependency.kind:
                case DependencyKind.AFTER_OK if failed is not None:
                    return failed
                case DependencyKind.AFTER_NOT_OK if failed is None and all(
                    each in self._ended for each in dependency.job_ids
                ):
                    return dependency.job_ids[-1]
        return None

    def _has_failed(self, job_id: str) -> bool:
        """A job has ended, but not completed."""
        end = self._ended.get(job_id)
        return end is not None and end.ended_because is not EndedBecause.COMPLETED


def _add_namesake(namesakes: _Namesakes, job: Job) -> None:
    if job.name is not None:
        namesakes.setdefault((job.user, job.name), {})[job.job_id] = None


def _dependencies(job: Job) -> Iterator[Dependency]:
    """Yield a job's dependencies on others; not those of singletons."""
    others = () if job.conditions is None else job.conditions.dependencies
    yield from others
    otherwise = {job_id for each in others for job_id in each.job_ids}
    completed = tuple(each for each in job.after if each not in otherwise)
    yield Dependency(DependencyKind.AFTER_OK, completed)


class ArrayMembers:
    """Members of an array of which at most so many run at once.

    Those of the others that wait may start which came first, as many as there is room for: it
    follows from what runs and waits alone, not from how that came about.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.running: set[str] = set()
        self.waiting: list[tuple[int, str]] = []

    def copy(self) -> ArrayMembers:
        """Another, of the same members."""
        twin = ArrayMembers(self.most)
        twin.running, twin.waiting = set(self.running), list(self.waiting)
        return twin

    def place(self, arrival: int, job_id: str) -> int | None:
        """Return how many that wait came before a member; None if it does not wait."""
        at = bisect_left(self.waiting, (arrival, job_id))
        return at if self.waiting[at : at + 1] == [(arrival, job_id)] else None

    @property
    def room(self) -> int:
        """Return how many of those that wait may start."""
        return max(0, self.most - len(self.running))

    def edges(self) -> tuple[str | None, str | None]:
        """The last member that may start, and the first that may not."""
        room = self.room
        last = self.waiting[room - 1][1] if 0 < room <= len(self.waiting) else None
        return last, self.waiting[room][1] if room < len(self.waiting) else None


class Eligibility:
    """Conditions that keep pending jobs back: their begin, and how many of their array run."""

    def __init__(self) -> None:
        self._not_before: dict[str, float] = {}
        self.begins: list[tuple[float, str]] = []
        """Heap of times from which jobs may begin, and their ids; some of these have ended."""
        self._arrays: dict[str, ArrayMembers] = {}

    def copy(self) -> Eligibility:
        """Another, in which all is as it is here."""
        twin = Eligibility()
        twin._not_before, twin.begins = dict(self._not_before), list(self.begins)
        twin._arrays = {name: members.copy() for name, members in self._arrays.items()}
        return twin

    @property
    def next_seconds(self) -> float:
        """Return when the next job may begin; infinite for never."""
        begins = self.begins
        while begins and self._not_before.get(begins[0][1]) != begins[0][0]:
            heapq.heappop(begins)
        return begins[0][0] if begins else math.inf

    def begin_of(self, job_id: str) -> float | None:
        """Return when a job may begin that may not yet (seconds); None for any other."""
        return self._not_before.get(job_id)

    def put_off(self, job_id: str, until_seconds: float) -> None:
        """Let a job begin no earlier."""
        self._not_before[job_id] = until_seconds
        heapq.heappush(self.begins, (until_seconds, job_id))

    def add(self, job: Job, conditions: StartConditions, now: float) -> None:
        """A job has been submitted."""
        begin = conditions.begin_seconds
        if begin is not None and begin > now:
            self.put_off(job.job_id, begin)

    def begun(self, now: float) -> Iterator[tuple[str, float]]:
        """Jobs that may begin by now and could not before, each with when it could."""
        while (begin := self.next_seconds) <= now:
            job_id = heapq.heappop(self.begins)[1]
            del self._not_before[job_id]
            yield job_id, begin

    def members(self, job: Job) -> ArrayMembers | None:
        """Members of a job's array; None if not even one, or any number of them, runs at once."""
        if job.conditions is None or job.conditions.most_at_once is None:
            return None
        return self._arrays.get(job.conditions.array)

    def let_go(self, job_id: str) -> None:
        """Let a job begin at any time."""
        self._not_before.pop(job_id, None)

    def lets_through(self, job: Job, arrival: int) -> bool:
        """Return whether a job that waits for nothing else may start; it waits in its array."""
        if job.job_id in self._not_before:
            return False
        conditions = job.conditions
        if conditions is None or conditions.most_at_once is None:
            return True
        members = self._arrays.setdefault(conditions.array, ArrayMembers(conditions.most_at_once))
        place = members.place(arrival, job.job_id)
        if place is None:
            insort(members.waiting, (arrival, job.job_id))
            place = bisect_left(members.waiting, (arrival, job.job_id))
        return place < members.room

    def starts(self, job: Job, arrival: int) -> None:
        """A job that was let through starts."""
        members = self.members(job)
        if members is not None:
            self.leaves(job, arrival)
            members.running.add(job.job_id)

    def stops(self, job: Job) -> None:
        """A job does not run any more."""
        members = self.members(job)
        if members is not None:
            members.running.discard(job.job_id)

    def leaves(self, job: Job, arrival: int) -> None:
        """A job does not wait in its array any more."""
        members = self.members(job)
        place = None if members is None else members.place(arrival, job.job_id)
        if members is not None and place is not None:
            del members.waiting[place]

    def remove(self, job: Job, arrival: int) -> None:
        """A job has finished."""
        self.let_go(job.job_id)
        self.leaves(job, arrival)
        self.stops(job)
        members = self.members(job)
        if members is not None and not (members.running or members.waiting):
            assert job.conditions is not None
            del self._arrays[job.conditions.array]
