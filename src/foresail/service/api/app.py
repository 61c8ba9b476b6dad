"""The application: all questions behind one gate, and the document that describes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI

from foresail import __version__
from foresail.service.api import events, forecasts, jobs, metrics, page, plan, service, waits
from foresail.service.api.callers import Door
from foresail.service.api.gate import Gate
from foresail.service.api.problems import ProblemDetails, handle_problems
from foresail.service.parts import ServiceParts

_OPEN: Final = ("/v1/health", "/metrics")
_BEARER: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token, as `foresail token create` shows it once.",
}


class _Described(FastAPI):
    """FastAPI whose document knows problems; it is made when it is first asked for."""

    def openapi(self) -> dict[str, Any]:
        """The document that describes all questions."""
        document = super().openapi()
        components = document["components"]
        if "securitySchemes" not in components:
            components["schemas"][ProblemDetails.__name__] = ProblemDetails.model_json_schema(
                ref_template="#/components/schemas/{model}"
            )
            components["securitySchemes"] = {"HTTPBearer": _BEARER}
            for path, operations in document["paths"].items():
                for operation in operations.values() if path not in _OPEN else ():
                    operation["security"] = [{"HTTPBearer": []}]
        return document


def application(parts: ServiceParts) -> Gate:
    """The application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        parts.feed.begin(asyncio.get_running_loop())
        yield

    app = _Described(
        title="Foresail",
        version=__version__,
        summary="A cluster scheduler that plans by the odds.",
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.parts = parts
    app.state.door = door = Door(parts)
    for each in (jobs, waits, forecasts, plan, service, events, metrics, page):
        app.router.routes.extend(each.router.routes)
    handle_problems(app)
    listen = parts.configuration.listen
    return Gate(
        app,
        door=door,
        metrics=parts.metrics,
        body_bytes=parts.configuration.limits.body_bytes,
        loopback_only=listen.is_loopback and not listen.behind_proxy,
    )
