"""News of pods and nodes as events, from a mirror that a test fills; no API server."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.control.loop import Controller
from foresail.live.cluster_contact import ClusterContact, what_can_be
from foresail.model import event as news
from foresail.model.adapter import KnownJob
from foresail.model.changing_nodes import changes_between
from foresail.model.cluster import Resources
from foresail.model.decision import Start
from foresail.model.errors import InputError
from foresail.model.registry import NoParameters
from foresail.schedulers.external import External
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.mirror import Changes
from foresail_kubernetes.observing import KubernetesAdapter
from foresail_kubernetes.records import KubernetesNode, Pod
from foresail_kubernetes.versions import Served
from test_pods_and_nodes import asking, node, owned, read
from toys import Constant, Doubling

NOW = 1_796_000_000.0
CREATED = "2026-11-29T20:53:00Z"
"""Some hours before that."""
GIB = 2.0**30


@dataclass
class FilledMirror:
    """A mirror that a test fills."""

    nodes: dict[str, KubernetesNode] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    problem: str = ""
    changed: dict[str, Pod] = field(default_factory=dict)
    gone: dict[str, Pod] = field(default_factory=dict)
    other_nodes: bool = False
    groups: dict[str, int] = field(default_factory=dict)
    other_groups: bool = False
    unread: str = ""
    served: Served = field(default_factory=Served)

    def all_groups(self) -> dict[str, int]:
        return dict(self.groups)

    def pod(self, uid: str) -> Pod | None:
        return self.pods.get(uid)

    def all_pods(self) -> dict[str, Pod]:
        return dict(self.pods)

    def all_nodes(self) -> dict[str, KubernetesNode]:
        return dict(self.nodes)

    def take(self) -> Changes:
        nodes = self.all_nodes() if self.other_nodes else None
        groups = self.all_groups() if self.other_groups else None
        taken = Changes(self.changed, self.gone, nodes, groups)
        self.changed, self.gone, self.other_nodes, self.other_groups = {}, {}, False, False
        return taken

    def put(self, pod: Pod) -> Pod:
        self.pods[pod.uid] = self.changed[pod.uid] = pod
        return pod

    def delete(self, uid: str) -> None:
        self.changed.pop(uid, None)
        self.gone[uid] = self.pods.pop(uid)

    def put_node(self, node: KubernetesNode) -> None:
        self.nodes[node.name] = node
        self.other_nodes = True

    def remove_node(self, name: str) -> None:
        del self.nodes[name]
        self.other_nodes = True

    def close(self) -> None:
        pass


def made(uid: str = "u1", cpu: str = "1", **more: Any) -> Pod:
    """A pod that somebody has created, with a random name."""
    spec = {"containers": [asking(cpu=cpu, memory="1Gi")], "restartPolicy": "Never"}
    status = more.pop("status", {"phase": "Pending"})
    meta = {"ownerReferences": more.pop("owner", owned("Job", "train"))}
    meta |= {"annotations": more.pop("annotations", {})}
    meta |= {"creationTimestamp": more.pop("created", CREATED)}
    name = more.pop("name", f"train-{uid}")
    return read({**spec, **more}, status, uid=uid, name=name, generateName=name[:-5], **meta)


def bound(pod: Pod, node: str = "n1", at: float = NOW - 60.0) -> Pod:
    return msgspec.structs.replace(pod, node=node, bound_seconds=at)


def ended(pod: Pod, phase: str = "Succeeded", at: float = NOW, reason: str = "", code: int = 0):
    changes = {"phase": phase, "end_seconds": at, "reason": reason, "exit_code": code}
    return msgspec.structs.replace(pod, **changes)


class Watcher:
    """An adapter to such a mirror, and a controller that takes what it reports."""

    def __init__(
        self,
        folder: Path,
        *nodes: KubernetesNode,
        mirror: FilledMirror | None = None,
        caps: Caps | None = None,
    ):
        self.mirror = mirror or FilledMirror({each.name: each for each in nodes})
        self.notes: list[str] = []
        self.adapter = KubernetesAdapter(self.mirror, folder, self.notes.append, caps or Caps())
        self.now = NOW

    def look(self) -> list[news.Event]:
        self.now += 1.0
        return [*self.adapter.reports(self.now)]

    def names(self) -> list[str]:
        return [type(each).__name__ for each in self.look()]


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    watcher = Watcher(tmp_path, node("n1"), node("n2"))
    assert watcher.adapter.resume((), (), NOW) == []
    return watcher


NODES = news.NodeEvent | news.OperatorEvent | news.Occupied
JOB = "kubernetes:lab.train-xxxx2"


def train(**more: Any) -> Pod:
    return made(name="train-xxxx2", **more)


def test_a_pod_comes_begins_and_ends(watcher: Watcher) -> None:
    """With when it was bound and when its containers ended, by the API's own times."""
    pod = watcher.mirror.put(train(activeDeadlineSeconds=600))
    (submitted,) = watcher.look()
    assert isinstance(submitted, news.Submitted)
    job = submitted.job
    assert (job.job_id, job.user, job.name) == (JOB, "lab", "train")
    assert (job.total, job.requested_seconds) == (Resources(1.0, GIB), 600.0)
    assert watcher.look() == []
    pod = watcher.mirror.put(bound(pod))
    (began,) = watcher.look()
    assert isinstance(began, news.Began)
    assert (began.attempt, began.ours, began.start_seconds) == (1, False, NOW - 60.0)
    assert began.placement.tasks_by_node == (("n1", 1),)
    watcher.mirror.put(ended(pod, at=NOW + 2.5, code=0))
    (end,) = watcher.look()
    assert isinstance(end, news.Ended)
    assert end.outcome == news.Outcome(JOB, NOW - 60.0, NOW + 2.5, exit_code=0)
    watcher.mirror.delete(pod.uid)
    assert watcher.look() == []


@pytest.mark.parametrize(
    ("phase", "reason", "because", "said"),
    [
        ("Failed", "", "failed", ""),
        ("Failed", "DeadlineExceeded", "limit", ""),
        ("Failed", "Evicted", "cancelled", "it was taken from its node (Evicted)"),
        ("Failed", "OutOfcpu", "cancelled", "its node did not take it (OutOfcpu)"),
    ],
)
def test_ends_by_their_reason(
    watcher: Watcher, phase: str, reason: str, because: str, said: str
) -> None:
    """An eviction is nobody's failure."""
    watcher.mirror.put(ended(bound(train()), phase, NOW, reason, 1))
    *_, end = watcher.look()
    assert isinstance(end, news.Ended)
    assert (str(end.outcome.ended_because), end.outcome.reason) == (because, said)


def test_what_is_deleted_has_ended(watcher: Watcher) -> None:
    """One that waited is cancelled, one that ran too, as it was deleted; a name may come again."""
    first = watcher.mirror.put(made("u1"))
    second = watcher.mirror.put(bound(made("u2")))
    watcher.look()
    watcher.mirror.delete(first.uid)
    watcher.mirror.delete(second.uid)
    watcher.mirror.put(made("u3", name="train-u1"))
    found = watcher.look()
    assert [type(each) for each in found] == [news.Cancelled, news.Ended, news.Submitted]
    assert isinstance(found[1], news.Ended)
    assert found[1].outcome.reason == "it was deleted"
    assert found[0].job_id != found[2].job.job_id  # type: ignore[union-attr]


def test_what_belongs_to_a_node_is_load(watcher: Watcher) -> None:
    """Pods of a DaemonSet, and those to run for ever before anybody looked, are no jobs."""
    agent = watcher.mirror.put(bound(made("d1", "500m", owner=owned("DaemonSet", "agent"))))
    watcher.mirror.put(bound(made("s1", "250m", restartPolicy="Always"), "n2"))
    assert watcher.look() == [
        news.Occupied(NOW + 1.0, "n1", Resources(0.5, GIB)),
        news.Occupied(NOW + 1.0, "n2", Resources(0.25, GIB)),
    ]
    watcher.mirror.put(ended(agent))
    assert watcher.look() == [news.Occupied(NOW + 2.0, "n1", Resources())]
    watcher.mirror.delete(agent.uid)
    watcher.mirror.put(made("d2", owner=owned("DaemonSet", "agent")))
    watcher.mirror.put(made("s2", restartPolicy="Always"))
    assert watcher.names() == ["Submitted"]  # a service that waits for its start


def test_what_is_left_to_the_cluster_is_held_until_it_begins(watcher: Watcher) -> None:
    """With the reason; once a gate has gone it is released."""
    gated = made(schedulingGates=[{"name": "x"}])
    watcher.mirror.put(gated)
    _, held = watcher.look()
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: waits for a scheduling gate"
    watcher.mirror.put(made())
    assert watcher.names() == ["Released"]
    watcher.mirror.put(gated)
    assert watcher.names() == ["Held"]
    watcher.mirror.put(bound(gated))
    assert watcher.names() == ["Began"]


def test_places_follow_nodes(watcher: Watcher) -> None:
    """A pod that needs a node that is not there is held until such a one comes."""
    watcher.mirror.put(made(nodeSelector={"pool": "gpu"}))
    held = watcher.look()[1]
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: may run on no node that there is"
    watcher.mirror.put_node(node("g1", pool="gpu"))
    added, changed, released = watcher.look()
    assert isinstance(added, news.NodeAdded)
    assert (added.node.name, added.partition) == ("g1", "gpu")
    assert isinstance(changed, news.JobChanged)
    assert changed.job.partition == "gpu"
    assert isinstance(released, news.Released)
    watcher.mirror.put_node(node("g2", pool="gpu", taints=[{"key": "a", "effect": "NoSchedule"}]))
    found = watcher.look()
    assert isinstance(found[-1], news.Held)
    assert found[-1].by == "the cluster: may use some of the nodes of gpu only"


def test_nodes_are_drained_and_used_again(watcher: Watcher) -> None:
    """By a cordon, or as they are not ready; what runs there runs on."""
    watcher.mirror.put(bound(made()))
    watcher.look()
    watcher.mirror.put_node(node("n1", unschedulable=True))
    watcher.mirror.put_node(node("n2", ready="Unknown"))
    assert [(type(e).__name__, e.node) for e in watcher.look()] == [  # type: ignore[union-attr]
        ("NodeDrained", "n1"),
        ("NodeDrained", "n2"),
    ]
    watcher.mirror.put_node(node("n1"))
    watcher.mirror.put_node(node("n2"))
    assert watcher.names() == ["NodeResumed", "NodeResumed"]


def test_a_node_goes_once_nothing_is_bound_to_it(watcher: Watcher) -> None:
    """Until then nothing new starts there."""
    pod = watcher.mirror.put(bound(made()))
    watcher.look()
    watcher.mirror.remove_node("n1")
    assert watcher.names() == ["NodeDrained"]
    watcher.mirror.delete(pod.uid)
    watcher.mirror.put_node(node("n3"))
    assert watcher.names() == ["Ended", "NodeRemoved", "NodeAdded"]


def test_a_pod_on_a_node_that_is_not_known_yet_begins_later(watcher: Watcher) -> None:
    """Watches of pods and of nodes know nothing of each other."""
    watcher.mirror.put(bound(made(), "n9"))
    assert watcher.look() == []
    watcher.mirror.put_node(node("n9"))
    assert watcher.names() == ["NodeAdded", "Submitted", "Began"]


def test_an_absence_is_said(watcher: Watcher) -> None:
    """An error is raised that counts as the cluster's; nothing is changed here."""
    watcher.mirror.problem = "nobody answers"
    with pytest.raises(ConnectionError, match="nobody answers"):
        watcher.look()
    with pytest.raises(InputError, match="left to the cluster"):
        watcher.adapter.carry_out(Start(JOB, placement=None), NOW)  # type: ignore[arg-type]


def test_wishes_that_do_not_count_are_said_seldom(watcher: Watcher) -> None:
    """Once in ten minutes for a namespace, whoever floods it."""
    for number in range(50):
        watcher.mirror.put(made(f"u{number}", annotations={"foresail.io/deadline": "x" * 999}))
    watcher.look()
    assert len(watcher.notes) == 1
    assert len(watcher.notes[0]) < 300


def job_of(event: news.Event) -> str:
    if isinstance(event, news.Submitted):
        return event.job.job_id
    return event.outcome.job_id if isinstance(event, news.Ended) else event.job_id  # type: ignore[union-attr]


def test_after_a_restart_all_is_found_again(watcher: Watcher, tmp_path: Path) -> None:
    """Pods that wait, run, began, ended, came and went meanwhile; old ends are old."""
    waits, runs, begins, goes, ends = (made(f"u{n}") for n in range(5))
    old = ended(bound(made("u5", created="2026-11-29T20:00:00Z")))
    mirror = watcher.mirror
    for each in (waits, bound(runs), begins, goes, bound(ends), old):
        mirror.put(each)
    jobs = {e.job.job_id: e.job for e in watcher.look() if isinstance(e, news.Submitted)}
    watcher.look()
    known = [KnownJob(job, 0, runs=False) for name, job in jobs.items() if not name.endswith("u5")]
    ran = {"kubernetes:lab.train-u1+u1", "kubernetes:lab.train-u4+u4"}
    known = [KnownJob(e.job, 1, runs=True) if e.job.job_id in ran else e for e in known]
    mirror.put(bound(begins))
    mirror.delete(goes.uid)
    mirror.put(ended(bound(ends)))
    mirror.put(ended(bound(made("u6", created="2026-11-29T20:53:30Z"))))
    again = Watcher(tmp_path, mirror=mirror)
    found = again.adapter.resume((), known, NOW + 100.0)
    said: dict[str, list[str]] = {}
    for each in found:
        said.setdefault(job_of(each).rpartition("+")[2], []).append(type(each).__name__)
    assert said == {
        "u0": ["Released"],  # though nobody may have held it
        "u1": ["Began"],
        "u2": ["Began"],
        "u3": ["Cancelled"],
        "u4": ["Began", "Ended"],
        "u6": ["Submitted", "Began", "Ended"],
    }
    assert again.look() == []


def test_what_has_ended_is_history(tmp_path: Path) -> None:
    """Pods that are there still, in the order of their ends."""
    mirror = FilledMirror({"n1": node("n1")})
    for number, end in ((1, 30.0), (2, 10.0)):
        mirror.put(ended(bound(made(f"u{number}"), at=1000.0), at=1000.0 + end))
    mirror.put(bound(made("u3")))
    mirror.put(ended(bound(made("u4", owner=owned("DaemonSet", "x")), at=1000.0), at=1005.0))
    adapter = KubernetesAdapter(mirror, tmp_path, print, Caps())  # type: ignore[arg-type]
    assert [each.outcome.runtime_seconds for each in adapter.history()] == [10.0, 30.0]
    assert adapter.resume((), (), NOW)
    assert sum(isinstance(e, news.Submitted) for e in adapter.resume((), (), NOW)) == 1


def test_a_cluster_without_nodes_is_waited_for(tmp_path: Path) -> None:
    """A cluster without nodes is taken for one that is away."""
    with pytest.raises(ConnectionError, match="no nodes"):
        KubernetesAdapter(FilledMirror(), tmp_path, print, Caps())  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_the_state_is_that_of_the_cluster(tmp_path: Path, seed: int) -> None:
    """Pods and nodes at random, looks and new drivers between: nothing impossible is reported."""
    chance = random.Random(seed)
    mirror = FilledMirror({name: node(name) for name in ("n1", "n2", "n3")})
    watcher = Watcher(tmp_path, mirror=mirror)
    controller = Controller(
        watcher.adapter.cluster, External(NoParameters()), Constant(10.0), Doubling()
    )
    state, notes, over = controller.state, list[str](), set[str]()

    def take(events: Any) -> None:
        events = [*events]
        found = [*what_can_be(events, state, notes.append)]
        again = [e for e in events if not isinstance(e, NODES) and job_of(e) in over]
        assert len(notes) <= len(again)  # a new driver may report once more what has ended
        notes.clear()
        over.update(job_of(e) for e in found if isinstance(e, news.Ended | news.Cancelled))
        assert not controller.step(watcher.now, found) or found

    take(watcher.adapter.resume((), (), watcher.now))
    for number in range(200):
        happen(chance, mirror, number)
        if chance.random() < 0.5:
            take(watcher.look())
        if chance.random() < 0.05:
            now, watcher = watcher.now + 1.0, Watcher(tmp_path, mirror=mirror)
            watcher.now = now
            waiting = [each.job for each in state.pending()]
            known = [KnownJob(job, 0, runs=False) for job in waiting]
            known += [KnownJob(each.job, 1, runs=True) for each in state.running.values()]
            take(by_the_driver(watcher, controller, known))
    take(watcher.look())
    alive = {e.job_id: e for e in mirror.pods.values() if not (e.has_ended or e.is_of_node)}
    for name in {each.node for each in alive.values()} - {"", *mirror.nodes}:
        mirror.put_node(node(name))
        for each in [e.uid for e in mirror.pods.values() if e.node == name]:
            mirror.delete(each)
    take(watcher.look())
    alive = {job_id: each for job_id, each in alive.items() if each.uid in mirror.pods}
    runs = {job_id for job_id, each in alive.items() if each.node}
    assert {job_id.partition(":")[2] for job_id in state.running} == runs
    assert {e.job.job_id.partition(":")[2] for e in state.pending()} == alive.keys() - runs
    for name, free in state.free.by_node().items():
        held = [e.request for e in mirror.pods.values() if e.node == name and not e.has_ended]
        if name in mirror.nodes and mirror.nodes[name].is_usable:
            assert free == mirror.nodes[name].total - sum(held, Resources())


def by_the_driver(
    watcher: Watcher, controller: Controller, known: list[KnownJob]
) -> list[news.Event]:
    """Return what a new driver takes: how nodes differ from its log, and what has gone."""
    now, adapter, state = watcher.now, watcher.adapter, controller.state
    found = [*adapter.resume((), known, now)]
    named = {job_of(each) for each in found if isinstance(each, news.Began | news.Ended)}
    for job_id, each in controller.running.items():
        if job_id not in named:
            because = news.EndedBecause.CANCELLED
            assert isinstance(job_id, str)
            outcome = news.Outcome(job_id, each.start_seconds, now, because)
            found.append(news.Ended(now, outcome))
    nodes = changes_between(controller.cluster, adapter.cluster, now)
    return [*ClusterContact.undrained(state, found, now), *nodes, *found]


def happen(chance: random.Random, mirror: FilledMirror, number: int) -> None:
    """Let something happen to pods and nodes."""
    pods = [each for each in mirror.pods.values() if not each.has_ended]
    match chance.randrange(9):
        case 0 | 1 | 2:
            owner = owned("DaemonSet", "agent") if chance.random() < 0.2 else owned("Job", "train")
            at = datetime.fromtimestamp(NOW - 1000.0 + number, UTC).isoformat()
            cpu = chance.choice(["100m", "1"])
            mirror.put(made(f"u{number}", cpu, owner=owner, created=at))
        case 3 | 4 if pods and (some := [each for each in pods if not each.node]):
            mirror.put(bound(chance.choice(some), chance.choice([*mirror.nodes]), NOW))
        case 5 if pods and (some := [each for each in pods if each.node]):
            mirror.put(ended(chance.choice(some), chance.choice(["Succeeded", "Failed"])))
        case 6 if mirror.pods:
            mirror.delete(chance.choice([*mirror.pods]))
        case 7:
            name = chance.choice(["n1", "n2", "n3"])
            if name not in mirror.nodes:  # a node comes again once nothing of the old one is left
                for each in [e.uid for e in mirror.pods.values() if e.node == name]:
                    mirror.delete(each)
            mirror.put_node(node(name, unschedulable=chance.random() < 0.5))
        case 8 if len(mirror.nodes) > 1:
            mirror.remove_node(chance.choice([*mirror.nodes]))


@pytest.mark.parametrize("skew", [-7200.0, 7200.0])
def test_clocks_may_differ(watcher: Watcher, skew: float) -> None:
    """Times of the API server that are hours ahead, or behind: none is later than now."""
    at = NOW + skew
    created = datetime.fromtimestamp(at, UTC).isoformat()
    pod = watcher.mirror.put(train(created=created))
    (submitted,) = watcher.look()
    watcher.mirror.put(bound(pod, at=at + 1.0))
    (began,) = watcher.look()
    watcher.mirror.put(ended(bound(pod, at=at + 1.0), at=at + 2.0))
    (end,) = watcher.look()
    assert isinstance(submitted, news.Submitted)
    assert isinstance(began, news.Began)
    assert isinstance(end, news.Ended)
    times = submitted.job.submit_seconds, began.start_seconds, end.outcome.end_seconds
    assert sorted(times) == [*times]
    assert times[-1] <= watcher.now
    assert submitted.job.submit_seconds <= submitted.time
    assert began.start_seconds <= began.time
