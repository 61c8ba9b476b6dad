"""Jobs that find room on reserved machines, whole or not at all; and the best of some intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels.placing import (
    Machines,
    Timetable,
    best_fit,
    enter,
    first_time,
    leave_first,
    take,
)
from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Floats, Integers


def best_intervals(predecessor: Integers, values: Floats) -> NDArray[np.bool_]:
    """Which of some intervals, by end, to choose so that none overlap and the value is greatest.

    ``predecessor[i]`` is how many of them end no later than interval i begins.
    """
    chosen = np.zeros(values.size, np.bool_)
    _choose_intervals(predecessor, values, np.zeros(values.size + 1), chosen)
    return chosen


@bare_kernel
def _choose_intervals(
    predecessor: Integers, values: Floats, best: Floats, chosen: NDArray[np.bool_]
) -> None:
    for at in range(values.size):
        best[at + 1] = max(best[at], best[predecessor[at]] + values[at])
    at = values.size
    while at > 0:
        if best[at] == best[at - 1]:
            at -= 1
        else:
            chosen[at - 1] = True
            at = predecessor[at - 1]


def place_jobs(
    times: NDArray[np.float64],
    counts: NDArray[np.int64],
    asked: NDArray[np.float64],
    machines: Machines,
    running: Timetable,
) -> NDArray[np.bool_]:
    """Return whether each job, in order of start, runs on the machines: every piece best fit.

    Parameters are starts and ends, shape (2, jobs); each job's full pieces and all of its pieces,
    shape (jobs, 2); what a full piece and the rest ask for of cores, memory and gpus in the
    machines' units, shape (jobs, 2, 3); and an empty timetable with room for all jobs.
    """
    count = times.shape[1]
    begin = np.zeros(count + 1, np.int64)
    placed = np.zeros(count, np.bool_)
    where = np.empty(1024, np.int64)
    job = _place(0, times, counts, asked, machines, running, begin, where, placed)
    while job < count:
        where = np.concatenate((where, np.empty(where.size + counts[job, 1], np.int64)))
        job = _place(job, times, counts, asked, machines, running, begin, where, placed)
    return placed


@bare_kernel
def _place(
    first: int,
    times: NDArray[np.float64],
    counts: NDArray[np.int64],
    asked: NDArray[np.float64],
    machines: Machines,
    running: Timetable,
    begin: NDArray[np.int64],
    where: NDArray[np.int64],
    placed: NDArray[np.bool_],
) -> int:
    """Place jobs from the first on; the first for which ``where`` has no room, or their number.

    ``where`` has the machines of the pieces of each job that was placed, one job after the other,
    and ``begin`` where those of each job begin; the others are as for ``place_jobs``.
    """
    for job in range(first, placed.size):
        while first_time(running) <= times[0, job]:
            gone = leave_first(running)
            _give_back(gone, counts[gone, 1], counts, asked, machines, begin, where)
        count, filled = counts[job, 1], begin[job]
        if filled + count > where.size:
            return job
        got = 0
        while got < count:
            piece = asked[job, int(got >= counts[job, 0])]
            machine = best_fit(machines, piece)
            if machine < 0:
                break
            take(machines, machine, piece, 1.0)
            where[filled + got] = machine
            got += 1
        begin[job + 1] = filled
        if got == count:
            placed[job] = True
            begin[job + 1] = filled + count
            enter(running, times[1, job], job)
        else:
            _give_back(job, got, counts, asked, machines, begin, where)
    return placed.size


@part
def _give_back(
    job: int,
    count: int,
    counts: NDArray[np.int64],
    asked: NDArray[np.float64],
    machines: Machines,
    begin: NDArray[np.int64],
    where: NDArray[np.int64],
) -> None:
    """Give back what the first pieces of a job hold."""
    for number in range(count):
        piece = asked[job, int(number >= counts[job, 0])]
        take(machines, where[begin[job] + number], piece, -1.0)
