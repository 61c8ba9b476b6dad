"""Questions about the future: when jobs start and end, what if, how long to ask for."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from foresail.explain.forecast import WaitingForecast, forecast_running, suggested_request
from foresail.live.command_job import CommandJob
from foresail.service.api.answers import (
    ForecastAnswer,
    JobId,
    JudgedAnswer,
    PredictionsAnswer,
    RangeAnswer,
    SuggestedRequestAnswer,
    WhatIfAnswer,
)
from foresail.service.api.callers import AnyCaller, Parts
from foresail.service.api.lookup import current_picture, own_job
from foresail.service.api.problems import CallRefused, api_router
from foresail.service.api.submissions import ClusterLimits, JobChecks, JobRequest
from foresail.service.forecasts import Forecasts
from foresail.service.parts import ServiceParts
from foresail.service.store.protocol import Judged, Row

router: Final = api_router("forecasts")

_ASKED: Final = "what-if"
"""The id of a job that is only asked about."""

_Arrivals = Annotated[
    bool, Query(description="Whether jobs are expected to come as they came before.")
]


class WhatIfRequest(BaseModel):
    """A job that waits and what would be changed of it, or one that is not submitted."""

    model_config = ConfigDict(extra="forbid", strict=True)

    job_id: JobId | None = Field(None, description="A job that waits; without, a new one.")
    job: JobRequest | None = Field(None, description="A job that is not submitted.")
    cpus: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    requested_time: str | Annotated[float, Field(gt=0, le=1e9)] | None = None
    submitted_in: Annotated[float, Field(ge=0, le=1e9)] | None = Field(
        None, description="As if it came so many seconds from now."
    )
    arrivals: bool = False


@router.get("/jobs/{job_id}/forecast")
async def forecast(
    job_id: JobId, caller: AnyCaller, parts: Parts, *, arrivals: _Arrivals = False
) -> ForecastAnswer:
    """When a job should start and end."""
    row = await asyncio.to_thread(own_job, parts, caller, job_id)
    if row["state"] == "running":
        answer = await _of_running(parts, job_id)
    else:
        require_waiting(row)
        forecasts = await (
            parts.forecaster.ahead(arrivals=True) if arrivals else parts.forecaster.of_job(job_id)
        )
        if forecasts is None:
            raise CallRefused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "when jobs start is still being found out; ask again in a while",
                headers={"Retry-After": "5"},
            )
        answer = forecast_answer(forecasts, job_id)
    if answer is None:
        raise CallRefused(HTTPStatus.CONFLICT, f"job {job_id} has just changed: ask again")
    return answer


@router.post("/what-if")
async def what_if(body: WhatIfRequest, caller: AnyCaller, parts: Parts) -> WhatIfAnswer:
    """When a job should start if it asked for something else, or were submitted."""
    if (body.job is None) is (body.job_id is None):
        raise CallRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "is there and `job` too, or neither is",
            field="job_id",
            expected="one of the two",
        )
    changes = {"cpus": body.cpus, "requested_time": body.requested_time}
    given = {name: value for name, value in changes.items() if value is not None}
    picture = await current_picture(parts)
    now: ForecastAnswer | None = None
    if body.job_id is not None:
        row = await asyncio.to_thread(own_job, parts, caller, body.job_id)
        require_waiting(row)
        command = CommandJob.from_json(row["command"])
        asked = JobRequest.model_validate({**command.record(), **given})
        submitted = row["submit_seconds"]
        now = forecast_answer(await parts.forecaster.ahead(arrivals=body.arrivals), command.job_id)
    else:
        assert body.job is not None
        asked = body.job.model_copy(update=given)
        submitted = picture.unix_seconds
    user = caller.user if body.job_id is None else row["user"]
    checks = JobChecks(
        user, ClusterLimits(picture.cluster), account=parts.served.other_account(user)
    )
    command = await asyncio.to_thread(checks.job, asked)
    command = replace(command, job_id=body.job_id or _ASKED)
    if body.submitted_in is not None:
        submitted = parts.now() + body.submitted_in
    job = command.specification(submitted)
    forecasts = await parts.forecaster.with_others([job], arrivals=body.arrivals)
    then = forecast_answer(forecasts, job.job_id)
    assert then is not None
    return WhatIfAnswer(now=now, then=then)


@router.get("/jobs/{job_id}/suggested-request")
async def suggest(
    job_id: JobId,
    caller: AnyCaller,
    parts: Parts,
    risk: Annotated[float, Query(gt=0.0, lt=1.0)] = 0.05,
) -> SuggestedRequestAnswer:
    """How long to ask for so that the job needs longer with this probability at most."""
    row = await asyncio.to_thread(own_job, parts, caller, job_id)
    require_waiting(row)
    pending = await parts.gallery.ask(lambda controller, _: controller.state.pending_job(job_id))
    if pending is None:
        raise CallRefused(HTTPStatus.CONFLICT, f"job {job_id} has just started")
    seconds, requested = suggested_request(pending, risk), pending.job.requested_seconds
    return SuggestedRequestAnswer(
        job_id=job_id,
        risk=risk,
        requested_seconds=None if math.isinf(seconds) else seconds,
        requested_now_seconds=requested,
        risk_now=None if requested is None else float(pending.prediction.survival(requested)),
    )


@router.get("/predictions")
async def predictions(caller: AnyCaller, parts: Parts) -> PredictionsAnswer:  # noqa: ARG001
    """How good what was told has been: runtimes as believed, starts as forecast."""
    return PredictionsAnswer(
        runtimes=_judged(await parts.overview.judged_runtimes.get()),
        starts=_judged(await parts.overview.judged_starts.get()),
    )


def forecast_answer(forecasts: Forecasts, job_id: str) -> ForecastAnswer | None:
    """What was expected of a job that waited; None if it did not."""
    found: WaitingForecast | None = forecasts.waiting.get(job_id)
    if found is None:
        return None
    return ForecastAnswer(
        job_id=job_id,
        made_seconds=forecasts.outlook.now,
        start=RangeAnswer.of(found.start),
        end=RangeAnswer.of(found.end),
        never=found.never,
        misses=found.misses,
    )


async def _of_running(parts: ServiceParts, job_id: str) -> ForecastAnswer | None:
    running = await parts.gallery.ask(lambda controller, _: controller.running.get(job_id))
    if running is None:
        return None
    now = parts.now()
    found = forecast_running(running, now)
    return ForecastAnswer(
        job_id=job_id,
        made_seconds=now,
        end=RangeAnswer.of(found.end),
        overruns=found.overruns,
        misses=found.misses,
    )


def require_waiting(row: Row) -> None:
    """Refuse to look ahead for a job that runs or has ended."""
    if row["state"] not in ("pending", "held"):
        raise CallRefused(
            HTTPStatus.CONFLICT,
            f"job {row['job_id']} is {row['state']}",
            expected="a job that waits",
        )


def _judged(judged: Judged) -> JudgedAnswer:
    told = judged.told
    above = told - judged.within - judged.below
    return JudgedAnswer(
        told=told,
        within=judged.within / told if told else None,
        below=judged.below / told if told else None,
        above=above / told if told else None,
    )
