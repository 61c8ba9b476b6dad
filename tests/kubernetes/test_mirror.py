"""Mirror of pods and nodes through what a network, an API server and time do to a watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.model.errors import InputError
from foresail_kubernetes import mirror as mirrors
from foresail_kubernetes.connection import Access, Connection, RefusedError
from foresail_kubernetes.mirror import Mirror
from foresail_kubernetes.versions import Served
from real_kubernetes import RealCluster, cluster, module_cluster, pod, until

__all__ = ["cluster", "module_cluster"]


def line(kind: str, name: str, version: int, **more: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": document(name, version, **more)})


def document(name: str, version: int, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "lab", "uid": f"uid of {name}"}
    return {"metadata": {**meta, "resourceVersion": str(version)}, **more}


class Scripted(Connection):
    """A connection to a server that says of pods what a test has it say, page by page."""

    def __init__(self, pages: list[Any], watches: list[list[Any]]) -> None:
        self.pages = pages
        self.watches = watches
        self.watched_from: list[str] = []

    async def close(self) -> None:
        pass

    async def ask(self, method: str, path: str, query: Any = None, *_: Any, **__: Any) -> bytes:
        if path.endswith("podgroups"):
            raise RefusedError(403, b"", path)
        if path in ("/apis", "/api/v1"):
            raise RefusedError(404, b"", path)
        if path.endswith("nodes"):
            page: Any = {"items": [document("n1", 1)], "metadata": {"resourceVersion": "1"}}
        else:
            page = self.pages.pop(0)
            assert (query.get("continue") == "more") is (page == self.pages_continued(page))
        if isinstance(page, Exception):
            raise page
        return msgspec.json.encode(page)

    def pages_continued(self, page: Any) -> Any:
        """The page, if it is one that another has announced."""
        return page if isinstance(page, dict) and page.get("continued") else None

    async def watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        if path.endswith("nodes") or not self.watches:
            yield b""
            await asyncio.sleep(60.0)
        self.watched_from.append(query["resourceVersion"])
        for each in self.watches.pop(0):
            if isinstance(each, Exception):
                raise each
            yield each


def page(*names: str, version: int = 10, more: str = "", continued: bool = False) -> dict[str, Any]:
    meta = {"resourceVersion": str(version), "continue": more}
    return {
        "metadata": meta,
        "items": [document(each, 5) for each in names],
        "continued": continued,
    }


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Begin a mirror of a scripted server, with short pauses."""
    begun: list[Mirror] = []
    monkeypatch.setattr(mirrors, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(mirrors, "_PATIENCE_SECONDS", 0.1)

    def begin(pages: list[Any], *watches: list[Any]) -> tuple[Mirror, Scripted]:
        connection = Scripted(pages, [*watches])

        async def opened(_: Access) -> Connection:
            return connection

        monkeypatch.setattr(Connection, "opened", opened)
        begun.append(Mirror.begun(Access()))
        return begun[-1], connection

    yield begin
    for each in begun:
        each.close()


def test_pod_groups_may_be_forbidden(begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All else is seen, and that is said to whom it concerns."""

    async def found(_: Connection) -> Served:
        return Served(pod_groups=("/apis/x/v1/podgroups",))

    monkeypatch.setattr(mirrors, "served", found)
    mirror, _ = begin([page("a")])
    assert names(mirror) == {"a"}
    assert mirror.all_groups() == {}
    assert "this account may not read pod groups" in mirror.unread


def names(mirror: Mirror) -> set[str]:
    return {each.name for each in mirror.all_pods().values()}


def test_pages_and_events_make_what_there_is(begin: Any) -> None:
    """Two pages, then what comes, changes and goes; each change is taken once."""
    mirror, connection = begin(
        [page("a", "b", more="more"), page("c", continued=True)],
        [
            b"",
            line("ADDED", "d", 11),
            line("MODIFIED", "a", 12, status={"phase": "Running"}),
            line("DELETED", "b", 13, status={"phase": "Failed"}),
            line("BOOKMARK", "", 20),
        ],
        [b"", line("DELETED", "c", 21), line("ADDED", "e", 22)],
    )
    until(lambda: names(mirror) == {"a", "d", "e"}, "the watch is followed")
    assert connection.watched_from == ["10", "20"]
    taken = mirror.take()
    assert {each.name for each in taken.pods.values()} == {"a", "d", "e"}
    assert {each.name: each.phase for each in taken.gone.values()} == {"b": "Failed", "c": ""}
    assert taken.nodes is not None
    again = mirror.take()
    assert (again.pods, again.gone, again.nodes) == ({}, {}, None)


@pytest.mark.parametrize(
    "trouble",
    [
        RefusedError(410, b"too old", "watch"),
        msgspec.json.encode({"type": "ERROR", "object": {"code": 410, "message": "too old"}}),
        b"{garbage",
        RuntimeError("nobody has thought of it"),
    ],
    ids=["refused", "event", "garbage", "unknown"],
)
def test_what_is_too_old_is_listed_again(begin: Any, trouble: Any) -> None:
    """Pods that came and went meanwhile are found by the difference; the rest is no news."""
    mirror, connection = begin(
        [page("a", "b"), page("b", "c", version=50)], [b"", trouble], [b"", line("ADDED", "d", 51)]
    )
    until(lambda: names(mirror) == {"b", "c", "d"}, "it is listed again")
    assert connection.watched_from == ["10", "50"]
    assert {each.name for each in mirror.take().gone.values()} == {"a"}


@pytest.mark.parametrize(
    "trouble", [ConnectionResetError("gone"), TimeoutError(), RefusedError(503, b"later", "watch")]
)
def test_what_is_lost_is_gone_on_with(begin: Any, trouble: Exception) -> None:
    """From the last version that was seen, without another list."""
    mirror, connection = begin(
        [page("a")], [b"", line("ADDED", "b", 30), trouble], [trouble], [b""]
    )
    until(lambda: len(connection.watched_from) == 3, "it is watched again")
    assert connection.watched_from == ["10", "30", "30"]
    until(lambda: not mirror.problem, "an absence ends with a watch that is open")
    assert names(mirror) == {"a", "b"}


def test_an_absence_that_lasts_is_said(begin: Any) -> None:
    """In the words of the fault, and no longer than it lasts."""
    mirror, _ = begin([page("a")], *[[OSError("no route")]] * 8, [b"", line("ADDED", "b", 11)])
    until(lambda: "no route" in mirror.problem, "it is said")
    until(lambda: not mirror.problem, "it is over")


def test_who_cannot_be_reached_at_first_is_said(begin: Any) -> None:
    """At once, rather than waited for."""
    began = time.monotonic()
    with pytest.raises(ConnectionError, match="OSError: nobody"):
        begin([OSError("nobody")])
    with pytest.raises(ConnectionError, match="may not get, list and watch pods and nodes"):
        begin([RefusedError(403, b"no", "list")])
    assert time.monotonic() - began < 10.0


def test_a_file_that_says_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, be it none, no document, or without such a context."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for text in ("", "a: [", "apiVersion: v1\nkind: Config\ncontexts: []\n"):
        path = tmp_path / "config"
        path.write_text(text)
        with pytest.raises(InputError, match="where an API server is"):
            Mirror.begun(Access(str(path), "there"))
    with pytest.raises(InputError, match="where an API server is"):
        Mirror.begun(Access())


@pytest.mark.slow
def test_a_real_one_is_followed_through_kill_9(
    cluster: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills of API server and etcd: nothing that came or went meanwhile is missed."""
    cluster.create(*(pod(f"p{number}") for number in range(30)))
    mirror = Mirror.begun(Access(str(cluster.config)))
    try:
        assert len(mirror.all_pods()) == 30
        assert {each.pool for each in mirror.all_nodes().values()} == {"fixed", "transient"}
        for daemon in ("apiserver", "etcd"):
            cluster.control("kill", daemon)
            cluster.control("start", daemon)
            until(lambda: "p" in cluster.kubectl("get", "pods", "-o", "name"), "it is back", 60.0)
            cluster.kubectl("delete", "pod", "p1", "--grace-period=0", "--force")
            cluster.create(pod("p1"), pod(f"new-{daemon}"))
            cluster.bind("p1", "n1")
            wanted = {f"p{number}" for number in range(30)}
            wanted |= {f"new-{each}" for each in ("apiserver", "etcd")[: 1 + (daemon == "etcd")]}
            until(lambda wanted=wanted: names(mirror) == wanted, "all is seen", 60.0)  # type: ignore[misc]
            until(lambda: not mirror.problem, "it is over", 60.0)
            until(lambda: any(e.node == "n1" for e in mirror.all_pods().values()), "it is bound")
    finally:
        mirror.close()


@pytest.mark.slow
def test_who_may_not_look_is_told(cluster: RealCluster) -> None:
    """An account without rights to nodes hears what it lacks."""
    with pytest.raises(ConnectionError, match=r"may not get, list and watch pods and nodes.*403"):
        Mirror.begun(Access(str(cluster.limited_config)))
