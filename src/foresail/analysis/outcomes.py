"""How jobs ended, in the words of the study: successful, failed, aborted, timed out."""

from __future__ import annotations

from typing import Final

import polars as pl

from foresail.traces.workload import Workload

OUTCOMES: Final = ("successful", "failed", "aborted", "timed out")
UNSUCCESSFUL: Final = ("failed", "aborted")

NOT_TOLD: Final = "The log does not tell unsuccessful jobs from successful ones."

DEFINITION: Final = (
    "Unsuccessful: failed or cancelled. Timed out: failed or cancelled after at least the "
    "requested time; counted by itself, as the study does."
)


def outcomes(workload: Workload) -> pl.Series | None:
    """The outcome of every job (null where unknown or partial), if the log tells them apart.

    None if no outcome is known, or all are recorded as completed: such logs do not record failures.

    Logs do not say why a job was killed. One that was cancelled or failed after it had run for at
    least its requested time counts as timed out (dissertation, section 3.5).
    """
    status = pl.col("status")
    killed = status.is_in(["failed", "cancelled"])
    at_limit = (pl.col("runtime_seconds") >= pl.col("requested_seconds")).fill_null(value=False)
    outcome = (
        pl.when(killed & at_limit)
        .then(pl.lit("timed out"))
        .when(status == "completed")
        .then(pl.lit("successful"))
        .when(status == "failed")
        .then(pl.lit("failed"))
        .when(status == "cancelled")
        .then(pl.lit("aborted"))
    )
    found = workload.jobs.select(outcome.alias("outcome")).to_series()
    told = found.drop_nulls().unique().to_list()
    return found if set(told) - {"successful"} else None
