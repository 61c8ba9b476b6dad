"""The schedule: one function from an attempt that has ended to its row, wherever it ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import polars as pl

from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.traces import schema

ScheduleRow = tuple[Any, ...]
"""What an attempt adds to a schedule: the columns ``_OF_ATTEMPT``, and of a part ``_OF_PART``."""

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


_OF_PART: Final = ("stage", "tasks", "cpus")
_HELD: Final = "held_cpus"


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
        str(outcome.ended_because),
        *predicted_seconds,
        corrections,
        overtook,
        placement_text(placement),
    )


def part_columns(outcome: Outcome, cpus: float) -> ScheduleRow:
    """What the row of a part of a job ends with; ``cpus`` are what it held."""
    return outcome.stage, ",".join(map(str, outcome.tasks)) or None, cpus


def schedule_table(rows: Iterable[ScheduleRow], jobs: pl.DataFrame) -> pl.DataFrame:
    """The rows and what is said of their jobs, as ``schema.SCHEDULE`` has it.

    Where there are parts of jobs among them, the columns of ``schema.PARTS`` follow.

    Parameters
    ----------
    rows
        Of ``attempt_row``, in any order.
    jobs
        The other columns, a row for each job in order of submission. A job that has no attempt has
        a row without one; of columns that are missing nothing is known.
    """
    whole, parts = _apart(rows)
    schemas = {name: schema.SCHEDULE[name] for name in _OF_ATTEMPT}
    attempts = pl.DataFrame(whole, schema=schemas, orient="row").sort("attempt")
    if parts:
        attempts = pl.concat([attempts, _parts_table(parts)], how="diagonal")
    table = jobs.join(attempts, on="job_id", how="left", maintain_order="left_right")
    if parts:
        runtime = pl.col("nominal_runtime_seconds")
        table = table.with_columns(
            cpus=pl.coalesce(_HELD, "cpus"),
            nominal_runtime_seconds=pl.when(pl.col("stage").is_null()).then(runtime),
        )
    columns = {**schema.SCHEDULE, **schema.PARTS} if parts else schema.SCHEDULE
    return table.select(
        (pl.col(name) if name in table.columns else pl.lit(None).alias(name)).cast(kind)
        for name, kind in columns.items()
    )


def with_eligibility(
    table: pl.DataFrame, jobs: Iterable[Job], kept_back_until: Mapping[str, float]
) -> pl.DataFrame:
    """The schedule, saying of some jobs when they were eligible: of all that waited for anything.

    That is their submission or begin, the last end of a job that they waited for, or what is said
    of them (seconds, by id); and their start, if a job was only to have started, or failed, before.
    """
    jobs = list(jobs)
    if not (jobs or kept_back_until):
        return table
    ends = dict(table.group_by("job_id").agg(pl.col("end_seconds").max()).drop_nulls().iter_rows())
    since = {
        job.job_id: max([job.eligible_seconds, *(ends.get(each, 0.0) for each in job.after)])
        for job in jobs
    }
    since |= {each: max(since.get(each, 0.0), kept_back_until[each]) for each in kept_back_until}
    told = pl.col("job_id").replace_strict(since, default=None, return_dtype=pl.Float64)
    eligible = pl.when(told.is_not_null()).then(pl.min_horizontal(told, "start_seconds"))
    return table.with_columns(eligible_seconds=eligible)


def _apart(rows: Iterable[ScheduleRow]) -> tuple[list[ScheduleRow], list[ScheduleRow]]:
    """Rows of whole jobs, and those of parts, which are longer."""
    whole: list[ScheduleRow] = []
    parts: list[ScheduleRow] = []
    for row in rows:
        (whole if len(row) == len(_OF_ATTEMPT) else parts).append(row)
    return whole, parts


def _parts_table(rows: list[ScheduleRow]) -> pl.DataFrame:
    """Attempts of parts in the order in which they started."""
    kinds = {**schema.SCHEDULE, **schema.PARTS}
    schemas = {name: kinds[name] for name in (*_OF_ATTEMPT, *_OF_PART)}
    table = pl.DataFrame(rows, schema=schemas, orient="row").rename({"cpus": _HELD})
    return table.sort("start_seconds", maintain_order=True)


def placement_text(placement: Placement) -> str:
    """The place, or ``place:tasks`` separated by commas if several; nodes where they are named."""
    places = placement.tasks_by_node or placement.tasks_by_partition
    if len(places) == 1:
        return places[0][0]
    return ",".join(f"{name}:{tasks}" for name, tasks in places)
