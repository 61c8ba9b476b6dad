"""What questions look up: jobs as callers may see them, and how the run stands."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from foresail.service.api.callers import Caller
from foresail.service.api.problems import CallRefused
from foresail.service.parts import ServiceParts
from foresail.service.picture import FRESH_SECONDS, Picture
from foresail.service.store.protocol import JobsWanted, Row

_FIRST_PAGE: Final = 20
_PAGE: Final = 1_000
"""Most arrays are small, and others' jobs come behind them."""


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
    rows = [*_members(parts, job_id)] if row is None and "_" not in job_id else [row]
    return [each for each in rows if each is not None and caller.sees(each["user"])]


def _members(parts: ServiceParts, array: str) -> Iterator[Row]:
    """The members of an array, whose numbers follow each other from its own on."""
    before, page = int(array) - 1, _FIRST_PAGE
    while rows := parts.store.jobs(JobsWanted(after=before, limit=page, oldest_first=True)):
        for row in rows:
            if not row["job_id"].startswith(f"{array}_"):
                return
            yield row
        before, page = rows[-1]["number"], _PAGE


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
