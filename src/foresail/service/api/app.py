"""The application: all questions behind one gate, and the document that describes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from foresail import __version__
from foresail.service.api import events, forecasts, jobs, metrics, page, plan, service, waits
from foresail.service.api.callers import Door
from foresail.service.api.gate import Gate
from foresail.service.api.problems import PROBLEM_TYPE, ProblemDetails, handle_problems
from foresail.service.parts import ServiceParts

_REFUSALS = {
    400: "It is not JSON, or no request.",
    401: "There is no good token.",
    403: "The token's role may not do this.",
    404: "There is nothing of this name that the caller may see.",
    406: "There is no answer of the kind asked for.",
    408: "The body does not arrive.",
    409: "It stands otherwise than this needs.",
    413: "The body is too large.",
    414: "The query is too long.",
    415: "The body is no JSON.",
    421: "The service answers to names of this machine only.",
    422: "A field is wrong.",
    429: "That is too often.",
    431: "The headers are too large.",
    503: "The service cannot do it now.",
}


class _Described(FastAPI):
    """FastAPI whose document knows problems; it is made when it is first asked for."""

    def openapi(self) -> dict[str, Any]:
        """The document that describes all questions."""
        document = super().openapi()
        schemas = document["components"]["schemas"]
        if ProblemDetails.__name__ not in schemas:
            schemas[ProblemDetails.__name__] = ProblemDetails.model_json_schema(
                ref_template="#/components/schemas/{model}"
            )
        return document


def application(parts: ServiceParts) -> Gate:
    """The application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        parts.feed.begin(asyncio.get_running_loop())
        yield

    problem = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": why, "content": problem} for status, why in _REFUSALS.items()
    }
    app = _Described(
        title="Foresail",
        version=__version__,
        summary="A cluster scheduler that plans by the odds.",
        lifespan=lifespan,
        responses=responses,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.parts = parts
    app.state.door = Door(parts)
    for each in (jobs, waits, forecasts, plan, service, events, metrics, page):
        app.include_router(each.router)
    handle_problems(app)
    listen = parts.configuration.listen
    return Gate(
        app,
        metrics=parts.metrics,
        body_bytes=parts.configuration.limits.body_bytes,
        loopback_only=listen.is_loopback and not listen.behind_proxy,
    )
