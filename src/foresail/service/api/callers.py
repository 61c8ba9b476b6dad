"""Callers: who sends a request, what they may do, and how often they may ask."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Depends
from starlette.requests import HTTPConnection, Request

from foresail.model.errors import InputError
from foresail.service.api.problems import CallRefused, request_id_of
from foresail.service.connections import PEER
from foresail.service.parts import ServiceParts
from foresail.service.tokens import AccessToken, AuditEntry, Role

_MOST_KNOWN: Final = 10_000
"""Of how many tokens and addresses it is known how often they ask."""

_FREE_REFUSALS: Final = 5
_REFUSALS_PER_SECOND: Final = 0.2
_KNOWN_SECONDS: Final = 60.0
"""So long an account is believed to be there that was found."""


_LET_IN: Final = "foresail_caller"
"""In a request's scope: who was let in."""


async def parts_of(request: Request) -> ServiceParts:
    """The service that is asked; no thread is needed to say so."""
    parts: ServiceParts = request.app.state.parts
    return parts


Parts = Annotated[ServiceParts, Depends(parts_of)]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, by a token or as an account of this machine, and from where."""

    user: str
    """Whose jobs those are that this submits."""
    role: Role
    token: AccessToken | None
    address: str
    request_id: str

    @property
    def key(self) -> str:
        """What its calls are counted by: its token, or its account."""
        return f"account {self.user}" if self.token is None else self.token.token_id

    @property
    def sees_all(self) -> bool:
        """Whether other users' jobs are shown."""
        return self.role is not Role.USER

    def sees(self, user: str) -> bool:
        """Whether a user's jobs are shown."""
        return self.sees_all or user == self.user

    def is_let_in(self, parts: ServiceParts) -> bool:
        """Whether it would be still."""
        return self.token is None or parts.tokens.opens(self.token)

    def audit(self, parts: ServiceParts, action: str, subject: str) -> None:
        """Note what this has done."""
        parts.access.append_audit(
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
        await asyncio.to_thread(self._parts.access.append_audit, entry)
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
