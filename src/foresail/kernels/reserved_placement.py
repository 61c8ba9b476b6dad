"""Jobs that never wait on reserved machines: which of them find room there, whole or not at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import kernel
from foresail.kernels.heaps import Timetable, enter, leave_first
from foresail.kernels.packing import Machines, best_fit, take


class Pieces(NamedTuple):
    """How jobs come apart: ``full`` equal pieces and one ``rest`` (no cores: there is none).

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


@kernel
def place_jobs(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    pieces: Pieces,
    machines: Machines,
    running: Timetable,
) -> NDArray[np.bool_]:
    """Whether each job, in order of start, runs on the machines: every piece best fit.

    ``running`` is an empty timetable with room for all jobs.
    """
    jobs = start.size
    placed = np.zeros(jobs, np.bool_)
    begin = np.zeros(jobs, np.int64)
    # Machines of the pieces of each job that was placed, one job after the other.
    where = np.empty(1024, np.int64)
    filled = 0
    for job in range(jobs):
        while running.size[0] > 0 and running.times[0] <= start[job]:
            _release(leave_first(running), begin, pieces, machines, where)
        count = pieces.full[job] + (pieces.rest_cores[job] > 0)
        if filled + count > where.size:
            where = np.concatenate((where, np.empty(where.size + count, np.int64)))
        begin[job] = filled
        got = 0
        while got < count:
            cores, memory, gpus = _piece(pieces, job, got)
            machine = best_fit(machines, cores, memory, gpus)
            if machine < 0:
                break
            take(machines, machine, cores, memory, gpus)
            where[filled + got] = machine
            got += 1
        if got == count:
            placed[job] = True
            filled += count
            enter(running, end[job], job)
        else:
            for back in range(got):
                cores, memory, gpus = _piece(pieces, job, back)
                take(machines, where[filled + back], -cores, -memory, -gpus)
    return placed


@kernel
def _piece(pieces: Pieces, job: int, number: int) -> tuple[int, float, float]:
    if number < pieces.full[job]:
        return pieces.full_cores[job], pieces.full_memory[job], pieces.full_gpus[job]
    return pieces.rest_cores[job], pieces.rest_memory[job], pieces.rest_gpus[job]


@kernel
def _release(
    job: int,
    begin: NDArray[np.int64],
    pieces: Pieces,
    machines: Machines,
    where: NDArray[np.int64],
) -> None:
    count = pieces.full[job] + (pieces.rest_cores[job] > 0)
    for number in range(count):
        cores, memory, gpus = _piece(pieces, job, number)
        take(machines, where[begin[job] + number], -cores, -memory, -gpus)
