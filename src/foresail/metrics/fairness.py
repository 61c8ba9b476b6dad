"""Who was passed over by later jobs, and what stood idle while jobs waited."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.capacity import capacity_steps, cpu_seconds_there
from foresail.metrics.jobs import attempts
from foresail.metrics.kernels.occupancy import sweep_queue
from foresail.metrics.partitions import apart
from foresail.metrics.usage import span
from foresail.traces.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Fairness:
    """How jobs were treated in relation to each other, read off the schedule alone."""

    overtaken_jobs: int
    overtaken_share: float
    """Jobs before which a job submitted later started."""
    passed_over_jobs: int
    passed_over_share: float
    """Those among them that, at the very instant a later job started, would have fitted into the
    processors that were free: they could have had that job's place. (A policy may have had a good
    reason, such as a reservation that the job would have delayed. The definition asks for nothing
    but the schedule; a fair start time in the sense of Sabin and Sadayappan would ask for another
    simulation of the same policy for each job.)"""
    loss_of_capacity: float
    """Cpu seconds free while at least one eligible job waited, as a share of those that there were
    over the makespan
    (Zhang, Franke, Moreira and Sivasubramaniam, IPDPS 2000)."""
    avoidable_idle_share: float
    """The part of it in which some waiting job would have fitted."""


def overtaken(start: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether any later job started before each; start times in order of submission."""
    earliest_later = np.full(start.size, np.inf)
    earliest_later[:-1] = np.minimum.accumulate(start[::-1])[::-1][1:]
    return earliest_later < start


def fairness(schedule: Schedule) -> Fairness:
    """Overtaking and loss of capacity of a schedule; shares are NaN where there are no jobs.

    Jobs of partitions that share nothing overtake none of each other, nor can have what is idle
    there.
    """
    rows = attempts(schedule)
    if not rows.height:
        return Fairness(0, math.nan, 0, math.nan, math.nan, math.nan)
    overtakings = passings = 0
    idle_while_waiting = idle_while_fitting = 0.0
    for job_ids, processors in apart(schedule):
        queued, start, end, cpus = (
            rows.filter(pl.col("job_id").is_in(job_ids.implode()))[name]
            .to_numpy()
            .astype(np.float64)
            for name in ("queued_seconds", "start_seconds", "end_seconds", "cpus")
        )
        orders = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
        since, _, there = capacity_steps(replace(schedule.meta, processors=processors))
        passed_over, waiting, fitting = sweep_queue(queued, start, end, cpus, *orders, since, there)
        overtakings += int(overtaken(start).sum())
        passings += int(passed_over.sum())
        idle_while_waiting += waiting
        idle_while_fitting += fitting
    window = span([schedule])
    offered = cpu_seconds_there(schedule.meta, window.begin_seconds, window.end_seconds)
    return Fairness(
        overtaken_jobs=overtakings,
        overtaken_share=overtakings / rows.height,
        passed_over_jobs=passings,
        passed_over_share=passings / rows.height,
        loss_of_capacity=idle_while_waiting / offered if offered > 0 else math.nan,
        avoidable_idle_share=idle_while_fitting / offered if offered > 0 else math.nan,
    )
