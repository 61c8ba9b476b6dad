"""Admission at submission, as Rayon does it: a reservation within now and the deadline, or none.

What is promised is a plan, never more than there is. Source: TetriSched (EuroSys 2016), section 2;
spec tetrisched sections 3.1, 3.2, 5 and T-3 (the paper only cites it).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from foresail.model import words
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.view import PendingJob, Rejection, Reservation

_ROUNDING = 1e-9

Alignment: TypeAlias = Literal["latest", "earliest"]
"""Which of several possible starts a reservation gets; the latest leaves the room near now free."""


class ReservationRequest(NamedTuple):
    """Containers for a time, which lies between two times: a gang in Rayon's reservation language.

    ``duration_seconds`` is the runtime on the nodes where the job is slow.
    """

    start_seconds: float
    finish_seconds: float
    containers: int
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class AdmissionPlan:
    """Plan of what is promised over time; every change makes a new one."""

    capacity: int
    """Containers there are, at least 1."""
    alignment: Alignment = "latest"
    reservations: tuple[Reservation, ...] = ()
    """What is promised, in order of acceptance."""

    def admit(
        self, job_id: str, asked: ReservationRequest, now_seconds: float
    ) -> tuple[AdmissionPlan, Reservation | Rejection]:
        """Promise what a job asks for, if that is possible without taking from any other.

        Nothing is promised before ``now_seconds``. All containers are held together.

        Raises ``InputError`` if the job already has a reservation.
        """
        if any(each.job_id == job_id for each in self.reservations):
            raise InputError("the job has a reservation", field="job_id", value=job_id)
        begin, lasting = max(asked.start_seconds, now_seconds), asked.duration_seconds
        room = asked.finish_seconds - begin
        if asked.containers > self.capacity:
            there_are = words.count(self.capacity, "container")
            return self, Rejection(f"asks for {asked.containers:,} of {there_are}")
        if room < lasting * (1.0 - _ROUNDING):
            ran = words.duration(lasting)
            return self, Rejection(f"{words.duration(max(room, 0.0))} is too short for {ran}")
        find = self._latest if self.alignment == "latest" else self._earliest
        span = find(begin, asked.finish_seconds, lasting, asked.containers)
        if span is None:
            wanted = words.count(asked.containers, "container")
            return self, Rejection(f"at no time are {wanted} free for {words.duration(lasting)}")
        promised = Reservation(job_id, *span, asked.containers)
        return replace(self, reservations=(*self.reservations, promised)), promised

    def released(self, job_id: str, now_seconds: float) -> AdmissionPlan:
        """The plan after a job ended: what it has no more use for is free again."""
        kept = (
            replace(each, end_seconds=min(each.end_seconds, now_seconds))
            if each.job_id == job_id
            else each
            for each in self.reservations
        )
        return replace(self, reservations=tuple(e for e in kept if e.start_seconds < e.end_seconds))

    def without_past(self, now_seconds: float) -> AdmissionPlan:
        """The plan without reservations that have ended."""
        kept = tuple(each for each in self.reservations if each.end_seconds > now_seconds)
        return replace(self, reservations=kept)

    def _latest(
        self, begin: float, finish: float, lasting: float, count: int
    ) -> tuple[float, float] | None:
        """The latest span between two times in which so many containers are free."""
        end = finish
        for busy_from, busy_until in reversed(list(self._too_full_for(count))):
            if busy_from < end and busy_until > end - lasting:
                end = busy_from
        start = end - lasting
        return (max(start, begin), end) if start >= begin - _ROUNDING * lasting else None

    def _earliest(
        self, begin: float, finish: float, lasting: float, count: int
    ) -> tuple[float, float] | None:
        """The earliest span between two times in which so many containers are free."""
        start = begin
        for busy_from, busy_until in self._too_full_for(count):
            if busy_from < start + lasting and busy_until > start:
                start = busy_until
        end = start + lasting
        return (start, min(end, finish)) if end <= finish + _ROUNDING * lasting else None

    def _too_full_for(self, count: int) -> Iterator[tuple[float, float]]:
        """Spans, in order, in which fewer than ``count`` containers are free."""
        changes = sorted(
            change
            for each in self.reservations
            for change in (
                (each.start_seconds, each.containers),
                (each.end_seconds, -each.containers),
            )
        )
        reserved, full_since = 0, None
        for time, change in changes:
            reserved += change
            full = reserved + count > self.capacity
            if full and full_since is None:
                full_since = time
            elif not full and full_since is not None:
                if time > full_since:
                    yield full_since, time
                full_since = None


class CapacityAdmission:
    """Promises to jobs, in containers of one cpu, from cycle to cycle.

    A job asks for its cpus for as long as it is expected to run where it is slow. That is rounded
    up to whole cycles, so that what begins with a cycle ends in time. Of memory or gpus it may ask
    for a larger share of the cluster: that share of all containers is promised to it, so that what
    is promised fits in every resource. It is promised nothing before jobs that it waits for are
    expected to have ended.

    Parameters
    ----------
    alignment
        Which of several possible times a job gets.
    cycle_seconds
        How often the scheduler is asked.
    """

    def __init__(self, alignment: Alignment, cycle_seconds: float) -> None:
        self._alignment = alignment
        self._cycle = cycle_seconds
        self._plan: AdmissionPlan | None = None

    def reserve(
        self, pending: PendingJob, earliest_seconds: float, now: float, cluster: Cluster
    ) -> Reservation | Rejection | None:
        """The answer to a job's request; None where it has no deadline, and asks for nothing.

        Nor is a job promised anything that has options: they say themselves what it is worth where.
        """
        job = pending.job
        deadline, expected = job.deadline_seconds, pending.prediction.mean()
        if deadline is None or job.options:
            return None
        if not 0.0 <= expected < math.inf:
            return Rejection("nothing is known of its runtime")
        slowdown = 1.0 if job.preference is None else job.preference.slowdown
        if earliest_seconds == math.inf:
            return Rejection("nothing is known of the runtime of a job that it waits for")
        begin = self._up(max(now, earliest_seconds))
        finish = math.floor(deadline / self._cycle + _ROUNDING) * self._cycle
        if finish <= begin:
            return Rejection(
                "its deadline comes before the next cycle"
                if finish <= self._up(now)
                else "its deadline comes before jobs that it waits for are to end"
            )
        containers = _containers(job, cluster)
        lasting = max(self._up(expected * slowdown), self._cycle)
        asked = ReservationRequest(begin, finish, containers, lasting)
        self._plan, answer = self._current(now, cluster).admit(job.job_id, asked, now)
        return answer

    def release(self, job_id: str, now: float) -> None:
        """Free what a job has no more use for."""
        if self._plan is not None:
            self._plan = self._plan.released(job_id, now)

    def take_over(self, promised: Sequence[Reservation], cluster: Cluster) -> None:
        """Keep to what was promised before a run was interrupted."""
        self._plan = replace(self._empty(cluster), reservations=tuple(promised))

    def _current(self, now: float, cluster: Cluster) -> AdmissionPlan:
        if self._plan is None:
            return self._empty(cluster)
        return replace(self._plan.without_past(now), capacity=_capacity(cluster))

    def _empty(self, cluster: Cluster) -> AdmissionPlan:
        return AdmissionPlan(_capacity(cluster), self._alignment)

    def _up(self, seconds: float) -> float:
        """To whole cycles."""
        return math.ceil(seconds / self._cycle - _ROUNDING) * self._cycle


def _capacity(cluster: Cluster) -> int:
    """Return how many containers there are now: less than is promised, if nodes have gone since."""
    return max(math.floor(cluster.total.cpus * (1.0 + _ROUNDING)), 1)


def _containers(job: Job, cluster: Cluster) -> int:
    """Count as many containers as its cpus, or as its share of memory or gpus is of all."""
    asked, total = job.total, cluster.total
    needed = [asked.cpus]
    for amount, whole in ((asked.memory_bytes, total.memory_bytes), (asked.gpus, total.gpus)):
        if amount > 0.0 and whole > 0.0:
            needed.append(amount / whole * _capacity(cluster))
    return max(math.ceil(max(needed) * (1.0 - _ROUNDING)), 1)
