"""Metrics, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import Depends, Request, Response

from foresail.service.api.callers import Parts, caller_of
from foresail.service.api.problems import api_router
from foresail.service.overview import Overview
from foresail.service.picture import DaemonBusy

router: Final = api_router("service", prefix="")

_KIND: Final = "text/plain; version=0.0.4; charset=utf-8"


async def _let_in(request: Request, parts: Parts) -> None:
    """Any token opens it, and none is needed if the configuration says so."""
    if not parts.configuration.open_metrics:
        await caller_of(request)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(allowed: Annotated[None, Depends(_let_in)], parts: Parts) -> Response:  # noqa: ARG001
    """Cycles, queue, waits, coverage of predictions, deadlines, requests."""
    overview = parts.overview
    picture, runtimes, starts, waiting = await asyncio.gather(
        parts.gallery.look(),
        overview.judged_runtimes.get(),
        overview.judged_starts.get(),
        _waiting(overview),
    )
    return Response(parts.metrics.text(picture, waiting, runtimes, starts), media_type=_KIND)


async def _waiting(overview: Overview) -> Mapping[str, int]:
    """Return how many jobs wait for which reason; empty as long as the daemon cannot tell."""
    try:
        return await overview.by_reason.get()
    except DaemonBusy:
        return {}
