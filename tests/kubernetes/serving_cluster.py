"""A web service on a real API server: machines, kubelets and a scheduler are stood in for.

Pods of a Deployment are real HTTP servers on loopback (a pod's address 10.x.y.z is 127.x.y.z), made
and made away by the cluster's own controllers; who asks follows the Endpoints of the API server.
Used by the tests for seconds and by ``experiments/reliability/revoke_machines.py`` for minutes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from foresail_kubernetes.connection import UNREACHABLE, Access, Connection, RefusedError
from foresail_kubernetes.quantities import quantity

PORT = 8080
PODS = "/api/v1/namespaces/default/pods"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\nConnection: close\r\n\r\n" + 1024 * b"x"
PAGE_SECONDS = 0.01
TRANSIENT = "foresail.io/transient"


SETTINGS = """\
[market]
prices = "history.csv"
machines = "machines.csv"

[pools]
by = "placeholder"

[leaving]
notices = "notices"
wait_seconds = {wait}

[[services]]
name = "web"
units = {units}
nines = {nines}
labels = {{app = "web"}}
"""
ZONES, DAYS, ON_DEMAND = "abcdef", 60, 0.2


def write_settings(
    folder: Path, units: int = 10, nines: float = 3, wait: float = 15.0, more: str = ""
) -> Path:
    """Write settings, and histories in which each of six zones is dear 4 % of the time."""
    drawn = random.Random(7)
    lines = ["timestamp,az,instance_type,os,spot_price,on_demand_price"]
    for zone, day, hour in itertools.product(ZONES, range(DAYS), range(0, 24, 3)):
        price = 2.0 * ON_DEMAND if drawn.random() < 0.04 else 0.3 * ON_DEMAND
        month, date = divmod(day, 30)
        at = f"2026-{month + 4:02d}-{date + 1:02d} {hour:02d}:00:00+00:00"
        lines.append(f"{at},{zone},m2,Linux,{price:g},{ON_DEMAND}")
    (folder / "history.csv").write_text("\n".join(lines) + "\n")
    (folder / "machines.csv").write_text("instance_type,capacity\nm2,2\n")
    settings = folder / "settings.toml"
    settings.write_text(SETTINGS.format(units=units, nines=nines, wait=wait) + more)
    return settings


def objects(replicas: int, at_least: int) -> list[dict[str, Any]]:
    """A Deployment of a web service, its Service, and its budget."""
    labels = {"app": "web", "foresail.io/serving": "yes"}
    container = {
        "name": "main",
        "image": "registry.example/shop/web:1",
        "resources": {"requests": {"cpu": "1"}},
    }
    spec = {
        "terminationGracePeriodSeconds": 5,
        "tolerations": [{"key": TRANSIENT, "operator": "Exists"}],
        "containers": [container],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    of = {"matchLabels": {"app": "web"}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": replicas, "selector": of, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": labels, "ports": [{"port": PORT}]},
        },
        {
            "apiVersion": "policy/v1beta1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": at_least, "selector": of},
        },
    ]


class _Answers(asyncio.Protocol):
    """A connection: one request, one page a moment later."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.server.open.add(transport)

    def data_received(self, data: bytes) -> None:
        asyncio.get_running_loop().call_later(PAGE_SECONDS, self.answer)

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(PAGE)
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.server.open.discard(self.transport)


@dataclass(eq=False)
class Server:
    """The server of a pod."""

    address: str
    open: set[Any] = field(default_factory=set)
    listener: Any = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        place = f"127.{self.address.removeprefix('10.')}"
        self.listener = await loop.create_server(lambda: _Answers(self), place, PORT, backlog=512)

    def stop(self) -> None:
        """Take no more requests; those that were begun are answered."""
        self.listener.close()

    def vanish(self) -> None:
        """Reset all connections, as those of a machine that is gone."""
        self.listener.close()
        for each in list(self.open):
            each.abort()


@dataclass(frozen=True)
class Times:
    """Seconds that things take."""

    start: float = 3.0
    """From binding to ready."""
    boot: float = 30.0
    """From asking for a machine to the first pod there."""
    detect: float = 40.0
    """Until a machine that is gone counts as not ready (``node-monitor-grace-period``)."""


class Machines:
    """Machines, kubelets and a scheduler, in a thread of its own."""

    def __init__(
        self, config: Path, times: Times, again: Callable[[str], dict[str, Any]] | None
    ) -> None:
        self._access = Access(str(config))
        self._times = times
        self._again = again
        """Makes another node of a type when a machine is found gone, as a group of the cloud's
        would; None: the daemon asks for it."""
        self._connection: Connection
        self._addresses = itertools.count(1)
        self._servers: dict[str, Server] = {}
        self._begun: dict[str, float] = {}
        self._born: dict[str, float] = {}
        self._dead: dict[str, float] = {}
        self._types: dict[str, str] = {}
        self.machine_seconds: Counter[str] = Counter()
        """Time for which there were machines, by type."""
        self.ready = 0
        """Pods that are ready."""
        self._stop = threading.Event()
        self._calls: list[str] = []
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)

    def __enter__(self) -> Machines:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(20.0)

    @property
    def names(self) -> list[str]:
        """Machines that are there."""
        return sorted(self._born.keys() - self._dead.keys())

    def take(self, name: str) -> None:
        """Take a machine away, with all that runs there."""
        self._calls.append(name)

    async def _main(self) -> None:
        self._connection = await Connection.opened(self._access)
        last = time.monotonic()
        try:
            while not self._stop.is_set():
                now = time.monotonic()
                for name in self.names:
                    self.machine_seconds[self._types[name]] += now - last  # type: ignore[assignment]
                last = now
                while self._calls:
                    self._vanish(self._calls.pop(), now)
                try:
                    await self._round(now)
                except (RefusedError, *UNREACHABLE):
                    pass
                await asyncio.sleep(0.1)
        finally:
            for each in self._servers.values():
                each.vanish()
            await self._connection.close()

    def _vanish(self, name: str, now: float) -> None:
        if name in self._born:
            self._dead.setdefault(name, now)
        for key, server in self._servers.items():
            if key.startswith(f"{name}/"):
                server.vanish()

    async def _round(self, now: float) -> None:
        nodes = await self._all("/api/v1/nodes")
        pods = await self._all(PODS)
        there = {each["metadata"]["name"]: each for each in nodes}
        is_first = not self._born
        for name, node in there.items():
            kind = (node["metadata"].get("labels") or {}).get(TRANSIENT)
            if kind and name not in self._born:
                self._born[name] = now - self._times.boot if is_first else now
                self._types[name] = kind
        for name in self._born.keys() - there.keys():
            self._vanish(name, now)  # its node was deleted, and it with it
        for name, gone in list(self._dead.items()):
            if name in there:
                if now > gone + self._times.detect:
                    await self._lose(name, pods)
            elif self._again is None or now > gone + self._times.detect:
                if self._again is not None:
                    await self._ask("POST", "/api/v1/nodes", self._again(self._types[name]))
                del self._born[name], self._dead[name]
        await self._schedule(pods, there, now)
        await self._run(pods, now)

    async def _lose(self, name: str, pods: list[Any]) -> None:
        """Do what the cluster does about a machine that is gone."""
        for each in pods:
            if each["spec"].get("nodeName") == name:
                path = f"{PODS}/{each['metadata']['name']}"
                await self._ask("DELETE", path, {"gracePeriodSeconds": 0})
        await self._ask("DELETE", f"/api/v1/nodes/{name}")

    async def _schedule(self, pods: list[Any], nodes: dict[str, Any], now: float) -> None:
        held: Counter[str] = Counter()
        for each in pods:
            asked = each["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            held[each["spec"].get("nodeName", "")] += quantity(asked)  # type: ignore[assignment]
        for each in pods:
            meta = each["metadata"]
            if each["spec"].get("nodeName") or "deletionTimestamp" in meta:
                continue
            asked = quantity(each["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            fit = [
                name
                for name, node in nodes.items()
                if not node["spec"].get("unschedulable")
                if name in self._born
                if name not in self._dead
                if now >= self._born[name] + self._times.boot
                if held[name] + asked <= quantity(node["status"]["allocatable"]["cpu"])
            ]
            if not fit:
                continue
            chosen = min(fit, key=lambda name: (held[name], name))
            held[chosen] += asked  # type: ignore[assignment]
            target = {"apiVersion": "v1", "kind": "Node", "name": chosen}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}}
            await self._ask("POST", f"{PODS}/{meta['name']}/binding", {**body, "target": target})

    async def _run(self, pods: list[Any], now: float) -> None:
        kept, ready = set(), 0
        for each in pods:
            meta, node = each["metadata"], each["spec"].get("nodeName", "")
            if not node or node in self._dead:
                kept.add(f"{node}/{meta['uid']}")
                continue
            key = f"{node}/{meta['uid']}"
            kept.add(key)
            begun = self._begun.setdefault(key, now)
            server = self._servers.get(key)
            if "deletionTimestamp" in meta:
                if server is not None:
                    server.stop()
                if server is None or not server.open:
                    await self._ask("DELETE", f"{PODS}/{meta['name']}", {"gracePeriodSeconds": 0})
            elif server is not None:
                ready += 1
            elif now >= begun + self._times.start:
                await self._begin(key, meta["name"])
        self.ready = ready
        for key in self._servers.keys() - kept:
            self._servers.pop(key).stop()

    async def _begin(self, key: str, name: str) -> None:
        number = next(self._addresses)
        server = Server(f"10.{100 + number // 65000}.{number // 250 % 250}.{number % 250 + 1}")
        await server.start()
        self._servers[key] = server
        status = {
            "phase": "Running",
            "podIP": server.address,
            "podIPs": [{"ip": server.address}],
            "conditions": [
                {"type": kind, "status": "True"}
                for kind in ("Initialized", "ContainersReady", "Ready")
            ],
        }
        kind = "application/strategic-merge-patch+json"
        await self._ask("PATCH", f"{PODS}/{name}/status", {"status": status}, kind)

    async def _all(self, path: str) -> list[Any]:
        items: list[Any] = msgspec.json.decode(await self._connection.ask("GET", path))["items"]
        return items

    async def _ask(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> None:
        """Ask for what may be no longer needed."""
        try:
            await self._connection.ask(method, path, None, body, kind)
        except RefusedError as error:
            if error.status not in (404, 409):
                raise


def load(config: Path, requests: int, clients: int, delay: float) -> dict[str, float]:
    """Send requests, each over a connection of its own, as fast as they are answered.

    Changes of the Endpoints are followed so many seconds late. Returns how many failed, the seconds
    that it took, and the latency of those that did not (p50, p90, p99, in seconds).
    """
    places: list[tuple[str, ...]] = [()]
    known = threading.Event()

    async def follow() -> None:
        connection = await Connection.opened(Access(str(config)))
        loop = asyncio.get_running_loop()

        def hear(found: dict[str, Any]) -> None:
            ips = [
                each["ip"]
                for subset in found.get("subsets") or ()
                for each in subset.get("addresses") or ()
            ]
            places[0] = tuple(f"127.{each.removeprefix('10.')}" for each in ips)
            known.set()

        path = "/api/v1/namespaces/default/endpoints"
        while True:
            try:
                listed = msgspec.json.decode(await connection.ask("GET", f"{path}/web"))
                hear(listed)
                query = {"fieldSelector": "metadata.name=web"}
                query["resourceVersion"] = listed["metadata"]["resourceVersion"]
                async for line in connection.watch(path, query):
                    if line and (event := msgspec.json.decode(line))["type"] == "MODIFIED":
                        loop.call_later(delay, hear, event["object"])
            except (RefusedError, *UNREACHABLE):
                await asyncio.sleep(0.2)

    threading.Thread(target=lambda: asyncio.run(follow()), daemon=True).start()
    assert known.wait(30.0)
    numbers = itertools.count()
    times: list[float] = []
    failed: list[int] = []

    def client() -> None:
        for number in iter(lambda: next(numbers), None):
            if number >= requests:
                return
            now = places[0]
            begin = time.perf_counter()
            if now and answers(now[number % len(now)]):
                times.append(time.perf_counter() - begin)
            else:
                failed.append(number)
                time.sleep(PAGE_SECONDS)  # as long as an answer takes

    begin = time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    times.sort()
    shares = {f"p{share}": times[len(times) * share // 100] for share in (50, 90, 99)}
    return {"failed": len(failed), "seconds": time.monotonic() - begin, **shares}


def answers(place: str) -> bool:
    """Ask for a page; returns whether it came, whole."""
    try:
        with socket.create_connection((place, PORT), 5.0) as to:
            to.sendall(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
            text = b""
            while part := to.recv(65536):
                text += part
        return text == PAGE
    except OSError:
        return False


def revoke(
    machines: Machines,
    per_minute: float,
    warning: float,
    notice: Callable[[str, float], None],
    until: threading.Event,
) -> int:
    """Take machines back, the first after half of the time between two; returns how many."""
    drawn, told, timers = random.Random(1), set[str](), list[threading.Timer]()
    wait = 30.0 / per_minute
    while not until.wait(wait):
        wait = 60.0 / per_minute
        left = [each for each in machines.names if each not in told]
        if left:
            name = drawn.choice(left)
            told.add(name)
            notice(name, time.time() + warning)
            timers.append(threading.Timer(warning, machines.take, [name]))
            timers[-1].start()
    for each in timers:
        each.cancel()
    return len(told)


@dataclass(frozen=True)
class Trial:
    """A load on the service, and how often machines are taken back meanwhile."""

    requests: int
    clients: int
    per_minute: float
    warning: float
    delay: float
    """Seconds that changes of the Endpoints take to reach who sends."""
    times: Times
    replicas: int = 10


@contextmanager
def daemon(config: Path, settings: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The daemon of transient capacity, as a process; it says what it says to a file."""
    with (settings.parent / "daemon.log").open("a") as said:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                CALL,
                "transient",
                str(settings),
                "--config",
                str(config),
                *words,
            ],
            stderr=said,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30.0)


CALL = "from foresail_kubernetes.command import app; app()"


def measure(
    config: Path, settings: Path, trial: Trial, again: Callable[[str], dict[str, Any]] | None
) -> dict[str, Any]:
    """Load the service of a cluster, on which its objects and nodes are, and take machines back.

    With the daemon, unless machines come ``again`` without it.
    """
    notices = settings.parent / "notices"

    def notice(name: str, at: float) -> None:
        with notices.open("a") as file:
            file.write(f"{name} {datetime.fromtimestamp(at, UTC).isoformat()}\n")

    with ExitStack() as stack:
        machines = stack.enter_context(Machines(config, trial.times, again))
        if again is None:
            stack.enter_context(daemon(config, settings))
        wanted = trial.replicas
        end = time.monotonic() + 120.0
        while machines.ready < wanted:
            assert time.monotonic() < end, f"{machines.ready} of {wanted} pods are ready"
            time.sleep(0.2)
        time.sleep(2.0 + trial.delay)
        machines.machine_seconds.clear()
        call = [sys.executable, __file__, str(config), str(trial.requests), str(trial.clients)]
        begin, over = time.monotonic(), threading.Event()
        taken: list[int] = []
        if trial.per_minute:
            thread = threading.Thread(
                target=lambda: taken.append(
                    revoke(machines, trial.per_minute, trial.warning, notice, over)
                )
            )
            thread.start()
        try:
            done = subprocess.run([*call, str(trial.delay)], capture_output=True, text=True)
        finally:
            over.set()
            if trial.per_minute:
                thread.join()
        assert done.returncode == 0, done.stderr
        seconds = time.monotonic() - begin
        held = {kind: spent / seconds for kind, spent in machines.machine_seconds.items()}
        return {**json.loads(done.stdout), "revoked": sum(taken), "machines": held}


if __name__ == "__main__":
    found = load(Path(sys.argv[1]), *map(int, sys.argv[2:4]), float(sys.argv[4]))
    sys.stdout.write(json.dumps(found))
