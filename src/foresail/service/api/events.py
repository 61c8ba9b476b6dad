"""The event stream: what happens, as server-sent events, from any record on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Header
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints
from starlette.types import Receive, Scope, Send

from foresail.service.api.callers import AnyCaller, Caller, Parts
from foresail.service.api.problems import CallRefused, api_router
from foresail.service.parts import ServiceParts

router: Final = api_router("events")

_HEARTBEAT_SECONDS: Final = 15.0


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def events(
    caller: AnyCaller,
    parts: Parts,
    last_event_id: Annotated[
        Annotated[str, StringConstraints(pattern="^[0-9]{1,18}$")] | None, Header()
    ] = None,
) -> StreamingResponse:
    """What happens from now on, or behind the event that was seen last.

    Ids are the numbers of the log's records: none comes twice, and none is left out but those of
    other users' jobs.
    """
    limits = parts.configuration.limits
    of_caller, in_all = parts.feed.followers(caller.key)
    if of_caller >= limits.event_streams_per_caller or in_all >= limits.event_streams:
        raise CallRefused(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"{of_caller} event streams of this caller are open, and {in_all} in all",
            expected=f"at most {limits.event_streams_per_caller} and {limits.event_streams}",
            headers={"Retry-After": "30"},
        )
    return _Stream(parts, caller, parts.feed.last if last_event_id is None else int(last_event_id))


class _Stream(StreamingResponse):
    """What a caller sees of what happens behind an event, as long as there is a connection."""

    def __init__(self, parts: ServiceParts, caller: Caller, after: int) -> None:
        self._parts, self._caller, self._after = parts, caller, after
        self._sees = None if caller.sees_all else caller.user
        super().__init__(self._texts(), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Follow."""
        with self._parts.feed.following(self._caller.key, self._sees):
            await super().__call__(scope, receive, send)

    async def _texts(self) -> AsyncIterator[str]:
        yield ": foresail\n\n"
        feed, after = self._parts.feed, self._after
        while not feed.is_closed and self._caller.is_let_in(self._parts):
            before = after
            after, text = await feed.after(before, self._sees, _HEARTBEAT_SECONDS)
            if after == before:
                yield ": still there\n\n"
            elif text:
                yield text
