"""Generator ``resample``: a new log with the joint structure of a given one.

Each user's own weeks are drawn in runs (a stationary bootstrap, D. N. Politis, J. P. Romano,
Journal of the American Statistical Association 89, 1994) and the user's time on the machine begins
in another week, so that users meet in new combinations. The idea of moving users by whole weeks is
that of N. Zakay, D. G. Feitelson, "Workload resampling for performance evaluation of parallel job
schedulers", Concurrency and Computation 26(12), 2014.

For logs of some months with the default parameters, tests hold the result to these tolerances:
distributions of widths and log runtimes within 0.05 (largest difference), correlation of a user's
successive log runtimes within 0.1, share of submissions in each hour of the day within 0.015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.arrays import Integers
from foresail.model.errors import InputError, require_at_least, require_positive
from foresail.model.registry import register
from foresail.traces.folder import load_workload
from foresail.traces.generating import generator
from foresail.traces.workload import Workload, WorkloadMeta

RUN_WEEKS: Final = 4.0
"""Mean number of successive weeks of a user that stay in their order."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A log cut in blocks: the jobs of one user in one week."""

    jobs: Integers
    """Row numbers, sorted by user, then week, then submission; shape (jobs,)."""
    begins: Integers
    """Place in ``jobs`` where the block of (user, week) begins, and that before it of the same user
    ends; shape (users, weeks + 1)."""
    weeks: int
    """Weeks of the log."""


def cut(user: Integers, week: Integers) -> Blocks:
    """Cut jobs, in order of submission, into blocks; both arrays count from zero, shape (jobs,)."""
    users, weeks = int(user.max()) + 1, int(week.max()) + 1
    jobs = np.lexsort((week, user))
    counts = np.bincount(user * weeks + week, minlength=users * weeks).reshape(users, weeks)
    ends = np.cumsum(counts.ravel()).reshape(users, weeks)
    return Blocks(jobs, np.column_stack([ends[:, 0] - counts[:, 0], ends]), weeks)


@dataclass(frozen=True, slots=True)
class ResampledJobs:
    """Jobs drawn, in no particular order; every array has shape (drawn jobs,)."""

    job: Integers
    """Row number in the log."""
    week: Integers
    """Week they are put in."""
    block: Integers
    """Number of the block drawn: jobs of equal number stay together."""
    copy: Integers
    """Number of the copy of the user that they belong to, from zero."""


def draw(
    blocks: Blocks,
    weeks: int,
    copies: float,
    random: np.random.Generator,
) -> ResampledJobs:
    """Draw jobs of a log's blocks for so many weeks.

    Each user takes part ``copies`` times on average.
    """
    users = blocks.begins.shape[0]
    chosen: list[tuple[int, int, Integers, Integers]] = []
    for cycle_start in range(0, weeks, blocks.weeks):
        times = np.floor(copies + random.random(users)).astype(np.int64)
        offsets = random.integers(0, blocks.weeks, (users, int(times.max(initial=0))))
        for user in range(users):
            active = np.flatnonzero(np.diff(blocks.begins[user]))
            first, span = int(active[0]), int(active[-1] - active[0]) + 1
            for copy in range(times[user]):
                source = first + _runs(span, random)
                target = (offsets[user, copy] + np.arange(span)) % blocks.weeks + cycle_start
                inside = target < weeks
                chosen.append((user, copy, source[inside], target[inside]))
    nothing = np.empty(0, dtype=np.int64)
    user_of = np.concatenate([nothing, *(np.full(s.size, user) for user, _, s, _ in chosen)])
    copy_of = np.concatenate([nothing, *(np.full(s.size, copy) for _, copy, s, _ in chosen)])
    source_week = np.concatenate([nothing, *(s for _, _, s, _ in chosen)])
    target_week = np.concatenate([nothing, *(t for _, _, _, t in chosen)])
    begin = blocks.begins[user_of, source_week]
    length = blocks.begins[user_of, source_week + 1] - begin
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    block = np.repeat(np.arange(length.size), length)
    return ResampledJobs(
        job=blocks.jobs[begin[block] + within],
        week=target_week[block],
        block=block,
        copy=copy_of[block],
    )


def _runs(span: int, random: np.random.Generator) -> Integers:
    """Numbers 0 to span - 1 drawn in runs of geometric length that wrap around; shape (span,)."""
    new = random.random(span) < 1.0 / RUN_WEEKS
    new[0] = True
    starts = random.integers(0, span, span)
    at = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    drawn: Integers = (starts[at][run] + np.arange(span) - at[run]) % span
    return drawn


WEEK_SECONDS: Final = 7 * 86400.0
_SPARE: Final = 1.25
"""Weeks drawn over those that the wished number of jobs fills on average."""


@dataclass(frozen=True, slots=True)
class ResampleParameters:
    """Parameters of the generator ``resample``."""

    source: str
    """The log to resample: a file or folder that a reader knows."""
    weeks: int | None = None
    """Weeks to fill; None for as many as the source has."""
    jobs: int | None = None
    """Keep only so many jobs, the first; None for all. Without ``weeks``, enough weeks are
    drawn."""
    load_factor: float = 1.0
    """Times that each user takes part, on average: the load grows by this factor while the
    daily cycle and each user's habits stay."""
    jitter_seconds: float = 900.0
    """Each week of a user moves by up to so many seconds either way, as a whole."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "weeks", "jobs")
        require_positive(self, "load_factor")
        require_at_least(self, 0, "jitter_seconds")


@register("generator", "resample", parameters=ResampleParameters)
@generator
def resample(parameters: ResampleParameters, random: np.random.Generator) -> Workload:
    """Users' weeks of a given log in new combinations: same sizes, runtimes, habits and cycles."""
    return resampled(load_workload(Path(parameters.source)), parameters, random)


def resampled(
    workload: Workload, parameters: ResampleParameters, random: np.random.Generator
) -> Workload:
    """A workload of users' weeks of another.

    All columns of the jobs stay as they are except the id, the submission, and what refers to
    other jobs or to the machine's state at the time (recorded wait, dependency), which is null.
    Jobs of unknown users count as one user's. Further copies of a user have ``~2``, ``~3`` behind
    the name.

    Raises
    ------
    InputError
        If the workload is empty, or so small that none of its users was drawn.
    """
    if not len(workload):
        raise InputError("no jobs to resample", source=workload.meta.source)
    submit = workload.jobs["submit_seconds"].to_numpy()
    week = np.floor(submit / WEEK_SECONDS).astype(np.int64)
    week -= week.min()
    codes = workload.jobs["user"].fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    blocks = cut(codes, week)
    weeks = _weeks(parameters, len(workload), blocks.weeks)
    placed = draw(blocks, weeks, parameters.load_factor, random)
    if not placed.job.size:
        raise InputError(
            "no user was drawn",
            source=workload.meta.source,
            field="load_factor",
            value=parameters.load_factor,
            expected="a larger factor, or a workload with more users",
        )
    width = parameters.jitter_seconds
    jitter = random.uniform(-width, width, int(placed.block.max()) + 1)
    in_week = np.mod(submit, WEEK_SECONDS)[placed.job] + jitter[placed.block]
    when = np.maximum(np.floor(placed.week * WEEK_SECONDS + in_week), 0.0)
    order = np.argsort(when, kind="stable")[: parameters.jobs]
    jobs = _rows(workload.jobs, placed, when, order)
    meta = WorkloadMeta(
        source=workload.meta.source,
        reader="resample",
        processors=workload.meta.processors,
        origin_unix_seconds=workload.meta.origin_unix_seconds,
        time_zone=workload.meta.time_zone,
        filters=workload.meta.filters,
    )
    return Workload(jobs, meta, workload.nodes)


def _weeks(parameters: ResampleParameters, jobs: int, weeks: int) -> int:
    if parameters.weeks is not None:
        return parameters.weeks
    if parameters.jobs is None:
        return weeks
    a_week = jobs * parameters.load_factor / weeks
    return math.ceil(_SPARE * parameters.jobs / a_week) + 1


def _rows(
    jobs: pl.DataFrame,
    placed: ResampledJobs,
    when: NDArray[np.float64],
    order: NDArray[np.int64],
) -> pl.DataFrame:
    """The jobs table of what was drawn, in order of submission."""
    copy = pl.Series("copy", placed.copy[order] + 1)
    suffix = pl.when(copy > 1).then("~" + copy.cast(pl.String)).otherwise(pl.lit(""))
    number = pl.Series(np.arange(1, order.size + 1)).cast(pl.String)
    unknown = {
        name: pl.lit(None, dtype=jobs.schema[name]).alias(name)
        for name in ("recorded_wait_seconds", "after_job_id", "think_seconds")
    }
    return jobs[placed.job[order]].with_columns(
        number.alias("job_id"),
        pl.Series("submit_seconds", when[order]),
        pl.col("user") + suffix,
        *unknown.values(),
    )
