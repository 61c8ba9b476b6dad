"""The outlook: what jobs wait and run, and in which order they would start, to forecast from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from foresail.control.loop import Controller
from foresail.model.cluster import NamedPartitions, Resources
from foresail.model.construction import quickly_made
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.view import PendingJob, RunningJob
from foresail.record.job_life import EndedAttempt, JobHistory
from foresail.record.state import State

MOST_RECENT: Final = 2_000
"""Of how many of the latest jobs arrivals are drawn."""


@quickly_made
@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits.

    Parameters
    ----------
    pending
        With what is believed of it now.
    partition
        Where it would run; None: in any that has the cpus.
    place
        Jobs of lower numbers are tried first.
    ready_seconds
        When it may start at the earliest.
    likely_seconds
        Runtime that it is tried with behind another that does not fit.
    due_seconds
        From when on it goes before all others; infinite for never.
    """

    pending: PendingJob
    partition: str | None
    place: float
    ready_seconds: float
    likely_seconds: float
    due_seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class RecentJob:
    """A job that has ended: what came, and may come again.

    ``partition`` is as of one that waits, ``place`` what it would be if it were submitted now.
    """

    submit_seconds: float
    needs: Resources
    partition: str | None
    runtime_seconds: float
    planned_seconds: float
    likely_seconds: float
    place: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """State of a run at a moment, as far as what follows depends on it; never changes.

    Parameters
    ----------
    now
        The moment (seconds on the run's clock).
    begin_seconds
        When the run began.
    room
        What can be used, by partition; what runs holds some of it.
    backfills
        Whether jobs may overtake if the first that waits is not delayed.
    running, waiting
        All jobs but those that are held, in order of start and of arrival.
    taken
        How much of the room each job takes that runs: nothing on nodes that are drained or down.
    held
        Ids of those, which start never as things stand.
    has_order
        Whether the scheduler has an order of its queue; else its plan stands in, then arrival.
    recent
        Jobs of which arrivals are drawn, in order of submission.
    """

    now: float
    begin_seconds: float
    room: Mapping[str, Resources]
    backfills: bool
    running: tuple[RunningJob, ...]
    taken: tuple[Resources, ...]
    waiting: tuple[QueuedJob, ...]
    held: frozenset[str] = frozenset()
    recent: tuple[RecentJob, ...] = ()
    has_order: bool = True

    @property
    def cpus(self) -> dict[str, float]:
        """Cpus that can be used, by partition."""
        return {name: room.cpus for name, room in self.room.items()}


def outlook_of(controller: Controller, others: Iterable[Job] = ()) -> Outlook:
    """Return the outlook of a controller, and as if it had been given other jobs.

    Parameters
    ----------
    controller
        Is only looked at; its predictor is asked about the other jobs, from which it learns
        nothing.
    others
        Jobs that are not submitted. One with the id of a job that waits takes its place. Each may
        start from its submission on, or from now on if that is later.
    """
    state = controller.state
    room = dict(controller.state.free.by_partition())
    if controller.cluster.shared:  # by what tasks use, whatever they ask for
        room = {name: Resources(each.cpus, math.inf, math.inf) for name, each in room.items()}
    running = tuple(state.running_roster.in_order())
    frees_nothing = state.free.frees_nothing
    taken = [Resources() if frees_nothing(each.placement) else each.held.total for each in running]
    for each, amount in zip(running, taken, strict=True):
        for name, _ in each.placement.tasks_by_partition[:1]:
            room[name] += amount
    held = frozenset(state.held)
    dues = controller.dues_ahead()
    instead = {job.job_id: job for job in others if job.job_id not in held}
    pending_jobs = []
    for pending in _not_held(state):
        asked = instead.pop(pending.job.job_id, None)
        if asked is not None:
            pending = replace(controller.as_if_submitted(asked), arrival=pending.arrival)
        pending_jobs.append(pending)
    pending_jobs += map(controller.as_if_submitted, instead.values())
    planned = controller.plan
    waiting = [_queued(controller, each, planned, dues) for each in pending_jobs]
    return Outlook(
        now=controller.now,
        begin_seconds=0.0,
        room=room,
        backfills=controller.scheduler.backfills is not False,
        running=running,
        taken=tuple(taken),
        waiting=tuple(waiting),
        held=held,
        has_order=controller.scheduler.backfills is not None,
    )


def _not_held(state: State) -> list[PendingJob]:
    """Jobs that wait, by arrival; however many others are held."""
    rosters = state.startable, state.waiting_for, state.too_wide, state.held_back
    jobs = [each for by_id in rosters for each in by_id.values()]
    return sorted((each for each in jobs if each.job.job_id not in state.held), key=_by_arrival)


def _by_arrival(pending: PendingJob) -> int:
    return pending.arrival


def with_arrivals(outlook: Outlook, controller: Controller, jobs: JobHistory) -> Outlook:
    """The same, with the latest jobs that have ended, of which arrivals are drawn."""
    latest = sorted(jobs.past[-MOST_RECENT:], key=_submitted)
    first: dict[str, EndedAttempt] = {each.job.job_id: each for each in latest}
    planned = controller.plan
    recent = tuple(_recent(controller, each, planned) for each in first.values() if each.job.cpus)
    begin = min((job.submit_seconds for job in jobs.submitted.values()), default=outlook.now)
    return replace(outlook, begin_seconds=begin, recent=recent)


def _submitted(attempt: EndedAttempt) -> float:
    return attempt.job.submit_seconds


def _recent(
    controller: Controller, attempt: EndedAttempt, starts: Mapping[str, float]
) -> RecentJob:
    job = replace(attempt.job, submit_seconds=controller.now)
    belief, planned = attempt.running.prediction, attempt.planned_seconds
    pending = PendingJob(job, controller.state.submissions, belief, planned)
    return RecentJob(
        submit_seconds=attempt.job.submit_seconds,
        needs=job.total,
        partition=_partition(controller, job),
        runtime_seconds=attempt.outcome.runtime_seconds,
        planned_seconds=planned,
        likely_seconds=planned,
        place=_place(controller, pending, starts),
    )


def _queued(
    controller: Controller,
    pending: PendingJob,
    starts: Mapping[str, float],
    dues: Mapping[str, float] | None,
) -> QueuedJob:
    job = pending.job
    return QueuedJob(
        pending,
        _partition(controller, job),
        _place(controller, pending, starts),
        max(job.eligible_seconds, controller.now),
        pending.planned_seconds if dues is None else pending.prediction.quantile(0.5),
        math.inf if dues is None else dues.get(job.job_id, math.inf),
    )


def _partition(controller: Controller, job: Job) -> str | None:
    """The partition that a job names, else the only one that it fits in; None if others do too."""
    partitions = controller.cluster.partitions
    names = [each.name for each in partitions]
    named = NamedPartitions(controller.cluster)
    if any(records != (name,) for name, records in named.records.items()):
        raise InputError(
            "forecasts know no nodes of several partitions", field="partition", value=job.partition
        )
    if len(names) > 1:
        asked = named.asked(job.partition) or names
        fitting = {each.name for each in partitions if job.total.fits_in(each.total)}
        names = [name for name in asked if name in fitting or len(asked) == 1]
    return names[0] if len(names) == 1 else None


def _place(controller: Controller, pending: PendingJob, starts: Mapping[str, float]) -> float:
    """By the scheduler's own order, else by its plan (seconds by job id), else by arrival."""
    if controller.scheduler.backfills is not None:
        return controller.scheduler.place_in_queue(pending, controller.now)
    return starts.get(pending.job.job_id, controller.now + 1e9 + pending.arrival)
