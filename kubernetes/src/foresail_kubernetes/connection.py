"""Connection to an API server: the only module that knows the client; answers are plain bytes."""

from __future__ import annotations

import asyncio
import os
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes.aio import client, config

from foresail.model.errors import InputError

_ANSWER_SECONDS: Final = 10.0
_WATCH_SECONDS: Final = 290
"""Time after which a watch is begun anew, though nothing has happened to it."""
_SILENCE_SECONDS: Final = 75.0
"""Longest silence of a watch: bookmarks come once a minute."""
_CLOSING_SECONDS: Final = 0.25
"""Time that encrypted connections take to be closed, for which aiohttp does not wait."""
_LONGEST_LINE_BYTES: Final = 2**23

UNREACHABLE: Final = (OSError, aiohttp.ClientError, TimeoutError)
"""Errors of who has not been reached, or has not answered."""


class RefusedError(Exception):
    """The API server answered, but not with what was asked for."""

    def __init__(self, status: int, body: bytes, what: str) -> None:
        said = body[:300].decode("utf-8", "replace")
        super().__init__(f"{what}: {status} {said}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Access:
    """Place of the API server: a file and a context of it, or what is found."""

    config: str = ""
    context: str = ""


class Connection:
    """Calls to an API server, made within one event loop."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    @classmethod
    async def opened(cls, access: Access) -> Connection:
        """Find out where it is; nothing is asked yet.

        Raises ``InputError`` if that is said nowhere, or not understood.
        """
        settings = client.Configuration()
        context = access.context or None
        found = access.config or os.environ.get("KUBECONFIG", "")
        own = Path("~/.kube/config").expanduser()
        try:
            if found or own.exists():
                await config.load_kube_config(found or str(own), context, settings)
            else:
                config.load_incluster_config(settings)
        except Exception as error:  # whatever is wrong with it, it is the file's fault
            raise InputError(
                f"does not say where an API server is: {' '.join(str(error).split())}",
                field="config",
                value=found or None,
                expected="a file as kubectl has it, in KUBECONFIG, or the account of a pod",
            ) from error
        settings.retries = None
        settings.connection_pool_maxsize = 40
        return cls(client.ApiClient(settings))

    async def close(self) -> None:
        """Let go of what is open."""
        await self._api.close()
        await asyncio.sleep(_CLOSING_SECONDS)

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        kind: str = "application/json",
    ) -> bytes:
        """Return the answer; raises ``RefusedError``, or one of ``UNREACHABLE``."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        answer = await self._call(method, path, query, body, kind, timeout)
        async with answer:
            text = await answer.read()
            if answer.status >= 300:
                raise RefusedError(answer.status, text, f"{method} {path}")
            return text

    async def watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield an empty line once it is open, then one for each event; raises as ``ask`` does."""
        asked = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_ANSWER_SECONDS, sock_read=_SILENCE_SECONDS
        )
        answer = await self._call("GET", path, asked, None, "application/json", timeout)
        async with answer:
            if answer.status >= 300:
                raise RefusedError(answer.status, await answer.read(), f"watch {path}")
            yield b""
            rest = b""
            async for part in answer.content.iter_any():
                *lines, rest = (rest + part).split(b"\n")
                for line in filter(None, lines):
                    yield line
                if len(rest) > _LONGEST_LINE_BYTES:
                    raise aiohttp.ClientPayloadError("a line of a watch has no end")

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: object,
        kind: str,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "Content-Type": kind}
        headers["User-Agent"] = "foresail"
        queries: list[Any] = []
        await self._api.update_params_for_auth(
            headers, queries, ["BearerToken"], path, method, body
        )
        words = urllib.parse.urlencode({**(query or {}), **dict(queries)})
        address = f"{self._api.configuration.host}{path}"
        response = await self._api.rest_client.request(
            method,
            f"{address}?{words}" if words else address,
            headers=headers,
            body=body,
            _request_timeout=timeout,
        )
        answer: aiohttp.ClientResponse = response.response
        return answer
