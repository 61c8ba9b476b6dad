"""Rounds of the daemon of transient capacity, against an API server that is made up."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.model.errors import InputError
from foresail_kubernetes.connection import RefusedError
from foresail_kubernetes.transient.planning import Pool
from foresail_kubernetes.transient.rounds import Place, Rounds, _answer_probes
from foresail_kubernetes.transient.settings import read_settings
from serving_cluster import write_settings

NOW = 1_796_148_000.0


class Server:
    """What an API server would answer, and what it was asked for beside lists."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.refuses: dict[str, int] = {}
        self.changes: list[tuple[str, str, Any]] = []
        self.looks = 0

    async def ask(
        self, method: str, path: str, query: Any = None, body: Any = None, kind: str = ""
    ) -> bytes:
        for part, status in self.refuses.items():
            if part in path:
                raise RefusedError(status, b"no", f"{method} {path}")
        if method == "GET":
            self.looks += 1
            found = self.lists.get(path.rpartition("/")[2], [])
            if query and "spec.nodeName=," in query.get("fieldSelector", ""):
                found = [each for each in found if not each["spec"].get("nodeName")]
            return msgspec.json.encode({"items": found, "metadata": {}})
        assert kind == ("application/merge-patch+json" if method == "PATCH" else "application/json")
        self.changes.append((method, path, body))
        return b"{}"


class Held:
    is_held = True
    problem = "another replica decides"


def rounds(server: Server, folder: Path, said: list[str]) -> Rounds:
    settings = read_settings(write_settings(folder, wait=5.0))
    made = Rounds(server, settings, Place(folder, "default", "me"), said.append)  # type: ignore[arg-type]
    made.lease = Held()  # type: ignore[assignment]
    return made


def node(name: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": {"foresail.io/transient": "a"}, **more.pop("metadata", {})}
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "2", "pods": "10"},
    }
    return {"metadata": meta, "spec": more, "status": status}


def a_pod(name: str, where: str = "n1", **labels: str) -> dict[str, Any]:
    needs = {"resources": {"requests": {"cpu": "2"}}}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    spec = {"containers": [needs]} | ({"nodeName": where} if where else {})
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def test_who_does_not_hold_the_lease_does_nothing(tmp_path: Path) -> None:
    """It says once who does, and goes on looking well."""
    said: list[str] = []
    server = Server()
    daemon = rounds(server, tmp_path, said)
    daemon.lease.is_held = False  # type: ignore[misc]
    for _ in range(3):
        asyncio.run(daemon.go(NOW))
    assert (server.looks, server.changes, said) == (0, [], ["another replica decides"])
    assert daemon.last_seconds > 0.0


@pytest.mark.parametrize(("status", "words"), [(403, "this account lacks a right"), (500, "500")])
def test_what_is_refused_is_said_once(tmp_path: Path, status: int, words: str) -> None:
    """Until it goes; a round that failed is no sign of life."""
    said: list[str] = []
    server = Server()
    daemon = rounds(server, tmp_path, said)
    server.refuses = {"/nodes": status}
    for _ in range(3):
        asyncio.run(daemon.go(NOW))
    assert len(said) == 1
    assert words in said[0]
    assert daemon.last_seconds == 0.0
    server.refuses = {}
    asyncio.run(daemon.go(NOW))
    assert daemon.last_seconds > 0.0


def test_a_notice_becomes_a_cordon_with_its_end(tmp_path: Path) -> None:
    """In one change, with the label for load balancers; the file's bad lines are said."""
    said: list[str] = []
    server = Server()
    daemon = rounds(server, tmp_path, said)
    server.lists = {"nodes": [node("n1"), node("n2")], "pods": [a_pod("p")]}
    (tmp_path / "notices").write_text("n1 2026-12-01T18:05:00Z\nn2 what\n")
    asyncio.run(daemon.go(NOW))
    ((method, path, body),) = server.changes
    assert (method, path) == ("PATCH", "/api/v1/nodes/n1")
    assert body["spec"] == {"unschedulable": True}
    assert body["metadata"]["annotations"] == {"foresail.io/taken-back-at": "2026-12-01T18:05:00Z"}
    assert body["metadata"]["labels"] == {
        "node.kubernetes.io/exclude-from-external-load-balancers": ""
    }
    assert "line 2: 'n2 what'" in said[0]


def test_each_step_is_one_change(tmp_path: Path) -> None:
    """Out of the endpoints, and evicted; each only if it is the same pod still."""
    server, said = Server(), list[str]()
    daemon = rounds(server, tmp_path, said)
    ends = {"annotations": {"foresail.io/taken-back-at": "2026-12-01T18:05:00Z"}}
    going = node("n1", metadata=ends, unschedulable=True)
    server.lists = {"nodes": [going], "pods": [a_pod("batch")]}
    asyncio.run(daemon.go(NOW))
    ((method, path, body),) = server.changes
    assert (method, path) == ("POST", "/api/v1/namespaces/default/pods/batch/eviction")
    assert body["deleteOptions"] == {"preconditions": {"uid": "batch"}}
    server.refuses = {"/eviction": 429}
    for at in (1.0, 2.0):
        asyncio.run(daemon.go(NOW + at))
    assert said == ["n1: not evicted yet: default/batch"]
    server.refuses = {}
    server.changes.clear()
    ready = a_pod("web", **{"foresail.io/serving": "yes"})
    server.lists["pods"] = [ready]
    asyncio.run(daemon.go(NOW))
    ((method, path, body),) = server.changes
    assert (method, path) == ("PATCH", "/api/v1/namespaces/default/pods/web")
    assert body["metadata"] == {
        "uid": "web",
        "labels": {"foresail.io/serving": None},
        "annotations": {"foresail.io/out-of-endpoints-since": "2026-12-01T18:00:00Z"},
    }
    server.changes.clear()
    server.lists["pods"] = []
    asyncio.run(daemon.go(NOW))
    assert server.changes == [("DELETE", "/api/v1/nodes/n1", None)]


def test_who_may_not_be_evicted_is_left_alone_for_a_while(tmp_path: Path) -> None:
    """Its budget was asked; thirty seconds later it is asked again."""
    server = Server()
    daemon = rounds(server, tmp_path, [])
    server.lists = {"nodes": [node("n1")], "pods": [a_pod("batch"), a_pod("web", "", app="web")]}
    server.refuses = {"/eviction": 429}
    asyncio.run(daemon.go(NOW))
    server.refuses = {}
    asyncio.run(daemon.go(NOW + 29.0))
    assert server.changes == []
    asyncio.run(daemon.go(NOW + 31.0))
    assert [path for _, path, _ in server.changes] == [
        "/api/v1/namespaces/default/pods/batch/eviction"
    ]


def test_machines_are_asked_for_when_their_number_changes(tmp_path: Path) -> None:
    """And once a minute; where asking fails, in the next round, and machines are left meanwhile."""
    said: list[str] = []
    server = Server()
    daemon = rounds(server, tmp_path, said)
    told: list[int] = []

    class Makes:
        fails = False

        async def ask(self, numbers: dict[Pool, int], _: Any) -> None:
            if self.fails:
                raise OSError("no quota")
            told.extend(numbers.values())

    made = Makes()
    daemon._maker = made  # type: ignore[assignment]
    daemon._pools = (Pool("a", 2, 1.0),)
    daemon._settings = msgspec.structs.replace(
        daemon._settings, pools=msgspec.structs.replace(daemon._settings.pools, by="command")
    )
    for at in (0.0, 1.0, 59.0, 61.0):
        asyncio.run(daemon.go(NOW + at))
    assert told == [2, 2]
    server.lists = {"nodes": [node("n1"), node("n2")]}
    (tmp_path / "notices").write_text("n1\n")
    made.fails = True
    asyncio.run(daemon.go(NOW + 62.0))
    assert "machines were not asked for: no quota" in said
    assert [path for _, path, _ in server.changes] == ["/api/v1/nodes/n1"]
    made.fails = False
    asyncio.run(daemon.go(NOW + 63.0))
    assert told == [2, 2, 3]


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    """By the option's name, before any machine is left."""
    write_settings(tmp_path, wait=1.0, units=1, nines=1.0)
    rounds = Rounds(
        Server(),  # type: ignore[arg-type]
        read_settings(tmp_path / "settings.toml"),
        Place(tmp_path, "default", "me"),
        print,
    )
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=r"--port.*Address already in use"):
            asyncio.run(_answer_probes(rounds, port))
