"""Starting a job where it fits, and stopping others for one that fits nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from foresail.model.decision import Preempt, Start
from foresail.model.job import Job
from foresail.model.reason import Reason, ReasonCode
from foresail.model.view import RunningJob
from foresail.schedulers._placing import FreeRoom

_ROUNDING: Final = 1e-9


def start(job: Job, room: FreeRoom, starts: list[Start]) -> bool:
    """Add the job to those that start, if it fits; whether it does."""
    placement = room.placement(job)
    if placement is None:
        return False
    room.take(job, placement)
    starts.append(Start(job.job_id, placement))
    return True


def start_in_order(
    jobs: Iterable[Job], room: FreeRoom, starts: list[Start], reasons: dict[str, Reason]
) -> Iterator[Job]:
    """Start what fits of the jobs, one after the other; those that do not, with why they wait."""
    for job in jobs:
        if not start(job, room, starts):
            reasons[job.job_id] = no_room(job.cpus, max(room.cpus, 0.0))
            yield job


def make_room(job: Job, room: FreeRoom, victims: list[RunningJob]) -> list[Preempt]:
    """Stop the youngest victims until the job would fit; none if it never would.

    They hold their nodes until the cluster reports that they have ended, and what the job is to
    have of these is no other job's: it starts in the pass after that.

    Parameters
    ----------
    job
        What needs room.
    room
        What is free; less what the job is to have of it, on return.
    victims
        What may be stopped, the youngest last; those that are stopped are taken out.
    """
    cpus = job.cpus - room.cpus
    chosen: list[RunningJob] = []
    returned = 0
    placement = None
    for victim in reversed(victims):
        chosen.append(victim)
        cpus -= victim.job.cpus
        if cpus > _ROUNDING * job.cpus:
            continue
        for each in chosen[returned:]:
            room.add(each.job, each.placement)
        returned = len(chosen)
        placement = room.placement(job)
        if placement is not None:
            break
    for each in chosen[:returned]:
        room.take(each.job, each.placement)
    if placement is None:
        return []
    room.take(job, placement)
    del victims[len(victims) - len(chosen) :]
    return [Preempt(victim.job.job_id) for victim in chosen]


@lru_cache(maxsize=4096)
def no_room(cpus: float, free: float) -> Reason:
    """Why a job waits that needs more cpus than are free."""
    return Reason(ReasonCode.NO_ROOM, {"cpus": cpus, "free": free})
