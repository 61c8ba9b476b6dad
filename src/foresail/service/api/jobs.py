"""Questions about jobs: submit, list, show, cancel, what happened, what was written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Query, Response
from pydantic import StringConstraints

from foresail.explain.forecast import Range
from foresail.explain.story import story
from foresail.live.accounts import log_is_cut, read_log
from foresail.live.command_job import CommandJob
from foresail.model.words import LEFT_TO
from foresail.record.log_text import parse_record
from foresail.service.api import answers, submissions
from foresail.service.api.callers import (
    AnyCaller,
    Caller,
    OwnJob,
    Parts,
    Submitter,
    current_snapshot,
    jobs_meant,
    jobs_next_first,
    no_such_job,
    own_job_soon,
)
from foresail.service.api.forecasts import forecast_answer
from foresail.service.api.problems import CallRefused, api_router
from foresail.service.parts import ServiceParts
from foresail.service.queue_forecasts import Forecasts
from foresail.service.snapshots import ClusterSnapshot
from foresail.service.store.protocol import Command, CommandRequest, JobsWanted, Row, Submit

router: Final = api_router("jobs")

_STATES_FOR: Final = {
    Command.CANCEL: ("pending", "held", "running"),
    Command.HOLD: ("pending", "held"),
    Command.RELEASE: ("held",),
}
_CLUSTER_SECONDS: Final = 5.0
"""Age up to which former nodes decide whether a job can ever run."""

_PATIENCE_SECONDS: Final = 1.0
_LIST_PATIENCE_SECONDS: Final = 0.02
"""Times that forecasts in the making are waited for, of one job and of a page of them."""

_FEW: Final = 64
"""Reasons of more jobs are put into words beside other calls, not before them."""

_MOST_MEANT: Final = 30_000
_MOST_LOG_BYTES: Final = 1_000_000
_Number = Annotated[int, Query(ge=0, le=2**62)]


@router.post("/jobs", status_code=201, responses={200: {"model": answers.SubmittedAnswer}})
async def submit(
    body: submissions.JobsBody,
    caller: Submitter,
    parts: Parts,
    response: Response,
    idempotency_key: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=200)] | None, Header()
    ] = None,
) -> answers.SubmittedAnswer:
    """Submit one job or several, all or none; answered once they are durable."""
    if not parts.capabilities.runs_commands:
        raise CallRefused(
            HTTPStatus.CONFLICT,
            f"no job can be submitted here: the cluster {parts.configuration.cluster} runs no "
            "commands of Foresail's",
            expected="jobs that are submitted to the cluster itself, which come from it",
        )
    snapshot = await current_snapshot(parts, _CLUSTER_SECONDS)
    checks = submissions.JobChecks(
        caller.user,
        parts.limits.get(snapshot.cluster, parts.policy()),
        parts.directories,
        account=parts.served.other_account(caller.user),
        sends_mail=bool(parts.configuration.hooks.mail),
    )

    def check() -> submissions.Submission:
        submission = checks.submission(
            body.jobs if isinstance(body, submissions.JobsRequest) else [body],
            lambda each: submissions.still_to_wait_for(
                each, jobs_meant(parts, caller, each.job_ids[0])
            ),
        )
        most = parts.configuration.limits.pending_jobs
        waiting = parts.counts.reserve(caller.user, submission.jobs, most)
        if waiting is not None:
            raise CallRefused(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{waiting:,} jobs of yours wait already",
                expected=f"at most {most:,}",
                headers={"Retry-After": "60"},
            )
        return submission

    is_quick = isinstance(body, submissions.JobRequest) and checks.is_quick(body)
    if is_quick and parts.counts.knows(caller.user):
        submission = check()
    else:
        submission = await asyncio.to_thread(check)
    asked = parts.acceptance.ask(caller.user, submission.requests, idempotency_key)
    accepted = await asyncio.wrap_future(asked)
    if not accepted.is_new:
        response.status_code = HTTPStatus.OK
    jobs = [
        _of_submission(each.request, caller.user, each.unix_seconds)
        for each in accepted.requests
        if isinstance(each.request, Submit)
    ]
    if busy := parts.snapshots.busy_because():
        for job in jobs:
            job.warnings.append(busy)
    return answers.SubmittedAnswer(jobs=jobs)


@router.get("/jobs")
async def list_jobs(
    caller: AnyCaller,
    parts: Parts,
    state: Annotated[list[answers.JobState | Literal["out_of_memory"]] | None, Query()] = None,
    user: Annotated[list[str] | None, Query()] = None,
    name: Annotated[list[str] | None, Query()] = None,
    job: Annotated[list[answers.JobId] | None, Query(description="Ids, also of arrays.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: _Number | None = None,
    after: _Number | None = None,
    order: Annotated[
        Literal["newest", "oldest", "next"],
        Query(description="`next`: those not finished; what runs, then by expected start."),
    ] = "newest",
    *,
    count: Annotated[bool, Query(description="Whether to count how many there are.")] = False,
) -> answers.JobsAnswer:
    """Jobs as they stand, a page of them."""
    users = tuple(user or ())
    if not caller.sees_all:
        if users and caller.user not in users:
            return answers.JobsAnswer(jobs=[], total=0)
        users = (caller.user,)
    wanted = JobsWanted(
        users=users,
        states=tuple(state or ()),
        names=tuple(name or ()),
        job_ids=None if job is None else await asyncio.to_thread(_ids, parts, caller, job),
        before=before,
        after=after,
        limit=limit,
        oldest_first=order == "oldest",
    )
    total = await asyncio.to_thread(parts.store.count, wanted) if count else None
    if order == "next":
        wanted = replace(wanted, after=None, before=None)
        rows, following = await jobs_next_first(parts, wanted, after or 0)
    else:
        rows = await asyncio.to_thread(parts.store.jobs, wanted)
        following = rows[-1]["number"] if len(rows) == limit else None
    answer = await _job_answers(rows, parts, _LIST_PATIENCE_SECONDS)
    return answers.JobsAnswer(jobs=answer, next=following, total=total)


def _ids(parts: ServiceParts, caller: Caller, job_ids: Sequence[str]) -> tuple[str, ...]:
    """The jobs that ids mean, of an array all of its members."""
    meant = [row["job_id"] for each in job_ids for row in jobs_meant(parts, caller, each)]
    if len(meant) > _MOST_MEANT:
        raise CallRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"mean {len(meant):,} jobs",
            field="job",
            expected=f"at most {_MOST_MEANT:,}",
        )
    return tuple(dict.fromkeys(meant))


@router.get("/jobs/{job_id}")
async def show(job_id: answers.JobId, caller: AnyCaller, parts: Parts) -> answers.JobAnswer:
    """A job as it stands, and why it waits."""
    row = await own_job_soon(parts, caller, job_id)
    answer = (await _job_answers([row], parts, _PATIENCE_SECONDS))[0]
    changed: dict[str, Any] = {
        "log_is_cut": log_is_cut(parts.folder.attempts, answer.job_id, answer.attempt)
    }
    snapshot = await parts.snapshots.look() if answer.state == "running" else None
    ends = snapshot and await parts.forecaster.ends(snapshot.running, parts.now())
    ahead = ends.get(answer.job_id) if ends else None
    if ahead is not None and answer.start_seconds is not None:
        moments = ahead.end.low, ahead.end.median, ahead.end.high
        lasts = Range(*(each - answer.start_seconds for each in moments))
        changed["belief"] = answers.RangeAnswer.from_quantiles(lasts)
    return answer.model_copy(update=changed)


async def _job_answers(
    rows: Sequence[Row], parts: ServiceParts, patience_seconds: float
) -> list[answers.JobAnswer]:
    """Jobs as they stand, with why they wait and for how long yet; asked for all at once."""
    waiting = [row["job_id"] for row in rows if _waits(row)]
    now = parts.now()
    if not waiting:
        return [_job(row, None, {}, None, now, "") for row in rows]
    may_start = [row["job_id"] for row in rows if row["state"] == "pending"]
    busy = parts.snapshots.busy_because()
    snapshot, reasons, forecasts = await asyncio.gather(  # they are waited for at once
        parts.snapshots.look(),
        parts.snapshots.reasons(waiting),
        parts.forecaster.latest(may_start, patience_seconds),
    )

    def answer() -> list[answers.JobAnswer]:
        words: dict[int, answers.ReasonAnswer] = {}  # alike jobs share a reason
        if snapshot is not None:
            seen = snapshot.unix_seconds
            several = {id(each): each for each in map(reasons.get, waiting) if each is not None}
            words = {
                key: answers.ReasonAnswer.from_reason(each, seen) for key, each in several.items()
            }
        said = {job_id: words.get(id(reasons.get(job_id))) for job_id in waiting}
        return [_job(row, snapshot, said, forecasts, now, busy) for row in rows]

    return answer() if len(rows) <= _FEW else await asyncio.to_thread(answer)


@router.post("/jobs/cancel", status_code=202)
async def cancel_several(
    body: submissions.JobIdsBody, caller: Submitter, parts: Parts
) -> answers.AskedAnswer:
    """Cancel jobs, all or none; those that have finished are left as they are."""
    return await _command(Command.CANCEL, body.job_ids, caller, parts)


@router.post("/jobs/{job_id}/cancel", status_code=202)
async def cancel(job_id: answers.JobId, caller: Submitter, parts: Parts) -> answers.AskedAnswer:
    """Withdraw a job that waits, stop one that runs; of an array's id, all of its members."""
    return await _command(Command.CANCEL, [job_id], caller, parts)


@router.post("/jobs/{job_id}/hold", status_code=202)
async def hold(job_id: answers.JobId, caller: Submitter, parts: Parts) -> answers.AskedAnswer:
    """Keep a job that waits from starting; of an array's id, all of its members that wait."""
    return await _command(Command.HOLD, [job_id], caller, parts)


@router.post("/jobs/{job_id}/release", status_code=202)
async def release(job_id: answers.JobId, caller: Submitter, parts: Parts) -> answers.AskedAnswer:
    """Let a held job start again; of an array's id, all of its members that are held."""
    return await _command(Command.RELEASE, [job_id], caller, parts)


async def _command(
    command: Command, job_ids: Sequence[str], caller: Caller, parts: ServiceParts
) -> answers.AskedAnswer:
    """Ask for something of jobs, durably; refused where it can be done to none of one's members.

    Answered when it is done, or goes on being done.
    """
    meant: list[str] = []
    for job_id in dict.fromkeys(job_ids):
        rows = await asyncio.to_thread(jobs_meant, parts, caller, job_id)
        if not rows:
            raise no_such_job(job_id)
        able = [row["job_id"] for row in rows if row["state"] in _STATES_FOR[command]]
        if not able:
            raise CallRefused(
                HTTPStatus.CONFLICT,
                f"job {job_id} is {rows[0]['state']}",
                expected="a job that is " + " or ".join(_STATES_FOR[command]),
            )
        if ":" in able[0] and not parts.capabilities.keeps_queue:
            raise CallRefused(
                HTTPStatus.CONFLICT,
                f"job {job_id} is the cluster's own, which hears nothing of this service",
                expected=f"that you {command} it there",
            )
        meant += able
    if command is Command.RELEASE and parts.capabilities.brings_jobs:
        held = await parts.snapshots.ask(lambda controller, _: dict(controller.state.held))
        for job_id in meant:
            if held.get(job_id, "").startswith(LEFT_TO):
                raise CallRefused(HTTPStatus.CONFLICT, f"job {job_id} is left to {held[job_id]}")
    commands = [CommandRequest(command, each) for each in meant]
    asked = parts.acceptance.ask(caller.user, lambda _: commands)
    await parts.snapshots.heard(await asyncio.wrap_future(asked))
    return answers.AskedAnswer(job_ids=meant)


@router.get("/jobs/{job_id}/story")
def job_story(job: OwnJob, parts: Parts) -> answers.StoryAnswer:
    """Return a job's story, in sentences."""
    job_id = job["job_id"]
    found = parts.store.records_about(job)
    records = (parse_record(line, "event log", number) for number, line in found.lines)
    answer = story(records, job_id, knows_others=found.is_complete)
    begin = answer.start_unix_seconds or 0.0
    lines = [
        answers.StoryLineAnswer(unix_seconds=begin + line.time, sentence=line.sentence)
        for line in answer.lines
    ]
    return answers.StoryAnswer(job_id=job_id, lines=lines)


@router.get(
    "/jobs/{job_id}/logs",
    response_class=Response,
    responses={
        200: {
            "content": {"text/plain": {"schema": {"type": "string"}}},
            "headers": {
                "X-Next-Offset": {"schema": {"type": "integer"}, "description": "Where it ends."},
                "X-Ended": {"schema": {"type": "string"}, "description": "Whether that is all."},
            },
        }
    },
)
def job_logs(
    row: OwnJob,
    parts: Parts,
    stream: Literal["out", "err"] = "out",
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_LOG_BYTES)] = 100_000,
) -> Response:
    """Return a job's output from a byte on; refused where it is in a file of the user's."""
    job_id = row["job_id"]
    account = parts.served.other_account(row["user"])
    content = read_log(parts.folder.logs, account, f"{job_id}.{stream}", offset, limit)
    output, errors = CommandJob.from_json(row["command"]).output_paths
    elsewhere = output if stream == "out" else errors or output
    if elsewhere is not None and not (content or offset):
        raise CallRefused(
            HTTPStatus.CONFLICT, f"job {job_id} writes to {elsewhere}, by its own wish: look there"
        )
    is_done = row["end_seconds"] is not None and len(content) < limit
    headers = {
        "X-Next-Offset": str(offset + len(content)),
        "X-Ended": "true" if is_done else "false",
    }
    text = content.decode(errors="replace")
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)


_AS_STORED: Final = (
    *("job_id", "user", "state", "submit_seconds", "start_seconds", "end_seconds"),
    *("attempt", "exit_code", "places", "because"),
)
_AS_ASKED: Final = (
    *("name", "cpus", "directory", "after", "begin_seconds", "most_at_once"),
    *("requested_seconds", "memory_bytes", "tasks", "gpus", "warnings", "number"),
)


def _of_submission(request: Submit, user: str, unix_seconds: float) -> answers.JobAnswer:
    state = "held" if request.held else "pending"
    answer = {"job_id": request.job.job_id, "user": user, "state": state, "attempt": 0}
    answer |= {"submit_seconds": unix_seconds, "belief": None}
    return answers.JobAnswer(
        **{**dict.fromkeys(_AS_STORED), **answer, **_of_command(request.job, unix_seconds)}
    )


def _of_command(job: CommandJob, submit_seconds: float) -> dict[str, Any]:
    output, errors = job.output_paths
    deadline = job.deadline_seconds
    return {name: getattr(job, name) for name in _AS_ASKED} | {
        "command": job.text,
        "dependencies": job.waits_for,
        "output": output,
        "errors": errors,
        "deadline_seconds": None if deadline is None else submit_seconds + deadline,
    }


def _waits(row: Row) -> bool:
    return row["state"] in ("pending", "held")


def _job(
    row: Row,
    snapshot: ClusterSnapshot | None,
    reasons: Mapping[str, answers.ReasonAnswer | None],
    forecasts: Forecasts | None,
    now: float,
    busy: str,
) -> answers.JobAnswer:
    """Return a job as it stands; ``busy`` is why the daemon starts nothing now, if it does not."""
    job_id, ahead = row["job_id"], dict[str, Any]()
    believed = tuple(row[f"{which}_seconds"] for which in ("low", "median", "high"))
    stated = None if believed[1] is None else answers.RangeAnswer.from_quantiles(Range(*believed))
    if forecasts is not None and _waits(row):
        ahead["forecast"] = forecast = forecast_answer(forecasts, job_id)
        stated = stated if forecast is None else forecast.runtime or stated
    if snapshot is not None and _waits(row):
        ahead["reason"] = reasons.get(job_id)
        ahead["planned_start_seconds"] = snapshot.plan.get(job_id)
    asked = _of_command(CommandJob.from_json(row["command"]), row["submit_seconds"])
    if busy and row["state"] == "pending":
        asked["warnings"] = (*asked["warnings"], busy)
    return answers.JobAnswer(
        **{name: row[name] for name in _AS_STORED}, **asked, **ahead, belief=stated, now_seconds=now
    )
