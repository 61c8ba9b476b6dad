"""Groups of pods: by whose conventions, how they are packed, and that they start whole or not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.model import event as news
from foresail.model.adapter import KnownJob
from foresail.model.cluster import Placement, Resources
from foresail.model.decision import Start
from foresail_kubernetes import deciding, wire
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.connection import Connection, RefusedError
from foresail_kubernetes.deciding import DecidingKubernetes
from foresail_kubernetes.groups import bundled, group_of, least_of
from foresail_kubernetes.records import Pod
from foresail_kubernetes.telling import Teller
from foresail_kubernetes.versions import Served, served
from kubernetes import client as models
from test_deciding_pods import KeptLease
from test_observing_pods import NOW, FilledMirror, Watcher, bound, ended, made
from test_pods_and_nodes import node

KUEUE = "kueue.x-k8s.io/pod-group-name"
COUNT = "kueue.x-k8s.io/pod-group-total-count"
PLUGINS = "scheduling.x-k8s.io/pod-group"
VOLCANO = "scheduling.k8s.io/group-name"
OWN = {"schedulingGroup": {"podGroupName": "train"}}


def read(document: dict[str, Any]) -> wire.WirePod:
    return msgspec.json.decode(msgspec.json.encode(document), type=wire.WirePod)


@pytest.mark.parametrize(
    ("metadata", "spec", "group", "count"),
    [
        ({}, {}, "", None),
        ({"labels": {PLUGINS: "train"}}, {}, "train", None),
        ({"annotations": {VOLCANO: "train"}}, {}, "train", None),
        ({"labels": {KUEUE: "train"}, "annotations": {COUNT: "3"}}, {}, "train", 3),
        ({"labels": {KUEUE: "other"}}, OWN, "train", None),
        ({"labels": {KUEUE: ""}}, {"schedulingGroup": None}, "", None),
    ],
)
def test_groups_by_conventions(
    metadata: dict[str, Any], spec: dict[str, Any], group: str, count: int | None
) -> None:
    """Kubernetes' own field before labels and annotations of others."""
    assert group_of(read({"metadata": metadata, "spec": spec})) == (group, count, "")


@pytest.mark.parametrize(
    ("metadata", "group", "said"),
    [
        ({"annotations": {VOLCANO: "../../x"}}, "", "'../../x' is no name of a group of pods"),
        ({"annotations": {VOLCANO: "a" * 999}}, "", "is no name of a group of pods"),
        ({"annotations": {VOLCANO: "a\n"}}, "", "is no name of a group of pods"),
        ({"labels": {KUEUE: "a"}, "annotations": {COUNT: "-1"}}, "a", "'-1' is no number of pods"),
        ({"labels": {KUEUE: "a"}, "annotations": {COUNT: "9" * 99}}, "a", "is no number of pods"),
    ],
)
def test_hostile_groups_are_none(metadata: dict[str, Any], group: str, said: str) -> None:
    """Texts that are no names or numbers do not count, and are said in short."""
    found, count, why = group_of(read({"metadata": metadata}))
    assert (found, count) == (group, None)
    assert said in why
    assert len(why) < 120


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({"minMember": 3}, 3),
        ({}, 1),
        ({"minMember": 0}, 1),
        ({"schedulingPolicy": {"gang": {"minCount": 4}}}, 4),
        ({"schedulingPolicy": {"basic": {}}}, 1),
    ],
)
def test_least_number_of_pods(spec: dict[str, Any], least: int) -> None:
    """Said by plug-ins and Volcano, and by Kubernetes' own API."""
    document = msgspec.json.encode({"metadata": {"name": "train"}, "spec": spec})
    assert least_of(msgspec.json.decode(document, type=wire.PodGroup)) == least


@pytest.mark.parametrize("version", ["V1beta1", "V1alpha3"])
def test_fields_are_those_of_the_official_client(version: str) -> None:
    """Newer APIs than were run: a group made by the client's models is read as it was meant."""
    of = {each: getattr(models, f"{version}{each}") for each in ("PodGroup", "PodGroupSpec")}
    gang = getattr(models, f"{version}GangSchedulingPolicy")(min_count=5)
    policy = getattr(models, f"{version}PodGroupSchedulingPolicy")(gang=gang)
    group = of["PodGroup"](
        metadata=models.V1ObjectMeta(name="train", namespace="lab"),
        spec=of["PodGroupSpec"](scheduling_policy=policy),
    )
    document = models.ApiClient().sanitize_for_serialization(group)
    assert least_of(msgspec.convert(document, wire.PodGroup)) == 5
    spec = models.V1PodSpec(
        containers=[models.V1Container(name="c")],
        scheduling_group=models.V1PodSchedulingGroup(pod_group_name="train"),
        scheduling_gates=[models.V1PodSchedulingGate(name="foresail.io/start")],
    )
    pod = models.ApiClient().sanitize_for_serialization(models.V1Pod(spec=spec))
    assert group_of(read(pod))[0] == "train"
    assert [each.name for each in read(pod).spec.scheduling_gates or ()] == ["foresail.io/start"]


GIB = 2.0**30


def test_pods_that_are_alike_are_a_task_each() -> None:
    """A task asks for what each of them does."""
    request = Resources(4.0, GIB)
    unit, bundles = bundled({"b": request, "a": request}, [Resources(8.0, 8 * GIB)])
    assert (unit, bundles) == (request, (("a",), ("b",)))


@pytest.mark.parametrize(
    ("driver", "worker", "count", "room", "tasks"),
    [
        ((1, 1, 0), (4, 8, 0), 4, (8, 32, 0), 5),
        ((1, 1, 0), (2, 1, 1), 8, (16, 64, 4), 8),  # beside a gpu, not in the place of one
        ((1, 32, 0), (4, 1, 0), 30, (64, 64, 0), 5),  # a memory of its own for the driver alone
    ],
)
def test_a_driver_goes_beside_workers(
    driver: Any, worker: Any, count: int, room: Any, tasks: int
) -> None:
    """So that the group takes the least share of what there is."""
    sizes = {name: Resources(c, m * GIB, g) for name, (c, m, g) in (("d", driver), ("w", worker))}
    requests = {"d": sizes["d"], **{f"w{number}": sizes["w"] for number in range(count)}}
    unit, bundles = bundled(requests, [Resources(room[0], room[1] * GIB, room[2])] * 4)
    assert len(bundles) == tasks
    assert unit.gpus == worker[2]


@pytest.mark.parametrize("seed", range(50))
def test_any_bundle_fits_in_a_task(seed: int) -> None:
    """Each pod is in one bundle, and what a task asks for holds any of them."""
    chance = random.Random(seed)
    sizes = [
        Resources(chance.randint(1, 8) / 2, chance.randint(1, 16) * GIB, chance.choice([0, 0, 1]))
        for _ in range(chance.randint(1, 4))
    ]
    requests = {f"u{number}": chance.choice(sizes) for number in range(chance.randint(1, 60))}
    unit, bundles = bundled(requests, [Resources(16.0, 64 * GIB, 2.0)] * 3)
    assert sorted(uid for some in bundles for uid in some) == sorted(requests)
    for some in bundles:
        assert some
        assert sum((requests[uid] for uid in some), Resources()).fits_in(unit)


class Serving(Connection):
    """A connection to a server that serves some groups of APIs."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents

    async def ask(self, method: str, path: str, *_: Any, **__: Any) -> bytes:
        if path not in self.documents:
            raise RefusedError(404, b"", path)
        return msgspec.json.encode(self.documents[path])


def resources(*names: str, **more: Any) -> dict[str, Any]:
    return {"kind": "APIResourceList", "resources": [{"name": each, **more} for each in names]}


def groups(**versions: list[str]) -> dict[str, Any]:
    found = [
        {
            "name": name.replace("_", ".").replace("8ks", "k8s"),
            "versions": [{"version": v} for v in some],
        }
        for name, some in versions.items()
    ]
    return {"kind": "APIGroupList", "groups": found}


V120 = {
    "/api/v1": resources("pods/eviction", group="policy", version="v1beta1"),
    "/apis": groups(policy=["v1beta1"], scheduling_k8s_io=["v1", "v1beta1"]),
    "/apis/scheduling.k8s.io/v1beta1": resources("priorityclasses"),
}
"""As 1.20 answers: its group of that name and version has no pod groups."""
NEW = {
    "/api/v1": resources("pods", "pods/eviction", group="policy", version="v1"),
    "/apis": groups(scheduling_k8s_io=["v1", "v1beta1", "v1alpha3"]),
    "/apis/scheduling.k8s.io/v1beta1": resources("podgroups", "workloads"),
    "/apis/scheduling.k8s.io/v1alpha3": resources("podgroups", "workloads"),
}


@pytest.mark.parametrize(
    ("documents", "found"),
    [
        (V120, Served("policy/v1beta1", ())),
        (NEW, Served("policy/v1", ("/apis/scheduling.k8s.io/v1beta1/podgroups",))),
        ({}, Served("policy/v1", ())),
    ],
)
def test_versions_by_discovery(documents: dict[str, Any], found: Served) -> None:
    """Of what is served, the newest that is known; who may not ask gets what is new."""
    assert asyncio.run(served(Serving(documents))) == found


def member(uid: str, count: int | None = 3, cpu: str = "1", **more: Any) -> Pod:
    """A pod of the group ``train``."""
    notes = {KUEUE: "train", **({COUNT: str(count)} if count else {})}
    return made(uid, cpu, annotations=notes, schedulerName="foresail", **more)


JOB = "kubernetes:lab.train+u1"


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    watcher = Watcher(tmp_path, node("n1"), node("n2"))
    assert watcher.adapter.resume((), (), NOW) == []
    return watcher


def test_a_group_is_one_job_that_waits_for_all_its_pods(watcher: Watcher) -> None:
    """With how many are missing; it has begun once all are bound, and until then some are load."""
    watcher.mirror.put(member("u1"))
    submitted, held = watcher.look()
    assert isinstance(submitted, news.Submitted)
    assert (submitted.job.job_id, submitted.job.tasks) == (JOB, 1)
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: 2 of the 3 pods of its group train are not there"
    watcher.mirror.put(member("u2"))
    changed, _, held = watcher.look()
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: 1 of the 3 pods of its group train are not there"
    watcher.mirror.put(member("u3"))
    changed, released = watcher.look()
    assert isinstance(changed, news.JobChanged)
    assert changed.job.tasks == 3
    assert isinstance(released, news.Released)
    watcher.mirror.put(bound(member("u1")))
    held, load = watcher.look()[-2:]
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: it is bound in part"
    assert load == news.Occupied(watcher.now, "n1", Resources(1.0, GIB))
    watcher.mirror.put(bound(member("u2"), "n2"))
    watcher.mirror.put(bound(member("u3"), "n2"))
    began, none = watcher.look()
    assert isinstance(began, news.Began)
    assert began.placement.tasks_by_node == (("n1", 1), ("n2", 2))
    assert none == news.Occupied(watcher.now, "n1", Resources())


@pytest.mark.parametrize(
    ("phases", "because"),
    [
        (["Succeeded", "Succeeded", "Succeeded"], "completed"),
        (["Succeeded", "Failed", "Succeeded"], "failed"),
        (["Succeeded", "", ""], "completed"),
        (["", "", ""], "cancelled"),
    ],
)
def test_a_group_ends_with_the_last_of_its_pods(
    watcher: Watcher, phases: list[str], because: str
) -> None:
    """Failed if one has; executors that are deleted behind their driver spoil nothing."""
    pods = [watcher.mirror.put(bound(member(f"u{n}"))) for n in (1, 2, 3)]
    assert watcher.names() == ["Submitted", "Began"]
    for pod, phase in zip(pods, phases, strict=True):
        assert watcher.look() == []
        if phase:
            watcher.mirror.put(ended(pod, phase))
        else:
            watcher.mirror.delete(pod.uid)
    (end,) = watcher.look()
    assert isinstance(end, news.Ended)
    assert (end.outcome.job_id, str(end.outcome.ended_because)) == (JOB, because)


def test_a_pod_of_a_group_that_runs_is_a_job_of_its_own(watcher: Watcher) -> None:
    """It comes in the place of one that was lost; once the group has ended, another one begins."""
    for number in (1, 2, 3):
        watcher.mirror.put(bound(member(f"u{number}")))
    watcher.look()
    watcher.mirror.put(member("u4"))
    (submitted,) = watcher.look()
    assert isinstance(submitted, news.Submitted)
    assert (submitted.job.job_id, submitted.job.tasks) == ("kubernetes:lab.train-u4+u4", 1)
    for number in (1, 2, 3):
        watcher.mirror.delete(f"u{number}")
    watcher.mirror.put(member("u5"))
    ends, submitted, _ = watcher.look()
    assert isinstance(ends, news.Ended)
    assert isinstance(submitted, news.Submitted)
    assert submitted.job.job_id == "kubernetes:lab.train+u5"


def test_how_many_is_said_by_a_group_of_the_api(watcher: Watcher) -> None:
    """Where nothing says it, the job waits; where a group is of one pod, each is by itself."""
    watcher.mirror.unread = "this account may not read pod groups"
    watcher.mirror.put(member("u1", None))
    held = watcher.look()[1]
    assert isinstance(held, news.Held)
    assert held.by.endswith("says nowhere how many pods it has; " + watcher.mirror.unread)
    watcher.mirror.groups, watcher.mirror.other_groups = {"lab/train": 2}, True
    held = watcher.look()[-1]
    assert isinstance(held, news.Held)
    assert "1 of the 2 pods" in held.by
    watcher.mirror.put(member("u2", None))
    assert watcher.names() == ["JobChanged", "Released"]
    watcher.mirror.groups, watcher.mirror.other_groups = {"lab/train": 1}, True
    watcher.look()
    watcher.mirror.put(made("u9", annotations={KUEUE: "alone", COUNT: "1"}))
    (submitted,) = watcher.look()
    assert isinstance(submitted, news.Submitted)
    assert submitted.job.job_id == "kubernetes:lab.train-u9+u9"


def test_pods_of_a_group_share_a_pool(watcher: Watcher) -> None:
    """One whose pods may go to different ones only is left to the cluster."""
    watcher.mirror.put_node(node("g1", pool="gpu"))
    watcher.mirror.put_node(node("s1", pool="slow"))
    watcher.look()
    watcher.mirror.put(member("u1", 2, nodeSelector={"pool": "gpu"}))
    watcher.mirror.put(member("u2", 2, nodeSelector={"pool": "slow"}))
    held = watcher.look()[1]
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: its pods may share no pool"
    watcher.mirror.put(member("u2", 2))
    changed, released = watcher.look()
    assert isinstance(changed, news.JobChanged)
    assert changed.job.partition == "gpu"
    assert isinstance(released, news.Released)


def test_a_group_is_found_again_after_a_restart(watcher: Watcher, tmp_path: Path) -> None:
    """Though no pod says which job it is of, and the first of them has gone."""
    for number in (1, 2, 3):
        watcher.mirror.put(member(f"u{number}"))
    (submitted,) = watcher.look()
    assert isinstance(submitted, news.Submitted)
    watcher.mirror.delete("u1")
    watcher.mirror.put(member("u4"))
    again = Watcher(tmp_path, mirror=watcher.mirror)
    known = [KnownJob(submitted.job, 0, runs=False)]
    assert [type(e).__name__ for e in again.adapter.resume((), known, NOW)] == ["Released"]
    for number in (2, 3, 4):
        again.mirror.put(bound(member(f"u{number}")))
    (began,) = again.look()
    assert isinstance(began, news.Began)
    assert began.job_id == JOB


GATE = "foresail.io/foresail"


class LivingMirror(FilledMirror):
    """A mirror of a server that binds and evicts, or does not, by chance or as a test has it."""

    def __init__(self, *names: str, chance: random.Random | None = None) -> None:
        super().__init__({name: node(name) for name in names})
        self.connection = self
        self.chance = chance
        self.refuses: set[str] = set()
        self.is_kept = self.is_slow = False
        self.asked: list[str] = []
        self.calls: list[Coroutine[Any, Any, Any]] = []

    def call(self, work: Coroutine[Any, Any, Any]) -> None:
        self.calls.append(work)
        if not self.is_slow:
            self.answer()

    def answer(self) -> None:
        """Let happen what was asked for."""
        while self.calls:
            asyncio.run(self.calls.pop(0))

    async def ask(
        self, method: str, path: str, query: Any = None, body: Any = None, kind: str = ""
    ) -> bytes:
        *_, name, what = path.split("/")
        if method == "PATCH":
            name, what = what, "gate"
        if method == "GET":
            (pod,) = [e for e in self.pods.values() if e.name == what] or [None]
            if pod is None:
                raise RefusedError(404, b"", path)
            gates = [{"name": each} for each in pod.gates]
            spec = {"nodeName": pod.node, "schedulingGates": gates}
            return msgspec.json.encode({"metadata": {"uid": pod.uid}, "spec": spec})
        self.asked.append(f"{what} {name}")
        (pod,) = [e for e in self.pods.values() if e.name == name] or [None]
        if pod is None:
            raise RefusedError(404, b"", path)
        if what == "eviction":
            if self.is_kept:
                raise RefusedError(429, b"", path)
            self.delete(pod.uid)
        elif pod.node or name in self.refuses or (self.chance and self.chance.random() < 0.3):
            raise RefusedError(409, b"", path)
        elif what == "gate":
            assert body["metadata"]["uid"] == pod.uid
            (gate,) = body["spec"]["schedulingGates"]
            assert gate == {"name": GATE, "$patch": "delete"}
            self.put(msgspec.structs.replace(pod, gates=(), aside=""))
        else:
            self.put(bound(pod, body["target"]["name"]))
        return b"{}"


class Decider:
    """An adapter that binds, to such a mirror."""

    def __init__(self, folder: Path, mirror: LivingMirror) -> None:
        self.mirror, self.now, self.notes = mirror, NOW, list[str]()
        given: Any = mirror, folder, self.notes.append, Caps(), "foresail", KeptLease()
        self.adapter = DecidingKubernetes(*given)

    def look(self, seconds: float = 1.0) -> list[str]:
        self.now += seconds
        self.said = [*self.adapter.reports(self.now)]
        return [type(each).__name__ for each in self.said]

    def start(self, *nodes: str, attempt: int = 1, job_id: str = JOB) -> Start:
        counts = {name: nodes.count(name) for name in nodes}
        placement = Placement((("nodes", len(nodes)),), tuple(sorted(counts.items())))
        start = Start(job_id, placement, attempt)
        self.adapter.carry_out(start, self.now)
        return start

    @property
    def nodes(self) -> dict[str, str]:
        return {uid: each.node for uid, each in sorted(self.mirror.pods.items())}


@pytest.fixture
def decider(tmp_path: Path) -> Decider:
    decider = Decider(tmp_path, LivingMirror("n1", "n2"))
    decider.adapter.resume((), (), NOW)
    for number in (1, 2, 3):
        decider.mirror.put(member(f"u{number}", cpu="3"))
    assert decider.look() == ["Submitted"]
    return decider


def test_a_group_starts_whole(decider: Decider) -> None:
    """All its pods are bound by one start, and it has begun as ours."""
    decider.start("n1", "n1", "n2")
    assert decider.nodes == {"u1": "n1", "u2": "n1", "u3": "n2"}
    assert decider.look() == ["Began"]
    (began,) = decider.said
    assert isinstance(began, news.Began)
    assert began.ours


def test_none_is_bound_where_one_has_no_room(decider: Decider) -> None:
    """The obstacle of one pod is that of all: nothing is asked of the API server."""
    decider.mirror.put(bound(made("f1", "6"), "n2"))
    decider.look()
    decider.start("n1", "n1", "n2")
    assert decider.look() == ["NotStarted"]
    (none,) = decider.said
    assert isinstance(none, news.NotStarted)
    assert none.sentence == "train-u3: node n2 has too little cpu left"
    assert decider.mirror.asked == []
    decider.mirror.put(made("o1", "5", name="other-xxxx2", schedulerName="foresail"))
    decider.look()
    decider.start("n1", job_id="kubernetes:lab.other-xxxx2")  # nothing is held there
    assert decider.look() == ["Began"]
    decider.mirror.delete("f1")
    decider.mirror.delete("o1")
    decider.look()
    decider.start("n1", "n2", "n2", attempt=2)
    assert "Began" in decider.look()


def test_answers_are_waited_for(decider: Decider) -> None:
    """Bindings that are under way are not asked for again, though some are there already."""
    decider.mirror.is_slow = True
    decider.start("n1", "n1", "n2")
    decider.mirror.put(bound(member("u1", cpu="3")))
    assert [name for _ in range(9) for name in decider.look()] == []
    assert len(decider.mirror.calls) == 3
    decider.mirror.put(member("u4", cpu="3"))  # the group has all its pods, and is about to run
    decider.look()
    (submitted,) = decider.said
    assert isinstance(submitted, news.Submitted)
    assert submitted.job.job_id == "kubernetes:lab.train-u4+u4"
    decider.mirror.answer()
    assert decider.look() == ["Began"]


def test_room_that_is_not_enough_for_all_is_not_held(tmp_path: Path) -> None:
    """While half a group waits for room, other pods use what is free."""
    decider = Decider(tmp_path, LivingMirror("n1", "n2"))
    decider.adapter.resume((), (), NOW)
    decider.mirror.put(bound(member("u1", cpu="5")))
    for uid in ("u2", "u3"):
        decider.mirror.put(member(uid, cpu="5"))
    decider.mirror.put(made("o1", "5", name="other-xxxx2", schedulerName="foresail"))
    decider.look()
    decider.start("n2", job_id="kubernetes:lab.other-xxxx2")
    assert decider.look() == ["Began"]


def test_a_start_that_fails_midway_is_completed(decider: Decider) -> None:
    """The pod that was refused is bound as soon as that is possible."""
    decider.mirror.refuses = {"train-u2"}
    decider.start("n1", "n1", "n2")
    assert decider.look() == []
    assert decider.nodes == {"u1": "n1", "u2": "", "u3": "n2"}
    decider.mirror.refuses = set()
    decider.look()
    assert decider.look() == ["Began"]
    assert all(decider.nodes.values())


def test_what_cannot_be_completed_is_undone(decider: Decider) -> None:
    """Bound pods are evicted; a budget that keeps one is said, and asked again."""
    decider.mirror.refuses = {"train-u2"}
    decider.mirror.is_kept = True
    decider.start("n1", "n1", "n2")
    decider.look()
    blocked = [bound(made(f"f{n}", "6"), f"n{n}") for n in (1, 2)]
    for each in blocked:
        decider.mirror.put(each)
    said = [each for _ in range(7) if decider.look() for each in decider.said]
    (at,) = [n for n, each in enumerate(said) if isinstance(each, news.NotStarted)]
    held, *loads = said[at + 1 :]
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: it is bound in part"
    assert [(each.node, each.resources.cpus) for each in loads] == [("n1", 3.0), ("n2", 3.0)]
    assert decider.nodes["u1"] == "n1"
    assert decider.mirror.asked.count("eviction train-u1") == 1
    assert decider.notes == [
        f"kubernetes:lab.train-{uid}+{uid} is not evicted yet: a disruption budget keeps it for now"
        for uid in ("u1", "u3")
    ]
    decider.mirror.is_kept = False
    for _ in range(7):
        decider.look()
    assert decider.mirror.asked.count("eviction train-u1") == 2
    assert decider.nodes == {"f1": "n1", "f2": "n2", "u2": ""}
    for uid in ("u4", "u5"):
        decider.mirror.put(member(uid, cpu="3"))
    for each in blocked:
        decider.mirror.delete(each.uid)
    assert "Released" in decider.look()
    decider.mirror.refuses = set()
    decider.start("n1", "n2", "n2", attempt=2)
    assert decider.look() == ["Began"]


@pytest.mark.parametrize("is_lost", [False, True], ids=["with its log", "without"])
@pytest.mark.parametrize("is_full", [False, True], ids=["room", "none"])
def test_half_a_group_at_a_restart_is_completed_or_evicted(
    decider: Decider, tmp_path: Path, is_lost: bool, is_full: bool
) -> None:
    """Within ten seconds, whether or not there is a log of its start."""
    decider.mirror.refuses = {"train-u2", "train-u3"}
    start = decider.start("n1", "n1", "n2")
    decider.mirror.refuses = set()
    if is_full:
        for name in ("n1", "n2"):
            decider.mirror.put(bound(made(f"f{name}", "4"), name))
    folder = tmp_path / "other" if is_lost else tmp_path
    folder.mkdir(exist_ok=True)
    again = Decider(folder, decider.mirror)
    events = [*again.adapter.resume([] if is_lost else [start], (), NOW)]
    for _ in range(9):
        again.look()
        events += again.said
    found = {uid: node for uid, node in again.nodes.items() if uid.startswith("u")}
    assert found == ({"u2": "", "u3": ""} if is_full else {"u1": "n1", "u2": "n1", "u3": "n2"})
    began = [each.ours for each in events if isinstance(each, news.Began) and each.job_id == JOB]
    assert began == ([] if is_full else [not is_lost])
    assert sum(isinstance(e, news.NotStarted) for e in events) == (is_full and not is_lost)


def test_a_driver_and_workers_of_another_size_start_together(tmp_path: Path) -> None:
    """Each where its bundle has room."""
    decider = Decider(tmp_path, LivingMirror("n1", "n2"))
    decider.adapter.resume((), (), NOW)
    decider.mirror.put(member("u1", 4, "500m"))
    for number in (2, 3, 4):
        decider.mirror.put(member(f"u{number}", 4, "3"))
    assert decider.look() == ["Submitted"]
    (submitted,) = decider.said
    assert isinstance(submitted, news.Submitted)
    (stage,) = submitted.job.stages
    assert (stage.tasks, stage.request.cpus) == (3, 3.5)
    decider.start("n1", "n1", "n2")
    assert decider.look() == ["Began"]
    cpus = {
        name: sum(p.request.cpus for p in decider.mirror.pods.values() if p.node == name)
        for name in ("n1", "n2")
    }
    assert sorted(cpus.values()) in ([3.0, 6.5], [3.5, 6.0])


def test_half_a_group_of_another_scheduler_is_its_own(tmp_path: Path) -> None:
    """Neither completed nor evicted."""
    decider = Decider(tmp_path, LivingMirror("n1"))
    decider.adapter.resume((), (), NOW)
    notes = {KUEUE: "train", COUNT: "2"}
    decider.mirror.put(bound(made("u1", annotations=notes, schedulerName="volcano")))
    decider.mirror.put(made("u2", annotations=notes, schedulerName="volcano"))
    for _ in range(20):
        decider.look()
    assert decider.mirror.asked == []


@pytest.mark.parametrize("seed", range(20))
def test_no_group_stays_half(tmp_path: Path, seed: int) -> None:
    """Starts, refusals by chance, foreign pods, deletions, new drivers: whole or not at all."""
    chance = random.Random(seed)
    mirror = LivingMirror("n1", "n2", "n3", chance=chance)
    decider, attempts = Decider(tmp_path, mirror), dict[str, int]()
    decider.adapter.resume((), (), NOW)
    running: dict[str, Start] = {}
    waiting: dict[str, Any] = {}

    def take(events: Any) -> None:
        for each in events:
            match each:
                case news.Submitted(job=job) | news.JobChanged(job=job):
                    assert isinstance(each, news.JobChanged) or job.job_id not in waiting
                    waiting[job.job_id] = job
                case news.Began(job_id=job_id, attempt=attempt, placement=placement):
                    attempts[job_id] = attempt
                    running[job_id] = Start(job_id, placement, attempt)
                case news.NotStarted(job_id=job_id) | news.Cancelled(job_id=job_id):
                    running.pop(job_id, None)
                case news.Ended(outcome=outcome):
                    running.pop(outcome.job_id)
                    waiting.pop(outcome.job_id)
            if isinstance(each, news.Cancelled):
                waiting.pop(each.job_id)

    for number in range(150):
        match chance.randrange(8):
            case 0 | 1:
                name = chance.choice("abc")
                notes = {KUEUE: name, COUNT: "3"}
                cpu = chance.choice(["1", "2"])
                mirror.put(made(f"u{number}", cpu, annotations=notes, schedulerName="foresail"))
            case 2 if mirror.pods:
                mirror.delete(chance.choice([*mirror.pods]))
            case 3:
                mirror.put(bound(made(f"f{number}", "1"), chance.choice(["n1", "n2", "n3"])))
            case 4 if chance.random() < 0.3:
                known = [
                    KnownJob(job, attempts.get(name, 0), runs=False)
                    for name, job in waiting.items()
                    if name not in running
                ]
                now, decider = decider.now + 1.0, Decider(tmp_path, mirror)
                decider.now = now
                take(decider.adapter.resume([*running.values()], known, now))
            case _:
                some = [
                    name
                    for name, entry in decider.adapter._entries.items()
                    if not (entry.runs or entry.aside) and f"kubernetes:{name}" in waiting
                ]
                if some:
                    job = waiting[f"kubernetes:{chance.choice(some)}"]
                    nodes = [chance.choice(["n1", "n2", "n3"]) for _ in range(job.tasks)]
                    attempts[job.job_id] = attempts.get(job.job_id, 0) + 1
                    running[job.job_id] = decider.start(
                        *nodes, attempt=attempts[job.job_id], job_id=job.job_id
                    )
        decider.look()
        take(decider.said)
        for name in mirror.nodes:
            held = sum(each.request.cpus for each in mirror.pods.values() if each.node == name)
            foreign = [each for each in mirror.pods.values() if each.uid.startswith("f")]
            assert held <= 7.91 + sum(each.request.cpus for each in foreign if each.node == name)
    mirror.chance = None
    for _ in range(10):
        decider.look()
        take(decider.said)
    for job_id in [*running]:
        entry = decider.adapter._entries[job_id.removeprefix("kubernetes:")]
        assert all(each.node for each in entry.pods.values())
    for entry in decider.adapter._entries.values():
        assert len({bool(each.node) for each in entry.pods.values()}) <= 1


def test_the_wait_for_the_other_half_is_below_ten_seconds() -> None:
    """Asked at once, evicted after this, and gone in a moment where no grace is wished."""
    assert deciding._HALF_SECONDS < 8.0


class Listing(Connection):
    """A connection to a server that lists pods, and takes what is written to them."""

    def __init__(self, *names: str) -> None:
        self.told: list[str] = []
        labels = {KUEUE: "train", "x": "y"}
        self.pods = [
            {"metadata": {"name": each, "namespace": "lab", "uid": each, "labels": labels}}
            for each in names
        ]

    async def ask(
        self, method: str, path: str, query: Any = None, body: Any = None, *_: Any, **__: Any
    ) -> bytes:
        if method == "PATCH":
            self.told.append(body["metadata"]["uid"])
        return msgspec.json.encode({"items": self.pods})


def test_all_pods_of_a_group_are_told() -> None:
    """What the service expects of the group; no more pods at once than may be."""
    row = {"job_id": "kubernetes:lab.train+a", "reason": {"sentence": "needs 8 cpus"}}
    for most, told in ((5, ["a", "b"]), (1, ["a"])):
        connection = Listing("a", "b")
        teller = Teller(connection, most, print)
        assert asyncio.run(teller.tell([row], NOW)) == len(told)
        assert connection.told == told
