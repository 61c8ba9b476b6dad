"""Starts as the adapter carries them out, with a mirror that a test fills; no API server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.model import event as news
from foresail.model.cluster import Placement
from foresail.model.decision import Preempt, Start
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.deciding import DecidingKubernetes
from foresail_kubernetes.records import Pod
from test_binding_pods import Answering, Held, refused, there
from test_observing_pods import NOW, FilledMirror, bound, ended, made, owned
from test_pods_and_nodes import node

JOB = "kubernetes:lab.train-xxxx2"


class MirrorOfAnswers(FilledMirror):
    """A mirror that a test fills, with a connection to a server of some answers."""

    def __init__(self, *answers: Any) -> None:
        super().__init__({name: node(name) for name in ("n1", "n2")})
        self.connection = Answering(*answers)

    def call(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run(work)


class KeptLease(Held):
    problem = "another replica decides"

    async def keep(self) -> None:
        pass


class Decider:
    """An adapter to such a mirror, which knows of what waits there."""

    def __init__(self, folder: Path, mirror: MirrorOfAnswers) -> None:
        self.lease = KeptLease()
        given: Any = mirror, folder, print, Caps(), "foresail", self.lease
        self.adapter = DecidingKubernetes(*given)
        self.mirror = mirror
        self.now = NOW

    def look(self) -> list[news.Event]:
        self.now += 1.0
        return [*self.adapter.reports(self.now)]

    def start(self, name: str, attempt: int = 1) -> None:
        placement = Placement((("nodes", 1),), ((name, 1),))
        self.adapter.carry_out(Start(JOB, placement, attempt), self.now)

    @property
    def bindings(self) -> list[str]:
        asked = self.mirror.connection.asked
        return [body["target"]["name"] for method, _, body in asked if method == "POST"]


def ours(uid: str = "u1", name: str = "train-xxxx2", **more: Any) -> Pod:
    return made(uid, name=name, schedulerName="foresail", **more)


def decider(folder: Path, pod: Pod, *answers: Any) -> Decider:
    found = Decider(folder, MirrorOfAnswers(*answers))
    found.mirror.put(pod)
    found.adapter.resume((), (), NOW)
    return found


def test_a_start_binds_once_and_is_confirmed(tmp_path: Path) -> None:
    """Handed over twice, it is one binding; it begins as ours, by the attempt that was said."""
    decides = decider(tmp_path, ours(), b"{}")
    decides.start("n1")
    decides.start("n1")
    assert decides.bindings == ["n1"]
    assert decides.look() == []
    decides.mirror.put(bound(ours()))
    (began,) = decides.look()
    assert isinstance(began, news.Began)
    assert (began.attempt, began.ours) == (1, True)
    decides.start("n1")
    assert decides.bindings == ["n1"]
    decides.mirror.put(ended(bound(ours())))
    (over,) = decides.look()
    assert isinstance(over, news.Ended)
    assert over.outcome.attempt == 1


def test_what_is_refused_waits_longer_each_time(tmp_path: Path) -> None:
    """With the reason, and its next attempt is another binding."""
    answers = [refused(500), there(uid="u1")] * 2 + [b"{}"]
    decides = decider(tmp_path, ours(), *answers)
    pauses = []
    for attempt in (1, 2):
        decides.start("n1", attempt)
        (none,) = decides.look()
        assert isinstance(none, news.NotStarted)
        assert (none.attempt, "refused to bind it" in none.sentence) == (attempt, True)
        pauses.append(none.again_after_seconds)
    assert pauses == [2.0, 4.0]
    decides.start("n2", 3)
    decides.mirror.put(bound(ours(), "n2"))
    (began,) = decides.look()
    assert isinstance(began, news.Began)
    assert (began.attempt, began.ours) == (3, True)


def test_another_scheduler_may_be_quicker(tmp_path: Path) -> None:
    """Our start was none, and what runs is not ours."""
    decides = decider(tmp_path, ours(), refused(409), there("n2"))
    decides.start("n1")
    decides.mirror.put(bound(ours(), "n2"))
    none, began = decides.look()
    assert isinstance(none, news.NotStarted)
    assert none.sentence == "another scheduler has bound it to n2"
    assert isinstance(began, news.Began)
    assert (began.attempt, began.ours, began.placement.tasks_by_node) == (2, False, (("n2", 1),))


TAINTED = [{"key": "a", "effect": "NoExecute"}]
FULL = [bound(made(f"f{number}", "100m", owner=owned("DaemonSet", "x"))) for number in range(110)]


def full_of_pods(name: str) -> list[Pod]:
    """As many as a node takes, which ask for nothing."""
    return [
        msgspec.structs.replace(each, uid=f"{name}-{each.uid}", node=name, needs={})
        for each in FULL
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda mirror: mirror.put_node(node("n1", unschedulable=True)), "not in use"),
        (lambda mirror: mirror.remove_node("n1"), "not in use"),
        (lambda mirror: mirror.put(bound(made("f1", "7500m"))), "too little cpu"),
        (lambda mirror: [mirror.put(each) for each in FULL[:100]], "too little cpu"),
        (
            lambda mirror: [
                mirror.put(each) for node in ("n1", "n2") for each in full_of_pods(node)
            ],
            "too little pods",
        ),
        (
            lambda mirror: mirror.put_node(
                node("n1", taints=[{"key": "a", "effect": "NoExecute"}])
            ),
            "may not run on node n1",
        ),
        (
            lambda mirror: mirror.put(msgspec.structs.replace(ours(), is_leaving=True)),
            "about to be deleted",
        ),
    ],
)
def test_no_use_is_seen_before_it_is_bound(tmp_path: Path, change: Any, why: str) -> None:
    """Obstacles that the policy could not know: nothing is asked of the API server."""
    decides = decider(tmp_path, ours())
    change(decides.mirror)
    decides.look()
    decides.start("n1")
    found = [each for each in decides.look() if isinstance(each, news.NotStarted)]
    assert [why in each.sentence for each in found] == [True]
    assert decides.bindings == []


def test_a_node_that_takes_no_pods_any_more_is_none_to_bind_to(tmp_path: Path) -> None:
    """Another of its pool is, if that has room; it begins there."""
    decides = decider(tmp_path, ours(), b"{}")
    for each in full_of_pods("n1"):
        decides.mirror.put(each)
    decides.look()
    decides.start("n1")
    assert decides.bindings == ["n2"]
    decides.mirror.put(bound(ours(), "n2"))
    (began,) = [each for each in decides.look() if isinstance(each, news.Began)]
    assert (began.ours, began.placement.tasks_by_node) == (True, (("n2", 1),))


def test_room_is_counted_as_soon_as_it_is_bound(tmp_path: Path) -> None:
    """A second pod that fits beside none of the first is not bound, confirmed or not."""
    decides = Decider(tmp_path, MirrorOfAnswers(b"{}"))
    decides.adapter.resume((), (), NOW)
    wide = {"resources": {"requests": {"cpu": "4"}}}
    for number in (3, 4):
        decides.mirror.put(ours(f"u{number}", f"train-xxxx{number}", containers=[wide]))
    jobs = [each.job.job_id for each in decides.look() if isinstance(each, news.Submitted)]
    for job_id in jobs:
        decides.adapter.carry_out(Start(job_id, Placement((("nodes", 1),), (("n1", 1),))), NOW)
    assert decides.bindings == ["n1"]
    (none,) = [each for each in decides.look() if isinstance(each, news.NotStarted)]
    assert "too little cpu" in none.sentence


def test_pods_of_other_schedulers_are_theirs(tmp_path: Path) -> None:
    """They wait for these, and hold their room as theirs."""
    decides = Decider(tmp_path, MirrorOfAnswers())
    decides.adapter.resume((), (), NOW)
    other = decides.mirror.put(made(name="train-xxxx2", schedulerName="default-scheduler"))
    _, held = decides.look()
    assert isinstance(held, news.Held)
    assert held.by == "the cluster: is for the scheduler default-scheduler"
    decides.mirror.put(bound(other))
    (began,) = decides.look()
    assert isinstance(began, news.Began)
    assert not began.ours


def test_without_the_lease_it_is_away(tmp_path: Path) -> None:
    """Neither looked at nor bound, and said."""
    decides = decider(tmp_path, ours())
    decides.lease.is_held = False
    for call in (decides.look, lambda: decides.start("n1")):
        with pytest.raises(ConnectionError, match="another replica decides"):
            call()
    assert decides.bindings == []
    with pytest.raises(ConnectionError, match="another replica decides"):
        decides.adapter.carry_out(Preempt(JOB), NOW)


@pytest.mark.parametrize(
    ("left", "bindings", "said"),
    [
        (ours(), ["n1"], []),
        (bound(ours()), [], ["Began"]),
        (bound(ours(), "n2"), [], ["NotStarted", "Began"]),
        (None, [], ["Ended"]),
    ],
    ids=["unbound", "bound", "elsewhere", "gone"],
)
def test_after_a_restart_starts_are_carried_out_once(
    tmp_path: Path, left: Pod | None, bindings: list[str], said: list[str]
) -> None:
    """Starts that were instructed and are bound nowhere are bound; all else is as found."""
    decides = Decider(tmp_path, MirrorOfAnswers(b"{}"))
    if left is not None:
        decides.mirror.put(left)
    start = Start(JOB, Placement((("nodes", 1),), (("n1", 1),)), 3)
    found = decides.adapter.resume([start], (), NOW)
    assert [type(each).__name__ for each in found] == said
    assert decides.bindings == bindings
    attempts = [each.attempt for each in found if isinstance(each, news.Began)]
    assert attempts == ([] if "Began" not in said else [3 + ("NotStarted" in said)])


@pytest.mark.parametrize("given", [{"decides": "Not a name"}, {"namespace": "a/b"}])
def test_names_are_names(given: dict[str, str]) -> None:
    """Names of schedulers and namespaces are parts of addresses."""
    entry = find("cluster", "kubernetes")
    with pytest.raises(InputError, match="is no name"):
        entry.build(entry.parameters(**given))
