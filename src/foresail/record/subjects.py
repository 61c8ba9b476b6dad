"""Whom records of the log are about, so that a job's story can be told without the whole log."""

from __future__ import annotations

from typing import Final

from foresail.model.event import Ended, NodeEvent, Submitted
from foresail.record.records import (
    Decided,
    EventTaken,
    Instructed,
    ReasonsChanged,
    Record,
    Refused,
    Sized,
)

NODES: Final = "nodes"
"""Whom records are about that tell of nodes; no job's id."""

_NOBODY: Final = ""


def about(record: Record) -> str | None:
    """The id of the job that a record is about, or ``NODES``; None where there may be several."""
    match record:
        case EventTaken(event=Submitted(job=job)):
            return job.job_id
        case EventTaken(event=Ended(outcome=outcome)):
            return outcome.job_id
        case EventTaken(event=event) if isinstance(event, NodeEvent):
            return NODES
        case EventTaken(event=event):
            return getattr(event, "job_id", _NOBODY)
        case Instructed(instruction=instruction):
            return instruction.job_id
        case Refused(refusal=refusal):
            return refusal.job_id
        case Sized(size=size):
            return size.job_id
        case ReasonsChanged(reasons=reasons):
            return reasons.job_ids[0] if len(reasons.job_ids) == 1 else None
        case Decided():
            return None
    return getattr(record, "job_id", _NOBODY)
