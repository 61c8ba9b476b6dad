"""Manifests of accounts, applied to a real API server: each can do its work, and no other's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from architecture.floors import ROOT
from foresail_kubernetes.binding import Binder
from foresail_kubernetes.connection import Access, Connection, RefusedError
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.mirror import Mirror
from foresail_kubernetes.records import Pod
from foresail_kubernetes.telling import FORECAST, Teller
from foresail_kubernetes.versions import Served
from real_kubernetes import RealCluster, cluster, module_cluster, pod

__all__ = ["cluster", "module_cluster"]

NAMESPACE = "/api/v1/namespaces/foresail/serviceaccounts"


def account(cluster: RealCluster, name: str, folder: Path) -> Access:
    """The way of a service account of the manifests to the API server."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"{NAMESPACE}/{name}/token"
    answer = cluster.kubectl("create", "--raw", path, "-f", "-", document=asked)
    config = msgspec.json.decode(cluster.kubectl("config", "view", "--raw", "-o", "json"))
    config["users"] = [
        {"name": name, "user": {"token": msgspec.json.decode(answer)["status"]["token"]}}
    ]
    where = config["clusters"][0]["name"]
    config["contexts"] = [{"name": name, "context": {"cluster": where, "user": name}}]
    config["current-context"] = name
    file = folder / name
    file.write_bytes(msgspec.json.encode(config))
    return Access(str(file))


def within(access: Access, work: Callable[[Connection], Awaitable[Any]]) -> Any:
    async def begin() -> Any:
        connection = await Connection.opened(access)
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(begin())


async def status_of(connection: Connection, method: str, path: str, body: object = None) -> int:
    """The status of what is refused; 200 for anything else."""
    try:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        await connection.ask(method, path, None, body, kind)
    except RefusedError as error:
        return error.status
    return 200


@pytest.mark.slow
def test_each_account_can_do_its_work_alone(cluster: RealCluster, tmp_path: Path) -> None:
    """Accounts of all parts do their work, by the manifests as they are."""
    cluster.kubectl("apply", "-k", str(ROOT / "deploy" / "kubernetes"))
    cluster.create(pod("a", schedulerName="foresail"), pod("b", schedulerName="foresail"))
    names = ("observer", "teller", "scheduler", "gates")
    accounts = [account(cluster, f"foresail-{each}", tmp_path) for each in names]
    observer, teller, scheduler, gates = accounts

    def seen(access: Access) -> dict[str, Pod]:
        mirror = Mirror.begun(access)
        try:
            return {each.name: each for each in mirror.all_pods().values()}
        finally:
            mirror.close()

    assert seen(observer).keys() == {"a", "b"}
    pods = seen(scheduler)
    row: dict[str, Any] = {
        "job_id": f"kubernetes:{pods['a'].job_id}",
        "reason": {"sentence": "it is tried"},
    }

    async def lets_go(connection: Connection) -> tuple[bool, list[Any], int]:
        lease = Lease(connection, "foresail", "foresail-foresail", "gates")
        await lease.ask()
        binder = Binder(connection, lease, Served())
        await binder.release(pods["a"], "foresail.io/foresail", 1)
        is_held = lease.is_held
        await lease.give_up()
        where = "/api/v1/namespaces/default/pods/a/binding"
        return is_held, [*binder.not_bound], await status_of(connection, "POST", where, {})

    async def tells(connection: Connection) -> int:
        return await Teller(connection, 5, print, "foresail").tell([row], time.time())

    async def binds(connection: Connection) -> tuple[bool, list[Any]]:
        lease = Lease(connection, "foresail", "foresail-foresail", "me")
        await lease.ask()
        await lease.ask()
        binder = Binder(connection, lease, Served())
        await binder.bind(pods["b"], "n1", 1)
        return lease.is_held, [*binder.not_bound]

    assert seen(gates).keys() == {"a", "b"}
    assert within(gates, lets_go) == (True, [], 403)
    assert within(teller, tells) == 1
    assert FORECAST in cluster.kubectl("get", "pod", "a", "-o", "jsonpath={.metadata.annotations}")
    assert within(scheduler, binds) == (True, [])
    assert cluster.kubectl("get", "pod", "b", "-o", "jsonpath={.spec.nodeName}") == "n1"

    async def refused(connection: Connection) -> set[int]:
        where = "/api/v1/namespaces/default/pods/a"
        found = {await status_of(connection, method, where, {}) for method in ("DELETE", "PUT")}
        found.add(await status_of(connection, "GET", "/api/v1/secrets"))
        found.add(await status_of(connection, "POST", "/api/v1/namespaces/default/pods", pod("c")))
        found.add(await status_of(connection, "PATCH", "/api/v1/nodes/n1", {}))
        return found

    async def evicts(connection: Connection) -> int:
        return await status_of(connection, "POST", "/api/v1/namespaces/x/pods/y/eviction", {})

    for each in (observer, teller, scheduler, gates):
        assert within(each, refused) == {403}
        assert (within(each, evicts) == 403) is (each is not scheduler)
    row["reason"] = {"sentence": "it is news"}
    with pytest.raises(RefusedError, match="403"):
        within(observer, tells)
    (none,) = within(observer, lambda connection: other_binds(connection, pods["a"]))
    assert "this account may not bind it" in none.why
    with pytest.raises(RefusedError, match="403"):
        within(scheduler, tells_again)


async def other_binds(connection: Connection, one: Pod) -> list[Any]:
    """Bind a pod with a lease that somebody else has asked for."""

    class Held:
        is_held = True

    binder = Binder(connection, Held(), Served())  # type: ignore[arg-type]
    await binder.bind(one, "n1", 1)
    return [*binder.not_bound]


async def tells_again(connection: Connection) -> None:
    path = "/api/v1/namespaces/default/pods/a"
    await connection.ask("PATCH", path, None, {}, "application/merge-patch+json")
