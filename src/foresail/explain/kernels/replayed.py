"""The compiled replay, carried on from a moment in many drawn futures at once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from foresail.kernels.columns import SUBMIT
from foresail.kernels.compile import Floats, Integers, bare_kernel, part, unlocked_kernel
from foresail.kernels.heaps import heap_push
from foresail.kernels.waiting_jobs import DUE, SUBMITTED, WIDTH, hold
from foresail.schedulers.kernels.waiting_queue import (
    KIND,
    NOW,
    RELEASES,
    begin_to_wait,
    count_running,
    fall_due,
    hope,
    take_place,
)
from foresail.simulator.kernels import replay_loop

Numbers = NDArray[Any]


class ToCome(NamedTuple):
    """Jobs that come in each future, in order of time.

    ``seconds[f, i]`` says when, infinite behind the last; ``rows[f, i]`` is the row of a job like
    it in the other tables, which says its specification, its belief, its cpus and its kind; or, for
    one that has a slot already, -1 less that. ``runtimes`` are as long as it runs.
    """

    seconds: Floats
    rows: Integers
    runtimes: Floats
    specs: Floats
    summaries: Floats
    widths: Floats
    kinds: Integers


@bare_kernel
def enter_queue(at: replay_loop.Replay, waiting: Integers, running: Integers) -> None:
    """Take jobs that wait and run, of which the rows are filled, into an idle machine's tables."""
    queue = at.queue
    now = queue.numbers[NOW]
    for i in range(running.size):
        slot = running[i]
        job = queue.jobs[slot]
        hold(queue.release, queue.counters[RELEASES], job[replay_loop.EXPECTED], job[WIDTH], slot)
        queue.counters[RELEASES] += 1
        count_running(queue.kinds, queue.counters, int(job[KIND]), 1)
    for i in range(waiting.size):
        slot = waiting[i]
        hope(queue.jobs, queue.summaries, slot)
        begin_to_wait(queue.jobs, queue.kinds, queue.counters, slot)
        if queue.jobs[slot, DUE] < math.inf:
            fall_due(queue.jobs, queue.dues, queue.counters, slot)
        take_place(queue, slot, now)


@part
def _copy(source: Numbers, target: Numbers) -> None:
    """Copy a vector."""
    for i in range(source.size):
        target[i] = source[i]


@part
def _copy_rows(source: Numbers, target: Numbers) -> None:
    for row in range(source.shape[0]):
        _copy(source[row], target[row])


@part
def _renew(source: replay_loop.Replay, target: replay_loop.Replay) -> None:
    """Let all be in one as it is in the other."""
    _copy(source.machine, target.machine)
    _copy_rows(source.queue.jobs.T, target.queue.jobs.T)
    _copy_rows(source.queue.order.T, target.queue.order.T)
    _copy_rows(source.queue.dues.T, target.queue.dues.T)
    _copy_rows(source.queue.release, target.queue.release)
    _copy_rows(source.queue.kinds, target.queue.kinds)
    _copy(source.queue.counters, target.queue.counters)
    _copy(source.queue.numbers, target.queue.numbers)
    _copy_rows(source.reference.jobs, target.reference.jobs)
    _copy_rows(source.reference.passages, target.reference.passages)
    _copy_rows(source.reference.queue.T, target.reference.queue.T)
    _copy_rows(source.reference.releases, target.reference.releases)
    _copy(source.reference.ends, target.reference.ends)
    _copy(source.reference.found, target.reference.found)
    _copy(source.reference.numbers, target.reference.numbers)
    _copy(source.reference.counters, target.reference.counters)


@part
def _submit_later(at: replay_loop.Replay, submissions: ToCome, future: int, slot: int) -> None:
    """Fill the rows of jobs to come, the first of them at ``slot``; the last row is nobody's."""
    queue = at.queue
    nobody = queue.specs.shape[0] - 1
    for i in range(at.arrivals.size):
        seconds, row = submissions.seconds[future, i], submissions.rows[future, i]
        if seconds == math.inf:
            at.arrivals[i] = nobody
            continue
        at.arrivals[i] = slot if row >= 0 else -1 - row
        job = queue.jobs[at.arrivals[i]]
        if row >= 0:
            _copy(submissions.specs[row], queue.specs[slot])
            _copy(submissions.summaries[row], queue.summaries[slot])
            job[WIDTH] = submissions.widths[row]
            job[KIND] = submissions.kinds[row]
            job[replay_loop.RUNTIME] = submissions.runtimes[future, i]
            slot += 1
        queue.specs[at.arrivals[i], SUBMIT] = seconds
        job[SUBMITTED] = seconds


@unlocked_kernel
def fill_replayed(
    known: replay_loop.Replay,
    at: replay_loop.Replay,
    submissions: ToCome,
    running: Integers,
    running_ends: Floats,
    wanted: Integers,
    runtimes: Floats,
    first_slot: int,
    first: int,
    last: int,
    starts: Floats,
) -> None:
    """Find when jobs start in some of the futures.

    Parameters
    ----------
    known, at
        How things stand, and tables of the same shapes to work on.
    submissions, first_slot
        What comes; what is not known yet takes the slots from the latter on.
    running, running_ends
        Slots of what runs, and when it ends in each future (seconds), shape (futures, those).
    wanted, runtimes
        Slots of jobs whose starts are asked for, and how long each runs in each future.
    first, last
        The futures from the one to before the other.
    starts
        Is given the starts (seconds, infinite for never), shape (futures, wanted).
    """
    queue = at.queue
    jobs, counters = queue.jobs, queue.counters
    for future in range(first, last):
        _renew(known, at)
        now = queue.numbers[NOW]
        for i in range(running.size):
            slot = running[i]
            jobs[slot, replay_loop.END] = max(running_ends[future, i], now)
            jobs[slot, replay_loop.RUNTIME] = (
                jobs[slot, replay_loop.END] - jobs[slot, replay_loop.START]
            )
            heap_push(at.ends, i, jobs[slot, replay_loop.END], i, slot)
        left = wanted.size
        for i in range(left):
            jobs[wanted[i], replay_loop.RUNTIME] = runtimes[future, i]
        _submit_later(at, submissions, future, first_slot)
        while left > 0:
            action = replay_loop.look_ahead(at)
            if action == replay_loop.PAST:
                break
            started = counters[replay_loop.STARTED]
            replay_loop.act(at, action)
            if action == replay_loop.PASSING:
                for i in range(counters[replay_loop.STARTED] - started):
                    left -= queue.starts[i] < first_slot
        for i in range(wanted.size):
            start = jobs[wanted[i], replay_loop.START]
            starts[future, i] = math.inf if math.isnan(start) else start
