"""Metrics of each job (wait, bounded slowdown, flow time), and quality of its prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import polars as pl

from foresail.kernels.columns import SLOWDOWN_BOUND_SECONDS
from foresail.model.event import REQUEUED, EndedBecause
from foresail.traces import schema
from foresail.traces.schedule import Schedule

_SUCCESSFUL: Final = [each.value for each in (EndedBecause.COMPLETED, *sorted(REQUEUED))]
"""End states of a part of a job that completed."""

_OF_ATTEMPTS: Final = (
    *("job_id", "attempt", "submit_seconds", "eligible_seconds", "start_seconds", "end_seconds"),
    *("cpus", "user", "ended_because", *schema.PARTS),
)


def bounded_slowdown(
    wait: pl.Expr, runtime: pl.Expr, bound_seconds: float = SLOWDOWN_BOUND_SECONDS
) -> pl.Expr:
    """max((wait + runtime) / max(runtime, bound), 1), all in seconds."""
    return ((wait + runtime) / runtime.clip(lower_bound=bound_seconds)).clip(lower_bound=1.0)


def whole_jobs(schedule: Schedule) -> pl.DataFrame:
    """The schedule's rows, those of a job that started in parts as one, by submission.

    It runs from the start of its first part to the end of its last one, on as many cpus as its
    completed parts held on average over that time. It has completed if every part has, and else
    ended as the first that failed.
    """
    rows = schedule.jobs
    if "stage" not in rows.columns:
        return rows
    is_part = pl.col("stage").is_not_null()
    parts = rows.filter(is_part)
    because = pl.col("ended_because")
    failed = because.is_in(_SUCCESSFUL).not_()
    runtime = pl.col("end_seconds") - pl.col("start_seconds")
    held = (pl.col("cpus") * runtime).filter(because == EndedBecause.COMPLETED.value)
    found = parts.group_by("job_id", maintain_order=True).agg(
        pl.col("start_seconds").min(),
        pl.col("end_seconds").max(),
        held.sum().alias("cpus"),
        pl.col("corrections").sum(),
        pl.col("backfilled").any(),
        pl.lit(1, pl.Int64).alias("attempt"),
        because.filter(failed).first().fill_null(EndedBecause.COMPLETED.value),
    )
    found = found.with_columns(
        cpus=pl.when(runtime > 0.0).then(pl.col("cpus") / runtime).otherwise(0.0)
    )
    shared = [name for name in schema.SCHEDULE if name not in found.columns or name == "job_id"]
    submitted = parts.unique("job_id", keep="first", maintain_order=True).select(shared)
    wholes = submitted.join(found, on="job_id", maintain_order="left")
    every = [rows.filter(~is_part), wholes]
    return pl.concat([each.select(*schema.SCHEDULE) for each in every]).sort(
        "submit_seconds", maintain_order=True
    )


def requeued() -> pl.Expr:
    """Mask attempts that were preempted or lost, with their jobs requeued."""
    because = [pl.col("ended_because") == each.value for each in sorted(REQUEUED)]
    return pl.any_horizontal(because).fill_null(value=False)


def eligible_seconds() -> pl.Expr:
    """Return when a job could first have started, had there been room."""
    return pl.coalesce("eligible_seconds", "submit_seconds")


def attempts(schedule: Schedule) -> pl.DataFrame:
    """Times of attempts that started, by when they began to queue: ``queued_seconds``.

    A first attempt queues from when its job is eligible, a later one from the end of the one
    before. So does each part of a job, be it of a stage that waits for others.
    """
    named = [name for name in _OF_ATTEMPTS if name in schedule.jobs.columns]
    started = schedule.jobs.select(named).filter(pl.col("start_seconds").is_not_null())
    if (started["attempt"].fill_null(1) <= 1).all():
        return started.with_columns(queued_seconds=eligible_seconds()).sort(
            "queued_seconds", maintain_order=True
        )
    parts = [name for name in schema.PARTS if name in started.columns]
    return (
        started.sort("job_id", "attempt", maintain_order=True)
        .with_columns(
            queued_seconds=pl.col("end_seconds")
            .shift(1)
            .over("job_id", *parts)
            .fill_null(eligible_seconds())
        )
        .sort("queued_seconds", "start_seconds", maintain_order=True)
    )


def per_job(schedule: Schedule) -> pl.DataFrame:
    """One row a job, by submission: the schedule's columns and what the job experienced.

    ``runtime_seconds`` is that of the last attempt, ``flow_seconds`` the time from submission to
    the end, ``wait_seconds`` the rest of it (so attempts that were lost count as waiting),
    ``eligible_wait_seconds`` what of it came after the job was eligible, and ``bounded_slowdown``
    follows from that. Jobs that never started are left out. A job that started in parts is one row
    (``whole_jobs``).
    """
    started = whole_jobs(schedule).filter(pl.col("start_seconds").is_not_null())
    if (started["attempt"].fill_null(1) > 1).any():
        started = started.sort("attempt", maintain_order=True).unique(
            "job_id", keep="last", maintain_order=True
        )
    wait = pl.col("start_seconds") - pl.col("submit_seconds")
    runtime = pl.col("end_seconds") - pl.col("start_seconds")
    queued = pl.col("start_seconds") - eligible_seconds()
    if not started["submit_seconds"].is_sorted():
        started = started.sort("submit_seconds", maintain_order=True)
    return started.with_columns(
        wait_seconds=wait,
        eligible_wait_seconds=queued,
        runtime_seconds=runtime,
        flow_seconds=wait + runtime,
        bounded_slowdown=bounded_slowdown(queued, runtime),
    )


@dataclass(frozen=True, slots=True)
class PredictionQuality:
    """The initial predictions of a schedule against the runtimes; NaN where there are none."""

    predicted_jobs: int
    """Jobs with a prediction."""
    mean_absolute_error_seconds: float
    """Mean of abs(prediction - runtime), corrections left out."""
    within_factor_two: float
    under_predicted: float
    over_predicted: float
    """Shares of the predicted jobs: between half and double the runtime; below it; above."""
    interval_jobs: int
    """Jobs whose 10 % and 90 % quantile were stated and differ."""
    covered: float
    below_interval: float
    above_interval: float
    """Shares of those whose runtime lay inside, below and above; stated: 80 %, 10 %, 10 %."""


def prediction_quality(jobs: pl.DataFrame) -> PredictionQuality:
    """Quality of the predictions in a table of ``per_job``."""
    predicted = pl.col("predicted_seconds")
    runtime = pl.col("runtime_seconds")
    low, high = pl.col("predicted_low_seconds"), pl.col("predicted_high_seconds")
    known = jobs.filter(predicted.is_not_null() & predicted.is_finite())
    stated = known.filter(low < high)
    point = known.select(
        error=(predicted - runtime).abs().mean(),
        within=((predicted <= 2 * runtime) & (runtime <= 2 * predicted)).mean(),
        under=(predicted < runtime).mean(),
        over=(predicted > runtime).mean(),
    ).row(0)
    interval = stated.select(
        covered=((low <= runtime) & (runtime <= high)).mean(),
        below=(runtime < low).mean(),
        above=(runtime > high).mean(),
    ).row(0)
    error, within, under, over = (math.nan if v is None else float(v) for v in point)
    covered, below, above = (math.nan if v is None else float(v) for v in interval)
    return PredictionQuality(
        known.height, error, within, under, over, stated.height, covered, below, above
    )
