"""Mirror of a cluster's pods and nodes, by list and watch, in a thread of its own.

What is lost on the way (an API server that goes, a version that is too old, a watch that falls
silent) is made good here, and nowhere else.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Generic, Self, TypeVar

import msgspec

from foresail_kubernetes import wire
from foresail_kubernetes.connection import UNREACHABLE, Access, Connection, RefusedError
from foresail_kubernetes.groups import least_of
from foresail_kubernetes.records import KubernetesNode, Pod, node_of, pod_of
from foresail_kubernetes.versions import Served, served

_PAGE: Final = 500
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 10.0
_SHORT_SECONDS: Final = 1.0
"""A watch that ends sooner is begun anew only after a pause."""
_PATIENCE_SECONDS: Final = 3.0
"""Absence of the API server that is not worth a word."""
_FIRST_LIST_SECONDS: Final = 60.0

_Record = TypeVar("_Record", bound=Pod | KubernetesNode | int)
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes since these were taken last."""

    pods: Mapping[str, Pod]
    """Pods that are new or other than they were, by uid."""
    gone: Mapping[str, Pod]
    """Pods that are there no more, as they were last."""
    nodes: Mapping[str, KubernetesNode] | None
    """All nodes by name, if one of them is another now."""
    groups: Mapping[str, int] | None = None
    """Least numbers of pods that start together, by namespace and name of the group, likewise."""


class _Kind(Generic[_Record]):
    """Objects of one kind, kept as records by key, and where their watch stands."""

    def __init__(
        self,
        path: str,
        wired: Any,
        record: Callable[[Any], _Record],
        put: Callable[[str, _Record | None], None],
    ) -> None:
        self.path = path
        self.page = msgspec.json.Decoder(wire.Listed[wired])
        self.one = msgspec.json.Decoder(wired)
        self.record = record
        self.put = put
        self.there: dict[str, _Record] = {}
        self.version: str | None = None
        """Version to watch from; None: it is to be listed."""


class Mirror:
    """Pods and nodes as the API server has them, but for what is on its way."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._changed: dict[str, Pod] = {}
        self._gone: dict[str, Pod] = {}
        self._nodes_changed = self._groups_changed = False
        self._pods: _Kind[Pod] = _Kind("/api/v1/pods", wire.WirePod, pod_of, self._put_pod)
        self._nodes: _Kind[KubernetesNode] = _Kind(
            "/api/v1/nodes", wire.WireNode, node_of, self._put_node
        )
        self._groups: dict[str, _Kind[int]] = {}
        """Pod groups of each API that is served, by path."""
        self._problems: dict[str, tuple[float, str]] = {}
        self._awaited = {self._pods.path, self._nodes.path}
        """Paths of which nothing was listed yet."""
        self._first: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.connection: Connection | None = None
        self.served = Served()
        self.unread = ""
        """Sentence on pod groups that this account may not read; empty if it may."""
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)

    @classmethod
    def begun(cls, access: Access) -> Self:
        """Return a mirror that has seen all there is once.

        Raises ``ConnectionError`` if the API server cannot be reached, or does not let that be
        seen, ``InputError`` if nothing says where it is.
        """
        mirror = cls(access)
        mirror._thread.start()
        try:
            mirror._first.result(_FIRST_LIST_SECONDS)
        except BaseException:
            mirror.close()
            raise
        return mirror

    @property
    def problem(self) -> str:
        """Return why what is seen here is not what there is; empty if it is."""
        with self._lock:
            long_ago = time.monotonic() - _PATIENCE_SECONDS
            return next((why for since, why in self._problems.values() if since < long_ago), "")

    def pod(self, uid: str) -> Pod | None:
        """Return a pod, if it is there."""
        with self._lock:
            return self._pods.there.get(uid)

    def all_pods(self) -> dict[str, Pod]:
        """Return all pods, by uid."""
        with self._lock:
            return dict(self._pods.there)

    def all_nodes(self) -> dict[str, KubernetesNode]:
        """Return all nodes, by name."""
        with self._lock:
            return dict(self._nodes.there)

    def take(self) -> Changes:
        """Return what has changed since that was asked last; at first, all there is."""
        with self._lock:
            nodes = dict(self._nodes.there) if self._nodes_changed else None
            groups = self._all_groups() if self._groups_changed else None
            changes = Changes(self._changed, self._gone, nodes, groups)
            self._changed, self._gone = {}, {}
            self._nodes_changed = self._groups_changed = False
            return changes

    def all_groups(self) -> dict[str, int]:
        """Return how many pods of each group start together, by its namespace and name."""
        with self._lock:
            return self._all_groups()

    def _all_groups(self) -> dict[str, int]:
        return {name: least for kind in self._groups.values() for name, least in kind.there.items()}

    def call(self, work: Coroutine[Any, Any, _Answer]) -> Future[_Answer]:
        """Have something done in the mirror's loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End the watches."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(5.0)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # the one who waits for the first list is to hear it
            if not self._first.done():
                self._first.set_exception(error)
            with self._lock:
                said = f"the mirror has ended: {type(error).__name__}: {error}"
                self._problems["mirror"] = (0.0, said)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.connection = await Connection.opened(self._access)
        try:
            await self._ask_what_is_served()
            async with asyncio.TaskGroup() as tasks:
                followers = [
                    tasks.create_task(self._follow(self._nodes)),
                    tasks.create_task(self._follow(self._pods)),
                    *(tasks.create_task(self._follow(each)) for each in self._groups.values()),
                ]
                await self._stop.wait()
                for each in followers:
                    each.cancel()
        finally:
            await self.connection.close()

    async def _ask_what_is_served(self) -> None:
        assert self.connection is not None
        try:
            self.served = await served(self.connection)
        except UNREACHABLE as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error
        for path in self.served.pod_groups:
            put = partial(self._put_group, path)
            self._groups[path] = _Kind(path, wire.PodGroup, least_of, put)
        self._awaited |= self._groups.keys()

    async def _follow(self, kind: _Kind[_Record]) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            begin = time.monotonic()
            try:
                if kind.version is None:
                    await self._list(kind)
                await self._watch(kind)
                if time.monotonic() - begin >= _SHORT_SECONDS:
                    pause = _FIRST_PAUSE_SECONDS
                    continue
            except RefusedError as error:
                if error.status == HTTPStatus.FORBIDDEN and kind.path in self._groups:
                    self.unread = f"this account may not read pod groups ({error})"
                    self._is_listed(kind.path)
                    return
                if error.status == HTTPStatus.GONE:
                    kind.version = None
                self._is_away(kind.path, _said(error))
            except UNREACHABLE as error:
                self._is_away(kind.path, " ".join(f"{type(error).__name__}: {error}".split()))
            except Exception as error:  # what it says is not understood: the mirror goes on
                kind.version = None
                why = f"it is not understood ({type(error).__name__}: {error})"
                self._is_away(kind.path, why)
            if time.monotonic() - begin >= 2.0 * pause:
                pause = _FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause * random.uniform(0.7, 1.3))
            pause = min(_LONGEST_PAUSE_SECONDS, 2.0 * pause)

    async def _list(self, kind: _Kind[_Record]) -> None:
        """Take what is listed for all there is."""
        assert self.connection is not None
        found: dict[str, _Record] = {}
        query = {"limit": str(_PAGE)}
        while True:
            page = kind.page.decode(await self.connection.ask("GET", kind.path, query))
            for each in page.items:
                found[_key(each)] = kind.record(each)
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        with self._lock:
            for key in kind.there.keys() - found.keys():
                kind.put(key, None)
            for key, record in found.items():
                if kind.there.get(key) != record:
                    kind.put(key, record)
            kind.version = page.metadata.resource_version
        self._is_listed(kind.path)

    async def _watch(self, kind: _Kind[_Record]) -> None:
        assert self.connection is not None
        assert kind.version is not None
        async for line in self.connection.watch(kind.path, {"resourceVersion": kind.version}):
            if not line:  # it is open
                with self._lock:
                    self._problems.pop(kind.path, None)
                continue
            event = _WATCHED.decode(line)
            if event.type == "ERROR":
                status = _STATUS.decode(event.object)
                raise RefusedError(status.code, status.message.encode(), f"watch {kind.path}")
            if event.type == "BOOKMARK":
                kind.version = _BOOKMARK.decode(event.object).metadata.resource_version
                continue
            wired = kind.one.decode(event.object)
            record = kind.record(wired)
            with self._lock:
                if event.type == "DELETED":
                    kind.there[_key(wired)] = record
                    kind.put(_key(wired), None)
                else:
                    kind.put(_key(wired), record)
                kind.version = wired.metadata.resource_version

    def _is_listed(self, path: str) -> None:
        self._awaited.discard(path)
        if not self._awaited and not self._first.done():
            self._first.set_result(None)

    def _is_away(self, path: str, why: str) -> None:
        if path in self._awaited and not self._first.done():
            self._first.set_exception(ConnectionError(why))
        with self._lock:
            since, _ = self._problems.get(path, (time.monotonic(), ""))
            self._problems[path] = since, why

    def _put_pod(self, uid: str, pod: Pod | None) -> None:
        if pod is None:
            last = self._pods.there.pop(uid)
            self._changed.pop(uid, None)
            self._gone[uid] = last
        else:
            self._pods.there[uid] = self._changed[uid] = pod

    def _put_group(self, path: str, name: str, least: int | None) -> None:
        there = self._groups[path].there
        if least is None:
            del there[name]
        else:
            there[name] = least
        self._groups_changed = True

    def _put_node(self, name: str, node: KubernetesNode | None) -> None:
        if node is None:
            del self._nodes.there[name]
        elif self._nodes.there.get(name) == node:
            return
        else:
            self._nodes.there[name] = node
        self._nodes_changed = True


_WATCHED: Final = msgspec.json.Decoder(wire.Watched)
_STATUS: Final = msgspec.json.Decoder(wire.Status)
_BOOKMARK: Final = msgspec.json.Decoder(wire.Bookmark)


def _key(of: wire.WirePod | wire.WireNode | wire.PodGroup) -> str:
    """Return the key of an object: pods may come again by the same name."""
    if isinstance(of, wire.WirePod):
        return of.metadata.uid
    if isinstance(of, wire.PodGroup):
        return f"{of.metadata.namespace}/{of.metadata.name}"
    return of.metadata.name


def _said(error: RefusedError) -> str:
    if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
        return f"this account may not get, list and watch pods and nodes ({error})"
    return str(error)
