"""Allocation: what is started, moved, stopped and ends as one. Outcome: how an attempt ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

from foresail.model.construction import quickly_made


class Allocation(NamedTuple):
    """One attempt of a job, of a stage of it, or of some tasks of a stage."""

    job_id: str
    """Of which job."""
    stage: str = ""
    """Name of the stage; empty: all of the job, whose tasks start together."""
    tasks: tuple[int, ...] = ()
    """Numbers of the tasks within the stage, from 0 on; empty: all of them."""
    attempt: int = 1
    """Counts from 1; an attempt that is requeued has a next one."""


class Part(NamedTuple):
    """Part of a job that runs as one, where that is not all of it, whichever attempt it is.

    ``tasks`` are empty where it is a stage whose tasks start together.
    """

    job_id: str
    stage: str
    tasks: tuple[int, ...] = ()


Unit: TypeAlias = str | Part
"""What starts, runs and ends as one: a whole job, which is known by its id, or a part of one."""


def job_of(unit: Unit) -> str:
    """Return the id of the job that a unit belongs to."""
    return unit if isinstance(unit, str) else unit.job_id


class OfUnit(Protocol):
    """A record that says, or asks, something of a whole job or of a part of one."""

    @property
    def job_id(self) -> str:
        """Return the id of the job."""

    @property
    def stage(self) -> str:
        """Name of the stage; empty: all of the job."""

    @property
    def tasks(self) -> tuple[int, ...]:
        """Numbers of the tasks within the stage; empty: all of them."""


def unit_of(record: OfUnit) -> Unit:
    """Return the unit of a job that a record is about."""
    if not record.stage:
        return record.job_id
    return Part(record.job_id, record.stage, record.tasks)


class EndedBecause(StrEnum):
    """Reason why an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    LIMIT = "limit"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    LOST = "lost"


GOES_BACK: Final = frozenset({EndedBecause.PREEMPTED, EndedBecause.LOST})
"""An attempt that ended so was not the job's last: the job goes back to its place in the queue."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Outcome:
    """One ended attempt; times in seconds from the workload's origin.

    ``slowdown`` is how many times longer it ran where it was than where the job runs best. ``used``
    is what was measured of each of its tasks, on average, by the names of
    ``foresail.predictors.dspredict``; of an attempt that is requeued, the most cpu time and memory
    of any task. ``reason`` says why it ended, where that is not plain from the rest.
    """

    job_id: str
    start_seconds: float
    end_seconds: float
    ended_because: EndedBecause = EndedBecause.COMPLETED
    exit_code: int | None = None
    attempt: int = 1
    slowdown: float = 1.0
    stage: str = ""
    tasks: tuple[int, ...] = ()
    used: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def allocation(self) -> Allocation:
        """Return the allocation that has ended."""
        return Allocation(self.job_id, self.stage, self.tasks, self.attempt)

    @property
    def runtime_seconds(self) -> float:
        """Seconds the attempt really ran."""
        return self.end_seconds - self.start_seconds

    @property
    def preferred_runtime_seconds(self) -> float:
        """Seconds it would have run where the job runs best: what there is to learn from it."""
        return self.runtime_seconds / self.slowdown
