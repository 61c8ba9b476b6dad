"""Plans carried out in drawn futures: what starts when, if runtimes turn out so, and its worth.

A plan is a list of jobs, each with the set of places that it is to run in. In a future, a job
starts as soon as it fits beside those that run and beside what those before it in the list, which
still wait, are to have.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.pieces import PLACE, pieces_survival
from foresail.kernels.compile import bare_kernel, part

_ROUNDING: Final = 1e-7
_HALVINGS: Final = 60
_GRACE_SECONDS: Final = 1e-6


@part
def _survival(
    first_component: NDArray[np.int64],
    first_row: NDArray[np.int64],
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    rows: NDArray[np.float64],
    i: int,
    value: float,
) -> float:
    """Probability of distribution ``i`` to exceed a value."""
    total = 0.0
    for c in range(first_component[i], first_component[i + 1]):
        part = pieces_survival(rows, first_row[c], first_row[c + 1], value - shifts[c])
        total += weights[c] * part
    return total


@bare_kernel
def fill_quantiles(
    first_component: NDArray[np.int64],
    first_row: NDArray[np.int64],
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    rows: NDArray[np.float64],
    elapsed: NDArray[np.float64],
    levels: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Fill ``values[i, j]`` with the quantile of T_i at ``levels[i, j]``, given T_i > elapsed[i].

    The first five are the arrays of ``PackedDistributions`` without smooth components. Where
    nothing is left beyond the elapsed time the value is that time.
    """
    for i in range(elapsed.size):
        left = 1.0
        if elapsed[i] > 0.0:
            left = _survival(first_component, first_row, weights, shifts, rows, i, elapsed[i])
        most = elapsed[i]
        for c in range(first_component[i], first_component[i + 1]):
            most = max(most, rows[first_row[c + 1] - 1, PLACE] + shifts[c])
        for j in range(levels.shape[1]):
            target = (1.0 - levels[i, j]) * left
            low, high = elapsed[i], most
            for _ in range(_HALVINGS):
                if left <= 0.0 or low >= high:
                    break
                middle = 0.5 * (low + high)
                if _survival(first_component, first_row, weights, shifts, rows, i, middle) > target:
                    low = middle
                else:
                    high = middle
            values[i, j] = high if left > 0.0 else elapsed[i]


@part
def _start_who_fits(
    order: NDArray[np.int64],
    needs: NDArray[np.float64],
    clock: float,
    free: NDArray[np.float64],
    wanted: NDArray[np.float64],
    runtimes: NDArray[np.float64],
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
) -> None:
    """Start what fits now beside what those before them in the list are to have."""
    rows = free.size
    for row in range(rows):
        wanted[row] = 0.0
    for at in range(order.size):
        job = order[at]
        if starts[job] < np.inf:
            continue
        fits = True
        for row in range(rows):
            need = needs[job, row]
            if need > 0.0 and free[row] - wanted[row] < need - _ROUNDING:
                fits = False
        for row in range(rows):
            if fits:
                free[row] -= needs[job, row]
            else:
                wanted[row] += needs[job, row]
        if fits:
            starts[job] = clock
            ends[job] = clock + runtimes[job]


def carry_out(
    order: NDArray[np.int64],
    needs: NDArray[np.float64],
    runtimes: NDArray[np.float64],
    free_now: NDArray[np.float64],
    held: NDArray[np.float64],
    running_ends: NDArray[np.float64],
    starts: NDArray[np.float64],
) -> None:
    """Fill ``starts`` with when every job of a list starts in every future.

    Parameters
    ----------
    order
        Numbers of the jobs, as the plan lists them.
    needs
        What each job takes of every row; shape (jobs, rows).
    runtimes
        Seconds that each job runs where it is planned; shape (futures, jobs).
    free_now
        What is free of every row now.
    held, running_ends
        What running jobs hold of every row, and when they end, seconds from now; shapes
        (running, rows) and (futures, running).
    starts
        Seconds from now, infinity for never; shape (futures, jobs).
    """
    rows, running = held.shape[1], held.shape[0]
    work = np.empty((2, rows)), np.empty((2, max(needs.shape[0], running)))
    runtimes = np.ascontiguousarray(runtimes)
    _carry_out(order, needs, runtimes, free_now, held, running_ends, starts, *work)


@bare_kernel
def _carry_out(
    order: NDArray[np.int64],
    needs: NDArray[np.float64],
    runtimes: NDArray[np.float64],
    free_now: NDArray[np.float64],
    held: NDArray[np.float64],
    running_ends: NDArray[np.float64],
    starts: NDArray[np.float64],
    of_rows: NDArray[np.float64],
    of_jobs: NDArray[np.float64],
) -> None:
    """As ``carry_out``; the last two are room to work in, of two rows each."""
    free, wanted, ends, gone = of_rows[0], of_rows[1], of_jobs[0], of_jobs[1]
    running = held.shape[0]
    for future in range(runtimes.shape[0]):
        for row in range(free.size):
            free[row] = free_now[row]
        for at in range(running):
            gone[at] = running_ends[future, at]
        for job in range(needs.shape[0]):
            ends[job] = np.inf
            starts[future, job] = np.inf
        clock = 0.0
        while clock < np.inf:
            _start_who_fits(
                order, needs, clock, free, wanted, runtimes[future], starts[future], ends
            )
            clock = np.inf
            for at in range(running):
                clock = min(clock, gone[at])
            for at in range(order.size):
                clock = min(clock, ends[order[at]])
            if clock < np.inf:
                _end(clock, gone, held, free)
                _end_jobs(clock, order, needs, ends, free)


@part
def _end(
    clock: float, gone: NDArray[np.float64], held: NDArray[np.float64], free: NDArray[np.float64]
) -> None:
    """Give back what running jobs hold that end by now."""
    for at in range(held.shape[0]):
        if gone[at] <= clock:
            gone[at] = np.inf
            for row in range(free.size):
                free[row] += held[at, row]


@part
def _end_jobs(
    clock: float,
    order: NDArray[np.int64],
    needs: NDArray[np.float64],
    ends: NDArray[np.float64],
    free: NDArray[np.float64],
) -> None:
    """Give back what jobs of the list hold that end by now."""
    for at in range(order.size):
        job = order[at]
        if ends[job] <= clock:
            ends[job] = np.inf
            for row in range(free.size):
                free[row] += needs[job, row]


@bare_kernel
def add_worth(
    claim_job: NDArray[np.int64],
    falls: NDArray[np.float64],
    rest: NDArray[np.float64],
    least: NDArray[np.float64],
    ends: NDArray[np.float64],
    worth: NDArray[np.float64],
) -> None:
    """Add to ``worth[future, job]`` what a job's end is worth to each claim on it.

    Parameters
    ----------
    claim_job
        The job of every claim.
    falls
        Per claim: the full worth, when its fall begins, and when it ends; seconds from now.
    rest
        Seconds from the job's end until it counts; shape (futures, claims).
    least
        Per claim: what it is worth at least if the job ends at all.
    ends
        When every job ends, seconds from now, infinity for never; shape (futures, jobs).
    worth
        Changed; shape (futures, jobs).
    """
    for future in range(ends.shape[0]):
        for claim in range(claim_job.size):
            job = claim_job[claim]
            done = ends[future, job] + rest[future, claim]
            if done == np.inf:
                continue
            full, begin, end = falls[claim, 0], falls[claim, 1], falls[claim, 2]
            if done <= begin + _GRACE_SECONDS:
                value = full
            elif done >= end:
                value = 0.0
            else:
                value = full * (end - done) / (end - begin)
            worth[future, job] += max(value, least[claim])
