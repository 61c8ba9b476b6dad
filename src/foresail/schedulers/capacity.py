"""The capacity stack: reservations from Rayon, and a queue for all jobs without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, Literal

from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, PlannedStart, Preempt, Start
from foresail.model.job import Job
from foresail.model.limits import require_positive
from foresail.model.reason import Reason, ReasonCode
from foresail.model.registry import register
from foresail.model.reservation import Rejection, Reservation
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._making_room import make_room, start_in_order
from foresail.schedulers._placing import FreeRoom, NodesByPreference
from foresail.schedulers._reserving import CapacityAdmission
from foresail.strl.reservations import Alignment

_ANYWHERE: Final = Placement(())


@dataclass(frozen=True, slots=True)
class CapacityParameters:
    """Parameters of ``capacity``."""

    reservations: Literal["latest", "earliest"] = "latest"
    """When a job is promised nodes: as late as its deadline allows (``latest``), or as early as
    nodes can be promised (``earliest``)."""
    preemption: bool = True
    """Jobs without a reservation (or behind theirs) are stopped for those within theirs."""
    cycle_seconds: float = 4.0
    """How often the scheduler is asked: reservations begin with a cycle."""

    def __post_init__(self) -> None:
        require_positive(self, "cycle_seconds")


@register("scheduler", "capacity", parameters=CapacityParameters)
class CapacityStack:
    """Reserved jobs from the start of their reservation; all others in a queue on what is left.

    The baseline Rayon/CapacityScheduler of TetriSched, as spec tetrisched section 9 models it. A
    job with a deadline asks for a reservation at submission. Within it the job has its nodes for
    certain: the youngest others are stopped for it if necessary. Before it begins the job waits.
    Once it is over, the job goes on (or waits on) as one of the others. These start in order of
    submission, skipping what does not fit, whatever their deadlines. Where a job runs best is not
    looked at.
    """

    def __init__(self, parameters: CapacityParameters) -> None:
        alignment = Alignment(parameters.reservations)
        self._preemption = parameters.preemption
        self._admission = CapacityAdmission(alignment, parameters.cycle_seconds)
        self._places = NodesByPreference(Cluster(()))

    def reserve(
        self, pending: PendingJob, earliest_seconds: float, now: float, cluster: Cluster
    ) -> Reservation | Rejection | None:
        """The answer to a job with a deadline; None to any other."""
        return self._admission.reserve(pending, earliest_seconds, now, cluster)

    def release(self, job_id: str, now: float) -> None:
        """A job that was promised something has ended, or never will run."""
        self._admission.release(job_id, now)

    def take_over(self, promised: Sequence[Reservation], cluster: Cluster) -> None:
        """Keep to what was promised before a run was interrupted."""
        self._admission.take_over(promised, cluster)

    def decide(self, view: ClusterView) -> Decision:
        """Start jobs with a reservation now, then what fits; stop others for the former.

        Reservations that have not begun are the plan; nothing is planned for the others.
        """
        if self._places.cluster is not view.cluster:
            self._places = NodesByPreference(view.cluster)
        room = FreeRoom(view, self._places)
        victims = [each for each in view.running if not _is_promised(each.reservation, view.now)]
        victims.sort(key=attrgetter("start_order"))
        starts: list[Start] = []
        stopped: list[Preempt] = []
        reasons: dict[str, Reason] = {}
        promised = [each for each in view.pending if _is_promised(each.reservation, view.now)]
        for job in start_in_order(_anywhere(promised), room, starts, reasons):
            if self._preemption:
                stopped += make_room(job, room, victims)
        plan: list[PlannedStart] = []
        for pending in view.pending:
            begin = _begins(pending.reservation, view.now)
            if begin is not None:
                job_id, numbers = pending.job.job_id, {"cpus": pending.job.cpus, "start": begin}
                plan.append(PlannedStart(job_id, begin, _ANYWHERE))
                reasons[job_id] = Reason(ReasonCode.RESERVED, numbers)
        plan.sort(key=attrgetter("start_seconds"))
        settled = reasons.keys() | {each.job_id for each in starts}
        queue = (each for each in view.pending if each.job.job_id not in settled)
        for _ in start_in_order(_anywhere(queue), room, starts, reasons):
            pass
        return Decision(tuple(starts), tuple(stopped), tuple(plan), reasons)


def _is_promised(answer: Reservation | Rejection | None, now: float) -> bool:
    return isinstance(answer, Reservation) and answer.covers(now)


def _begins(answer: Reservation | Rejection | None, now: float) -> float | None:
    """When a reservation begins that has not begun."""
    if not isinstance(answer, Reservation) or answer.covers(now) or answer.start_seconds <= now:
        return None
    return answer.start_seconds


def _anywhere(jobs: Iterable[PendingJob]) -> Iterator[Job]:
    """The jobs as if all nodes were alike to them."""
    for each in jobs:
        job = each.job
        yield job if job.preference is None else replace(job, preference=None)
