"""Allocation: what is started, moved, stopped and ends as one."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias


class Allocation(NamedTuple):
    """One attempt of a job, of a stage of it, or of some tasks of a stage."""

    job_id: str
    """Of which job."""
    stage: str = ""
    """Name of the stage; empty: all of the job, whose tasks start together."""
    tasks: tuple[int, ...] = ()
    """Numbers of the tasks within the stage, from 0 on; empty: all of them."""
    attempt: int = 1
    """Counts from 1; an attempt that goes back to the queue has a next one."""


class Part(NamedTuple):
    """What of a job runs as one where that is not all of it, whichever attempt it is.

    ``tasks`` are empty where it is a stage whose tasks start together.
    """

    job_id: str
    stage: str
    tasks: tuple[int, ...] = ()


Unit: TypeAlias = str | Part
"""What starts, runs and ends as one: a whole job, which is known by its id, or a part of one."""


def job_of(unit: Unit) -> str:
    """Of which job something is."""
    return unit if isinstance(unit, str) else unit.job_id


class OfUnit(Protocol):
    """A record that tells, or asks, something of a whole job or of a part of one."""

    @property
    def job_id(self) -> str:
        """Of which job."""
        ...

    @property
    def stage(self) -> str:
        """Name of the stage; empty: all of the job."""
        ...

    @property
    def tasks(self) -> tuple[int, ...]:
        """Numbers of the tasks within the stage; empty: all of them."""
        ...


def unit_of(record: OfUnit) -> Unit:
    """What of a job a record is about."""
    if not record.stage:
        return record.job_id
    return Part(record.job_id, record.stage, record.tasks)
