"""One pass over several partitions, in which jobs that name none wait for each that they fit in.

So do those that name several, for each of these.

Such a job is in the queue of each of these. It starts in the first, in the cluster's order, whose
pass starts it; if none does, it is promised to the one that can have it earliest, and waits in
no job's way in the others (``docs/decisions/0026-jobs-that-name-no-partition.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Final

from foresail.kernels.steps import CompiledScheduler
from foresail.model.cluster import Cluster, NamedPartitions, Partition, Resources
from foresail.model.containers import replaced
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.job import Job, Stage
from foresail.model.placing import placed
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers._beside_cpus import Passed
from foresail.schedulers._queue_table import QueueTable, Summaries


class _SharedMoment:
    """Room that is left at a moment as jobs of partitions that share nodes start.

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
        """Settle the jobs of each partition; the ``passes`` know nothing of each other."""
        starts = any(passed.starts for passed in passes)
        for number, passed in enumerate(passes):
            if not (starts and self._asked[number]):
                self._promise(number, self._tables[number], passed)
        if starts:
            self._start_in_order()
            self._backfill(plans)
        return [self._passed(number, table) for number, table in enumerate(self._tables)]

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

    def _backfill(self, plans: Sequence[Mapping[str, float]]) -> None:
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
            for pending in table.waiting() if table.backfills and len(sharing) > 1 else ():
                if self._view.now + pending.planned_seconds <= limit:
                    self._starts(number, pending, self._free)

    def _unkept(self, numbers: Mapping[int, object] | None = None) -> dict[str, Resources]:
        """Return what is free and not kept, for none or for those of these partitions."""
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
        """Show it as if it ran: passes look at what it holds until when."""
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

    def _passed(self, number: int, table: QueueTable) -> Passed:
        """Return what has become of the jobs that wait for a partition."""
        slot_of = table.slot_of
        started = {slot_of[each]: when for each, when in self._started.items() if each in slot_of}
        planned = {slot_of[each]: when for each, when in self._promised.items() if each in slot_of}
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


_MOST_ROUNDS: Final = 16
"""Rounds in which jobs are promised to one partition each with care, all others at once."""


def tables_of(
    cluster: Cluster, scheduler: CompiledScheduler, summaries: Summaries
) -> list[QueueTable]:
    """The queues of all partitions; of a job that is in several of them the first one counts."""
    if len(cluster.partitions) == 1:
        return [QueueTable(scheduler, cluster.partitions[0], summaries)]
    named = NamedPartitions(cluster)
    partitions = [*named.whole(cluster)]
    takes = [_taken_by(each, partitions, named) for each in partitions]

    def seen_before(number: int) -> Callable[[Job], bool]:
        earlier = [*zip(takes[:number], partitions, strict=False)]
        return lambda job: any(
            takes_it(job) and job.cpus <= each.total.cpus for takes_it, each in earlier
        )

    return [
        QueueTable(
            scheduler, each, summaries, takes[number], seen_before(number), named.records[each.name]
        )
        for number, each in enumerate(partitions)
    ]


def _taken_by(
    partition: Partition, partitions: Sequence[Partition], named: NamedPartitions
) -> Callable[[Job], bool]:
    """Return which jobs wait for a partition.

    Those that name it, or name none there is, and fit in it, or in no other of those either.
    """
    totals = {each.name: each.total for each in partitions}

    def takes(job: Job) -> bool:
        asked = named.asked(job.partition) or (*totals,)
        if len(asked) == 1 or partition.name not in asked:
            return partition.name in asked
        needed = job.total
        return needed.fits_in(partition.total) or not any(
            needed.fits_in(totals[name]) for name in asked
        )

    return takes


def pass_over_all(
    tables: Sequence[QueueTable], view: ClusterView, keeps_plan: bool
) -> list[Passed]:
    """Settle the passes over all partitions, no job being started or promised twice."""
    plans = [_plan_for(table, view) if keeps_plan else {} for table in tables]
    passes = [table.pass_over(view, plan) for table, plan in zip(tables, plans, strict=True)]
    asked = _asked(tables, view)
    for number, table in enumerate(tables):
        if not asked[number]:
            passes[number] = table.stays(passes[number], _plan_for(table, view))
    if len({name for table in tables for name in table.records}) < sum(
        len(table.records) for table in tables
    ):
        return _SharedMoment(tables, view, asked).settled(passes, plans)
    in_common = sum(len(table.slot_of) + len(table.wide) for table in tables) > len(view.pending)
    return _Rounds(tables, plans, passes).settled() if in_common else passes


def _asked(tables: Sequence[QueueTable], view: ClusterView) -> list[bool]:
    """Find the partitions to be decided about: those of events, and what shares nodes with them.

    So what happens in one changes nothing in another that has nothing to do with it.
    """
    if view.touched is None:
        return [True] * len(tables)
    touched, before = {*view.touched}, 0
    while len(touched) > before:
        before = len(touched)
        touched.update(*(each.records for each in tables if touched.intersection(each.records)))
    return [bool(touched.intersection(table.records)) for table in tables]


def _plan_for(table: QueueTable, view: ClusterView) -> Mapping[str, float]:
    """Return what was promised in a partition."""
    here = table.partition.name
    return {
        each.job_id: each.start_seconds
        for each in view.planned
        if all(name == here for name, _ in each.placement.tasks_by_partition)
    }


class _Rounds:
    """Passes that are made again until no job starts twice, nor is promised to two partitions.

    What has started stays so: each round starts more, or finds a job promised to one partition
    alone. So there are no more rounds than jobs in common that start or are promised anything.
    """

    def __init__(
        self,
        tables: Sequence[QueueTable],
        plans: Sequence[Mapping[str, float]],
        passes: Sequence[Passed],
    ) -> None:
        self._tables = tables
        self._plans = plans
        self._elsewhere: list[set[int]] = [set() for _ in tables]
        self._to_pass = set[int]()
        self._rounds_of_promises = 0
        self._passes = [*passes]

    def settled(self) -> list[Passed]:
        """The passes in the end."""
        for number, passed in enumerate(self._passes):
            if number in self._to_pass:  # it did not know what has started before
                self._pass_again(number, Passed([], passed.free, {}))
            else:
                self._note_starts(number, passed.starts)
        while self._to_pass or self._promise_once():
            number = min(self._to_pass)
            self._pass_again(number, self._passes[number])
        return self._with_elsewhere()

    def _with_elsewhere(self) -> list[Passed]:
        """The passes with what has become of jobs in others."""
        started = {
            table.jobs_by_slot[slot].job.job_id
            for table, passed in zip(self._tables, self._passes, strict=True)
            for slot in passed.starts
        }
        promised = [
            (table.jobs_by_slot[slot].job.job_id, start, number)
            for number, (table, passed) in enumerate(zip(self._tables, self._passes, strict=True))
            for slot, start in passed.reserved.items()
        ]
        every = zip(self._tables, self._passes, self._elsewhere, strict=True)
        return [
            replaced(
                passed,
                started_elsewhere=frozenset(
                    slot for slot in slots if table.jobs_by_slot[slot].job.job_id in started
                ),
                promised_elsewhere={
                    table.slot_of[job_id]: start
                    for job_id, start, number in promised
                    if self._tables[number] is not table and job_id in table.slot_of
                },
            )
            for table, passed, slots in every
        ]

    def _pass_again(self, number: int, before: Passed) -> None:
        self._to_pass.discard(number)
        table, elsewhere = self._tables[number], frozenset(self._elsewhere[number])
        if len(elsewhere) + len(before.starts) == len(table.slot_of):  # no job is left
            self._passes[number] = replaced(before, reserved={})
            return
        passed = table.pass_again(before, elsewhere, self._plans[number])
        self._passes[number] = passed
        self._note_starts(number, passed.starts[len(before.starts) :])

    def _note_starts(self, number: int, slots: Sequence[int]) -> None:
        """Pass again over others for which those waited that start here."""
        for slot in slots:
            self._to_pass.update(self._leave_to(number, slot))

    def _leave_to(self, number: int, slot: int) -> list[int]:
        """Let a job of this partition be in no job's way in others; returns in which it was."""
        job_id = self._tables[number].jobs_by_slot[slot].job.job_id
        others = []
        for other, table in enumerate(self._tables):
            its_slot = table.slot_of.get(job_id)
            if other != number and its_slot is not None and its_slot not in self._elsewhere[other]:
                self._elsewhere[other].add(its_slot)
                others.append(other)
        return others

    def _promise_once(self) -> bool:
        """Leave jobs promised to several to the earliest; whether any of these pass again.

        A job waits for the next round if a partition where it is later now has been left by one
        ahead of it, and may come to promise it more; unless it is where it was, or it goes on for
        too long.
        """
        self._rounds_of_promises += 1
        waits = self._rounds_of_promises < _MOST_ROUNDS
        for job_id, promises in self._promises().items():
            _, earliest, slot = min(promises)
            others = {number for _, number, _ in promises if number != earliest}
            stays = job_id in self._plans[earliest]
            if stays or not (waits and others & self._to_pass):
                self._leave_to(earliest, slot)
                self._to_pass |= others
        return bool(self._to_pass)

    def _promises(self) -> Mapping[str, Sequence[tuple[float, int, int]]]:
        """Planned starts (seconds), partitions and slots of jobs promised to several, by id."""
        promises: dict[str, list[tuple[float, int, int]]] = {}
        for number, (table, passed) in enumerate(zip(self._tables, self._passes, strict=True)):
            for slot, start in passed.reserved.items():
                job_id = table.jobs_by_slot[slot].job.job_id
                promises.setdefault(job_id, []).append((start, number, slot))
        return {job_id: each for job_id, each in promises.items() if len(each) > 1}
