"""Questions about the service: cluster, nodes, who asks, tokens, the audit log, policy, health."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from foresail import __version__
from foresail.model.cluster import Resources
from foresail.service.api.answers import (
    AuditAnswer,
    AuditEntryAnswer,
    ClusterAnswer,
    HealthAnswer,
    NewTokenAnswer,
    NodeAnswer,
    NodesAnswer,
    NodeWishAnswer,
    PolicyAnswer,
    TokenAnswer,
    TokensAnswer,
    WhoamiAnswer,
)
from foresail.service.api.callers import Admin, AnyCaller, Caller, Operator, Parts
from foresail.service.api.lookup import current_picture
from foresail.service.api.problems import CallRefused, api_router
from foresail.service.parts import ServiceParts
from foresail.service.picture import Picture
from foresail.service.store.protocol import ForNode, NodeWish
from foresail.service.tokens import AccessToken, Role

router: Final = api_router("service")


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
async def health(parts: Parts) -> HealthAnswer:
    """Whether the service works; needs no token."""
    condition = parts.condition()
    if condition.problems:
        raise CallRefused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "; ".join(condition.problems),
            headers={"Retry-After": "1"},
        )
    return HealthAnswer(version=__version__, remarks=list(condition.remarks))


@router.get("/whoami")
async def whoami(caller: AnyCaller, parts: Parts) -> WhoamiAnswer:
    """Who asks, and what that may do."""
    token = caller.token
    return WhoamiAnswer(
        user=caller.user,
        role=str(caller.role),
        token_id=None if token is None else token.token_id,
        expires_seconds=None if token is None else token.expires_seconds,
        remarks=list(parts.served.remarks),
    )


@router.get("/cluster")
async def cluster(caller: AnyCaller, parts: Parts) -> ClusterAnswer:  # noqa: ARG001
    """What there is to run on, and how it is used now."""
    picture = await current_picture(parts)
    counts = await parts.overview.by_state.get()
    total = picture.cluster.total
    free = sum(picture.free.values(), Resources())
    return ClusterAnswer(
        unix_seconds=picture.unix_seconds,
        policy=parts.policy(),
        is_draining=picture.is_draining,
        cpus=total.cpus,
        free_cpus=free.cpus,
        memory_bytes=total.memory_bytes,
        free_memory_bytes=free.memory_bytes,
        gpus=total.gpus,
        free_gpus=free.gpus,
        running=len(picture.running),
        pending=picture.pending,
        jobs_by_state=dict(counts),
        nodes=_nodes(picture),
        remarks=list(parts.condition().remarks),
    )


@router.get("/nodes")
async def nodes(caller: AnyCaller, parts: Parts) -> NodesAnswer:  # noqa: ARG001
    """The nodes, and what is free of each."""
    return NodesAnswer(nodes=_nodes(await current_picture(parts)))


@router.post("/nodes/{node}/drain", status_code=202)
async def drain(node: NodeName, caller: Operator, parts: Parts) -> NodeWishAnswer:
    """Let nothing new start on a node; what runs there runs on."""
    return await _wish(NodeWish.DRAIN, node, caller, parts)


@router.post("/nodes/{node}/resume", status_code=202)
async def resume(node: NodeName, caller: Operator, parts: Parts) -> NodeWishAnswer:
    """Use a node again that was drained."""
    return await _wish(NodeWish.RESUME, node, caller, parts)


async def _wish(wish: NodeWish, node: str, caller: Caller, parts: ServiceParts) -> NodeWishAnswer:
    picture = await current_picture(parts)
    if node not in {each.name for each in _nodes(picture)}:
        raise CallRefused(HTTPStatus.NOT_FOUND, f"there is no node {node}")
    asked = parts.acceptance.ask(caller.user, lambda _: [ForNode(wish, node)])
    await parts.gallery.heard(await asyncio.wrap_future(asked))
    await asyncio.to_thread(caller.audit, parts, f"node: {wish}", node)
    return NodeWishAnswer(node=node)


@router.get("/tokens")
async def tokens(caller: Admin, parts: Parts) -> TokensAnswer:  # noqa: ARG001
    """All tokens there ever were, without their secrets."""
    return TokensAnswer(tokens=[TokenAnswer(**_token(each)) for each in parts.tokens.all()])


@router.post("/tokens", status_code=201)
def create_token(body: TokenRequest, caller: AnyCaller, parts: Parts) -> NewTokenAnswer:
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
    return NewTokenAnswer(**_token(token), secret=secret)


@router.delete("/tokens/{token_id}")
def revoke_token(
    token_id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")], caller: Admin, parts: Parts
) -> TokenAnswer:
    """Let a token open nothing from now on."""
    token = parts.tokens.revoke(token_id)
    if token is None:
        raise CallRefused(HTTPStatus.NOT_FOUND, "there is no such token")
    caller.audit(parts, "token revoked", token_id)
    return TokenAnswer(**_token(token))


@router.get("/audit")
def audit(
    caller: Admin,  # noqa: ARG001
    parts: Parts,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditAnswer:
    """What was done to tokens and policy, and who was refused; newest first."""
    found = parts.access.audit(before, limit)
    entries = [AuditEntryAnswer(number=number, **asdict(entry)) for number, entry in found]
    return AuditAnswer(entries=entries, next=found[-1][0] if len(found) == limit else None)


@router.post("/policy")
def change_policy(body: PolicyRequest, caller: Admin, parts: Parts) -> PolicyAnswer:
    """Go over to another policy; one that cannot be used changes nothing."""
    policy = parts.reload(body.policy)
    caller.audit(parts, "policy changed", policy)
    return PolicyAnswer(policy=policy)


def _nodes(picture: Picture) -> list[NodeAnswer]:
    return [
        NodeAnswer(
            name=node.name,
            partition=partition.name,
            state=_state(node.name, picture),
            cpus=node.total.cpus,
            memory_bytes=node.total.memory_bytes,
            gpus=node.total.gpus,
            free_cpus=free.cpus,
            free_memory_bytes=free.memory_bytes,
            free_gpus=free.gpus,
            attributes=dict(node.attributes),
        )
        for partition in picture.cluster.partitions
        for node in partition.nodes
        for free in [_free(node.name, partition.name, picture)]
    ]


def _free(node: str, partition: str, picture: Picture) -> Resources:
    """What is free of a node: no more than of its partition, whose jobs may name no nodes."""
    nothing = Resources()
    there, in_all = picture.free_nodes.get(node, nothing), picture.free.get(partition, nothing)
    return Resources(
        max(0.0, min(there.cpus, in_all.cpus)),
        max(0.0, min(there.memory_bytes, in_all.memory_bytes)),
        max(0.0, min(there.gpus, in_all.gpus)),
    )


def _state(node: str, picture: Picture) -> Literal["up", "down", "drained"]:
    if node in picture.down:
        return "down"
    return "drained" if node in picture.drained else "up"


def _token(token: AccessToken) -> dict[str, Any]:
    return {name: value for name, value in asdict(token).items() if name != "digest"}
