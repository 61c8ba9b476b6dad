"""The application: its gate, the event stream, the page, and the document of all questions."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Header, Response
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foresail import __version__
from foresail.model.errors import ForesailError
from foresail.service.api import forecasts, jobs, problems, service
from foresail.service.api.callers import AnyCaller, Caller, Door, Parts
from foresail.service.connections import PEER
from foresail.service.metrics import ServiceMetrics
from foresail.service.parts import ServiceParts
from foresail.service.store.database import Database

_PAGE: Final = APIRouter(include_in_schema=False)
_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@_PAGE.get("/")
def index() -> Response:
    """The page itself; what it shows takes a token."""
    return _file("index.html")


@_PAGE.get("/static/{name}")
def static(name: str) -> Response:
    """Return a file of the page."""
    return _file(name)


def _file(name: str) -> Response:
    content = _contents().get(name)
    if content is None:
        raise problems.CallRefused(HTTPStatus.NOT_FOUND, "there is no such file")
    headers = {"Cache-Control": "no-cache"}
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(content, media_type=kind, headers=headers)


@cache
def _contents() -> dict[str, bytes]:
    folder = files("foresail.service").joinpath("page")
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in _KINDS
    }


_EVENTS: Final = problems.api_router("events")
_HEARTBEAT_SECONDS: Final = 15.0


@_EVENTS.get(
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
    """Stream events from now on, or behind the event that was seen last.

    Ids are the numbers of the log's records: none comes twice, and none is left out but those of
    other users' jobs.
    """
    limits = parts.configuration.limits
    of_caller, in_all = parts.feed.followers(caller.key)
    if of_caller >= limits.event_streams_per_caller or in_all >= limits.event_streams:
        raise problems.CallRefused(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"{of_caller} event streams of this caller are open, and {in_all} in all",
            expected=f"at most {limits.event_streams_per_caller} and {limits.event_streams}",
            headers={"Retry-After": "30"},
        )
    return _Stream(parts, caller, parts.feed.last if last_event_id is None else int(last_event_id))


class _Stream(StreamingResponse):
    """Stream of events that a caller sees, as long as there is a connection."""

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


_LOG: Final = logging.getLogger("foresail.service")
_LOOPBACK: Final = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?")
_SLOWEST_BODY_SECONDS: Final = 30.0
_MOST_QUERY_BYTES: Final = 8_192
_MOST_HEADER_BYTES: Final = 32_768

_SECURITY: Final[Mapping[bytes, bytes]] = MappingProxyType(
    {
        b"x-content-type-options": b"nosniff",
        b"x-frame-options": b"DENY",
        b"referrer-policy": b"no-referrer",
        b"cache-control": b"no-store",
        b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
        b"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    }
)


class Gate:
    """Names requests, refuses what is too large or for somebody else, and adds what is safe.

    Nothing is read of a body before ``door`` has let its sender in.

    ``metrics`` count every answer. Where ``loopback_only``, only names of this machine may be
    asked for: any other was led here by a name server that somebody else controls (DNS rebinding).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        door: Door,
        metrics: ServiceMetrics,
        body_bytes: int,
        loopback_only: bool,
    ) -> None:
        self._app = app
        self._door = door
        self._metrics = metrics
        self._body_bytes = body_bytes
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope["foresail_request_id"] = secrets.token_hex(8)
        begun, came = False, time.perf_counter()

        async def answered(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                seconds, status = time.perf_counter() - came, message["status"]
                self._metrics.request_seconds.labels(scope["method"], str(status)).observe(seconds)
                level = logging.DEBUG if status < 400 else logging.INFO
                _LOG.log(
                    level,
                    "%s %s: %d",
                    scope["method"],
                    scope["path"],
                    status,
                    extra={"request_id": request_id, "milliseconds": round(1000 * seconds, 1)},
                )
                headers = message.setdefault("headers", [])
                given = {name for name, _ in headers}
                headers.append((b"x-request-id", request_id.encode()))
                headers.extend(item for item in _SECURITY.items() if item[0] not in given)
            await send(message)

        try:
            request = HTTPConnection(scope)
            if self._check(request):
                await self._door.let_in(request)
                receive = await self._read(receive)
            await self._app(scope, receive, answered)
        except (problems.CallRefused, ForesailError) as error:
            refused = problems.refusal_of(error) if isinstance(error, ForesailError) else error
            if not begun:
                await problems.problem_answer(refused, request_id)(scope, receive, answered)
        except Exception:
            _LOG.exception("request %s failed", request_id)
            if begun:
                raise
            fault = problems.CallRefused(
                HTTPStatus.INTERNAL_SERVER_ERROR, "a fault of the service, which has noted it"
            )
            await problems.problem_answer(fault, request_id)(scope, receive, answered)

    def _check(self, request: HTTPConnection) -> bool:
        """Return whether a request has a body; raises ``CallRefused`` where its head is wrong."""
        scope, headers = request.scope, request.headers
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if (
            self._loopback_only
            and PEER not in scope
            and not (len(hosts) == 1 and _LOOPBACK.fullmatch(hosts[0]))
        ):
            raise problems.CallRefused(
                HTTPStatus.MISDIRECTED_REQUEST, "this service answers to names of this machine only"
            )
        if len(scope["query_string"]) > _MOST_QUERY_BYTES:
            raise problems.CallRefused(HTTPStatus.REQUEST_URI_TOO_LONG, "the query is too long")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _MOST_HEADER_BYTES:
            raise problems.CallRefused(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large"
            )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > self._body_bytes:
            raise self._too_large()
        has_body = length != "0" or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            raise problems.CallRefused(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "the body is of a kind that is not read",
                field="Content-Type",
                value=kind,
                expected="application/json",
            )
        accepted = headers.get("accept", "*/*").lower()
        kinds = {each.partition(";")[0].strip() for each in accepted.split(",")}
        if not kinds & _ACCEPTABLE:
            raise problems.CallRefused(
                HTTPStatus.NOT_ACCEPTABLE,
                "there is no answer of such a kind",
                field="Accept",
                value=accepted,
                expected="application/json",
            )
        return has_body

    async def _read(self, receive: Receive) -> Receive:
        """The same with its body read whole, in no more room and time than it may take."""
        body = b""
        try:
            async with asyncio.timeout(_SLOWEST_BODY_SECONDS):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > self._body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        break
        except TimeoutError as error:
            raise problems.CallRefused(
                HTTPStatus.REQUEST_TIMEOUT,
                "the body does not arrive",
                expected=f"all of it within {_SLOWEST_BODY_SECONDS:g} s",
            ) from error
        first: list[Message] = [{**message, "body": body}]

        async def read() -> Message:
            return first.pop() if first else await receive()

        return read

    def _too_large(self) -> problems.CallRefused:
        return problems.CallRefused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the body is larger than {self._body_bytes:,} bytes, variables (--export) included",
        )


_ACCEPTABLE: Final = frozenset(
    {
        "*/*",
        "application/*",
        "application/json",
        "application/problem+json",
        "text/*",
        "text/plain",
        "text/html",
        "text/event-stream",
    }
)


_LOOK_SECONDS: Final = 1.0
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
            components["schemas"][problems.ProblemDetails.__name__] = (
                problems.ProblemDetails.model_json_schema(
                    ref_template="#/components/schemas/{model}"
                )
            )
            components["securitySchemes"] = {"HTTPBearer": _BEARER}
            for path, operations in document["paths"].items():
                for operation in operations.values() if path not in _OPEN else ():
                    operation["security"] = [{"HTTPBearer": []}]
        return document


async def _look_again_and_again(database: Database) -> None:
    while True:
        await asyncio.to_thread(database.look)
        await asyncio.sleep(_LOOK_SECONDS)


def application(parts: ServiceParts) -> Gate:
    """The application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        parts.feed.begin(asyncio.get_running_loop())
        keeping = asyncio.create_task(parts.forecaster.keep_all())
        looking = asyncio.create_task(_look_again_and_again(parts.store.database))
        yield
        keeping.cancel()
        looking.cancel()

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
    served = (jobs.router, forecasts.router, service.router, service.unversioned, _EVENTS, _PAGE)
    for each in served:
        app.router.routes.extend(each.routes)
    problems.handle_problems(app)
    listen = parts.configuration.listen
    return Gate(
        app,
        door=door,
        metrics=parts.metrics,
        body_bytes=parts.configuration.limits.body_bytes,
        loopback_only=listen.is_loopback and not listen.behind_proxy,
    )
