"""Allocation: what is started, moved, stopped and ends as one."""

from __future__ import annotations

from typing import NamedTuple


class Allocation(NamedTuple):
    """One attempt of a job, of a stage of it, or of some tasks of a stage.

    Parameters
    ----------
    job_id
        Of which job.
    stage
        Name of the stage; empty: all of the job, whose tasks start together.
    tasks
        Numbers of the tasks within the stage, from 0 on; empty: all of them.
    attempt
        Counts from 1; an attempt that goes back to the queue has a next one.
    """

    job_id: str
    stage: str = ""
    tasks: tuple[int, ...] = ()
    attempt: int = 1
