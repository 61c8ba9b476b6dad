"""The story of a job: the sentences that a log's records become, in order."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.explain.story import story
from foresail.explain.story_words import PlanThread, elapsed
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Decision, Placement, Reason, ReasonCode, Start
from foresail.model.errors import InputError
from foresail.model.event import (
    IN_CYCLES,
    Cancelled,
    Ended,
    EndedBecause,
    NodeAdded,
    NodeDown,
    Outcome,
    Submitted,
)
from foresail.model.job import Dependency, DependencyKind, Job, StartConditions
from foresail.model.protocols import Scheduler
from foresail.record.log_text import JsonLinesLog, MemoryLog
from foresail.record.records import Decided, EventTaken, Instructed, Manifest, Predicted
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.engine import simulate_events
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from toys import Constant, Doubling, Easy, Fcfs, PreemptsOnce, Requested, Scripted

MANIFEST = Manifest("toy", Cluster.of_processors(4))


def logged(jobs, scheduler, predictor, manifest=MANIFEST) -> MemoryLog:
    log = MemoryLog(manifest)
    controller = Controller(manifest.cluster, scheduler, predictor, Doubling(), log=log)
    simulate_events(tiny_workload(jobs), controller, "toy")
    return log


def told(log, job_id: str) -> list[str]:
    return [f"{line.when}: {line.sentence}" for line in story(log.records, job_id).lines]


def test_the_story_of_a_job_that_waits_and_outlives_its_estimate():
    """Submission, belief, reason, start, correction and end, each with its numbers."""
    log = logged([(0, 4, 100, 7200), (5, 2, 1800, 7200)], Easy(), Constant(1200.0))
    assert told(log, "2") == [
        "5 s: Submitted by ann: 2 cpus, a limit of 2 h.",
        "5 s: Expected to run for 20 min.",
        "5 s: Pending: next in line: 2 cpus should be free in 20 min.",
        "100 s: Started after 95 s of waiting: 2 tasks on all.",
        "21 min 40 s: Has run for the 20 min expected of it and runs on; 40 min are expected now "
        "(correction 1).",
        "31 min 40 s: Ended (completed) after running for 30 min.",
    ]


class NotBefore(Scheduler):
    """Starts what waits from a time on, and says nothing before."""

    def __init__(self, seconds):
        self.seconds = seconds

    def decide(self, view):
        waiting = view.pending if view.now >= self.seconds else ()
        return Decision(tuple(Start(each.job.job_id, Placement((("all", 1),))) for each in waiting))


@pytest.mark.parametrize(("begins", "passed_over"), [(10, 0), (30, 1), (1e9, 1)])
def test_a_job_that_a_pass_leaves_waiting(begins, passed_over):
    """It is told once, at the first pass after submission; of a job started then it is not."""
    log = MemoryLog(MANIFEST)
    parts = (NotBefore(begins), Requested(), Doubling())
    controller = Controller(MANIFEST.cluster, *parts, IN_CYCLES, log=log)
    cycles = ClusterConditions(cycle_seconds=10.0)
    jobs = tiny_workload([(0, 1, 500, 600), (5, 1, 60, 600)])
    simulate_events(jobs, controller, "toy", conditions=cycles)
    lines = told(log, "2")
    assert lines[2] == "5 s: Pending: the next scheduling pass is still to come."
    assert (
        lines[3 : 3 + passed_over] == ["10 s: Pending: not chosen by the scheduler."][:passed_over]
    )
    started = [each for each in lines if "Started" in each]
    assert [each.split(":")[0] for each in started] == ([f"{begins} s"] if begins < 1e9 else [])
    assert len(lines) == 3 + passed_over + 2 * len(started)


def test_the_story_of_a_preempted_job():
    """It is told to stop, ends, and starts again after waiting from then on."""
    log = logged([(0, 4, 100, 150), (30, 4, 10, 20)], PreemptsOnce("1"), Requested())
    assert told(log, "1")[3:] == [
        "30 s: Preempted, to make room.",
        "30 s: Stopped after running for 30 s: that work is lost, and it is requeued in its place.",
        "30 s: Started again (attempt 2) after 0 s of waiting: 4 tasks on all.",
        "2 min 10 s: Ended (completed) after running for 100 s.",
    ]


def test_refusals_withdrawals_and_cancellations_are_told():
    """What went wrong is said in the words of the check and of the dependency."""
    log = MemoryLog(MANIFEST)
    scheduler = Scripted(
        Decision((Start("1", Placement.whole("all", 1)), Start("3", Placement.whole("moon", 1))))
    )
    controller = Controller(MANIFEST.cluster, scheduler, Requested(), Doubling(), log=log)
    one, three = (Job.gang(name, 0, 1) for name in ("1", "3"))
    two = Job("2", 0, one.stages, after=("1",))
    controller.step(0, [Submitted(0, job) for job in (one, two, three)])
    outcome = Outcome("1", 0, 5, EndedBecause.FAILED, exit_code=3)
    controller.step(5, [Ended(5, outcome), Cancelled(5, "3")])
    assert told(log, "1")[-1] == "5 s: Ended (failed: exit code 3) after running for 5 s."
    assert told(log, "2") == [
        "0 s: Submitted: 1 cpu, no time limit, to run afterok:1.",
        "0 s: Expected to run for 24 h.",
        "0 s: Pending: waits for job 1 to complete (afterok).",
        "5 s: Withdrawn: job 1, which it depends on, ended: failed.",
    ]
    assert told(log, "3")[2:] == [
        "0 s: The scheduler's wish was refused: the cluster has no partition 'moon'.",
        "0 s: Pending: not chosen by the scheduler; 1 job is ahead of it.",
        "5 s: Cancelled before it started.",
    ]


def test_beliefs_with_width_are_told_with_their_interval():
    """A belief that is no point says where 80 % of it lie, and what the scheduler plans with."""
    submitted = EventTaken(0, 0.0, Submitted(0.0, Job.gang("1", 0.0, 1)))
    belief = Predicted(0, 0.0, "1", 600.0, 60.0, 300.0, 3600.0, 900.0)
    assert story([MANIFEST, submitted, belief], "1").lines[1].sentence == (
        "Expected to run for 5 min (10 min on average), with 80 % probability between 60 s "
        "and 1 h; planned with 15 min."
    )


def test_a_log_that_does_not_fit_together_is_refused():
    """A start of a job that was never submitted is an error of the file."""
    start = Instructed(0, 0.0, Start("1", Placement.whole("all", 1)))
    with pytest.raises(InputError, match=r"does not fit together.*a whole event log"):
        story([MANIFEST, start], "1")


def test_a_log_with_an_origin_tells_its_date():
    """Second 5 of a run that began at midnight, which the heading says."""
    manifest = Manifest("toy", Cluster.of_processors(4), origin_unix_seconds=1_700_006_400.0)
    log = logged([(5, 1, 1, 1)], Easy(), Requested(), manifest)
    found = story(log.records, "1")
    assert found.heading.endswith("from the start of the run, 2023-11-15 00:00:00 UTC.")
    assert found.lines[0].when == "5 s"


def test_a_live_log_counts_from_its_first_record():
    """Unix seconds of a live run become times since its start; reasons say how far off."""
    zero = 1_700_006_400.0
    log = logged([(zero, 4, 100, 7200), (zero + 5, 2, 1800, 7200)], Easy(), Constant(1200.0))
    found = story(log.records, "2")
    assert found.heading == (
        "Job 2; times count from the start of the run, 2023-11-15 00:00:00 UTC."
    )
    assert [line.when for line in found.lines][:4] == ["5 s", "5 s", "5 s", "100 s"]
    assert found.lines[2].sentence == "Pending: next in line: 2 cpus should be free in 20 min."
    assert not any("1700" in line.sentence or "1,700" in line.sentence for line in found.lines)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.4, "0.4 s"),
        (119.6, "2 min 0 s"),
        (1300, "21 min 40 s"),
        (3599.7, "1 h 0 min 0 s"),
        (86400 + 3661, "1 d 1 h 1 min"),
    ],
)
def test_times_since_the_start(seconds, said):
    """To the second, and never a rest of sixty."""
    assert elapsed(seconds) == said


def test_unknown_jobs_have_no_story():
    """Nothing is told of a job that the log does not know."""
    assert story(logged([(5, 1, 1, 1)], Easy(), Requested()).records, "77").lines == ()


@pytest.mark.parametrize(("job_id", "status"), [("1", 0), ("77", 2)])
def test_the_command_tells_the_story(tmp_path, job_id, status):
    """Lines on standard output, or one line of error and status 2."""
    path = tmp_path / "events.jsonl"
    with JsonLinesLog(path, MANIFEST) as log:
        controller = Controller(MANIFEST.cluster, Easy(), Requested(), Doubling(), log=log)
        simulate_events(tiny_workload([(5, 1, 60, 600)]), controller, "toy")
    program = "import sys; from foresail.cli.main import main; sys.argv[0] = 'foresail'; main()"
    command = [sys.executable, "-c", program, "explain", str(path), job_id]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == status, result.stderr
    if status:
        assert result.stderr.strip().endswith("the log does not know this job (found '77')")
    else:
        assert result.stdout.splitlines() == [
            "Job 1; times count from the start of the run.",
            " 5 s  Submitted by ann: 1 cpu, a limit of 10 min.",
            " 5 s  Expected to run for 10 min.",
            " 5 s  Started after 0 s of waiting: 1 task on all.",
            "65 s  Ended (completed) after running for 60 s.",
        ]


def test_the_story_of_a_late_job():
    """The chance that was believed at submission and start, and by how much it came too late."""
    workload = contested()
    log = MemoryLog(Manifest("toy", NODES))
    controller = Controller(NODES, Patient(), Constant(100.0), Doubling(), log=log)
    simulate_events(workload, controller, "toy")
    assert told(log, "late") == [
        "0 s: Submitted by ann: 1 cpu, no time limit, a deadline in 2 min. It runs best "
        "on nodes with gpu, and 2 times as long elsewhere.",
        "0 s: Expected to run for 100 s. Started at once, it would meet its deadline with 100 % "
        "probability.",
        "0 s: Pending: needs 1 cpu and 0 are free.",
        "50 s: Started after 50 s of waiting: 1 task on n1, where it runs 2 times as long as at "
        "best; it should meet its deadline with 0 % probability.",
        "4 min 10 s: Has run for the 3 min expected of it and runs on; 7 min are expected now "
        "(correction 1).",
        "7 min 30 s: Ended (completed) after running for 7 min, 6 min after its deadline.",
    ]


def contested():
    """One node: somebody is on it for 50 s, and another who would like a gpu has to wait."""
    table = jobs_table(
        {
            "job_id": ["first", "late"],
            "submit_seconds": [0.0, 0.0],
            "tasks": [1, 1],
            "runtime_seconds": [50.0, 200.0],
            "user": ["ann", "ann"],
            "deadline_seconds": [None, 120.0],
            "preferred": [None, "attribute:gpu"],
            "slowdown_elsewhere": [None, 2.0],
        }
    )
    return Workload(table, WorkloadMeta("made", "hand", 1))


NODES = Cluster((Partition("all", Resources(1.0), (Node("n1", Resources(1.0)),)),))


class Patient(Scheduler):
    """One job at a time, on the only node."""

    def decide(self, view):
        if view.running:
            reason = Reason(ReasonCode.NO_ROOM, {"cpus": 1.0, "free": 0.0})
            return Decision(reasons={each.job.job_id: reason for each in view.pending})
        first, *others = (each.job.job_id for each in view.pending)
        reason = Reason(ReasonCode.NO_ROOM, {"cpus": 1.0, "free": 0.0})
        start = Start(first, Placement((("all", 1),), (("n1", 1),)))
        return Decision((start,), reasons=dict.fromkeys(others, reason))


def test_moves_of_the_plan_are_told_with_what_happened_meanwhile():
    """Moves that matter, against what was told before; a plan that slides is not news."""
    teller = PlanThread("1")
    assert teller.sentence(decided(0.0, {"1": 300.0})) is None
    assert teller.is_shown
    assert teller.sentence(decided(10.0, slides=True)) is None
    teller.happened(NodeDown(20.0, "n1"))
    teller.happened(Ended(20.0, Outcome("7", 0.0, 20.0)))
    teller.happened(Ended(20.0, Outcome("8", 0.0, 20.0)))
    teller.outlived("9")
    assert teller.sentence(decided(20.0, {"1": 920.0})) == (
        "Planned 10 min later than before: in 15 min; meanwhile 2 jobs ended, job 9 outlived "
        "its estimate and node n1 failed."
    )
    assert teller.sentence(decided(30.0, {"1": 210.0})) == (
        "Planned 12 min earlier than before: in 3 min; nothing but time has passed."
    )
    assert teller.sentence(decided(40.0, {"1": float("inf")})) == (
        "Planned for no known time any more; nothing but time has passed."
    )
    assert teller.sentence(decided(50.0, dropped=("1",))) is None
    teller.forget()
    assert not teller.is_shown


def decided(time, plan=None, *, dropped=(), slides=False):
    return Decided(0, time, 1, 1, 0.0, (), (), plan or {}, {}, dropped, slides)


def test_many_nodes_are_told_by_partition():
    """A wide job's places are counted, not listed."""
    names = [f"n{number}" for number in range(30)]
    one = Resources(1.0)
    nodes = tuple(Node(name, one) for name in names)
    parts = (Partition("a", one, nodes[:20]), Partition("b", one, nodes[20:]))
    manifest = Manifest("toy", Cluster(parts))
    places = tuple((name, 1) for name in names)
    start = Start("1", Placement((("a", 20), ("b", 10)), places))
    submitted = EventTaken(0, 0.0, Submitted(0.0, Job.gang("1", 0.0, 30)))
    belief = Predicted(0, 0.0, "1", 60.0, 60.0, 60.0, 60.0, 60.0)
    lines = story([manifest, submitted, belief, Instructed(0, 0.0, start)], "1").lines
    assert lines[-1].sentence == (
        "Started after 0 s of waiting: 30 tasks on 30 nodes, 20 in a, 10 in b."
    )


def test_a_start_on_a_node_that_came_later_is_told():
    """How slow a job is there follows from the nodes that there are by then."""
    records = [
        Manifest("toy", NODES),
        EventTaken(0, 0.0, NodeAdded(0.0, Node("n2", Resources(1.0)), "all")),
        EventTaken(0, 0.0, Submitted(0.0, Job.gang("1", 0.0, 1))),
        Predicted(0, 0.0, "1", 60.0, 60.0, 60.0, 60.0, 60.0),
        Instructed(0, 0.0, Start("1", Placement((("all", 1),), (("n2", 1),)))),
    ]
    last = story(records, "1").lines[-1]
    assert last.sentence == "Started after 0 s of waiting: 1 task on n2."


def test_a_belief_that_changes_is_told_when_it_is_quite_another():
    """A small change is not; a large one is, once."""
    submitted = EventTaken(0, 0.0, Submitted(0.0, Job.gang("1", 0.0, 1)))
    beliefs = [Predicted(0, 0.0, "1", mean, mean, mean, mean, mean) for mean in (60, 66, 600, 590)]
    assert [line.sentence for line in story([MANIFEST, submitted, *beliefs], "1").lines][1:] == [
        "Expected to run for 60 s.",
        "Meanwhile something else is believed. Expected to run for 10 min.",
    ]


@pytest.mark.parametrize(
    ("seconds", "because"),
    [
        (5.0, "it held more memory than it may have"),
        (60.0, "its time limit of 60 s was over"),
    ],
)
def test_a_command_ended_before_its_time_was_over_ran_into_the_limit_of_memory(seconds, because):
    """Both ends have one name; which of them it was follows from how long it ran."""
    log = MemoryLog(MANIFEST)
    scheduler = Scripted(Decision((Start("1", Placement.whole("all", 1)),)))
    controller = Controller(MANIFEST.cluster, scheduler, Requested(), Doubling(), log=log)
    controller.step(0, [Submitted(0, Job.gang("1", 0, 1, 60.0))])
    controller.step(seconds, [Ended(seconds, Outcome("1", 0, seconds, EndedBecause.LIMIT, -15))])
    assert f"Ended (limit: {because}) after running" in told(log, "1")[-1]


def test_what_a_job_waits_for_by_its_own_wish_is_told():
    conditions = StartConditions(
        dependencies=(Dependency(DependencyKind.AFTER_ANY, ("7_0", "7_1")),),
        singleton=True,
        begin_seconds=65.0,
        most_at_once=2,
        array="9",
        once=True,
    )
    job = Job("9_0", 5.0, Job.gang("", 0, 1).stages, after=("3", "7_0", "7_1"))
    log = MemoryLog(MANIFEST)
    controller = Controller(MANIFEST.cluster, Fcfs(), Requested(), Doubling(), log=log)
    controller.step(5.0, [Submitted(5.0, replace(job, conditions=conditions))])
    assert told(log, "9_0")[0].endswith(
        "no time limit, to run afterok:3, afterany:7_0:7_1, after all before it of its name "
        "(singleton), to begin 60 s later, 2 of its array at once, once only."
    )
