"""Hands: binding pods to nodes, and evicting them, many at once.

What is not known to have happened is looked at again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from foresail_kubernetes import wire
from foresail_kubernetes.connection import Connection, RefusedError
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.records import Pod
from foresail_kubernetes.versions import Served

_AT_ONCE: Final = 32
_BIND_SECONDS: Final = 4.0
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 5.0


class NotBound(NamedTuple):
    """A pod that is known not to be bound, by an attempt."""

    pod: Pod
    attempt: int
    why: str


class NotEvicted(NamedTuple):
    """A pod that was not evicted, though it was to be."""

    pod: Pod
    why: str


class Binder:
    """Binds and evicts pods, within the event loop of a connection, as long as a lease is held."""

    def __init__(self, connection: Connection, lease: Lease, served: Served) -> None:
        self._connection = connection
        self._served = served
        self._lease = lease
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self.not_bound: deque[NotBound] = deque()
        self.not_evicted: deque[NotEvicted] = deque()
        """Answers that are to be heard, from any thread."""

    async def bind(self, pod: Pod, node: str, attempt: int) -> None:
        """Bind a pod; one that is bound, wherever, is for the watch to see."""
        async with self._turn:
            if self._lease.is_held:
                why = await self._tried(pod, node)
            else:
                why = "this replica does not decide any more"
        if why:
            self.not_bound.append(NotBound(pod, attempt, why))

    async def evict(self, pod: Pod) -> None:
        """Ask for an eviction, which budgets may refuse; that a pod goes, the watch sees."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
        body = {
            "apiVersion": self._served.eviction,
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        why = ""
        async with self._turn:
            if not self._lease.is_held:
                return
            try:
                async with asyncio.timeout(_BIND_SECONDS):
                    await self._connection.ask("POST", path, None, body)
            except RefusedError as error:
                why = _EVICTIONS.get(error.status, str(error))
            except Exception as error:  # whatever it is, it is asked for again
                why = f"the API server did not answer ({type(error).__name__})"
        if why:
            self.not_evicted.append(NotEvicted(pod, why))

    async def _tried(self, pod: Pod, node: str) -> str:
        """Return why a pod is not bound; empty if it is."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            async with asyncio.timeout(_BIND_SECONDS):
                await self._connection.ask("POST", f"{path}/binding", None, body)
        except RefusedError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                return f"this account may not bind it ({error})"
            why = f"the API server refused to bind it ({error})"
        except Exception as error:  # whatever it is, it may be bound
            why = f"the API server did not answer ({type(error).__name__})"
        else:
            return ""
        return await self._seen(path, pod, why)

    async def _seen(self, path: str, pod: Pod, why: str) -> str:
        """Look, until there is an answer, whether a pod is bound; returns why it is not."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                there = _POD.decode(await self._connection.ask("GET", path))
            except RefusedError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return "it has gone"
            except Exception:  # it is asked again
                pass
            else:
                if there.metadata.uid != pod.uid:
                    return "another pod has its name by now"
                return "" if there.spec.node_name else why
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE_SECONDS, 2.0 * pause)


_EVICTIONS: Final[dict[int, str]] = {
    HTTPStatus.NOT_FOUND: "",
    HTTPStatus.CONFLICT: "",
    HTTPStatus.TOO_MANY_REQUESTS: "a disruption budget keeps it for now",
    HTTPStatus.FORBIDDEN: "this account may not evict pods",
}
_POD: Final = msgspec.json.Decoder(wire.WirePod)
