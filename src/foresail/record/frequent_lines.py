"""Lines that most of a long log consists of: submissions and beliefs, read in a fifth of the time.

Only what is just as such lines are written is read here; of any other, ``log_text`` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from foresail.model.event import Submitted
from foresail.model.job import Job, Stage
from foresail.record.records import EventTaken, Predicted

NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


class _Exactly(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """These fields and no others."""


class _Job(_Exactly):
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
    attributes: _Exactly
    preference: None = None


class _Submitted(_Exactly):
    type: Literal["Submitted"]
    time: float
    job: _Job


class _Event(_Exactly, tag_field="kind", tag="event"):
    step: int
    time: float
    event: _Submitted


class _Predicted(_Exactly, tag_field="kind", tag="prediction"):
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
_fields: Final = msgspec.structs.astuple


def frequent_record(line: str) -> EventTaken | Predicted | None:
    """The record of a line; None if it is not one of these, or anything about it is unusual."""
    try:
        found = _decoded(line)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if isinstance(found, _Predicted):
        return Predicted(*map(shared, _fields(found)))
    time, job = found.event.time, found.event.job
    values = chain(map(shared, _fields(job)[:-2]), (NO_ATTRIBUTES,))
    known = Job(*values)
    return EventTaken(found.step, shared(found.time), Submitted(shared(time), known))


@lru_cache(maxsize=4_096, typed=True)
def shared(value: Any) -> Any:
    """One for all that are equal, as much is of thousands of jobs."""
    return value
