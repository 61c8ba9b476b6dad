"""The schedule of a run so far, as a table."""

from __future__ import annotations

from typing import Any

import polars as pl

from foresail.control.jobs_fold import EndedAttempt, JobsFold
from foresail.model.decision import Placement
from foresail.model.reservation import Reservation
from foresail.traces import schema


def schedule_table(jobs: JobsFold) -> pl.DataFrame:
    """One row per attempt that ended, by job in order of submission; as ``schema.SCHEDULE``."""
    order = {job_id: number for number, job_id in enumerate(jobs.submitted)}
    past = sorted(jobs.past, key=lambda each: (order[each.job.job_id], each.outcome.attempt))
    return pl.DataFrame([_row(each) for each in past], schema=schema.SCHEDULE)


def _row(past: EndedAttempt) -> dict[str, Any]:
    job, outcome = past.job, past.outcome
    return {
        "job_id": job.job_id,
        "attempt": outcome.attempt,
        "submit_seconds": job.submit_seconds,
        "start_seconds": outcome.start_seconds,
        "end_seconds": outcome.end_seconds,
        "cpus": job.cpus,
        "user": job.user,
        "requested_seconds": job.requested_seconds,
        "predicted_seconds": past.belief.mean_seconds,
        "predicted_low_seconds": past.belief.low_seconds,
        "predicted_high_seconds": past.belief.high_seconds,
        "corrections": past.corrections,
        "backfilled": past.overtook,
        "placement": _placement_text(past.placement),
        "ended_because": outcome.ended_because.value,
        "deadline_seconds": job.deadline_seconds,
        "accepted": None if past.answer is None else isinstance(past.answer, Reservation),
    }


def _placement_text(placement: Placement) -> str:
    return ",".join(f"{name}:{tasks}" for name, tasks in placement.tasks_by_partition)
