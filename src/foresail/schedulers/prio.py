"""Strict priority of jobs with deadlines over the others, which make room for them."""

from __future__ import annotations

from foresail.model.decision import Decision, Preempt, Start
from foresail.model.job import Job
from foresail.model.reason import Reason, ReasonCode
from foresail.model.registry import NoParameters, register
from foresail.model.value import DeadlineValue
from foresail.model.view import ClusterView, RunningJob
from foresail.schedulers._placing import FreeRoom


@register("scheduler", "prio")
class Prio:
    """Jobs with deadlines first, stopping the youngest others for them; no runtimes are asked for.

    The baseline ``Prio`` of 3Sigma, whose rules its source leaves open (spec 3sigma-distsched
    section 6.2): jobs with deadlines in order of submission, on preferred nodes if they fit there,
    else on any, skipping those that do not fit; where one does not fit, the youngest running jobs
    without a deadline are stopped until it would; then the others in order of submission on what
    is left. It never waits for preferred nodes and gives no job up.
    """

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def decide(self, view: ClusterView) -> Decision:
        """Start who fits, in strict order; stop others for whom has a deadline."""
        room = FreeRoom(view)
        victims = sorted(
            (each for each in view.running if not _has_deadline(each.job)),
            key=lambda each: each.start_order,
        )
        starts: list[Start] = []
        stopped: list[Preempt] = []
        reasons: dict[str, Reason] = {}
        urgent = [each.job for each in view.pending if _has_deadline(each.job)]
        patient = [each.job for each in view.pending if not _has_deadline(each.job)]
        for job in urgent:
            if not _start(job, room, starts):
                stopped += _make_room(job, room, victims)
                reasons[job.job_id] = _no_room(job, view)
        for job in patient:
            if not _start(job, room, starts):
                reasons[job.job_id] = _no_room(job, view)
        return Decision(tuple(starts), tuple(stopped), reasons=reasons)


def _has_deadline(job: Job) -> bool:
    return isinstance(job.value, DeadlineValue)


def _start(job: Job, room: FreeRoom, starts: list[Start]) -> bool:
    placement = room.placement(job)
    if placement is None:
        return False
    room.take(job, placement)
    starts.append(Start(job.job_id, placement))
    return True


def _make_room(job: Job, room: FreeRoom, victims: list[RunningJob]) -> list[Preempt]:
    """Stop the youngest victims until the job would fit; nobody if it never would.

    They hold their nodes until the cluster reports that they have ended, and what the job is to
    have of these is nobody else's: it starts in the pass after that.
    """
    chosen: list[RunningJob] = []
    for victim in reversed(victims):
        room.add(victim.job, victim.placement)
        chosen.append(victim)
        placement = room.placement(job)
        if placement is not None:
            break
    else:
        placement = None
    for victim in chosen:
        room.take(victim.job, victim.placement)
    if placement is None:
        return []
    room.take(job, placement)
    for victim in chosen:
        victims.remove(victim)
    return [Preempt(victim.job.job_id) for victim in chosen]


def _no_room(job: Job, view: ClusterView) -> Reason:
    free = sum(each.cpus for each in view.free.values())
    return Reason(ReasonCode.NO_ROOM, {"cpus": job.cpus, "free": free})
