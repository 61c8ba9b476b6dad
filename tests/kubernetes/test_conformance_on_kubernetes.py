"""The rules of cluster adapters, on a real API server; a test is its kubelets and owners."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.checks import clusters
from foresail.checks.rules import Rule, require_conformity
from foresail.model import event as news
from foresail.model.adapter import ClusterAdapter
from foresail.model.cluster import Placement
from foresail.model.decision import Start
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.connection import Access, RefusedError
from foresail_kubernetes.deciding import DecidingKubernetes
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.mirror import Mirror
from foresail_kubernetes.observing import PREFIX
from foresail_kubernetes.records import Pod
from real_kubernetes import RealCluster, cluster, module_cluster, pod, until

__all__ = ["cluster", "module_cluster"]

PODS = "/api/v1/namespaces/default/pods"
NOT_KEPT = {
    "repeats_nothing_of_another": "what ran already is no start of a driver without a log",
    "reports_what_its_nodes_do": "nodes have no attributes, and go once nothing is bound to them",
    "loses_what_nodes_take_along": "pods of a node that goes are deleted, and others created",
    "reports_what_was_submitted_to_it": "ids are of namespace, name and uid",
}
"""Rules that do not fit, and why."""


class Driven:
    """An adapter as a daemon drives it: a job is started only once it is known, and not held."""

    def __init__(self, adapter: DecidingKubernetes, trial: Trial) -> None:
        self.adapter, self.trial = adapter, trial
        self.wake_descriptor, self._never = os.pipe()
        self._earlier: list[news.Event] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.adapter, name)

    def carry_out(self, instruction: Any, now: float) -> None:
        name = instruction.job_id.removeprefix(PREFIX)
        end = time.monotonic() + 5.0
        while isinstance(instruction, Start) and time.monotonic() < end:
            entry = self.adapter._entries.get(name)
            if entry is not None and entry.pods and not entry.aside:
                break
            if entry is None and self.trial.times_begun(instruction.job_id):
                break  # it has ended
            self._earlier += self.adapter.reports(time.time())
            time.sleep(0.02)
        self.adapter.carry_out(instruction, now)

    def reports(self, now: float) -> list[news.Event]:
        earlier, self._earlier = self._earlier, []
        return [*earlier, *self.adapter.reports(now)]

    def close(self) -> None:
        self.adapter.close()
        os.close(self.wake_descriptor)
        os.close(self._never)


class Trial:
    """Pods of a real cluster as jobs that run so long; what is evicted comes again."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.mirror = Mirror.begun(Access(str(cluster.config)))
        self.seconds: dict[str, float] = {}
        self.jobs: dict[str, str] = {}
        self.bound: dict[str, set[str]] = {}
        self.is_over = threading.Event()
        self.kubelet = threading.Thread(target=self._run, daemon=True)
        self.kubelet.start()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        assert self.mirror.connection is not None
        call = self.mirror.call(self.mirror.connection.ask(method, path, None, body))
        return msgspec.json.decode(call.result(10.0))

    def connect(self) -> ClusterAdapter:
        mirror = Mirror.begun(Access(str(self.cluster.config)))
        assert mirror.connection is not None
        lease = Lease(mirror.connection, "default", "foresail-rules", str(time.time()))
        self.folder.mkdir(exist_ok=True)
        adapter = DecidingKubernetes(mirror, self.folder, print, Caps(), "foresail", lease)
        until(lambda: lease.is_held, "the lease is held")
        driven: Any = Driven(adapter, self)
        return driven

    def start_of(self, seconds: float) -> Start:
        name = f"c{len(self.seconds)}-{time.time_ns()}"
        owner = self.ask(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}},
        )
        self.seconds[name] = seconds
        uid = self.create(name, owner["metadata"]["uid"])
        job_id = f"{PREFIX}default.{name}+{uid[:8]}"
        self.jobs[job_id] = name
        node = next(iter(self.mirror.all_nodes().values()))
        return Start(job_id, Placement(((node.pool, 1),), ((node.name, 1),)))

    def create(self, name: str, owner: str) -> str:
        of = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner}
        meta = {"name": name, "ownerReferences": [{**of, "controller": True}]}
        document = pod(name, "10m", "1Mi", schedulerName="foresail", metadata=meta)
        uid: str = self.ask("POST", PODS, document)["metadata"]["uid"]
        return uid

    def times_begun(self, job_id: str) -> int:
        return len(self.bound.get(self.jobs[job_id], ()))

    def happen(self, event: Any) -> None:
        name = self.jobs[event.job_id]
        if isinstance(event, news.NotStarted):  # until it is tried again, its node is of no use
            self._cordon(True)
            threading.Timer(1.0, self._cordon, [False]).start()
        else:
            assert isinstance(event, news.Began)
            self.cluster.bind(name, event.placement.tasks_by_node[0][0])

    def _cordon(self, is_cordoned: bool) -> None:
        node = next(iter(self.mirror.all_nodes()))
        self.cluster.kubectl("cordon" if is_cordoned else "uncordon", node)

    def in_queue(self, job_id: str) -> None:
        raise AssertionError(job_id)

    def close(self) -> None:
        self.is_over.set()
        self.kubelet.join()
        self.mirror.close()

    def _run(self) -> None:
        """Be kubelet and owner of all pods."""
        while not self.is_over.wait(0.02):
            changes = self.mirror.take()
            for each in changes.pods.values():
                if each.name in self.seconds and each.node and not each.has_ended:
                    self.bound.setdefault(each.name, set()).add(each.uid)
                    end = threading.Timer(self.seconds[each.name], self._end, [each])
                    end.daemon = True
                    end.start()
            for each in changes.gone.values():
                if each.name in self.seconds and not self.is_over.is_set():
                    self.create(each.name, each.owner)

    def _end(self, of: Pod) -> None:
        if self.is_over.is_set() or self.mirror.pod(of.uid) is None:
            return
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        state = {"terminated": {"exitCode": 0, "finishedAt": at}}
        named = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
        document = self.ask("GET", f"{PODS}/{of.name}")
        document["status"]["phase"] = "Succeeded"
        document["status"]["containerStatuses"] = [{**named, "state": state}]
        try:
            self.ask("PUT", f"{PODS}/{of.name}/status", document)
        except RefusedError:
            self._end(of)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [each for each in clusters.RULES if each.__name__ not in NOT_KEPT],
    ids=lambda rule: rule.__name__,
)
def test_it_keeps_the_rules_of_clusters(
    cluster: RealCluster, tmp_path: Path, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that fit, one by one; evictions take a moment, and what is seen too."""
    monkeypatch.setattr(clusters, "_QUIET_SECONDS", 1.5)
    trials: list[Trial] = []

    def make() -> Trial:
        trials.append(Trial(cluster, tmp_path / str(len(trials))))
        return trials[-1]

    try:
        require_conformity("kubernetes", make, (rule,))
    finally:
        for each in trials:
            each.close()


def test_rules_that_do_not_fit_are_known() -> None:
    """Each is one there is."""
    assert NOT_KEPT.keys() <= {each.__name__ for each in clusters.RULES}
