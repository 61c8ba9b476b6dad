"""Jobs in the order in which people look for them: what runs, what is expected to start next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from foresail.model.job import Job
from foresail.service.parts import ServiceParts
from foresail.service.store.protocol import JobsWanted, Row

_PATIENCE_SECONDS: Final = 0.5
"""How long the first forecasts of a queue are waited for."""

_LIVING: Final = ("running", "pending", "held")


async def jobs_next_first(
    parts: ServiceParts, wanted: JobsWanted, offset: int
) -> tuple[list[Row], int | None]:
    """A page of the jobs that are not done with, and where the next one begins; None at the end.

    First those that run, by start; then those that wait, by expected start; at last those of which
    nothing is expected yet, such as held ones, by submission.

    Parameters
    ----------
    parts
        The service that is asked.
    wanted
        Whose, how they are called, in which states, and how many at most.
    offset
        How many to leave out.
    """
    picture, forecasts = await asyncio.gather(
        parts.gallery.look(), parts.forecaster.latest((), _PATIENCE_SECONDS)
    )
    states = wanted.states or _LIVING
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
