"""Why a job waits: its place, what runs, what goes before it, the odds, and what would help."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from foresail.control.loop import Controller
from foresail.explain.forecast import LEVELS, Range, suggested_request
from foresail.explain.outlook import QueuedJob
from foresail.live.command_job import CommandJob
from foresail.model.reason import Reason, ReasonCode
from foresail.model.view import PendingJob
from foresail.model.words import count, duration, from_now
from foresail.service.api.answers import HelpAnswer, JobId, RangeAnswer, WaitAnswer
from foresail.service.api.callers import AnyCaller, Parts
from foresail.service.api.forecasts import forecast_answer, require_waiting
from foresail.service.api.jobs import reason_answer
from foresail.service.api.lookup import current_picture, own_job
from foresail.service.api.plan import running_bars, seen_by, waiting_bar
from foresail.service.api.problems import api_router
from foresail.service.forecasts import Forecasts
from foresail.service.parts import ServiceParts

router: Final = api_router("jobs")

_MOST_ROWS: Final = 20
_MOST_WAITING: Final = 1_000
"""With more that wait, forecasts are those drawn last, and what would help is not tried."""

_RISK: Final = 0.05
"""How probably a job may need longer than a time that it is told to ask for."""

_WORTH_SECONDS: Final = 30.0
_WORTH_SHARE: Final = 0.1
"""By how much earlier a job must start for something to help, at least: both hold."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """How a job stands, as the daemon sees it, and which others may start."""

    pending: PendingJob | None
    reason: Reason | None
    startable: frozenset[str]
    has_order: bool
    """Whether the policy has an order of its own."""


@router.get("/jobs/{job_id}/wait")
async def wait(job_id: JobId, caller: AnyCaller, parts: Parts) -> WaitAnswer:
    """Why a job waits, its place in the queue, and what would help; others' jobs nameless."""
    row = await asyncio.to_thread(own_job, parts, caller, job_id)
    require_waiting(row)

    def stands(controller: Controller, _: object) -> _Standing:
        state = controller.state
        reason = controller.reasons_of([job_id]).get(job_id)
        pending = state.pending_job(job_id)
        has_order = controller.orders_queue is not None
        return _Standing(pending, reason, frozenset(state.startable), has_order)

    picture = await current_picture(parts)
    standing = await parts.gallery.ask(stands)
    forecasts: Forecasts | None
    if len(standing.startable) > _MOST_WAITING:
        forecasts = await parts.forecaster.of_job(job_id)
    else:
        forecasts = await parts.forecaster.ahead(arrivals=False)
    queue = [] if forecasts is None else await asyncio.to_thread(_queue, forecasts, standing)
    ids = [each.pending.job.job_id for each in queue]
    place = ids.index(job_id) if job_id in ids else None
    bars = [seen_by(caller, each) for each in running_bars(picture, parts.now())]
    bars.sort(key=lambda each: each.end.p50 or math.inf)
    before = [] if forecasts is None or place is None else queue[: min(place, _MOST_ROWS)]
    reason = standing.reason
    free = sum(room.cpus for room in picture.free.values())
    command, belief = CommandJob.from_json(row["command"]), None
    if standing.pending is not None:  # as the daemon knows it, be that in the store or not yet
        told = (standing.pending.prediction.quantile(level) for level in LEVELS)
        belief = RangeAnswer.of(Range(*told))
    return WaitAnswer(
        job_id=job_id,
        now_seconds=parts.now(),
        reason=reason_answer(reason, picture),
        place=None if place is None else place + 1,
        pending=len(standing.startable),
        running=bars[:_MOST_ROWS],
        running_in_all=len(bars),
        before=[
            seen_by(caller, waiting_bar(each.pending.job, forecasts.waiting[job]))
            for each, job in zip(before, ids, strict=False)
            if forecasts is not None
        ],
        forecast=None if forecasts is None else forecast_answer(forecasts, job_id),
        belief=belief,
        requested_seconds=command.requested_seconds,
        helps=[
            *_plain_helps(job_id, reason),
            *await _tried_helps(parts, command, standing, forecasts, int(free)),
        ],
    )


def _queue(forecasts: Forecasts, standing: _Standing) -> list[QueuedJob]:
    """What may start, in the policy's own order; where it has none, by expected start."""
    now, known = forecasts.outlook.now, forecasts.waiting
    able = [
        each
        for each in forecasts.outlook.waiting
        if (job_id := each.pending.job.job_id) in standing.startable and job_id in known
    ]
    if standing.has_order:
        able.sort(key=lambda each: (each.due_seconds > now, each.place, each.pending.arrival))
    else:
        able.sort(key=lambda each: known[each.pending.job.job_id].start.median)
    return able


def _plain_helps(job_id: str, reason: Reason | None) -> Iterator[HelpAnswer]:
    """What helps without a doubt."""
    match reason:
        case Reason(ReasonCode.HELD):
            yield HelpAnswer(sentence=f"release it: foresail release {job_id}")
        case Reason(ReasonCode.TOO_WIDE, {"cpus": float(cpus), "total": float(total)}) if (
            cpus > total
        ):
            yield HelpAnswer(
                sentence=f"ask for at most {count(total, 'cpu')}: as it is, it never starts",
                cpus=int(total),
            )


async def _tried_helps(
    parts: ServiceParts,
    command: CommandJob,
    standing: _Standing,
    forecasts: Forecasts | None,
    free: int,
) -> list[HelpAnswer]:
    """What lets it start earlier by the odds: asking for fewer cpus, or for a shorter time."""
    pending, job_id = standing.pending, command.job_id
    if pending is None or job_id not in standing.startable or command.strl is not None:
        return []
    now = None if forecasts is None else forecasts.waiting.get(job_id)
    if now is None or len(standing.startable) > _MOST_WAITING:
        return []
    helps = []
    for words, changed in (*_fewer_cpus(command, free), *_shorter(command, pending)):
        asked = [changed.specification(pending.job.submit_seconds)]
        otherwise = await parts.forecaster.with_others(asked, arrivals=False)
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
            HelpAnswer(
                sentence=f"{words}: it should start {from_now(then - moment)} rather than {before}",
                cpus=changed.cpus if changed.cpus != command.cpus else None,
                requested_seconds=None
                if changed.requested_seconds == command.requested_seconds
                else changed.requested_seconds,
            )
        )
    return helps


def _fewer_cpus(command: CommandJob, free: int) -> Iterator[tuple[str, CommandJob]]:
    """As many as are free, or half of what it asks for; of several tasks, whole ones."""
    each = 1 if command.tasks == 1 else command.cpus // command.tasks
    most = free if 0 < free < command.cpus else command.cpus // 2
    cpus = most // each * each
    if cpus:
        changed = replace(command, cpus=cpus, tasks=min(command.tasks, cpus // each))
        yield f"ask for {count(cpus, 'cpu')} instead of {command.cpus}", changed


def _shorter(command: CommandJob, pending: PendingJob) -> Iterator[tuple[str, CommandJob]]:
    """The time that it hardly ever outlives, in whole minutes."""
    seconds, asked = suggested_request(pending, _RISK), command.requested_seconds
    if math.isinf(seconds):
        return
    minutes = 60.0 * math.ceil(seconds / 60.0)
    if asked is None or minutes < asked:
        instead = "none" if asked is None else duration(asked)
        words = f"ask for a time limit of {duration(minutes)} instead of {instead}"
        yield words, replace(command, requested_seconds=minutes)
