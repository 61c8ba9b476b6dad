"""The daemon of transient capacity on a real API server: leaving machines, pools, room."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail_kubernetes.connection import Access, Connection
from foresail_kubernetes.transient.planning import Pool
from foresail_kubernetes.transient.pools import Maker, node_pool, placeholder
from foresail_kubernetes.transient.settings import NodeClass, Pools
from long_series import of_a_series
from real_kubernetes import RealCluster, brought_up, pod, until
from serving_cluster import (
    CALL,
    TRANSIENT,
    Machines,
    Times,
    Trial,
    daemon,
    measure,
    objects,
    write_settings,
)

QUICK = Times(start=0.5, boot=1.0, detect=3.0)
PLACED = Pools(by="placeholder")


@pytest.fixture(scope="module")
def empty_cluster() -> Iterator[RealCluster]:
    yield from brought_up(1)


@pytest.fixture
def cluster(empty_cluster: RealCluster) -> Iterator[RealCluster]:
    """A cluster without nodes and pods."""
    clear(empty_cluster)
    yield empty_cluster
    clear(empty_cluster)


def clear(cluster: RealCluster) -> None:
    for kinds in ("deployment,service,pdb", "replicaset"):  # which would be taken over otherwise
        cluster.kubectl("delete", kinds, "--all", "--ignore-not-found")
    cluster.kubectl("delete", "nodes", "--all")
    cluster.clear()


def node(name: str, units: float = 2.0) -> dict[str, Any]:
    return placeholder(Pool("x/m2", 1, units), name, PLACED)


def items(cluster: RealCluster, what: str) -> dict[str, Any]:
    found = msgspec.json.decode(cluster.kubectl("get", what, "-o", "json"))["items"]
    return {each["metadata"]["name"]: each for each in found}


def ready(cluster: RealCluster) -> int:
    return sum("podIP" in each["status"] for each in items(cluster, "pods").values())


class Seen(threading.Thread):
    """Watcher of a node and its pods: the order in which things happened to them."""

    def __init__(self, cluster: RealCluster, name: str) -> None:
        super().__init__(daemon=True)
        self.cluster, self.node_name = cluster, name
        self.faults: list[str] = []
        self.steps: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        served: dict[str, str] = {}
        while not self.over.wait(0.05):
            try:
                pods, nodes = items(self.cluster, "pods"), items(self.cluster, "nodes")
            except AssertionError:  # the API server is away
                continue
            node = nodes.get(self.node_name)
            is_cordoned = node is not None and node["spec"].get("unschedulable", False)
            for name, each in pods.items():
                if each["spec"].get("nodeName") != self.node_name:
                    continue
                labels = each["metadata"]["labels"]
                state = "leaving" if "deletionTimestamp" in each["metadata"] else "out"
                if "foresail.io/serving" in labels:
                    state = "served and leaving" if state == "leaving" else "serving"
                if state != served.get(name):
                    served[name] = state
                    self.steps.append(state)
                    if state != "serving" and not is_cordoned and node is not None:
                        self.faults.append(f"{name} is {state} before the cordon")
                    if state == "served and leaving":
                        self.faults.append(f"{name} is leaving while in the endpoints")
                if node is None:
                    self.faults.append(f"{name} is there, and its node is not")


@contextmanager
def service(
    cluster: RealCluster, folder: Path, nodes: list[str], at_least: int, replicas: int = 4
) -> Iterator[Machines]:
    """A service on nodes; its pods are ready."""
    cluster.create(*(node(each, 4.0) for each in nodes), *objects(replicas, at_least))
    with Machines(cluster.config, QUICK, None) as machines:
        until(lambda: machines.ready == replicas, "all pods are ready", 60.0)
        yield machines


def end_in(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


@pytest.mark.slow
def test_a_machine_is_left_through_kills_of_daemon_and_api_server(
    cluster: RealCluster, tmp_path: Path
) -> None:
    """Whenever they are killed: cordon, out of the endpoints, eviction, deletion, in that order.

    The daemon begins anew a moment after each kill; the budget keeps three of four pods.
    """
    for kills in range(of_a_series(20, 3)):
        with service(cluster, tmp_path, ["left", "stays"], 3) as machines, ExitStack() as stack:
            settings = write_settings(tmp_path, units=4, wait=1.0)
            seen = Seen(cluster, "left")
            seen.start()
            (tmp_path / "notices").write_text(f"left {end_in(600.0)}\n")
            process = None
            end = time.monotonic() + 240.0  # a pod whose eviction was cut off counts for 120 s
            pause = 1.2 + 0.37 * (kills % 10)
            while "left" in items_or_none(cluster):
                assert time.monotonic() < end, (tmp_path / "daemon.log").read_text()
                if process is None or process.poll() is not None:
                    process = stack.enter_context(daemon(cluster.config, settings))
                time.sleep(pause)
                pause *= 1.5
                if "left" in items_or_none(cluster):
                    process.kill()
                    process.wait()
                    if kills % 3 == 1:
                        cluster.control("kill", "apiserver")
                        cluster.control("start", "apiserver")
            seen.over.set()
            seen.join()
            assert not seen.faults
            assert {"serving", "out"} <= set(seen.steps), seen.steps
            until(lambda: machines.ready == 4, "all pods are ready again", 60.0)
        clear(cluster)


def items_or_none(cluster: RealCluster) -> dict[str, Any]:
    try:
        return items(cluster, "nodes")
    except AssertionError:  # the API server is away
        return {"left": None}


@pytest.mark.slow
def test_a_budget_is_kept_until_the_machine_is_gone(cluster: RealCluster, tmp_path: Path) -> None:
    """A budget that allows no eviction is asked again and again; what then is gone is deleted.

    One that serves alone goes on serving until time is nearly over.
    """
    with service(cluster, tmp_path, ["left"], 4) as machines:
        settings = write_settings(tmp_path, units=4, wait=1.0)
        (tmp_path / "notices").write_text(f"left {end_in(22.0)}\n")
        with daemon(cluster.config, settings):
            until(lambda: "unschedulable" in items(cluster, "nodes")["left"]["spec"], "cordon")
            time.sleep(3.0)
            pods = items(cluster, "pods")
            serve = ["foresail.io/serving" in each["metadata"]["labels"] for each in pods.values()]
            assert sorted(serve) == [False, False, False, True]
            until(
                lambda: (
                    not any(
                        "foresail.io/serving" in each["metadata"]["labels"]
                        for name, each in items(cluster, "pods").items()
                        if name in pods
                    )
                ),
                "all are out of the endpoints",
            )
            time.sleep(4.0)
            there = items(cluster, "pods")
            assert there.keys() == pods.keys()
            assert not [each for each in there.values() if "deletionTimestamp" in each["metadata"]]
            time.sleep(12.0)
            assert "left" in items(cluster, "nodes")
            status = items(cluster, "nodes")["left"]
            status["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
            machines.take("left")
            cluster.kubectl(
                "replace", "--raw", "/api/v1/nodes/left/status", "-f", "-", document=status
            )
            until(lambda: "left" not in items(cluster, "nodes"), "its node is deleted")


@pytest.mark.slow
def test_a_successor_is_asked_for_at_once(cluster: RealCluster, tmp_path: Path) -> None:
    """Pools are filled by the plan; a machine that leaves is made good while it is still there."""
    settings = write_settings(tmp_path, units=4, wait=30.0)
    with daemon(cluster.config, settings) as process:
        until(lambda: len(items(cluster, "nodes")) >= 4, "the pools are filled", 90.0)
        time.sleep(3.0)
        before = items(cluster, "nodes")
        process.kill()
        process.wait()
    said = (tmp_path / "daemon.log").read_text()
    assert f"web: {len(before)} machines" in said
    name = min(before)
    cluster.create(pod("keeps", nodeName=name, metadata={"labels": {"foresail.io/serving": "y"}}))
    (tmp_path / "notices").write_text(f"{name} {end_in(300.0)}\n")
    with daemon(cluster.config, settings):
        until(lambda: len(items(cluster, "nodes")) > len(before), "its successor is there", 90.0)
        after = items(cluster, "nodes")
        assert name in after
        (new,) = after.keys() - before.keys()
        of = [after[each]["metadata"]["labels"][TRANSIENT] for each in (name, new)]
        assert of[0] == of[1]
        time.sleep(3.0)
        assert items(cluster, "nodes").keys() == after.keys()
    held = cluster.kubectl("get", "lease", "foresail-transient", "-o", "jsonpath={.spec}")
    assert msgspec.json.decode(held)["holderIdentity"] == ""


@pytest.mark.slow
def test_batch_yields_and_few_nines_yield_to_many(cluster: RealCluster, tmp_path: Path) -> None:
    """Where there is other room, nobody does; where a budget says no, it is another one."""
    more = '\n[[services]]\nname = "side"\nunits = 1\nnines = 1\nlabels = {app = "side"}\n'
    settings = write_settings(tmp_path, units=1, nines=2, more=more)
    bear = {"tolerations": [{"key": TRANSIENT, "operator": "Exists"}]}
    side, web = ({"labels": {"app": each}} for each in ("side", "web"))
    cluster.create(node("a"), node("b"), node("c", 1.0))
    kept = {"labels": {"keep": "yes"}}
    cluster.create(
        pod("kept", "2", nodeName="a", metadata=kept, **bear),
        pod("batch", "1", nodeName="b", **bear),
        pod("side", "1", nodeName="b", metadata=side, **bear),
    )
    of = {"minAvailable": 1, "selector": {"matchLabels": {"keep": "yes"}}}
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "spec": of}
    cluster.create({**budget, "metadata": {"name": "kept", "namespace": "default"}})
    cluster.end("kept", "Running", conditions=[{"type": "Ready", "status": "True"}])
    config = Path(settings)
    text = config.read_text().replace('by = "placeholder"', 'by = "command"\ncommand = ["true"]')
    config.write_text(text)
    with daemon(cluster.config, settings):
        cluster.create(pod("web1", "1", metadata=web, **bear))
        time.sleep(5.0)
        assert items(cluster, "pods").keys() == {"kept", "batch", "side", "web1"}
        cluster.bind("web1", "c")
        cluster.create(pod("web2", "1", metadata=web, **bear))
        until(lambda: "batch" not in items(cluster, "pods"), "batch yields", 60.0)
        cluster.bind("web2", "b")
        cluster.create(pod("web3", "1", metadata=web, **bear))
        until(lambda: "side" not in items(cluster, "pods"), "few nines yield", 60.0)
        assert "kept" in items(cluster, "pods")


@pytest.mark.slow
def test_fewer_requests_fail_with_the_daemon(cluster: RealCluster, tmp_path: Path) -> None:
    """Twenty clients, ten replicas, a machine taken back each nine seconds: some, and none."""
    times = Times(start=1.0, boot=2.0, detect=6.0)
    trial = Trial(27_000, 20, 60.0 / 9.0, 8.0, 0.5, times)
    settings = write_settings(tmp_path, wait=2.0)
    failed = []
    for again in (
        lambda kind: placeholder(Pool(kind.replace("-", "/"), 1, 2.0), new(), PLACED),
        None,
    ):
        names = [f"{zone}-m2-{number}" for zone in "abcdef" for number in (1, 2)]
        nodes = [placeholder(Pool(f"{each[0]}/m2", 1, 2.0), each, PLACED) for each in names]
        cluster.create(*nodes, *objects(10, 7))
        found = measure(cluster.config, settings, trial, again)
        failed.append(found["failed"])
        assert found["revoked"] >= 2
        clear(cluster)
    assert failed[0] > 100
    assert failed[0] > 5 * failed[1]


def new() -> str:
    return f"new-{os.urandom(4).hex()}"


@pytest.mark.slow
def test_a_node_hears_of_its_end_from_its_metadata(cluster: RealCluster, tmp_path: Path) -> None:
    """A process beside the kubelet asks, and annotates its node; what is away is said."""

    class Cloud(BaseHTTPRequestHandler):
        answer = b"FALSE"

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    cluster.create(node("watched"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cloud)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    words = ["notice", "watched", "--cloud", "gcp", "--every", "0.2"]
    words += ["--address", f"http://127.0.0.1:{server.server_address[1]}"]
    process = subprocess.Popen([sys.executable, "-c", CALL, *words, "--config", cluster.config])
    try:
        time.sleep(3.0)
        before = items(cluster, "nodes")["watched"]["metadata"]["annotations"]
        assert "foresail.io/taken-back-at" not in before
        Cloud.answer = b"TRUE"

        def ends() -> str | None:
            notes = items(cluster, "nodes")["watched"]["metadata"]["annotations"]
            return notes.get("foresail.io/taken-back-at")

        until(lambda: ends() is not None, "the node is annotated")
        first = ends()
        assert first is not None
        assert abs(time.time() + 25.0 - seconds(first)) < 15.0
        time.sleep(2.5)
        assert ends() == first
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        server.shutdown()
        server.server_close()


def seconds(text: str) -> float:
    from foresail_kubernetes.transient.notices import seconds_said

    found = seconds_said(text)
    assert found is not None
    return found


WORDS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}


def an_object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def a_list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


OPERATORS = {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]}
SECONDS = {"type": "string", "pattern": "^(([0-9]+(s|m|h))+|Never)$"}
NODE_POOL = an_object(
    "template",
    replicas={"type": "integer", "minimum": 0},
    limits={"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
    disruption=an_object("consolidateAfter", consolidateAfter=SECONDS),
    template=an_object(
        "spec",
        metadata=an_object(labels=WORDS),
        spec=an_object(
            "nodeClassRef requirements",
            requirements=a_list(
                an_object("key operator", key=TEXT, operator=OPERATORS, values=TEXTS)
            ),
            nodeClassRef=an_object("group kind name", group=TEXT, kind=TEXT, name=TEXT),
            taints=a_list(an_object("key effect", key=TEXT, value=TEXT, effect=TEXT)),
            expireAfter=SECONDS,
        ),
    ),
)
"""Fields of a NodePool that are written, by Karpenter's documentation of its version v1."""


@pytest.mark.slow
def test_karpenter_is_told_numbers(cluster: RealCluster) -> None:
    """NodePools are made, then changed in their size; the API server drops none of their fields."""
    version = {"name": "v1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": an_object(spec=NODE_POOL)}
    names = {"kind": "NodePool", "plural": "nodepools", "singular": "nodepool"}
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": "nodepools.karpenter.sh",
                "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
            },
            "spec": {
                "group": "karpenter.sh",
                "scope": "Cluster",
                "names": names,
                "versions": [{**version, "schema": schema}],
            },
        }
    )
    cluster.kubectl("wait", "--for=condition=Established", "crd/nodepools.karpenter.sh")
    time.sleep(1.0)
    node_class = NodeClass("karpenter.k8s.aws", "EC2NodeClass", "default")
    settings, pool = Pools("karpenter", node_class=node_class), Pool("us-1a/m2.large", 3, 2.0)

    async def ask(count: int) -> None:
        connection = await Connection.opened(Access(str(cluster.config)))
        try:
            await Maker(connection, settings).ask({pool: count}, [])
        finally:
            await connection.close()

    asyncio.run(ask(3))
    (made,) = items(cluster, "nodepools").values()
    expected = node_pool(pool, settings)
    assert made["spec"] == expected["spec"]
    asyncio.run(ask(4))
    (made,) = items(cluster, "nodepools").values()
    assert (made["spec"]["replicas"], made["spec"]["limits"]) == (4, {"nodes": "7"})
