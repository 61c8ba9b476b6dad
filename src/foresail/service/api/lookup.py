"""What questions look up: jobs as callers may see them, and how the run stands."""

from __future__ import annotations

from http import HTTPStatus

from foresail.service.api.callers import Caller
from foresail.service.api.problems import CallRefused
from foresail.service.api.submissions import MOST_JOBS
from foresail.service.parts import ServiceParts
from foresail.service.picture import FRESH_SECONDS, Picture
from foresail.service.store.protocol import JobsWanted, Row


def own_job(parts: ServiceParts, caller: Caller, job_id: str) -> Row:
    """A job as it stands.

    Raises
    ------
    CallRefused
        If there is none, or the caller may not see it.
    """
    row = parts.store.job(job_id)
    if row is None and (members := jobs_meant(parts, caller, job_id)):
        first, last = (members[end]["job_id"] for end in (0, -1))
        raise CallRefused(
            HTTPStatus.NOT_FOUND,
            f"{job_id} is an array; ask for one of its jobs, {first} to {last}",
        )
    if row is None or not caller.sees(row["user"]):
        raise no_such_job(job_id)
    return row


def jobs_meant(parts: ServiceParts, caller: Caller, job_id: str) -> list[Row]:
    """A job, or the members of an array, if the caller sees them."""
    row = parts.store.job(job_id)
    if row is None and "_" not in job_id:
        wanted = JobsWanted(after=int(job_id) - 1, limit=MOST_JOBS, oldest_first=True)
        rows = parts.store.jobs(wanted)
        rows = [each for each in rows if each["job_id"].startswith(f"{job_id}_")]
    else:
        rows = [] if row is None else [row]
    return [each for each in rows if caller.sees(each["user"])]


def no_such_job(job_id: str) -> CallRefused:
    """That there is none of this id, or that it is none of the caller's business."""
    return CallRefused(HTTPStatus.NOT_FOUND, f"there is no job {job_id}")


async def current_picture(parts: ServiceParts, fresh_seconds: float = FRESH_SECONDS) -> Picture:
    """How the run stands, or stood so long ago at most.

    Raises
    ------
    CallRefused
        If there is no run yet.
    """
    picture = await parts.gallery.look(fresh_seconds)
    if picture is None:
        raise CallRefused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "the service is about to begin",
            headers={"Retry-After": "1"},
        )
    return picture
