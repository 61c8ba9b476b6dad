"""Use of the machine: capacity, makespan, utilisation, queue and binned Gantt over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.jobs import attempts, requeued
from foresail.metrics.kernels.occupancy import binned_area, binned_integral, pack_rows
from foresail.model.distribution import Floats
from foresail.traces.schedule import Schedule, ScheduleMeta


def capacity_steps(meta: ScheduleMeta) -> tuple[Floats, Floats, Floats]:
    """From when and until when (seconds) there were how many cpus, for all time, in order."""
    since, cpus = np.array([*meta.capacity] or [(0.0, meta.processors)], dtype=np.float64).T
    changes = since[1:]
    return np.append(-np.inf, changes), np.append(changes, np.inf), cpus


def cpu_seconds_there(meta: ScheduleMeta, begin_seconds: float, end_seconds: float) -> float:
    """Cpu seconds that there were from one time to another."""
    return cpu_seconds(*capacity_steps(meta), begin_seconds, end_seconds)


def cpu_seconds(
    since: Floats, until: Floats, cpus: Floats, begin_seconds: float, end_seconds: float
) -> float:
    """Cpu seconds of some stretches of time, each with so many cpus, that lie in a window."""
    window = (begin_seconds, end_seconds)
    return float(np.einsum("i,i", cpus, np.clip(until, *window) - np.clip(since, *window)))


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
        started = pl.col("start_seconds").is_not_null()
        rows = schedule.jobs.select(pl.col("submit_seconds", "end_seconds").filter(started))
        if rows.height:
            begin = min(begin, float(rows["submit_seconds"].to_numpy().min()))
            end = max(end, float(rows["end_seconds"].to_numpy().max()))
    return Span(begin, end) if end >= begin else Span(0.0, 0.0)


def makespan_seconds(schedule: Schedule) -> float:
    """Seconds from the first submission to the last end."""
    return span([schedule]).seconds


def steady_window(schedule: Schedule) -> Span:
    """From the first to the last submission of jobs that started, while load comes.

    After it the last jobs drain, and before it is empty. Where it is shorter than the median
    runtime, nothing can have become steady in it: then it is all of the makespan.
    """
    whole = span([schedule])
    rows = attempts(schedule)
    last = rows["submit_seconds"].to_numpy().max(initial=whole.begin_seconds)
    runtimes = (rows["end_seconds"] - rows["start_seconds"]).to_numpy()
    steady = Span(whole.begin_seconds, float(last))
    is_steady = steady.seconds > 0 and (
        steady.seconds >= runtimes.max() or steady.seconds >= np.median(runtimes)
    )
    return steady if is_steady else whole


def held_share(machine: ScheduleMeta, rows: pl.DataFrame, window: Span) -> float:
    """Cpu seconds that some attempts held in a window, as a share of what there were."""
    edges = window.begin_seconds, window.end_seconds
    start, end, cpus = (rows[name].to_numpy() for name in ("start_seconds", "end_seconds", "cpus"))
    there = cpu_seconds_there(machine, *edges)
    return cpu_seconds(start, end, cpus, *edges) / there if there > 0 else math.nan


def utilization(schedule: Schedule, window: Span | None = None) -> float:
    """Cpu seconds used, as a share of what there were, over a window (None: the makespan).

    Cpus of attempts that were requeued, their work lost, are not used.
    """
    rows = attempts(schedule).filter(~requeued())
    return held_share(schedule.meta, rows, span([schedule]) if window is None else window)


def over_time(schedule: Schedule, window: Span, bins: int = 400) -> pl.DataFrame:
    """Exact averages of use and queue in equal bins of time.

    Returns
    -------
    DataFrame
        Columns ``from_seconds``, ``to_seconds``, ``utilization`` (held, as a share of the cpus
        that there were; 0 where there were none), ``queued_jobs`` and ``queued_cpus`` (average
        number waiting, and processors they ask for).
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
    there = average(*capacity_steps(schedule.meta))
    held = average(start, end, cpus)
    return pl.DataFrame(
        {
            "from_seconds": edges[:-1],
            "to_seconds": edges[1:],
            "utilization": np.divide(held, there, out=np.zeros(bins), where=there > 0.0),
            "queued_jobs": average(queued, start, np.ones_like(cpus)),
            "queued_cpus": average(queued, start, cpus),
        }
    )


@dataclass(frozen=True, slots=True)
class LaidJobs:
    """Jobs laid out on a machine: rectangles of time x processor rows, by their starts.

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
    start = rows["start_seconds"].to_numpy()
    end = rows["end_seconds"].to_numpy()
    width = np.maximum(np.rint(rows["cpus"].to_numpy()), 1).astype(np.int64)
    processors = max(math.ceil(schedule.meta.processors), 1)
    job, low, high = pack_rows(start, end, width, processors)
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
