"""Callers: the service that is asked, who asks how often, and which jobs they may see."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import chain, islice
from typing import Annotated, Final

from fastapi import Depends
from starlette.requests import HTTPConnection, Request

from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.service.api.answers import JobId
from foresail.service.api.problems import CallRefused, request_id_of
from foresail.service.connections import PEER
from foresail.service.parts import ServiceParts
from foresail.service.snapshots import ClusterSnapshot
from foresail.service.store.protocol import LIVING_STATES, JobsWanted, Row
from foresail.service.tokens import AccessToken, AuditEntry, Role

_MOST_KNOWN: Final = 10_000
"""Number of tokens and addresses of which it is known how often they ask."""

_FREE_REFUSALS: Final = 5
_REFUSALS_PER_SECOND: Final = 0.2
_KNOWN_SECONDS: Final = 60.0
"""Time for which an account that was found is believed to be there."""


_LET_IN: Final = "foresail_caller"
"""Key of a request's scope for who was let in."""


async def parts_of(request: Request) -> ServiceParts:
    """The service that is asked; no thread is needed to say so."""
    parts: ServiceParts = request.app.state.parts
    return parts


Parts = Annotated[ServiceParts, Depends(parts_of)]


@dataclass(frozen=True, slots=True)
class Caller:
    """Caller, by a token or as an account of this machine, and from where."""

    user: str
    """User whose jobs those are that this submits."""
    role: Role
    token: AccessToken | None
    address: str
    request_id: str

    @property
    def key(self) -> str:
        """Return the key that its calls are counted by: its token, or its account."""
        return f"account {self.user}" if self.token is None else self.token.token_id

    @property
    def sees_all(self) -> bool:
        """Return whether other users' jobs are shown."""
        return self.role is not Role.USER

    def sees(self, user: str) -> bool:
        """Return whether a user's jobs are shown."""
        return self.sees_all or user == self.user

    def is_let_in(self, parts: ServiceParts) -> bool:
        """Return whether it would be let in still."""
        return self.token is None or parts.tokens.opens(self.token)

    def audit(self, parts: ServiceParts, action: str, subject: str) -> None:
        """Note what this has done."""
        parts.tokens.append_audit(
            AuditEntry(time.time(), self.user, self.address, action, subject, self.request_id)
        )


class Buckets:
    """Lets so many through a second of each key, and ``burst`` at once; of the latest that came."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, key: str) -> float:
        """Take one of a key's; 0, or how long it takes until there is another."""
        now = time.monotonic()
        left, at = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        self._left[key] = (left if left < 1.0 else left - 1.0), now
        if len(self._left) > _MOST_KNOWN:
            self._left.popitem(last=False)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._per_second


class Door:
    """Lets callers in: by their tokens, and on this machine by the accounts that they are.

    Wrong tokens are slowed down by address, and are noted in the audit log as long as they are few;
    a good one is let in whatever others do from the same address.
    """

    def __init__(self, parts: ServiceParts) -> None:
        limits = parts.configuration.limits
        self._parts = parts
        self._asked = Buckets(limits.requests_per_second, limits.burst)
        self._refused = Buckets(_REFUSALS_PER_SECOND, _FREE_REFUSALS)
        self._known: dict[int | str, tuple[float, str, Role]] = {}

    async def let_in(self, request: HTTPConnection) -> Caller:
        """Return who asks, counted once; raises ``CallRefused`` for nobody, and for too often."""
        known: Caller | None = request.scope.get(_LET_IN)
        if known is not None:
            return known
        caller = request.scope[_LET_IN] = await self._caller(request)
        wait = self._asked.wait_seconds(caller.key)
        if wait:
            raise CallRefused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "this caller asks too often",
                headers={"Retry-After": str(max(1, round(wait)))},
            )
        return caller

    async def _caller(self, request: HTTPConnection) -> Caller:
        uid: int | None = request.scope.get(PEER)
        address = request.client.host if request.client is not None else f"uid {uid}"
        request_id = request_id_of(request)
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if secret and scheme.lower() == "bearer":
            token = self._parts.tokens.holder(secret)
            if token is None:
                await self._refuse(address, request_id)
            assert token is not None
            await self._served(token.user)
            return Caller(token.user, token.role, token, address, request_id)
        if uid is not None:
            user, role = await self._served(uid)
            return Caller(user, role, None, address, request_id)
        raise CallRefused(
            HTTPStatus.UNAUTHORIZED,
            "a token is needed",
            expected="the header Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": 'Bearer realm="foresail"'},
        )

    async def _served(self, who: int | str) -> tuple[str, Role]:
        """Look up whether a user, or an account by its uid, is served; the machine may be slow."""
        now = time.monotonic()
        until, user, role = self._known.get(who, (0.0, "", Role.USER))
        if until < now:
            try:
                user, role = await asyncio.to_thread(self._look_up, who)
            except InputError as error:
                self._known.pop(who, None)
                raise CallRefused(HTTPStatus.FORBIDDEN, str(error)) from error
            self._known[who] = now + _KNOWN_SECONDS, user, role
        return user, role

    def _look_up(self, who: int | str) -> tuple[str, Role]:
        if isinstance(who, int):
            return self._parts.served.caller(who)
        self._parts.served.account(who)
        return who, Role.USER

    async def _refuse(self, address: str, request_id: str) -> None:
        wait = self._refused.wait_seconds(address)
        if wait:
            raise CallRefused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too many wrong tokens from this address",
                headers={"Retry-After": str(max(1, round(wait)))},
            )
        entry = AuditEntry(time.time(), "", address, "token refused", "", request_id)
        await asyncio.to_thread(self._parts.tokens.append_audit, entry)
        raise CallRefused(
            HTTPStatus.UNAUTHORIZED,
            "this token opens nothing: it is unknown, expired or revoked",
            headers={"WWW-Authenticate": 'Bearer realm="foresail", error="invalid_token"'},
        )


async def caller_of(request: Request) -> Caller:
    """Return who asks; raises ``CallRefused`` if that is nobody."""
    door: Door = request.app.state.door
    return await door.let_in(request)


def _of_roles(*roles: Role) -> Callable[[Request], Awaitable[Caller]]:
    async def checked(request: Request) -> Caller:
        caller = await caller_of(request)
        if caller.role not in roles:
            raise CallRefused(
                HTTPStatus.FORBIDDEN,
                f"the role {caller.role} may not do this",
                expected="the role " + " or ".join(roles),
            )
        return caller

    return checked


AnyCaller = Annotated[Caller, Depends(caller_of)]
Submitter = Annotated[Caller, Depends(_of_roles(Role.USER, Role.OPERATOR, Role.ADMIN))]
Operator = Annotated[Caller, Depends(_of_roles(Role.OPERATOR, Role.ADMIN))]
Admin = Annotated[Caller, Depends(_of_roles(Role.ADMIN))]


_PATIENCE_SECONDS: Final = 0.5
"""Time that the first forecasts of a queue are waited for."""


async def jobs_next_first(
    parts: ServiceParts, wanted: JobsWanted, offset: int
) -> tuple[list[Row], int | None]:
    """A page of the jobs that are not finished, and where the next one begins; None at the end.

    First those that run, by start; then those that wait, by expected start; at last those of which
    nothing is expected yet, such as held ones, by submission.
    """
    snapshot, forecasts = await asyncio.gather(
        parts.snapshots.look(), parts.forecaster.latest((), _PATIENCE_SECONDS)
    )
    states = wanted.states or LIVING_STATES
    runs: dict[str, Job] = {}
    if snapshot is not None and "running" in states:
        running = sorted(snapshot.running, key=lambda each: each.start_seconds)
        runs = {each.job.job_id: each.job for each in running}
    next_ones: Mapping[str, Job] = {}
    if forecasts is not None and "pending" in states:
        next_ones = forecasts.soonest
    only = None if wanted.job_ids is None else frozenset(wanted.job_ids)
    living = replace(wanted, states=tuple(states), oldest_first=True, limit=1000)

    def page() -> tuple[list[Row], bool]:
        following = ((each, job) for each, job in next_ones.items() if each not in runs)
        reported = (
            each
            for each, job in chain(runs.items(), following)
            if (only is None or each in only) and _is_wanted(job, wanted)
        )
        others = (
            each for each in _living(parts, living) if not (each in runs or each in next_ones)
        )
        ids = chain(reported, others)
        chosen = tuple(islice(ids, offset, offset + wanted.limit))
        rows = parts.store.jobs(replace(wanted, states=(), job_ids=chosen))
        by_id = {row["job_id"]: row for row in rows}
        there = (by_id[job_id] for job_id in chosen if job_id in by_id)
        return [row for row in there if row["state"] in states], len(chosen) < wanted.limit

    rows, is_last = await asyncio.to_thread(page)
    return rows, None if is_last else offset + wanted.limit


def _living(parts: ServiceParts, wanted: JobsWanted) -> Iterator[str]:
    """Yield the living jobs that the store has, by submission."""
    after = 0
    while rows := parts.store.jobs(replace(wanted, after=after)):
        yield from (row["job_id"] for row in rows)
        after = rows[-1]["number"]


def _is_wanted(job: Job, wanted: JobsWanted) -> bool:
    """Return whether a job is one of those; schedulers may know a job by its user and its name."""
    user = (job.user or "").partition("/")[0]
    return (not wanted.users or user in wanted.users) and (
        not wanted.names or job.name in wanted.names
    )


_FIRST_PAGE: Final = 20
_PAGE: Final = 1_000
"""Most arrays are small, and others' jobs come behind them."""


def _full_id(parts: ServiceParts, job_id: str) -> str:
    """The id that is meant: a job of the cluster goes by its name there where no other has that."""
    if not parts.capabilities.brings_jobs or ":" in job_id or parts.store.job(job_id) is not None:
        return job_id
    meant = {each.partition(":")[0] for each in parts.store.ids_of_cluster(job_id)}
    return f"{meant.pop()}:{job_id}" if len(meant) == 1 else job_id


def own_job(parts: ServiceParts, caller: Caller, job_id: str) -> Row:
    """A job as it stands; raises ``CallRefused`` if there is none, or the caller may not see it."""
    job_id = _full_id(parts, job_id)
    row = parts.store.job(job_id) or parts.store.member(job_id)
    if row is None and (members := jobs_meant(parts, caller, job_id)):
        first, last = (members[end]["job_id"] for end in (0, -1))
        raise CallRefused(
            HTTPStatus.NOT_FOUND,
            f"{job_id} is an array; ask for one of its jobs, {first} to {last}",
        )
    if row is None or not caller.sees(row["user"]):
        raise no_such_job(job_id)
    return row


async def _own_job_of(job_id: JobId, caller: AnyCaller, parts: Parts) -> Row:
    return await asyncio.to_thread(own_job, parts, caller, job_id)


OwnJob = Annotated[Row, Depends(_own_job_of)]
"""The job of a call's path."""


async def own_job_soon(parts: ServiceParts, caller: Caller, job_id: str) -> Row:
    """Return a job as ``own_job`` does, without a thread where the database is a file.

    Under load each change of threads costs more than reading a row.
    """
    row = parts.store.job(job_id) if parts.store.database.reads_at_once else None
    if row is not None and caller.sees(row["user"]):
        return row
    return await asyncio.to_thread(own_job, parts, caller, job_id)


def jobs_meant(parts: ServiceParts, caller: Caller, job_id: str) -> list[Row]:
    """A job, or the members of an array, if the caller sees them."""
    job_id = _full_id(parts, job_id)
    row = parts.store.job(job_id) or parts.store.member(job_id)
    rows = [*_members(parts, job_id)] if row is None and "_" not in job_id else [row]
    return [each for each in rows if each is not None and caller.sees(each["user"])]


def _members(parts: ServiceParts, array: str) -> Iterator[Row]:
    """The members of an array, whose numbers follow each other from its own on."""
    if ":" in array:  # those of clusters come when they like
        ids = parts.store.ids_of_cluster(array.partition(":")[2])
        members = tuple(each for each in ids if each.startswith(f"{array}_"))
        wanted = JobsWanted(job_ids=members, limit=len(members), oldest_first=True)
        yield from parts.store.jobs(wanted)
        return
    before, page = int(array) - 1, _FIRST_PAGE
    while rows := parts.store.jobs(JobsWanted(after=before, limit=page, oldest_first=True)):
        for row in rows:
            if not row["job_id"].startswith(f"{array}_"):
                return
            yield row
        before, page = rows[-1]["number"], _PAGE


def no_such_job(job_id: str) -> CallRefused:
    """Return a refusal: none has this id, or it is none of the caller's business."""
    return CallRefused(HTTPStatus.NOT_FOUND, f"there is no job {job_id}")


async def current_snapshot(parts: ServiceParts, fresh_seconds: float = 0.0) -> ClusterSnapshot:
    """Return the snapshot of the run, so old at most.

    Raises ``CallRefused`` if there is no run yet.
    """
    snapshot = await parts.snapshots.look(fresh_seconds)
    if snapshot is None:
        raise CallRefused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "the service is about to begin",
            headers={"Retry-After": "1"},
        )
    return snapshot
