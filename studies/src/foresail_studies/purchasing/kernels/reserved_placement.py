"""Jobs that find room on reserved machines, whole or not at all; and the best of some intervals."""

from __future__ import annotations

from typing import NamedTuple

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


class Pieces(NamedTuple):
    """Pieces of jobs: ``full`` equal pieces and one ``rest`` (no cores: there is none).

    Per job: cores (whole ones), memory and gpus of a full piece and of the rest, the last two in
    the machines' units.
    """

    full: NDArray[np.int64]
    full_cores: NDArray[np.int64]
    full_memory: NDArray[np.float64]
    full_gpus: NDArray[np.float64]
    rest_cores: NDArray[np.int64]
    rest_memory: NDArray[np.float64]
    rest_gpus: NDArray[np.float64]


def place_jobs(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    pieces: Pieces,
    machines: Machines,
    running: Timetable,
) -> NDArray[np.bool_]:
    """Return whether each job, in order of start, runs on the machines: every piece best fit.

    ``running`` is an empty timetable with room for all jobs.
    """
    full = np.stack((pieces.full_cores, pieces.full_memory, pieces.full_gpus), axis=1)
    rest = np.stack((pieces.rest_cores, pieces.rest_memory, pieces.rest_gpus), axis=1)
    asked: NDArray[np.float64] = np.stack((full, rest), axis=1)
    counts = np.stack((pieces.full, pieces.full + (pieces.rest_cores > 0)), axis=1)
    begin = np.zeros(start.size + 1, np.int64)
    placed = np.zeros(start.size, np.bool_)
    where = np.empty(1024, np.int64)
    times = np.stack((start, end))
    job = _place(0, times, counts, asked, machines, running, begin, where, placed)
    while job < start.size:
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

    ``counts`` are each job's full pieces and all of its pieces; ``asked`` what a full piece and the
    rest ask for, shape (jobs, 2, 3); ``where`` the machines of the pieces of each job that was
    placed, one job after the other, and ``begin`` where those of each job begin.
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
