"""When jobs that wait for others may begin, and what is promised where nodes are down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foresail.control.departures import earliest_begin
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.event import Ended, EndedBecause, NodeDown, NodeUp, Outcome, Submitted
from foresail.model.job import DeadlineValue, Job, StartConditions
from foresail.model.view import PendingJob, Rejection, Reservation
from foresail.record.job_life import Dependencies
from foresail.record.state import State

NODES = tuple(Node(name, Resources(cpus=4.0)) for name in ("n1", "n2"))
CLUSTER = Cluster((Partition("all", Resources(cpus=8.0), NODES),))


def submitted(state: State, job_id: str, seconds: float, *after: str) -> Job:
    """A job of one cpu that is planned to run for so many seconds."""
    job = replace(Job.gang(job_id, 0.0, 1), after=after)
    state.submit(PendingJob(job, state.submissions, Point(seconds), seconds), 0.0)
    return job


def test_what_runs_waits_and_was_promised():
    """The last of the ends: expected of what runs, planned of what waits, promised by the stack."""
    state = State(CLUSTER)
    submitted(state, "runs", 30.0)
    state.start("runs", Placement.whole("all", 1), 0.0)
    submitted(state, "waits", 5.0, "runs")
    submitted(state, "free", 50.0)
    last = replace(Job.gang("last", 0.0, 1), after=("waits", "free"))
    assert earliest_begin(Job.gang("alone", 0.0, 1), state, {}, 7.0) == 7.0
    assert earliest_begin(replace(last, after=("runs",)), state, {}, 7.0) == 30.0
    assert earliest_begin(replace(last, after=("waits",)), state, {}, 7.0) == 35.0
    assert earliest_begin(last, state, {}, 7.0) == 57.0
    promised = {"free": Reservation("free", 60.0, 110.0, 1), "waits": Rejection("no")}
    assert earliest_begin(last, state, promised, 7.0) == 110.0
    assert earliest_begin(last, state, promised, 200.0) == 250.0


def test_what_is_over_overdue_or_not_yet_there_holds_up_nothing():
    """Ended jobs do not count; one that runs too long, or has not come, may end at any moment."""
    state = State(CLUSTER)
    submitted(state, "ran", 30.0)
    submitted(state, "overdue", 10.0)
    for job_id in ("ran", "overdue"):
        state.start(job_id, Placement.whole("all", 1), 0.0)
    state.end(Outcome("ran", 0.0, 20.0), 20.0)
    asked = replace(Job.gang("asked", 0.0, 1), after=("ran", "overdue", "to come"))
    assert earliest_begin(asked, state, {}, 25.0) == 25.0


def test_long_chains_and_jobs_that_wait_for_each_other():
    """Ten thousand in a row are added up; a circle comes to an end."""
    state = State(CLUSTER)
    submitted(state, "0", 1.0, "10000")
    for number in range(1, 10_001):
        submitted(state, str(number), 1.0, str(number - 1))
    chain = replace(Job.gang("asked", 0.0, 1), after=("9999",))
    assert earliest_begin(chain, state, {}, 0.0) == pytest.approx(10_000.0, abs=2.0)


def deadline_job(job_id: str, cpus: int, deadline: float, *after: str) -> Job:
    """A job of ten seconds as it asks for them, with a deadline."""
    value = DeadlineValue(deadline, 1.0)
    return replace(Job.gang(job_id, 0.0, cpus, 10.0), value=value, after=after)


def test_reservations_know_nodes_that_are_down_and_jobs_that_run():
    """Six cpus are promised only while both nodes are up; behind a job that runs, from its end."""
    policy = parse_policy("capacity(reservations=earliest,cycle_seconds=10),requested")
    controller = Controller(CLUSTER, *policy.build())
    controller.step(0.0, [NodeDown(0.0, "n2"), Submitted(0.0, deadline_job("wide", 6, 100.0))])
    assert isinstance(controller.reservations["wide"], Rejection)
    controller.step(0.0, [NodeUp(0.0, "n2"), Submitted(0.0, deadline_job("again", 6, 100.0))])
    assert controller.reservations["again"] == Reservation("again", 0.0, 10.0, 6)
    best_effort = Job.gang("best-effort", 0.0, 2, 25.0)
    controller.step(0.0, [Submitted(0.0, best_effort)])
    assert "best-effort" in controller.state.running
    behind = deadline_job("behind", 1, 100.0, "best-effort")
    controller.step(1.0, [Submitted(1.0, behind)])
    assert controller.reservations["behind"] == Reservation("behind", 30.0, 40.0, 1)
    ended = Outcome("best-effort", 0.0, 5.0, EndedBecause.COMPLETED)
    controller.step(5.0, [Ended(5.0, ended)])


def test_arrays_that_wait_for_arrays_are_looked_at_once(monkeypatch):
    """Not once for each member whenever a predecessor starts or ends: all start at the last end."""
    asked = 0
    unmet = Dependencies.unmet

    def counted(self, job, has_begun):
        nonlocal asked
        asked += 1
        return unmet(self, job, has_begun)

    monkeypatch.setattr(Dependencies, "unmet", counted)
    state, count = State(Cluster.of_processors(100)), 50
    first = [f"1_{number}" for number in range(count)]
    for job_id in first:
        submitted(state, job_id, 10.0)
    for number in range(count):
        submitted(state, f"2_{number}", 10.0, *first)
    twin = state.copy()
    for one in (state, twin):
        for job_id in first:
            assert len(one.waiting_for) == count
            one.start(job_id, Placement.whole("all", 1), 1.0)
            one.end(Outcome(job_id, 1.0, 2.0), 2.0)
        assert not one.waiting_for
        assert len(one.startable) == count
    assert asked < 12 * count


def test_who_waits_for_its_namesake_holds_up_nobody_that_waits_for_the_same():
    """Members of one array, of which one is a singleton's turn at a time, all come to start."""
    state = State(Cluster.of_processors(100))
    submitted(state, "first", 10.0)
    once = StartConditions(singleton=True)
    for number, name in enumerate(("a", "a", "b")):
        job = replace(Job.gang(f"{number}", 0.0, 1), after=("first",), conditions=once)
        job = replace(job, name=name)
        state.submit(PendingJob(job, state.submissions, Point(10.0), 10.0), 0.0)
    state.start("first", Placement.whole("all", 1), 0.0)
    state.end(Outcome("first", 0.0, 1.0), 1.0)
    assert sorted(state.startable) == ["0", "2"]
    state.start("0", Placement.whole("all", 1), 1.0)
    state.end(Outcome("0", 1.0, 2.0), 2.0)
    assert sorted(state.startable) == ["1", "2"]


def test_an_array_of_which_one_has_failed_withdraws_all_that_wait_for_it():
    state = State(Cluster.of_processors(100))
    for job_id in ("1_0", "1_1"):
        submitted(state, job_id, 10.0)
        state.start(job_id, Placement.whole("all", 1), 0.0)
    for number in range(3):
        submitted(state, f"2_{number}", 10.0, "1_0", "1_1")
    withdrawn = state.end(Outcome("1_0", 0.0, 1.0, EndedBecause.FAILED), 1.0)
    assert not state.waiting_for
    assert withdrawn is not None
