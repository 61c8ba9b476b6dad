"""Variation of a job's mean task over time (similar jobs) and over space (its own tasks).

Paper 002, section 4.2: both as coefficients of variation, deviation over mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part
from foresail.model.arrays import Floats, Integers
from foresail.traces.measured import task_keys
from foresail.traces.workload import Workload

_COUNT: Final = 0
_MEAN: Final = 1
_SQUARES: Final = 2
_SUMS: Final = 3
"""Of a code's values in the window: how many, their mean, and their squares about it."""


def window_variation(
    codes: Integers,
    values: Floats,
    asked_seconds: Floats,
    asked_order: Integers,
    known_seconds: Floats,
    known_order: Integers,
    window_seconds: float,
    least: int,
) -> Floats:
    """Coefficient of variation of earlier similar jobs' values, as each job asks for it.

    Parameters
    ----------
    codes
        Jobs of one code (from 0 on) are similar; -1 is similar to none. Shape (jobs,).
    values
        What varies; finite, shape (jobs,).
    asked_seconds
        When each job asks; shape (jobs,).
    asked_order
        Jobs by the time they ask, the earliest first.
    known_seconds
        When each job's value became known; shape (jobs,).
    known_order
        Jobs by the time their value became known; jobs to leave out are absent.
    window_seconds
        Values count that became known so long before the question, or later, but not after it.
    least
        Similar jobs needed for an answer, at least 1.

    Returns
    -------
    Population deviation over mean, shape (jobs,); nan with too few similar jobs or a mean of 0.
    """
    jobs = np.stack((values, asked_seconds, known_seconds))
    sums = np.zeros((int(codes.max(initial=-1)) + 1, _SUMS))
    answer = np.full(codes.size, np.nan)
    own = np.array(codes)  # writable, which Numba distinguishes from read-only ones
    _fill_variations(own, asked_order, known_order, jobs, window_seconds, least, sums, answer)
    return answer


@bare_kernel
def _fill_variations(
    codes: Integers,
    asked_order: Integers,
    known_order: Integers,
    jobs: Floats,
    window_seconds: float,
    least: int,
    sums: Floats,
    answer: Floats,
) -> None:
    """Fill in the answers; ``sums`` has a row per code, zeros at first."""
    values, asked_seconds, known_seconds = jobs[0], jobs[1], jobs[2]
    entering = 0
    leaving = 0
    for at in range(asked_order.size):
        job = asked_order[at]
        now = asked_seconds[job]
        # Two pointers over the jobs by end: the window slides, no value is looked at more than
        # twice.
        while entering < known_order.size and known_seconds[known_order[entering]] <= now:
            other = known_order[entering]
            entering += 1
            if codes[other] >= 0:
                _count(sums[codes[other]], values[other])
        while leaving < entering and known_seconds[known_order[leaving]] < now - window_seconds:
            other = known_order[leaving]
            leaving += 1
            if codes[other] >= 0:
                _count_no_more(sums[codes[other]], values[other])
        kind = codes[job]
        if kind >= 0 and sums[kind, _COUNT] >= least and sums[kind, _MEAN] > 0.0:
            variance = sums[kind, _SQUARES] / sums[kind, _COUNT]
            answer[job] = math.sqrt(variance) / sums[kind, _MEAN]


@part
def _count(sums: Floats, value: float) -> None:
    sums[_COUNT] += 1.0
    apart = value - sums[_MEAN]
    sums[_MEAN] += apart / sums[_COUNT]
    sums[_SQUARES] += apart * (value - sums[_MEAN])


@part
def _count_no_more(sums: Floats, value: float) -> None:
    sums[_COUNT] -= 1.0
    if sums[_COUNT] == 0.0:
        sums[_MEAN] = 0.0
        sums[_SQUARES] = 0.0
        return
    apart = value - sums[_MEAN]
    sums[_MEAN] -= apart / sums[_COUNT]
    sums[_SQUARES] = max(0.0, sums[_SQUARES] - apart * (value - sums[_MEAN]))


DAY_SECONDS: Final = 86400.0
DAY_AND_HOUR: Final = "day_and_hour"
REQUEST: Final = "request"
SAMPLED_SHARE: Final = 0.03
"""Share of a job's tasks that the study takes as sampled."""


@dataclass(frozen=True, slots=True)
class TaskSpread:
    """A value per task, summed up per job; every array has shape (jobs,), nan where unknown.

    ``tasks`` counts the tasks whose value is known, ``deviation`` is their population deviation.
    """

    tasks: Floats
    mean: Floats
    deviation: Floats

    def over_space(self) -> Floats:
        """Deviation over mean within each job; nan for jobs of one task or with a mean of 0."""
        several = (self.tasks >= 2) & (self.mean > 0)
        return np.divide(
            self.deviation, self.mean, out=np.full_like(self.mean, np.nan), where=several
        )

    def of_sampled_mean(self, *, at_least_one: bool) -> Floats:
        """Variation of the mean of 3 % of a job's tasks, shape (jobs,).

        The study divides by the root of 0.03 x tasks even where that is less than one task, which
        inflates the value of jobs below 34 tasks; ``at_least_one`` samples a whole task there.
        """
        sampled = SAMPLED_SHARE * self.tasks
        if at_least_one:
            sampled = np.maximum(sampled, 1.0)
        return self.over_space() / np.sqrt(sampled)


def runtime_spread(workload: Workload) -> TaskSpread:
    """Real task runtimes per job; without a tasks table a job is its one task."""
    if workload.tasks is None:
        runtime = workload.jobs["runtime_seconds"].fill_null(np.nan).to_numpy().astype(np.float64)
        known = np.isfinite(runtime)
        return TaskSpread(known.astype(np.float64), runtime, np.where(known, 0.0, np.nan))
    return _spread(workload, workload.tasks.lazy(), "runtime_seconds")


def cpu_spread(workload: Workload) -> TaskSpread | None:
    """Each task's average cpus over its measured time, per job; None without a usage table."""
    if workload.usage is None:
        return None
    seconds = pl.col("end_seconds") - pl.col("start_seconds")
    per_task = (
        workload.usage.lazy()
        .filter(pl.col("average_cpus").is_not_null() & (seconds > 0))
        .group_by(task_keys(workload.usage))
        .agg(cpus=(pl.col("average_cpus") * seconds).sum() / seconds.sum())
    )
    return _spread(workload, per_task, "cpus")


def _spread(workload: Workload, tasks: pl.LazyFrame, column: str) -> TaskSpread:
    per_job = (
        tasks.filter(pl.col(column).is_finite())
        .group_by("job_id")
        .agg(
            count=pl.len().cast(pl.Float64),
            mean=pl.col(column).mean(),
            deviation=pl.col(column).std(ddof=0),
        )
    )
    found = (
        workload.jobs.lazy()
        .select("job_id")
        .join(per_job, on="job_id", how="left", maintain_order="left")
        .select(pl.col("count").fill_null(0.0), pl.col("mean", "deviation").fill_null(np.nan))
        .collect()
    )
    return TaskSpread(*(found[name].to_numpy() for name in ("count", "mean", "deviation")))


def feature_codes(workload: Workload, name: str) -> NDArray[np.int64] | None:
    """Jobs of one code have the same value of the feature; -1 where it is unknown. Shape (jobs,).

    A feature is a text column of the jobs table, ``day_and_hour`` (of submission, counted from the
    workload's origin) or ``request`` (cpus of the whole job, and memory and gpus per task). None if
    there is no such column, or nothing in it.
    """
    jobs = workload.jobs
    if name == DAY_AND_HOUR:
        hours = (pl.col("submit_seconds") / 3600.0).floor().cast(pl.Int64)
        return jobs.select(hours % (7 * 24)).to_series().to_numpy()
    if name == REQUEST:
        cpus = (pl.col("tasks") * pl.col("cpus_per_task")).alias("cpus")
        request = jobs.select(cpus, "memory_bytes_per_task", "gpus_per_task")
        return _codes(request.fill_null(-1.0))
    if name not in jobs.columns or jobs[name].null_count() == jobs.height:
        return None
    return _codes(jobs.select(name))


def _codes(values: pl.DataFrame) -> NDArray[np.int64]:
    """Codes from 0 on in order of first appearance; equal rows have one, null has -1."""
    distinct = values.unique(maintain_order=True).with_row_index("__code__")
    joined = values.join(distinct, on=values.columns, how="left", maintain_order="left")
    return joined["__code__"].cast(pl.Int64).fill_null(-1).to_numpy()


def known_at(workload: Workload) -> Floats:
    """Return when each job ended, shape (jobs,): its runtime is known from then on."""
    wait = pl.col("recorded_wait_seconds").fill_null(0.0)
    end = pl.col("submit_seconds") + wait + pl.col("runtime_seconds")
    return workload.jobs.select(end.fill_null(np.nan)).to_series().to_numpy()


def over_time(
    workload: Workload,
    means: Floats,
    features: dict[str, NDArray[np.int64]],
    window_days: float,
    similar_jobs: int = 2,
) -> Floats:
    """Least variation, over the features, of the mean tasks of similar jobs; shape (jobs,).

    Similar jobs have the same value of the feature and ended within the window before the job's
    submission; a feature with fewer than ``similar_jobs`` does not count. nan where none counts.
    Jobs whose mean task (``means``, shape (jobs,)) is nan are no history; ``features`` are
    codes as ``feature_codes`` gives them.
    """
    submit = workload.jobs["submit_seconds"].to_numpy()
    asked = np.argsort(submit, kind="stable")
    known = known_at(workload)
    order = np.argsort(known, kind="stable")
    order = order[np.isfinite(known[order]) & np.isfinite(means[order])]
    least = np.full(len(workload), np.nan)
    for codes in features.values():
        found = window_variation(
            np.ascontiguousarray(codes),
            np.ascontiguousarray(means),
            submit,
            asked,
            known,
            order,
            window_days * DAY_SECONDS,
            similar_jobs,
        )
        least = np.fmin(least, found)
    return least
