"""Faults around a service that binds pods of a real server: refusals, names again, lost logs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from live_service import live_service
from real_kubernetes import RealCluster, cluster, module_cluster, until
from test_deciding_kubernetes import NODES, cpus_by_node, lines, nodes_of, ours, pods, sentence_of
from test_groups_on_kubernetes import group, halves

__all__ = ["cluster", "module_cluster"]

HOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "refuses"},
    "webhooks": [
        {
            "name": "refuses.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/never"},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods/binding"],
                }
            ],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
"""A webhook that does not answer, so that every binding is refused."""
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"pods": "2"}},
}


def node(name: str, is_ready: bool) -> dict[str, Any]:
    """A node as it comes: with a taint until it is ready."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    ready = {"type": "Ready", "status": str(is_ready)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": "late"}},
        "spec": {"taints": [] if is_ready else [taint]},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def put_node(cluster: RealCluster, name: str, is_ready: bool) -> None:
    """Let a node come, or be ready, as its kubelet and the cluster would say it."""
    path, document = "/api/v1/nodes", node(name, is_ready)
    if is_ready:
        found = msgspec.json.decode(cluster.kubectl("get", "--raw", f"{path}/{name}"))
        document["metadata"] = found["metadata"]
        cluster.kubectl("replace", "--raw", f"{path}/{name}", "-f", "-", document=document)
        found = msgspec.json.decode(cluster.kubectl("get", "--raw", f"{path}/{name}"))
        document["metadata"] = found["metadata"]
        cluster.kubectl("replace", "--raw", f"{path}/{name}/status", "-f", "-", document=document)
    else:
        cluster.kubectl("create", "--raw", path, "-f", "-", document=document)


@pytest.mark.slow
def test_what_is_refused_waits_and_is_bound_later(cluster: RealCluster, tmp_path: Path) -> None:
    """By a webhook, a quota, a node that is not ready; pods that come again by the same name."""
    cluster.create(HOOK)
    with live_service(tmp_path, lines(cluster)) as service:
        cluster.create(ours("hooked"), *group("both", 2, "100m"))
        said = "failed calling webhook"
        until(lambda: said in sentence_of(service, "hooked"), "the webhook is said", 60.0)
        assert nodes_of(cluster) == {}
        cluster.kubectl("delete", "validatingwebhookconfiguration", "refuses")
        until(lambda: len(nodes_of(cluster)) == 3, "all are bound", 60.0)

        for _ in range(3):  # a pod is deleted, and another of its name comes at once
            before = {e["metadata"]["uid"] for e in pods(cluster)}
            cluster.kubectl("delete", "pod", "hooked", "--grace-period=0", "--force")
            cluster.create(ours("hooked", "2"))
            assert {e["metadata"]["uid"] for e in pods(cluster)} != before
            until(lambda: "hooked" in nodes_of(cluster), "the new one is bound")

        cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=true")
        cluster.create(QUOTA)
        words = ["get", "resourcequota", "few", "-o", "jsonpath={.status.used.pods}"]
        until(lambda: cluster.kubectl(*words) == "0", "the quota is known")
        some = group("more", 3, "100m")
        cluster.create(*some[:2])
        with pytest.raises(AssertionError, match="exceeded quota"):
            cluster.create(some[2])
        said = "left to the cluster: 1 of the 3 pods of its group more are not there"
        until(lambda: sentence_of(service, "more") == said, "the missing pod is said")
        cluster.kubectl("delete", "resourcequota", "few")
        cluster.create(some[2])
        until(lambda: len(nodes_of(cluster)) == 3, "the group is bound")

        put_node(cluster, "late1", is_ready=False)
        cluster.create(ours("waits", "7", nodeSelector={"pool": "late"}))
        time.sleep(3.0)
        assert "waits" not in nodes_of(cluster)
        put_node(cluster, "late1", is_ready=True)
        until(lambda: nodes_of(cluster).get("waits") == "late1", "it is bound once that is ready")
    cluster.kubectl("delete", "node", "late1")


@pytest.mark.slow
def test_its_log_may_be_lost(cluster: RealCluster, tmp_path: Path) -> None:
    """A service that knows nothing finds what runs, binds none of it again, and goes on."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    cluster.create(*(ours(f"one{number}", "2") for number in range(6)), *group("three", 3, "500m"))
    cluster.create(ours("wide", "40"))
    with live_service(tmp_path / "a", lines(cluster)) as service:
        until(lambda: len(nodes_of(cluster)) == 9, "all that fits is bound", 120.0)
        service.process.kill()
        service.process.wait()
    before = nodes_of(cluster)
    cluster.create(*group("new", 2, "500m"))
    with live_service(tmp_path / "b", lines(cluster)) as service:
        until(lambda: {"new-0", "new-1"} <= nodes_of(cluster).keys(), "it goes on", 60.0)

        def states() -> list[str]:
            with service.client() as client:
                rows = client.get("/v1/jobs", params={"limit": 100}).json().get("jobs", ())
            return sorted(each["state"] for each in rows)

        until(lambda: states() == ["pending", *["running"] * 8], "it knows all")
    assert before.items() <= nodes_of(cluster).items()
    assert halves(cluster) == set()
    assert max(cpus_by_node(cluster)[each] for each in NODES) <= 8.001
