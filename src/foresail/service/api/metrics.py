"""Metrics, as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from foresail.control.loop import Controller
from foresail.service.api.callers import Parts, caller_of
from foresail.service.parts import ServiceParts
from foresail.service.picture import Picture

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
    waiting: Mapping[str, int] = {}
    if picture is not None:
        waiting = await parts.gallery.ask(lambda controller, _: _by_reason(controller))
    text = await asyncio.to_thread(_text, parts, picture, waiting)
    return Response(text, media_type=_KIND)


def _by_reason(controller: Controller) -> Mapping[str, int]:
    return Counter(str(reason.code) for reason in controller.reasons().values())


def _text(parts: ServiceParts, picture: Picture | None, waiting: Mapping[str, int]) -> bytes:
    return parts.metrics.text(
        picture, waiting, parts.store.judged_runtimes(), parts.store.judged_forecasts()
    )
