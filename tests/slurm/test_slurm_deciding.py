"""A Slurm cluster that is decided on: holds, starts and what Slurm makes of them, by its orders."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from foresail.model.adapter import KnownJob
from foresail.model.cluster import Placement
from foresail.model.decision import Preempt, Start
from foresail.model.errors import InputError
from foresail.model.event import (
    Began,
    Cancelled,
    Ended,
    EndedBecause,
    Event,
    Held,
    NotStarted,
    Released,
    Submitted,
)
from foresail.model.job import DeadlineValue
from foresail_slurm import deciding, orders
from foresail_slurm.adapters.slurm import SlurmCluster, SlurmParameters
from foresail_slurm.deciding import DecidingAdapter, Owned
from test_slurm_cluster import FakeSlurm, told
from test_slurm_reading import ENDED

OWNED = Owned(frozenset({"main"}), frozenset())
ON_BOTH = Placement((("main", 2),), (("n1", 1), ("n2", 1)))


class OrderedSlurm(FakeSlurm):
    """One that takes orders, as scontrol does; what was let go begins when it is put so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.orders: list[str] = []
        self.deaf = False
        monkeypatch.setattr(orders, "_give", self._take)
        monkeypatch.setattr(orders, "read_lives", lambda: [*self.lives.values()])

    def _take(self, text: str) -> None:
        given = text.splitlines()
        if self.deaf:
            raise ConnectionError("scontrol: Access/permission denied for job 7")
        self.orders += given
        for order in given:
            self._one(order)

    def _one(self, order: str) -> None:
        word, _, rest = order.partition(" ")
        name = rest.removeprefix("JobId=").removeprefix("Incomplete ").split()[0]
        fields = dict(each.split("=", 1) for each in rest.split() if "=" in each)
        for each in [job for job in self.queue if job in (name, f"{name}_{job.partition('_')[2]}")]:
            if "ReqNodeList" in fields:
                self.change(each, ReqNodes=fields["ReqNodeList"])
            if fields.get("Priority") == "0":
                self.change(each, Reason="JobHeldAdmin", PriorityLong="0")
            elif word == "release":
                self.change(each, Reason="None", PriorityLong="9")
            elif word == "requeuehold":
                assert rest.startswith("Incomplete ")  # what has ended by then would run again
                restarts = int(self.lives[each].RestartCnt) + 1
                self.put(each, "PD", restarts, Reason="job requeued in held state")
                self.change(each, PriorityLong="0")

    def change(self, name: str, **row: str) -> None:
        """Change a job, and nothing else of it."""
        self.queue[name] = self.queue[name]._replace(**row)
        life = self.lives[name]
        known = {field: row[field] for field in ("Reason", "PriorityLong") if field in row}
        self.lives[name] = life._replace(**known)

    def held(self, name: str) -> bool:
        """Return whether it is held, and by whom that says."""
        return self.lives[name].PriorityLong == "0"


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> OrderedSlurm:
    """A cluster of two nodes, with no jobs."""
    return OrderedSlurm(monkeypatch)


def adapter(
    tmp_path: Path, *known: KnownJob, now: float = 200.0, running: tuple[Start, ...] = ()
) -> tuple[DecidingAdapter, list[Event]]:
    """An adapter that has resumed, and what it has reported."""
    (tmp_path / "attempts").mkdir(exist_ok=True)
    made = DecidingAdapter(tmp_path / "attempts" / "seen", OWNED)
    return made, [*made.resume(running, known, now), *made.reports(now)]


def mark(tmp_path: Path, job_id: str) -> str | None:
    """Return what the file has of a job."""
    marks: dict[str, str] = json.loads((tmp_path / "attempts" / "slurm-held").read_text())
    return marks.get(job_id)


def start(made: DecidingAdapter, now: float, attempt: int = 1, job_id: str = "7") -> None:
    made.carry_out(Start(f"slurm:{job_id}", ON_BOTH, attempt), now)
    made.reports(now)


def test_a_job_is_held_and_begins_where_and_when_it_is_to(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    slurm.put("7")
    made, events = adapter(tmp_path)
    assert told(events) == ["Submitted"]
    assert slurm.orders == ["update JobId=7 Priority=0 ReqNodeList="]
    assert mark(tmp_path, "7") == "foresail:0"
    assert [*made.reports(202.0)] == []
    assert len(slurm.orders) == 1
    start(made, 203.0)
    start(made, 203.0)
    assert slurm.orders[1:] == ["update JobId=7 ReqNodeList=n1,n2", "release 7"]
    assert [*made.reports(206.0)] == []
    slurm.put("7", "R")
    assert [*made.reports(212.0)] == [Began(212.0, "slurm:7", 1, ON_BOTH, 150.0)]
    slurm.end("7")
    (ended,) = made.reports(220.0)
    assert isinstance(ended, Ended)
    assert ended.outcome.ended_because is EndedBecause.COMPLETED
    slurm.forget("7")
    slurm.put("8")
    made.reports(230.0)
    assert (mark(tmp_path, "7"), mark(tmp_path, "8")) == (None, "foresail:0")


def test_a_job_that_was_cancelled_while_it_waited_has_gone(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    """So has one that was left to Slurm; nothing else is said while squeue shows them."""
    slurm.put("7")
    slurm.put("8", Licenses="matlab")
    made, _ = adapter(tmp_path)
    for name in "78":
        slurm.end(name, "CA", at="")
    assert [*made.reports(203.0)] == [Cancelled(203.0, "slurm:7"), Cancelled(203.0, "slurm:8")]
    assert [*made.reports(206.0)] == []


def test_what_does_not_begin_is_held_again_and_at_last_left_to_slurm(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    slurm.put("7")
    made, _ = adapter(tmp_path)
    now = 210.0
    for attempt, pause in ((1, 20.0), (2, 40.0)):
        start(made, now, attempt)
        slurm.change("7", Reason="Resources")
        assert [*made.reports(now + 10.0)] == []
        assert not slurm.held("7")
        assert [*made.reports(now + 20.0)] == []
        assert slurm.held("7")
        sentence = "Slurm has not started it (Resources)"
        refused = NotStarted(now + 30.0, "slurm:7", attempt, sentence, pause)
        assert [*made.reports(now + 30.0)] == [refused]
        assert slurm.queue["7"].ReqNodes == ""
        now += 100.0
    start(made, now, 3)
    slurm.change("7", Reason="Resources")
    events = [*made.reports(now + 20.0)]
    assert told(events) == ["NotStarted", "Held"]
    assert events[1] == Held(
        now + 20.0, "slurm:7", "the cluster: was let go, and is Slurm's to start"
    )
    assert not slurm.held("7")
    slurm.put("7", "R")
    (began,) = made.reports(now + 40.0)
    assert isinstance(began, Began)
    assert (began.attempt, began.ours) == (4, False)
    slurm.put("7", restarts=1)
    made.reports(now + 50.0)
    start(made, now + 60.0, 5)
    made.reports(now + 80.0)
    assert told([*made.reports(now + 90.0)]) == ["NotStarted"]  # counted anew


def test_nodes_that_slurm_does_not_take_are_named_once(slurm: OrderedSlurm, tmp_path: Path) -> None:
    """A job for one node (``-N 1``) that was let go to two is Slurm's to place the next time."""
    slurm.put("7")
    made, _ = adapter(tmp_path)
    start(made, 210.0)
    slurm.change("7", Reason="BadConstraints", PriorityLong="0")
    assert told([*made.reports(220.0)]) == ["NotStarted"]
    given = len(slurm.orders)
    start(made, 300.0, 2)
    assert slurm.orders[given:] == ["update JobId=7 ReqNodeList=", "release 7"]
    slurm.put("7", "R")
    slurm.lives["7"] = slurm.lives["7"]._replace(NodeList="n2")
    (began,) = made.reports(310.0)
    assert isinstance(began, Began)
    assert began.placement == Placement((("main", 2),), (("n2", 2),))
    slurm.end("7")
    made.reports(320.0)
    slurm.put("8")
    made.reports(330.0)
    start(made, 340.0, job_id="8")
    assert slurm.orders[-2:] == ["update JobId=8 ReqNodeList=n1,n2", "release 8"]


def test_a_limit_that_is_met_is_slurms(slurm: OrderedSlurm, tmp_path: Path) -> None:
    slurm.put("7")
    made, _ = adapter(tmp_path)
    start(made, 210.0)
    slurm.change("7", Reason="AssocGrpCpuLimit")
    refused, held = made.reports(230.0)
    assert isinstance(refused, NotStarted)
    assert refused.sentence == "Slurm has not started it (AssocGrpCpuLimit)"
    assert isinstance(held, Held)
    assert "AssocGrpCpuLimit" in held.by
    assert not slurm.held("7")


def test_a_job_that_is_requeued_is_held_at_once(slurm: OrderedSlurm, tmp_path: Path) -> None:
    slurm.put("7")
    made, _ = adapter(tmp_path)
    start(made, 203.0)
    slurm.put("7", "R")
    made.reports(212.0)
    slurm.put("7", restarts=1, Reason="BeginTime")
    slurm.change("7", PriorityLong="9")
    slurm.past = [ENDED | {"State": "REQUEUED", "Start": "150", "End": "170"}]
    (back,) = made.reports(222.0)
    assert isinstance(back, Ended)
    assert back.outcome.ended_because is EndedBecause.REVOKED
    assert slurm.orders[-1].endswith("Priority=0 ReqNodeList= StartTime=now")
    assert mark(tmp_path, "7") == "foresail:1"
    start(made, 230.0, attempt=2)
    whole = Start("slurm:7", Placement.whole("main", 2), 2)
    made, events = adapter(tmp_path, now=232.0, running=(whole,))
    assert events == []
    slurm.put("7", "R", restarts=1)
    (again,) = made.reports(240.0)
    assert again == Began(240.0, "slurm:7", 2, ON_BOTH, 150.0)


def test_where_a_job_was_to_run_is_known_better_than_slurm_says(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    slurm.put("7", tres_alloc="cpu=3,mem=300M,node=1")
    made, _ = adapter(tmp_path)
    uneven = Placement((("main", 3),), (("n1", 1), ("n2", 2)))
    made.carry_out(Start("slurm:7", uneven), 203.0)
    made.reports(203.0)
    slurm.put("7", "R")
    assert [*made.reports(210.0)] == [Began(210.0, "slurm:7", 1, uneven, 150.0)]


def test_what_is_to_stop_is_requeued_and_stays_held_here(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    slurm.put("7")
    made, _ = adapter(tmp_path)
    start(made, 203.0)
    made.carry_out(Preempt("slurm:7", 1), 204.0)  # before it has begun
    assert told([*made.reports(212.0)]) == ["NotStarted"]
    start(made, 230.0, attempt=2)
    slurm.put("7", "R")
    made.reports(240.0)
    made.carry_out(Preempt("slurm:7", 2), 241.0)
    (ended,) = [*made.reports(250.0), *made.reports(252.0)]
    assert isinstance(ended, Ended)
    assert ended.outcome.ended_because is EndedBecause.PREEMPTED
    assert mark(tmp_path, "7") == "foresail:1"
    assert [*made.reports(260.0)] == []
    start(made, 270.0, attempt=3)
    assert slurm.orders[-2:] == ["update JobId=7 ReqNodeList=n1,n2 StartTime=now", "release 7"]


@pytest.mark.parametrize("was_sent", [False, True])
def test_a_start_that_was_under_way_when_the_service_died(
    slurm: OrderedSlurm, tmp_path: Path, was_sent: bool
) -> None:
    slurm.put("7")
    made, _ = adapter(tmp_path)
    if was_sent:
        start(made, 203.0)
    before = [*slurm.orders]
    made, events = adapter(tmp_path, now=210.0, running=(Start("slurm:7", ON_BOTH, 1),))
    assert events == []
    assert slurm.orders[len(before) :] == (
        [] if was_sent else ["update JobId=7 ReqNodeList=n1,n2", "release 7"]
    )
    slurm.put("7", "R")
    (began,) = made.reports(220.0)
    assert began == Began(220.0, "slurm:7", 1, ON_BOTH, 150.0)


def test_what_had_begun_ended_or_gone_meanwhile(slurm: OrderedSlurm, tmp_path: Path) -> None:
    for name in "789":
        slurm.put(name)
    made, _ = adapter(tmp_path)
    for name in "789":
        start(made, 203.0, job_id=name)
    slurm.put("7", restarts=1)
    slurm.end("8")
    slurm.forget("9")
    slurm.past = [ENDED | {"JobID": "9", "Start": "205", "End": "215"}]
    running = tuple(Start(f"slurm:{name}", ON_BOTH, 1) for name in "789")
    _, events = adapter(tmp_path, now=230.0, running=running)
    ended = {each.outcome.job_id: each.outcome for each in events if isinstance(each, Ended)}
    assert {name: str(each.ended_because) for name, each in ended.items()} == {
        "slurm:7": "revoked",
        "slurm:8": "completed",
        "slurm:9": "completed",
    }
    began = {each.job_id for each in events if isinstance(each, Began) and each.ours}
    assert began == {"slurm:8", "slurm:9"}
    assert slurm.held("7")


def test_nodes_of_an_attempt_before_are_not_kept(slurm: OrderedSlurm, tmp_path: Path) -> None:
    slurm.put("7", restarts=1, Reason="BeginTime")
    made, _ = adapter(tmp_path)
    slurm.change("7", ReqNodes="n1")
    made.carry_out(Start("slurm:7", Placement.whole("main", 2)), 203.0)
    made.reports(203.0)
    assert slurm.queue["7"].ReqNodes == ""


def test_what_others_hold_let_go_or_own_is_left_to_slurm(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    slurm.put("6", Reason="JobHeldAdmin", PriorityLong="0")
    slurm.put("7", Partition="spec")
    slurm.put("8", Licenses="matlab")
    slurm.put("9")
    slurm.nodes += [each._replace(PartitionName="spec") for each in slurm.nodes]
    made, _ = adapter(tmp_path)
    assert [each for each in "6789" if slurm.held(each)] == ["6", "9"]
    slurm.change("9", Reason="None", PriorityLong="9")  # an operator lets it go
    (held,) = made.reports(210.0)
    assert held == Held(210.0, "slurm:9", "the cluster: was let go, and is Slurm's to start")
    slurm.change("8", Licenses="(null)")
    assert Released(220.0, "slurm:8") in made.reports(220.0)
    assert slurm.held("8")
    slurm.change("8", Licenses="matlab")
    made.reports(230.0)
    assert not slurm.held("8")
    assert not any(re.search(r"\b[67]\b", each) for each in slurm.orders)


def test_a_plug_in_of_slurm_may_hold_first(slurm: OrderedSlurm, tmp_path: Path) -> None:
    slurm.put("7", Reason="JobHeldUser", PriorityLong="0")
    slurm.lives["7"] = slurm.lives["7"]._replace(admin_comment="foresail")
    adapter(tmp_path)
    assert slurm.queue["7"].Reason == "JobHeldAdmin"


def test_arrays_are_held_by_one_order_while_whole(slurm: OrderedSlurm, tmp_path: Path) -> None:
    for task in range(1, 5):
        slurm.put(f"7_{task}")
    made, _ = adapter(tmp_path)
    assert [each.split()[1] for each in slurm.orders] == ["JobId=7"]
    start(made, 203.0, job_id="7_2")
    slurm.put("7_2", "R")
    slurm.put("7_3", restarts=1, Reason="BeginTime", PriorityLong="9")
    made.reports(210.0)
    assert slurm.orders[-1].startswith("update JobId=7_3 Priority=0")
    assert orders.release_all(tmp_path) == ["7_1", "7_3", "7_4"]
    assert (mark(tmp_path, "7"), mark(tmp_path, "7_1")) == ("foresail:0", "")


def test_wishes_of_people_reach_slurm(
    slurm: OrderedSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.put("7")
    made, (came,) = adapter(tmp_path)
    assert isinstance(came, Submitted)
    made.reports(202.0)
    made.carry_out(Held(203.0, "slurm:7"), 203.0)
    assert mark(tmp_path, "7") == "foresail:kept"
    assert orders.release_all(tmp_path) == []
    _, events = adapter(tmp_path, KnownJob(came.job, 0, runs=False), now=210.0)
    assert told(events) == ["Released"]
    assert mark(tmp_path, "7") == "foresail:0"
    said: list[list[str]] = []
    monkeypatch.setattr(orders, "output", said.append)
    made.carry_out(Cancelled(220.0, "slurm:7"), 220.0)
    assert said == [["scancel", "7"]]


def test_many_holds_are_ordered_once_and_starts_go_first(
    slurm: OrderedSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "_AT_ONCE", 2)
    slurm.put("1")
    made, _ = adapter(tmp_path)
    for name in range(2, 9):
        slurm.put(str(name))
    made.reports(202.0)
    made.carry_out(Start("slurm:1", ON_BOTH), 202.1)
    for now in (202.1, 202.2, 204.0, 204.1, 206.0, 206.1):
        made.reports(now)
    held = [each.split()[1] for each in slurm.orders if "Priority=0" in each]
    assert held == [f"JobId={name}" for name in range(1, 9)]
    assert slurm.orders.index("release 1") <= 5


def test_orders_that_are_not_taken_are_kept(slurm: OrderedSlurm, tmp_path: Path) -> None:
    slurm.put("7")
    slurm.deaf = True
    made = DecidingAdapter(tmp_path / "seen", OWNED)
    assert told([*made.resume((), (), 200.0)]) == ["Submitted"]
    with pytest.raises(ConnectionError, match="denied"):
        made.reports(201.0)
    made.carry_out(Start("slurm:7", ON_BOTH), 201.0)
    slurm.deaf = False
    made.reports(202.0)
    made.reports(202.1)
    assert [each.split()[0] for each in slurm.orders] == ["update", "update", "release"]
    assert not slurm.held("7")  # the hold went first
    slurm.deaf = True
    slurm.put("8")
    assert told([*made.reports(210.0)]) == ["Submitted"]
    with pytest.raises(ConnectionError, match="denied"):
        made.reports(211.0)


@pytest.mark.parametrize(
    ("said", "is_heard"),
    [
        ("Invalid job id specified for job 7", True),
        ("Access/permission denied for job 7", False),
        ("Unable to contact slurm controller (connect failure)", False),
    ],
)
def test_what_scontrol_says_of_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, is_heard: bool
) -> None:
    script = tmp_path / "scontrol"
    script.write_text(f"#!/bin/sh\n/bin/cat >{tmp_path}/given\necho '{said}' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    marks, two = orders.Marks(tmp_path), [orders.Order("release 7"), orders.Order("release 8")]
    if is_heard:
        marks.carry_out(two)
    else:
        with pytest.raises(ConnectionError, match="scontrol: "):
            marks.carry_out(two)
    assert (tmp_path / "given").read_text() == "release 7\nrelease 8\n"
    script.unlink()
    with pytest.raises(ConnectionError, match="scontrol"):
        marks.carry_out(two)


def test_all_holds_are_lifted_but_those_of_others(slurm: OrderedSlurm, tmp_path: Path) -> None:
    for name in ("7", "8", "9", "10"):
        slurm.put(name)
    slurm.change("8", Reason="JobHeldAdmin", PriorityLong="0")  # by an operator
    made, _ = adapter(tmp_path)
    made.carry_out(Held(201.0, "slurm:9"), 201.0)
    assert orders.release_all(tmp_path, is_tried=True) == ["7", "10"]
    assert slurm.held("7")
    slurm.change("7", ReqNodes="n1")  # chosen here
    slurm.put("11", ReqNodes="n2", Reason="JobHeldUser", PriorityLong="0")  # of its own choice
    slurm.lives["11"] = slurm.lives["11"]._replace(admin_comment="foresail")
    assert orders.release_all(tmp_path) == ["7", "10", "11"]
    assert [slurm.queue[name].ReqNodes for name in ("7", "11")] == ["", "n2"]
    names = ("7", "8", "9", "10", "11")
    assert [slurm.held(name) for name in names] == [False, True, True, False, False]
    _, events = adapter(tmp_path, now=220.0)  # the service is back
    assert slurm.held("7")
    assert not [each for each in events if isinstance(each, Held) and each.job_id == "slurm:7"]


def test_a_silent_service_is_noticed(
    slurm: OrderedSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "attempts").mkdir()
    slurm.put("7")
    made = DecidingAdapter(tmp_path / "attempts" / "slurm-seen", OWNED)
    made.resume((), (), 200.0)
    made.reports(200.0)
    clock = 1000.0
    sentences: list[str] = []

    def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds
        if clock < 1030.0:
            made.reports(clock)
        elif clock < 1065.0:
            assert slurm.held("7")
        elif clock > 1090.0:
            raise KeyboardInterrupt

    monkeypatch.setattr(orders.time, "sleep", sleep)
    monkeypatch.setattr(orders.time, "monotonic", lambda: clock)
    with pytest.raises(KeyboardInterrupt):
        orders.watch(tmp_path, sentences.append)
    assert not slurm.held("7")
    assert sentences == ["silent for 45 s: let go of 7"]
    with pytest.raises(InputError, match="no service"):
        orders.watch(tmp_path / "other", sentences.append)


def test_parameters_say_what_is_decided_on() -> None:
    cluster = SlurmCluster(SlurmParameters(decides="main+long", accounts="lab"))
    assert cluster.capabilities is deciding.DecidingAdapter.capabilities
    assert SlurmCluster(SlurmParameters()).capabilities.decides_itself
    with pytest.raises(InputError, match="only with decides"):
        SlurmCluster(SlurmParameters(accounts="lab"))


def test_nodes_that_slurm_would_not_take_are_not_chosen(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    """Several nodes are Slurm's to place, unless tasks are so large that each takes one."""
    asked = {"tres_alloc": "cpu=4,mem=400M,node=2", "cpus_per_task": "1", "NTPerNode": "0"}
    slurm.put("1", tres_alloc=asked["tres_alloc"])
    slurm.lives["1"] = slurm.lives["1"]._replace(**asked)
    slurm.put("2", tres_alloc="cpu=6,mem=600M,node=2")
    slurm.lives["2"] = slurm.lives["2"]._replace(
        tres_alloc="cpu=6,mem=600M,node=2", cpus_per_task="3"
    )
    slurm.put("3", tres_alloc="cpu=2,mem=200M,node=1")
    slurm.lives["3"] = slurm.lives["3"]._replace(tres_alloc="cpu=2,mem=200M,node=1", NTPerNode="2")
    made, events = adapter(tmp_path)
    held = {each.job_id: each.by for each in events if isinstance(each, Held)}
    assert held == {
        "slurm:1": "the cluster: asks for 2 nodes",
        "slurm:3": "the cluster: asks for 2 tasks on each node",
    }
    (stage,) = next(
        each.job.stages
        for each in events
        if isinstance(each, Submitted) and each.job.job_id == "slurm:2"
    )
    assert (stage.tasks, stage.request.cpus) == (2, 3.0)
    assert [slurm.held(name) for name in "123"] == [False, True, False]
    made.carry_out(Start("slurm:2", ON_BOTH, 1), 210.0)
    made.reports(211.0)
    assert "update JobId=2 ReqNodeList=n1,n2" in slurm.orders


def test_an_operators_comment_with_a_deadline_is_a_hold_of_ours(
    slurm: OrderedSlurm, tmp_path: Path
) -> None:
    slurm.put("7")
    slurm.change("7", Reason="JobHeldUser", PriorityLong="0")
    words = "foresail deadline=2026-12-01T18:00:30 worth=400"
    slurm.lives["7"] = slurm.lives["7"]._replace(admin_comment=words)
    made, events = adapter(tmp_path)
    (submitted,) = events
    assert isinstance(submitted, Submitted)
    value = submitted.job.value
    assert isinstance(value, DeadlineValue)
    assert value.value == 400.0
    start(made, 203.0)
    assert slurm.orders[-1] == "release 7"


@pytest.mark.parametrize("said", ["Access/permission denied for job 7", "7_1-3: Invalid user id"])
def test_an_account_without_the_rights_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Slurm 22.05 says either, by the order that is given; neither counts as carried out."""
    control = tmp_path / "scontrol"
    control.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    marks = orders.Marks(tmp_path)
    with pytest.raises(ConnectionError, match=re.escape(said)):
        marks.carry_out([orders.Order("release 7")])
