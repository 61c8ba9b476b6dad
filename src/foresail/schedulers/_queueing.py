"""One scheduling pass, two callers: a compiled pass as the object that the event loop asks.

A scheduler that fits this frame is a queue order, a backfill order, a runtime to plan with and a
pass over arrays (``PASS_STEP``); its file hands these to ``QueueScheduler`` and registers itself.
Each partition of the cluster is scheduled by itself, over its count of cpus.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.summary import summarise
from foresail.kernels.calling import run_pass, step_address
from foresail.kernels.columns import CPUS, REQUESTED, SPEC_COLUMNS, SUBMIT, SUMMARY_COLUMNS
from foresail.kernels.compile import Step
from foresail.kernels.expression import Program, evaluate_all
from foresail.kernels.grains import nearest_grain, whole_grains
from foresail.kernels.signatures import CompiledScheduler
from foresail.kernels.waiting_jobs import (
    CANDIDATE,
    EXPECTED_END,
    HELD,
    LIKELY,
    ORDER_COLUMNS,
    PASS_COLUMNS,
    PLANNED,
    QUEUE,
    RELEASE_COLUMNS,
    RESERVATION,
    SUBMITTED,
    WIDTH,
)
from foresail.model.cluster import Partition
from foresail.model.decision import Decision, Placement, PlannedStart, Start
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.reason import Reason, ReasonCode
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers._expression import compile_expression

_FEW: Final = 64
"""Waiting jobs whose rows there is always room for."""


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a scheduler, as names or expressions, and its guard against starvation."""

    queue: str = "fcfs"
    candidates: str | None = None
    plan: str = "predicted"
    likely: str = "q50"
    age_limit_seconds: float = math.inf
    oldest_limit_seconds: float = math.inf

    def __post_init__(self) -> None:
        for name in ("plan", "likely"):
            text = getattr(self, name)
            program = compile_expression(text)
            if program.changes_with_time or program.follows_pilots:
                raise InputError(
                    "a runtime does not depend on the moment",
                    field=name,
                    value=text,
                    expected="an expression without now, wait and pilot",
                )
        for name in ("age_limit_seconds", "oldest_limit_seconds"):
            seconds = getattr(self, name)
            if not seconds > 0:
                raise InputError(
                    "parameter out of range", field=name, value=seconds, expected="seconds above 0"
                )


class QueueScheduler:
    """A scheduler whose behaviour is a compiled pass over ordered arrays.

    With ``keeps_plan`` each pass is handed the reservations of the one before.
    """

    def __init__(
        self, one_pass: Step, orders: Orders, *parameters: float, keeps_plan: bool = False
    ) -> None:
        self._keeps_plan = keeps_plan
        self._rows = _Rows()
        queue = compile_expression(orders.queue)
        self._compiled = CompiledScheduler(
            one_pass,
            np.array(parameters, dtype=np.float64),
            queue,
            queue if orders.candidates is None else compile_expression(orders.candidates),
            compile_expression(orders.plan),
            compile_expression(orders.likely),
            orders.age_limit_seconds,
            orders.oldest_limit_seconds,
        )

    def compiled(self) -> CompiledScheduler:
        """The pass, its parameters and orders, for a compiled replay."""
        return self._compiled

    def planned_seconds(self, pending: PendingJob) -> float:
        """The runtime to plan with for a job that has just been submitted."""
        specs, summaries = _rows([(pending.job, pending.prediction)])
        alone = np.ones(1)
        now = pending.job.submit_seconds
        return float(_values(self._compiled.plan, now, specs, summaries, alone)[0])

    def decide(self, view: ClusterView) -> Decision:
        """What to start now in each partition, the reservations, and why the others wait."""
        partitions = view.cluster.partitions
        if len(partitions) == 1:
            return self._decide(view, partitions[0], view.pending)
        decisions = [
            self._decide(view, each, [p for p in view.pending if _is_for(p.job, each, view)])
            for each in partitions
        ]
        return Decision(
            starts=tuple(start for each in decisions for start in each.starts),
            plan=tuple(planned for each in decisions for planned in each.plan),
            reasons={job: reason for each in decisions for job, reason in each.reasons.items()},
        )

    def _decide(
        self, view: ClusterView, partition: Partition, mine: Sequence[PendingJob]
    ) -> Decision:
        total = partition.total.cpus
        rows = self._rows.of(mine)
        fits = rows[0][:, CPUS] <= total
        fitting, wide = mine, {}
        if not fits.all():
            fitting = [each for each in mine if each.job.cpus <= total]
            rows = (rows[0][fits], rows[1][fits], rows[2][fits])
            wide = {
                each.job.job_id: Reason(
                    ReasonCode.TOO_WIDE, {"cpus": each.job.cpus, "total": total}
                )
                for each in mine
                if each.job.cpus > total
            }
        if not fitting:
            return Decision(reasons=wide)
        plan = view.plan if self._keeps_plan else {}
        desk = _Desk(self._compiled, view, partition, fitting, plan, rows)
        starts = desk.run_pass()
        return Decision(
            starts=tuple(
                Start(fitting[slot].job.job_id, _whole(fitting[slot].job, partition))
                for slot in starts
            ),
            plan=tuple(
                PlannedStart(job.job_id, start_seconds, _whole(job, partition))
                for job, start_seconds in desk.reservations()
            ),
            reasons=_Reasons(wide, desk, starts),
        )


class _Reasons(Mapping[str, Reason]):
    """Why jobs wait, put into words once somebody asks: few passes are asked about."""

    def __init__(self, wide: Mapping[str, Reason], desk: _Desk, starts: Sequence[int]) -> None:
        self._wide = wide
        self._desk = desk
        self._starts = starts

    @cached_property
    def _told(self) -> dict[str, Reason]:
        return {**self._wide, **self._desk.reasons(self._starts)}

    def __getitem__(self, job_id: str) -> Reason:
        return self._told[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._told)

    def __len__(self) -> int:
        return len(self._told)


def _whole(job: Job, partition: Partition) -> Placement:
    return Placement.whole(partition.name, job.tasks)


def _is_for(job: Job, partition: Partition, view: ClusterView) -> bool:
    """Whether a job asks for this partition, or this is the first and there is no such one."""
    if job.partition in view.free:
        return job.partition == partition.name
    return partition is view.cluster.partitions[0]


def _values(
    program: Program,
    now: float,
    specs: NDArray[np.float64],
    summaries: NDArray[np.float64],
    pilots: NDArray[np.float64],
) -> NDArray[np.float64]:
    return evaluate_all(program.code, now, specs, summaries, pilots)


def _rows(
    jobs: Sequence[tuple[Job, Distribution]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Specification and summary rows; the codes of users and queues are no business of orders."""
    specs = np.full((len(jobs), SPEC_COLUMNS), -1.0)
    summaries = np.empty((len(jobs), SUMMARY_COLUMNS))
    for slot, (job, prediction) in enumerate(jobs):
        specs[slot, SUBMIT] = job.submit_seconds
        specs[slot, CPUS] = job.cpus
        specs[slot, REQUESTED] = (
            math.inf if job.requested_seconds is None else job.requested_seconds
        )
        summaries[slot] = summarise(prediction)
    return specs, summaries


class _Rows:
    """What arrays say of waiting jobs, kept from pass to pass while they wait."""

    def __init__(self) -> None:
        self._specs = np.empty((0, SPEC_COLUMNS))
        self._summaries = np.empty((0, SUMMARY_COLUMNS))
        self._planned = np.empty(0)
        self._kept: list[PendingJob] = []
        self._place: dict[int, int] = {}

    def of(
        self, pending: Sequence[PendingJob]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Specification and summary rows and planned runtimes of these jobs, in their order."""
        try:
            places = [*map(self._place.__getitem__, map(id, pending))]
        except KeyError:  # some are new, or believed anew
            self._keep(pending)
            places = [*map(self._place.__getitem__, map(id, pending))]
        return self._specs[places], self._summaries[places], self._planned[places]

    def _keep(self, pending: Sequence[PendingJob]) -> None:
        new = [each for each in pending if id(each) not in self._place]
        first = len(self._kept)
        if first + len(new) > len(self._specs):
            new, first = list(pending), 0
            self._make_room(2 * len(new) + _FEW)
        rows = slice(first, first + len(new))
        self._specs[rows], self._summaries[rows] = _rows([(p.job, p.prediction) for p in new])
        self._planned[rows] = [each.planned_seconds for each in new]
        self._place.update((id(each), first + at) for at, each in enumerate(new))
        self._kept += new

    def _make_room(self, jobs: int) -> None:
        """Forget all, with room for so many jobs."""
        self._kept.clear()
        self._place.clear()
        self._specs = np.empty((jobs, SPEC_COLUMNS))
        self._summaries = np.empty((jobs, SUMMARY_COLUMNS))
        self._planned = np.empty(jobs)


class _Desk:
    """The arrays of one pass over one partition, laid out from a view."""

    def __init__(
        self,
        scheduler: CompiledScheduler,
        view: ClusterView,
        partition: Partition,
        pending: Sequence[PendingJob],
        plan: Mapping[str, float],
        rows: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    ) -> None:
        self._scheduler = scheduler
        self._now = view.now
        self._pending = pending
        specs, summaries, planned = rows
        self._jobs = np.empty((len(pending), PASS_COLUMNS))
        self._jobs[:, WIDTH] = whole_grains(specs[:, CPUS])
        self._jobs[:, SUBMITTED] = specs[:, SUBMIT]
        self._jobs[:, PLANNED] = planned
        self._jobs[:, RESERVATION] = math.nan
        if plan:
            self._jobs[:, RESERVATION] = [plan.get(each.job.job_id, math.nan) for each in pending]
        aged = self._aged()
        pilots = np.ones(len(pending))
        if scheduler.queue.follows_pilots or scheduler.candidates.follows_pilots:
            pilots = _pilots(pending, view.running, aged)
        self._jobs[:, LIKELY] = _values(scheduler.likely, self._now, specs, summaries, pilots)
        self._order = np.empty((len(pending), ORDER_COLUMNS))
        queue_keys = _values(scheduler.queue, self._now, specs, summaries, pilots)
        self._order[:, QUEUE] = _ordered(queue_keys, aged)
        self._candidates = QUEUE
        if scheduler.candidates is not scheduler.queue:
            candidate_keys = _values(scheduler.candidates, self._now, specs, summaries, pilots)
            self._order[:, CANDIDATE] = _ordered(candidate_keys, aged)
            self._candidates = CANDIDATE
        soonest = math.nextafter(view.now, math.inf)  # a wake-up may come late on a live cluster
        releases = sorted(
            [
                (max(each.expected_end_seconds, soonest), each.start_order, cpus)
                for each in view.running
                if (cpus := _held(each.job, each.placement, partition.name)) > 0
            ]
        )
        self._releases = len(releases)
        self._release = np.zeros((len(releases) + len(pending), RELEASE_COLUMNS))
        self._release[: len(releases), EXPECTED_END] = [time for time, _, _ in releases]
        held = np.array([cpus for _, _, cpus in releases])
        self._release[: len(releases), HELD] = whole_grains(held)
        total = nearest_grain(view.free[partition.name].cpus + held.sum())
        self._free = total - float(self._release[: len(releases), HELD].sum())

    def _aged(self) -> NDArray[np.bool_]:
        """Who goes first for having waited long; arrivals are in order, the first is the oldest."""
        wait = self._now - self._jobs[:, SUBMITTED]
        aged: NDArray[np.bool_] = wait >= self._scheduler.age_limit_seconds
        aged[0] |= wait[0] >= self._scheduler.oldest_limit_seconds
        return aged

    def run_pass(self) -> list[int]:
        """Slots to start, in order."""
        starts = np.empty(len(self._pending), dtype=np.int64)
        count = run_pass(
            step_address(self._scheduler.one_pass),
            self._now,
            self._free,
            len(self._pending),
            self._releases,
            self._order,
            self._candidates,
            self._jobs,
            self._release,
            self._scheduler.parameters,
            starts,
        )
        return [int(slot) for slot in starts[:count]]

    def reservations(self) -> list[tuple[Job, float]]:
        """Jobs with a reservation and its start (seconds), in queue order."""
        queue = self._queue()
        start_seconds = self._jobs[queue, RESERVATION]
        return [
            (self._pending[slot].job, start)
            for slot, start in zip(queue.tolist(), start_seconds.tolist(), strict=True)
            if math.isfinite(start)
        ]

    def _queue(self) -> NDArray[np.int64]:
        """Slots in queue order."""
        return self._order[:, QUEUE].astype(np.int64)

    def reasons(self, starts: Sequence[int]) -> dict[str, Reason]:
        """Why each of the others waits."""
        started = set(starts)
        free = self._free - sum(float(self._jobs[slot, WIDTH]) for slot in starts)
        waiting = [slot for slot in self._queue().tolist() if slot not in started]
        head = waiting[0] if waiting else None
        return {
            self._pending[slot].job.job_id: self._reason(slot, ahead, head, free)
            for ahead, slot in enumerate(waiting)
        }

    def _reason(self, slot: int, ahead: int, head: int | None, free: float) -> Reason:
        cpus = float(self._jobs[slot, WIDTH])
        reserved = float(self._jobs[slot, RESERVATION])
        if math.isfinite(reserved):
            return Reason(ReasonCode.RESERVED, {"cpus": cpus, "start": reserved})
        if cpus > free:
            return Reason(ReasonCode.NO_ROOM, {"cpus": cpus, "free": free})
        if head is not None and math.isfinite(self._jobs[head, RESERVATION]):
            return Reason(
                ReasonCode.WOULD_DELAY,
                {
                    "head": self._pending[head].job.job_id,
                    "start": float(self._jobs[head, RESERVATION]),
                },
            )
        return Reason(ReasonCode.BEHIND, {"ahead": ahead})


def _held(job: Job, placement: Placement, partition: str) -> float:
    """Cpus that a running job holds in a partition."""
    places = placement.tasks_by_partition
    if len(places) == 1:  # asked for many times a pass
        return job.cpus if places[0][0] == partition else 0.0
    tasks = sum(count for name, count in placement.tasks_by_partition if name == partition)
    return job.cpus * tasks / job.tasks


def _ordered(keys: NDArray[np.float64], aged: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Slots in order: the aged ones by arrival, the others by value, ties by arrival."""
    keys[aged] = -math.inf
    return np.argsort(keys, kind="stable")


def _kind(job: Job) -> tuple[str | None, float | None]:
    return job.user, job.requested_seconds


def _pilots(
    pending: Sequence[PendingJob], running: Sequence[RunningJob], aged: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """How many waiting jobs each would inform: those of its kind, if none runs or is older."""
    waiting = Counter(_kind(each.job) for each in pending)
    informed = {_kind(each.job) for each in running}
    pilots = np.ones(len(pending))
    for slot, each in enumerate(pending):
        kind = _kind(each.job)
        if kind not in informed:
            informed.add(kind)
            if not aged[slot]:
                pilots[slot] = waiting[kind]
    return pilots
