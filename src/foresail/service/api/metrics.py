"""Metrics, as Prometheus reads them."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from foresail.service.api.callers import Parts, caller_of

router: Final = APIRouter(tags=["service"])

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
    picture = await parts.gallery.look()
    overview = parts.overview
    waiting = {} if picture is None else await overview.by_reason.get()
    runtimes, starts = await overview.judged_runtimes.get(), await overview.judged_starts.get()
    return Response(parts.metrics.text(picture, waiting, runtimes, starts), media_type=_KIND)
