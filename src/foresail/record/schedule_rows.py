"""The schedule: one function from an attempt that has ended to its row, wherever it ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import polars as pl

from foresail.model.decision import Placement
from foresail.model.outcome import Outcome
from foresail.traces import schema

ScheduleRow = tuple[Any, ...]
"""What an attempt adds to a schedule: the columns ``_OF_ATTEMPT``."""

_OF_ATTEMPT: Final = (
    "job_id",
    "attempt",
    "start_seconds",
    "end_seconds",
    "ended_because",
    "predicted_seconds",
    "predicted_low_seconds",
    "predicted_high_seconds",
    "corrections",
    "backfilled",
    "placement",
)


def attempt_row(
    outcome: Outcome,
    predicted_seconds: tuple[float, float, float],
    corrections: int,
    overtook: bool,
    placement: Placement,
) -> ScheduleRow:
    """The row of an attempt that has ended.

    Parameters
    ----------
    outcome
        How it ended.
    predicted_seconds
        Mean, 10 % and 90 % quantile of what was believed of its job's runtime.
    corrections
        How often its estimate was corrected.
    overtook
        Whether it started before a job that had been submitted earlier.
    placement
        Where it ran.
    """
    return (
        outcome.job_id,
        outcome.attempt,
        outcome.start_seconds,
        outcome.end_seconds,
        outcome.ended_because.value,
        *predicted_seconds,
        corrections,
        overtook,
        placement_text(placement),
    )


def schedule_table(rows: Iterable[ScheduleRow], jobs: pl.DataFrame) -> pl.DataFrame:
    """The rows and what is said of their jobs, as ``schema.SCHEDULE`` has it.

    Parameters
    ----------
    rows
        Of ``attempt_row``, in any order.
    jobs
        The other columns, a row for each job in order of submission. A job that has no attempt has
        a row without one; of columns that are missing nothing is known.
    """
    schemas = {name: schema.SCHEDULE[name] for name in _OF_ATTEMPT}
    attempts = pl.DataFrame(list(rows), schema=schemas, orient="row").sort("attempt")
    table = jobs.join(attempts, on="job_id", how="left", maintain_order="left_right")
    return table.select(
        (pl.col(name) if name in table.columns else pl.lit(None).alias(name)).cast(kind)
        for name, kind in schema.SCHEDULE.items()
    )


def placement_text(placement: Placement) -> str:
    """The place, or ``place:tasks`` separated by commas if several; nodes where they are named."""
    places = placement.tasks_by_node or placement.tasks_by_partition
    if len(places) == 1:
        return places[0][0]
    return ",".join(f"{name}:{tasks}" for name, tasks in places)
