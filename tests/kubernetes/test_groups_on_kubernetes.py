"""Groups of pods on a real API server: whole or not at all, through kills of whoever binds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from live_service import live_service
from long_series import of_a_series
from real_kubernetes import RealCluster, cluster, module_cluster, until
from test_deciding_kubernetes import NODES, cpus_by_node, lines, nodes_of, ours, pods, sentence_of

__all__ = ["cluster", "module_cluster"]

KUEUE = "kueue.x-k8s.io/pod-group-name"
COUNT = "kueue.x-k8s.io/pod-group-total-count"
PLUGINS = "scheduling.x-k8s.io/pod-group"


def group(name: str, count: int, cpu: str = "1", **more: Any) -> list[dict[str, Any]]:
    """Pods of a group, by the convention of Kueue."""
    meta = {"labels": {KUEUE: name}, "annotations": {COUNT: str(count)}}
    return [ours(f"{name}-{number}", cpu, metadata=meta, **more) for number in range(count)]


def halves(cluster: RealCluster) -> set[str]:
    """Groups of which some pods are bound, and others are not."""
    found: dict[str, set[bool]] = defaultdict(set)
    for each in pods(cluster):
        name = each["metadata"].get("labels", {}).get(KUEUE, each["metadata"]["name"])
        found[name].add("nodeName" in each["spec"])
    return {name for name, some in found.items() if len(some) > 1}


def definition_of_groups() -> dict[str, Any]:
    """The resource of the scheduler plug-ins by which a group says how many pods it has."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "podgroups.scheduling.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": "scheduling.x-k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.mark.slow
def test_a_group_starts_whole(cluster: RealCluster, tmp_path: Path) -> None:
    """Driver and workers of different size; one that is incomplete, or has no room, waits whole."""
    cluster.create(definition_of_groups())
    path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
    until(lambda: "podgroups" in cluster.kubectl("api-resources"), "groups are served")
    labels = {"labels": {PLUGINS: "spark"}}
    sized = {"metadata": {"name": "spark"}, "spec": {"minMember": 4}}
    sized |= {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    cluster.kubectl("create", "--raw", path, "-f", "-", document=sized)
    workers = [ours(f"spark-{number}", "3", metadata=labels) for number in range(3)]
    cluster.create(ours("spark-driver", "500m", metadata=labels), *workers[:2])
    wide = group("wide", 5, "8")
    cluster.create(*wide, *(ours(f"one{number}") for number in range(2)))
    with live_service(tmp_path, lines(cluster)) as service:
        until(lambda: {"one0", "one1"} <= nodes_of(cluster).keys(), "what fits is bound", 60.0)
        said = "left to the cluster: 1 of the 4 pods of its group spark are not there"
        until(lambda: sentence_of(service, "spark") == said, "it says why")
        assert nodes_of(cluster).keys() == {"one0", "one1"}
        cluster.create(workers[2])
        until(lambda: len(nodes_of(cluster)) == 6, "the group is bound")
        assert max(cpus_by_node(cluster)[node] for node in NODES) <= 8.001
        assert halves(cluster) == set()
        assert not any(name.startswith("wide") for name in nodes_of(cluster))


@pytest.mark.slow
def test_half_a_group_is_completed_or_evicted(cluster: RealCluster, tmp_path: Path) -> None:
    """Without any log of its start: where room is it is completed, where none is it is undone."""
    cluster.create(*group("room", 3), *group("none", 3, "5"), ours("full", "7"))
    cluster.bind("room-0", "n1")
    cluster.bind("full", "n2")
    cluster.bind("none-0", "t1")
    cluster.create(*(ours(f"full{number}", "4") for number in range(2)))
    cluster.bind("full0", "t2")
    cluster.bind("full1", "n1")
    with live_service(tmp_path, lines(cluster)):
        until(lambda: not halves(cluster), "no half is left", 20.0)
        found = nodes_of(cluster)
        assert {"room-0", "room-1", "room-2"} <= found.keys()
        assert not any(name.startswith("none") for name in found)
        assert max(cpus_by_node(cluster)[node] for node in NODES) <= 8.001


@pytest.mark.slow
def test_groups_are_whole_after_kills(cluster: RealCluster, tmp_path: Path) -> None:
    """Kills of service, API server and etcd in mid-binding: none is half ten seconds later."""
    kills, count = of_a_series(200, short=3), 0
    cluster.create(*group("waits", 3, "9"))

    def are_bound(number: int) -> Callable[[], bool]:
        return lambda: len(nodes_of(cluster)) >= number

    for number in range(kills):
        victim = ("service", "apiserver", "etcd")[number % 3]
        with live_service(tmp_path, lines(cluster)) as service:
            for each in range(4):
                cluster.create(*group(f"g{number}-{each}", 5, "10m", memory="1Mi"))
            until(are_bound(count + 1), "some are bound", 60.0)
            count += 20
            if victim == "service":
                service.process.kill()
                service.process.wait()
            else:
                cluster.control("kill", victim)
                cluster.control("start", victim)
                until(are_bound(count), "all are bound", 90.0)
    with live_service(tmp_path, lines(cluster)) as service:
        until(are_bound(count), "all are bound", 60.0)
        assert halves(cluster) == set()
        with service.client() as client:

            def states() -> list[str]:
                rows = client.get("/v1/jobs", params={"limit": 1000}).json().get("jobs", ())
                return sorted(each["state"] for each in rows)

            expected = ["pending"] + ["running"] * (4 * kills)
            until(lambda: states() == expected, "the service knows them")
