"""A service that observes a real API server, and one that has nothing to do with any."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from architecture.floors import ROOT
from foresail.model.registry import find
from live_service import LiveService, live_service
from real_kubernetes import RealCluster, cluster, module_cluster, pod

__all__ = ["cluster", "module_cluster"]

SOURCE = ROOT / "kubernetes" / "src" / "foresail_kubernetes"
MOST_LINES = 4780


def until(service: LiveService, **wanted: str) -> dict[str, Any]:
    """Wait until jobs are in these states; returns the jobs by the names of their pods."""
    end = time.monotonic() + 90.0
    states: dict[str, str] = {}
    with service.client() as client:
        while time.monotonic() < end:
            rows = client.get("/v1/jobs").json().get("jobs", ())
            jobs = {name_of(row["job_id"]): row for row in rows}
            states = {name: row["state"] for name, row in jobs.items()}
            if all(states.get(name) == state for name, state in wanted.items()):
                return jobs
            time.sleep(0.2)
    raise AssertionError(states)


def tell(config: Path, service: LiveService) -> str:
    """Have pods told once, by an account; returns what that says."""
    code = "from foresail_kubernetes.command import app; app()"
    done = subprocess.run(
        [sys.executable, "-c", code, "tell", "--once", "--config", str(config)],
        env={**os.environ, "FORESAIL_SERVICE": str(service.state / "socket")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ("nothing is told" in done.stderr), done.stderr
    return done.stderr


def name_of(job_id: str) -> str:
    return job_id.removeprefix("kubernetes:default.").partition("+")[0]


@pytest.mark.slow
def test_pods_are_followed(cluster: RealCluster, tmp_path: Path) -> None:
    """Through an absence of the API server and a kill of the service; forecasts of what waits."""
    lines = f"cluster = 'kubernetes(config={cluster.config})'"
    past = [f"past{number}" for number in range(6)]
    cluster.create(*(pod(name) for name in past))
    for name in past:
        cluster.bind(name, "t1")
    time.sleep(1.5)
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    over = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    over["state"] = {"terminated": {"exitCode": 0, "finishedAt": at}}
    for name in past:
        cluster.end(name, containerStatuses=[over])
    due = {"annotations": {"foresail.io/deadline": "2036-12-01T18:00Z", "foresail.io/worth": "3"}}
    wide = [pod(f"wide{number}", "8", activeDeadlineSeconds=3600) for number in range(4)]
    cluster.create(*wide, pod("later", "2", metadata=due), pod("gone"))
    cluster.create(
        pod("gated", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}])
    )
    for number, node in enumerate(("n1", "n2", "t1", "t2")):
        cluster.bind(f"wide{number}", node)
    with live_service(tmp_path, lines) as service:
        jobs = until(service, wide0="running", wide3="running", later="pending", gated="held")
        assert (jobs["later"]["name"], jobs["later"]["cpus"]) == ("train", 2)
        with service.client() as client:
            assert client.get("/v1/cluster").json()["free_cpus"] == 0.0
            refused = client.post("/v1/nodes/n1/drain")
            assert (refused.status_code, "hears nothing" in refused.text) == (409, True)
            said = client.get(f"/v1/jobs/{jobs['gated']['job_id']}").json()["reason"]["sentence"]
            assert said == "left to the cluster: has a volume that may be elsewhere"
            for _ in range(60):
                forecast = client.get(f"/v1/jobs/{jobs['later']['job_id']}/forecast")
                if forecast.status_code == 200:
                    break
                time.sleep(1.0)
            assert forecast.json()["job_id"] == jobs["later"]["job_id"]
            assert "this account may not list and patch pods" in tell(
                cluster.limited_config, service
            )
            told: dict[str, str] = {}
            for _ in range(20):  # its reason is known a moment later than that it waits
                tell(cluster.config, service)
                for name in ("later", "gated"):
                    told[name] = cluster.kubectl(
                        "get", "pod", name, "-o", "jsonpath={.metadata.annotations}"
                    )
                if "left to the cluster" in told["gated"] and "forecast" in told["later"]:
                    break
            assert '"foresail.io/start-forecast":"20' in told["later"]
            assert "left to the cluster: has a volume that may be elsewhere" in told["gated"]
            cluster.control("kill", "apiserver")
            end = time.monotonic() + 30.0
            while "the cluster cannot be reached" not in client.get("/v1/health").text:
                assert time.monotonic() < end, client.get("/v1/health").text
                time.sleep(0.2)
        cluster.control("start", "apiserver")
        cluster.end("wide0")
        cluster.bind("later", "n1")
        until(service, wide0="completed", later="running")
        service.process.kill()
    cluster.end("wide1", "Failed")
    cluster.kubectl("delete", "pod", "gone", "--grace-period=0", "--force")
    cluster.create(pod("quick"))
    cluster.bind("quick", "n1")
    cluster.end("quick")
    with live_service(tmp_path, lines) as service:
        ended = {"wide1": "failed", "gone": "cancelled", "quick": "completed"}
        until(service, **ended, wide2="running", later="running", gated="held")


USES = """
import sys
from foresail.model.registry import entries, find
assert find("cluster", "kubernetes").build is not None
assert "kubernetes" in {each.name for each in entries("cluster")}
found = {each.partition(".")[0] for each in sys.modules}
print(sorted(found & {"aiohttp", "kubernetes"}))
"""


def test_who_does_not_use_it_loads_no_client() -> None:
    """Neither by looking for clusters, nor by naming this one."""
    done = subprocess.run([sys.executable, "-c", USES], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_it_is_small() -> None:
    """All of it within its budget: whoever raises that says what left instead."""
    lines = sum(each.read_bytes().count(b"\n") for each in SOURCE.rglob("*.py"))
    assert lines <= MOST_LINES


def test_it_keeps_to_its_joints() -> None:
    """Import contracts: it stands on the joints of clusters alone, and nothing stands on it."""
    lint = str(Path(sys.executable).with_name("lint-imports"))
    command = [lint, "--no-cache", "--no-logo", "--config", "kubernetes/imports.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_the_version_and_needs_it() -> None:
    """Versions are exactly the product's; the record of parameters is the registry's."""
    import foresail

    text = (ROOT / "kubernetes" / "pyproject.toml").read_text("utf-8")
    assert f"foresail=={foresail.__version__}" in tomllib.loads(text)["project"]["dependencies"]
    assert find("cluster", "kubernetes").parameters().config == ""


@pytest.mark.parametrize("cluster", ["kubernetes", "kubernetes(decides=foresail)"])
def test_it_runs_no_commands(cluster: str, tmp_path: Path) -> None:
    """Pods are made by those who know their images: ``foresail run`` says so, and asks nobody."""
    (tmp_path / "jobs.toml").write_text('[jobs.a]\ncommand = "true"\n')
    code = "from foresail.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "jobs.toml", "--cluster", cluster],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "runs no commands of Foresail's" in done.stderr
