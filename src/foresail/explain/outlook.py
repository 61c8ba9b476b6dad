"""The outlook: what jobs wait and run, and in which order they would start, to forecast from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast, runtime_checkable

from foresail.control.loop import Controller
from foresail.kernels.signatures import CompiledCorrection, CompiledScheduler
from foresail.model.cluster import Cluster, NamedPartitions, Resources
from foresail.model.construction import quickly_made
from foresail.model.errors import InputError
from foresail.model.event import Conventions
from foresail.model.job import Job
from foresail.model.view import PendingJob, RunningJob
from foresail.record.job_life import JobHistory
from foresail.record.state import State
from foresail.schedulers.kernels.reference import ReferenceTables

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
    """A job that has come, the like of which may come again.

    Parameters
    ----------
    pending
        As it would wait had it been submitted now, with what was believed of it then.
    partition, place
        As of a job that waits.
    submit_seconds
        When it came.
    runtime_seconds
        How long it ran; None for one that waits or runs still, whose draws tell.
    """

    pending: PendingJob
    partition: str | None
    place: float
    submit_seconds: float
    runtime_seconds: float | None


@runtime_checkable
class ReplayedReference(Protocol):
    """A schedule that a scheduler compares with, as the compiled replay has it."""

    def standing(self) -> Iterable[tuple[ReferenceTables, Mapping[str, int]]]:
        """Yield a copy of the tables of each partition, and the row of each job by its id."""


@dataclass(frozen=True, slots=True)
class QueueRule:
    """The rule by which a run starts jobs, where the compiled replay follows it.

    Parameters
    ----------
    scheduler, correction
        Its parts.
    conventions
        The order of things at the same instant.
    initial_seconds
        Runtimes that were planned with at first of the jobs that run, in their order.
    plan
        Planned starts (seconds) by job id.
    references
        By partition, what it compares with: the tables, and the row of each job by its id.
    """

    scheduler: CompiledScheduler
    correction: CompiledCorrection
    conventions: Conventions
    initial_seconds: tuple[float, ...]
    plan: Mapping[str, float]
    references: tuple[tuple[ReferenceTables, Mapping[str, int]], ...] = ()


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
    rule
        By which jobs are started; None: by their places, as ``backfills`` says.
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
    rule: QueueRule | None = None

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
    home = _PartitionOf(controller.cluster)
    waiting = [_queued(controller, each, home(each.job), planned, dues) for each in pending_jobs]
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
        rule=_rule(controller),
    )


def _rule(controller: Controller) -> QueueRule | None:
    correction, reference = controller.correction, controller.state.reference
    if (
        not isinstance(correction, CompiledCorrection)
        or not controller.scheduler.is_compiled
        or not (reference is None or isinstance(reference, ReplayedReference))
    ):
        return None
    return QueueRule(
        cast("Any", controller.scheduler).compiled(),
        correction,
        controller.conventions,
        tuple(
            controller.state.submitted_job(each.job.job_id).planned_seconds
            for each in controller.state.running_roster.in_order()
        ),
        controller.plan,
        () if reference is None else tuple(reference.standing()),
    )


def _not_held(state: State) -> list[PendingJob]:
    """Jobs that wait, by arrival; however many others are held."""
    rosters = state.startable, state.waiting_for, state.too_wide, state.held_back
    jobs = [each for by_id in rosters for each in by_id.values()]
    return sorted((each for each in jobs if each.job.job_id not in state.held), key=_by_arrival)


def _by_arrival(pending: PendingJob) -> int:
    return pending.arrival


def with_arrivals(outlook: Outlook, controller: Controller, jobs: JobHistory) -> Outlook:
    """The same, with the latest jobs that have come, of which arrivals are drawn."""
    latest = jobs.past[-MOST_RECENT:]
    came: dict[str, tuple[PendingJob, float | None]] = {}
    for each in latest:
        pending = PendingJob(each.job, 0, each.running.prediction, each.planned_seconds)
        came[each.job.job_id] = pending, each.outcome.runtime_seconds
    for runs in outlook.running:
        planned = controller.state.submitted_job(runs.job.job_id).planned_seconds
        came[runs.job.job_id] = PendingJob(runs.job, 0, runs.prediction, planned), None
    for queued in outlook.waiting:
        came[queued.pending.job.job_id] = queued.pending, None
    begin = outlook.now
    if len(latest) < len(jobs.past):  # all that came since then are known
        begin = jobs.past[-MOST_RECENT - 1].outcome.end_seconds
    elif jobs.submitted:
        begin = next(iter(jobs.submitted.values())).submit_seconds
    planned_starts, home = controller.plan, _PartitionOf(controller.cluster)
    recent = [
        _recent(controller, pending, home(pending.job), runtime, planned_starts)
        for job_id, (pending, runtime) in came.items()
        if pending.job.cpus and job_id in jobs.submitted
    ]
    recent.sort(key=_submitted)
    return replace(outlook, begin_seconds=begin, recent=tuple(recent))


def _submitted(recent: RecentJob) -> float:
    return recent.submit_seconds


def _recent(
    controller: Controller,
    pending: PendingJob,
    partition: str | None,
    runtime_seconds: float | None,
    starts: Mapping[str, float],
) -> RecentJob:
    job = replace(pending.job, submit_seconds=controller.now)
    now = replace(pending, job=job, arrival=controller.state.submissions)
    return RecentJob(
        pending,
        partition,
        _place(controller, now, starts),
        pending.job.submit_seconds,
        runtime_seconds,
    )


def _queued(
    controller: Controller,
    pending: PendingJob,
    partition: str | None,
    starts: Mapping[str, float],
    dues: Mapping[str, float] | None,
) -> QueuedJob:
    job = pending.job
    return QueuedJob(
        pending,
        partition,
        _place(controller, pending, starts),
        max(job.eligible_seconds, controller.now),
        pending.planned_seconds if dues is None else pending.prediction.quantile(0.5),
        math.inf if dues is None else dues.get(job.job_id, math.inf),
    )


class _PartitionOf:
    """Finds the partition that a job names, else the only one it fits in; None if others do too.

    Raises ``InputError`` if nodes of the cluster are in several partitions.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._partitions, self._named = cluster.partitions, NamedPartitions(cluster)
        records = self._named.records.items()
        self._are_apart = all(those == (name,) for name, those in records)

    def __call__(self, job: Job) -> str | None:
        if not self._are_apart:
            raise InputError(
                "forecasts know no nodes of several partitions",
                field="partition",
                value=job.partition,
            )
        names: Sequence[str] = [each.name for each in self._partitions]
        if len(names) > 1:
            asked = self._named.asked(job.partition) or names
            fitting = {each.name for each in self._partitions if job.total.fits_in(each.total)}
            names = [name for name in asked if name in fitting or len(asked) == 1]
        return names[0] if len(names) == 1 else None


def _place(controller: Controller, pending: PendingJob, starts: Mapping[str, float]) -> float:
    """By the scheduler's own order, else by its plan (seconds by job id), else by arrival."""
    if controller.scheduler.backfills is not None:
        return controller.scheduler.place_in_queue(pending, controller.now)
    return starts.get(pending.job.job_id, controller.now + 1e9 + pending.arrival)
