"""A simulated machine beside what its log recorded, job by job: what the one is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.metrics.jobs import bounded_slowdown, per_job
from foresail.model.outcome import EndedBecause
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload

_LEAST_KNOWN: Final = 0.5

LEAST_RANK_CORRELATION: Final = 0.5
"""Below it a simulation explains less than a quarter of the order in which jobs waited."""
MOST_TIMES: Final = 2.0
"""Waits that are further apart than policies ever are from each other tell of another machine."""
FEWEST_JOBS: Final = 10
"""A rank correlation of fewer jobs is chance."""
_NO_WAIT_SECONDS: Final = 60.0
"""Added to waits before they are divided: below it nobody calls it a wait."""


@dataclass(frozen=True, slots=True)
class Side:
    """The jobs that are compared, as one side has them."""

    mean_wait_seconds: float
    median_wait_seconds: float
    max_wait_seconds: float
    average_bounded_slowdown: float


@dataclass(frozen=True, slots=True)
class Resemblance:
    """What a log recorded, and a simulation of the same jobs."""

    policy: str
    jobs: int
    """Jobs whose wait is recorded, and which were simulated to their end."""
    of_jobs: int
    """Jobs that were simulated."""
    recorded: Side
    simulated: Side
    rank_correlation: float
    """Spearman's, of waits; NaN where one side knows only one wait."""
    mean_ratio: float
    median_ratio: float
    """Simulated over recorded, a minute added to both."""

    @property
    def is_judged(self) -> bool:
        """Whether there are enough jobs to judge by, and any waited, as recorded or simulated."""
        longest = max(self.recorded.max_wait_seconds, self.simulated.max_wait_seconds)
        return self.jobs >= FEWEST_JOBS and longest >= _NO_WAIT_SECONDS

    @property
    def is_usable(self) -> bool:
        """Whether the model of the machine passes the bar."""
        ratios = (self.mean_ratio, self.median_ratio)
        return self.rank_correlation >= LEAST_RANK_CORRELATION and all(
            1.0 / MOST_TIMES <= ratio <= MOST_TIMES for ratio in ratios
        )


def recorded_waits(workload: Workload) -> pl.DataFrame | None:
    """Jobs whose wait the log recorded: ``job_id``, ``wait_seconds``, ``runtime_seconds``.

    None where these are fewer than half of the jobs, or none of them waited.
    """
    known = workload.jobs.select(
        "job_id", "runtime_seconds", wait_seconds="recorded_wait_seconds"
    ).drop_nulls()
    if known.height < _LEAST_KNOWN * len(workload) or not (known["wait_seconds"] > 0.0).any():
        return None
    return known


def nearest(recorded: pl.DataFrame, simulated: Sequence[Schedule]) -> Resemblance | None:
    """The one of some schedules that comes nearest to what was recorded; None: no job in common.

    Which policy the machine had is not known, so its model is judged by the best of them.
    """
    found = [each for each in (_resemblance(recorded, one) for one in simulated) if each]
    return max(found, key=_nearness, default=None)


def _nearness(each: Resemblance) -> tuple[bool, float]:
    rank = each.rank_correlation
    return each.is_usable, -math.inf if math.isnan(rank) else rank


def _resemblance(recorded: pl.DataFrame, simulated: Schedule) -> Resemblance | None:
    ended = per_job(simulated).filter(pl.col("ended_because") != EndedBecause.LIMIT.value)
    jobs = recorded.join(ended, on="job_id", suffix="_simulated", maintain_order="left")
    if not jobs.height:
        return None
    real, made = _side(jobs, ""), _side(jobs, "_simulated")
    ranks = [jobs[name].rank().to_numpy() for name in ("wait_seconds", "wait_seconds_simulated")]
    varies = all(each.min() < each.max() for each in ranks)
    return Resemblance(
        policy=simulated.meta.policy,
        jobs=jobs.height,
        of_jobs=simulated.jobs["job_id"].n_unique(),
        recorded=real,
        simulated=made,
        rank_correlation=float(np.corrcoef(np.stack(ranks))[0, 1]) if varies else math.nan,
        mean_ratio=_ratio(made.mean_wait_seconds, real.mean_wait_seconds),
        median_ratio=_ratio(made.median_wait_seconds, real.median_wait_seconds),
    )


def _side(jobs: pl.DataFrame, suffix: str) -> Side:
    wait, runtime = pl.col(f"wait_seconds{suffix}"), pl.col(f"runtime_seconds{suffix}")
    told = jobs.select(
        mean_wait_seconds=wait.mean(),
        median_wait_seconds=wait.median(),
        max_wait_seconds=wait.max(),
        average_bounded_slowdown=bounded_slowdown(wait, runtime).mean(),
    )
    return Side(**told.row(0, named=True))


def _ratio(simulated_seconds: float, recorded_seconds: float) -> float:
    return (simulated_seconds + _NO_WAIT_SECONDS) / (recorded_seconds + _NO_WAIT_SECONDS)
