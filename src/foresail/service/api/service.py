"""Questions about the service: cluster, use, plan, who asks, tokens, audit, health, metrics."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from foresail import __version__
from foresail.explain.forecast import Range, RunningForecast, WaitingForecast
from foresail.model.cluster import Partition, Resources
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.service.api import answers
from foresail.service.api.callers import (
    Admin,
    AnyCaller,
    Caller,
    Operator,
    Parts,
    caller_of,
    current_snapshot,
)
from foresail.service.api.problems import CallRefused, api_router
from foresail.service.parts import ServiceParts
from foresail.service.queue_forecasts import Forecasts
from foresail.service.slow_answers import FRESH_SECONDS, Overview
from foresail.service.snapshots import ClusterSnapshot, DaemonBusy
from foresail.service.store.protocol import Command, CommandRequest, JobsWanted
from foresail.service.tokens import AccessToken, Role

router: Final = api_router("service")
unversioned: Final = api_router("service", prefix="")


NodeName = Annotated[str, Field(min_length=1, max_length=255)]


class TokenRequest(BaseModel):
    """A token to create."""

    model_config = ConfigDict(extra="forbid", strict=True)

    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}$")]
    role: Literal["read-only", "user", "operator", "admin"] = "user"
    label: Annotated[str, Field(max_length=200)] = ""
    lifetime_seconds: Annotated[float, Field(gt=0, le=1e10, allow_inf_nan=False)] | None = None


class PolicyRequest(BaseModel):
    """The policy to go over to; without one, that of the configuration file, read anew."""

    model_config = ConfigDict(extra="forbid", strict=True)

    policy: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None


@router.get("/health")
async def health(parts: Parts) -> answers.HealthAnswer:
    """Return whether the service works; needs no token."""
    condition = parts.condition()
    if condition.problems:
        raise CallRefused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "; ".join(condition.problems),
            headers={"Retry-After": "1"},
        )
    return answers.HealthAnswer(version=__version__, remarks=list(condition.remarks))


@router.get("/whoami")
async def whoami(caller: AnyCaller, parts: Parts) -> answers.WhoamiAnswer:
    """Return who asks, and what that may do."""
    token = caller.token
    return answers.WhoamiAnswer(
        user=caller.user,
        role=str(caller.role),
        token_id=None if token is None else token.token_id,
        expires_seconds=None if token is None else token.expires_seconds,
        remarks=list(parts.served.remarks),
    )


@router.get("/cluster")
async def cluster(caller: AnyCaller, parts: Parts) -> answers.ClusterAnswer:  # noqa: ARG001
    """Return the resources of the cluster, and how they are used now."""
    snapshot = await current_snapshot(parts)
    counts = await parts.overview.by_state.get()
    return answers.ClusterAnswer(
        unix_seconds=snapshot.unix_seconds,
        policy=parts.policy(),
        is_draining=snapshot.is_draining,
        **_amounts(snapshot.cluster.total, sum(snapshot.free.values(), Resources())),
        running=len(snapshot.running),
        pending=snapshot.pending,
        jobs_by_state=dict(counts),
        nodes=_nodes(snapshot),
        remarks=list(parts.condition().remarks),
    )


@router.get("/nodes")
async def nodes(caller: AnyCaller, parts: Parts) -> answers.NodesAnswer:  # noqa: ARG001
    """The nodes, and what is free of each."""
    return answers.NodesAnswer(nodes=_nodes(await current_snapshot(parts)))


_Until = Annotated[
    float | None, Query(ge=0, le=1e11, description="When it should be used again (Unix seconds).")
]


@router.post("/nodes/{node}/drain", status_code=202)
async def drain(
    node: NodeName, caller: Operator, parts: Parts, until: _Until = None
) -> answers.NodeAskedAnswer:
    """Let nothing new start on a node; what runs there runs on.

    It is used again when it is resumed: when that should be is only what forecasts reckon with.
    """
    return await _command(CommandRequest(Command.DRAIN, node, until), caller, parts)


@router.post("/nodes/{node}/resume", status_code=202)
async def resume(node: NodeName, caller: Operator, parts: Parts) -> answers.NodeAskedAnswer:
    """Use a node again that was drained."""
    return await _command(CommandRequest(Command.RESUME, node), caller, parts)


async def _command(
    request: CommandRequest, caller: Caller, parts: ServiceParts
) -> answers.NodeAskedAnswer:
    node = request.subject
    snapshot = await current_snapshot(parts)
    if node not in {each.name for each in _nodes(snapshot)}:
        raise CallRefused(HTTPStatus.NOT_FOUND, f"there is no node {node}")
    if parts.capabilities.decides_itself:
        raise CallRefused(
            HTTPStatus.CONFLICT,
            "the cluster starts its jobs itself, and hears nothing of this service",
            expected=f"that you {request.command} {node} there",
        )
    asked = parts.acceptance.ask(caller.user, lambda _: [request])
    await parts.snapshots.heard(await asyncio.wrap_future(asked))
    await asyncio.to_thread(caller.audit, parts, f"node: {request.command}", node)
    return answers.NodeAskedAnswer(node=node)


@router.get("/tokens")
async def tokens(caller: Admin, parts: Parts) -> answers.TokensAnswer:  # noqa: ARG001
    """All tokens there ever were, without their secrets."""
    return answers.TokensAnswer(
        tokens=[answers.TokenAnswer(**_token(each)) for each in parts.tokens.all()]
    )


@router.post("/tokens", status_code=201)
def create_token(body: TokenRequest, caller: AnyCaller, parts: Parts) -> answers.NewTokenAnswer:
    """Create a token; its secret is shown in this answer, and never again.

    That is an admin's to do; an account of this machine, asking without a token, gets its own.
    """
    is_own = caller.token is None and (body.user, body.role) == (caller.user, Role.USER)
    if caller.role is not Role.ADMIN and not is_own:
        raise CallRefused(
            HTTPStatus.FORBIDDEN,
            f"the role {caller.role} may not do this",
            expected="the role admin; or, on this machine, a token for yourself",
        )
    parts.served.account(body.user)
    token, secret = parts.tokens.create(
        body.user, Role(body.role), label=body.label, lifetime_seconds=body.lifetime_seconds
    )
    caller.audit(parts, "token created", token.token_id)
    return answers.NewTokenAnswer(**_token(token), secret=secret)


@router.delete("/tokens/{token_id}")
def revoke_token(
    token_id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")], caller: Admin, parts: Parts
) -> answers.TokenAnswer:
    """Let a token open nothing from now on."""
    token = parts.tokens.revoke(token_id)
    if token is None:
        raise CallRefused(HTTPStatus.NOT_FOUND, "there is no such token")
    caller.audit(parts, "token revoked", token_id)
    return answers.TokenAnswer(**_token(token))


@router.get("/audit")
def audit(
    caller: Admin,  # noqa: ARG001
    parts: Parts,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> answers.AuditAnswer:
    """Return what was done to tokens and policy, and who was refused; newest first."""
    found = parts.tokens.audit(before, limit)
    entries = [answers.AuditEntryAnswer(number=number, **asdict(entry)) for number, entry in found]
    return answers.AuditAnswer(entries=entries, next=found[-1][0] if len(found) == limit else None)


@router.post("/policy")
def change_policy(body: PolicyRequest, caller: Admin, parts: Parts) -> answers.PolicyAnswer:
    """Go over to another policy; one that cannot be used changes nothing."""
    policy = parts.reload(body.policy)
    caller.audit(parts, "policy changed", policy)
    return answers.PolicyAnswer(policy=policy)


def _nodes(snapshot: ClusterSnapshot) -> list[answers.NodeAnswer]:
    """Return the nodes; processors that belong to none are one, called as their partition."""
    return [
        answers.NodeAnswer(
            name=node.name,
            partition=partition.name,
            state=_state(node.name, snapshot),
            until_seconds=snapshot.drained.get(node.name),
            **_amounts(
                node.total,
                snapshot.free.get(node.name, Resources())
                if node is partition
                else _free(node.name, partition.name, snapshot),
            ),
            attributes={} if isinstance(node, Partition) else dict(node.attributes),
        )
        for partition in snapshot.cluster.partitions
        for node in partition.nodes or (partition,)
    ]


def _amounts(total: Resources, free: Resources) -> dict[str, float]:
    """Return amounts as answers name them."""
    names = [each.name for each in fields(Resources)]
    return {name: getattr(total, name) for name in names} | {
        f"free_{name}": getattr(free, name) for name in names
    }


def _free(node: str, partition: str, snapshot: ClusterSnapshot) -> Resources:
    """Return what is free of a node: no more than of its partition, whose jobs name no nodes."""
    nothing = Resources()
    there, in_all = snapshot.free_nodes.get(node, nothing), snapshot.free.get(partition, nothing)
    return Resources(
        max(0.0, min(there.cpus, in_all.cpus)),
        max(0.0, min(there.memory_bytes, in_all.memory_bytes)),
        max(0.0, min(there.gpus, in_all.gpus)),
    )


def _state(node: str, snapshot: ClusterSnapshot) -> Literal["up", "down", "drained"]:
    if node in snapshot.down:
        return "down"
    return "drained" if node in snapshot.drained else "up"


def _token(token: AccessToken) -> dict[str, Any]:
    return {name: value for name, value in asdict(token).items() if name != "digest"}


@router.get("/plan")
async def plan(
    caller: AnyCaller, parts: Parts, most: Annotated[int, Query(ge=1, le=1000)] = 200
) -> answers.PlanAnswer:
    """Return running jobs and expected next starts; other users' jobs nameless."""
    snapshot = await current_snapshot(parts)
    soon = JobsWanted(states=("pending",), limit=most, oldest_first=True)
    rows = await asyncio.to_thread(parts.store.jobs, soon)
    forecasts = await parts.forecaster.latest([row["job_id"] for row in rows])
    shown = snapshot.running[: 5 * most]
    ends = await parts.forecaster.ends(snapshot.running, parts.now())
    waiting: list[answers.PlannedJobAnswer] = []
    if forecasts is not None:
        soonest = dict(islice(forecasts.soonest.items(), 2 * most))
        these = JobsWanted(job_ids=tuple(soonest), limit=2 * most)
        rows = await asyncio.to_thread(parts.store.jobs, these)
        still = {row["job_id"] for row in rows if row["state"] == "pending"}
        still.difference_update(each.job.job_id for each in snapshot.running)
        waiting = [
            waiting_bar(forecasts, job) for job_id, job in soonest.items() if job_id in still
        ]
    total = sum(each.total.cpus for each in snapshot.cluster.partitions)
    return answers.PlanAnswer(
        now_seconds=snapshot.unix_seconds,
        cpus=total,
        pending=snapshot.pending,
        running=[seen_by(caller, running_bar(each, ends[each.job.job_id])) for each in shown],
        waiting=[seen_by(caller, each) for each in waiting[:most]],
    )


@router.get("/usage")
async def usage(
    caller: AnyCaller,  # noqa: ARG001
    parts: Parts,
    hours: Annotated[float, Query(ge=0.001, le=24.0 * 31)] = 24.0,
    bins: Annotated[int, Query(ge=1, le=500)] = 96,
) -> answers.UsageAnswer:
    """Return cpus held, and waits of jobs that started, over the last hours."""
    snapshot = await current_snapshot(parts)
    used = await parts.overview.use(hours, bins)
    return answers.UsageAnswer(
        begin_seconds=used.begin_seconds,
        bin_seconds=used.bin_seconds,
        cpus=snapshot.cluster.total.cpus,
        used_cpus=[round(each, 3) for each in used.used_cpus.tolist()],
        started=used.started.tolist(),
        wait_seconds=[None if math.isnan(each) else each for each in used.wait_seconds.tolist()],
    )


def running_bar(running: RunningJob, found: RunningForecast) -> answers.PlannedJobAnswer:
    """Return a running job, and when it should end."""
    begun = Range(*[running.start_seconds] * 3)
    return _bar(running.job, running.held.cpus, begun, found)


def waiting_bar(forecasts: Forecasts, job: Job) -> answers.PlannedJobAnswer:
    """Return a waiting job, and when it should start and end."""
    found, is_known = forecasts.waiting[job.job_id], job.job_id not in forecasts.unknown
    more = {"is_known": is_known, "held": forecasts.doubt(found.start)}
    return _bar(job, job.cpus, found.start, found).model_copy(update=more)


def _bar(
    job: Job, cpus: float, start: Range, found: RunningForecast | WaitingForecast
) -> answers.PlannedJobAnswer:
    return answers.PlannedJobAnswer(
        job_id=job.job_id,
        name=job.name,
        user=(job.user or "").partition("/")[0],  # schedulers know jobs by user and name
        cpus=cpus,
        start=answers.RangeAnswer.from_quantiles(start),
        end=answers.RangeAnswer.from_quantiles(found.end),
        deadline_seconds=job.deadline_seconds,
        misses=found.misses,
    )


def seen_by(caller: Caller, job: answers.PlannedJobAnswer) -> answers.PlannedJobAnswer:
    """A job as somebody may see it: nameless where it is another user's."""
    if job.user is not None and caller.sees(job.user):
        return job
    return job.model_copy(update={"job_id": None, "name": None, "user": None})


_PATIENCE_SECONDS: Final = 0.05
_KIND: Final = "text/plain; version=0.0.4; charset=utf-8"


async def _let_in(request: Request, parts: Parts) -> None:
    """Any token opens it, and none is needed if the configuration says so."""
    if not parts.configuration.open_metrics:
        await caller_of(request)


@unversioned.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(allowed: Annotated[None, Depends(_let_in)], parts: Parts) -> Response:  # noqa: ARG001
    """Cycles, queue, waits, coverage of predictions, deadlines, requests."""
    overview = parts.overview
    snapshot, runtimes, (starts, _), waiting = await asyncio.gather(
        parts.snapshots.look(FRESH_SECONDS),
        overview.judged_runtimes.get(),
        overview.judged_starts.get(),
        _waiting(overview),
    )
    return Response(parts.metrics.text(snapshot, waiting, runtimes, starts), media_type=_KIND)


async def _waiting(overview: Overview) -> Mapping[str, int]:
    """Return how many jobs wait for which reason; empty until they have been counted once."""
    try:
        return await asyncio.wait_for(overview.by_reason.get(), _PATIENCE_SECONDS)
    except (DaemonBusy, TimeoutError):
        return {}
