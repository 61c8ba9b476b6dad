"""Eligibility: which pending jobs may not start yet by their own conditions."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Iterator

from foresail.model.job import Job
from foresail.model.start_conditions import StartConditions


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
        """How many that wait came before a member; None if it does not wait."""
        at = bisect_left(self.waiting, (arrival, job_id))
        return at if self.waiting[at : at + 1] == [(arrival, job_id)] else None

    @property
    def room(self) -> int:
        """How many of those that wait may start."""
        return max(0, self.most - len(self.running))

    def edges(self) -> tuple[str | None, str | None]:
        """The last member that may start, and the first that may not."""
        room = self.room
        last = self.waiting[room - 1][1] if 0 < room <= len(self.waiting) else None
        return last, self.waiting[room][1] if room < len(self.waiting) else None


class Eligibility:
    """What keeps pending jobs back: their begin, and how many of their array run."""

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
        """When the next job may begin; infinite for never."""
        begins = self.begins
        while begins and begins[0][1] not in self._not_before:
            heapq.heappop(begins)
        return begins[0][0] if begins else math.inf

    def begins_later(self, job_id: str) -> bool:
        """Whether a job may not begin yet."""
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
        """Whether a job that waits for nothing else may start; it waits in its array."""
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
