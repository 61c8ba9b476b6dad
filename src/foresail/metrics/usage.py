"""How the machine was used: makespan, utilisation, queue and binned Gantt over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.jobs import attempts
from foresail.metrics.kernels.occupancy import binned_area, binned_integral, pack_rows
from foresail.traces.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in seconds from the workload's origin."""

    begin_seconds: float
    end_seconds: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_seconds - self.begin_seconds


def span(schedules: Iterable[Schedule]) -> Span:
    """From the first submission to the last end in any of the schedules; empty ones have none."""
    begin, end = math.inf, -math.inf
    for schedule in schedules:
        rows = attempts(schedule)
        if rows.height:
            begin = min(begin, float(rows["submit_seconds"].to_numpy().min()))
            end = max(end, float(rows["end_seconds"].to_numpy().max()))
    return Span(begin, end) if end >= begin else Span(0.0, 0.0)


def makespan_seconds(schedule: Schedule) -> float:
    """Seconds from the first submission to the last end."""
    return span([schedule]).seconds


def utilization(schedule: Schedule) -> float:
    """Processor seconds used, as a share of processors x makespan (spec section 9)."""
    offered = schedule.meta.processors * makespan_seconds(schedule)
    rows = attempts(schedule)
    used = (rows["cpus"] * (rows["end_seconds"] - rows["start_seconds"])).sum()
    return float(used) / offered if offered > 0 else math.nan


def over_time(schedule: Schedule, window: Span, bins: int = 400) -> pl.DataFrame:
    """Exact averages of use and queue in equal bins of time.

    Returns
    -------
    DataFrame
        Columns ``from_seconds``, ``to_seconds``, ``utilization`` (share of the processors),
        ``queued_jobs`` and ``queued_cpus`` (average number waiting, and processors they ask for).
    """
    rows = attempts(schedule)
    queued, start, end, cpus = (
        rows[name].to_numpy().astype(np.float64)
        for name in ("queued_seconds", "start_seconds", "end_seconds", "cpus")
    )
    width = window.seconds / bins

    def average(
        begin: NDArray[np.float64], until: NDArray[np.float64], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if width <= 0:
            return np.zeros(bins)
        return binned_integral(begin, until, weight, window.begin_seconds, width, bins) / width

    edges = window.begin_seconds + width * np.arange(bins + 1)
    return pl.DataFrame(
        {
            "from_seconds": edges[:-1],
            "to_seconds": edges[1:],
            "utilization": average(start, end, cpus) / schedule.meta.processors,
            "queued_jobs": average(queued, start, np.ones_like(cpus)),
            "queued_cpus": average(queued, start, cpus),
        }
    )


@dataclass(frozen=True, slots=True)
class LaidJobs:
    """Where jobs lay on a machine: rectangles of time x processor rows, by the time they began.

    Four arrays of equal length (a job on scattered rows has several entries); rectangle i covers
    rows ``low[i]`` to ``high[i]`` (exclusive) from ``begin_seconds[i]`` to ``end_seconds[i]``.
    """

    begin_seconds: NDArray[np.float64]
    end_seconds: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    processors: int


def lay_out(schedule: Schedule) -> LaidJobs:
    """Lay jobs on processors.

    A log without node names does not say which processors a job had: jobs are laid, in the order
    they started, on the lowest free processors, together where they fit together.
    """
    rows = attempts(schedule)
    start = rows["start_seconds"].to_numpy().astype(np.float64)
    end = rows["end_seconds"].to_numpy().astype(np.float64)
    width = np.maximum(np.rint(rows["cpus"].to_numpy()), 1).astype(np.int64)
    processors = max(math.ceil(schedule.meta.processors), 1)
    job, low, high = pack_rows(
        start,
        end,
        width,
        np.argsort(start, kind="stable"),
        np.argsort(end, kind="stable"),
        processors,
    )
    return LaidJobs(start[job], end[job], low, high, processors)


def gantt(
    laid: LaidJobs, window: Span, time_bins: int = 400, row_bins: int = 120
) -> NDArray[np.float64]:
    """Share of use of each cell of processors x time; shape (rows, time bins).

    There are no more rows than processors.
    """
    row_bins = min(row_bins, laid.processors)
    if window.seconds <= 0:
        return np.zeros((row_bins, time_bins))
    return binned_area(
        laid.begin_seconds,
        laid.end_seconds,
        laid.low,
        laid.high,
        window.begin_seconds,
        window.seconds / time_bins,
        time_bins,
        laid.processors / row_bins,
        row_bins,
    )
