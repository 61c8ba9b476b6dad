"""Hands: binding pods to nodes, opening their gates, and evicting them, many at once.

What is not known to have happened is looked at again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
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
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        ask = partial(self._connection.ask, "POST", f"{_path(pod)}/binding", None, body)
        await self._do("bind it", ask, lambda there: bool(there.node_name), pod, attempt)

    async def release(self, pod: Pod, gate: str, attempt: int) -> None:
        """Open a gate of a pod, which its scheduler binds then."""
        gates = [{"name": gate, "$patch": "delete"}]
        body = {"metadata": {"uid": pod.uid}, "spec": {"schedulingGates": gates}}
        kind = "application/strategic-merge-patch+json"
        ask = partial(self._connection.ask, "PATCH", _path(pod), None, body, kind)
        await self._do("open its gate", ask, lambda there: not there.scheduling_gates, pod, attempt)

    async def _do(
        self,
        what: str,
        ask: Callable[[], Awaitable[bytes]],
        is_done: Callable[[wire.PodSpec], bool],
        pod: Pod,
        attempt: int,
    ) -> None:
        async with self._turn:
            if self._lease.is_held:
                why = await self._tried(what, ask, is_done, pod)
            else:
                why = "this replica does not decide any more"
        if why:
            self.not_bound.append(NotBound(pod, attempt, why))

    async def evict(self, pod: Pod) -> None:
        """Ask for an eviction, which budgets may refuse; that a pod goes, the watch sees."""
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
                    await self._connection.ask("POST", f"{_path(pod)}/eviction", None, body)
            except RefusedError as error:
                why = _EVICTIONS.get(error.status, str(error))
            except Exception as error:  # whatever it is, it is asked for again
                why = f"the API server did not answer ({type(error).__name__})"
        if why:
            self.not_evicted.append(NotEvicted(pod, why))

    async def _tried(
        self,
        what: str,
        ask: Callable[[], Awaitable[bytes]],
        is_done: Callable[[wire.PodSpec], bool],
        pod: Pod,
    ) -> str:
        """Return why something is not done; empty if it is."""
        try:
            async with asyncio.timeout(_BIND_SECONDS):
                await ask()
        except RefusedError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                return f"this account may not {what} ({error})"
            why = f"the API server refused to {what} ({error})"
        except Exception as error:  # whatever it is, it may be done
            why = f"the API server did not answer ({type(error).__name__})"
        else:
            return ""
        there = await self._seen(pod)
        if isinstance(there, str):
            return there
        return "" if is_done(there) else why

    async def _seen(self, pod: Pod) -> wire.PodSpec | str:
        """Look, until there is an answer, how a pod is; returns why it is none."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                there = _POD.decode(await self._connection.ask("GET", _path(pod)))
            except RefusedError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return "it has gone"
            except Exception:  # it is asked again
                pass
            else:
                is_other = there.metadata.uid != pod.uid
                return "another pod has its name by now" if is_other else there.spec
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE_SECONDS, 2.0 * pause)


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


_EVICTIONS: Final[dict[int, str]] = {
    HTTPStatus.NOT_FOUND: "",
    HTTPStatus.CONFLICT: "",
    HTTPStatus.TOO_MANY_REQUESTS: "a disruption budget keeps it for now",
    HTTPStatus.FORBIDDEN: "this account may not evict pods",
}
_POD: Final = msgspec.json.Decoder(wire.WirePod)
