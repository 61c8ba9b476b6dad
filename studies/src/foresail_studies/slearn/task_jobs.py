"""Metrics of jobs of many tasks: SLearn's figures (spec slearn, section 8), by job.

Work is in cluster-kiloseconds: what all slots do in 1000 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats, Integers

SMALL_SECONDS: Final = 1000.0
THIN_BELOW: Final = 3
WORK_SECONDS: Final = 1000.0
_LARGEST_ERROR_PERCENT: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Speedup:
    """Speed-up of jobs over a baseline; above 1: faster."""

    average: float
    """The baseline's mean completion time over ours: not a mean of ratios."""
    median: float
    p90: float
    """Quantiles of the jobs' ratios; of jobs that take no time at all, the ratio is 1."""


def speedup(baseline_seconds: Floats, seconds: Floats) -> Speedup:
    """Return the speed-up of jobs with these completion times (submission to the last end)."""
    if not seconds.size:
        return Speedup(math.nan, math.nan, math.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(baseline_seconds == seconds, 1.0, baseline_seconds / seconds)
        average = float(baseline_seconds.mean() / seconds.mean())
    median, p90 = np.quantile(ratio, [0.5, 0.9])
    return Speedup(average, float(median), float(p90))


def normalised_waiting(
    submit: Floats, start: Floats, seconds: Floats, first_task: Integers
) -> Floats:
    """Mean wait of a job's tasks over their mean runtime; nan for jobs that take no time.

    ``submit`` has the shape (jobs,), ``start`` and ``seconds`` (tasks,); ``first_task`` is where
    each job's tasks begin, and where the last one's end, of shape (jobs + 1,).
    """
    waits = start - np.repeat(submit, np.diff(first_task))
    waited = np.add.reduceat(waits, first_task[:-1])
    worked = np.add.reduceat(seconds, first_task[:-1])
    ratio: Floats = np.divide(waited, worked, out=np.full(submit.size, np.nan), where=worked > 0.0)
    return ratio


def signed_error_percent(estimate: Floats, size: Floats) -> Floats:
    """Return the errors of estimates of the true seconds of all tasks; at most 1000 %."""
    error = np.full(size.size, np.nan)
    np.divide(100.0 * (estimate - size), size, out=error, where=size > 0.0)
    capped: Floats = np.minimum(error, _LARGEST_ERROR_PERCENT)
    return capped


@dataclass(frozen=True, slots=True)
class QueueCorrectness:
    """Shares of the wide jobs with an estimate, in percent: rightly placed, too low, too high."""

    right: float
    too_low_priority: float
    too_high_priority: float


def queue_correctness(queue: Integers, right_queue: Integers, wide: Booleans) -> QueueCorrectness:
    """Return whether wide jobs were in the queue of their true size; all nan without any."""
    if not wide.any():
        return QueueCorrectness(math.nan, math.nan, math.nan)
    off = queue[wide] - right_queue[wide]
    right, low, high = (100.0 * float(part.mean()) for part in (off == 0, off > 0, off < 0))
    return QueueCorrectness(right, low, high)


def size_queues(
    seconds: Floats, queues: int = 10, first_threshold_seconds: float = 1000.0, growth: float = 10.0
) -> Integers:
    """The queue of each job by the seconds of its tasks; the first where these are unknown."""
    thresholds = first_threshold_seconds * growth ** np.arange(queues - 1)
    known = np.where(np.isnan(seconds), 0.0, seconds)
    found: Integers = np.searchsorted(thresholds, known, side="right").astype(np.int64)
    return found


def resistance(
    when: Floats,
    queue: Integers,
    entered: Floats,
    start: Floats,
    seconds: Floats,
    first_task: Integers,
    slots: int,
) -> Floats:
    """Work of higher priority that each job finds, with what is left of the tasks that run.

    That is what is left, then, of jobs in higher queues, and of those in its own that entered it
    earlier; and what is left of any other task that already runs.

    Parameters
    ----------
    when
        When each job is looked at: its submission, or when it was estimated; shape (jobs,).
    queue, entered
        Of each job, from ``entered`` on; shape (jobs,).
    start, seconds
        Of each task; shape (tasks,).
    first_task
        Shape (jobs + 1,).
    slots
        Task slots of the cluster.
    """
    end = start + seconds
    job_end = np.maximum.reduceat(end, first_task[:-1])
    job_of = np.repeat(np.arange(when.size), np.diff(first_task))
    found = np.zeros(when.size)
    for job, now in enumerate(when.tolist()):
        there = (entered <= now) & (job_end > now)
        there[job] = False
        earlier = (queue == queue[job]) & (entered < entered[job])
        ahead = there & ((queue < queue[job]) | earlier)
        of_task = there[job_of]
        running = of_task & (start <= now) & (end > now)
        waiting = ahead[job_of] & (start > now)
        found[job] = (end[running] - now).sum() + seconds[waiting].sum()
    return found / (slots * WORK_SECONDS)


@dataclass(frozen=True, slots=True)
class Bin:
    """Jobs of one kind: their share of jobs and work (percent), and how much faster they are."""

    name: str
    jobs_percent: float
    work_percent: float
    speedup: Speedup


def bins(
    width: Integers, size: Floats, baseline_seconds: Floats, seconds: Floats
) -> tuple[Bin, ...]:
    """Jobs by width (thin: fewer than 3 tasks) and size (small: below 1000 s), as in table 9."""
    thin, small = width < THIN_BELOW, size < SMALL_SECONDS
    parts = {
        "thin, small": thin & small,
        "wide, small": ~thin & small,
        "thin, large": thin & ~small,
        "wide, large": ~thin & ~small,
    }
    return tuple(
        Bin(
            name,
            100.0 * float(part.mean()),
            100.0 * float(size[part].sum() / size.sum()),
            speedup(baseline_seconds[part], seconds[part]),
        )
        for name, part in parts.items()
    )
