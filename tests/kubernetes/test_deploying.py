"""Manifests of ``deploy/kubernetes``: applied to a real API server, and looked at by field."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from architecture.floors import ROOT
from foresail_kubernetes.connection import Connection
from foresail_kubernetes.transient.notices import annotate
from foresail_kubernetes.transient.settings import read_settings
from real_kubernetes import RealCluster, cluster, module_cluster, pod, until
from serving_cluster import CALL, daemon, write_settings
from test_rights import account, status_of, within

__all__ = ["CALL", "cluster", "module_cluster"]

DEPLOY = ROOT / "deploy" / "kubernetes"
PARTS = ("", "service", "transient")


@pytest.mark.slow
def test_all_manifests_are_taken_by_a_real_server(cluster: RealCluster) -> None:
    """Each kind, and the controllers make the pods of it that the templates ask for.

    They are restricted as pod security wants it, which this server does not look at yet.
    """
    for part in PARTS:
        cluster.kubectl("apply", "-k", str(DEPLOY / part))
    try:
        words = ("--namespace=foresail", "get", "pods", "-o", "json")
        wanted = {"service": 2, "transient": 2}

        def pods() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = msgspec.json.decode(cluster.kubectl(*words))["items"]
            return found

        def count() -> dict[str, int]:
            kinds = [each["metadata"]["labels"]["app.kubernetes.io/component"] for each in pods()]
            return {kind: kinds.count(kind) for kind in set(kinds)}

        until(lambda: count() == wanted, "pods are made", 60.0)
        cluster.kubectl("label", "node", "t1", "foresail.io/transient=x")
        wanted["notice"] = 1
        until(lambda: count() == wanted, "a transient node is watched", 60.0)
        for each in pods():
            assert faults(each["spec"]) == []
    finally:
        cluster.kubectl("delete", "namespace", "foresail")
        cluster.kubectl("label", "node", "t1", "foresail.io/transient-")


def faults(spec: dict[str, Any]) -> list[str]:
    """Faults of a pod by the standard ``restricted`` of pod security."""
    of_pod, found = spec.get("securityContext", {}), []
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        found += [field] * bool(spec.get(field))
    kept = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
    for each in spec["volumes"]:
        is_token = each["name"].startswith(f"{spec['serviceAccountName']}-token-")
        if not (each.keys() - {"name"} <= kept) or ("secret" in each and not is_token):
            found.append(f"volume {each['name']}")
    if not of_pod.get("runAsNonRoot") or not of_pod.get("runAsUser"):
        found.append("root")
    if of_pod.get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.append("seccomp")
    for each in spec["containers"]:
        own = each["securityContext"]
        wanted = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        if own != wanted:
            found.append(f"{each['name']}: {own}")
        found += [port["name"] for port in each.get("ports", ()) if "hostPort" in port]
    return found


def test_settings_of_the_manifests_are_understood() -> None:
    """The settings that are deployed are read as they will be; paths are those of the volumes."""
    settings = read_settings(DEPLOY / "transient" / "settings.toml")
    assert settings.pools.by == "karpenter"
    service = tomllib.loads((DEPLOY / "service" / "service.toml").read_text())
    assert service["state"].startswith("/var/lib/foresail")
    assert service["shared_account"] is True  # else it serves the account of its container alone
    assert service["cluster"] == "kubernetes(decides=foresail,namespace=foresail)"


def test_the_image_has_both_wheels() -> None:
    """Those that ``make wheel`` makes, and the user that the manifests name."""
    recipe = (ROOT / "deploy" / "Containerfile").read_text()
    assert "dist/foresail-*.whl" in recipe
    assert "dist/foresail_kubernetes-*.whl" in recipe
    manifests = [*DEPLOY.glob("service/*.yaml"), *DEPLOY.glob("transient/*.yaml")]
    users = [
        line.split()[-1]
        for path in manifests
        for line in path.read_text().splitlines()
        if "runAsUser" in line
    ]
    assert set(users) == {"10001"}
    assert "USER 10001" in recipe


@pytest.mark.slow
def test_accounts_of_transient_machines_do_their_work_alone(
    cluster: RealCluster, tmp_path: Path
) -> None:
    """A machine is left from its notice to the end, with these rights and no others."""
    cluster.kubectl("apply", "-k", str(DEPLOY))
    transient, notice = (
        account(cluster, f"foresail-{each}", tmp_path) for each in ("transient", "notice")
    )
    cluster.kubectl("label", "node", "t2", "foresail.io/transient=x")
    serving = {"labels": {"foresail.io/serving": "yes"}}
    cluster.create(pod("a", metadata=serving), pod("b"))
    cluster.bind("a", "t2")
    cluster.bind("b", "t2")
    settings = write_settings(tmp_path, units=4, wait=1.0)
    text = settings.read_text()
    settings.write_text(text.replace('by = "placeholder"', 'by = "command"\ncommand = ["true"]'))
    within(notice, lambda connection: annotate(connection, "t2", time.time() + 60.0))

    def nodes() -> str:
        return cluster.kubectl("get", "nodes", "-o", "name")

    with daemon(Path(transient.config), settings, "--namespace", "foresail"):
        until(lambda: "node/t2" not in nodes(), "the node is left", 60.0)
    assert "left" in (tmp_path / "daemon.log").read_text()
    assert "lacks a right" not in (tmp_path / "daemon.log").read_text()
    cluster.create(pod("c"))

    async def refused(connection: Connection) -> set[int]:
        pods = "/api/v1/namespaces/default/pods"
        asked = [
            ("GET", "/api/v1/secrets", None),
            ("DELETE", f"{pods}/c", None),
            ("POST", pods, pod("d")),
            ("POST", f"{pods}/c/exec", {}),
            ("POST", f"{pods}/c/binding", {}),
            ("PATCH", f"{pods}/c/status", {}),
            ("POST", "/api/v1/nodes", {"metadata": {"name": "mine"}}),
            ("GET", "/apis/coordination.k8s.io/v1/namespaces/foresail/leases/other", None),
        ]
        return {await status_of(connection, *each) for each in asked}

    async def refused_of_notice(connection: Connection) -> set[int]:
        pods = "/api/v1/namespaces/default/pods"
        asked = [
            ("GET", pods, None),
            ("PATCH", f"{pods}/c", {}),
            ("POST", f"{pods}/c/eviction", {}),
            ("DELETE", "/api/v1/nodes/n1", None),
        ]
        return {await status_of(connection, *each) for each in asked}

    assert within(transient, refused) == {403}
    assert within(notice, refused) == {403}
    assert within(notice, refused_of_notice) == {403}
