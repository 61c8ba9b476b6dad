"""Generator ``resample``: a new log with the joint structure of a given one.

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

from foresail.model.errors import InputError
from foresail.model.limits import require_at_least, require_positive
from foresail.model.registry import register
from foresail.traces.folder import load_workload
from foresail.traces.generating import generator
from foresail.traces.generators import _bootstrap as bootstrap
from foresail.traces.workload import Workload, WorkloadMeta

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
    """How many times each user takes part, on average: the load grows by this factor while the
    daily cycle and each user's habits stay."""
    run_weeks: float = 4.0
    """Mean number of successive weeks of a user that stay in their order."""
    jitter_seconds: float = 900.0
    """Each week of a user moves by up to so many seconds either way, as a whole."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "weeks", "jobs", "run_weeks")
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
    blocks = bootstrap.cut(codes, week)
    weeks = _weeks(parameters, len(workload), blocks.weeks)
    placed = bootstrap.draw(blocks, weeks, parameters.load_factor, parameters.run_weeks, random)
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
    placed: bootstrap.ResampledJobs,
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
