"""Questions about the whole cluster over time: what runs and is to come, and how it was used."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final

from fastapi import Query

from foresail.explain.forecast import WaitingForecast, forecast_running
from foresail.model.job import Job
from foresail.service.api.answers import PlanAnswer, PlannedJobAnswer, RangeAnswer, UsageAnswer
from foresail.service.api.callers import AnyCaller, Caller, Parts
from foresail.service.api.lookup import current_picture
from foresail.service.api.problems import api_router
from foresail.service.picture import Picture
from foresail.service.store.protocol import JobsWanted

router: Final = api_router("plan")


@router.get("/plan")
async def plan(
    caller: AnyCaller, parts: Parts, most: Annotated[int, Query(ge=1, le=1000)] = 200
) -> PlanAnswer:
    """What runs, and what is expected to start next, by the odds; other users' jobs nameless."""
    picture = await current_picture(parts)
    soon = JobsWanted(states=("pending",), limit=most, oldest_first=True)
    rows = await asyncio.to_thread(parts.store.jobs, soon)
    forecasts = await parts.forecaster.latest([row["job_id"] for row in rows])
    running = [*running_bars(picture, parts.now())]
    waiting: list[PlannedJobAnswer] = []
    if forecasts is not None:
        soonest = dict(islice(forecasts.soonest.items(), 2 * most))
        these = JobsWanted(states=("pending",), job_ids=tuple(soonest), limit=2 * most)
        rows = await asyncio.to_thread(parts.store.jobs, these)
        still = {row["job_id"] for row in rows} - {each.job.job_id for each in picture.running}
        waiting = [
            waiting_bar(job, forecasts.waiting[job_id])
            for job_id, job in soonest.items()
            if job_id in still
        ]
    total = sum(each.total.cpus for each in picture.cluster.partitions)
    return PlanAnswer(
        now_seconds=picture.unix_seconds,
        cpus=total,
        pending=picture.pending,
        running=[seen_by(caller, each) for each in running[: 5 * most]],
        waiting=[seen_by(caller, each) for each in waiting[:most]],
    )


@router.get("/usage")
async def usage(
    caller: AnyCaller,  # noqa: ARG001
    parts: Parts,
    hours: Annotated[float, Query(gt=0.0, le=24.0 * 31)] = 24.0,
    bins: Annotated[int, Query(ge=1, le=500)] = 96,
) -> UsageAnswer:
    """How many cpus jobs held, and how long those that started had waited, over the last hours."""
    picture = await current_picture(parts)
    used = await parts.overview.use(hours, bins)
    return UsageAnswer(
        begin_seconds=used.begin_seconds,
        bin_seconds=used.bin_seconds,
        cpus=picture.cluster.total.cpus,
        used_cpus=[round(each, 3) for each in used.used_cpus.tolist()],
        started=used.started.tolist(),
        wait_seconds=[None if math.isnan(each) else each for each in used.wait_seconds.tolist()],
    )


def running_bars(picture: Picture, now: float) -> Iterator[PlannedJobAnswer]:
    """What runs, and when it should end."""
    for each in picture.running:
        found = forecast_running(each, now)
        start = each.start_seconds
        yield PlannedJobAnswer(
            job_id=each.job.job_id,
            name=each.job.name,
            user=_owner(each.job.user),
            cpus=each.held.cpus,
            start=RangeAnswer(p10=start, p50=start, p90=start),
            end=RangeAnswer.of(found.end),
            deadline_seconds=each.job.deadline_seconds,
            misses=found.misses,
        )


def waiting_bar(job: Job, found: WaitingForecast) -> PlannedJobAnswer:
    """What waits, and when it should start and end."""
    return PlannedJobAnswer(
        job_id=job.job_id,
        name=job.name,
        user=_owner(job.user),
        cpus=job.cpus,
        start=RangeAnswer.of(found.start),
        end=RangeAnswer.of(found.end),
        deadline_seconds=job.deadline_seconds,
        misses=found.misses,
    )


def _owner(user: str | None) -> str:
    """Whose a job is: schedulers know jobs by user and name."""
    return (user or "").partition("/")[0]


def seen_by(caller: Caller, job: PlannedJobAnswer) -> PlannedJobAnswer:
    """A job as somebody may see it: nameless where it is another user's."""
    if job.user is not None and caller.sees(job.user):
        return job
    return job.model_copy(update={"job_id": None, "name": None, "user": None})
