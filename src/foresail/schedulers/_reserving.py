"""Admission at submission, as Rayon does it: a reservation within now and the deadline, or none.

What is promised is a plan, never more than there is. Source: TetriSched (EuroSys 2016), section 2,
which only cites it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from foresail.model import words
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.protocols import Scheduler
from foresail.model.view import PendingJob, Rejection, Reservation

_ROUNDING = 1e-9

Alignment: TypeAlias = Literal["latest", "earliest"]
"""Choice among possible starts of a reservation; the latest leaves room near now free."""

_Span: TypeAlias = tuple[float, float]
"""Begin and end (seconds)."""


class CapacityAdmission:
    """Promises to jobs, in containers of one cpu, from cycle to cycle.

    A job asks for its cpus for as long as it is expected to run where it is slow. That is rounded
    up to whole cycles, so that what begins with a cycle ends in time. Of memory or gpus it may ask
    for a larger share of the cluster: that share of all containers is promised to it, so that what
    is promised fits in every resource. It is promised nothing before jobs that it waits for are
    expected to have ended. The alignment says which of several possible times it gets.
    """

    def __init__(self, alignment: Alignment, cycle_seconds: float) -> None:
        self._find = self._latest if alignment == "latest" else self._earliest
        self._cycle = cycle_seconds
        self.promised: list[Reservation] = []  # in order of acceptance

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
        lasting = max(self._up(expected * slowdown), self._cycle)
        self.promised = [each for each in self.promised if each.end_seconds > now]
        capacity, containers = _capacity(cluster), _containers(job, cluster)
        return self.admit(job.job_id, (max(begin, now), finish), containers, lasting, capacity)

    def admit(
        self, job_id: str, window: _Span, containers: int, lasting: float, capacity: int
    ) -> Reservation | Rejection:
        """Promise containers for so many seconds within a window, taking from no other job.

        All containers, of which there are ``capacity``, are held together.

        Raises ``InputError`` if the job already has a reservation.
        """
        if any(each.job_id == job_id for each in self.promised):
            raise InputError("the job has a reservation", field="job_id", value=job_id)
        begin, finish = window
        if containers > capacity:
            there_are = words.count(capacity, "container")
            return Rejection(f"asks for {containers:,} of {there_are}")
        ran = words.duration(lasting)
        if finish - begin < lasting * (1.0 - _ROUNDING):
            room = words.duration(max(finish - begin, 0.0))
            return Rejection(f"{room} is too short for {ran}")
        busy = list(self._too_full_for(containers, capacity))
        span = self._find(begin, finish, lasting, busy)
        if span is None:
            wanted = words.count(containers, "container")
            return Rejection(f"at no time are {wanted} free for {ran}")
        promised = Reservation(job_id, *span, containers)
        self.promised.append(promised)
        return promised

    def release(self, job_id: str, now: float) -> None:
        """Free what a job has no more use for."""
        kept = (
            replace(each, end_seconds=min(each.end_seconds, now)) if each.job_id == job_id else each
            for each in self.promised
        )
        self.promised = [each for each in kept if each.start_seconds < each.end_seconds]

    def take_over(self, promised: Sequence[Reservation]) -> None:
        """Keep to what was promised before a run was interrupted."""
        self.promised = [*promised]

    def _up(self, seconds: float) -> float:
        """To whole cycles."""
        return math.ceil(seconds / self._cycle - _ROUNDING) * self._cycle

    @staticmethod
    def _latest(begin: float, finish: float, lasting: float, busy: Sequence[_Span]) -> _Span | None:
        """The latest span between two times that is not busy."""
        end = finish
        for busy_from, busy_until in reversed(busy):
            if busy_from < end and busy_until > end - lasting:
                end = busy_from
        start = end - lasting
        return (max(start, begin), end) if start >= begin - _ROUNDING * lasting else None

    @staticmethod
    def _earliest(
        begin: float, finish: float, lasting: float, busy: Sequence[_Span]
    ) -> _Span | None:
        """The earliest span between two times that is not busy."""
        start = begin
        for busy_from, busy_until in busy:
            if busy_from < start + lasting and busy_until > start:
                start = busy_until
        end = start + lasting
        return (start, min(end, finish)) if end <= finish + _ROUNDING * lasting else None

    def _too_full_for(self, count: int, capacity: int) -> Iterator[_Span]:
        """Spans, in order, in which fewer than ``count`` containers are free."""
        changes = sorted(
            change
            for each in self.promised
            for change in (
                (each.start_seconds, each.containers),
                (each.end_seconds, -each.containers),
            )
        )
        reserved, full_since = 0, None
        for time, change in changes:
            reserved += change
            full = reserved + count > capacity
            if full and full_since is None:
                full_since = time
            elif not full and full_since is not None:
                if time > full_since:
                    yield full_since, time
                full_since = None


class ReservingScheduler(Scheduler):
    """A scheduler that promises capacity at submission, if it has an admission."""

    def __init__(self, admission: CapacityAdmission | None) -> None:
        self._admission = admission

    def reserve(
        self, pending: PendingJob, earliest_seconds: float, now: float, cluster: Cluster
    ) -> Reservation | Rejection | None:
        """The answer to a job with a deadline; None to others, and where reservations are off."""
        if self._admission is None:
            return None
        return self._admission.reserve(pending, earliest_seconds, now, cluster)

    def release(self, job_id: str, now: float) -> None:
        """A job that was promised something has ended, or never will run."""
        if self._admission is not None:
            self._admission.release(job_id, now)

    def take_over(self, promised: Sequence[Reservation], cluster: Cluster) -> None:
        """Keep to what was promised before a run was interrupted."""
        del cluster
        if self._admission is not None:
            self._admission.take_over(promised)


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
