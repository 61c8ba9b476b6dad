"""Problems: every error as ``application/problem+json`` (RFC 9457), naming the field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from foresail.live.jobs_file import InvalidJobs
from foresail.model.errors import ForesailError, InputError
from foresail.model.short_form import expected_by
from foresail.model.words import SIZE_FORM
from foresail.service.exchange import KeyUsedOtherwise
from foresail.service.snapshots import DaemonBusy
from foresail.service.store.protocol import StoreUnavailable

PROBLEM_TYPE: Final = "application/problem+json"

_LONGEST_VALUE: Final = 200
_FORMS: Final = {
    "directory": "an absolute path",
    "memory": SIZE_FORM,
    "environment": "at most 1,000 texts of 100,000 characters (--export says which are sent)",
}
"""Forms of fields whose type says little."""
_TAG: Final = re.compile(r"[^A-Za-z0-9_]")
"""In what stands for one of several kinds of a value, and is no field."""


class ProblemDetails(BaseModel):
    """Details of why a request was refused."""

    type: str = Field("about:blank", description="Kind of problem.")
    title: str = Field(description="The status in words.", examples=["Unprocessable Content"])
    status: int = Field(description="As the HTTP status.", examples=[422])
    detail: str = Field(description="What is wrong, and what would have been accepted.")
    request_id: str = Field(description="Names this call in the service's own lines.")
    field: str | None = Field(None, description="The field that is wrong.", examples=["cpus"])
    value: Any = Field(None, description="What was found there.")
    expected: str | None = Field(None, description="What would have been accepted.")


class CallRefused(Exception):  # noqa: N818 - it says what it is
    """A request cannot be granted."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        field: str | None = None,
        value: Any = None,
        expected: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.value = value
        self.expected = expected
        self.headers = dict(headers or {})


_REFUSALS: Final = {
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


def api_router(tag: str, prefix: str = "/v1") -> APIRouter:
    """Return a router of some questions; all may be refused for the same reasons."""
    problem = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": why, "content": problem} for status, why in _REFUSALS.items()
    }
    return APIRouter(prefix=prefix, tags=[tag], responses=responses)


def problem_answer(refused: CallRefused, request_id: str) -> JSONResponse:
    """The answer that says so."""
    says = {
        "type": "about:blank",
        "title": refused.status.phrase,
        "status": int(refused.status),
        "detail": refused.detail,
        "request_id": request_id,
    }
    more = {"field": refused.field, "value": refused.value, "expected": refused.expected}
    says |= {name: value for name, value in more.items() if value is not None}
    return JSONResponse(says, refused.status, headers=refused.headers, media_type=PROBLEM_TYPE)


def refusal_of(error: ForesailError) -> CallRefused:
    """Turn an error in the input into an answer."""
    if isinstance(error, InvalidJobs):
        first = error.problems[0]
        refused = refusal_of(first)
        rest = len(error.problems) - 1
        refused.detail += f" (and {rest} more)" if rest else ""
        return refused
    if isinstance(error, StoreUnavailable | DaemonBusy):
        retry = {"Retry-After": "5"}
        return CallRefused(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers=retry)
    if isinstance(error, KeyUsedOtherwise):
        return CallRefused(HTTPStatus.CONFLICT, str(error), field="Idempotency-Key")
    if isinstance(error, InputError):
        return CallRefused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            str(error),
            field=error.field,
            value=_shown(error.value),
            expected=error.expected,
        )
    return CallRefused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


def handle_problems(app: FastAPI) -> None:
    """Let all errors of the app be answered as problems."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        return problem_answer(_refusal(error), request_id_of(request))

    for kind in (CallRefused, ForesailError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer)


def _refusal(error: Exception) -> CallRefused:
    match error:
        case CallRefused():
            return error
        case ForesailError():
            return refusal_of(error)
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            status, headers = HTTPStatus(error.status_code), dict(error.headers or {})
            is_nothing = status == HTTPStatus.NOT_FOUND
            detail = "there is nothing here" if is_nothing else str(error.detail)
            return CallRefused(status, detail, headers=headers)
    raise error


def request_id_of(request: HTTPConnection) -> str:
    """Return the id that the gate has given this call."""
    return str(request.scope.get("foresail_request_id", ""))


def _invalid(error: RequestValidationError) -> CallRefused:
    first = error.errors()[0]
    where, *path = first["loc"]
    if first["type"] == "json_invalid":
        return CallRefused(HTTPStatus.BAD_REQUEST, f"is not JSON: {first['msg']}")
    named = [str(each) for each in path if not _TAG.search(str(each))]
    field = ".".join(named).removeprefix("jobs.0.") or str(where)
    shown = _shown(first.get("input"))
    if where == "path" and first["type"] == "string_pattern_mismatch":
        problem = f"{shown!r} is no id of a {field.removesuffix('_id')}"
        return CallRefused(HTTPStatus.UNPROCESSABLE_ENTITY, problem, field=field, value=shown)
    is_secret = "environment" in path
    refused = InputError(
        "is missing" if first["type"] == "missing" else "not usable here",
        field=field,
        value=None if is_secret or first["type"] == "missing" else shown,
        expected=next((_FORMS[each] for each in path if each in _FORMS), expected_by(first)),
    )
    return refusal_of(refused)


def _shown(value: Any) -> Any:
    """A value as it may be repeated: plain, short, and nothing that JSON has no word for."""
    if value is None or (isinstance(value, bool | int) and abs(value) < 2**63):
        return value
    text = (
        value
        if isinstance(value, str)
        else repr(jsonable_encoder(value, custom_encoder={bytes: repr}))
    )
    return text.encode(errors="replace").decode()[:_LONGEST_VALUE]
