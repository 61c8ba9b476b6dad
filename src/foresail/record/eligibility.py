"""Eligibility: which pending jobs may not start yet, by what they wait for and other conditions."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from foresail.model.job import Dependency, DependencyKind, Job, StartConditions
from foresail.model.outcome import EndedBecause
from foresail.model.view import PendingJob
from foresail.record.job_life import EndedJob

_Namesakes: TypeAlias = dict[tuple[str | None, str], dict[str, None]]
"""Ids of living jobs in order of arrival, by user and name."""


class Dependencies:
    """Conditions that jobs set on the ends of others.

    To be read by others: ``dependents`` (jobs that wait for one that has not ended, by its id).
    ``ended`` is what has ended, by id, as it stands.
    """

    def __init__(self, ended: Mapping[str, EndedJob]) -> None:
        self._ended = ended
        self.dependents: dict[str, list[str]] = {}
        self._namesakes: _Namesakes | None = None  # no singleton has come yet

    def copy(self, ended: Mapping[str, EndedJob]) -> Dependencies:
        """Another, in which all is as it is here."""
        twin = Dependencies(ended)
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
        for predecessor in job.after:
            if predecessor not in self._ended:
                self.dependents.setdefault(predecessor, []).append(job.job_id)

    def leave_namesakes(self, job: Job) -> str | None:
        """Leave the namesakes at its end; returns the next of them, which may be a singleton."""
        if self._namesakes is None or job.name is None:
            return None
        namesakes = self._namesakes[job.user, job.name]
        del namesakes[job.job_id]
        if not namesakes:
            del self._namesakes[job.user, job.name]
        return next(iter(namesakes), None)

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
        """When jobs may begin, and which: a heap, in which there are jobs that have ended too."""
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
        while begins and begins[0][1] not in self._not_before:
            heapq.heappop(begins)
        return begins[0][0] if begins else math.inf

    def begins_later(self, job_id: str) -> bool:
        """Return whether a job may not begin yet."""
        return job_id in self._not_before

    def add(self, job: Job, conditions: StartConditions, now: float) -> None:
        """A job has been submitted."""
        begin = conditions.begin_seconds
        if begin is not None and begin > now:
            self._not_before[job.job_id] = begin
            heapq.heappush(self.begins, (begin, job.job_id))

    def begun(self, now: float) -> Iterator[tuple[str, float]]:
        """Jobs that may begin by now and could not before, each with when it could."""
        while (begin := self.next_seconds) <= now:
            job_id = heapq.heappop(self.begins)[1]
            del self._not_before[job_id]
            yield job_id, begin

    def members(self, job: Job) -> ArrayMembers | None:
        """Those of a job's array; None if not even one, or any number of them, runs at once."""
        if job.conditions is None or job.conditions.most_at_once is None:
            return None
        return self._arrays.get(job.conditions.array)

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
        """A job is done with."""
        self._not_before.pop(job.job_id, None)
        self.leaves(job, arrival)
        self.stops(job)
        members = self.members(job)
        if members is not None and not (members.running or members.waiting):
            assert job.conditions is not None
            del self._arrays[job.conditions.array]
