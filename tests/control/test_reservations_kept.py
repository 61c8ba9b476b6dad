"""Requests for reservations in the controller: asked once, told, kept, released, and repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.story import story
from foresail.live.run_log import recover
from foresail.live.twin import differences
from foresail.model.cluster import Cluster
from foresail.model.decision import Placement, Preempt, Start, TickAt, WakeAt
from foresail.model.event import IN_CYCLES, Cancelled, Ended, EndedBecause, Outcome, Submitted, Tick
from foresail.model.job import DeadlineValue, Job
from foresail.model.view import Rejection, Reservation
from foresail.record.log_text import JsonLinesLog, MemoryLog, parse_record, read_log, record_line
from foresail.record.records import Manifest, ReservationAnswered
from foresail.record.schedule import table_of_run
from toys import Constant, Doubling, Fcfs, Requested


def manifest(policy="capacity(cycle_seconds=1)", processors=3, conventions=IN_CYCLES):
    return Manifest(policy, Cluster.of_processors(processors), conventions)


def build(described, log=None):
    """The controller of a manifest; jobs run for as long as they request."""
    scheduler, _, _ = parse_policy(described.policy).build()
    parts = (scheduler, Requested(), Doubling())
    return Controller(described.cluster, *parts, described.conventions, log)


def asks(job_id, cpus, seconds, deadline, *, now=0.0, after=()):
    """The submission of a job that runs for so long, with a deadline or without."""
    job = Job.gang(job_id, now, cpus, seconds, "ann")
    value = None if deadline is None else DeadlineValue(deadline)
    return Submitted(now, replace(job, value=value, after=tuple(after)))


def intervals(controller):
    """When everybody is promised nodes, or None."""
    return {
        job_id: (each.start_seconds, each.end_seconds) if isinstance(each, Reservation) else None
        for job_id, each in controller.reservations.items()
    }


@pytest.mark.parametrize(
    ("alignment", "third"),
    [("latest", (10.0, 20.0)), ("earliest", None)],
    ids=["latest", "earliest"],
)
def test_the_golden_requests(alignment, third):
    """H11 through the controller: three requests in order, on three cpus."""
    controller = build(manifest(f"capacity(reservations={alignment},cycle_seconds=1)"))
    requests = [asks("1", 2, 10.0, 10.0), asks("2", 1, 20.0, 40.0), asks("3", 3, 10.0, 20.0)]
    instructions = controller.step(0.0, requests)
    second = (20.0, 40.0) if alignment == "latest" else (0.0, 20.0)
    assert intervals(controller) == {"1": (0.0, 10.0), "2": second, "3": third}
    ticks = [(each.job_id, each.time) for each in instructions if isinstance(each, TickAt)]
    promised = {name: each[0] for name, each in intervals(controller).items() if each}
    assert dict(ticks) == promised


def test_only_deadlines_ask_and_only_where_somebody_answers():
    """A job without a deadline never asks; FCFS takes no requests; nor does it say anything."""
    controller = build(manifest())
    controller.step(0.0, [asks("1", 1, 10.0, None), asks("2", 1, 10.0, 50.0)])
    assert [each.reservation for each in controller.pending] == [
        None,
        Reservation("2", 40.0, 50.0, 1),
    ]
    fcfs = Controller(Cluster.of_processors(3), Fcfs(), Constant(10.0), Doubling())
    instructions = fcfs.step(0.0, [asks("1", 1, 10.0, 50.0)])
    assert [type(each) for each in instructions] == [Start, WakeAt]
    assert dict(fcfs.reservations) == {}
    assert fcfs.running["1"].reservation is None


@pytest.mark.parametrize(
    ("request_", "because"),
    [
        (asks("1", 4, 10.0, 50.0), "no room"),
        (asks("1", 1, 10.0, 9.0), "too short"),
        (asks("1", 1, 10.0, -5.0), "deadline"),
        (asks("1", 1, 10.0, 0.5), "deadline"),
    ],
    ids=["wide", "short", "past", "now"],
)
def test_why_requests_are_rejected(request_, because):
    """Wider than the cluster, longer than the time that is left, late already."""
    controller = build(manifest())
    controller.step(0.0, [request_])
    answer = controller.reservations["1"]
    assert isinstance(answer, Rejection)
    assert because in answer.because


def later_request(controller, now):
    """What another job that needs all cpus until 20 is promised."""
    controller.step(now, [asks("later", 3, 19.0 - now, 20.0, now=now)])
    return intervals(controller)["later"]


@pytest.mark.parametrize("ends", ["cancelled", "completed", "withdrawn", "preempted", "lost"])
def test_what_is_released_and_what_is_kept(ends):
    """An end, a cancellation and a failed predecessor release; an attempt in vain does not."""
    controller = build(manifest())
    if ends == "withdrawn":
        controller.step(0.0, [asks("0", 1, 0.0, None)])
        controller.step(0.0, [asks("1", 3, 20.0, 20.0, after=["0"])])
    else:
        controller.step(0.0, [asks("1", 3, 20.0, 20.0)])
    assert intervals(controller)["1"] == (0.0, 20.0)
    held = controller.reservations["1"]
    if ends == "cancelled":
        controller.step(1.0, [Cancelled(1.0, "1")])
    elif ends == "withdrawn":
        _start(controller, "0")
        controller.step(1.0, [Ended(1.0, Outcome("0", 0.0, 1.0, EndedBecause.FAILED))])
    else:
        _start(controller, "1")
        assert controller.running["1"].reservation == held
        controller.step(1.0, [Ended(1.0, Outcome("1", 0.0, 1.0, EndedBecause(ends)))])
    if ends in ("preempted", "lost"):
        assert [each.reservation for each in controller.pending] == [held]
        assert later_request(controller, 1.0) is None
    else:
        assert later_request(controller, 1.0) == (2.0, 20.0)


def _start(controller, job_id):
    """As a scheduling pass would."""
    width = int(controller.state.submitted_job(job_id).job.cpus)
    controller.state.start(job_id, Placement.whole("all", width), 0.0)


@pytest.mark.parametrize(
    "answer", [Reservation("1", 40.0, 50.0, 2), Rejection("at no time")], ids=["yes", "no"]
)
def test_answers_survive_the_log(answer):
    """One line of JSON, and back."""
    record = ReservationAnswered(3, 1.5, "1", answer)
    assert parse_record(record_line(record), "log", 1) == record


def test_answers_in_a_job_s_story():
    """Both answers, in words."""
    log = MemoryLog(manifest())
    controller = build(log.records[0], log)
    controller.step(5.0, [asks("1", 2, 10.0, 125.0), asks("2", 2, 10.0, 12.0, now=5.0)])
    accepted = [line.sentence for line in story(log.records, "1").lines]
    assert "Reservation accepted: 2 containers for 10 s, from 110 s after now." in accepted
    rejected = [line.sentence for line in story(log.records, "2").lines]
    assert "Reservation rejected: 7 s is too short for 10 s." in rejected


def history(controller):
    """A run of cycles in which reservations are made, begun, outlived, released and refused."""
    events = {
        0: [asks("1", 3, 30.0, None), asks("2", 2, 6.0, 20.0)],
        3: [asks("3", 3, 5.0, 14.0, now=3.0), asks("4", 2, 8.0, 9.0, now=3.0)],
        9: [asks("5", 3, 5.0, 30.0, now=9.0), Cancelled(9.0, "3")],
        12: [asks("6", 1, 4.0, 40.0, now=12.0)],
    }
    began: dict[str, float] = {}
    preempted: list[str] = []
    for cycle in range(60):
        now, step = float(cycle), list(events.get(cycle, ()))
        for job_id, running in list(controller.running.items()):
            outcome = Outcome(job_id, began[job_id], now, attempt=running.attempt)
            done = now - began[job_id] >= (12 if job_id == "2" else running.prediction.mean())
            if job_id in preempted:
                step.append(Ended(now, replace(outcome, ended_because=EndedBecause.PREEMPTED)))
            elif done:
                step.append(Ended(now, outcome))
        preempted = []
        for instruction in controller.step(now, [*step, Tick(now)]):
            if isinstance(instruction, Start):
                began[instruction.job_id] = now
            elif isinstance(instruction, Preempt):
                preempted.append(instruction.job_id)


@pytest.mark.parametrize(
    "policy",
    ["capacity(cycle_seconds=1)", "tetrisched(cycle_seconds=1,slot_seconds=1,placing=in_order)"],
)
def test_a_run_with_reservations_resumes_and_repeats(tmp_path, policy):
    """The log alone rebuilds every answer, what runs, and what the next request is told."""
    described = manifest(policy)
    path = tmp_path / "events.jsonl"
    with JsonLinesLog(path, described) as log:
        history(build(described, log))
    unbroken = build(described)
    history(unbroken)
    assert sum(isinstance(each, ReservationAnswered) for each in read_log(path)) == 5
    assert list(differences(read_log(path), build)) == []
    again, log = recover(path, described, lambda log: build(described, log))
    assert dict(again.reservations) == dict(unbroken.reservations)
    assert again.pending == unbroken.pending
    assert dict(again.running) == dict(unbroken.running)
    request = asks("new", 2, 10.0, 90.0, now=60.0)
    assert again.step(60.0, [request]) == unbroken.step(60.0, [request])
    assert again.reservations["new"] == unbroken.reservations["new"]
    log.close()
    rows = table_of_run(again.state.history)
    answers = dict(rows.select("job_id", "accepted").iter_rows())
    assert answers["1"] is None
    assert answers["2"] is True
