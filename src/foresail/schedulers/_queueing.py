"""One scheduling pass, two callers: a compiled pass as the object that the event loop asks.

A scheduler that fits this frame is a queue order, a backfill order, a runtime to plan with and a
pass over arrays (``PASS_STEP``); its file hands these to ``QueueScheduler`` and registers itself.
Each partition of the cluster is scheduled by itself, over its count of cpus; jobs that name none
wait for each that they fit in (``foresail.schedulers._several_partitions``).
"""

from __future__ import annotations

import math
import weakref
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from foresail.kernels.columns import CPUS, REQUESTED, SPEC_COLUMNS, SUBMIT
from foresail.kernels.compile import Step
from foresail.kernels.expression import STACK_DEPTH, summary_column, value_of
from foresail.kernels.steps import CompiledScheduler, Shares
from foresail.model.cluster import Cluster
from foresail.model.containers import FloatColumn, LateTuple, quickly_made
from foresail.model.decision import (
    AlikeReasons,
    Decision,
    Placement,
    PlannedStart,
    Reason,
    ReasonCode,
    Start,
)
from foresail.model.distribution import Floats
from foresail.model.protocols import Scheduler
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._beside_cpus import Passed
from foresail.schedulers._queue_table import CodedJobs, QueueTable, Summaries
from foresail.schedulers._several_partitions import pass_over_all, tables_of
from foresail.schedulers.kernels import waiting_queue
from foresail.schedulers.order_expression import Orders, compile_expression, fill_places


class QueueScheduler(Scheduler):
    """A scheduler whose behaviour is a compiled pass over ordered arrays.

    With ``keeps_plan`` each pass is handed the reservations of the one before. It makes at most
    ``most_reserved`` of them: that many are looked for. With ``shares`` jobs are due by what EASY
    would have done with them.
    """

    backfills: bool | None = True

    def __init__(
        self,
        one_pass: Step,
        orders: Orders,
        *parameters: float,
        keeps_plan: bool = False,
        most_reserved: float = math.inf,
        shares: Shares | None = None,
    ) -> None:
        self._keeps_plan = keeps_plan
        queue = compile_expression(orders.queue)
        self._compiled = CompiledScheduler(
            one_pass,
            np.array(parameters, dtype=np.float64),
            queue,
            queue if orders.candidates is None else compile_expression(orders.candidates),
            compile_expression(orders.plan),
            orders.age_limit_seconds,
            most_reserved,
            shares,
        )
        self._forget()

    def _forget(self) -> None:
        """Know nothing of any view."""
        self._cluster: Cluster | None = None
        self._queues: list[_PartitionQueue] = []
        self._summaries = Summaries()
        self._planned_column = summary_column(self._compiled.plan)
        self._spec = np.full(SPEC_COLUMNS, -1.0)
        self._stack = np.empty(STACK_DEPTH)

    def __getstate__(self) -> dict[str, Any]:
        """Without its tables, which follow from views."""
        return {"_keeps_plan": self._keeps_plan, "_compiled": self._compiled}

    def __setstate__(self, known: dict[str, Any]) -> None:
        self.__dict__.update(known)
        self._forget()

    def compiled(self) -> CompiledScheduler:
        """The pass, its parameters and orders, for a compiled replay."""
        return self._compiled

    def planned_seconds(self, pending: PendingJob) -> float:
        """The runtime to plan with for a job that has just been submitted."""
        if self._planned_column is not None:
            seconds = self._summaries.value(pending.prediction, self._planned_column)
            return math.inf if math.isnan(seconds) else seconds
        return self._value(self._compiled.plan.code, pending, float(pending.job.submit_seconds))

    def place_in_queue(self, pending: PendingJob, now: float) -> float:
        """The value that the queue is ordered by, as if no other job were like this one."""
        return self._value(self._compiled.queue.code, pending, now)

    def places_in_queue(
        self, pending: Sequence[PendingJob], specs: Floats, summaries: Floats, now: float
    ) -> Floats:
        """Places of many jobs, all at once unless a subclass has a place of its own for each."""
        if type(self).place_in_queue is not QueueScheduler.place_in_queue:
            return super().places_in_queue(pending, specs, summaries, now)
        places = np.empty(len(pending))
        fill_places(self._compiled.queue.code, self._stack, specs, summaries, now, places)
        return places

    def _value(self, code: Floats, pending: PendingJob, now: float) -> float:
        """Return what an expression comes to for a job."""
        job, spec = pending.job, self._spec
        spec[SUBMIT] = job.submit_seconds
        spec[CPUS] = job.cpus
        spec[REQUESTED] = math.inf if job.requested_seconds is None else job.requested_seconds
        return value_of(code, self._stack, spec, self._summaries.row(pending.prediction), now, 1.0)

    def decide(self, view: ClusterView) -> Decision:
        """Return what to start now in each partition, the reservations, and why the others wait."""
        if view.cluster is not self._cluster:
            self._cluster = view.cluster
            tables = tables_of(view.cluster, self._compiled, self._summaries)
            self._queues = [_PartitionQueue(table) for table in tables]
        if len(self._queues) == 1:
            return self._queues[0].decide(view, view.plan if self._keeps_plan else {})
        return self._decide_on_several(view)

    def _decide_on_several(self, view: ClusterView) -> Decision:
        """Return what to start and to promise in which partition."""
        for queue in self._queues:
            queue.materialise()
        tables = [queue.table for queue in self._queues]
        passes = pass_over_all(tables, view, self._keeps_plan)
        decisions = [
            queue.decision(passed, view.now)
            for queue, passed in zip(self._queues, passes, strict=True)
        ]
        return Decision(
            starts=tuple(start for each in decisions for start in each.starts),
            plan=tuple(planned for each in decisions for planned in each.plan),
            reasons=_AllReasons([each.reasons for each in decisions]),
        )


class _PartitionQueue:
    """The pass over one partition, on tables that it keeps."""

    def __init__(self, table: QueueTable) -> None:
        self.table = table
        self._placements = _Placements(table.partition.name)
        self._reasons: Callable[[], _Reasons | None] = _no_reasons

    def decide(self, view: ClusterView, plan: Mapping[str, float]) -> Decision:
        """Return what to start now, the reservations, and why the others wait."""
        self.materialise()
        return self.decision(self.table.pass_over(view, plan), view.now)

    def materialise(self) -> None:
        """Keep what is still wanted of the last decision, before tables change."""
        earlier = self._reasons()
        if earlier is not None:
            earlier.materialise()

    def decision(self, passed: Passed, now: float) -> Decision:
        """Return what a pass has come to, in words of the model."""
        jobs, placements = self.table.jobs_by_slot, self._placements
        reasons = _Reasons(self.table, passed, now)
        self._reasons = weakref.ref(reasons)
        starts: list[Start] = []
        for slot in passed.starts:
            job = jobs[slot].job
            placement = passed.placements.get(slot) or placements[job.tasks]
            starts.append(Start(job.job_id, placement))
        planned: list[PlannedStart] = []
        for slot, start_seconds in passed.reserved.items():
            job = jobs[slot].job
            planned.append(PlannedStart(job.job_id, start_seconds, placements[job.tasks]))
        return Decision(tuple(starts), (), tuple(planned), reasons)


class _Placements(dict[int, Placement]):
    """All tasks in a partition, by how many: one placement for all gangs of a size."""

    def __init__(self, partition: str) -> None:
        super().__init__()
        self._partition = partition

    def __missing__(self, tasks: int) -> Placement:
        placement = self[tasks] = Placement.whole(self._partition, tasks)
        return placement


def _no_reasons() -> None:
    """The reference to reasons that were not handed out."""


class _Reasons(Mapping[str, Reason]):
    """Reasons why jobs wait, put into words once they are asked for: few passes are asked about."""

    __slots__ = ("__weakref__", "_in_common", "_now", "_passed", "_reported", "_table", "_version")

    def __init__(self, table: QueueTable, passed: Passed, now: float) -> None:
        self._now = now
        self._table = table
        self._passed = passed
        self._version = table.version
        self._reported: Mapping[str, Reason] | None = None
        self._in_common: _CommonReasons | None = None

    def materialise(self) -> Mapping[str, Reason]:
        """All of them; from then on, what becomes of the table does not matter."""
        if self._reported is None:
            self._reported = self._all()
        return self._reported

    def __getitem__(self, job_id: str) -> Reason:
        if self._reported is not None:
            return self._reported[job_id]
        table = self._table
        if job_id in table.wide:
            return self._too_wide(table.wide[job_id])
        slot = table.slot_of[job_id]
        if slot in self._passed.starts or slot in self._passed.elsewhere:
            raise KeyError(job_id)
        return self._reason(slot) or _behind(self._ahead(slot))

    def __iter__(self) -> Iterator[str]:
        return iter(self.materialise())

    def __len__(self) -> int:
        return len(self.materialise())

    def changed_since(self, mark: object) -> tuple[object, Sequence[AlikeReasons] | None]:
        """A mark of this decision, and the reasons that differ in kind from an earlier one's.

        ``mark`` is that of the earlier decision of the same scheduler. None: all may differ.
        """
        table = self._table
        if self._reported is not None or self._version != table.version:
            return None, None
        since = mark[1] if isinstance(mark, tuple) and mark[0] is table else -2  # of no pass
        common = self._common()
        behind = waiting_queue.WOULD_DELAY if common.delayed else waiting_queue.BEHIND
        changed = table.changed_codes(self._passed, common.free, behind, since)
        return (table, table.version), None if changed is None else [
            *chain.from_iterable(map(self._alike, changed))
        ]

    def reports_on(self, job_id: str) -> bool:
        """Return whether it reports this job whenever its reason differs."""
        return job_id in self._table.slot_of

    def _alike(self, changed: CodedJobs) -> list[AlikeReasons]:
        """The reasons of jobs that wait for one kind of reason now."""
        code, table = changed.code, self._table
        job_ids = _JobIds(table.jobs_by_slot, changed.slots)
        numbers: Sequence[float] = FloatColumn(changed.numbers)
        if code == waiting_queue.NO_ROOM:
            free = {"free": self._common().free}
            return [AlikeReasons(ReasonCode.NO_ROOM, job_ids, free, {"cpus": numbers})]
        if code == waiting_queue.BEHIND:
            return [AlikeReasons(ReasonCode.BEHIND, job_ids, by_job={"ahead": numbers})]
        if code == waiting_queue.WOULD_DELAY:
            return [AlikeReasons(ReasonCode.WOULD_DELAY, job_ids, self._common().delayed)]
        slots = array("q", changed.slots)
        if code == waiting_queue.LACKS and self._passed.left is not None:
            left = _left(self._passed.left)
            return [AlikeReasons(ReasonCode.NO_ROOM, job_ids, left, table.others(slots))]
        asking = [bool(table.others([slot])) for slot in slots]
        return [
            self._with_needs(
                code, [slot for slot, asks in zip(slots, asking, strict=True) if asks is each]
            )
            for each in sorted({*asking})
        ]

    def _with_needs(self, code: int, slots: Sequence[int]) -> AlikeReasons:
        """The reasons of jobs for which it is known what should be free, and when."""
        jobs = [self._table.jobs_by_slot[slot] for slot in slots]
        job_ids = tuple([each.job.job_id for each in jobs])
        by_job: dict[str, Sequence[float]] = {
            "cpus": tuple([self._table.width(slot) for slot in slots]),
            **self._table.others(slots),
        }
        if code in (waiting_queue.GOES_FIRST, waiting_queue.AMONG_FIRST):
            by_job["turn"] = tuple([each.due.turn_seconds for each in jobs if each.due is not None])
        if code == waiting_queue.AMONG_FIRST:
            return AlikeReasons(ReasonCode.AMONG_FIRST, job_ids, by_job=by_job)
        planned = {**self._passed.reserved, **self._passed.promised_elsewhere}
        by_job["start"] = tuple([planned[slot] for slot in slots])
        goes_first = (
            ReasonCode.GOES_FIRST if code == waiting_queue.GOES_FIRST else ReasonCode.RESERVED
        )
        return AlikeReasons(goes_first, job_ids, by_job=by_job)

    def _all(self) -> dict[str, Reason]:
        table, jobs = self._table, self._table.jobs_by_slot
        reasons = {job_id: self._too_wide(each) for job_id, each in table.wide.items()}
        started = self._passed.started
        waiting = [slot for slot in table.queue() if slot not in started]
        for ahead, slot in enumerate(waiting):
            if slot in self._passed.promised_elsewhere:
                continue
            reasons[jobs[slot].job.job_id] = self._reason(slot) or _behind(ahead)
        return reasons

    def _head(self) -> int:
        """The first slot that stays, -1 for none."""
        starts, elsewhere = self._passed.starts, self._passed.elsewhere
        return self._table.first_but({*starts, *elsewhere} if elsewhere else starts)

    def _ahead(self, slot: int) -> int:
        """Return how many wait before the job of a slot."""
        ahead = self._table.queue()
        del ahead[ahead.index(slot) :]
        return len(set(ahead).difference(self._passed.started))

    def _too_wide(self, pending: PendingJob) -> Reason:
        total = self._table.partition.total.cpus
        return Reason(ReasonCode.TOO_WIDE, {"cpus": pending.job.cpus, "total": total})

    def _reason(self, slot: int) -> Reason | None:
        """Return why a job waits that does not just wait its turn."""
        common, reserved = self._common(), self._passed.reserved
        cpus, left = self._table.width(slot), self._passed.left
        due = self._table.jobs_by_slot[slot].due
        if due is not None and due.due_seconds <= self._now:
            turn: dict[str, float | str] = {**self._needs(slot), "turn": due.turn_seconds}
            if slot in reserved:
                return Reason(ReasonCode.GOES_FIRST, turn | {"start": reserved[slot]})
            return Reason(ReasonCode.AMONG_FIRST, turn)
        if slot in reserved:
            return Reason(ReasonCode.RESERVED, {**self._needs(slot), "start": reserved[slot]})
        if cpus > common.free:
            return Reason(ReasonCode.NO_ROOM, {"cpus": cpus, "free": common.free})
        if left is not None and self._table.lacks(slot, left):
            return Reason(ReasonCode.NO_ROOM, {**_left(left), **self._beside_cpus(slot)})
        return Reason(ReasonCode.WOULD_DELAY, common.delayed) if common.delayed else None

    def _needs(self, slot: int) -> dict[str, float | str]:
        """Return what a job asks for, as reasons have it."""
        return {"cpus": self._table.width(slot), **self._beside_cpus(slot)}

    def _beside_cpus(self, slot: int) -> dict[str, float]:
        return {name: amount for name, (amount,) in self._table.others([slot]).items()}

    def _common(self) -> _CommonReasons:
        if self._in_common is None:
            free, head = self._table.free_after(self._passed), self._head()
            delayed: dict[str, float | str] = {}
            if head in self._passed.reserved:
                job_id = self._table.jobs_by_slot[head].job.job_id
                delayed = {"head": job_id, "start": self._passed.reserved[head]}
            self._in_common = _CommonReasons(free, delayed)
        return self._in_common


class _JobIds(LateTuple[str]):
    """Ids of jobs whose slots are in a column, looked up once they are asked for."""

    __slots__ = ("_job_ids", "_jobs_by_slot", "_slots")

    def __init__(self, jobs_by_slot: Sequence[PendingJob], slots: bytes) -> None:
        self._jobs_by_slot = jobs_by_slot
        self._slots = slots
        self._job_ids: tuple[str, ...] | None = None

    def materialise(self) -> tuple[str, ...]:
        """All of them."""
        if self._job_ids is None:
            jobs = self._jobs_by_slot
            self._job_ids = tuple([jobs[slot].job.job_id for slot in array("q", self._slots)])
            self._jobs_by_slot, self._slots = (), b""
        return self._job_ids


@quickly_made
@dataclass(frozen=True, slots=True)
class _CommonReasons:
    """Common reasons of many jobs after a pass: more than the free cpus; not to delay the head."""

    free: float
    delayed: Mapping[str, float | str]


def _left(left: tuple[float, float]) -> dict[str, float | str]:
    """Return what is left of memory (bytes) and gpus, as reasons have it."""
    return {"free_memory_bytes": left[0], "free_gpus": left[1]}


def _behind(ahead: int) -> Reason:
    return Reason(ReasonCode.BEHIND, {"ahead": ahead})


class _AllReasons(Mapping[str, Reason]):
    """The reasons of several partitions.

    Of a job that waits for several of them that one counts which promises a start, else the first,
    or the largest if it fits in none.
    """

    def __init__(self, parts: Sequence[Mapping[str, Reason]]) -> None:
        self._parts = parts

    def __getitem__(self, job_id: str) -> Reason:
        found = [reason for part in self._parts if (reason := part.get(job_id)) is not None]
        if not found:
            raise KeyError(job_id)
        return min(found, key=_weight)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(chain.from_iterable(self._parts)))

    def __len__(self) -> int:
        return len({*chain.from_iterable(self._parts)})

    def changed_since(self, mark: object) -> tuple[object, Sequence[AlikeReasons] | None]:
        """A mark of each part of this decision, and the reasons that differ, as of one part."""
        marks = mark if isinstance(mark, list) else []
        if len(marks) != len(self._parts):  # of another cluster
            marks = [None] * len(self._parts)
        found = [
            part.changed_since(each)
            for part, each in zip(self._parts, marks, strict=True)
            if isinstance(part, _Reasons)
        ]
        changed: list[AlikeReasons] = []
        for _, some in found:
            if some is None:
                return [each for each, _ in found], None
            changed += some
        return [each for each, _ in found], changed

    def reports_on(self, job_id: str) -> bool:
        """Return whether a part reports this job whenever its reason differs."""
        return any(part.reports_on(job_id) for part in self._parts if isinstance(part, _Reasons))


def _weight(reason: Reason) -> tuple[int, float]:
    """Weigh reasons of one job: the least counts, of equals the first."""
    if reason.code is ReasonCode.TOO_WIDE:
        return 2, -float(reason.numbers["total"])
    return (0 if "start" in reason.numbers and "head" not in reason.numbers else 1), 0.0
