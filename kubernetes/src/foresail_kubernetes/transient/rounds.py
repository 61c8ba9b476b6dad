"""Rounds of the daemon of transient capacity: look, decide, act; nothing is kept in between.

What was decided shows in the cluster or is decided again, so that a crash at any moment costs a
round. Of several replicas the one that holds the lease acts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from foresail.model.errors import ForesailError, InputError
from foresail_kubernetes import wire
from foresail_kubernetes.connection import UNREACHABLE, Access, Connection, RefusedError
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.records import node_of
from foresail_kubernetes.transient import leaving
from foresail_kubernetes.transient.notices import ENDS, moment, notices_in
from foresail_kubernetes.transient.planning import Pool, added_up, plan_services
from foresail_kubernetes.transient.pools import Maker, wanted
from foresail_kubernetes.transient.settings import SERVING, TYPE, Settings
from foresail_kubernetes.transient.yielding import ranked, yielding

_Object = TypeVar("_Object")
_MERGE: Final = "application/merge-patch+json"
_NO_BALANCER: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
_PAGE: Final = "500"
_ASK_SECONDS: Final = 60.0
"""Pools are asked for again after so long, though nothing has changed."""
_SPARE_SECONDS: Final = 30.0
"""A pod whose budget said no is not asked for room again for so long."""
_RETRY_SECONDS: Final = 600.0
"""Time after which a plan is asked for again, as long as there is none to go by."""
_YIELD_SECONDS: Final = 2.0
_SILENT_SECONDS: Final = 60.0
"""A daemon that has not looked for so long is no longer well."""
_NO_WATCH: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
_NODES: Final = msgspec.json.Decoder(wire.Listed[wire.WireNode])
_PODS: Final = msgspec.json.Decoder(wire.Listed[wire.WirePod])


@dataclass(frozen=True, slots=True)
class Place:
    """Source of the settings, and namespace of the lease."""

    folder: Path
    namespace: str
    identity: str


class Rounds:
    """Leaves machines that are taken back, keeps pools, makes room; within one event loop."""

    def __init__(
        self, connection: Connection, settings: Settings, place: Place, say: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._folder = place.folder
        self._say = say
        self.lease = Lease(connection, place.namespace, "foresail-transient", place.identity)
        self._maker = Maker(connection, settings.pools)
        self._pools: Sequence[Pool] = ()
        self._asked: tuple[float, dict[Pool, int]] = (0.0, {})
        self._spared: dict[str, float] = {}
        """Times until which pods are not asked to yield, by uid."""
        self._looked_for_room = 0.0
        self._said: dict[str, str] = {}
        self.last_seconds = 0.0
        """Time at which a round last came to its end, by the clock that only goes on."""

    async def plan_for_ever(self) -> None:
        """Plan again and again; a plan that does not hold leaves the pools as they are."""
        while True:
            problem = ""
            try:
                plans = await asyncio.to_thread(plan_services, self._settings, self._folder)
                self._pools = added_up(plans)
                for each in plans:
                    self._say(each.sentence)
            except ForesailError as error:
                problem = f"pools stay as they are: {error}"
            self._once("plan", problem)
            pause = 3600.0 * self._settings.market.again_hours
            await asyncio.sleep(min(pause, _RETRY_SECONDS) if problem else pause)

    async def go(self, now: float) -> None:
        """Do what is to be done now, if this replica holds the lease; problems are said."""
        if not self.lease.is_held:
            self._once("round", self.lease.problem or "the lease was not renewed in time")
            self.last_seconds = time.monotonic()
            return
        try:
            await self._round(now)
        except RefusedError as error:
            lacks = error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED)
            self._once("round", f"this account lacks a right: {error}" if lacks else f"{error}")
        except (*UNREACHABLE, msgspec.DecodeError) as error:
            self._once("round", f"{type(error).__name__}: {error}")
        else:
            self._once("round", "")
            self.last_seconds = time.monotonic()

    async def _round(self, now: float) -> None:
        found = [each async for each in self._listed(_NODES, "nodes", {"labelSelector": TYPE})]
        rules = self._settings.leaving
        listed: dict[str, float | None] = {}
        if rules.notices:
            listed, bad = notices_in(self._folder / rules.notices)
            self._once("notices", "; ".join(bad))
        nodes = leaving.noticed(map(leaving.transient_node, found), listed, rules, now)
        going = [each for each in nodes if each.ends_seconds is not None]
        await asyncio.gather(self._keep_pools(nodes, now), self._leave(going, now))
        if now - self._looked_for_room >= _YIELD_SECONDS:
            self._looked_for_room = now
            await self._make_room(found, now)

    async def _leave(self, going: Sequence[leaving.TransientNode], now: float) -> None:
        """Do the next steps for nodes that are about to go."""
        if not going:
            return
        query = {"labelSelector": SERVING}
        serving = [leaving.leaving_pod(e) async for e in self._listed(_PODS, "pods", query)]
        elsewhere = leaving.serving_elsewhere(serving, going)
        late = [each.name for each in going if leaving.is_overdue(each, now)]
        self._once("late", f"was to have gone, and is there: {', '.join(late)}" if late else "")

        async def one(node: leaving.TransientNode) -> None:
            query = {"fieldSelector": f"spec.nodeName={node.name}"}
            there = [leaving.leaving_pod(e) async for e in self._listed(_PODS, "pods", query)]
            steps = leaving.next_steps(node, there, elsewhere, self._settings.leaving, now)
            kept = await asyncio.gather(*(self._act(each, now) for each in steps))
            said = ", ".join(sorted(filter(None, kept)))
            self._once(node.name, f"{node.name}: not evicted yet: {said}" if said else "")

        await asyncio.gather(*(one(each) for each in going))

    async def _act(self, action: leaving.Action, now: float) -> str:
        """Carry out a step, as far as the next look will say; returns a pod that a budget keeps."""
        match action:
            case leaving.Cordon(node, ends):
                labels = {"labels": {_NO_BALANCER: ""}, "annotations": {ENDS: moment(ends)}}
                change = {"metadata": labels, "spec": {"unschedulable": True}}
                await self._tried("PATCH", f"/api/v1/nodes/{node}", change)
                self._say(f"{node} is left: its machine goes at {moment(ends)}")
            case leaving.TakeOut(pod):
                meta = {"uid": pod.uid, "labels": {SERVING: None}}
                meta["annotations"] = {leaving.OUT: moment(now)}
                await self._tried("PATCH", _path(pod.namespace, pod.name), {"metadata": meta})
            case leaving.Evict(pod):
                if await self._evict(pod.namespace, pod.name, pod.uid):
                    return f"{pod.namespace}/{pod.name}"
            case leaving.Delete(node):
                await self._tried("DELETE", f"/api/v1/nodes/{node}", None)
                self._say(f"{node} is deleted")
        return ""

    async def _evict(self, namespace: str, name: str, uid: str) -> bool:
        """Evict a pod; returns whether its budget, or that it has gone, was in the way."""
        body = {
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        return await self._tried("POST", f"{_path(namespace, name)}/eviction", body)

    async def _tried(self, method: str, path: str, body: object) -> bool:
        """Ask for a change; returns whether it is one that has to wait, or is needed no more."""
        try:
            await self._connection.ask(method, path, None, body, _KINDS[method])
        except RefusedError as error:
            if error.status in (*_NO_WATCH, HTTPStatus.TOO_MANY_REQUESTS):
                return True
            raise
        return False

    async def _keep_pools(self, nodes: Sequence[leaving.TransientNode], now: float) -> None:
        """Ask for the machines that there are to be, where that is another number than before."""
        numbers = wanted(self._pools, nodes)
        at, before = self._asked
        is_placed = self._settings.pools.by == "placeholder"
        if numbers == before and now - at < _ASK_SECONDS and not is_placed:
            return
        try:
            await self._maker.ask(numbers, nodes)
        except (RefusedError, *UNREACHABLE) as error:
            self._once("pools", f"machines were not asked for: {error}")
            return
        self._once("pools", "")
        self._asked = now, numbers

    async def _make_room(self, found: Sequence[wire.WireNode], now: float) -> None:
        """Have pods evicted in whose place those of a service are to run."""
        services = self._settings.services
        for service in services:
            labels = ",".join(f"{key}={value}" for key, value in sorted(service.labels.items()))
            query = {
                "labelSelector": labels,
                "fieldSelector": "spec.nodeName=,status.phase=Pending",
            }
            where = f"namespaces/{service.namespace}/pods"
            if [one async for one in self._listed(_PODS, where, query)]:
                break
        else:
            return
        pods = [ranked(each, services) async for each in self._listed(_PODS, "pods", {})]
        self._spared = {uid: until for uid, until in self._spared.items() if until > now}
        for each in yielding(pods, [node_of(one) for one in found], self._spared.keys()):
            pod = each.pod
            if await self._evict(pod.namespace, pod.name, pod.uid):
                self._spared[pod.uid] = now + _SPARE_SECONDS
            else:
                self._say(f"{pod.namespace}/{pod.name} yields to a service")

    async def _listed(
        self, pages: msgspec.json.Decoder[wire.Listed[_Object]], what: str, query: dict[str, str]
    ) -> AsyncIterator[_Object]:
        """Yield what is listed, page by page."""
        asked = {**query, "limit": _PAGE}
        while True:
            page = pages.decode(await self._connection.ask("GET", f"/api/v1/{what}", asked))
            for each in page.items:
                yield each
            if not page.metadata.continue_:
                return
            asked["continue"] = page.metadata.continue_

    def _once(self, subject: str, problem: str) -> None:
        """Say a problem, unless it was said of this subject last."""
        if problem and problem != self._said.get(subject):
            self._say(problem)
        self._said[subject] = problem


_KINDS: Final = {"PATCH": _MERGE, "POST": "application/json", "DELETE": "application/json"}


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


async def go_on(
    access: Access,
    settings: Settings,
    place: Place,
    every_seconds: float,
    port: int,
    say: Callable[[str], None],
) -> None:
    """Go round until SIGTERM; answer probes on a port, unless that is 0.

    Raises ``InputError`` if nothing says where the API server is.
    """
    connection = await Connection.opened(access)
    rounds, ended = Rounds(connection, settings, place, say), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    beside = [asyncio.create_task(each) for each in (rounds.lease.keep(), rounds.plan_for_ever())]
    if port:
        beside.append(asyncio.create_task(_answer_probes(rounds, port)))
    try:
        while not ended.is_set():
            for each in beside:
                if each.done():
                    each.result()
            await rounds.go(time.time())
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), every_seconds)
    finally:
        for each in beside:
            each.cancel()
        try:
            await rounds.lease.give_up()
        except (RefusedError, *UNREACHABLE) as error:  # it ends by itself
            say(f"the lease was not given up: {error}")
        await connection.close()


async def _answer_probes(rounds: Rounds, port: int) -> None:
    """Answer whether a round came to its end lately."""

    async def health(_: web.Request) -> web.Response:
        age = time.monotonic() - rounds.last_seconds
        return web.Response(status=200 if age < _SILENT_SECONDS else 503, text=f"{age:.1f} s\n")

    application = web.Application()
    application.router.add_get("/healthz", health)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, None, port).start()
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise InputError(why, field="--port", value=port, expected="a free port") from error
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
