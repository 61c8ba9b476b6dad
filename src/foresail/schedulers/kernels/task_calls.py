"""Calls from Python to the kernels of tasks, one event at a time."""

from __future__ import annotations

from foresail.kernels.compile import bare_kernel
from foresail.model.arrays import Floats, Integers
from foresail.schedulers.kernels.task_jobs import (
    TaskJobs,
    believe_nothing,
    end_job,
    end_task_of_job,
    estimate_job,
    next_offer,
    open_stage,
    submit_job,
)
from foresail.schedulers.kernels.task_queues import (
    LAUNCHED,
    READY,
    SUBMITTED,
    demote,
    launch,
    make_ready,
)


@bare_kernel
def submit_unbelieved(
    at: TaskJobs, job: int, first_order: Integers, tasks: int, now: float
) -> None:
    """A job of which nothing is believed comes, after as many others as its row has before it."""
    believe_nothing(at.queues.jobs[job])
    submit_job(at, job, job, first_order, tasks, now)
    open_stage(at, job, first_order.size)


@bare_kernel
def open_tasks(at: TaskJobs, job: int, tasks: int) -> None:
    """So many more tasks of a job may start."""
    open_stage(at, job, tasks)


@bare_kernel
def note_end(
    at: TaskJobs,
    job: int,
    place: int,
    queue: int,
    start: float,
    now: float,
    slowdown: float,
    told: Floats,
) -> None:
    """A task has ended; see ``task_jobs.end_task_of_job``."""
    if end_task_of_job(at, job, place, queue, start, now, slowdown, told):
        estimate_job(at, job, told, now)


@bare_kernel
def note_job_end(at: TaskJobs, job: int, now: float) -> None:
    """All tasks of a job have ended."""
    end_job(at, job, at.queues.jobs[job, SUBMITTED], now)


@bare_kernel
def demote_all(at: TaskJobs, now: float) -> None:
    """Let jobs be in the queues for the service that they have got."""
    demote(at.queues, now)


@bare_kernel
def next_task(at: TaskJobs, now: float) -> tuple[int, int, int]:
    """The job whose task is to start next, the queue it would be charged to, and which it is.

    The first is negative if none may start.
    """
    job, queue = next_offer(at, now)
    place = -1 if job < 0 else int(at.queues.jobs[job, LAUNCHED])
    return job, queue, place


@bare_kernel
def start_task(at: TaskJobs, job: int, queue: int, now: float) -> None:
    """The next task of a job starts."""
    launch(at.queues, job, queue, now)


@bare_kernel
def withdraw_rest(at: TaskJobs, job: int) -> None:
    """No further task of a job is going to start."""
    row = at.queues.jobs[job]
    make_ready(at.queues, job, int(row[LAUNCHED] - row[READY]))
