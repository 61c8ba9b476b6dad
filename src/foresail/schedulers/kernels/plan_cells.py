"""Tasks of jobs that start now by cell, job by job.

A cell is a number of like nodes, and has so much free of each resource (``_planning.cell_map``).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part

_ROUNDING: Final = 1e-7
_MOST_TASKS: Final = 2.0**52
"""On a cell, of tasks that need nothing."""


@bare_kernel
def take_in_turn(
    order: NDArray[np.int64],
    each: NDArray[np.float64],
    tasks: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    wanted: NDArray[np.float64],
    free: NDArray[np.float64],
    cells: NDArray[np.int64],
    shares: NDArray[np.int64],
) -> None:
    """Give each job in turn cells for all its tasks, those first of which others want least.

    Parameters
    ----------
    order
        Numbers of jobs.
    each, tasks, allowed
        Per job: what one of its tasks needs, shape (jobs, resources); how many it has; and the
        cells that it may use, shape (jobs, cells).
    wanted
        Per cell: cpus of the jobs to come that may use it; changed.
    free
        What is free, shape (resources, cells); changed.
    cells
        The numbers of all cells, in any order; changed.
    shares
        Tasks of every job on every cell, shape (jobs, cells), 0 at first; changed. A job whose
        tasks do not all fit has none.
    """
    for job in order:
        _sort(cells, wanted)
        left = float(tasks[job])
        for cell in cells:
            if left <= 0.0:
                break
            if allowed[job, cell]:
                some = min(left, _fitting(free[:, cell], each[job]))
                shares[job, cell] = int(some)
                left -= some
        for cell in range(cells.size):
            if allowed[job, cell]:
                wanted[cell] -= each[job, 0] * tasks[job]
            if left > 0.0:
                shares[job, cell] = 0
            elif shares[job, cell] > 0:
                for resource in range(each.shape[1]):
                    free[resource, cell] -= each[job, resource] * shares[job, cell]


@part
def _sort(cells: NDArray[np.int64], wanted: NDArray[np.float64]) -> None:
    """By what is wanted, then by number; quick if they are nearly sorted, as after each job."""
    for at in range(1, cells.size):
        cell = cells[at]
        while at > 0 and (
            wanted[cells[at - 1]] > wanted[cell]
            or (wanted[cells[at - 1]] == wanted[cell] and cells[at - 1] > cell)
        ):
            cells[at] = cells[at - 1]
            at -= 1
        cells[at] = cell


@part
def _fitting(free: NDArray[np.float64], each: NDArray[np.float64]) -> float:
    """How many whole tasks that need so much of every resource fit in what is free."""
    fitting = _MOST_TASKS
    for resource in range(each.size):
        if each[resource] > 0.0:
            fitting = min(fitting, max(free[resource], 0.0) / each[resource] + _ROUNDING)
    return float(np.floor(fitting))


@bare_kernel
def grant(
    order: NDArray[np.int64],
    each: NDArray[np.float64],
    shares: NDArray[np.int64],
    free: NDArray[np.float64],
    granted: NDArray[np.bool_],
) -> None:
    """Let jobs in turn have what they need on their cells, if all of it is free.

    Parameters
    ----------
    order, each, shares
        As ``take_in_turn`` has them.
    free
        What is free, shape (resources, cells); changed.
    granted
        Per job: whether it has tasks on cells and they fit there; False at first, changed.
    """
    resources, cells = free.shape
    for job in order:
        fits = True
        for cell in range(cells):
            if shares[job, cell] > 0:
                granted[job] = True
            for resource in range(resources):
                if each[job, resource] * shares[job, cell] > free[resource, cell]:
                    fits = False
        granted[job] = granted[job] and fits
        if granted[job]:
            for cell in range(cells):
                for resource in range(resources):
                    free[resource, cell] -= each[job, resource] * shares[job, cell]
