"""Admission at submission, as Rayon does it: a reservation within now and the deadline, or none.

Source: TetriSched (EuroSys 2016), section 2; spec tetrisched section 3.2 and T-3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from foresail.model.cluster import Cluster
from foresail.model.job import Job
from foresail.model.reservation import Rejection, Reservation
from foresail.model.view import PendingJob
from foresail.strl.reservations import AdmissionPlan, Alignment, ReservationRequest

_ROUNDING = 1e-9


class CapacityAdmission:
    """What is promised to which job, in containers of one cpu, from cycle to cycle.

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
        answer = self._current(now, cluster).admit(job.job_id, asked, now)
        self._plan = answer.plan
        return answer.reservation or Rejection(answer.reason)

    def release(self, job_id: str, now: float) -> None:
        """What a job has no more use for is free again."""
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
    """How many containers there are now: less than is promised, if nodes have gone since."""
    return max(math.floor(cluster.total.cpus * (1.0 + _ROUNDING)), 1)


def _containers(job: Job, cluster: Cluster) -> int:
    """As many containers as its cpus, or as its share of the cluster's memory or gpus is of all."""
    asked, total = job.total, cluster.total
    needed = [asked.cpus]
    for amount, whole in (
        (asked.memory_bytes, total.memory_bytes),
        (asked.gpus, total.gpus),
    ):
        if amount > 0.0 and whole > 0.0:
            needed.append(amount / whole * _capacity(cluster))
    return max(math.ceil(max(needed) * (1.0 - _ROUNDING)), 1)
