"""What each job experienced: wait, bounded slowdown, flow time; all metrics start here."""

from __future__ import annotations

import polars as pl

from foresail.kernels.columns import SLOWDOWN_BOUND_SECONDS
from foresail.traces.schedule import Schedule


def bounded_slowdown(
    wait: pl.Expr, runtime: pl.Expr, bound_seconds: float = SLOWDOWN_BOUND_SECONDS
) -> pl.Expr:
    """max((wait + runtime) / max(runtime, bound), 1), all in seconds (spec section 9)."""
    return ((wait + runtime) / runtime.clip(lower_bound=bound_seconds)).clip(lower_bound=1.0)


def attempts(schedule: Schedule) -> pl.DataFrame:
    """Attempts that started, by the time they began to queue, which is in ``queued_seconds``.

    A first attempt queues from the job's submission, a later one from the end of the one before.
    """
    started = schedule.jobs.filter(pl.col("start_seconds").is_not_null())
    if (started["attempt"].fill_null(1) <= 1).all():
        return started.with_columns(queued_seconds=pl.col("submit_seconds")).sort(
            "queued_seconds", maintain_order=True
        )
    return (
        started.sort("job_id", "attempt", maintain_order=True)
        .with_columns(
            queued_seconds=pl.col("end_seconds")
            .shift(1)
            .over("job_id")
            .fill_null(pl.col("submit_seconds"))
        )
        .sort("queued_seconds", "start_seconds", maintain_order=True)
    )


def per_job(schedule: Schedule) -> pl.DataFrame:
    """One row a job, by submission: the schedule's columns and what the job experienced.

    ``runtime_seconds`` is that of the last attempt, ``flow_seconds`` the time from submission to
    the end, ``wait_seconds`` the rest of it (so attempts that were lost count as waiting), and
    ``bounded_slowdown`` follows from these. Jobs that never started are left out.
    """
    started = schedule.jobs.filter(pl.col("start_seconds").is_not_null())
    if (started["attempt"].fill_null(1) > 1).any():
        started = started.sort("attempt", maintain_order=True).unique(
            "job_id", keep="last", maintain_order=True
        )
    wait = pl.col("start_seconds") - pl.col("submit_seconds")
    runtime = pl.col("end_seconds") - pl.col("start_seconds")
    return started.sort("submit_seconds", maintain_order=True).with_columns(
        wait_seconds=wait,
        runtime_seconds=runtime,
        flow_seconds=wait + runtime,
        bounded_slowdown=bounded_slowdown(wait, runtime),
    )
