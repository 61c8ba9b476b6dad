"""The outlook: what jobs wait and run, and in which order they would start, to forecast from."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from statistics import median
from typing import Any, Final, Protocol, cast, runtime_checkable

import numpy as np

from foresail.control.loop import Controller
from foresail.explain.job_columns import NO_JOBS, JobColumns, columns_of
from foresail.explain.kernels.forward import ANYWHERE
from foresail.kernels.steps import CompiledCorrection, CompiledScheduler
from foresail.model.cluster import Cluster, NamedPartitions, Resources
from foresail.model.containers import replaced
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError
from foresail.model.event import Conventions, EndedBecause
from foresail.model.job import Job
from foresail.model.protocols import ReferenceSchedule, Scheduler
from foresail.model.view import PendingJob, RunningJob
from foresail.record.job_life import EndedAttempt, JobHistory
from foresail.schedulers.kernels.reference import ReferenceTables

MOST_RECENT: Final = 2_000
"""Number of the latest jobs that arrivals are drawn from."""

_LATEST: Final = 500
_FEWEST_LATEST: Final = 10
"""Attempts by which it is known how long starts take and how often nodes fail; by fewer it is not.
"""

_MOST_FORESEEN: Final = 5_000
"""Jobs that wait, up to which it is foreseen when each is due: with more, it would take seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class WaitingJobs:
    """Jobs that wait, in order of arrival.

    Parameters
    ----------
    jobs
        With what is believed of them now.
    home
        Number of the partition where each would run; ANYWHERE: in any that has the cpus.
    place
        Jobs of lower numbers are tried first.
    ready
        When each may start at the earliest (seconds).
    likely
        Runtime that it is tried with behind another that does not fit (seconds).
    due
        From when on it goes before all others (seconds); infinite for never.
    """

    jobs: JobColumns
    home: Integers
    place: Floats
    ready: Floats
    likely: Floats
    due: Floats

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[PendingJob]:
        return iter(self.jobs.pending)

    def some(self, rows: Sequence[int]) -> WaitingJobs:
        """Return some of them, in this order."""
        at = np.array(rows, np.int64)
        others = (each[at] for each in (self.place, self.ready, self.likely, self.due))
        return WaitingJobs(self.jobs.some(rows), self.home[at], *others)


_NOBODY: Final = WaitingJobs(NO_JOBS, np.zeros(0, np.int64), *np.zeros((4, 0)))


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
class _ReplayedReference(Protocol):
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
class Return:
    """A node that is out of use until some time (seconds)."""

    partition: str
    total: Resources
    seconds: float


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
        Ids of those, and of what waits for them, which start never as things stand.
    has_order
        Whether the scheduler has an order of its queue; else its plan stands in, then arrival.
    recent
        Jobs of which arrivals are drawn, in order of submission.
    rule
        By which jobs are started; None: by their places, as ``backfills`` says.
    returns
        What is out of use, and when it should be used again.
    latency_seconds
        Time from the instruction to start a job to its start, as it was of late.
    losses
        How often a cpu that ran something has been lost with it, per second.
    is_external
        Whether the cluster starts jobs itself: by their places, and by backfilling.
    """

    now: float
    begin_seconds: float
    room: Mapping[str, Resources]
    backfills: bool
    running: tuple[RunningJob, ...]
    taken: tuple[Resources, ...]
    waiting: WaitingJobs
    held: frozenset[str] = frozenset()
    recent: tuple[RecentJob, ...] = ()
    has_order: bool = True
    rule: QueueRule | None = None
    returns: tuple[Return, ...] = ()
    latency_seconds: float = 0.0
    losses: float = 0.0
    is_external: bool = False

    @property
    def earliest(self) -> Floats:
        """Before when waiting jobs cannot start (seconds): their begins, and that of what is first.

        Nor can they before nodes return without which there is no room for them.
        """
        jobs = self.waiting.jobs
        homes = self.waiting.home[jobs.of_kind].tolist()
        back = np.array([*map(self._room_back, jobs.kinds, homes)])
        earliest: Floats = np.maximum(self.waiting.ready, back[jobs.table["kind"]])
        if (earliest > self.now).any():
            for at in np.flatnonzero(jobs.table["waits_for_others"]).tolist():
                first = [jobs.places.get(each, at) for each in jobs.pending[at].job.after]
                earliest[at] = earliest[[at, *first]].max()
        return earliest

    def _room_back(self, job: Job, home: int) -> float:
        """Return when a job fits in what is in use then (seconds); now if that is never."""
        room = dict(self.room)
        names = {*room} if home == ANYWHERE else {[*room][home]}
        if not any(job.total.fits_in(room[name]) for name in names):
            for each in sorted(self.returns, key=attrgetter("seconds")):
                room[each.partition] += each.total
                if each.partition in names and job.total.fits_in(room[each.partition]):
                    return each.seconds
        return self.now


def outlook_of(
    controller: Controller,
    others: Iterable[Job] = (),
    history: JobHistory | None = None,
    before: JobColumns = NO_JOBS,
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
    before
        Columns of an earlier outlook, from which those of jobs that still wait are taken.

    Raises ``InputError`` if nodes of the cluster are in several partitions.
    """
    return outlook_maker(controller, others, history, before)()


def outlook_maker(
    controller: Controller,
    others: Iterable[Job] = (),
    history: JobHistory | None = None,
    before: JobColumns = NO_JOBS,
) -> Callable[[], Outlook]:
    """Return what makes the outlook of this moment, in any thread, whatever happens meanwhile.

    So a controller waits only until it is noted what is pending and runs.
    """
    state, scheduler = controller.state, controller.scheduler
    running = tuple(state.running_roster.in_order())
    initial = tuple(state.submitted_job(each.job.job_id).planned_seconds for each in running)
    room, taken = _room_and_taken(controller, running)
    stands = Outlook(
        now=controller.now,
        begin_seconds=0.0,
        room=room,
        backfills=scheduler.backfills is not False,
        running=running,
        taken=taken,
        waiting=_NOBODY,
        has_order=scheduler.backfills is not None,
        returns=tuple(_returns(controller)),
        is_external=scheduler.starts_nothing,
    )
    asked = {job.job_id: controller.as_if_submitted(job) for job in others}
    came = None
    if history is not None:
        begin = next((each.submit_seconds for each in history.submitted.values()), controller.now)
        unknown = asked.keys() - history.submitted.keys()
        came = _Came(history.past[-MOST_RECENT - 1 :], begin, unknown, state.submissions)
    return _Moment(
        stands=stands,
        cluster=controller.cluster,
        initial_seconds=initial,
        pending=[*chain.from_iterable(each.by_id.values() for each in state.pending_rosters)],
        before=before,
        held=frozenset(state.held),
        asked=asked,
        order=None if scheduler.backfills is None else copy.deepcopy(scheduler),
        plan=controller.plan,
        reference=None if state.reference is None else state.reference.copy(),
        is_foreseen=len(state.startable) <= _MOST_FORESEEN,
        rule=_rule(controller, initial),
        came=came,
        latest=[] if state.history is None else state.history.past[-_LATEST:],
    ).outlook


def _returns(controller: Controller) -> Iterator[Return]:
    """Yield what is drained and should be used again at a known time to come."""
    state = controller.state
    for partition in controller.cluster.partitions if state.drained else ():
        for node in partition.nodes or (partition,):
            drained = state.drained.get(node.name)
            until = None if drained is None else drained.until_seconds
            if until is not None and until > controller.now and node.name not in state.down:
                yield Return(partition.name, node.total, until)


def _latency_and_losses(latest: Sequence[EndedAttempt]) -> tuple[float, float]:
    """Return how long starts took (seconds), and how often a cpu was lost per second it ran."""
    if len(latest) < _FEWEST_LATEST:
        return 0.0, 0.0
    late = [each.outcome.start_seconds - each.running.start_seconds for each in latest]
    ran = sum(each.job.cpus * each.outcome.runtime_seconds for each in latest)
    lost = sum(each.outcome.ended_because is EndedBecause.LOST for each in latest)
    return max(0.0, median(late)), lost / ran if ran > 0.0 else 0.0


def _room_and_taken(
    controller: Controller, running: Sequence[RunningJob]
) -> tuple[dict[str, Resources], tuple[Resources, ...]]:
    """Return what can be used in each partition, and what each running job has of it."""
    free = controller.state.free
    room = dict(free.by_partition())
    if controller.cluster.shared:  # by what tasks use, whatever they ask for
        room = {name: Resources(each.cpus, math.inf, math.inf) for name, each in room.items()}
    taken = [
        Resources() if free.frees_nothing(each.placement) else each.held.total for each in running
    ]
    for each, amount in zip(running, taken, strict=True):
        for name, _ in each.placement.tasks_by_partition[:1]:
            room[name] += amount
    return room, tuple(taken)


@dataclass(frozen=True, slots=True)
class _Came:
    """Jobs that have come and ended, the like of which may come again."""

    past: Sequence[EndedAttempt]
    """The latest, one more than are drawn of."""
    begin_seconds: float
    """Time at which the first of all was submitted."""
    unknown: Set[str]
    """Ids of asked jobs that were not."""
    arrival: int
    """Number of the next one that arrives."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """Notes of a controller at one moment, from which its outlook can be made at any later one."""

    stands: Outlook
    """All but what waits, and may come."""
    cluster: Cluster
    initial_seconds: tuple[float, ...]
    """Planned runtime of each running job when it was submitted."""
    pending: Sequence[PendingJob]
    before: JobColumns
    held: frozenset[str]
    asked: Mapping[str, PendingJob]
    """Jobs that are not submitted, by id."""
    order: Scheduler | None
    """A copy of the scheduler, if it has an order."""
    plan: Mapping[str, float]
    reference: ReferenceSchedule | None
    is_foreseen: bool
    """True if so few wait that it can be foreseen when they are due."""
    rule: QueueRule | None
    came: _Came | None
    latest: Sequence[EndedAttempt]
    """Attempts that have ended, the last ones."""

    def outlook(self) -> Outlook:
        """Return the outlook."""
        held = self._never_starting()
        home, jobs = _PartitionOf(self.cluster), columns_of(self._waiting(held), self.before)
        begin, recent = self._recent(home, jobs)
        latency, losses = _latency_and_losses(self.latest)
        return replace(
            self.stands,
            begin_seconds=begin,
            waiting=self._queued(home, jobs),
            held=held,
            recent=recent,
            rule=self._whole_rule(),
            latency_seconds=latency,
            losses=losses,
        )

    def _never_starting(self) -> frozenset[str]:
        """Return the jobs that are held, and those that wait for them or for such."""
        held, before = self.held, frozenset[str]()
        while held != before:
            before, waiting = held, chain(self.pending, self.asked.values())
            held |= {each.job.job_id for each in waiting if not held.isdisjoint(each.job.after)}
        return held

    def _waiting(self, held: frozenset[str]) -> list[PendingJob]:
        """Return the jobs that wait and may start, by arrival; asked ones in their places."""
        waiting, instead = sorted(self.pending, key=attrgetter("arrival")), dict(self.asked)
        for at, each in enumerate(waiting if instead else ()):
            if each.job.job_id in instead:
                waiting[at] = replaced(instead.pop(each.job.job_id), arrival=each.arrival)
        return [each for each in (*waiting, *instead.values()) if each.job.job_id not in held]

    def _queued(self, home: _PartitionOf, jobs: JobColumns) -> WaitingJobs:
        due = jobs.table["due"].copy()
        if self.reference is not None and self.is_foreseen:
            for job_id, found in self.reference.copy().found(math.inf):
                at = jobs.places.get(job_id)
                if at is not None and jobs.pending[at].due is None:
                    due[at] = found.due_seconds
        number: dict[str | None, int] = {name: at for at, name in enumerate(self.stands.room)}
        return WaitingJobs(
            jobs,
            home=jobs.by_kind(lambda job: number.get(home(job), ANYWHERE)).astype(np.int64),
            place=self._places(jobs),
            ready=np.maximum(jobs.table["eligible"], self.stands.now),
            likely=jobs.table["planned"] if self.reference is None else jobs.medians,
            due=due,
        )

    def _places(self, jobs: JobColumns) -> Floats:
        """Return places by the scheduler's own order, else by its plan, else by arrival."""
        if self.order is not None:
            summaries = jobs.specs(), jobs.summary_rows, self.stands.now
            return self.order.places_in_queue(jobs.pending, *summaries)
        planned = np.array([self.plan.get(job_id, math.nan) for job_id in jobs.places])
        return np.where(np.isnan(planned), self.stands.now + 1e9 + jobs.table["arrival"], planned)

    def _whole_rule(self) -> QueueRule | None:
        if self.rule is None or not isinstance(self.reference, _ReplayedReference):
            return self.rule
        return replace(self.rule, references=tuple(self.reference.standing()))

    def _recent(
        self, home: _PartitionOf, waiting: JobColumns
    ) -> tuple[float, tuple[RecentJob, ...]]:
        """Return since when all that came are known, and the latest of them."""
        noted = self.came
        if noted is None:
            return 0.0, ()
        came: dict[str, tuple[PendingJob, float | None]] = {
            each.job.job_id: (
                PendingJob(each.job, 0, each.running.prediction, each.planned_seconds),
                each.outcome.runtime_seconds,
            )
            for each in noted.past[-MOST_RECENT:]
        }
        for runs, planned in zip(self.stands.running, self.initial_seconds, strict=True):
            came[runs.job.job_id] = PendingJob(runs.job, 0, runs.prediction, planned), None
        latest = np.argsort(waiting.table["submitted"], kind="stable")
        latest = latest[waiting.cpus[latest] > 0.0]
        latest = np.sort(latest[-MOST_RECENT - 1 - len(noted.unknown) :])  # others would be cut
        waits = (waiting.pending[at] for at in latest.tolist())
        came.update((each.job.job_id, (each, None)) for each in waits)
        begin = noted.begin_seconds
        if len(noted.past) > MOST_RECENT:  # all that came since then are known
            begin = noted.past[0].outcome.end_seconds
        known = [each for job_id, each in came.items() if job_id not in noted.unknown]
        known = [each for each in known if each[0].job.cpus]
        known.sort(key=lambda each: each[0].job.submit_seconds)
        if len(known) > MOST_RECENT:
            begin = max(begin, known[-MOST_RECENT - 1][0].job.submit_seconds)
        known = known[-MOST_RECENT:]
        jobs = columns_of([pending for pending, _ in known], waiting)
        jobs.table["submitted"], jobs.table["arrival"] = self.stands.now, noted.arrival
        again = [
            replaced(
                each, job=replaced(each.job, submit_seconds=self.stands.now), arrival=noted.arrival
            )
            for each in jobs.pending
        ]
        places = self._places(replace(jobs, pending=again)).tolist()
        return begin, tuple(
            RecentJob(comes, home(comes.job), place, pending.job.submit_seconds, runtime)
            for comes, place, (pending, runtime) in zip(again, places, known, strict=True)
        )


def external_outlook(
    now: float,
    account: str,
    room: Resources,
    running: Sequence[RunningJob],
    waiting: Sequence[PendingJob],
) -> Outlook:
    """Return the outlook of nodes whose cluster starts jobs in that order, backfilled by plans."""
    jobs, count = columns_of(waiting), len(waiting)
    ready, due = np.maximum(jobs.table["submitted"], now), np.full(count, math.inf)
    home, place = np.zeros(count, np.int64), np.arange(count, dtype=np.float64)
    queued = WaitingJobs(jobs, home, place, ready, jobs.table["planned"], due)
    taken = tuple(each.job.total for each in running)
    return Outlook(now, now, {account: room}, True, tuple(running), taken, queued)


def front_of(outlook: Outlook, count: int) -> Outlook:
    """Return the outlook of so many jobs that go first, without those that wait for others.

    What goes behind them, or is still to come, could go ahead of some: their starts come out early.
    """
    waiting = outlook.waiting
    free = np.flatnonzero(~waiting.jobs.table["waits_for_others"])
    first = free[np.lexsort((waiting.place[free], waiting.due[free]))[:count]]
    some = waiting.some(np.sort(first).tolist())
    return replace(outlook, waiting=some, recent=(), rule=None)


def _rule(controller: Controller, initial_seconds: Sequence[float]) -> QueueRule | None:
    correction, reference = controller.correction, controller.state.reference
    if (
        not isinstance(correction, CompiledCorrection)
        or not controller.scheduler.is_compiled
        or not (reference is None or isinstance(reference, _ReplayedReference))
    ):
        return None
    scheduler = cast("Any", controller.scheduler).compiled()
    return QueueRule(
        scheduler, correction, controller.conventions, tuple(initial_seconds), controller.plan
    )


class _PartitionOf:
    """Finds the partition that a job names, else the only one it fits in; None if others do too.

    Raises ``InputError`` if nodes of the cluster are in several partitions.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._partitions, self._named = cluster.partitions, NamedPartitions(cluster)
        records = self._named.records.items()
        self._are_apart = all(len(those) == 1 for _, those in records)

    def __call__(self, job: Job) -> str | None:
        if not self._are_apart:
            raise InputError(
                "forecasts know no nodes of several partitions",
                field="partition",
                value=job.partition,
            )
        names: Sequence[str] = [each.name for each in self._partitions]
        if len(names) > 1:
            records = self._named.records
            asked = [records[name][0] for name in self._named.asked(job.partition)] or names
            fitting = {each.name for each in self._partitions if job.total.fits_in(each.total)}
            names = [name for name in asked if name in fitting or len(asked) == 1]
        return names[0] if len(names) == 1 else None
