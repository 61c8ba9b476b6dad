"""Binding and the lease, against a server that answers as a test has it; no API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from foresail_kubernetes import binding, lease
from foresail_kubernetes.binding import Binder, NotBound
from foresail_kubernetes.connection import Connection, RefusedError
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.versions import Served
from test_observing_pods import made

POD = made("u1", name="train-xxxx2")


def there(node: str = "", uid: str = "u1") -> bytes:
    return msgspec.json.encode({"metadata": {"uid": uid}, "spec": {"nodeName": node}})


class Answering(Connection):
    """A connection to a server of some answers, in order; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, str, Any]] = []

    async def ask(
        self, method: str, path: str, query: Any = None, body: Any = None, *_: Any, **__: Any
    ) -> bytes:
        self.asked.append((method, path, body))
        if not self.answers:
            pytest.fail("nothing more was to be asked")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bytes(answer)


class Held:
    """A lease that is held, or not."""

    def __init__(self, is_held: bool = True) -> None:
        self.is_held = is_held


def bound(connection: Connection, held: bool = True) -> list[NotBound]:
    """Bind a pod by its second attempt; what is known not to be bound."""

    async def work() -> list[NotBound]:
        binder = Binder(connection, Held(held), Served())  # type: ignore[arg-type]
        await binder.bind(POD, "n1", 2)
        return [*binder.not_bound]

    return asyncio.run(work())


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(binding, "_BIND_SECONDS", 0.2)


def refused(status: int) -> RefusedError:
    return RefusedError(status, b"because", "POST")


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([b"{}"], ""),
        ([refused(409), there("n1")], ""),  # an earlier call of ours, or another's: the watch says
        ([refused(409), there("n2")], ""),
        ([refused(409), there()], "refused to bind it"),
        ([refused(404), refused(404)], "it has gone"),
        ([refused(409), there("", "u9")], "another pod has its name"),
        ([TimeoutError(), there("n1")], ""),
        ([TimeoutError(), OSError(), refused(503), b"{garbage", there()], "did not answer"),
        ([OSError(), OSError(), there("n1")], ""),
        ([refused(500), there("n1")], ""),
        ([refused(500), there()], "refused to bind it"),
        ([refused(403)], "this account may not bind it"),
    ],
)
def test_what_is_not_known_is_looked_at(answers: list[Any], why: str) -> None:
    """A pod counts as not bound only once it was seen so; every answer is asked for."""
    connection = Answering(*answers)
    found = bound(connection)
    assert connection.answers == []
    assert [(each.pod.job_id, each.attempt) for each in found] == [("lab.train-xxxx2", 2)] * bool(
        why
    )
    assert all(why in each.why for each in found)
    method, path, body = connection.asked[0]
    assert (method, path) == ("POST", "/api/v1/namespaces/lab/pods/train-xxxx2/binding")
    assert (body["target"]["name"], body["metadata"]["uid"]) == ("n1", "u1")
    assert [method for method, *_ in connection.asked[1:]] == ["GET"] * (len(answers) - 1)


@pytest.mark.parametrize(("gates", "is_done"), [([], True), ([{"name": "g"}], False)])
def test_a_gate_that_may_be_open_is_looked_at(gates: list[Any], is_done: bool) -> None:
    """After a time-out it counts as open only once it was seen so."""
    there = msgspec.json.encode({"metadata": {"uid": "u1"}, "spec": {"schedulingGates": gates}})

    async def work() -> list[str]:
        binder = Binder(Answering(TimeoutError(), there), Held(), Served())  # type: ignore[arg-type]
        await binder.release(POD, "g", 1)
        return [each.why for each in binder.not_bound]

    why = "the API server did not answer (TimeoutError)"
    assert asyncio.run(work()) == [why] * (not is_done)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"{}", ""),
        (refused(404), ""),  # it has gone
        (refused(409), ""),  # another pod has its name by now, or it is leaving
        (refused(429), "a disruption budget keeps it for now"),
        (refused(403), "this account may not evict pods"),
        (refused(500), "POST: 500 because"),
        (TimeoutError(), "the API server did not answer (TimeoutError)"),
    ],
)
def test_an_eviction_is_of_one_pod_and_its_refusal_is_said(answer: Any, why: str) -> None:
    """By the version that is served, for a pod by its uid; without the lease none is asked for."""
    connection = Answering(answer)

    async def work(is_held: bool) -> list[str]:
        binder = Binder(connection, Held(is_held), Served("policy/v1beta1"))  # type: ignore[arg-type]
        await binder.evict(POD)
        return [each.why for each in binder.not_evicted]

    assert asyncio.run(work(is_held=False)) == []
    assert asyncio.run(work(is_held=True)) == [why] * bool(why)
    ((method, path, body),) = connection.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/lab/pods/train-xxxx2/eviction")
    assert (body["apiVersion"], body["kind"]) == ("policy/v1beta1", "Eviction")
    assert body["deleteOptions"]["preconditions"] == {"uid": "u1"}


def test_a_binding_that_is_not_answered_is_given_up_in_time() -> None:
    """Before the lease could be another's; then it is looked at."""

    class Slow(Answering):
        async def ask(self, method: str, *given: Any, **more: Any) -> bytes:
            if method == "POST":
                await asyncio.sleep(60.0)
            return await super().ask(method, *given, **more)

    began = time.monotonic()
    assert [each.why for each in bound(Slow(there()))] == [
        "the API server did not answer (TimeoutError)"
    ]
    assert time.monotonic() - began < 10.0
    assert lease._MARGIN_SECONDS > 4.0  # more than a binding takes


def test_without_the_lease_nothing_is_bound() -> None:
    """Nor asked."""
    connection = Answering()
    assert [each.why for each in bound(connection, held=False)] == [
        "this replica does not decide any more"
    ]


def test_no_more_than_so_many_are_bound_at_once() -> None:
    """Bindings at once are 32 of a hundred."""
    most = now = 0

    class Counting(Answering):
        async def ask(self, *_: Any, **__: Any) -> bytes:
            nonlocal most, now
            now += 1
            most = max(most, now)
            try:
                await asyncio.sleep(0.001)
            finally:  # or given up, where others keep the machine busy
                now -= 1
            return b"{}"

    async def work() -> None:
        binder = Binder(Counting(), Held(), Served())  # type: ignore[arg-type]
        await asyncio.gather(*(binder.bind(POD, "n1", 1) for _ in range(100)))

    asyncio.run(work())
    assert most == 32


class Leases(Connection):
    """A server that keeps one lease, as the API does: versions decide who was quicker."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.is_away = False
        self.trouble: Exception = OSError("away")

    async def ask(
        self, method: str, path: str, query: Any = None, body: Any = None, *_: Any, **__: Any
    ) -> bytes:
        await asyncio.sleep(0)
        if self.is_away:
            raise self.trouble
        if method == "GET":
            if self.lease is None:
                raise RefusedError(404, b"", "GET")
            return msgspec.json.encode(self.lease)
        known = (body["metadata"].get("resourceVersion"), method)
        if known != ((None, "POST") if self.lease is None else (str(self.version), "PUT")):
            raise RefusedError(409, b"", method)
        self.version += 1
        self.lease = msgspec.json.decode(msgspec.json.encode(body))
        assert self.lease is not None
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return b"{}"


def with_leases(work: Callable[[Leases, Lease, Lease], Awaitable[None]]) -> None:
    async def begin() -> None:
        server = Leases()
        await work(server, *(Lease(server, "default", "foresail", name) for name in "ab"))

    asyncio.run(begin())


class Clock:
    """Seconds that pass as a test has it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(lease.time, "monotonic", lambda: self.now)


def test_one_holds_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for at once, by as long as it is renewed; given up, it is the other's at once."""
    clock = Clock(monkeypatch)

    async def work(server: Leases, a: Lease, b: Lease) -> None:
        await asyncio.gather(a.ask(), b.ask())
        assert [a.is_held, b.is_held].count(True) == 1
        first, other = (a, b) if a.is_held else (b, a)
        for _ in range(10):
            clock.now += 3.0
            await asyncio.gather(other.ask(), first.ask())
            assert (first.is_held, other.is_held) == (True, False)
        assert "another replica decides" in other.problem
        await first.give_up()
        assert not first.is_held
        await other.ask()
        assert other.is_held

    with_leases(work)


def test_a_lease_that_is_not_renewed_is_taken_after_its_holder_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever holds it stops five seconds before another may take it, cut off or not."""
    clock = Clock(monkeypatch)

    async def work(server: Leases, a: Lease, b: Lease) -> None:
        await a.ask()
        stopped = taken = 0.0
        for _ in range(100):
            clock.now += 0.5
            await b.ask()
            assert not (a.is_held and b.is_held)
            stopped = stopped or (0.0 if a.is_held else clock.now)
            taken = taken or (clock.now if b.is_held else 0.0)
        assert (stopped - 1000.0, taken - 1000.0) == (10.0, 16.0)
        server.is_away = True
        await b.ask()
        assert b.is_held
        assert "OSError" in b.problem
        server.trouble = RuntimeError("nobody has thought of it")
        await b.ask()
        assert "RuntimeError" in b.problem
        clock.now += 10.0
        assert not b.is_held

    with_leases(work)
