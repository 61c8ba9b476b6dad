"""A service that binds pods of a real API server, through kills of itself and of that; replicas."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail_kubernetes.quantities import quantity
from live_service import LiveService, live_service
from long_series import of_a_series
from real_kubernetes import RealCluster, cluster, module_cluster, pod, until

__all__ = ["cluster", "module_cluster"]

NODES = {"n1", "n2", "t1", "t2"}


def lines(cluster: RealCluster) -> str:
    named = f"config={cluster.config},decides=foresail"
    return f'policy = "easy"\ncluster = "kubernetes({named})"'


def ours(name: str, cpu: str = "1", **more: Any) -> dict[str, Any]:
    return pod(name, cpu, schedulerName="foresail", **more)


def pods(cluster: RealCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(
        cluster.kubectl("get", "--raw", "/api/v1/namespaces/default/pods")
    )["items"]
    return found


def nodes_of(cluster: RealCluster) -> dict[str, str]:
    """Nodes that pods are bound to, by name."""
    bound = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in pods(cluster)}
    return {name: node for name, node in bound.items() if node}


def cpus_by_node(cluster: RealCluster) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for each in pods(cluster):
        if each["status"].get("phase") == "Succeeded":
            continue
        (container,) = each["spec"]["containers"]
        asked = quantity(container["resources"]["requests"]["cpu"])
        total[each["spec"].get("nodeName", "")] += float(asked)
    return total


def sentence_of(service: LiveService, name: str) -> str:
    """Return why the job of a pod, or of a group, waits."""
    with service.client() as client:
        rows = client.get("/v1/jobs").json().get("jobs", ())
        (row,) = [each for each in rows if f".{name}+" in each["job_id"]] or [{}]
        return (row.get("reason") or {}).get("sentence", row.get("state", ""))


@pytest.mark.slow
def test_pods_are_bound_where_there_is_room(cluster: RealCluster, tmp_path: Path) -> None:
    """Beside what others have bound; those of other schedulers wait for these, with the reason."""
    cluster.create(*(pod(f"other{number}", "6") for number in range(4)), pod("alien"))
    for number, node in enumerate(sorted(NODES)):
        cluster.bind(f"other{number}", node)
    only = ours("only", nodeSelector={"pool": "transient"})
    cluster.create(*(ours(f"one{number}") for number in range(3)), only, ours("wide", "8"))
    with live_service(tmp_path, lines(cluster)) as service:
        until(lambda: len(nodes_of(cluster)) == 8, "all that fits is bound", 60.0)
        bound = nodes_of(cluster)
        assert bound["only"] in {"t1", "t2"}
        assert "wide" not in bound
        assert max(cpus_by_node(cluster)[node] for node in NODES) <= 8.001
        said = "left to the cluster: is for the scheduler nobody"
        until(lambda: sentence_of(service, "alien") == said, "it says why", 10.0)
        for name in [each for each, node in bound.items() if node == bound["other0"]]:
            cluster.end(name)
        until(lambda: "wide" in nodes_of(cluster), "what becomes free is used", 30.0)
        assert nodes_of(cluster)["wide"] == bound["other0"]


@pytest.mark.slow
def test_it_goes_on_after_kills(cluster: RealCluster, tmp_path: Path) -> None:
    """Kills of the service in mid-binding, of API server and etcd: each pod begins once."""
    kills, waiting, kept = of_a_series(200, short=3), 4, 8
    cluster.create(*(ours(f"wide{number}", "9") for number in range(waiting)))

    def are_bound(round_: str, count: int) -> Callable[[], bool]:
        return lambda: sum(each.startswith(round_) for each in nodes_of(cluster)) >= count

    for number in range(kills):
        victim = ("service", "apiserver", "etcd")[number % 3]
        round_ = f"{victim}-{number}-"
        with live_service(tmp_path, lines(cluster)) as service:
            names = [f"{round_}{each}" for each in range(9)]
            cluster.create(*(ours(name, "100m", memory="64Mi") for name in names))
            until(are_bound(round_, 1), "some are bound", 60.0)
            if victim == "service":
                service.process.kill()
                service.process.wait()
            else:
                cluster.control("kill", victim)
                cluster.control("start", victim)
                until(are_bound(round_, 9), "all are bound", 90.0)
        for name in nodes_of(cluster):
            if f"-{number - kept}-" in name:
                cluster.end(name)
    with live_service(tmp_path, lines(cluster)) as service:
        until(are_bound(round_, 9), "all are bound", 60.0)
        assert max(cpus_by_node(cluster)[node] for node in NODES) <= 8.001
        ended = 9 * max(0, kills - kept)
        running = 9 * kills - ended

        def count(state: str) -> int:
            with service.client() as client:
                wanted: dict[str, Any] = {"state": state, "count": True, "limit": 1}
                return int(client.get("/v1/jobs", params=wanted).json().get("total", 0))

        until(lambda: count("running") == running, "the service knows them", 30.0)
        assert [count(each) for each in ("completed", "pending")] == [ended, waiting]
        with service.client() as client:
            assert client.get("/v1/jobs", params={"count": True}).json()["total"] == (
                9 * kills + waiting
            )


@pytest.mark.slow
def test_of_two_replicas_one_binds(cluster: RealCluster, tmp_path: Path) -> None:
    """The other waits, says for whom, and goes on when that has gone."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with live_service(tmp_path / "a", lines(cluster)) as first:
        cluster.create(ours("early"))
        until(lambda: "early" in nodes_of(cluster), "the first binds", 60.0)
        with live_service(tmp_path / "b", lines(cluster)) as second:
            with second.client() as client:
                end = time.monotonic() + 30.0
                while "another replica decides" not in client.get("/v1/health").text:
                    assert time.monotonic() < end, client.get("/v1/health").text
                    time.sleep(0.2)
            first.process.kill()
            cluster.create(ours("late"))
            until(lambda: "late" in nodes_of(cluster), "the second binds", 60.0)
