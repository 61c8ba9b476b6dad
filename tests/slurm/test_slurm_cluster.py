"""A Slurm cluster that is observed: what changes between looks is reported, once, in order."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.adapter import KnownJob
from foresail.model.cluster import Placement
from foresail.model.decision import Start
from foresail.model.errors import InputError
from foresail.model.event import (
    Began,
    Ended,
    EndedBecause,
    Event,
    Held,
    JobChanged,
    NodeDown,
    NodeResumed,
    Released,
    Submitted,
)
from foresail.model.job import DeadlineValue
from foresail.service.configuration import ServiceConfiguration, fitted
from foresail_slurm import look
from foresail_slurm.commands import (
    LifeRow,
    NodeRow,
    QueueRow,
    nodes_of,
)
from foresail_slurm.deciding import DecidingAdapter
from foresail_slurm.look import places, worth_of
from foresail_slurm.observing import SlurmAdapter
from test_slurm_reading import ENDED, JOB, NODE, accounting


class FakeSlurm:
    """Rows as commands would print them, to be changed between looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queue: dict[str, QueueRow] = {}
        self.lives: dict[str, LifeRow] = {}
        self.nodes: list[NodeRow] = [NODE, NODE._replace(NodeList="n2")]
        self.past: list[dict[str, str]] = []
        self.away = False
        monkeypatch.setattr(look, "read_queue", lambda: [*self.queue.values()])
        monkeypatch.setattr(look, "read_lives", lambda: [*self.lives.values()])
        monkeypatch.setattr(look, "read_nodes", self._nodes)
        monkeypatch.setattr(look, "read_accounting", lambda since: accounting(*self.past))
        for each in (SlurmAdapter, DecidingAdapter):  # looks go by no speed of the machine
            monkeypatch.setattr(each, "_share", 0.0)

    def _nodes(self) -> list[NodeRow]:
        if self.away:
            raise InputError("Unable to contact slurm controller", source="sinfo")
        return self.nodes

    def put(self, name: str, state: str = "PD", restarts: int = 0, **row: str) -> None:
        """Let a job wait, or run on both nodes since 150."""
        start = "N/A" if state == "PD" else "150"
        before = self.queue.get(name, JOB._replace(JobArrayID=name))
        self.queue[name] = before._replace(StateCompact=state, StartTime=start, **row)
        at = "" if state == "PD" else "n[1-2]"
        mark, now = self.lives[name].admin_comment if name in self.lives else "", self.queue[name]
        stands = now.Reason, now.PriorityLong, mark
        self.lives[name] = LifeRow(name, state, start, "N/A", str(restarts), at, *stands)

    def end(self, name: str, state: str = "CD", end: str = "180", at: str = "n[1-2]") -> None:
        """Let a job be over."""
        self.queue.pop(name, None)
        start = "150" if at else end
        self.lives[name] = LifeRow(name, state, start, end, "0", at, "None", "1", "(null)")

    def forget(self, name: str) -> None:
        """Show it no more."""
        self.queue.pop(name, None)
        self.lives.pop(name, None)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """A cluster of two nodes, with no jobs."""
    return FakeSlurm(monkeypatch)


def adapter(
    tmp_path: Path, *known: KnownJob, now: float = 200.0
) -> tuple[SlurmAdapter, list[Event]]:
    """An adapter that has resumed, and what it has reported."""
    made = SlurmAdapter(tmp_path / "seen")
    return made, [*made.resume((), known, now)]


def told(events: list[Event]) -> list[str]:
    return [type(each).__name__ for each in events]


def test_features_of_nodes_are_their_attributes(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.nodes = [NODE._replace(Features="(null)"), NODE._replace(NodeList="n2", Features="a,b")]
    made, _ = adapter(tmp_path)
    (partition,) = made.cluster.partitions
    assert [dict(each.attributes) for each in partition.nodes] == [{}, {"a": "yes", "b": "yes"}]


def test_nothing_ends_later_than_it_is_seen_to(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Slurm rounds to whole seconds; 24.11 does so upwards."""
    slurm.put("7")
    made, _ = adapter(tmp_path)
    slurm.put("7", "R")
    made.reports(203.0)
    slurm.end("7", end="206")
    (ended,) = made.reports(205.5)
    assert isinstance(ended, Ended)
    assert (ended.outcome.start_seconds, ended.outcome.end_seconds) == (150.0, 205.5)


def test_the_life_of_a_job(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.put("7")
    made, events = adapter(tmp_path)
    assert told(events) == ["Submitted"]
    assert isinstance(events[0], Submitted)
    job = events[0].job
    assert (job.job_id, job.user, job.cpus, job.requested_seconds) == ("slurm:7", "ann", 2.0, 120.0)
    slurm.put("7", TimeLimit="5:00")
    (changed,) = made.reports(201.0)
    assert isinstance(changed, JobChanged)
    assert changed.job.requested_seconds == 300.0
    assert made.reports(201.5) == ()
    slurm.put("7", "R")
    (began,) = made.reports(203.0)
    placement = Placement((("main", 2),), (("n1", 1), ("n2", 1)))
    assert began == Began(203.0, "slurm:7", 1, placement, 150.0, ours=False)
    slurm.put("7", restarts=1)
    slurm.past = [ENDED | {"State": "REQUEUED", "Start": "150", "End": "170"}]
    (back,) = made.reports(205.0)
    assert isinstance(back, Ended)
    assert (back.outcome.ended_because, back.outcome.end_seconds) == (EndedBecause.REVOKED, 170.0)
    slurm.put("7", "R", restarts=1)
    (again,) = made.reports(207.0)
    assert isinstance(again, Began)
    assert again.attempt == 2
    slurm.end("7", "TO", "190")
    (ended,) = made.reports(209.0)
    assert isinstance(ended, Ended)
    outcome = ended.outcome
    assert (outcome.attempt, outcome.ended_because, outcome.end_seconds) == (2, "limit", 190.0)
    assert [*made.reports(211.0)] == []
    slurm.forget("7")
    assert [*made.reports(213.0)] == []


def test_jobs_that_come_and_go_between_looks(slurm: FakeSlurm, tmp_path: Path) -> None:
    made, _ = adapter(tmp_path)
    made.reports(201.0)
    slurm.end("7", "F", "201")
    slurm.past = [ENDED | {"Start": "150", "End": "201", "State": "FAILED"}]
    events = [*made.reports(203.0)]
    assert told(events) == ["Submitted", "Began", "Ended"]
    slurm.put("8")
    made.reports(205.0)
    slurm.end("8", "CA", "205", at="")
    assert told([*made.reports(207.0)]) == ["Cancelled"]
    slurm.put("9", "R")
    made.reports(209.0)
    slurm.forget("9")
    (ended,) = made.reports(211.0)
    assert isinstance(ended, Ended)
    assert "not known" in ended.outcome.reason


def test_slow_looks_are_seldom(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one of 0.3 s there is none for 3 s, though some wait; then there is."""
    made, _ = adapter(tmp_path)
    monkeypatch.setattr(SlurmAdapter, "_share", 10.0)
    monkeypatch.setattr(look, "read_queue", lambda: time.sleep(0.3) or [*slurm.queue.values()])
    made.reports(201.0)
    slurm.put("7")
    assert made.reports(203.9) == ()
    assert told([*made.reports(301.0)]) == ["Submitted"]


def test_a_job_that_comes_during_a_look_is_seen_in_the_next(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    made, _ = adapter(tmp_path)
    slurm.put("7")
    row = slurm.queue.pop("7")
    assert [*made.reports(201.0)] == []
    slurm.queue["7"] = row
    assert told([*made.reports(203.0)]) == ["Submitted"]


def test_what_happened_while_nobody_looked(slurm: FakeSlurm, tmp_path: Path) -> None:
    for name in "789":
        slurm.put(name, "R" if name == "8" else "PD")
    made, events = adapter(tmp_path)
    jobs = {each.job.job_id: each.job for each in events if isinstance(each, Submitted)}
    made.reports(201.0)
    made.reports(203.0)  # so far all was reported
    known = [KnownJob(job, int(name == "slurm:8"), name == "slurm:8") for name, job in jobs.items()]
    for name in "79":
        slurm.forget(name)
    slurm.past = [
        ENDED | {"JobID": "7", "Start": "202", "End": "210"},
        ENDED | {"JobID": "10", "Start": "205", "End": "215"},
        ENDED | {"JobID": "6", "Start": "100", "End": "190"},
    ]
    _, events = adapter(tmp_path, *known, now=250.0)
    heard = [
        (type(each).__name__, getattr(each, "job_id", "") or getattr(each, "outcome", each).job_id)
        for each in events
        if not isinstance(each, Submitted)
    ]
    assert sorted(heard, key=lambda each: each[1]) == [
        *(("Began", "slurm:10"), ("Ended", "slurm:10"), ("Began", "slurm:7"), ("Ended", "slurm:7")),
        *(("Began", "slurm:8"), ("Cancelled", "slurm:9")),
    ]
    assert [each.job.job_id for each in events if isinstance(each, Submitted)] == ["slurm:10"]


def test_a_requeue_that_nobody_saw(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.put("7", "R", restarts=1)
    _, (came, _) = adapter(tmp_path)
    assert isinstance(came, Submitted)
    _, events = adapter(tmp_path, KnownJob(came.job, 1, runs=True))
    assert told(events) == ["Ended", "Began"]


def test_what_is_left_to_slurm_is_held_until_it_is_not(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.put("7", Reason="JobHeldUser")
    made, events = adapter(tmp_path)
    held = Held(200.0, "slurm:7", "the cluster: is kept back (JobHeldUser)")
    assert events[1:] == [held]
    slurm.put("7", Reason="Priority")
    assert [each for each in made.reports(202.0) if not isinstance(each, JobChanged)] == [
        Released(202.0, "slurm:7")
    ]


def test_nodes_that_come_are_drained_and_down(slurm: FakeSlurm, tmp_path: Path) -> None:
    made, _ = adapter(tmp_path)
    drained = NODE._replace(StateComplete="idle+drain")
    slurm.nodes = [drained, *slurm.nodes[1:], NODE._replace(NodeList="n3")]
    assert told([*made.reports(202.0)]) == ["NodeAdded", "NodeDrained"]
    slurm.nodes[0] = NODE._replace(StateComplete="down*")
    assert [*made.reports(204.0)] == [NodeResumed(204.0, "n1"), NodeDown(204.0, "n1")]
    assert adapter(tmp_path, now=206.0)[1] == [NodeDown(206.0, "n1")]
    slurm.nodes[0] = drained
    assert told([*made.reports(208.0)]) == ["NodeUp", "NodeDrained"]


def test_away_is_no_fault_of_the_input(slurm: FakeSlurm, tmp_path: Path) -> None:
    made, _ = adapter(tmp_path)
    slurm.away = True
    with pytest.raises(ConnectionError, match="contact slurm controller"):
        made.reports(202.0)
    slurm.away = False
    slurm.put("7")
    assert told([*made.reports(203.0)]) == ["Submitted"]


def test_nothing_is_started_and_no_policy_that_would() -> None:
    with pytest.raises(InputError, match="left to the cluster"):
        SlurmAdapter.capabilities.require(Start("7", Placement.whole("main", 1)))
    observing = fitted(ServiceConfiguration(cluster="slurm"), decides_itself=True)
    assert observing.policy == "external,similar"
    assert fitted(observing, decides_itself=True) is observing
    for policy, decides_itself in (("easy", True), ("external", False)):
        with pytest.raises(InputError, match="does not fit"):
            fitted(ServiceConfiguration(policy=policy), decides_itself=decides_itself)


@given(
    st.lists(st.integers(0, 30), unique=True, max_size=12),
    st.dictionaries(st.integers(0, 30), st.integers(-3, 40).map(float), max_size=12),
)
def test_places_ascend_and_few_change(order: list[int], before: dict[int, float]) -> None:
    names = [str(each) for each in order]
    known = {str(each): before.get(each) for each in order}
    found = places(names, known)
    assert [*sorted(found, key=found.__getitem__)] == names
    assert len({*found.values()}) == len(names)
    values = [place for each in names if (place := known[each]) is not None]
    longest = [1] * len(values)
    for at, value in enumerate(values):
        longest[at] = 1 + max((longest[k] for k in range(at) if values[k] < value), default=0)
    kept = sum(found[each] == known[each] for each in names)
    assert kept >= max(longest, default=0)


def test_an_order_that_leaves_no_place_between_is_given_anew() -> None:
    found = places(["a", "new", "b"], {"a": 1.0, "b": 1.0 + 1e-9})
    assert found == {"a": 0.0, "new": 1.0, "b": 2.0}


def test_lists_of_nodes() -> None:
    assert nodes_of("n[1-3,07],gpu") == ["n1", "n2", "n3", "n07", "gpu"]
    assert nodes_of("r[1-2]n[08-09]") == ["r1n08", "r1n09", "r2n08", "r2n09"]
    assert nodes_of("") == nodes_of("(null)") == []


WORTH = LifeRow("7", "PD", "N/A", "N/A", "0", "", "None", "1", "(null)")


def test_deadlines_and_worths_by_comment() -> None:
    """An operator's counts before a user's, whose worth is capped; others say nothing."""
    words = "foresail deadline=2026-12-01T18:00:00+01:00"
    assert worth_of(WORTH) is worth_of(WORTH._replace(comment="deadline=1, of foresail")) is None
    assert worth_of(WORTH._replace(comment=words)) == DeadlineValue(1_796_144_400.0, 1.0)
    user = WORTH._replace(comment=f"{words} worth=99.5 ")
    assert worth_of(user) == DeadlineValue(1_796_144_400.0, 10.0)
    both = user._replace(admin_comment=f"{words} worth=99.5")
    assert worth_of(both) == DeadlineValue(1_796_144_400.0, 99.5)


@pytest.mark.parametrize(
    "text",
    [
        *("deadline=", "deadline=soon", "deadline=2026-13-01T00:00", "worth=3", "", "x" * 100_000),
        *("deadline=2026-12-01 worth=-1", "deadline=2026-12-01 worth=nan", "deadline=0001-01-01"),
        *("deadline=2026-12-01 worth=1e9", "deadline=2026-12-01T18:00\nworth=3", "\0\n|"),
        "deadline=2026-12-01 worth=3 worth=4",
        "deadline=2026-12-01 worth=" + "9" * 400,
    ],
)
def test_a_comment_that_is_not_understood_is_said(
    slurm: FakeSlurm, tmp_path: Path, text: str
) -> None:
    """The job is as any other, and nothing long or unprintable is said."""
    slurm.put("7")
    slurm.lives["7"] = slurm.lives["7"]._replace(comment=f"foresail {text}")
    made, said = SlurmAdapter(tmp_path / "seen"), list[str]()
    made.note = said.append
    (submitted,) = made.resume((), (), 200.0)
    assert isinstance(submitted, Submitted)
    assert submitted.job.value is None
    assert said[0].startswith("the worth of slurm:7 does not count: ")
    assert said[0].isprintable()
    assert len(said[0]) < 500
    assert made.reports(202.0) == []
    assert len(said) == 1


def test_a_deadline_may_be_changed_until_it_runs(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.put("7")
    made, _ = adapter(tmp_path)
    words = "foresail deadline=1970-01-01T01:00:00Z"
    slurm.lives["7"] = slurm.lives["7"]._replace(comment=words)
    (changed,) = made.reports(203.0)
    assert isinstance(changed, JobChanged)
    assert changed.job.value == DeadlineValue(3_600.0, 1.0)
    slurm.put("7", "R")
    assert told([*made.reports(209.0)]) == ["Began"]
    assert made.reports(215.0) == []


def test_whole_nodes_are_tasks_where_all_are_alike(slurm: FakeSlurm, tmp_path: Path) -> None:
    for name, asked in (("7", "cpu=5,mem=500M,node=1"), ("8", "cpu=1,mem=500M,node=2")):
        slurm.put(name, tres_alloc=asked, OverSubscribe="NO")
        slurm.lives[name] = slurm.lives[name]._replace(tres_alloc=asked)
    _, events = adapter(tmp_path)
    assert told(events) == ["Submitted", "Submitted"]
    for each in events:
        assert isinstance(each, Submitted)
        assert (each.job.tasks, each.job.cpus) == (2, 8.0)
    slurm.nodes[1] = slurm.nodes[1]._replace(CPUsState="0/8/0/8")
    _, events = adapter(tmp_path)
    assert {each.by for each in events if isinstance(each, Held)} == {
        "the cluster: takes whole nodes"
    }
