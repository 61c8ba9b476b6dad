"""Events of clusters that live by themselves: starts that were none, room taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.reason_words import reason_words
from foresail.explain.story import story
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Decision, Placement, Preempt, ReasonCode, Start, WakeAt
from foresail.model.event import (
    Began,
    Cancelled,
    ClusterAvailable,
    ClusterUnavailable,
    Ended,
    EndedBecause,
    Held,
    JobChanged,
    NodeRemoved,
    NotStarted,
    Occupied,
    Outcome,
    Submitted,
    Tick,
)
from foresail.model.job import Job, Stage, StartConditions
from foresail.record.job_life import ImpossibleTransition
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.record.run_fold import folded
from toys import Constant, Doubling, Fcfs, Scripted

CLUSTER = Cluster.of_processors(2)


class Watchful(Constant):
    """A predictor that notes what it is told."""

    def __init__(self):
        super().__init__(10.0)
        self.told = []

    def started(self, job, now):
        self.told.append(("started", job.job_id))

    def not_started(self, job, now):
        self.told.append(("not started", job.job_id))

    def withdrawn(self, job, now):
        self.told.append(("withdrawn", job.job_id))

    def observe(self, job, outcome):
        self.told.append((str(outcome.ended_because), job.job_id))


def begun():
    return Controller(
        CLUSTER, Fcfs(), Watchful(), Doubling(), log=MemoryLog(Manifest("x", CLUSTER))
    )


def job(job_id, cpus=1):
    return Submitted(0.0, Job.gang(job_id, 0.0, cpus, 50.0, "ann"))


def starts(instructions):
    return [(each.job_id, each.attempt) for each in instructions if isinstance(each, Start)]


def test_a_start_that_was_none_goes_back_to_its_place_and_says_why():
    """Nothing is observed, later jobs stand behind it, and its next attempt comes in time."""
    controller = begun()
    assert starts(controller.step(0.0, [job("a"), job("b", 2)])) == [("a", 1)]
    refused = NotStarted(1.0, "a", 1, "node n1 is not answering", 30.0)
    assert starts(controller.step(1.0, [refused])) == [("b", 1)]  # which a does not keep back
    state = controller.state
    assert [each.job.job_id for each in controller.pending] == ["a"]
    assert state.free.cpus == 0.0
    reason = controller.reasons()["a"]
    assert reason.code is ReasonCode.NOT_STARTED
    said = "could not be started: node n1 is not answering; it may start again in 29 s"
    assert reason_words(reason, 2.0) == said
    assert controller.look_again_seconds == 31.0
    controller.step(9.0, [Ended(9.0, Outcome("b", 1.0, 9.0))])
    assert starts(controller.step(30.0, [Tick(30.0)])) == []
    assert starts(controller.step(31.0, [Tick(31.0)])) == [("a", 2)]
    ids = [each.job.job_id for each in state.history.past]
    assert ids == ["b"]
    assert [each for each in controller.predictor.told if each[1] == "a"] == [
        ("started", "a"),
        ("not started", "a"),
        ("started", "a"),
    ]
    told = [line.sentence for line in story(controller._log._log.records, "a").lines]
    assert "Not started after all: node n1 is not answering. It may start again in 30 s." in told
    assert any(line.startswith("Started again (attempt 2)") for line in told)


def test_a_job_that_is_cancelled_before_its_start_turns_out_to_be_none_has_ended():
    controller = begun()
    controller.step(0.0, [job("a")])
    controller.step(1.0, [Cancelled(1.0, "a", "root")])
    controller.step(2.0, [NotStarted(2.0, "a", 1, "no", 30.0)])
    state = controller.state
    assert state.ended["a"].ended_because is EndedBecause.CANCELLED
    assert state.history.withdrawn == {"a": "cancelled by root"}
    assert state.free.cpus == 2.0
    assert controller.look_again_seconds == float("inf")
    assert controller.predictor.told[-1] == ("withdrawn", "a")


def test_a_refusal_of_another_attempt_cannot_be():
    controller = begun()
    controller.step(0.0, [job("a")])
    with pytest.raises(ImpossibleTransition, match="cannot go from running to pending"):
        controller.step(1.0, [NotStarted(1.0, "a", 2, "no", 30.0)])


def test_a_second_refusal_puts_the_job_off_anew():
    """Also by less than the first one did; a held job is kept back by its hold."""
    controller = begun()
    controller.step(0.0, [job("a")])
    controller.step(1.0, [NotStarted(1.0, "a", 1, "no", 100.0)])
    controller.step(101.0, [Tick(101.0)])
    controller.step(102.0, [NotStarted(102.0, "a", 2, "no", 5.0)])
    assert controller.look_again_seconds == 107.0
    assert starts(controller.step(107.0, [Tick(107.0)])) == [("a", 3)]


def test_what_was_revoked_is_censored_and_runs_again():
    controller = begun()
    controller.step(0.0, [job("a")])
    gone = Outcome("a", 0.0, 7.0, EndedBecause.REVOKED)
    assert starts(controller.step(7.0, [Ended(7.0, gone)])) == [("a", 2)]
    assert controller.predictor.told[1] == ("revoked", "a")
    records = controller._log._log.records
    assert folded(records).state.running["a"].attempt == 2
    told = [line.sentence for line in story(records, "a").lines]
    assert any(line.startswith("Ended, as its place was taken back, after") for line in told)


ALL = Placement.whole("all", 1)


def test_what_begins_by_no_start_of_ours_holds_room_and_is_never_stopped():
    """Though it is held; it is believed in from its own start on, and ends as any other."""
    controller = begun()
    controller.step(0.0, [job("a"), job("b", 2), Held(0.0, "b")])
    other = Began(8.0, "b", 1, Placement.whole("all", 2), 3.0, ours=False)
    controller.step(8.0, [other])
    running = controller.running["b"]
    assert (running.ours, running.start_seconds, running.expected_end_seconds) == (False, 3.0, 13.0)
    assert controller.state.free.cpus == -1.0  # a runs too
    assert controller.state.wakes["b"] == 13.0
    controller.scheduler = Scripted(Decision(preemptions=(Preempt("b"),)))
    stops = controller.step(9.0, [job("c")])
    assert not [each for each in stops if isinstance(each, Preempt)]
    assert "not started here" in controller.first_refusal.sentence
    assert not [
        each for each in controller.step(10.0, [Cancelled(10.0, "b")]) if each.job_id == "b"
    ]
    controller.step(12.0, [Ended(12.0, Outcome("b", 3.0, 12.0))])
    assert ("completed", "b") in controller.predictor.told
    assert controller.state.free.cpus == 1.0
    told = [line.sentence for line in story(controller._log._log.records, "b").lines]
    assert "Runs by no start of ours, for 5 s by now: 2 tasks on all." in told


def test_a_beginning_confirms_our_start_with_its_second_and_its_nodes():
    controller = begun()
    controller.step(0.0, [job("a")])
    late = controller.step(4.0, [Began(4.0, "a", 1, ALL, 3.0)])
    assert [(each.job_id, each.time) for each in late] == [("a", 13.0)]
    assert controller.running["a"].start_seconds == 3.0
    assert controller.step(5.0, [Began(5.0, "a", 1, ALL, 3.0)]) == []
    assert controller.predictor.told == [("started", "a")]


def test_what_came_began_and_ended_since_is_taken_in_that_order():
    """Also a first attempt that ended, and a second one that did, of the same step."""
    controller = begun()
    came = Began(5.0, "a", 1, ALL, 2.0, ours=False)
    done = Ended(5.0, Outcome("a", 2.0, 4.0))
    controller.step(5.0, [done, came, job("a")])
    assert controller.state.ended["a"].end_seconds == 5.0
    controller.step(6.0, [job("b")])
    lost = Ended(9.0, Outcome("b", 6.0, 7.0, EndedBecause.LOST))
    again = Began(9.0, "b", 2, ALL, 7.0, ours=False)
    over = Ended(9.0, Outcome("b", 7.0, 8.0, attempt=2))
    controller.step(9.0, [lost, again, over])
    assert [each.outcome.attempt for each in controller.state.history.past] == [1, 1, 2]


def test_an_attempt_that_outlived_its_estimate_before_it_was_seen_is_corrected_at_once():
    controller = begun()
    controller.step(0.0, [job("a"), Held(0.0, "a")])
    controller.step(30.0, [Began(30.0, "a", 1, ALL, 5.0, ours=False)])
    assert controller.running["a"].expected_end_seconds == 45.0  # 10 s, doubled twice


def test_a_beginning_that_cannot_be_is_none():
    controller = begun()
    controller.step(0.0, [job("a")])
    for event in (Began(1.0, "a", 2, ALL, 1.0), Began(1.0, "x", 1, ALL, 1.0)):
        with pytest.raises(ImpossibleTransition):
            controller.step(1.0, [event])


def test_a_node_is_occupied_by_what_is_no_job():
    """By so much and no more than was said last; nothing is left of it once the node has gone."""
    nodes = tuple(Node(name, Resources(4.0)) for name in ("n1", "n2"))
    cluster = Cluster((Partition("all", Resources(8.0), nodes),))
    controller = Controller(cluster, Fcfs(), Constant(10.0), Doubling())
    free = controller.state.free
    controller.step(0.0, [Occupied(0.0, "n1", Resources(3.0))])
    assert (free.by_node()["n1"].cpus, free.cpus) == (1.0, 5.0)
    assert starts(controller.step(1.0, [job("wide", 6)])) == []
    assert starts(controller.step(2.0, [Occupied(2.0, "n1", Resources(2.0))])) == [("wide", 1)]
    controller.step(3.0, [NodeRemoved(3.0, "n1")])
    assert controller.state.occupied == {}


def test_nothing_is_started_or_planned_while_the_cluster_is_away():
    """Running jobs go on and may end; on return all is as it was."""
    controller = begun()
    controller.step(0.0, [job("a", 2), job("b")])
    assert starts(controller.step(1.0, [ClusterUnavailable(1.0, "no answer")])) == []
    assert starts(controller.step(2.0, [Ended(2.0, Outcome("a", 0.0, 2.0))])) == []
    assert controller.reasons()["b"].code is ReasonCode.UNAVAILABLE
    records = controller._log._log.records
    assert folded(records).state.unavailable == "no answer"
    told = [line.sentence for line in story(records, "b").lines]
    assert any("the cluster cannot be reached (no answer)" in line for line in told)
    assert starts(controller.step(3.0, [ClusterAvailable(3.0)])) == [("b", 1)]
    assert folded(records).state.unavailable == ""


def easy():
    parts = parse_policy("easy,requested,requested").build()
    return Controller(CLUSTER, *parts, log=MemoryLog(Manifest("easy", CLUSTER)))


def changed(controller, now, job_id, **fields):
    job = controller.state.submitted_job(job_id).job
    return controller.step(now, [JobChanged(now, replace(job, **fields))])


def test_a_longer_limit_of_what_runs_keeps_a_job_from_passing():
    """It is told of the new end; what waits plans with that, and ends are kept."""
    controller = easy()
    controller.step(0.0, [job("a"), job("b", 2)])
    changed(controller, 1.0, "a", requested_seconds=10.0)
    assert controller.plan == {"b": 10.0}
    wakes = changed(controller, 2.0, "a", requested_seconds=300.0, user="eve", submit_seconds=9.0)
    assert wakes[0] == WakeAt("a", 300.0)
    assert controller.plan == {"b": 300.0}
    known = controller.running["a"].job
    assert (known.user, known.submit_seconds) == ("ann", 0.0)
    told = [line.sentence for line in story(controller._log._log.records, "a").lines]
    assert any(line.startswith("Changed. ") and "5 min" in line for line in told)


def test_a_waiting_job_is_taken_for_what_it_has_become():
    """Narrow enough it starts, at its old place; too wide it waits as that; its room is its new."""
    controller = easy()
    controller.step(0.0, [job("a"), job("b", 2), job("c", 2)])
    assert changed(controller, 1.0, "c", stages=(Stage(3, Resources(1.0)),)) == []
    assert controller.reasons()["c"].code is ReasonCode.TOO_WIDE
    assert starts(changed(controller, 2.0, "b", stages=(Stage(1, Resources(1.0)),))) == [("b", 1)]
    assert controller.state.free.cpus == 0.0
    changed(
        controller, 3.0, "b", stages=(Stage(2, Resources(1.0)),), partition="other"
    )  # too late: it runs
    controller.step(4.0, [Ended(4.0, Outcome(each, 0.0, 4.0)) for each in "ab"])
    assert controller.state.free.cpus == 2.0
    assert starts(changed(controller, 5.0, "c", stages=(Stage(2, Resources(1.0)),))) == [("c", 1)]


def test_a_change_that_comes_too_late_changes_nothing_and_one_of_nothing_cannot_be():
    controller = easy()
    controller.step(0.0, [job("a"), Cancelled(0.0, "b"), job("b")])
    controller.step(1.0, [JobChanged(1.0, replace(job("b").job, requested_seconds=1.0))])
    assert controller.state.history.submitted["b"].requested_seconds == 50.0
    with pytest.raises(ImpossibleTransition, match="never submitted"):
        controller.step(2.0, [JobChanged(2.0, job("c").job)])


def test_a_name_that_is_changed_lets_its_next_bearer_start():
    """And the job leaves nobody behind when it ends."""
    controller = begun()
    only = StartConditions(singleton=True)
    named = [replace(job(each).job, name="n", conditions=only) for each in "ab"]
    assert starts(controller.step(0.0, [Submitted(0.0, each) for each in named])) == [("a", 1)]
    assert starts(changed(controller, 1.0, "a", name="m")) == [("b", 1)]
    controller.step(2.0, [Ended(2.0, Outcome(each, 0.0, 2.0)) for each in "ab"])
    assert not controller.state._dependencies._namesakes
