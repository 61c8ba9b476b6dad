"""A real API server for tests, brought up by a tool where one is built; no kubelets."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared import shared

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())


@dataclass(frozen=True)
class RealCluster:
    """A cluster, and what people do to it."""

    tool: Path
    folder: Path
    names: list[str] = field(default_factory=list)

    @property
    def config(self) -> Path:
        return self.folder / "etc" / "kubeconfig"

    @property
    def limited_config(self) -> Path:
        return self.folder / "etc" / "limited.kubeconfig"

    def kubectl(self, *words: str, document: object = None) -> str:
        """Output of kubectl, which is given a document."""
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={self.config}", *words],
            input=None if document is None else msgspec.json.encode(document).decode(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def create(self, *documents: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("create", "-f", "-", document=listed)

    def bind(self, name: str, node: str) -> None:
        """Bind a pod, as any other scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        path = f"/api/v1/namespaces/default/pods/{name}/binding"
        self.kubectl("create", "--raw", path, "-f", "-", document=body)

    def end(self, name: str, phase: str = "Succeeded", **status: Any) -> None:
        """Let a bound pod end, as its kubelet would say it."""
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        pod = msgspec.json.decode(self.kubectl("get", "--raw", path.removesuffix("/status")))
        pod["status"] = {**pod["status"], "phase": phase, **status}
        self.kubectl("replace", "--raw", path, "-f", "-", document=pod)

    def control(self, verb: str, *daemons: str) -> None:
        """Stop, kill or start daemons; one that does not come up in time is started again."""
        words = [self.tool, verb, self.folder, *daemons]
        for _ in range(3):
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
            if done.returncode == 0:
                return
        raise AssertionError(done.stderr)

    def clear(self) -> None:
        """Delete all pods, and let all nodes be as they were."""
        self.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=true")


def pod(name: str, cpu: str = "1", memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    """A pod that asks for so much; what is given beside goes into its specification."""
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    container = {
        "name": "main",
        "image": "registry.example/lab/train:2",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    spec = {
        "schedulerName": "nobody",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        **more,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def brought_up(nodes: int, **settings: str) -> Iterator[RealCluster]:
    """Bring a cluster up; skips where none can be."""
    tool = shared("tools/kube-cluster")
    if not any(CACHE.glob("kube-cluster/1.20*/recipe")) or not shutil.which("kubectl"):
        pytest.skip("no API server is built here: make test-kubernetes builds one")
    folder = Path(tempfile.mkdtemp(prefix="foresail-kubernetes-"))
    up = subprocess.run(
        [tool, "up", folder, str(nodes)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    try:
        assert up.returncode == 0, up.stderr
        yield RealCluster(tool, folder)
    finally:
        subprocess.run([tool, "down", folder], capture_output=True, check=False)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def module_cluster() -> Iterator[RealCluster]:
    """A cluster of four nodes of 8 cpus, for all tests of a module."""
    yield from brought_up(4)


@pytest.fixture
def cluster(module_cluster: RealCluster) -> Iterator[RealCluster]:
    """The cluster of the module, without pods."""
    yield module_cluster
    module_cluster.clear()


def until(found: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.1)
