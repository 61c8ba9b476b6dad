"""Lines that most of a long log consists of: submissions and beliefs, read in a fifth of the time.

Only what is just as such lines are written is read here; of any other, ``log_text`` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from foresail.model.event import Submitted
from foresail.model.job import Job, Stage
from foresail.record.records import EventTaken, Predicted

_NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


class _Job(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    job_id: str
    submit_seconds: float
    stages: tuple[Stage, ...]
    requested_seconds: float | None
    user: str | None
    group: str | None
    queue: str | None
    partition: str | None
    name: str | None
    after: tuple[str, ...]
    value: None
    attributes: dict[str, str]
    preference: None = None


class _Submitted(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["Submitted"]
    time: float
    job: _Job


class _Event(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag_field="kind", tag="event"):
    step: int
    time: float
    event: _Submitted


class _Predicted(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, tag_field="kind", tag="prediction"
):
    step: int
    time: float
    job_id: str
    mean_seconds: float
    low_seconds: float
    median_seconds: float
    high_seconds: float
    planned_seconds: float
    belief: tuple[float, ...] = ()


_decoded: Final = msgspec.json.Decoder(_Event | _Predicted).decode


def frequent_record(line: str) -> EventTaken | Predicted | None:
    """The record of a line; None if it is not one of these, or anything about it is unusual."""
    try:
        found = _decoded(line)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if isinstance(found, _Predicted):
        return Predicted(
            found.step,
            shared(found.time),
            shared(found.job_id),
            shared(found.mean_seconds),
            shared(found.low_seconds),
            shared(found.median_seconds),
            shared(found.high_seconds),
            shared(found.planned_seconds),
            found.belief,
        )
    job = found.event.job
    known = Job(
        shared(job.job_id),
        shared(job.submit_seconds),
        shared(job.stages),
        shared(job.requested_seconds),
        shared(job.user),
        shared(job.group),
        shared(job.queue),
        shared(job.partition),
        shared(job.name),
        job.after,
        attributes=fixed(job.attributes),
    )
    return EventTaken(found.step, shared(found.time), Submitted(shared(found.event.time), known))


@lru_cache(maxsize=4_096, typed=True)
def shared(value: Any) -> Any:
    """One for all that are equal, as much is of thousands of jobs."""
    return value


def fixed(attributes: dict[str, str]) -> Mapping[str, str]:
    """The attributes of a job, which share one for none."""
    return MappingProxyType(attributes) if attributes else _NO_ATTRIBUTES
