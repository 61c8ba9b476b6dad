"""The page: static files that ask the interface as anybody does."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Response

from foresail.service.api.problems import CallRefused

router: Final = APIRouter(include_in_schema=False)

_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@router.get("/")
def index() -> Response:
    """The page itself; what it shows takes a token."""
    return _file("index.html")


@router.get("/static/{name}")
def static(name: str) -> Response:
    """What the page consists of."""
    return _file(name)


def _file(name: str) -> Response:
    content = _contents().get(name)
    if content is None:
        raise CallRefused(HTTPStatus.NOT_FOUND, "there is no such file")
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
