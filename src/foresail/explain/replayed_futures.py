"""Futures of one partition by the compiled replay: the scheduler's own passes decide them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.explain.arrivals import DrawnArrivals
from foresail.explain.job_columns import JobColumns, columns_of
from foresail.explain.kernels.replayed import ToCome, enter_queue, fill_replayed
from foresail.explain.outlook import Outlook
from foresail.kernels.columns import (
    SPEC_COLUMNS,
    SUBMIT,
    fixed_point,
    fixed_point_cpus,
    nearest_fixed_point,
)
from foresail.kernels.steps import PredictorState, step_address
from foresail.kernels.waiting_jobs import DUE, LATEST, PLANNED, RESERVATION, SUBMITTED
from foresail.model.distribution import Floats, Integers
from foresail.model.job import Job
from foresail.model.view import PendingJob
from foresail.schedulers.kernels import reference as easy
from foresail.schedulers.kernels.waiting_queue import AGED, HELD_FIRST, NOW, WAITS
from foresail.simulator.kernels import replay_loop as loop

_MOST_WITH_RESERVATIONS: Final = 100
"""Number of waiting jobs beyond which reservations for all of them would take minutes."""

_PROCESSOR_SECONDS: Final = 1.2
_JOB_SECONDS: Final = 7e-7
_PAIR_SECONDS: Final = 1.6e-10
_GUARDED: Final = 3.1
_FEWEST: Final = 30
"""Futures may take so long, by what they take for each job that waits or comes and for each pair of
these, for passes look at all that wait, and so many times that where the scheduler compares with
another schedule; where that is enough for fewer than the last, none is replayed."""


def unknown_to_replay(outlook: Outlook) -> str | None:
    """Return what such futures depend on that the replay does not know; None: it knows all.

    That is several partitions, memory and gpus, and, where the scheduler compares with another
    schedule, jobs that may start later than others that come.
    """
    rule, waiting = outlook.rule, outlook.waiting
    if rule is None:
        return "such a policy or so many jobs"
    if len(outlook.room) != 1:
        return "several partitions"
    if math.isinf(rule.scheduler.most_reserved) and len(waiting) > _MOST_WITH_RESERVATIONS:
        return "reservations of so many jobs"
    jobs = [*waiting.jobs.kinds, *(each.pending.job for each in outlook.recent)]
    if any(job.total.memory_bytes or job.total.gpus for job in jobs):
        return "memory and gpus"
    if rule.references and (waiting.ready > outlook.now).any():
        return "jobs that may start later"
    return None


def affordable_futures(outlook: Outlook, arrivals: int) -> int:
    """Return how many futures with so many jobs to come may be replayed; 0: too few to be of use.

    It depends on nothing but how much there is to do, so that equal questions get equal answers.
    """
    jobs = len(outlook.waiting) + arrivals + 1
    seconds = _JOB_SECONDS * jobs + _PAIR_SECONDS * jobs**2
    guarded = outlook.rule is not None and outlook.rule.references
    count = _PROCESSOR_SECONDS / (seconds * (_GUARDED if guarded else 1.0))
    return int(count) if count >= _FEWEST else 0


class ReplayedFutures:
    """State of the one partition of an outlook, as tables of the compiled replay.

    Slots are those of jobs in what the scheduler compares with, if it does; then of other jobs that
    run, and that wait, by arrival; then of those to come.

    Parameters
    ----------
    outlook
        One of which nothing is ``unknown_to_replay``.
    arrivals
        What comes in each future.
    runtimes
        How long these run, of the same shape.
    """

    def __init__(self, outlook: Outlook, arrivals: DrawnArrivals, runtimes: Floats) -> None:
        rule, (room,) = outlook.rule, outlook.room.values()
        assert rule is not None
        self._rule, self._outlook = rule, outlook
        self._cpus = fixed_point(nearest_fixed_point(room.cpus))
        slot_of = dict(rule.references[0][1]) if rule.references else {}
        entered = set(slot_of)
        first = int(rule.references[0][0].counters[easy.ENTERED]) if rule.references else 0
        whole = outlook.waiting
        self._columns = np.flatnonzero(fixed_point_cpus(whole.jobs.cpus) <= self._cpus)
        queued = whole.some(self._columns.tolist())
        job_ids = [*(each.job.job_id for each in outlook.running), *queued.jobs.places]
        for job_id in job_ids:
            if job_id not in slot_of:
                slot_of[job_id] = first
                first += 1
        slots = np.array([slot_of[job_id] for job_id in job_ids], np.int64)
        self._first = first
        self._running, self._waiting = np.split(slots, [len(outlook.running)])
        later = queued.ready > outlook.now
        if rule.references:
            later |= np.array([job_id not in entered for job_id in queued.jobs.places], np.bool_)
        ready = queued.ready[later]
        self._kinds: dict[tuple[str | None, float | None], int] = {}
        self._submissions = self._to_come(arrivals, runtimes, self._waiting[later], ready)
        self._known = self._standing(queued.jobs, int(later.sum()))
        enter_queue(self._known, self._waiting[~later], self._running)

    def _kind(self, job: Job) -> int:
        return self._kinds.setdefault((job.user, job.requested_seconds), len(self._kinds))

    def _to_come(
        self, arrivals: DrawnArrivals, runtimes: Floats, slots: Integers, ready: Floats
    ) -> ToCome:
        """Jobs to come, those among them that are known but may not start yet."""
        seconds, rows = arrivals.seconds, arrivals.numbers
        if slots.size:
            count = len(runtimes)
            known = np.broadcast_to(ready, (count, slots.size))
            seconds = np.concatenate((known, seconds), axis=1)
            rows = np.concatenate((np.broadcast_to(-1 - slots, known.shape), rows), axis=1)
            runtimes = np.concatenate((np.zeros(known.shape), runtimes), axis=1)
            order = np.argsort(seconds, axis=1, kind="stable")
            seconds = np.take_along_axis(seconds, order, axis=1)
            rows = np.take_along_axis(rows, order, axis=1)
            runtimes = np.take_along_axis(runtimes, order, axis=1)
        recent = [each.pending for each in self._outlook.recent] if arrivals.numbers.size else []
        jobs = columns_of(recent)
        kinds = jobs.by_kind(self._kind).astype(np.int64)
        widths = fixed_point_cpus(jobs.cpus)
        return ToCome(seconds, rows, runtimes, jobs.specs(), jobs.summary_rows, widths, kinds)

    def _standing(self, waiting: JobColumns, later: int) -> loop.Replay:
        """Return tables with rows of all that is known; ``later`` are to be submitted still."""
        outlook, rule = self._outlook, self._rule
        running = outlook.running
        count = self._first + self._submissions.seconds.shape[1] + 1
        specs = np.full((count, SPEC_COLUMNS), -1.0)
        specs[-1, SUBMIT] = math.inf
        runs = columns_of([PendingJob(each.job, 0, each.prediction, 0.0) for each in running])
        specs[self._running], specs[self._waiting] = runs.specs(), waiting.specs()
        kinds = np.zeros(count, np.int64)
        kinds[self._running] = runs.by_kind(self._kind)
        kinds[self._waiting] = waiting.by_kind(self._kind)
        kinds[-1] = len(self._kinds)  # so that there are as many rows
        width = np.zeros(count)
        width[self._running] = [fixed_point(each.cpus) for each in outlook.taken]
        width[self._waiting] = fixed_point_cpus(waiting.cpus)
        free = self._cpus - float(width[self._running].sum())
        correct, parameters = rule.correction.compiled()
        steps = loop.Steps(0.0, 0.0, 0.0, 0.0, step_address(correct))
        parts = steps, rule.conventions, parameters, rule.scheduler.shares
        machine = loop.machine_numbers(free, *parts)
        state = PredictorState(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)))
        at = loop.idle(specs, width, np.zeros(count), kinds, rule.scheduler, machine, state)
        at.queue.summaries[self._running] = runs.summary_rows
        at.queue.summaries[self._waiting] = waiting.summary_rows
        table = at.queue.jobs
        table[-1, WAITS] = 1.0  # where looking for the first that waits ends
        table[self._waiting, PLANNED] = waiting.table["planned"]
        table[self._waiting, loop.INITIAL] = table[self._waiting, PLANNED]
        planned = [rule.plan.get(job_id, math.nan) for job_id in waiting.places]
        table[self._waiting, RESERVATION] = planned
        limit = rule.scheduler.age_limit_seconds
        table[self._waiting, DUE] = table[self._waiting, SUBMITTED] + limit
        known = np.isfinite(waiting.table["due"])
        table[self._waiting[known], DUE] = waiting.table["due"][known]
        table[self._waiting[known], LATEST] = waiting.table["latest"][known]
        table[self._running, AGED] = [each.went_first for each in running]
        at.queue.numbers[HELD_FIRST] = width[self._running] @ table[self._running, AGED]
        table[self._running, loop.START] = [each.start_seconds for each in running]
        table[self._running, loop.EXPECTED] = [each.expected_end_seconds for each in running]
        table[self._running, PLANNED] = (
            table[self._running, loop.EXPECTED] - table[self._running, loop.START]
        )
        table[self._running, loop.INITIAL] = [
            each.slowdown * planned
            for each, planned in zip(running, rule.initial_seconds, strict=True)
        ]
        table[self._running, loop.CORRECTIONS] = [each.corrections for each in running]
        counters = at.queue.counters
        counters[[loop.RUNNING, loop.STARTED, loop.STARTED_BEFORE]] = len(running)
        counters[loop.PASS_DUE] = 1
        counters[loop.PHASE] = loop.ENDS
        at.queue.numbers[NOW] = outlook.now
        if rule.references:
            reference = _with_room(rule.references[0][0], count)
            reference.counters[easy.ENTERED] = self._first - later
            at = at._replace(reference=reference)
        to_come = np.zeros(self._submissions.seconds.shape[1], np.int64)
        return loop.placed(at._replace(arrivals=to_come))

    def starts(self, lasting: Floats, running_ends: Floats, first: int, last: int) -> Floats:
        """Return when waiting jobs start in the futures from ``first`` to before ``last``."""
        found = np.full((len(lasting), len(self._outlook.waiting)), math.inf)
        starts = np.empty((len(lasting), len(self._columns)))
        fill_replayed(
            self._known,
            _copied(self._known),
            self._submissions,
            self._running,
            running_ends,
            self._waiting,
            np.ascontiguousarray(lasting[:, self._columns]),
            self._first,
            first,
            last,
            starts,
        )
        found[:, self._columns] = starts
        return found[first:last]


def _with_room(at: easy.ReferenceTables, count: int) -> easy.ReferenceTables:
    """Return a copy with room for so many jobs, each of which may enter and leave."""
    left = at.passages[at.counters[easy.TAKEN] : at.counters[easy.PASSAGES]]
    counters = at.counters.copy()
    counters[[easy.TAKEN, easy.PASSAGES]] = 0, len(left)
    jobs = easy.blank_rows(count)
    entered = at.counters[easy.ENTERED]
    jobs[:entered] = at.jobs[:entered]
    passages = np.zeros((len(left) + 2 * count, left.shape[1]))
    passages[: len(left)] = left
    queue = easy.blank_queue(len(at.queue) + count)
    queue[: len(at.queue)] = at.queue
    return easy.ReferenceTables(
        jobs=jobs,
        passages=passages,
        queue=queue,
        releases=np.resize(at.releases, (count + 1, at.releases.shape[1])),
        ends=np.resize(at.ends, count + 1),
        found=np.resize(at.found, count),
        numbers=at.numbers.copy(),
        counters=counters,
    )


def _copied(at: loop.Replay) -> loop.Replay:
    """Return tables of the same shapes and contents."""
    queue = at.queue._replace(
        **{name: table.copy("K") for name, table in at.queue._asdict().items()}
    )
    tables = at.reference._asdict().items()
    reference = at.reference._replace(**{name: table.copy("K") for name, table in tables})
    own = at._replace(
        queue=queue,
        reference=reference,
        machine=at.machine.copy(),
        ends=at.ends.copy(),
        arrivals=at.arrivals.copy(),
    )
    return loop.placed(own)
