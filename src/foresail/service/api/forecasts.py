"""Questions about the future: when jobs start and end, why they wait, what if, what to ask."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Final

import numpy as np
from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from foresail.control.loop import Controller
from foresail.explain.start_words import UNKNOWN, chance_by, range_words
from foresail.live.command_job import CommandJob
from foresail.model.decision import Reason, ReasonCode
from foresail.model.job import Job
from foresail.model.view import PendingJob
from foresail.model.words import LEFT_TO, count, duration, from_now, percent
from foresail.service.api import answers, callers
from foresail.service.api.problems import CallRefused, api_router
from foresail.service.api.service import running_bar, seen_by, waiting_bar
from foresail.service.api.submissions import JobChecks, JobRequest
from foresail.service.parts import ClusterLimits, ServiceParts
from foresail.service.queue_forecasts import Forecasts
from foresail.service.store.protocol import HORIZONS_SECONDS, Judged, Row

router: Final = api_router("forecasts")

_ASKED: Final = "what-if"
"""The id of a job that is only asked about."""

_LEAST_RISK: Final = 0.001
"""Less is not known from so many draws."""

_Arrivals = Annotated[
    bool, Query(description="Whether jobs are expected to come as they came before.")
]
_Before = Annotated[
    float | None, Query(description="Moment (Unix seconds) that it should have started before.")
]


class WhatIfRequest(BaseModel):
    """A job that waits and what would be changed of it, or one that is not submitted."""

    model_config = ConfigDict(extra="forbid", strict=True)

    job_id: answers.JobId | None = Field(None, description="A job that waits; without, a new one.")
    job: JobRequest | None = Field(None, description="A job that is not submitted.")
    cpus: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    requested_time: str | Annotated[float, Field(gt=0, le=1e9)] | None = None
    submitted_in: Annotated[float, Field(ge=0, le=1e9)] | None = Field(
        None, description="As if it came so many seconds from now."
    )
    arrivals: bool = True
    before: float | None = Field(
        None, description="Moment (Unix seconds) that it should have started before."
    )


@router.get("/jobs/{job_id}/forecast")
async def forecast(
    row: callers.OwnJob, parts: callers.Parts, *, arrivals: _Arrivals = True, before: _Before = None
) -> answers.ForecastAnswer:
    """Forecast when a job starts and ends."""
    job_id = row["job_id"]
    if row["state"] == "running":
        answer = await _of_running(parts, job_id)
    else:
        _require_waiting(row)
        forecasts = await (
            parts.forecaster.of_job(job_id) if arrivals else parts.forecaster.ahead(arrivals=False)
        )
        if forecasts is None:
            raise CallRefused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "when jobs start is still being found out; ask again in a while",
                headers={"Retry-After": "5"},
            )
        answer = forecast_answer(forecasts, job_id, before)
    if answer is None:
        raise CallRefused(HTTPStatus.CONFLICT, f"job {job_id} has just changed: ask again")
    return answer


@router.post("/what-if")
async def what_if(
    body: WhatIfRequest, caller: callers.AnyCaller, parts: callers.Parts
) -> answers.WhatIfAnswer:
    """Forecast a job's start if it asked for something else, or were submitted."""
    if (body.job is None) is (body.job_id is None):
        raise CallRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "is there and `job` too, or neither is",
            field="job_id",
            expected="one of the two",
        )
    changes = {"cpus": body.cpus, "requested_time": body.requested_time}
    given = {name: value for name, value in changes.items() if value is not None}
    snapshot = await callers.current_snapshot(parts)
    now: answers.ForecastAnswer | None = None
    known: Job | None = None
    if body.job_id is not None:
        row = await asyncio.to_thread(callers.own_job, parts, caller, body.job_id)
        known = (await _pending(parts, row)).job
        command = CommandJob.from_json(row["command"])
        unknown = {} if command.text else {"command": "-"}  # what a cluster's job runs
        asked = JobRequest.model_validate({**command.record(), **unknown, **given})
        limit = command.requested_seconds
        submitted = row["submit_seconds"]
        ahead = await parts.forecaster.ahead(arrivals=body.arrivals)
        now = forecast_answer(ahead, command.job_id, body.before)
    else:
        assert body.job is not None
        asked = body.job.model_copy(update=given)
        submitted = snapshot.unix_seconds
    user = caller.user if body.job_id is None else row["user"]
    limits, account = ClusterLimits(snapshot.cluster), parts.served.other_account(user)
    checks = JobChecks(user, limits, parts.directories, account=account)
    if body.job is not None:
        limit = (await asyncio.to_thread(checks.job, body.job)).requested_seconds
    command = await asyncio.to_thread(checks.job, asked)
    command = replace(command, job_id=_ASKED if known is None else known.job_id)
    if body.submitted_in is not None:
        submitted = parts.now() + body.submitted_in
    job = command.specification(submitted)
    job = job if known is None else _as_known(job, known)
    known_as = replace(job, requested_seconds=limit)  # it needs as long as it would have
    forecasts = await parts.forecaster.ahead(
        [job], arrivals=body.arrivals, alike={job.job_id: known_as}
    )
    then = forecast_answer(forecasts, job.job_id, body.before)
    assert then is not None
    if job.requested_seconds is not None and then.never != 1.0:
        needed = await parts.forecaster.needed_seconds(known_as, snapshot.unix_seconds)
        overruns = float((needed >= job.requested_seconds).mean())
        then = then.model_copy(update={"overruns": overruns})
    return answers.WhatIfAnswer(now=now, then=then)


@router.get("/jobs/{job_id}/suggested-request")
async def suggest(
    row: callers.OwnJob,
    parts: callers.Parts,
    risk: Annotated[float, Query(ge=_LEAST_RISK, lt=1.0)] = 0.05,
) -> answers.SuggestedRequestAnswer:
    """Suggest the time to ask for so that the job needs longer with this probability at most."""
    pending = await _pending(parts, row)
    needed = await parts.forecaster.needed_seconds(pending.job, parts.now())
    requested = pending.job.requested_seconds
    return answers.SuggestedRequestAnswer(
        job_id=row["job_id"],
        risk=risk,
        requested_seconds=float(np.quantile(needed, 1.0 - risk)),
        requested_now_seconds=requested,
        risk_now=None if requested is None else float((needed >= requested).mean()),
    )


@router.get("/predictions")
async def predictions(caller: callers.AnyCaller, parts: callers.Parts) -> answers.PredictionsAnswer:  # noqa: ARG001
    """Return how good past predictions were: runtimes as believed, starts as forecast."""
    starts, by_horizon = await parts.overview.judged_starts.get()
    return answers.PredictionsAnswer(
        runtimes=answers.JudgedAnswer(**_judged(await parts.overview.judged_runtimes.get())),
        starts=answers.JudgedAnswer(**_judged(starts)),
        ends=answers.JudgedAnswer(**_judged(await parts.overview.judged_ends.get())),
        starts_by_horizon=[
            answers.HorizonAnswer(**_judged(each), below_seconds=None if math.isinf(most) else most)
            for most, each in zip(HORIZONS_SECONDS, by_horizon, strict=True)
        ],
    )


async def _pending(parts: ServiceParts, row: Row) -> PendingJob:
    """Return a job that waits, as the daemon has it; raises ``CallRefused`` if it does not."""
    _require_waiting(row)
    job_id = row["job_id"]
    pending = await parts.snapshots.ask(lambda controller, _: controller.state.pending_job(job_id))
    if pending is None:
        raise CallRefused(HTTPStatus.CONFLICT, f"job {job_id} has just started")
    return pending


def _as_known(job: Job, known: Job) -> Job:
    """The job as one that predictors, and partitions, know as another."""
    return replace(
        job,
        user=known.user,
        group=known.group,
        queue=known.queue,
        partition=known.partition,
        attributes=known.attributes,
    )


_WIDE: Final = 0.2
"""Share of the wait that a range is wide whose cause is said."""


def forecast_answer(
    forecasts: Forecasts, job_id: str, before: float | None = None
) -> answers.ForecastAnswer | None:
    """Return the forecast for a job that waited (by a moment, too); None if it did not."""
    found = forecasts.waiting.get(job_id)
    if found is None:
        return None
    now, is_known = forecasts.outlook.now, job_id not in forecasts.unknown
    start = answers.RangeAnswer.from_quantiles(found.start)
    doubt = forecasts.doubt(found.start)
    return answers.ForecastAnswer(
        job_id=job_id,
        made_seconds=now,
        sentence=f"starts {range_words(start.model_dump(), now)}" if is_known else UNKNOWN,
        is_known=is_known,
        held=doubt,
        remarks=[*_remarks(forecasts, job_id, doubt)] if is_known else [],
        chances=_chances(start, found.never, now, before) if is_known else None,
        start=start,
        end=answers.RangeAnswer.from_quantiles(found.end),
        runtime=None
        if math.isinf(found.runtime.median)
        else answers.RangeAnswer.from_quantiles(found.runtime),
        never=found.never,
        misses=found.misses,
    )


def _chances(
    start: answers.RangeAnswer, never: float, now: float, before: float | None
) -> answers.ChancesAnswer:
    moments = start.model_dump()
    today = time.localtime(now)
    midnight = time.mktime((*today[:2], today[2] + 1, 0, 0, 0, 0, 0, -1))
    chances = [
        round(chance_by(moments, never, now, moment), 3)
        for moment in (now + 3_600.0, midnight, math.inf if before is None else before)
    ]
    return answers.ChancesAnswer(
        within_hour=chances[0], today=chances[1], before=None if before is None else chances[2]
    )


def _remarks(forecasts: Forecasts, job_id: str, doubt: float | None) -> Iterator[str]:
    """Yield what makes a range wide, and how far it can be relied on."""
    now, start = forecasts.outlook.now, forecasts.waiting[job_id].start
    if math.isinf(start.median):
        return
    cause, job = forecasts.cause(job_id), forecasts.soonest[job_id]
    if cause is not None and start.high - start.low > _WIDE * (start.median - now):
        is_own = (cause.user or "").partition("/")[0] == (job.user or "").partition("/")[0]
        whose = f"job {cause.job_id}" if is_own else "another user's job"
        yield f"mostly: how long {whose} runs"
    if doubt is not None:
        yield (
            f"of the last starts that were forecast so far ahead only {percent(doubt)} were within "
            "their range"
        )
    if forecasts.stand_in is not None:
        yield f"may be off ({forecasts.stood_in.sentence}): {forecasts.stand_in}"


async def _of_running(parts: ServiceParts, job_id: str) -> answers.ForecastAnswer | None:
    snapshot, now = await callers.current_snapshot(parts), parts.now()
    found = (await parts.forecaster.ends(snapshot.running, now)).get(job_id)
    if found is None:
        return None
    end = answers.RangeAnswer.from_quantiles(found.end)
    return answers.ForecastAnswer(
        job_id=job_id,
        made_seconds=now,
        sentence=f"ends {range_words(end.model_dump(), now)}",
        end=end,
        overruns=found.overruns,
        misses=found.misses,
    )


def _require_waiting(row: Row) -> None:
    """Refuse to look ahead for a job that runs or has ended."""
    if row["state"] not in ("pending", "held"):
        raise CallRefused(
            HTTPStatus.CONFLICT,
            f"job {row['job_id']} is {row['state']}",
            expected="a job that waits",
        )


def _judged(judged: Judged) -> dict[str, Any]:
    """Return the fields of ``JudgedAnswer``."""
    made = judged.made
    counts = {"within": judged.within, "below": judged.below}
    counts["above"] = made - judged.within - judged.below
    return {"told": made} | {name: each / made if made else None for name, each in counts.items()}


_MOST_ROWS: Final = 20
_MOST_WAITING: Final = 1_000
"""With more that wait, forecasts are those drawn last, and what would help is not tried."""

_RISK: Final = 0.05
"""Probability with which a job may need longer than the time that is suggested."""

_WORTH_SECONDS: Final = 30.0
_WORTH_SHARE: Final = 0.1
"""Least time and share by which a job must start earlier for something to help: both hold."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """Standing of a job, as the daemon sees it, and which others may start."""

    pending: PendingJob | None
    reason: Reason | None
    startable: frozenset[str]
    has_order: bool
    """True if the policy has an order of its own."""


@router.get("/jobs/{job_id}/wait")
async def wait(
    row: callers.OwnJob, caller: callers.AnyCaller, parts: callers.Parts
) -> answers.WaitAnswer:
    """Explain a wait: place in the queue, and what would help; others' jobs nameless."""
    job_id = row["job_id"]
    _require_waiting(row)

    def stands(controller: Controller, _: object) -> _Standing:
        state = controller.state
        reason = controller.reasons_of([job_id]).get(job_id)
        pending = state.pending_job(job_id)
        has_order = controller.scheduler.backfills is not None
        return _Standing(pending, reason, frozenset(state.startable), has_order)

    snapshot = await callers.current_snapshot(parts)
    standing = await parts.snapshots.ask(stands)
    forecasts = await parts.forecaster.of_job(job_id)
    queue = [] if forecasts is None else await asyncio.to_thread(_queue, forecasts, standing)
    place = next((at for at, job in enumerate(queue) if job.job_id == job_id), None)
    ends = await parts.forecaster.ends(snapshot.running, parts.now())
    runs = sorted(snapshot.running, key=lambda each: ends[each.job.job_id].end.median)
    before = [] if forecasts is None or place is None else queue[: min(place, _MOST_ROWS)]
    reason = standing.reason
    ahead = None if forecasts is None else forecast_answer(forecasts, job_id)
    free = sum(room.cpus for room in snapshot.free.values())
    command, enough = CommandJob.from_json(row["command"]), math.inf
    if standing.pending is not None:
        needed = await parts.forecaster.needed_seconds(standing.pending.job, parts.now())
        enough = float(np.quantile(needed, 1.0 - _RISK))
    return answers.WaitAnswer(
        job_id=job_id,
        now_seconds=parts.now(),
        reason=None
        if reason is None
        else answers.ReasonAnswer.from_reason(reason, snapshot.unix_seconds),
        place=None if place is None else place + 1,
        pending=len(standing.startable),
        running=[
            seen_by(caller, running_bar(each, ends[each.job.job_id])) for each in runs[:_MOST_ROWS]
        ],
        running_in_all=len(runs),
        before=[
            seen_by(caller, waiting_bar(forecasts, each))
            for each in before
            if forecasts is not None
        ],
        forecast=ahead,
        belief=None if ahead is None else ahead.runtime,
        requested_seconds=command.requested_seconds,
        helps=[
            *_plain_helps(job_id, reason),
            *await _tried_helps(parts, command, standing, forecasts, int(free), enough),
        ],
    )


def _queue(forecasts: Forecasts, standing: _Standing) -> list[Job]:
    """Return what may start, in the policy's own order; where it has none, by expected start."""
    waiting, known = forecasts.outlook.waiting, forecasts.waiting
    if standing.has_order:
        is_due = waiting.due <= forecasts.outlook.now
        order = np.lexsort((waiting.jobs.table["arrival"], waiting.place, ~is_due))
    else:
        order = np.argsort(known.starts[1, : len(waiting)], kind="stable")
    jobs = (waiting.jobs.pending[at].job for at in order.tolist())
    return [job for job in jobs if job.job_id in standing.startable]


def _plain_helps(job_id: str, reason: Reason | None) -> Iterator[answers.HelpAnswer]:
    """Yield what helps without a doubt."""
    match reason:
        case Reason(ReasonCode.HELD, {"by": str(by)}) if not by.startswith(LEFT_TO):
            yield answers.HelpAnswer(sentence=f"release it: foresail release {job_id}")
        case Reason(ReasonCode.TOO_WIDE, {"cpus": float(cpus), "total": float(total)}) if (
            cpus > total
        ):
            yield answers.HelpAnswer(
                sentence=f"ask for at most {count(total, 'cpu')}: as it is, it never starts",
                cpus=int(total),
            )


async def _tried_helps(
    parts: ServiceParts,
    command: CommandJob,
    standing: _Standing,
    forecasts: Forecasts | None,
    free: int,
    enough_seconds: float,
) -> list[answers.HelpAnswer]:
    """Return what lets it start earlier by the odds: fewer cpus, or a shorter time."""
    pending, job_id = standing.pending, command.job_id
    if pending is None or job_id not in standing.startable or command.strl is not None:
        return []
    now = None if forecasts is None else forecasts.waiting.get(job_id)
    if now is None or len(standing.startable) > _MOST_WAITING:
        return []
    helps = []
    for words, changed in (*_fewer_cpus(command, free), *_shorter(command, enough_seconds)):
        specified = changed.specification(pending.job.submit_seconds)
        asked = [_as_known(specified, pending.job)]
        otherwise = await parts.forecaster.ahead(asked)
        if job_id not in otherwise.waiting:  # it has just started
            return []
        then, moment = otherwise.waiting[job_id].start.median, otherwise.outlook.now
        gain = now.start.median - then
        if math.isinf(then) or gain < max(
            _WORTH_SECONDS, _WORTH_SHARE * (now.start.median - moment)
        ):
            continue
        before = "never" if math.isinf(now.start.median) else from_now(now.start.median - moment)
        helps.append(
            answers.HelpAnswer(
                sentence=f"{words}: it should start {from_now(then - moment)} rather than {before}",
                cpus=changed.cpus if changed.cpus != command.cpus else None,
                requested_seconds=None
                if changed.requested_seconds == command.requested_seconds
                else changed.requested_seconds,
            )
        )
    return helps


def _fewer_cpus(command: CommandJob, free: int) -> Iterator[tuple[str, CommandJob]]:
    """Yield the job with the cpus that are free, or half; of several tasks, whole ones."""
    each = 1 if command.tasks == 1 else command.cpus // command.tasks
    most = free if 0 < free < command.cpus else command.cpus // 2
    cpus = most // each * each
    if cpus:
        changed = replace(command, cpus=cpus, tasks=min(command.tasks, cpus // each))
        yield f"ask for {count(cpus, 'cpu')} instead of {command.cpus}", changed


def _shorter(command: CommandJob, seconds: float) -> Iterator[tuple[str, CommandJob]]:
    """The time that it hardly ever outlives, in whole minutes."""
    asked, minutes = command.requested_seconds, 60.0 * math.ceil(seconds / 60.0)
    if asked is None or minutes < asked:
        instead = "none" if asked is None else duration(asked)
        words = f"ask for a time limit of {duration(minutes)} instead of {instead}"
        yield words, replace(command, requested_seconds=minutes)
