"""What questions look up: jobs as callers may see them, and how the run stands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from itertools import chain, islice
from typing import Final

from foresail.model.job import Job
from foresail.service.api.callers import Caller
from foresail.service.api.problems import CallRefused
from foresail.service.parts import ServiceParts
from foresail.service.picture import Picture
from foresail.service.store.protocol import LIVING_STATES, JobsWanted, Row

_PATIENCE_SECONDS: Final = 0.5
"""How long the first forecasts of a queue are waited for."""


async def jobs_next_first(
    parts: ServiceParts, wanted: JobsWanted, offset: int
) -> tuple[list[Row], int | None]:
    """A page of the jobs that are not done with, and where the next one begins; None at the end.

    First those that run, by start; then those that wait, by expected start; at last those of which
    nothing is expected yet, such as held ones, by submission.
    """
    picture, forecasts = await asyncio.gather(
        parts.gallery.look(), parts.forecaster.latest((), _PATIENCE_SECONDS)
    )
    states = wanted.states or LIVING_STATES
    runs: dict[str, Job] = {}
    if picture is not None and "running" in states:
        running = sorted(picture.running, key=lambda each: each.start_seconds)
        runs = {each.job.job_id: each.job for each in running}
    next_ones: Mapping[str, Job] = {}
    if forecasts is not None and "pending" in states:
        next_ones = forecasts.soonest
    only = None if wanted.job_ids is None else frozenset(wanted.job_ids)
    living = replace(wanted, states=tuple(states), oldest_first=True, limit=1000)

    def page() -> tuple[list[Row], bool]:
        following = ((each, job) for each, job in next_ones.items() if each not in runs)
        told = (
            each
            for each, job in chain(runs.items(), following)
            if (only is None or each in only) and _is_wanted(job, wanted)
        )
        others = (
            each for each in _living(parts, living) if not (each in runs or each in next_ones)
        )
        ids = chain(told, others)
        chosen = tuple(islice(ids, offset, offset + wanted.limit))
        rows = parts.store.jobs(replace(wanted, states=(), job_ids=chosen))
        by_id = {row["job_id"]: row for row in rows}
        there = (by_id[job_id] for job_id in chosen if job_id in by_id)
        return [row for row in there if row["state"] in states], len(chosen) < wanted.limit

    rows, is_last = await asyncio.to_thread(page)
    return rows, None if is_last else offset + wanted.limit


def _living(parts: ServiceParts, wanted: JobsWanted) -> Iterator[str]:
    """Those that the store has, by submission."""
    after = 0
    while rows := parts.store.jobs(replace(wanted, after=after)):
        yield from (row["job_id"] for row in rows)
        after = rows[-1]["number"]


def _is_wanted(job: Job, wanted: JobsWanted) -> bool:
    """Whether a job is one of those; schedulers know a job by its user and its name."""
    user, _, name = (job.user or "").partition("/")
    return (not wanted.users or user in wanted.users) and (not wanted.names or name in wanted.names)


_FIRST_PAGE: Final = 20
_PAGE: Final = 1_000
"""Most arrays are small, and others' jobs come behind them."""


def own_job(parts: ServiceParts, caller: Caller, job_id: str) -> Row:
    """A job as it stands; raises ``CallRefused`` if there is none, or the caller may not see it."""
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


async def current_picture(parts: ServiceParts, fresh_seconds: float = 0.0) -> Picture:
    """How the run stands, or stood so long ago at most.

    Raises ``CallRefused`` if there is no run yet.
    """
    picture = await parts.gallery.look(fresh_seconds)
    if picture is None:
        raise CallRefused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "the service is about to begin",
            headers={"Retry-After": "1"},
        )
    return picture
