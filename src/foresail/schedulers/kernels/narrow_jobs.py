"""Which jobs are too narrow to be worth sampling, by what jobs so narrow have taken of the slots.

A job that is not sampled spares a wave of its own, its pilots', and starts all its tasks from the
first queue. That costs others nothing as long as there is room for whatever goes unsampled. On full
slots, jobs below a width that do a share s of the work want s * slots of them on average. If such
jobs come independently, each with all its tasks at once, what they want varies with a variance of
s * slots * b, b being the mean width of their job over their work (the batch arrivals M^X/G/inf, of
equal times in a batch). They leave room if a few standard deviations more are there, too.

Spec slearn, section 3.6 names a limit that adapts; the rule is ours.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel

Floats = NDArray[np.float64]

CLASSES: Final = 48
WORK: Final = 0
WIDTHS: Final = 1
RECORD_COLUMNS: Final = 2
"""A row of the record, for jobs of 2^(k/2) tasks and more (2^((k+1)/2) are the next row's): the
seconds of their tasks, and the same times the tasks of their job."""

_PER_DOUBLING: Final = 2.0


def nothing_done() -> Floats:
    """A record before any task has ended."""
    return np.zeros((CLASSES, RECORD_COLUMNS))


@bare_kernel
def width_class(tasks: float) -> int:
    """The row of jobs of so many tasks (one at least)."""
    return min(int(_PER_DOUBLING * math.log2(tasks)), CLASSES - 1)


@bare_kernel
def learn_work(record: Floats, tasks: float, seconds: float) -> None:
    """Add a task that has run so long, of a job of so many."""
    row = record[width_class(tasks)]
    row[WORK] += seconds
    row[WIDTHS] += seconds * tasks


@bare_kernel
def leaves_room(record: Floats, tasks: float, slots: float, spreads: float) -> bool:
    """Whether so many slots have room for all jobs of as many tasks or fewer, as they come.

    Parameters
    ----------
    record
        What tasks have taken so far; shape (CLASSES, RECORD_COLUMNS).
    tasks
        Of a job; one at least.
    slots
        How many tasks can run at once.
    spreads
        How many standard deviations more than the mean there must be room for.
    """
    last = width_class(tasks)
    narrow, widths, work = 0.0, 0.0, 0.0
    for k in range(CLASSES):
        work += record[k, WORK]
        if k <= last:
            narrow += record[k, WORK]
            widths += record[k, WIDTHS]
    if narrow == 0.0:
        return False
    share = narrow / work
    deviation = math.sqrt(share * slots * (widths / narrow))
    return bool(share * slots + spreads * deviation <= slots)
