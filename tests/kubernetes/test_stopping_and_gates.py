"""Pods that are stopped, by evictions that budgets may refuse, and pods whose gates are opened."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.model import event as news
from foresail.model.cluster import Placement, Resources
from foresail.model.decision import Preempt, Start
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.connection import Access
from foresail_kubernetes.deciding import DecidingKubernetes
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.mirror import Mirror
from foresail_kubernetes.records import Pod
from real_kubernetes import RealCluster, cluster, module_cluster, pod, until
from test_groups import COUNT, GATE, KUEUE, Decider, LivingMirror
from test_observing_pods import NOW, bound, made
from test_pods_and_nodes import node

__all__ = ["cluster", "module_cluster"]

JOB = "kubernetes:lab.train-xxxx2"


def decider_of(folder: Path, *pods: Pod) -> Decider:
    """An adapter that knows of pods, and of nothing else."""
    decider = Decider(folder, LivingMirror("n1", "n2"))
    decider.adapter.resume((), (), NOW)
    for each in pods:
        decider.mirror.put(each)
    decider.look()
    return decider


def one(**more: Any) -> Pod:
    return made("u1", name="train-xxxx2", schedulerName="foresail", **more)


def test_what_is_stopped_is_evicted(tmp_path: Path) -> None:
    """It ends once the pod has gone, as preempted; nobody creates another, so it is cancelled."""
    decider = decider_of(tmp_path, one(owner=[]))
    decider.start("n1", job_id=JOB)
    assert decider.look() == ["Began"]
    decider.mirror.is_kept = True
    decider.adapter.carry_out(Preempt(JOB, 2), decider.now)  # another attempt
    assert decider.look() == []
    assert decider.mirror.asked == ["binding train-xxxx2"]
    decider.adapter.carry_out(Preempt(JOB), decider.now)
    assert [name for _ in range(4) for name in decider.look()] == []
    (note,) = decider.notes
    assert note == f"{JOB} is not evicted yet: a disruption budget keeps it for now"
    assert decider.mirror.asked.count("eviction train-xxxx2") == 1
    decider.mirror.is_kept = False
    found = [each for _ in range(6) if decider.look() for each in decider.said]
    assert [type(each) for each in found] == [news.Ended, news.Cancelled]
    assert isinstance(found[0], news.Ended)
    assert found[0].outcome.ended_because is news.EndedBecause.PREEMPTED


def owned_by(uid: str) -> list[dict[str, Any]]:
    return [{"kind": "Job", "name": "train", "uid": uid, "controller": True}]


@pytest.mark.parametrize("comes", [True, False], ids=["a pod comes", "none comes"])
def test_what_its_owner_creates_anew_is_the_same_job(tmp_path: Path, comes: bool) -> None:
    """It is requeued, and its next attempt is another pod's; without any it is cancelled."""
    decider = decider_of(tmp_path, one(owner=owned_by("o1")))
    decider.start("n1", job_id=JOB)
    decider.look()
    decider.adapter.carry_out(Preempt(JOB), decider.now)
    decider.look()
    assert decider.look() == ["Ended", "Held"]
    other = made("u8", name="other-xxxx2", owner=owned_by("o2"), schedulerName="foresail")
    decider.mirror.put(other)
    assert decider.look() == ["Submitted"]
    if not comes:
        assert [name for _ in range(61) for name in decider.look()] == ["Cancelled"]
        return
    decider.mirror.put(made("u2", owner=owned_by("o1"), schedulerName="foresail"))
    assert decider.look()[-1] == "Released"
    decider.mirror.put_node(node("n3"))
    decider.look()
    decider.start("n2", attempt=2, job_id=JOB)
    assert decider.look() == ["Began"]
    (began,) = decider.said
    assert isinstance(began, news.Began)
    assert (began.job_id, began.attempt) == (JOB, 2)
    assert [name for _ in range(99) for name in decider.look()] == []


def test_what_leaves_holds_its_room(tmp_path: Path) -> None:
    """Until it has gone: nothing else is bound in its place before."""
    decider = decider_of(tmp_path, one(cpu="6"), made("u2", "6", schedulerName="foresail"))
    decider.start("n1", job_id=JOB)
    decider.look()
    decider.mirror.put(msgspec.structs.replace(bound(one(cpu="6")), is_leaving=True))
    decider.adapter.carry_out(Preempt(JOB), decider.now)
    decider.look()
    decider.start("n1", job_id="kubernetes:lab.train-u2+u2")
    assert decider.look() == ["NotStarted"]
    assert "eviction train-xxxx2" not in decider.mirror.asked


def test_what_is_stopped_before_it_is_bound_is_evicted_after(tmp_path: Path) -> None:
    """A binding that is under way is waited for."""
    decider = decider_of(tmp_path, one(owner=[]))
    decider.mirror.is_slow = True
    decider.start("n1", job_id=JOB)
    decider.adapter.carry_out(Preempt(JOB), decider.now)
    assert decider.look() == []
    decider.mirror.is_slow = False
    decider.mirror.answer()
    assert decider.look() == ["Began"]
    assert decider.look() == ["Ended", "Cancelled"]


def test_a_group_that_was_stopped_is_another_when_it_comes_again(tmp_path: Path) -> None:
    """Though some of its pods are leaving still."""
    notes = {KUEUE: "train", COUNT: "2"}
    some = [made(f"u{n}", annotations=notes, schedulerName="foresail") for n in (1, 2, 3, 4)]
    decider = decider_of(tmp_path, *some[:2])
    job_id = "kubernetes:lab.train+u1"
    decider.start("n1", "n2", job_id=job_id)
    assert decider.look() == ["Began"]
    decider.mirror.is_slow = True
    decider.adapter.carry_out(Preempt(job_id), decider.now)
    decider.look()
    for each in some[2:]:
        decider.mirror.put(each)
    decider.look()
    (submitted,) = [each for each in decider.said if isinstance(each, news.Submitted)]
    assert (submitted.job.job_id, submitted.job.tasks) == ("kubernetes:lab.train+u3", 2)
    decider.mirror.answer()


def gated(uid: str = "u1", name: str = "train-xxxx2", **more: Any) -> Pod:
    gates = more.pop("gates", [GATE])
    more.setdefault("schedulerName", "default-scheduler")
    return made(uid, name=name, schedulingGates=[{"name": each} for each in gates], **more)


def test_a_gate_is_opened_in_the_place_of_a_binding(tmp_path: Path) -> None:
    """Its scheduler, which knows of volumes, chooses the node: it has begun as ours, there."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]
    decider = decider_of(tmp_path, gated(volumes=volumes))
    (submitted,) = decider.said
    assert isinstance(submitted, news.Submitted)
    start = decider.start("n1", job_id=JOB)
    assert decider.mirror.asked == ["gate train-xxxx2"]
    assert decider.look() == []
    again = Decider(tmp_path, decider.mirror)
    assert again.adapter.resume([start], (), NOW) == []
    assert again.mirror.asked == ["gate train-xxxx2"]
    again.mirror.put(bound(again.mirror.pods["u1"], "n2"))
    assert again.look() == ["Began"]
    (began,) = again.said
    assert isinstance(began, news.Began)
    assert (began.ours, began.placement.tasks_by_node) == (True, (("n2", 1),))


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (gated(gates=[GATE, "other/gate"]), "is for the scheduler default-scheduler"),
        (gated(gates=["foresail.io/other"]), "is for the scheduler default-scheduler"),
        (gated(gates=[]), "is for the scheduler default-scheduler"),
        (gated(schedulerName="foresail"), "waits for a scheduling gate"),
    ],
)
def test_gates_of_others_are_theirs(tmp_path: Path, pod: Pod, said: str) -> None:
    """A pod with any other gate waits for that."""
    decider = decider_of(tmp_path, pod)
    held = decider.said[-1]
    assert isinstance(held, news.Held)
    assert held.by in (
        f"the cluster: {said}",
        "the cluster: is for the scheduler default-scheduler",
    )


def test_a_gate_that_is_refused_is_no_start(tmp_path: Path) -> None:
    """With the reason; it is tried again later."""
    decider = decider_of(tmp_path, gated())
    decider.mirror.refuses = {"train-xxxx2"}
    decider.start("n1", job_id=JOB)
    assert decider.look() == ["NotStarted"]
    (none,) = decider.said
    assert isinstance(none, news.NotStarted)
    assert "refused to open its gate" in none.sentence
    decider.mirror.refuses = set()
    decider.start("n1", attempt=2, job_id=JOB)
    assert decider.mirror.pods["u1"].gates == ()


def test_gates_of_a_group_open_together(tmp_path: Path) -> None:
    """One that was refused while others were opened is opened later: gates close no more."""
    notes = {KUEUE: "train", COUNT: "2"}
    pods = [gated(f"u{n}", f"train-u{n}", annotations=notes) for n in (1, 2)]
    decider = decider_of(tmp_path, *pods)
    decider.mirror.refuses = {"train-u2"}
    decider.start("n1", "n2", job_id="kubernetes:lab.train+u1")
    assert decider.look() == []
    decider.mirror.refuses = set()
    assert [name for _ in range(6) for name in decider.look()] == []
    assert [each.gates for each in decider.mirror.pods.values()] == [(), ()]
    for uid in ("u1", "u2"):
        decider.mirror.put(bound(decider.mirror.pods[uid]))
    assert decider.look() == ["Began"]


@contextmanager
def deciding(cluster: RealCluster, folder: Path) -> Iterator[tuple[DecidingKubernetes, list[str]]]:
    """An adapter to a real API server, which holds the lease, and what it notes."""
    mirror, notes = Mirror.begun(Access(str(cluster.config))), list[str]()
    assert mirror.connection is not None
    lease = Lease(mirror.connection, "default", "foresail-stops", "me")
    adapter = DecidingKubernetes(mirror, folder, notes.append, Caps(), "foresail", lease)
    try:
        until(lambda: lease.is_held, "the lease is held")
        yield adapter, notes
    finally:
        adapter.close()


def ready(cluster: RealCluster, name: str) -> None:
    """Let a bound pod be ready, as its kubelet would say it."""
    conditions = [{"type": "Ready", "status": "True"}]
    cluster.end(name, "Running", conditions=conditions)


@pytest.mark.slow
def test_budgets_are_kept_on_a_real_server(cluster: RealCluster, tmp_path: Path) -> None:
    """A pod that a budget keeps runs on, and is said to; without the budget it goes."""
    labels = {"labels": {"app": "kept"}}
    cluster.create(*(pod(name, schedulerName="foresail", metadata=labels) for name in "ab"))
    budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "kept"}}}
    named = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget"}
    cluster.create({**named, "metadata": {"name": "kept"}, "spec": budget})
    found: list[news.Event] = []
    with deciding(cluster, tmp_path) as (adapter, notes):
        assert adapter._binder._served.eviction == "policy/v1beta1"  # by discovery
        found += adapter.resume((), (), time.time())
        jobs = [each.job.job_id for each in found if isinstance(each, news.Submitted)]
        home = adapter.cluster.partitions[0]
        node = home.nodes[0].name
        for job_id in jobs:
            start = Start(job_id, Placement(((home.name, 1),), ((node, 1),)))
            adapter.carry_out(start, time.time())

        def said(kind: type[news.Event], count: int) -> bool:
            found.extend(adapter.reports(time.time()))
            return sum(isinstance(each, kind) for each in found) == count

        until(lambda: said(news.Began, 2), "both run")
        for name in "ab":
            ready(cluster, name)
        words = ["get", "pdb", "kept", "-o", "jsonpath={.status.currentHealthy}"]
        until(lambda: cluster.kubectl(*words) == "2", "the budget knows them")
        adapter.carry_out(Preempt(jobs[0]), time.time())
        until(lambda: not said(news.Ended, 1) and bool(notes), "the refusal is said")
        assert "a disruption budget keeps it for now" in notes[0]
        assert not said(news.Ended, 1)
        cluster.kubectl("delete", "pdb", "kept")
        until(lambda: said(news.Ended, 1), "it is evicted")
        (end,) = [each for each in found if isinstance(each, news.Ended)]
        assert end.outcome.job_id == jobs[0]
        assert end.outcome.ended_because is news.EndedBecause.PREEMPTED


@pytest.mark.slow
def test_gates_that_a_server_drops_are_none(cluster: RealCluster, tmp_path: Path) -> None:
    """Server 1.20 keeps no gates: such a pod is its scheduler's, whatever was asked for."""
    document = pod("gated", schedulingGates=[{"name": GATE}], schedulerName="default-scheduler")
    path = "/api/v1/namespaces/default/pods"
    cluster.kubectl("create", "--raw", path, "-f", "-", document=document)
    with deciding(cluster, tmp_path) as (adapter, _):
        held = [*adapter.resume((), (), time.time())][-1]
        assert isinstance(held, news.Held)
        assert held.by == "the cluster: is for the scheduler default-scheduler"
        assert sum((each.total for each in adapter.cluster.partitions), Resources()).cpus == 32.0
