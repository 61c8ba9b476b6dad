"""Reference schedule of EASY for the jobs of a run, following each event as it happens."""

from __future__ import annotations

import copy
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import Final

import numpy as np

from foresail.kernels.columns import fixed_point
from foresail.kernels.steps import Shares
from foresail.kernels.waiting_jobs import HOLDER
from foresail.model.cluster import Cluster, NamedPartitions, Partition
from foresail.model.job import Job
from foresail.model.view import Due, PendingJob
from foresail.schedulers.kernels import reference as tables

_ENTERED: Final = Struct("=4d")
_PASSAGE: Final = Struct(f"={tables.PASSAGE_COLUMNS}d")
"""The first columns of a job's row, ``CPUS_HELD`` to ``LIKELY_SECONDS``, and those of a passage:
each written at once."""

_FEW = 64
_LONGEST_SECONDS = 1e9
"""Likely runtime of a job of which nothing is known."""


class EasyReference:
    """A ``foresail.model.protocols.ReferenceSchedule``: EASY with requested times, per partition.

    A job that names several partitions, or none that there is, is for that it fits in where
    jobs that wait and run are likely to need the least per cpu; of equals, the first. Where no time
    was requested the runtime counts that is planned with. A job counts by that resource of which it
    asks for the largest share: where others are short, its turn comes later than with all counted.
    """

    def __init__(self, cluster: Cluster, shares: Shares) -> None:
        self._named = NamedPartitions(cluster)
        partitions = [*self._named.whole(cluster)]
        self._parts = [_PartitionReference(each, shares) for each in partitions]
        self._numbers = {each.name: number for number, each in enumerate(partitions)}
        self._totals = [each.total for each in partitions]
        self._home: dict[str, _PartitionReference] = {}
        self._work: dict[str, int] = {}  # cpu-seconds, by job; whole, so that sums are exact
        self._dues: list[tuple[float, str]] = []  # a heap; jobs that wait no more are among them

    def entered(self, pending: PendingJob, now: float) -> None:
        """A job may start from now on."""
        several = len(self._parts) > 1
        part = self._home_of(pending.job) if several else self._parts[0]
        if part.enter(pending, now):
            self._home[pending.job.job_id] = part
            if several:
                self._work[pending.job.job_id] = work = _likely_work(pending)
                part.work += work

    def started(self, job_id: str, now: float) -> bool:
        """An attempt of the job starts; returns whether it was due by then."""
        return job_id in self._home and self._home[job_id].start(job_id, now)

    def requeued(self, job_id: str, now: float) -> None:
        """The attempt was stopped or lost, and the job waits again."""
        if job_id in self._home:
            self._home[job_id].stop(job_id, now)
            due_seconds = self._home[job_id].due_seconds(job_id)
            if due_seconds > now:
                heapq.heappush(self._dues, (due_seconds, job_id))

    def left(self, job_id: str, now: float) -> None:
        """The job has ended, or will never run."""
        if job_id in self._home:
            part = self._home.pop(job_id)
            part.work -= self._work.pop(job_id, 0)
            part.note(now, tables.LEAVES, job_id)

    def found(self, now: float) -> Sequence[tuple[str, Due]]:
        """List whose turn came before now, and is new; by the time of their turn."""
        dues = [
            (job_id, due)
            for part in self._parts
            for job_id, due in part.found(now)
            if self._home.get(job_id) is part  # else it was another job there, before a change
        ]
        if len(self._parts) > 1:
            dues.sort(key=lambda each: each[1].turn_seconds)
        for job_id, due in dues:
            heapq.heappush(self._dues, (due.due_seconds, job_id))
        while self._dues and self._dues[0][0] <= now:
            heapq.heappop(self._dues)
        return dues

    def next_seconds(self) -> float:
        """Return when a job that waits is due next, or it may be known that one is."""
        while self._dues and not self._waits(self._dues[0][1]):
            heapq.heappop(self._dues)
        turns = [part.next_turn() for part in self._parts]
        return min(self._dues[0][0], *turns) if self._dues else min(turns)

    def _home_of(self, job: Job) -> _PartitionReference:
        """The part of the schedule that a job is for, which follows what came before it."""
        asked = self._named.asked(job.partition)
        numbers = [self._numbers[name] for name in asked or self._numbers]
        needed = job.total
        fitting = [self._parts[each] for each in numbers if needed.fits_in(self._totals[each])]
        return min(fitting, key=_work_per_cpu) if fitting else self._parts[numbers[0]]

    def _waits(self, job_id: str) -> bool:
        return job_id in self._home and self._home[job_id].waits(job_id)

    def copy(self) -> EasyReference:
        """Another one that goes on from here by itself."""
        twin = copy.copy(self)
        parts = {part: part.copy() for part in self._parts}
        twin._parts = [*parts.values()]
        twin._home = {job_id: parts[part] for job_id, part in self._home.items()}
        twin._work, twin._dues = dict(self._work), [*self._dues]
        return twin

    def standing(self) -> Iterator[tuple[tables.ReferenceTables, Mapping[str, int]]]:
        """Yield the tables of each partition, to be left alone, and the row of each job by id."""
        for part in self._parts:
            yield part.standing()


class _PartitionReference:
    """The schedule of one partition: rows of tables by job id.

    ``work`` is what jobs that wait or run are likely to need (cpu-seconds), for others to keep.
    """

    def __init__(self, partition: Partition, shares: Shares) -> None:
        self.work = 0
        self._total = partition.total
        self._cpus = fixed_point(partition.total.cpus)
        self._at = tables.blank_reference(_FEW, 4 * _FEW, self._cpus, shares)
        self._job_ids: list[str] = []
        self._number_of: dict[str, int] = {}

    @property
    def cpus(self) -> float:
        """Return how many cpus there are."""
        return self._cpus

    def enter(self, pending: PendingJob, now: float) -> bool:
        """Take a job that may start; whether it fits at all."""
        job = pending.job
        cpus = fixed_point(self._cpus_for(job))
        if cpus > self._cpus:
            return False
        if len(self._job_ids) == len(self._at.jobs):
            self._drop_over()
            if 2 * len(self._job_ids) > len(self._at.jobs):
                self._grow()
        number = len(self._job_ids)
        self._job_ids.append(job.job_id)
        self._number_of[job.job_id] = number
        requested = job.requested_seconds
        request = pending.planned_seconds if requested is None else requested
        jobs, likely = self._at.jobs, pending.prediction.mean()
        _ENTERED.pack_into(jobs.data, number * jobs.strides[0], cpus, now, request, likely)
        self.note(now, tables.ENTERS, job.job_id)
        return True

    def _cpus_for(self, job: Job) -> float:
        """Count the cpus it asks for, or that its share of memory or gpus is of all there are."""
        total = self._total
        if not (total.memory_bytes or total.gpus):
            return job.cpus
        asked = job.total
        if not (asked.memory_bytes or asked.gpus):
            return asked.cpus
        share = max(
            asked.memory_bytes / total.memory_bytes if total.memory_bytes else 0.0,
            asked.gpus / total.gpus if total.gpus else 0.0,
        )
        return max(asked.cpus, min(share, 1.0) * total.cpus)

    def start(self, job_id: str, now: float) -> bool:
        """Note that a job runs from now on; returns whether it was due by then."""
        tables.settle_before(self._at, now)
        job = self._at.jobs[self._number_of[job_id]]
        job[tables.STARTED] = now
        return bool(job[tables.DUE_SECONDS] <= now)

    def stop(self, job_id: str, now: float) -> None:
        """Note that a job runs no more, and waits again."""
        tables.settle_before(self._at, now)
        self._at.jobs[self._number_of[job_id], tables.STARTED] = math.nan

    def waits(self, job_id: str) -> bool:
        """Return whether a job that has not left waits."""
        return math.isnan(self._at.jobs[self._number_of[job_id], tables.STARTED])

    def due_seconds(self, job_id: str) -> float:
        """Return when a job is due; nan if that is not known."""
        return float(self._at.jobs[self._number_of[job_id], tables.DUE_SECONDS])

    def next_turn(self) -> float:
        """Return when it may be known next that a job is due whose turn has not come."""
        return tables.next_turn(self._at)

    def note(self, now: float, what: float, job_id: str) -> None:
        """Note that a job enters or leaves."""
        at = self._at
        if at.counters[tables.PASSAGES] == len(at.passages):
            tables.settle_before(at, now)
            self._drop_taken()
            at = self._at
        passages, row = at.passages, int(at.counters[tables.PASSAGES])
        _PASSAGE.pack_into(
            passages.data, row * passages.strides[0], now, what, self._number_of[job_id]
        )
        at.counters[tables.PASSAGES] = row + 1

    def found(self, now: float) -> list[tuple[str, Due]]:
        """List whose turn came before now, and is new."""
        at = self._at
        tables.settle_before(at, now)
        self._drop_taken()
        found = at.found[: at.counters[tables.FOUND]]
        reached = int(np.searchsorted(at.jobs[found, tables.TURN], now))
        numbers = found[:reached].tolist()
        found[: len(found) - reached] = found[reached:].copy()
        at.counters[tables.FOUND] -= reached
        rows = at.jobs[numbers, tables.TURN : tables.LATEST_SECONDS + 1].tolist()
        return [
            (job_id, Due(*row))
            for number, row in zip(numbers, rows, strict=True)
            if self._number_of.get(job_id := self._job_ids[number]) == number
        ]

    def copy(self) -> _PartitionReference:
        """Another one that goes on from here by itself."""
        twin = copy.copy(self)
        named = self._at._asdict().items()
        twin._at = self._at._replace(**{name: table.copy("K") for name, table in named})
        twin._job_ids, twin._number_of = [*self._job_ids], dict(self._number_of)
        return twin

    def standing(self) -> tuple[tables.ReferenceTables, Mapping[str, int]]:
        """Return the tables, and the row of each job by its id."""
        self._at.counters[tables.ENTERED] = len(self._job_ids)
        return self._at, self._number_of

    def _drop_taken(self) -> None:
        """Make room for passages; those of the present instant are still to be taken."""
        at = self._at
        taken, passages = at.counters[tables.TAKEN], at.counters[tables.PASSAGES]
        left = at.passages[taken:passages].copy()
        if 2 * len(left) > len(at.passages):
            longer = np.zeros((4 * len(left), tables.PASSAGE_COLUMNS))
            self._at = at = at._replace(passages=longer)
        at.passages[: len(left)] = left
        at.counters[tables.TAKEN], at.counters[tables.PASSAGES] = 0, len(left)

    def _drop_over(self) -> None:
        """Drop the rows of jobs that are over here and in the run; the others keep their order."""
        at = self._at
        passages = at.passages[at.counters[tables.TAKEN] : at.counters[tables.PASSAGES]]
        front = at.counters[tables.FRONT]
        places = at.counters[tables.WAITING] + at.counters[tables.GAPS]
        queue = at.queue[front : front + places, tables.WHO]
        ends = at.ends[: at.counters[tables.RUNNING]]
        holders = at.releases[: at.counters[tables.RUNNING], HOLDER]
        found = at.found[: at.counters[tables.FOUND]]
        used = np.isnan(at.jobs[: len(self._job_ids), tables.RUNTIME])
        for numbers in (passages[:, tables.NUMBER], queue, ends, found):
            used[numbers.astype(np.int64)] = True
        kept = np.flatnonzero(used)
        new = np.cumsum(used) - 1
        for numbers in (passages[:, tables.NUMBER], queue, ends, holders, found):
            numbers[:] = new[numbers.astype(np.int64)]
        at.jobs[: len(kept)] = at.jobs[kept]
        at.jobs[len(kept) :] = math.nan
        self._job_ids = [self._job_ids[number] for number in kept.tolist()]
        self._number_of = {job_id: number for number, job_id in enumerate(self._job_ids)}

    def _grow(self) -> None:
        """Twice the rows."""
        at = self._at
        count = len(at.jobs)
        jobs = tables.blank_rows(2 * count)
        jobs[:count] = at.jobs
        queue = tables.blank_queue(2 * count)
        queue[: len(at.queue)] = at.queue
        self._at = at._replace(
            jobs=jobs,
            queue=queue,
            found=np.resize(at.found, 2 * count),
            releases=np.resize(at.releases, (2 * count + 1, at.releases.shape[1])),
            ends=np.resize(at.ends, 2 * count + 1),
        )


def _likely_work(pending: PendingJob) -> int:
    """Cpu-seconds that a job is likely to need."""
    job, likely = pending.job, pending.prediction.mean()
    if job.requested_seconds is not None:
        likely = min(likely, job.requested_seconds)
    return round(job.cpus * (likely if likely < _LONGEST_SECONDS else _LONGEST_SECONDS))


def _work_per_cpu(part: _PartitionReference) -> float:
    return part.work / max(part.cpus, 1.0)
