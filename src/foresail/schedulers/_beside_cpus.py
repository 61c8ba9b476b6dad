"""Memory and gpus beside cpus: what of a pass fits in these too, and whom it must not put off.

Passes count cpus. Where waiting jobs ask for more than these, a pass is made again without those
for which too little memory or too few gpus are free, until all that it starts fits. The first in
the queue that does not fit is promised the time when all that it asks for should be free; who is
tried before its turn must not put that off, as in EASY. If it lacks no cpus, the pass promises the
first that does a start as well. Further reservations, where a policy makes some, count cpus.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from foresail.kernels.waiting_jobs import LIKELY, PLANNED, WIDTH
from foresail.model.cluster import Resources
from foresail.model.containers import quickly_made, replaced
from foresail.model.decision import Placement
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.job import Job
from foresail.model.view import ClusterView
from foresail.schedulers.kernels.waiting_queue import AGED

OTHERS: Final = 2
"""Memory (bytes) and gpus, in this order; behind cpus where these are counted too."""

_ROUNDING: Final = 1e-9
"""Rounding error, as ``FreeResources`` has it."""

_FEW: Final = 64
"""Number of jobs in front of a queue among which the first that does not fit is looked for; then
eight times as many."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Passed:
    """The outcome of a pass over a queue.

    Slots to start, how many cpus were free before, and planned starts (seconds) by slot of the
    reservations, in queue order. Of jobs that wait for other partitions too: slots of those that
    start in another, and planned starts of those that are promised to another. Where a job that
    waits asks for memory or gpus: how much of these is left.
    """

    starts: list[int]
    free: float
    reserved: Mapping[int, float]
    started_elsewhere: Collection[int] = ()
    promised_elsewhere: Mapping[int, float] = field(default_factory=dict)
    left: tuple[float, float] | None = None
    placements: Mapping[int, Placement] = field(default_factory=dict)
    """Placements of starts, by slot, where the partition shares nodes with others."""

    @property
    def started(self) -> set[int]:
        """Slots of jobs that start, here or elsewhere."""
        return {*self.starts, *self.started_elsewhere}

    @property
    def elsewhere(self) -> Collection[int]:
        """Slots of jobs that start, or are promised to, elsewhere."""
        started, promised = self.started_elsewhere, self.promised_elsewhere
        return {*started, *promised} if started or promised else ()


PassAgain = Callable[[Passed, Integers], Passed]
"""Makes the pass again behind what has started, without some slots."""


def others_of(job: Job) -> tuple[float, float]:
    """Memory and gpus of a job."""
    if len(job.stages) > 1:
        return job.total.memory_bytes, job.total.gpus
    stage = job.stages[0]
    return stage.request.memory_bytes * stage.tasks, stage.request.gpus * stage.tasks


class AllResources:
    """One partition at a moment: what is free of everything, and what frees more and when.

    ``records`` of the view's cluster are what it consists of, ``queue`` the slots of the jobs that
    wait there, in queue order; ``jobs`` and ``others`` are the rows of slots: those of passes, and
    memory and gpus. ``backfills`` and ``promises`` say whether jobs may start before one that does
    not fit, and whether that is promised a start, ``hopes`` whether behind one that is not due the
    likely runtime counts as well as the planned.
    """

    def __init__(
        self,
        view: ClusterView,
        records: Sequence[str],
        queue: Integers,
        jobs: Floats,
        others: Floats,
        *,
        backfills: bool,
        promises: bool,
        hopes: bool,
    ) -> None:
        self._view, self._records = view, records
        self._queue, self._jobs = queue, jobs
        self._columns = (jobs[:, WIDTH], *others.T)
        self._backfills, self._promises, self._hopes = backfills, promises, hopes

    def _needs(self, slots: Sequence[int] | Integers) -> Floats:
        """Return what jobs ask for, shape (jobs, resources)."""
        return np.stack([column[slots] for column in self._columns], axis=1)

    def settled(
        self, passed: Passed, started: Sequence[int], elsewhere: Integers, again: PassAgain
    ) -> Passed:
        """Settle a pass with all resources counted; behind ``started``, less ``elsewhere``.

        The pass was made for all other jobs that wait.
        """
        room = sum((self._view.free[name] for name in self._records), Resources())
        left = np.array([passed.free, room.memory_bytes, room.gpus])
        left -= self._needs(list(started)).sum(axis=0)
        head, ahead, shadow, spare = self._first_that_waits(left, started, elsewhere)
        late = self._ends_after(shadow, head)
        late[ahead] = False
        late[head : head + 1] = False  # none, if there is no head
        accepted = [*started]
        while True:
            fresh = passed.starts[len(accepted) :]
            for slot, needed in zip(fresh, self._needs(fresh), strict=True):
                least = needed * (1.0 - _ROUNDING)
                if (least > left)[1:].any() or (late[slot] and (least > spare).any()):
                    break
                left -= needed
                spare -= needed * late[slot]
                accepted.append(slot)
            if len(accepted) == len(passed.starts):
                break
            if not self._backfills:
                passed = replaced(passed, starts=accepted)
                break
            blocked = self._beyond(spare, 0) & late | self._beyond(left, 1)
            blocked[accepted] = False
            absent = self._queue[blocked[self._queue]]
            before = Passed(accepted, passed.free, {})
            passed = again(before, np.union1d(absent, elsewhere) if len(elsewhere) else absent)
        if self._promises and head >= 0 and self._needs([head])[0, 1:].any():
            later = {slot: at for slot, at in passed.reserved.items() if slot != head}
            promised = {head: shadow} if shadow < math.inf else {}
            passed = replaced(passed, reserved={**promised, **later})
        memory, gpus = np.maximum(left[1:], 0.0).tolist()
        return replaced(passed, left=(memory, gpus))

    def _beyond(self, room: Floats, first: int) -> Booleans:
        """Find slots that ask for more than is left of a resource, from the ``first`` one on."""
        pairs = zip(self._columns[first:], room[first:], strict=True)
        beyond = np.zeros(len(self._jobs), np.bool_)
        for column, most in pairs:
            beyond |= column * (1.0 - _ROUNDING) > most
        return beyond

    def _first_that_waits(
        self, left: Floats, started: Sequence[int], elsewhere: Integers
    ) -> tuple[int, Integers, float, Floats]:
        """The first slot that does not fit behind those ahead of it, and these; -1 if all fit.

        Then when it should, and how much more is free at that time.
        """
        queue, nothing = self._queue, np.zeros(1 + OTHERS)
        if started or len(elsewhere):
            gone = np.concatenate([np.array(started, np.int64), elsewhere])
            queue = queue[np.isin(queue, gone, invert=True)]
        few = _FEW
        while True:
            held = np.cumsum(self._needs(queue[:few]), axis=0)
            beyond = (held * (1.0 - _ROUNDING) > left).any(axis=1)
            if beyond.any() or few >= len(queue):
                break
            few *= 8
        if not beyond.any():
            return -1, queue, math.inf, nothing
        at = int(beyond.argmax())
        head, ahead = int(queue[at]), queue[:at]
        if not self._promises:
            return head, ahead, math.inf, nothing
        free = left - (held[at - 1] if at else nothing)
        shadow, spare = self._shadow(free, self._needs([head])[0], [*started, *ahead.tolist()])
        return head, ahead, shadow, spare

    def _shadow(self, free: Floats, needed: Floats, started: Sequence[int]) -> tuple[float, Floats]:
        """Find when so much is to be free, and how much more; slots ``started`` run from now on."""
        now, records = self._view.now, self._records
        ends = [max(each.expected_end_seconds, now) for each in self._view.running]
        held = [_held(each.held, each.placement, records) for each in self._view.running]
        ends += (now + self._jobs[started, PLANNED]).tolist()
        held += self._needs(started).tolist()
        if not ends:
            return math.inf, free
        order = np.argsort(ends, kind="stable")
        times = np.array(ends)[order]
        rooms = free + np.cumsum(np.array(held)[order], axis=0)
        fits = (needed * (1.0 - _ROUNDING) <= rooms).all(axis=1) & (times < math.inf)
        if not fits.any():
            return math.inf, np.zeros(1 + OTHERS)
        time = float(times[fits.argmax()])
        last = int(np.searchsorted(times, time, side="right")) - 1
        return time, rooms[last] - needed

    def _ends_after(self, shadow: float, head: int) -> Booleans:
        """Return which slots would run at that time, if they started now."""
        late: Booleans = self._view.now + self._jobs[:, PLANNED] > shadow
        if self._hopes and head >= 0 and self._jobs[head, AGED] == 0.0:
            late &= self._view.now + self._jobs[:, LIKELY] > shadow
        return late


def _held(job: Job, placement: Placement, records: Sequence[str]) -> tuple[float, float, float]:
    """Return what a running job holds of a partition: cpus, memory and gpus."""
    tasks = sum(count for name, count in placement.tasks_by_partition if name in records)
    share = tasks / job.tasks
    memory, gpus = others_of(job)
    return job.cpus * share, memory * share, gpus * share
