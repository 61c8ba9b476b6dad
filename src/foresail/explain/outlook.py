"""The outlook: what jobs wait and run, and in which order they would start, to forecast from."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from foresail.schedulers.kernels.reference import ReferenceTables

MOST_RECENT: Final = 2_000
"""Of how many of the latest jobs arrivals are drawn."""

_MOST_FORESEEN: Final = 5_000
"""Of so many jobs that wait it is foreseen when they are due: with more, it would take seconds."""


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
    plan: Mapping[str, float] = field(default_factory=dict)
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


def outlook_of(
    controller: Controller, others: Iterable[Job] = (), history: JobHistory | None = None
) -> Outlook:
    """Return the outlook of a controller, and as if it had been given other jobs.

    Parameters
    ----------
    controller
        Is only looked at; its predictor is asked about the other jobs, from which it learns
        nothing.
    others
        Jobs that are not submitted. One with the id of a job that waits takes its place. Each may
        start from its submission on, or from now on if that is later.
    history
        Jobs the like of which may come again; None: nothing comes.

    Raises ``InputError`` if nodes of the cluster are in several partitions.
    """
    return outlook_maker(controller, others, history)()


def outlook_maker(
    controller: Controller, others: Iterable[Job] = (), history: JobHistory | None = None
) -> Callable[[], Outlook]:
    """Return what makes the outlook of this moment, in any thread, whatever happens meanwhile.

    So a controller waits only until it is noted what is pending and runs.
    """
    state, scheduler = controller.state, controller.scheduler
    now, cluster, arrival = controller.now, controller.cluster, state.submissions
    room = dict(state.free.by_partition())
    if cluster.shared:  # by what tasks use, whatever they ask for
        room = {name: Resources(each.cpus, math.inf, math.inf) for name, each in room.items()}
    running = tuple(state.running_roster.in_order())
    frees_nothing = state.free.frees_nothing
    taken = [Resources() if frees_nothing(each.placement) else each.held.total for each in running]
    for each, amount in zip(running, taken, strict=True):
        for name, _ in each.placement.tasks_by_partition[:1]:
            room[name] += amount
    held, plan = frozenset(state.held), controller.plan
    asked = {job.job_id: controller.as_if_submitted(job) for job in others}
    initial = [state.submitted_job(each.job.job_id).planned_seconds for each in running]
    pendings = [each for roster in state.pending_rosters for each in roster.by_id.values()]
    foresees = len(state.startable) <= _MOST_FORESEEN
    reference = None if state.reference is None else state.reference.copy()
    rule = _rule(controller, initial)
    backfills, is_compared = scheduler.backfills, reference is not None
    ordering = None if backfills is None else copy.deepcopy(scheduler)
    past = [] if history is None else history.past[-MOST_RECENT - 1 :]
    submitted = {} if history is None else history.submitted
    first = next(iter(submitted.values()), None)
    unknown = asked.keys() - submitted.keys()

    def place(pending: PendingJob) -> float:
        """By the scheduler's own order, else by its plan, else by arrival."""
        if ordering is not None:
            return ordering.place_in_queue(pending, now)
        return plan.get(pending.job.job_id, now + 1e9 + pending.arrival)

    def made() -> Outlook:
        references: tuple[tuple[ReferenceTables, Mapping[str, int]], ...] = ()
        dues: dict[str, float] = {}
        if isinstance(reference, ReplayedReference):
            references = tuple(reference.standing())
        if reference is not None and foresees:
            dues = {job_id: due.due_seconds for job_id, due in reference.copy().found(math.inf)}
        home, waiting, instead = _PartitionOf(cluster), [], dict(asked)
        for each in sorted(pendings, key=_by_arrival):
            if each.job.job_id not in held:
                other = instead.pop(each.job.job_id, None)
                waiting.append(each if other is None else replace(other, arrival=each.arrival))
        waiting += [each for job_id, each in instead.items() if job_id not in held]
        queued = [
            QueuedJob(
                each,
                home(each.job),
                place(each),
                max(each.job.eligible_seconds, now),
                each.prediction.quantile(0.5) if is_compared else each.planned_seconds,
                dues.get(each.job.job_id, math.inf) if each.due is None else each.due.due_seconds,
            )
            for each in waiting
        ]
        begin, recent = now, []
        if history is not None:
            came: dict[str, tuple[PendingJob, float | None]] = {
                each.job.job_id: (
                    PendingJob(each.job, 0, each.running.prediction, each.planned_seconds),
                    each.outcome.runtime_seconds,
                )
                for each in past[-MOST_RECENT:]
            }
            for runs, planned in zip(running, initial, strict=True):
                pending = PendingJob(runs.job, 0, runs.prediction, planned)
                came[runs.job.job_id] = pending, None
            came.update((each.job.job_id, (each, None)) for each in waiting)
            if len(past) > MOST_RECENT:  # all that came since then are known
                begin = past[0].outcome.end_seconds
            elif first is not None:
                begin = first.submit_seconds
            known = [each for job_id, each in came.items() if job_id not in unknown]
            known = sorted((each for each in known if each[0].job.cpus), key=_submitted)
            if len(known) > MOST_RECENT:
                begin = max(begin, known[-MOST_RECENT - 1][0].job.submit_seconds)
            for pending, runtime in known[-MOST_RECENT:]:
                job = replace(pending.job, submit_seconds=now)
                comes = replace(pending, job=job, arrival=arrival)
                when = pending.job.submit_seconds
                recent.append(RecentJob(comes, home(job), place(comes), when, runtime))
        return Outlook(
            now=now,
            begin_seconds=0.0 if history is None else begin,
            room=room,
            backfills=backfills is not False,
            running=running,
            taken=tuple(taken),
            waiting=tuple(queued),
            held=held,
            recent=tuple(recent),
            has_order=backfills is not None,
            rule=None if rule is None else replace(rule, plan=plan, references=references),
        )

    return made


def front_of(outlook: Outlook, count: int) -> Outlook:
    """Return the outlook of so many jobs that go first, without those that wait for others.

    What goes behind them, or is still to come, could go ahead of some: their starts come out early.
    """
    free = [each for each in outlook.waiting if each.pending.job.conditions is None]
    free = [each for each in free if not each.pending.job.after]
    first = sorted(free, key=_goes_first)[:count]
    first.sort(key=lambda each: each.pending.arrival)
    return replace(outlook, waiting=tuple(first), recent=(), rule=None)


def _goes_first(queued: QueuedJob) -> tuple[float, float]:
    return queued.due_seconds, queued.place


def _rule(controller: Controller, initial_seconds: Sequence[float]) -> QueueRule | None:
    correction, reference = controller.correction, controller.state.reference
    if (
        not isinstance(correction, CompiledCorrection)
        or not controller.scheduler.is_compiled
        or not (reference is None or isinstance(reference, ReplayedReference))
    ):
        return None
    scheduler = cast("Any", controller.scheduler).compiled()
    return QueueRule(scheduler, correction, controller.conventions, tuple(initial_seconds))


def _by_arrival(pending: PendingJob) -> int:
    return pending.arrival


def _submitted(came: tuple[PendingJob, float | None]) -> float:
    return came[0].job.submit_seconds


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
