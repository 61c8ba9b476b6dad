"""The schedule of a run so far, as a table."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from foresail.model.reservation import Reservation
from foresail.record.jobs_fold import EndedAttempt, JobsFold
from foresail.record.schedule_rows import ScheduleRow, attempt_row, schedule_table
from foresail.traces import schema

_OF_JOB: Final = (
    "job_id",
    "submit_seconds",
    "cpus",
    "user",
    "requested_seconds",
    "deadline_seconds",
    "accepted",
)


def table_of_run(jobs: JobsFold) -> pl.DataFrame:
    """One row per attempt that ended, by job in order of submission; as ``schema.SCHEDULE``."""
    latest = {past.job.job_id: past for past in jobs.past}
    specified = [_specified(latest[job_id]) for job_id in jobs.submitted if job_id in latest]
    schemas = {name: schema.SCHEDULE[name] for name in _OF_JOB}
    table = pl.DataFrame(specified, schema=schemas, orient="row")
    return schedule_table(map(_row, jobs.past), table)


def _row(past: EndedAttempt) -> ScheduleRow:
    belief = past.belief
    predicted = belief.mean_seconds, belief.low_seconds, belief.high_seconds
    return attempt_row(past.outcome, predicted, past.corrections, past.overtook, past.placement)


def _specified(past: EndedAttempt) -> tuple[Any, ...]:
    """What is said of a job whatever has become of it, as ``_OF_JOB`` has it."""
    job, answer = past.job, past.answer
    return (
        job.job_id,
        job.submit_seconds,
        job.cpus,
        job.user,
        job.requested_seconds,
        job.deadline_seconds,
        None if answer is None else isinstance(answer, Reservation),
    )
