"""A part of a workload that can be replayed like a whole one."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import polars as pl

from foresail.model.errors import InputError
from foresail.traces.workload import Workload

WEEK_SECONDS: Final = 7 * 86400.0


def sample_weeks(workload: Workload, weeks: int, first_week: int = 0) -> Workload:
    """Some successive weeks: the part that keeps load, daily cycle and habits as they are.

    Weeks count from 0 at the workload's second zero; fewer are given where the workload ends.
    Second zero becomes the beginning of the first of these weeks, and the origin moves with it.

    Raises
    ------
    InputError
        If a number is out of its range, or no job was submitted in these weeks.
    """
    if weeks < 1:
        raise InputError("too few", field="weeks", value=weeks, expected="at least 1")
    if first_week < 0:
        raise InputError("negative", field="first week", value=first_week, expected="0 or more")
    start = first_week * WEEK_SECONDS
    submit = pl.col("submit_seconds")
    part = workload.jobs.filter(submit >= start, submit < start + weeks * WEEK_SECONDS)
    part = part.with_columns(submit - start, pl.col("deadline_seconds") - start)
    origin = workload.meta.origin_unix_seconds
    moved = workload.with_meta(origin_unix_seconds=None if origin is None else origin + start)
    return _replayable(moved, part, f"weeks from {first_week}: {weeks}")


def sample_users(workload: Workload, users: int, seed: int) -> Workload:
    """All jobs of some users, drawn at random: habits stay whole, the load shrinks.

    Jobs of unknown users are left out.

    Raises
    ------
    InputError
        If there are not so many users.
    """
    names = workload.jobs["user"].drop_nulls().unique().sort().to_list()
    if not 1 <= users <= len(names):
        raise InputError(
            "not that many users",
            source=workload.meta.source,
            field="users",
            value=users,
            expected=f"1 to {len(names)}",
        )
    drawn = np.random.default_rng(seed).choice(len(names), users, replace=False)
    part = workload.jobs.filter(pl.col("user").is_in([names[number] for number in drawn]))
    return _replayable(workload, part, f"users: {users}, seed {seed}")


def sample_fraction(workload: Workload, fraction: float, seed: int) -> Workload:
    """Each job with a probability, on its own: marginals stay, the load and sessions thin out.

    Raises
    ------
    InputError
        If the fraction is not above 0 and at most 1, or no job was drawn.
    """
    if not 0.0 < fraction <= 1.0 or math.isnan(fraction):
        raise InputError(
            "not a fraction", field="fraction", value=fraction, expected="above 0, at most 1"
        )
    drawn = np.random.default_rng(seed).random(len(workload)) < fraction
    part = workload.jobs.filter(pl.Series(drawn))
    return _replayable(workload, part, f"fraction: {fraction}, seed {seed}")


def _replayable(workload: Workload, part: pl.DataFrame, note: str) -> Workload:
    """The part as a workload, without dependencies on jobs that are not in it."""
    if not part.height:
        raise InputError("the sample holds no job", source=workload.meta.source, value=note)
    present = pl.col("after_job_id").is_in(part["job_id"].to_list())
    part = part.with_columns(
        pl.when(present).then(pl.col(name)).alias(name)
        for name in ("after_job_id", "think_seconds")
    )
    header = {**workload.meta.header, "Sample": note}
    return workload.with_jobs(part).with_meta(header=header)
