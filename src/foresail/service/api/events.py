"""The event stream: what happens, as server-sent events, from any record on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints

from foresail.service.api.callers import AnyCaller, Caller, Parts
from foresail.service.feed import Told
from foresail.service.parts import ServiceParts

router: Final = APIRouter(prefix="/v1", tags=["events"])

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
    after = parts.feed.last if last_event_id is None else int(last_event_id)
    return StreamingResponse(_stream(parts, caller, after), media_type="text/event-stream")


async def _stream(parts: ServiceParts, caller: Caller, after: int) -> AsyncIterator[str]:
    yield ": foresail\n\n"
    while not parts.feed.is_closed and parts.tokens.opens(caller.token):
        some = await parts.feed.after(after, _HEARTBEAT_SECONDS)
        if not some:
            yield ": still there\n\n"
            continue
        after = some[-1].number
        text = "".join([_as_text(each) for each in await _seen(parts, caller, some)])
        if text:
            yield text


async def _seen(parts: ServiceParts, caller: Caller, some: list[Told]) -> list[Told]:
    """What of it this caller may see."""
    some = [each for each in some if each.kind]
    if caller.sees_all:
        return some
    job_ids = {each.job_id for each in some if each.job_id}
    owners = await asyncio.to_thread(parts.store.owners, job_ids) if job_ids else {}
    return [each for each in some if not each.job_id or owners.get(each.job_id) == caller.user]


def _as_text(told: Told) -> str:
    return f"id: {told.number}\nevent: {told.kind}\ndata: {json.dumps(told.says)}\n\n"
