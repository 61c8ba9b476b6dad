"""Leaving machines that are taken back: steps by what is seen, and notices of three clouds."""

from __future__ import annotations

import asyncio
import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail_kubernetes import wire
from foresail_kubernetes.transient.leaving import (
    OUT,
    Cordon,
    Delete,
    Evict,
    LeavingPod,
    TakeOut,
    TransientNode,
    is_overdue,
    leaving_pod,
    next_steps,
    noticed,
    serving_elsewhere,
    transient_node,
)
from foresail_kubernetes.transient.notices import (
    ENDS,
    Metadata,
    end_said_by,
    listed_notices,
    moment,
    seconds_said,
)
from foresail_kubernetes.transient.settings import SERVING, TYPE, Leaving

RULES = Leaving(wait_seconds=15.0, warning_seconds=120.0, taints=("example.com/going",))
NOW = 1_000_000.0
ENDS_AT = NOW + 120.0


def node(**more: Any) -> TransientNode:
    given = {"is_ready": True, "is_cordoned": True, "ends_seconds": ENDS_AT, "taints": (), **more}
    return TransientNode("n1", "a", **given)


def a_pod(name: str, **more: Any) -> LeavingPod:
    given: dict[str, Any] = {"node": "n1", "group": "web", "is_of_node": False, "has_ended": False}
    given |= {"is_leaving": False, "is_ready": True, "serves": True, "out_since": None, **more}
    return LeavingPod("default", name, name, **given)


def test_first_of_all_nothing_new_starts_there() -> None:
    """Only a node that is cordoned, with its end annotated, is left; one without an end never."""
    pods = [a_pod("a"), a_pod("batch", serves=False)]
    assert next_steps(node(ends_seconds=None), pods, {}, RULES, NOW) == []
    before = node(is_cordoned=False)
    assert next_steps(before, pods, {"web": 3}, RULES, NOW) == [Cordon("n1", ENDS_AT)]
    assert next_steps(before, [], {}, RULES, NOW + 500) == [Cordon("n1", ENDS_AT)]


def test_out_of_the_endpoints_then_a_wait_then_eviction() -> None:
    """Work that serves nobody is evicted at once; what leaves already is left alone."""
    serving, out = a_pod("a"), a_pod("b", serves=False, out_since=NOW - 14.9)
    batch, going = a_pod("c", serves=False), a_pod("d", is_leaving=True)
    steps = next_steps(node(), [serving, out, batch, going], {"web": 3}, RULES, NOW)
    assert steps == [TakeOut(serving), Evict(batch)]
    assert next_steps(node(), [out], {}, RULES, NOW + 0.2) == [Evict(out)]
    assert next_steps(node(), [going], {}, RULES, NOW) == []


def test_an_empty_node_is_deleted() -> None:
    """Whatever belongs to it, or has ended, may be there."""
    rest = [a_pod("daemon", is_of_node=True), a_pod("done", has_ended=True)]
    assert next_steps(node(), rest, {}, RULES, NOW) == [Delete("n1")]
    assert next_steps(node(), [*rest, a_pod("e", is_leaving=True)], {}, RULES, NOW) == []


def test_a_machine_that_is_gone_is_deleted_with_what_is_on_it() -> None:
    """Its time alone is not enough: it has to be not ready, too, and it is said after a while."""
    stuck = [a_pod("a", serves=False, out_since=NOW)]
    assert next_steps(node(is_ready=False), stuck, {}, RULES, ENDS_AT) == [Delete("n1")]
    assert next_steps(node(is_ready=False), stuck, {}, RULES, ENDS_AT - 1) == [Evict(stuck[0])]
    assert next_steps(node(), stuck, {}, RULES, ENDS_AT + 1000) == [Evict(stuck[0])]
    assert is_overdue(node(), ENDS_AT + 301)
    assert not is_overdue(node(), ENDS_AT + 299)
    assert not is_overdue(node(is_ready=False), ENDS_AT + 301)


def test_the_last_one_goes_on_serving() -> None:
    """Until another of its group does elsewhere, or time is nearly over."""
    pods = [a_pod("a"), a_pod("b"), a_pod("c", group="other"), a_pod("d", is_ready=False)]
    steps = next_steps(node(), pods, {"other": 1}, RULES, NOW)
    assert steps == [TakeOut(pods[1]), TakeOut(pods[2]), TakeOut(pods[3])]
    assert TakeOut(pods[0]) in next_steps(node(), pods, {"web": 1}, RULES, NOW)
    assert TakeOut(pods[0]) in next_steps(node(), pods, {}, RULES, ENDS_AT - 25.0)
    assert TakeOut(pods[0]) not in next_steps(node(), pods, {}, RULES, ENDS_AT - 25.1)


def test_who_serves_elsewhere() -> None:
    """Pods count that are ready, in the endpoints, to stay, and on nodes that are."""
    there = a_pod("a", node="n2")
    others = [
        msgspec.structs.replace(there, **{field: value})
        for field, value in (
            ("node", "n1"),
            ("is_ready", False),
            ("is_leaving", True),
            ("serves", False),
        )
    ]
    assert serving_elsewhere([there, *others], [node()]) == {"web": 1}


def test_objects_become_records() -> None:
    """A node counts as cordoned once its end is annotated as well; both are read of its object."""
    meta = {"name": "n1", "labels": {TYPE: "a"}, "annotations": {ENDS: moment(ENDS_AT)}}
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    spec: dict[str, Any] = {"unschedulable": True, "taints": [{"key": "example.com/going"}]}
    wired = msgspec.convert({"metadata": meta, "spec": spec, "status": status}, wire.WireNode)
    assert transient_node(wired) == node(taints=("example.com/going",))
    meta["annotations"] = {}
    wired = msgspec.convert({"metadata": meta, "spec": spec, "status": status}, wire.WireNode)
    assert transient_node(wired) == node(
        taints=("example.com/going",), is_cordoned=False, ends_seconds=None
    )
    owner = {"kind": "ReplicaSet", "name": "web-1", "controller": True}
    about: dict[str, Any] = {"name": "p", "namespace": "shop", "uid": "u"}
    about |= {"ownerReferences": [owner], "labels": {SERVING: "yes"}}
    about["annotations"] = {OUT: moment(NOW)}
    of = msgspec.convert({"metadata": about, "spec": {"nodeName": "n1"}}, wire.WirePod)
    pod = leaving_pod(of)
    assert (pod.group, pod.node, pod.serves) == ("shop/ReplicaSet/web-1", "n1", True)
    assert (pod.out_since, pod.is_ready) == (NOW, False)


def test_notices_of_a_file_and_of_taints() -> None:
    """A time that is said counts; else the warning; an end that is annotated stays."""
    fresh = node(ends_seconds=None, is_cordoned=False)
    tainted = msgspec.structs.replace(fresh, name="n2", taints=("example.com/going",))
    known = msgspec.structs.replace(node(), name="n3")
    other = msgspec.structs.replace(fresh, name="n4", taints=("example.com/other",))
    listed, bad = listed_notices("n1 2026-12-01T18:00:00Z  # soon\n\n# none\nn3\nn9 soon\na b c\n")
    assert bad == [
        "line 5: 'n9 soon' is no node and a time",
        "line 6: 'a b c' is no node and a time",
    ]
    assert listed == {"n1": 1796148000.0, "n3": None}
    ends = [e.ends_seconds for e in noticed([fresh, tainted, known, other], listed, RULES, NOW)]
    assert ends == [1796148000.0, NOW + 120.0, ENDS_AT, None]


ANSWERS = [
    ("aws", b'{"action": "terminate", "time": "2026-12-01T18:00:00Z"}', 1796148000.0),
    ("aws", b'{"action": "stop"}', NOW + 120.0),
    ("aws", b"", None),
    ("aws", b'{"action": "none"}', None),
    ("aws", b"[1]", None),
    ("gcp", b"TRUE", NOW + 30.0),
    ("gcp", b"FALSE", None),
    ("azure", b'{"Events": []}', None),
    ("azure", b'{"Events": [{"EventType": "Preempt", "Resources": ["other"]}]}', None),
    ("azure", b'{"Events": [{"EventType": "Reboot", "Resources": ["vm1"]}]}', None),
    ("azure", b'{"Events": [{"EventType": "Preempt", "Resources": ["vm1"]}]}', NOW + 30.0),
    (
        "azure",
        b'{"Events": [7, {"EventType": "Preempt", "Resources": ["vm0", "vm1"],'
        b' "NotBefore": "Tue, 01 Dec 2026 18:00:00 GMT"}]}',
        1796148000.0,
    ),
]


@pytest.mark.parametrize(("cloud", "answer", "ends"), ANSWERS)
def test_answers_of_metadata_services(cloud: str, answer: bytes, ends: float | None) -> None:
    """What each cloud says of a machine, in its own form."""
    assert end_said_by(cloud, answer, "vm1", NOW) == ends


@given(st.sampled_from(["aws", "gcp", "azure"]), st.binary(max_size=60), st.text(max_size=30))
def test_answers_that_are_no_answers(cloud: str, answer: bytes, text: str) -> None:
    """Hostile ones say nothing, and end nobody."""
    end_said_by(cloud, answer, "vm1", NOW)
    wrapped = {"Events": [{"EventType": "Preempt", "Resources": ["vm1"], "NotBefore": text}]}
    assert end_said_by("azure", msgspec.json.encode(wrapped), "vm1", NOW) is not None
    seconds_said(text)
    listed_notices(text)


class _Cloud(BaseHTTPRequestHandler):
    """A metadata service as each cloud has it: tokens and headers are asked for."""

    answer = b""
    asked: list[str] = []  # noqa: RUF012 - of the class, as its server makes one for each call

    def do_PUT(self) -> None:
        lasts = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        self.say(200 if lasts and self.path == "/latest/api/token" else 400, b"token1\n")

    def do_GET(self) -> None:
        self.asked.append(self.path)
        header = {
            "/latest/meta-data/spot/instance-action": ("X-aws-ec2-metadata-token", "token1"),
            "/computeMetadata/v1/instance/preempted": ("Metadata-Flavor", "Google"),
            "/metadata/scheduledevents?api-version=2020-07-01": ("Metadata", "true"),
        }[self.path]
        is_right = self.headers.get(header[0]) == header[1]
        self.say(403 if not is_right else 200 if self.answer else 404, self.answer)

    def say(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_metadata_is_asked_as_its_cloud_wants_it(cloud: str) -> None:
    """With its headers, at its path; none is nothing."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Cloud)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"

    async def ask() -> bytes:
        async with aiohttp.ClientSession() as session:
            return await Metadata(session, cloud, address).asked()

    try:
        _Cloud.answer = b""
        assert asyncio.run(ask()) == b""
        _Cloud.answer = b"TRUE"
        assert asyncio.run(ask()) == b"TRUE"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_events_ends_in_an_empty_node(seed: int) -> None:
    """A cluster in which steps take effect late, or not at all, is left step by step.

    No pod is evicted that was in the endpoints within the wait, and none before the cordon.
    """
    drawn = random.Random(seed)
    one = node(is_cordoned=False)
    pods = {
        f"p{number}": a_pod(
            f"p{number}", serves=drawn.random() < 0.7, group=f"g{drawn.randint(0, 2)}"
        )
        for number in range(6)
    }
    elsewhere = {f"g{number}": drawn.randint(0, 2) for number in range(3)}
    was_serving = {name for name, each in pods.items() if each.serves}
    now, is_there = NOW, True
    while is_there and now < NOW + 400:
        for step in next_steps(one, list(pods.values()), elsewhere, RULES, now):
            if drawn.random() < 0.4:  # the API server is away, a budget says no, a crash
                continue
            match step:
                case Cordon():
                    one = msgspec.structs.replace(one, is_cordoned=True)
                case TakeOut(pod):
                    assert one.is_cordoned
                    pods[pod.name] = msgspec.structs.replace(pod, serves=False, out_since=now)
                case Evict(pod):
                    assert one.is_cordoned
                    if pod.name in was_serving:
                        assert pod.out_since is not None
                        assert now - pod.out_since >= RULES.wait_seconds
                    del pods[pod.name]
                    elsewhere[pod.group] += 1
                case Delete():
                    assert not pods
                    is_there = False
        now += 1.0
    assert not is_there
    assert now <= ENDS_AT + 30
