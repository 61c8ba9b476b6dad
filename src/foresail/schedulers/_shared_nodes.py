"""Passes over partitions that share nodes: one queue for who starts next, then each its own pass.

Jobs start in the order of the queue, whichever partition they are for, until the first in line of
each partition waits. What is free then is kept for these, in the same order. Each partition's own
pass finds who may start behind its first in line, on what is kept for none that is ahead of that;
and what is kept may be had by jobs that should end before any planned start of partitions that
share it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count

from foresail.model.construction import replaced
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.job import Job, Stage
from foresail.model.resources import Resources
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers._passed import Passed
from foresail.schedulers._placing import placed
from foresail.schedulers._queue_table import QueueTable


class SharedMoment:
    """What is left at a moment as jobs of partitions that share nodes start.

    Of those partitions that are not ``asked`` for all stays as it is.
    """

    def __init__(
        self, tables: Sequence[QueueTable], view: ClusterView, asked: Sequence[bool]
    ) -> None:
        self._tables = tables
        self._view = view
        self._asked = asked
        self._free = dict(view.free)
        self._started: dict[str, tuple[int, RunningJob]] = {}
        self._promised: dict[str, tuple[int, float]] = {}
        self._kept: dict[int, list[RunningJob]] = {}
        last = view.running[-1].start_order if view.running else -1
        self._orders = count(last + 1)

    def settled(
        self, passes: Sequence[Passed], plans: Sequence[Mapping[str, float]]
    ) -> list[Passed]:
        """What becomes of the jobs of each partition; the ``passes`` know nothing of each other."""
        starts = any(passed.starts for passed in passes)
        for number, passed in enumerate(passes):
            if not (starts and self._asked[number]):
                self._promise(number, self._tables[number], passed)
        if starts:
            self._start_in_order()
            self._overtake(plans)
        return [self._told(number, table) for number, table in enumerate(self._tables)]

    def _start_in_order(self) -> None:
        """Start until the first in line of each partition waits; keep what is free for it.

        A policy that does more than that with who is first leaves all to its own pass.
        """
        line = sorted(
            (last, key, table.jobs_by_slot[slot].arrival, number, slot)
            for number, table in enumerate(self._tables)
            if self._asked[number]
            for last, key, slot in table.line()
        )
        for _, _, _, number, slot in line:
            table = self._tables[number]
            pending = table.jobs_by_slot[slot]
            if number not in self._kept and not (
                table.starts_in_order and self._starts(number, pending, self._unkept())
            ):
                self._keep(number, pending, math.inf)

    def _overtake(self, plans: Sequence[Mapping[str, float]]) -> None:
        """Let each partition's own pass find who starts behind its first in line, and plan."""
        soonest: dict[int, float] = {}
        for number in self._kept:
            table = self._tables[number]
            gone = {*self._started, *self._promised}
            running = [each for _, each in self._started.values()]
            running += [each for ahead in soonest for each in self._kept[ahead]]
            view = replaced(
                self._view,
                free=self._unkept(soonest),
                pending=[each for each in table.waiting() if each.job.job_id not in gone],
                running=[*self._view.running, *running],
            )
            own = table.alike()
            passed = own.pass_over(view, plans[number])
            for slot in passed.starts:
                self._starts(number, own.jobs_by_slot[slot], self._unkept(soonest))
            self._promise(number, own, passed)
            soonest[number] = min(passed.reserved.values(), default=math.inf)
            self._kept[number] = []
            if (first := own.first_but(passed.starts)) >= 0:
                pending = own.jobs_by_slot[first]
                start = passed.reserved.get(first, soonest[number])
                self._keep(number, pending, start + pending.planned_seconds)
        for number in soonest:
            table = self._tables[number]
            sharing = [each for each in soonest if {*self._tables[each].records} & {*table.records}]
            limit = min(soonest[each] for each in sharing)
            for pending in table.waiting() if table.overtakes and len(sharing) > 1 else ():
                if self._view.now + pending.planned_seconds <= limit:
                    self._starts(number, pending, self._free)

    def _unkept(self, numbers: Mapping[int, object] | None = None) -> dict[str, Resources]:
        """What is free and not kept, for none or for those of these partitions."""
        room = dict(self._free)
        for number in self._kept if numbers is None else numbers:
            for each in self._kept[number]:
                room[each.placement.tasks_by_partition[0][0]] -= each.job.total
        return room

    def _keep(self, number: int, pending: PendingJob, end_seconds: float) -> None:
        """Keep what is free for a job that waits, as if others ran there until it has ended."""
        others = {each: kept for each, kept in self._kept.items() if each != number}
        job, belief = pending.job, pending.prediction
        room, left, kept = self._unkept(others), job.total, list[RunningJob]()
        for name in self._tables[number].records:
            free = room[name]
            some = Resources(
                max(min(left.cpus, free.cpus), 0.0),
                max(min(left.memory_bytes, free.memory_bytes), 0.0),
                max(min(left.gpus, free.gpus), 0.0),
            )
            left -= some
            nobody = Job(f"kept for {job.job_id}", self._view.now, (Stage(1, some),))
            kept.append(self._running(nobody, Placement.whole(name, 1), belief, end_seconds))
        self._kept[number] = kept

    def _running(
        self, job: Job, placement: Placement, belief: Distribution, end_seconds: float
    ) -> RunningJob:
        """As if it ran: passes look at what it holds until when."""
        end = max(end_seconds, math.nextafter(self._view.now, math.inf))
        return RunningJob(job, self._view.now, next(self._orders), placement, belief, end)

    def _starts(self, number: int, pending: PendingJob, room: Mapping[str, Resources]) -> bool:
        """Start a job if it has room; whether it has started, now or before."""
        job = pending.job
        if job.job_id in self._started:
            return True
        placement = placed(job, self._tables[number].records, room)
        if placement is None:
            return False
        end = self._view.now + pending.planned_seconds
        running = self._running(job, placement, pending.prediction, end)
        self._started[job.job_id] = number, running
        self._promised.pop(job.job_id, None)
        for name, tasks in placement.tasks_by_partition:
            several = len(job.stages) > 1
            self._free[name] -= job.total if several else job.stages[0].request * tasks
        return True

    def _promise(self, number: int, table: QueueTable, passed: Passed) -> None:
        """The earliest promise to a job counts."""
        for slot, start in passed.reserved.items():
            job_id = table.jobs_by_slot[slot].job.job_id
            if job_id not in self._promised or start < self._promised[job_id][1]:
                self._promised[job_id] = number, start

    def _told(self, number: int, table: QueueTable) -> Passed:
        """What has become of the jobs that wait for a partition."""
        slot_of = table.slot_of
        started = {slot_of[each]: told for each, told in self._started.items() if each in slot_of}
        planned = {slot_of[each]: told for each, told in self._promised.items() if each in slot_of}
        here = {slot: running for slot, (where, running) in started.items() if where == number}
        held = sum(running.job.cpus for running in here.values())
        return Passed(
            starts=[*here],
            free=held + sum(self._free[name].cpus for name in table.records),
            reserved={slot: start for slot, (where, start) in planned.items() if where == number},
            started_elsewhere=frozenset(started) - frozenset(here),
            promised_elsewhere={
                slot: start for slot, (where, start) in planned.items() if where != number
            },
            placements={slot: running.placement for slot, running in here.items()},
        )
