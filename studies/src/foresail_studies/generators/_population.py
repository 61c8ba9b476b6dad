"""Source jobs that classes are fitted to: those of a log, or a population like Google's of 2011.

No log with runtimes, widths and features of Google's jobs is shipped, so the population is made
from published characteristics (3Sigma reference, sections 10 and 13; the runtimes of 3Sigma's own
feature sample): runtimes have a median of 234 s and 80 % end within 12 minutes; 77 % of the jobs
have one task, the others a log-normal number; most of the spread of runtimes is between logical job
names, and most names are steady while some vary by more than their mean, so that the median of a
name's earlier jobs is within a factor of two for some 80 % of the jobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.model.arrays import Floats, Integers
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.workload import Workload

JOBS: Final = 20_000
MEDIAN_SECONDS: Final = 234.5
P80_SECONDS: Final = 720.0
ONE_TASK_SHARE: Final = 0.77
MACHINE_HOURS: Final = 1.19
"""Mean work of a job in the E2E workload: 1.4 x 256 nodes x 5 h over 1500 jobs."""

_USERS: Final = 200
_NAMES: Final = 1_500
_ACTIVITY_EXPONENT: Final = 0.7
_SCATTERS: Final = np.array([0.15, 0.5, 1.3])
_SCATTER_SHARES: Final = np.array([0.6, 0.25, 0.15])
_BETWEEN_NAMES: Final = 1.2
_TASKS_MEDIAN: Final = 12.0
_TASKS_LOG_DEVIATION: Final = 1.3
_TASKS_SCATTER: Final = 0.3
_PRIORITIES: Final = np.array(["0", "1", "2", "4", "9"])
_PRIORITY_SHARES: Final = np.array([0.35, 0.1, 0.15, 0.35, 0.05])
_MEMORY: Final = ("user", "group", "queue", "executable")


@dataclass(frozen=True, slots=True)
class SourceJobs:
    """Jobs to learn from."""

    runtime_seconds: Floats
    width: Integers
    """Above 0; shape (jobs,). Width is in nodes (tasks)."""
    features: pl.DataFrame
    """A row a job: what predictors may see."""

    def no_wider_than(self, nodes: int) -> SourceJobs:
        """Without the jobs that need more nodes."""
        keep = self.width <= nodes
        return SourceJobs(
            self.runtime_seconds[keep], self.width[keep], self.features_of(np.flatnonzero(keep))
        )

    def features_of(self, rows: Integers) -> pl.DataFrame:
        """Features of the jobs in these rows; without columns where nothing is known."""
        return self.features[rows] if self.features.width else self.features


def whole_nodes(workload: Workload) -> pl.Series:
    """Nodes that each job of a log holds, its cpus rounded up; 0 where that is not known."""
    return pl.Series(np.ceil(np.nan_to_num(workload.cpus)).astype(np.int64))


def jobs_of_log(workload: Workload) -> SourceJobs:
    """The jobs of a log whose runtime and width are known and positive.

    Raises ``InputError`` if there are none.
    """
    jobs = workload.jobs.with_columns(width=whole_nodes(workload))
    jobs = jobs.filter(
        pl.col("runtime_seconds").is_finite(), pl.col("runtime_seconds") > 0, pl.col("width") > 0
    )
    if not jobs.height:
        raise InputError(
            "no job has a runtime and a width",
            source=workload.meta.source,
            expected="a log with runtimes",
        )
    names = [name for name in _MEMORY if jobs[name].null_count() < jobs.height]
    names += [name for name in workload.feature_names if name not in schema.JOBS]
    return SourceJobs(
        jobs["runtime_seconds"].to_numpy(), jobs["width"].to_numpy(), jobs.select(names)
    )


def google_like(random: np.random.Generator) -> SourceJobs:
    """The built-in population."""
    user_of_name = _zipf(_USERS, _NAMES, random)
    priority = random.choice(_PRIORITIES, _NAMES, p=_PRIORITY_SHARES)
    scatter = random.choice(_SCATTERS, _NAMES, p=_SCATTER_SHARES)
    centre = random.normal(0.0, _BETWEEN_NAMES, _NAMES)
    tasks = np.log(_TASKS_MEDIAN) + _TASKS_LOG_DEVIATION * random.standard_normal(_NAMES)
    several = random.random(_NAMES) >= ONE_TASK_SHARE
    name = _zipf(_NAMES, JOBS, random)
    logs = centre[name] + scatter[name] * random.standard_normal(JOBS)
    middle, upper = np.quantile(logs, [0.5, 0.8])
    stretch = math.log(P80_SECONDS / MEDIAN_SECONDS) / (upper - middle)
    runtime = MEDIAN_SECONDS * np.exp((logs - middle) * stretch)
    drawn = np.exp(tasks[name] + _TASKS_SCATTER * random.standard_normal(JOBS))
    width = np.where(several[name], np.maximum(np.rint(drawn), 2.0), 1.0).astype(np.int64)
    user = np.char.mod("user%d", user_of_name + 1)
    features = pl.DataFrame(
        {
            "user": user[name],
            "executable": np.char.mod("name%d", np.arange(_NAMES) + 1)[name],
            "priority": priority[name],
        }
    )
    return SourceJobs(runtime, width, features)


def with_mean_tasks(jobs: SourceJobs, tasks: float) -> SourceJobs:
    """The same jobs, those of several tasks made wider or narrower so that the mean is this."""
    several = jobs.width > 1

    def scaled(factor: float) -> Integers:
        widths = np.maximum(np.rint(jobs.width * factor), 2.0).astype(np.int64)
        return np.where(several, widths, 1)

    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if scaled(middle).mean() < tasks else (low, middle)
    return SourceJobs(jobs.runtime_seconds, scaled(high), jobs.features)


def _zipf(kinds: int, count: int, random: np.random.Generator) -> Integers:
    """Numbers from 0, the low ones more often."""
    weights = np.arange(1, kinds + 1) ** -_ACTIVITY_EXPONENT
    drawn: Integers = random.choice(kinds, count, p=weights / weights.sum())
    return drawn
