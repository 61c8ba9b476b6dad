"""Strict priority and Rayon's CapacityScheduler: jobs that fit nowhere have others stopped."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Final, Literal

from foresail.model import decision as decisions
from foresail.model.errors import require_at_least, require_positive
from foresail.model.job import Job
from foresail.model.placing import FreeRoom, Rooms
from foresail.model.protocols import Scheduler
from foresail.model.registry import register
from foresail.model.view import ClusterView, PendingJob, Rejection, Reservation, RunningJob
from foresail.schedulers._reserving import CapacityAdmission, ReservingScheduler

_ROUNDING: Final = 1e-9


def start(job: Job, room: FreeRoom, starts: list[decisions.Start]) -> bool:
    """Add the job to those that start, if it fits; whether it does."""
    placement = room.placement(job)
    if placement is None:
        return False
    room.take(job, placement)
    starts.append(decisions.Start(job.job_id, placement))
    return True


def start_in_order(
    jobs: Iterable[Job],
    room: FreeRoom,
    starts: list[decisions.Start],
    reasons: dict[str, decisions.Reason],
) -> Iterator[Job]:
    """Start what fits of the jobs, one after the other; those that do not, with why they wait.

    There is no more room meanwhile than at first: of those alike, one that waits speaks for all.
    """
    refused: set[Hashable] = set()
    for job in jobs:
        alike = room.alike(job)
        if alike in refused or not start(job, room, starts):
            refused.add(alike)
            reasons[job.job_id] = no_room(job.cpus, max(room.cpus, 0.0))
            yield job


class _Stopping:
    """Running jobs that may be stopped for others in one pass, the youngest first.

    ``rooms`` gives what is free as the pass begins.
    """

    def __init__(self, victims: Iterable[RunningJob], rooms: Callable[[], FreeRoom]) -> None:
        self._victims = sorted(victims, key=attrgetter("start_order"))
        self._rooms = rooms
        self._hopeless: set[Hashable] = set()

    @cached_property
    def _most(self) -> FreeRoom:
        """The room were all of them gone as the pass begins: there is never more."""
        room = self._rooms()
        for each in self._victims:
            room.add(each.job, each.placement)
        return room

    def make_room(self, job: Job, room: FreeRoom) -> list[decisions.Preempt]:
        """Stop the youngest until the job would fit; none if it never would.

        They hold their nodes until the cluster reports that they have ended, and what the job is to
        have of these is no other job's: it starts in the pass after that. On return ``room`` is
        less by what the job is to have of it.
        """
        alike = room.alike(job)
        if alike in self._hopeless or not self._victims:
            return []
        found = None if self._most.placement(job) is None else self._fewest(job, room)
        if found is None:
            self._hopeless.add(alike)
            return []
        placement, count = found
        room.take(job, placement)
        stopped = self._victims[: -count - 1 : -1]
        del self._victims[-count:]
        return [decisions.Preempt(victim.job.job_id) for victim in stopped]

    def _fewest(self, job: Job, room: FreeRoom) -> tuple[decisions.Placement, int] | None:
        """Find where the job fits without the fewest of the youngest, and how many these are.

        More and more are left out until it fits, then half of those that may be too many.
        """
        victims, cpus, count = self._victims, job.cpus - room.cpus, 0
        while count < len(victims) and (count == 0 or cpus > _ROUNDING * job.cpus):
            count += 1
            cpus -= victims[-count].job.cpus
        if cpus > _ROUNDING * job.cpus:
            return None
        gone, too_few, enough, more = 0, count - 1, len(victims) + 1, 1
        found: decisions.Placement | None = None
        while too_few + 1 < enough:
            for each in victims[len(victims) - count : len(victims) - gone]:
                room.add(each.job, each.placement)
            for each in victims[len(victims) - gone : len(victims) - count]:
                room.take(each.job, each.placement)
            gone, placement = count, room.placement(job)
            if placement is not None:
                enough, found = count, placement
            else:
                too_few = count
            if found is None:
                count, more = min(too_few + more, len(victims)), 2 * more
            else:
                count = (too_few + enough) // 2
        for each in victims[len(victims) - gone :]:
            room.take(each.job, each.placement)
        return None if found is None else (found, enough)


@lru_cache(maxsize=4096)
def no_room(cpus: float, free: float) -> decisions.Reason:
    """Return why a job waits that needs more cpus than are free."""
    return decisions.Reason(decisions.ReasonCode.NO_ROOM, {"cpus": cpus, "free": free})


@dataclass(frozen=True, slots=True)
class PriorityParameters:
    """Parameters of ``priority``."""

    back_off_seconds: float = 0.0
    """A job that was stopped runs at least so long before it is stopped again, twice as long after
    each further stop. 0: it may be stopped at any moment, as published."""

    def __post_init__(self) -> None:
        require_at_least(self, 0, "back_off_seconds")


@register("scheduler", "priority", parameters=PriorityParameters)
class Priority(Scheduler):
    """Jobs with deadlines first, stopping the youngest others for them; a pass: O(waiting jobs).

    The baseline ``Prio`` of 3Sigma, whose rules its source leaves open: jobs with deadlines in
    order of submission, on preferred nodes if they fit there, else on any, skipping those that do
    not fit; where one does not fit, the youngest running jobs without a deadline are stopped until
    it would; then the others in order of submission on what is left. It never waits for preferred
    nodes and gives no job up.
    """

    ignores_time = True

    def __init__(self, parameters: PriorityParameters) -> None:
        if parameters.back_off_seconds:
            self.ignores_time = False
        self._back_off_seconds = parameters.back_off_seconds
        self._rooms = Rooms()

    def decide(self, view: ClusterView) -> decisions.Decision:
        """Start what fits, in strict order; stop others for jobs with a deadline."""
        room = self._rooms.at(view)
        others = [each for each in view.running if not _has_deadline(each.job)]
        until = [each.protected_until(self._back_off_seconds) for each in others]
        later = min((seconds for seconds in until if seconds > view.now), default=math.inf)
        victims = (each for each, end in zip(others, until, strict=True) if end <= view.now)
        stopping = _Stopping(victims, partial(self._rooms.at, view))
        starts: list[decisions.Start] = []
        stopped: list[decisions.Preempt] = []
        reasons: dict[str, decisions.Reason] = {}
        jobs = sorted((each.job for each in view.pending), key=_has_deadline, reverse=True)
        ticks: tuple[decisions.TickAt, ...] = ()
        for job in start_in_order(jobs, room, starts, reasons):
            if _has_deadline(job):
                stopped += stopping.make_room(job, room)
                if later < math.inf:
                    ticks = (decisions.TickAt(job.job_id, later),)
        return decisions.Decision(tuple(starts), tuple(stopped), reasons=reasons, ticks=ticks)


def _has_deadline(job: Job) -> bool:
    return job.deadline_seconds is not None


_ANYWHERE: Final = decisions.Placement(())


@dataclass(frozen=True, slots=True)
class CapacityParameters:
    """Parameters of ``capacity``."""

    reservations: Literal["latest", "earliest"] = "latest"
    """Time for which a job is promised nodes: as late as its deadline allows (``latest``), or as
    early as nodes can be promised (``earliest``)."""
    cycle_seconds: float = 4.0
    """Time between two decisions: reservations begin with a cycle."""

    def __post_init__(self) -> None:
        require_positive(self, "cycle_seconds")


@register("scheduler", "capacity", parameters=CapacityParameters)
class CapacityStack(ReservingScheduler):
    """Reserved jobs from the start of their reservation, others in order; a pass: O(waiting jobs).

    The baseline Rayon/CapacityScheduler of TetriSched (EuroSys 2016). A
    job with a deadline asks for a reservation at submission. Within it the job has its nodes for
    certain: the youngest others are stopped for it if necessary. Before it begins the job waits.
    Once it is over, the job goes on (or waits on) as one of the others. These start in order of
    submission, skipping what does not fit, whatever their deadlines. Where a job runs best is not
    looked at.
    """

    def __init__(self, parameters: CapacityParameters) -> None:
        admission = CapacityAdmission(parameters.reservations, parameters.cycle_seconds)
        super().__init__(admission)
        self._rooms = Rooms()

    def decide(self, view: ClusterView) -> decisions.Decision:
        """Start jobs with a reservation now, then what fits; stop others for the former.

        Reservations that have not begun are the plan; nothing is planned for the others.
        """
        room = self._rooms.at(view)
        victims = (each for each in view.running if not _is_promised(each.reservation, view.now))
        stopping = _Stopping(victims, partial(self._rooms.at, view))
        starts: list[decisions.Start] = []
        stopped: list[decisions.Preempt] = []
        reasons: dict[str, decisions.Reason] = {}
        promised = [each for each in view.pending if _is_promised(each.reservation, view.now)]
        for job in start_in_order(_anywhere(promised), room, starts, reasons):
            stopped += stopping.make_room(job, room)
        plan: list[decisions.PlannedStart] = []
        for pending in view.pending:
            begin = _begins(pending.reservation, view.now)
            if begin is not None:
                job_id, numbers = pending.job.job_id, {"cpus": pending.job.cpus, "start": begin}
                plan.append(decisions.PlannedStart(job_id, begin, _ANYWHERE))
                reasons[job_id] = decisions.Reason(decisions.ReasonCode.RESERVED, numbers)
        plan.sort(key=attrgetter("start_seconds"))
        settled = reasons.keys() | {each.job_id for each in starts}
        queue = (each for each in view.pending if each.job.job_id not in settled)
        for _ in start_in_order(_anywhere(queue), room, starts, reasons):
            pass
        return decisions.Decision(tuple(starts), tuple(stopped), tuple(plan), reasons)


def _is_promised(answer: Reservation | Rejection | None, now: float) -> bool:
    return isinstance(answer, Reservation) and answer.covers(now)


def _begins(answer: Reservation | Rejection | None, now: float) -> float | None:
    """Return when a reservation begins that has not begun."""
    if not isinstance(answer, Reservation) or answer.covers(now) or answer.start_seconds <= now:
        return None
    return answer.start_seconds


def _anywhere(jobs: Iterable[PendingJob]) -> Iterator[Job]:
    """The jobs as if all nodes were alike to them."""
    for each in jobs:
        job = each.job
        yield job if job.preference is None else replace(job, preference=None)
