"""Events of clusters that live by themselves: starts that were none, room taken back."""

from __future__ import annotations

import pytest

from foresail.control.loop import Controller
from foresail.explain.reason_words import reason_words
from foresail.explain.story import story
from foresail.model.cluster import Cluster
from foresail.model.decision import ReasonCode, Start
from foresail.model.event import (
    Cancelled,
    Ended,
    EndedBecause,
    NotStarted,
    Outcome,
    Submitted,
    Tick,
)
from foresail.model.job import Job
from foresail.record.job_life import ImpossibleTransition
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.record.run_fold import folded
from toys import Constant, Doubling, Fcfs

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
