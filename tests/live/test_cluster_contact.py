"""Clusters whose control plane goes away, and that report what cannot be: the daemon goes on."""

import math
import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.control.loop import Controller
from foresail.live.cluster_contact import ClusterContact, what_can_be
from foresail.live.daemon import Daemon
from foresail.live.run_directory import RunHistory
from foresail.live.run_log import recover
from foresail.live.source import DaemonCommand
from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Decision, Placement, Start
from foresail.model.errors import InputError
from foresail.model.event import (
    Began,
    Cancelled,
    ClusterAvailable,
    ClusterUnavailable,
    Ended,
    EndedBecause,
    Held,
    HistoryOutcome,
    JobChanged,
    NodeAdded,
    NodeChanged,
    NodeDown,
    NodeDrained,
    NodeRemoved,
    NodeResumed,
    NodeUp,
    NotStarted,
    Occupied,
    Outcome,
    Released,
    Submitted,
)
from foresail.model.job import Job
from foresail.model.registry import load_plugin
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.record.run_fold import folded
from standins import RecordingObserver, SmallPolicy
from toys import Constant, Doubling, Scripted

CLUSTER = Cluster.of_processors(1)
ONE = Resources(1.0)
ALL = Placement.whole("all", 1)


class Moody:
    """A cluster that is away at times; it ends a job a moment after that has begun."""

    capabilities = Capabilities()
    cluster = CLUSTER
    wake_descriptor = None

    def __init__(self, away=(), also=()):
        self.away = list(away)
        self.begun = []
        self.running = []
        self.also = list(also)

    @property
    def next_seconds(self):
        return 0.0 if self.running or self.also else math.inf

    def _is_there(self):
        if self.away and self.away.pop(0):
            raise ConnectionError("slurmctld\nis away")

    def history(self):
        return ()

    def resume(self, running, known, now):
        self._is_there()
        self.known = known
        for start in running:
            self.carry_out(start, now)
        return []

    def carry_out(self, start, now):
        self._is_there()
        if start not in self.begun:
            self.begun.append(start)
            self.running.append((start, now))

    def reports(self, now):
        self._is_there()
        also, self.also = self.also, []
        over, self.running = self.running, []
        ends = [Outcome(each.job_id, at, now, attempt=each.attempt) for each, at in over]
        return [*also, *(Ended(now, outcome) for outcome in ends)]

    def close(self):
        pass


class Once:
    """A source of some jobs at once; it leaves when all have ended."""

    def __init__(self, *jobs, leave_after=math.inf):
        self.jobs = jobs
        self.descriptor = None
        self.leave_after = leave_after

    def earlier(self, known, now):
        return [Submitted(now, job) for job in self.jobs if job.job_id not in known]

    def command(self, interrupts):
        self.leave_after -= 1
        return DaemonCommand.LEAVE if self.leave_after < 0 else DaemonCommand.GO_ON

    def close(self):
        pass


def daemon(tmp_path, cluster, source, shown, *most_mistakes):
    def build(log):
        return Controller(CLUSTER, *SmallPolicy().build(), log=log)

    controller, log = recover(tmp_path / "events.jsonl", Manifest("small", CLUSTER), build)
    contact = ClusterContact(cluster, *most_mistakes)
    return Daemon(controller, log, contact, source, RunHistory(None, shown.note), None, shown)


def job(job_id):
    return Job.gang(job_id, 0.0, 1)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("foresail.live.cluster_contact._FIRST_PAUSE_SECONDS", 0.02)


@pytest.mark.parametrize(
    "away", [[True, True], [False, True, True], [False, False, False, True, True]]
)
def test_a_cluster_that_is_away_is_waited_for_and_nothing_is_lost(tmp_path, away):
    """At the first call, at a start, between a start and its end: each job runs once."""
    cluster, shown = Moody(away), RecordingObserver()
    worked = daemon(tmp_path, cluster, Once(job("a"), job("b")), shown)
    worked.work()
    assert [each.job_id for each in cluster.begun] == ["a", "b"]
    assert [each.job_id for each in shown.ends] == ["a", "b"]
    assert shown.sentences == [
        "the cluster cannot be reached (ConnectionError: slurmctld is away): nothing is started "
        "until it is back",
        "the cluster is back",
    ]
    assert worked.controller.state.unavailable == ""


def test_nothing_is_started_while_it_is_away_and_a_job_says_so(tmp_path):
    """Nor by the next daemon, until that has heard of the cluster."""
    shown = RecordingObserver()
    first = daemon(tmp_path, Moody([True] * 99), Once(job("a"), leave_after=3), shown)
    first.work()
    controller = first.controller
    assert not controller.running
    said = "nothing is started: the cluster cannot be reached (ConnectionError: slurmctld is away)"
    assert [each.sentence for each in controller.reasons().values()] == [said]
    cluster = Moody()
    second = daemon(tmp_path, cluster, Once(job("a")), shown)
    assert second.controller.state.unavailable
    second.work()
    assert [each.job_id for each in cluster.begun] == ["a"]


def mistaken(tmp_path, method="reports", mistake="return len(1.5)"):
    """A user's cluster of which a method fails, and its file."""
    file = tmp_path / f"wrong_{tmp_path.name}.py"
    head = f"class Wrong:\n    def {method}(self, *known):\n"
    file.write_text(
        f"{head}        self.calls = getattr(self, 'calls', 0) + 1\n        {mistake}\n"
    )
    load_plugin(file)
    wrong = sys.modules[f"foresail_plugin_{file.stem}"].Wrong
    return type("Mistaken", (wrong, Moody), {})(), file


def test_a_mistake_of_an_adapter_is_said_with_its_line(tmp_path):
    """Nothing runs then either; whoever wrote it finds the place."""
    shown = RecordingObserver()
    cluster, file = mistaken(tmp_path)
    daemon(tmp_path, cluster, Once(job("a"), leave_after=3), shown).work()
    said = f"(TypeError: object of type 'float' has no len() ({file.name}, line 4))"
    assert said in shown.sentences[0]


@pytest.mark.parametrize("method", ["reports", "carry_out"])
def test_a_mistake_that_repeats_ends_what_does_not_wait_for_ever(tmp_path, monkeypatch, method):
    """It does at the last of so many calls that fail at one line: others have succeeded, or not."""
    monkeypatch.setattr("foresail.live.cluster_contact._FIRST_PAUSE_SECONDS", 0.01)
    cluster, file = mistaken(tmp_path, method)
    with pytest.raises(InputError, match="TypeError: object of type 'float' has no len") as raised:
        daemon(tmp_path, cluster, Once(job("a"), leave_after=30), RecordingObserver(), 3).work()
    assert str(raised.value).startswith(f"{file}, line 4: the plug-in fails: TypeError: ")
    assert cluster.calls == 3


@pytest.mark.parametrize(
    "mistake",
    [
        "raise ConnectionError('away')",
        "raise RuntimeError('not yet')",
        "return {}['not yet']",
        "return len(1.5) if self.calls % 2 else exec('None.gone')",
        "return [] if self.calls % 3 == 0 else len(1.5)",
    ],
)
def test_what_may_pass_is_waited_for(tmp_path, mistake):
    """An outage, whatever error it is; and mistakes that are not the same, or not in a row."""
    cluster, _ = mistaken(tmp_path, mistake=mistake)
    contact = ClusterContact(cluster, 3)
    for second in range(0, 1000, 50):
        contact.reports(float(second))
    assert cluster.calls == 20


class WithQueue(Moody):
    """A cluster in whose queue jobs wait: it notes what it hears of them."""

    capabilities = Capabilities(keeps_queue=True)

    def __init__(self):
        super().__init__()
        self.heard = []

    def carry_out(self, each, now):
        if isinstance(each, Start):
            super().carry_out(each, now)
        else:
            self.heard.append((type(each).__name__, each.job_id))


class Wishing(Once):
    """Its jobs, and behind them what is wished of them."""

    def __init__(self, wishes, *jobs):
        super().__init__(*jobs)
        self.wishes = [wish(0.0, job_id) for wish, job_id in wishes]

    def earlier(self, known, now):
        wished, self.wishes = self.wishes, []
        return [*super().earlier(known, now), *(replace(each, time=now) for each in wished)]


def test_a_cluster_that_keeps_a_queue_hears_what_is_wished_and_who_leaves(tmp_path):
    """The next driver repeats what holds."""
    wishes = [(Held, "a"), (Cancelled, "b"), (Held, "d"), (Released, "d")]
    after_b = replace(job("c"), after=("b",))
    cluster = WithQueue()
    source = Wishing(wishes, job("a"), job("b"), after_b, job("d"))
    daemon(tmp_path, cluster, source, RecordingObserver()).work()
    assert [each.job_id for each in cluster.begun] == ["d"]
    said = [("Withdraw", "c"), *((wish.__name__, job_id) for wish, job_id in wishes)]
    assert cluster.heard == said
    later = WithQueue()
    daemon(tmp_path, later, Once(), RecordingObserver()).work()
    assert later.heard == [("Withdraw", "b"), ("Withdraw", "c")]
    assert [(each.job.job_id, each.held) for each in later.known] == [("a", True)]


def test_what_cannot_have_happened_is_left_out_and_said(tmp_path):
    """Ends and beginnings of unknown jobs, unknown nodes, places, attempts: a name ends nothing."""
    wrong = [
        Ended(1.0, Outcome("no\nsuch", 0.0, 1.0)),
        Began(1.0, "other", 1, ALL, 1.0, ours=False),
        NotStarted(1.0, "a", 7, "no", 1.0),
        NodeDown(1.0, "no-node"),
    ]
    cluster, shown = Moody(also=wrong), RecordingObserver()
    daemon(tmp_path, cluster, Once(job("a")), shown).work()
    assert [each.job_id for each in shown.ends] == ["a"]
    assert len(shown.sentences) == 4
    assert all("which is left out" in each for each in shown.sentences)


def test_what_is_kept_is_handed_over_once_and_a_refusal_is_no_absence():
    """Instructions come in their order; what capabilities lack is an error at once."""
    cluster = Moody([True, False])
    contact = ClusterContact(cluster)
    starts = [Start(each, ALL) for each in "ab"]
    for start in starts:
        contact.carry_out(start, 0.0)
    assert [type(each) for each in contact.reports(0.0)] == [ClusterUnavailable]
    assert contact.next_seconds == 0.02
    assert [type(each) for each in contact.reports(0.02)] == [ClusterAvailable]
    assert cluster.begun == starts
    cluster.carry_out = lambda instruction, now: cluster.capabilities.require(instruction)
    with pytest.raises(InputError, match="starts jobs"):
        contact.carry_out(Start("a", ALL, stage="map"), 1.0)
    assert not contact.is_away


class Slow(Moody):
    """A remote cluster; it answers a look, and begins a job, only once it is let."""

    capabilities = Capabilities(is_remote=True)

    def __init__(self, *also):
        super().__init__(also=also)
        self.may_look, self.may_begin = threading.Event(), threading.Event()

    def reports(self, now):
        self.may_look.wait(30.0)
        return super().reports(now)

    def carry_out(self, start, now):
        self.may_begin.wait(30.0)
        super().carry_out(start, now)


def test_a_call_that_is_late_holds_nobody_up_and_is_made_once(monkeypatch):
    """It counts as away meanwhile; what a late look has found is reported once, starts are kept."""
    monkeypatch.setattr("foresail.live.cluster_contact._PATIENCE_SECONDS", 0.01)
    found = NodeDown(0.0, "x")
    cluster = Slow(found)
    contact = ClusterContact(cluster)
    (away,) = contact.reports(0.0)
    assert away == ClusterUnavailable(0.0, "TimeoutError: it has not answered for 0.01 s")
    assert [*contact.reports(1.0)] == []
    cluster.may_look.set()
    wait_for(contact)
    assert [*contact.reports(2.0)] == [ClusterAvailable(2.0), found]
    for job_id in "ab":
        contact.carry_out(Start(job_id, ALL), 3.0)
    (away,) = contact.reports(3.0)
    assert contact.is_away
    cluster.may_begin.set()
    wait_for(contact)
    events = [*contact.reports(9.0), *contact.reports(10.0)]
    assert events[0] == ClusterAvailable(9.0)
    assert [each.job_id for each in cluster.begun] == ["a", "b"]
    assert [each.outcome.job_id for each in events[1:]] == ["a", "b"]
    cluster.reports = failing
    (away,) = contact.reports(11.0)
    assert away == ClusterUnavailable(11.0, "OSError: no")


def failing(now):
    raise OSError("no")


def wait_for(contact):
    contact._calls.late.exception(30.0)


def test_a_driver_hears_what_is_known_of_jobs(tmp_path):
    """Who waits, with attempts that were taken back; who runs by no start of ours; not our own."""
    names = "one", "two", "over"
    new = [replace(job(f"c:{name}"), submit_seconds=9e9) for name in names]
    back = Outcome("c:one", 1.0, 2.0, EndedBecause.REVOKED)
    also = [
        *(Submitted(1.0, each) for each in new),
        *(Began(1.0, "c:over", 1, ALL, 1.0, ours=False), Ended(1.0, Outcome("c:over", 1.0, 2.0))),
        *(Began(1.0, "c:one", 1, ALL, 1.0, ours=False), Ended(1.0, back)),
        Began(1.0, "c:two", 3, ALL, 1.0, ours=False),
        Submitted(1.0, job("plain")),
    ]
    shown, first = RecordingObserver(), Moody()
    first.resume = lambda running, known, now: also
    daemon(tmp_path, first, Once(leave_after=1), shown).work()
    assert [each.count("which is left out") for each in shown.sentences] == [1]
    later = Moody()
    daemon(tmp_path, later, Once(leave_after=1), shown).work()
    assert [(each.job.job_id, each.attempts, each.runs) for each in later.known] == [
        ("c:two", 3, True),
        ("c:one", 1, False),
    ]
    assert later.known[1].job.submit_seconds == 1.0


@pytest.mark.parametrize("away", [[], [True]])
def test_what_runs_on_a_node_that_came_meanwhile_is_taken(tmp_path, away):
    """Nodes that came while nothing drove the cluster are there before what began on them."""
    shown = RecordingObserver()
    daemon(tmp_path, Moody(), Once(leave_after=1), shown).work()
    later = Moody(away)
    later.cluster = Cluster((*CLUSTER.partitions, Partition("b", ONE, (Node("new", ONE),))))
    place = Placement((("b", 1),), (("new", 1),))

    def resume(running, known, now):
        later._is_there()
        new = replace(job("c:one"), submit_seconds=now)
        return [Submitted(now, new), Began(now, "c:one", 1, place, now, ours=False)]

    later.resume = resume
    worked = daemon(tmp_path, later, Once(leave_after=20), shown)
    worked.work()
    assert not [each for each in shown.sentences if "which is left out" in each]
    assert worked.controller.running["c:one"].placement == place


def test_drains_of_the_cluster_are_its_own_and_are_looked_at_anew(tmp_path):
    """What it drains it alone resumes, if need be by the next time; a person's drain stays."""

    def drained_after(resumed, wished=()):
        cluster, source = Moody(), Once(leave_after=1)
        cluster.resume = lambda running, known, now: [replace(e, time=now) for e in resumed]
        source.earlier = lambda known, now: [replace(each, time=now) for each in wished]
        worked = daemon(tmp_path, cluster, source, RecordingObserver())
        worked.work()
        return {name: each.by for name, each in worked.controller.state.drained.items()}

    drained, resumed = NodeDrained(0.0, "all", by="root"), NodeResumed(0.0, "all")
    assert drained_after([drained]) == {"all": "the cluster"}
    assert drained_after([drained]) == {"all": "the cluster"}
    assert drained_after([]) == {}
    assert drained_after([drained, resumed]) == {}
    assert drained_after([], [drained]) == {"all": "root"}
    assert drained_after([resumed]) == {"all": "root"}
    assert drained_after([]) == {"all": "root"}


def test_predictors_tell_jobs_of_a_cluster_apart_by_user_and_name():
    """As those of the service, also in what it knows of earlier runs; names become printable."""
    train = replace(job("c:1"), user="ann", name="tr\nain")
    cluster = Moody()
    cluster.history = lambda: [HistoryOutcome(2.0, train, Outcome("c:1", 0.0, 2.0))]
    (known,) = ClusterContact(cluster).history()
    _, (came,) = after([Submitted(1.0, train)])
    assert known.job.user == came.job.user == "ann/tr?ain"
    assert after([Submitted(1.0, replace(train, user="a/b"))])[1][0].job.user == "a/b"


NODES = Cluster((Partition("all", Resources(2.0), tuple(Node(n, Resources(1.0)) for n in "xy")),))
OTHER = Placement((("all", 1),), (("z", 1),))
OF_JOBS = [
    each
    for job_id in ("w", "r", "c:n", "?")
    for attempt in (1, 2)
    for each in (
        Ended(1.0, Outcome(job_id, 0.0, 1.0, attempt=attempt)),
        Ended(1.0, Outcome(job_id, 0.0, 1.0, EndedBecause.LOST, attempt=attempt)),
        NotStarted(1.0, job_id, attempt, "no", 1.0),
        Began(1.0, job_id, attempt, ALL, 1.0, ours=False),
        Began(1.0, job_id, attempt, Placement.whole("none", 1), 1.0, ours=False),
        Began(1.0, job_id, attempt, OTHER, 1.0, ours=False),
        Cancelled(1.0, job_id),
        JobChanged(1.0, replace(job(job_id), requested_seconds=5.0)),
    )
]
OF_NODES = [
    each
    for node in (Node("x", Resources(1.0)), Node("z", Resources(1.0)))
    for each in (
        NodeAdded(1.0, node, "all"),
        NodeChanged(1.0, node),
        NodeRemoved(1.0, node.name),
        NodeDown(1.0, node.name),
        NodeUp(1.0, node.name),
        Occupied(1.0, node.name, Resources(0.5)),
    )
]
NEW = [Submitted(1.0, job(job_id)) for job_id in ("w", "c:n")]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*OF_JOBS, *OF_NODES, *NEW]), max_size=6))
def test_what_is_let_through_can_be(events):
    """Whatever is reported, of jobs that wait, run and are unknown: no step is impossible."""
    controller, _ = after(events)
    known = folded(controller._log._log.records).state
    assert known.running == controller.running
    assert known.wakes == controller.state.wakes
    assert known.ended == controller.state.ended


def after(events):
    log = MemoryLog(Manifest("scripted", NODES))
    controller = Controller(NODES, Scripted(Decision()), Constant(10.0), Doubling(), log=log)
    controller.step(0.0, [Submitted(0.0, job("w")), Submitted(0.0, job("r"))])
    controller.step(0.0, [Began(0.0, "r", 1, ALL, 0.0)])
    kept = [*what_can_be(events, controller.state, [].append)]
    controller.step(1.0, kept)
    return controller, kept


@pytest.mark.parametrize(
    ("events", "running"),
    [
        ([Began(1.0, "r", 1, ALL, 1.0), Ended(1.0, Outcome("r", 0.0, 1.0))], []),
        (
            [NodeAdded(1.0, Node("z", Resources(1.0)), "all"), Began(1.0, "w", 1, OTHER, 1.0)],
            ["r", "w"],
        ),
        ([NEW[1], Cancelled(1.0, "c:n")], ["r"]),
        ([NEW[1], Began(1.0, "c:n", 1, ALL, 1.0), Cancelled(1.0, "c:n")], ["r", "c:n"]),
        ([NEW[1], Began(1.0, "c:n", 1, ALL, 1.0), Ended(1.0, Outcome("c:n", 0.0, 1.0))], ["r"]),
    ],
)
def test_much_of_a_job_can_be_reported_at_once(events, running):
    """Events between two looks at a real cluster are all taken, in its order."""
    controller, kept = after(events)
    assert kept == events
    assert [*controller.running] == running


def test_what_is_new_and_has_begun_waits_for_nothing():
    """Though what it was to follow has not completed: the cluster has let it begin."""
    follows = replace(job("c:n"), after=("w",))
    events = [Cancelled(1.0, "w"), Submitted(1.0, follows), Began(1.0, "c:n", 1, ALL, 1.0)]
    controller, kept = after(events)
    assert [*controller.running] == ["r", "c:n"]
    assert [type(each) for each in kept] == [type(each) for each in events]
