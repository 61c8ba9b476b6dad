"""Lease by which of several replicas one binds pods: it alone holds what all can see."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from foresail_kubernetes.connection import Connection, RefusedError

_DURATION_SECONDS: Final = 15
_RENEW_SECONDS: Final = 3.0
_MARGIN_SECONDS: Final = 5.0
"""Time before its end in which nothing more is begun: a binding takes less, or is given up."""


class Lease:
    """A lease that is asked for, and renewed, as long as it is kept.

    Another's has ended once it was seen unchanged for as long as it says: nobody's clock counts but
    one's own.
    """

    def __init__(self, connection: Connection, namespace: str, name: str, holder: str) -> None:
        self._connection = connection
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._holder = holder
        self._held_until = 0.0
        self._seen: tuple[str, str] = ("", "")
        self._seen_since = time.monotonic()
        self.problem = f"the lease {namespace}/{name} is not held yet"

    @property
    def is_held(self) -> bool:
        """Return whether something may be begun."""
        return time.monotonic() < self._held_until - _MARGIN_SECONDS

    async def keep(self) -> None:
        """Ask for it, and renew it, until this is cancelled."""
        while True:
            await self.ask()
            await asyncio.sleep(_RENEW_SECONDS)

    async def ask(self) -> None:
        """Ask for it once, or renew it."""
        began = time.monotonic()
        try:
            if await self._is_taken():
                self._held_until, self.problem = began + _DURATION_SECONDS, ""
        except RefusedError as error:
            self.problem = f"the lease is refused: {error}"
        except Exception as error:  # whatever it is, it is asked for again
            self.problem = f"the lease is not renewed: {type(error).__name__}: {error}"

    async def give_up(self) -> None:
        """Let another have it at once."""
        self._held_until = 0.0
        lease = await self._there()
        if lease is not None and lease["spec"].get("holderIdentity") == self._holder:
            lease["spec"]["holderIdentity"] = ""
            await self._connection.ask("PUT", f"{self._path}/{self._name}", None, lease)

    async def _is_taken(self) -> bool:
        lease, now = await self._there(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        own = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": _DURATION_SECONDS,
            "renewTime": now,
        }
        try:
            if lease is None:
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
                body |= {"metadata": {"name": self._name}, "spec": own}  # type: ignore[dict-item]
                await self._connection.ask("POST", self._path, None, body)
                return True
            spec = lease.setdefault("spec", {})
            if not self._may_take(spec):
                return False
            spec.update(own)
            await self._connection.ask("PUT", f"{self._path}/{self._name}", None, lease)
        except RefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            self.problem = "another replica was quicker to take the lease"
            return False
        return True

    def _may_take(self, spec: dict[str, Any]) -> bool:
        """Return whether it is nobody else's, as far as was seen."""
        holder = spec.get("holderIdentity") or ""
        seen = holder, str(spec.get("renewTime"))
        if seen != self._seen:
            self._seen, self._seen_since = seen, time.monotonic()
        lasts = float(spec.get("leaseDurationSeconds") or _DURATION_SECONDS)
        if holder in ("", self._holder) or time.monotonic() - self._seen_since > lasts:
            return True
        self.problem = f"another replica decides: {holder[:80]!r} holds the lease {self._name}"
        return False

    async def _there(self) -> dict[str, Any] | None:
        """Return the lease as it is; None if there is none."""
        try:
            text = await self._connection.ask("GET", f"{self._path}/{self._name}")
        except RefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        lease: dict[str, Any] = msgspec.json.decode(text)
        return lease
