"""The controller: steps of a few events, and the instructions expected of each, as text."""

from __future__ import annotations

import pytest

from foresail.checks.rules import tiny_pending
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import (
    Decision,
    Placement,
    Preempt,
    ReasonCode,
    Start,
    WakeAt,
    Withdraw,
)
from foresail.model.event import (
    PREDICTSIM,
    STANDARD,
    Cancelled,
    Ended,
    EndedBecause,
    EstimateExpired,
    Held,
    HistoryOutcome,
    NodeDown,
    NodeDrained,
    NodeResumed,
    NodeUp,
    NotStarted,
    Outcome,
    Released,
    Submitted,
    Tick,
)
from foresail.model.job import Job
from foresail.model.protocols import Scheduler
from foresail.record.job_life import TRANSITIONS, ImpossibleTransition, JobState
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.record.run_fold import RunFold
from foresail.record.state import State
from toys import Constant, Doubling, Easy, Fcfs, PreemptsOnce, Requested, Scripted


def controller(scheduler=None, predictor=None, conventions=STANDARD, processors=4) -> Controller:
    return Controller(
        Cluster.of_processors(processors),
        scheduler or Fcfs(),
        predictor or Requested(),
        Doubling(),
        conventions,
    )


def submitted(now: float, job_id: str, cpus: int, requested: float = 10.0, after=()) -> Submitted:
    job = Job.gang(job_id, now, cpus, requested, "ann")
    return Submitted(now, Job(job_id, now, job.stages, requested, "ann", after=tuple(after)))


def ended(now: float, job_id: str, because=EndedBecause.COMPLETED, start: float = 0.0) -> Ended:
    return Ended(now, Outcome(job_id, start, now, because))


def texts(instructions) -> list[str]:
    """Instructions as ``start 1``, ``wake 1 at 10``, ``preempt 1``, ``withdraw 1``."""
    words = {Start: "start", Preempt: "preempt", Withdraw: "withdraw", WakeAt: "wake"}
    return [
        f"{words[type(each)]} {each.job_id}"
        + (f" at {each.time:g}" if isinstance(each, WakeAt) else "")
        for each in instructions
    ]


def test_two_jobs_in_sequence():
    """The second waits for the first, and starts in the step in which that ends."""
    loop = controller()
    assert texts(loop.step(0, [submitted(0, "1", 3)])) == ["start 1", "wake 1 at 10"]
    assert texts(loop.step(1, [submitted(1, "2", 2)])) == []
    assert loop.reasons()["2"].code is ReasonCode.BEHIND
    assert texts(loop.step(5, [ended(5, "1")])) == ["start 2", "wake 2 at 15"]
    assert texts(loop.step(9, [ended(9, "2", start=5)])) == []
    assert loop.pending == ()
    assert dict(loop.running) == {}


def test_ends_of_an_instant_come_before_its_submissions():
    """However the events of a step are listed, its one pass knows them all."""
    loop = controller()
    loop.step(0, [submitted(0, "1", 4)])
    both = [submitted(5, "2", 4), ended(5, "1")]
    assert texts(loop.step(5, both)) == ["start 2", "wake 2 at 15"]
    assert loop.counters.passes == 2


def test_predictors_hear_everything_once_and_in_order():
    """History, ends in order of start, predictions in order of submission, then starts."""
    predictor = Constant(10.0)
    loop = controller(predictor=predictor)
    old = HistoryOutcome(0, Job.gang("0", 0, 1), Outcome("0", -9, -5))
    loop.step(0, [submitted(0, "1", 2), submitted(0, "2", 2), old])
    loop.step(5, [submitted(5, "3", 1), ended(5, "2"), ended(5, "1")])
    assert predictor.heard == [
        ("ended", "0", -5),
        ("predict", "1", 0),
        ("predict", "2", 0),
        ("started", "1", 0),
        ("started", "2", 0),
        ("ended", "1", 5),
        ("ended", "2", 5),
        ("predict", "3", 5),
        ("started", "3", 5),
    ]


def test_an_expired_estimate_is_corrected_and_asks_for_no_pass():
    """Each correction brings a new wake-up; a stale one brings nothing."""
    loop = controller(predictor=Constant(10.0))
    loop.step(0, [submitted(0, "1", 1, requested=100)])
    assert texts(loop.step(10, [EstimateExpired(10, "1")])) == ["wake 1 at 20"]
    assert texts(loop.step(11, [EstimateExpired(11, "1")])) == []
    assert texts(loop.step(20, [EstimateExpired(20, "1")])) == ["wake 1 at 40"]
    assert loop.running["1"].corrections == 2
    assert loop.counters.passes == 1
    assert texts(loop.step(25, [ended(25, "1")])) == []
    assert texts(loop.step(40, [EstimateExpired(40, "1")])) == []


def test_a_late_wake_up_is_corrected_past_the_present():
    """A live clock may be late: corrections follow until the estimate lies ahead."""
    loop = controller(predictor=Constant(10.0))
    loop.step(0, [submitted(0, "1", 1, requested=100)])
    assert texts(loop.step(35, [EstimateExpired(35, "1")])) == ["wake 1 at 40"]
    assert loop.running["1"].corrections == 2


def test_a_correction_that_cannot_go_further_leaves_the_estimate():
    """At the request nobody knows better: no new estimate, and no wake-up for ever and ever."""
    loop = controller(predictor=Constant(10.0))
    loop.step(0, [submitted(0, "1", 1, requested=10)])
    assert texts(loop.step(10, [EstimateExpired(10, "1")])) == []
    assert loop.running["1"].expected_end_seconds == 10


def test_schedulers_may_plan_with_another_runtime():
    """The scheduler's planned runtime is kept and makes the expected end; it is asked once."""

    class Doubts(Fcfs):
        asked = 0

        def planned_seconds(self, pending) -> float:
            self.asked += 1
            return 3 * pending.planned_seconds

    scheduler = Doubts()
    loop = controller(scheduler)
    assert texts(loop.step(0, [submitted(0, "1", 4), submitted(0, "2", 4)])) == [
        "start 1",
        "wake 1 at 30",
    ]
    assert loop.pending[0].planned_seconds == 30
    assert scheduler.asked == 2


def test_the_view_shows_what_is_true():
    """Free, pending by arrival, running by start, and the plan of the pass before."""
    scheduler = Scripted(
        Decision((Start("2", Placement.whole("all", 1)), Start("1", Placement.whole("all", 2))))
    )
    loop = controller(scheduler)
    loop.step(0, [submitted(0, name, cpus) for name, cpus in (("1", 2), ("2", 1), ("3", 1))])
    loop.step(3, [Tick(3)])
    view = scheduler.views[-1]
    assert view.now == 3
    assert view.free["all"].cpus == 1
    assert [each.job.job_id for each in view.pending] == ["3"]
    assert [each.job.job_id for each in view.running] == ["2", "1"]
    assert view.running[0].elapsed_seconds(view.now) == 3


def test_refused_starts_do_not_reach_the_cluster():
    """A start without room is counted; the job waits on with a reason."""
    twice = tuple(Start(name, Placement.whole("all", 3)) for name in ("1", "2"))
    loop = controller(Scripted(Decision(twice)))
    instructions = loop.step(0, [submitted(0, "1", 3), submitted(0, "2", 3)])
    assert texts(instructions) == ["start 1", "wake 1 at 10"]
    assert loop.counters.refusals == 1
    assert loop.reasons()["2"].code is ReasonCode.NOT_CHOSEN


def test_dependents_start_after_success():
    """Job 2 waits for job 1, says so, and then starts; it is not shown to the scheduler before."""
    scheduler = Fcfs()
    loop = controller(scheduler)
    loop.step(0, [submitted(0, "2", 1, after=["1"]), submitted(0, "1", 1)])
    assert list(loop.running) == ["1"]
    assert loop.reasons()["2"].sentence == "waits for job 1 to complete (afterok)"
    assert texts(loop.step(4, [ended(4, "1")])) == ["start 2", "wake 2 at 14"]


def test_dependents_of_a_failure_are_withdrawn_down_the_line():
    """Job 1 fails: job 2 and job 3, which waits for job 2, will never run; job 4 does."""
    loop = controller(processors=1)
    loop.step(0, [submitted(0, "1", 1)])
    waiting = [
        submitted(1, "2", 1, after=["1"]),
        submitted(1, "3", 1, after=["2"]),
        submitted(1, "4", 1),
    ]
    loop.step(1, waiting)
    instructions = loop.step(2, [ended(2, "1", EndedBecause.FAILED)])
    assert texts(instructions) == ["withdraw 2", "withdraw 3", "start 4", "wake 4 at 12"]
    assert instructions[0].because == "job 1, which it depends on, ended: failed"
    late = loop.step(3, [submitted(3, "5", 1, after=["3"])])
    assert texts(late) == ["withdraw 5"]


def test_a_released_dependent_goes_to_its_place_by_arrival():
    """Job 2 arrived before job 3 and goes before it once job 1 has ended."""
    loop = controller(processors=1)
    loop.step(0, [submitted(0, "1", 1), submitted(0, "2", 1, after=["1"]), submitted(0, "3", 1)])
    assert texts(loop.step(5, [ended(5, "1")])) == ["start 2", "wake 2 at 15"]


def test_a_cancelled_job_leaves_the_queue():
    """The job behind it starts in the same step; one that depends on it is withdrawn."""
    loop = controller(processors=2)
    loop.step(0, [submitted(0, "1", 1), submitted(0, "2", 2), submitted(0, "3", 1)])
    loop.step(0, [submitted(0, "4", 1, after=["2"])])
    instructions = loop.step(1, [Cancelled(1, "2")])
    assert texts(instructions) == ["withdraw 4", "start 3", "wake 3 at 11"]


def test_a_cancellation_that_comes_too_late_is_passed_over():
    """At the same instant the job it depends on fails, and it is withdrawn; later, it has been."""
    loop = controller(processors=1)
    loop.step(0, [submitted(0, "1", 1), submitted(0, "2", 1, after=["1"])])
    instructions = loop.step(1, [Cancelled(1, "2"), ended(1, "1", EndedBecause.FAILED)])
    assert texts(instructions) == ["withdraw 2"]
    assert loop.step(2, [Cancelled(2, "2"), Cancelled(2, "1")]) == []


def test_a_preempted_job_holds_its_cpus_until_it_has_stopped():
    """Preempt tells the cluster; only the reported end frees the cpus and queues the job again."""
    loop = controller(PreemptsOnce("1"))
    loop.step(0, [submitted(0, "1", 4)])
    assert texts(loop.step(1, [submitted(1, "2", 2)])) == ["preempt 1"]
    assert texts(loop.step(2, [Tick(2)])) == []
    stopped = loop.step(3, [ended(3, "1", EndedBecause.PREEMPTED)])
    assert texts(stopped) == ["start 1", "wake 1 at 13"]
    assert [each.job.job_id for each in loop.pending] == ["2"]


def test_draining_starts_nothing_new():
    """What runs ends; what waits is told why; nothing starts."""
    loop = controller(processors=1)
    loop.step(0, [submitted(0, "1", 1), submitted(0, "2", 1)])
    loop.drain()
    assert texts(loop.step(5, [ended(5, "1")])) == []
    assert loop.draining
    assert loop.reasons()["2"].code is ReasonCode.DRAINING
    assert loop.reasons()["2"].sentence


def test_a_job_too_wide_is_never_shown_to_the_scheduler():
    """It waits with a reason that has both numbers, and the job behind it starts."""
    loop = controller()
    instructions = loop.step(0, [submitted(0, "1", 5), submitted(0, "2", 4)])
    assert texts(instructions) == ["start 2", "wake 2 at 10"]
    assert loop.reasons()["1"].sentence == "asks for 5 cpus and the cluster has 4"


def test_every_waiting_job_has_a_reason_with_a_sentence():
    """Whatever it waits for, there is a sentence."""
    loop = controller(Easy(), processors=2)
    events = [
        submitted(0, "1", 2),
        submitted(0, "2", 2),
        submitted(0, "3", 1),
        submitted(0, "4", 9),
        submitted(0, "5", 1, after=["1"]),
    ]
    loop.step(0, events)
    reasons = loop.reasons()
    assert list(reasons) == ["2", "3", "4", "5"]
    assert all(reason.sentence for reason in reasons.values())


def test_a_head_whose_reservation_moves_later_is_counted():
    """Job 1 outlives its estimate, so the reservation of job 2 moves from 10 s to 20 s."""
    loop = controller(Easy(), Constant(10.0))
    loop.step(0, [submitted(0, "1", 4, requested=100)])
    loop.step(1, [submitted(1, "2", 4, requested=100)])
    assert dict(loop.plan) == {"2": 10}
    loop.step(10, [EstimateExpired(10, "1")])
    loop.step(11, [Tick(11)])
    assert dict(loop.plan) == {"2": 20}
    assert loop.counters.delayed_heads == 1


def test_study_conventions_show_no_job_as_running_that_counts_as_gone():
    """At 10 s job 1's cpus are free by expectation, and it is not among the running either."""
    scheduler = Scripted(Decision((Start("1", Placement.whole("all", 3)),)))
    loop = controller(scheduler, conventions=PREDICTSIM)
    loop.step(0, [submitted(0, "1", 3)])
    loop.step(10, [submitted(10, "2", 1), ended(10, "1")])
    before_end, after_end = scheduler.views[1:]
    assert before_end.free["all"].cpus == after_end.free["all"].cpus == 4
    assert before_end.running == after_end.running == ()


@pytest.mark.parametrize(
    ("events", "story"),
    [
        ([ended(1, "1")], "never submitted"),
        ([submitted(1, "0", 1)], "has run since 0 s"),
        ([ended(1, "0"), ended(1, "0")], "ended (completed) at 1 s"),
        ([ended(1, "2")], "was submitted at 0 s and waits"),
        ([Cancelled(1, "9")], "never submitted"),
    ],
)
def test_what_cannot_have_happened_raises_with_the_story(events, story):
    """An impossible event is an error that says what the job has lived through."""
    loop = controller(processors=1)
    loop.step(0, [submitted(0, "0", 1), submitted(0, "2", 1)])
    with pytest.raises(ImpossibleTransition, match="cannot go from") as error:
        loop.step(1, events)
    assert story in str(error.value)


def in_state(state: JobState) -> State:
    """A state in which job ``1`` is here in its life."""
    world = State(Cluster.of_processors(1))
    if state is not JobState.ABSENT:
        world.submit(tiny_pending("1", 1, 5.0), 0.0)
    if state in (JobState.RUNNING, JobState.ENDED):
        world.start("1", Placement.whole("all", 1), 0.0)
    if state is JobState.ENDED:
        world.end(Outcome("1", 0.0, 5.0), 5.0)
    return world


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("transition", TRANSITIONS)
def test_the_table_of_transitions_is_what_the_state_obeys(state, transition):
    """A job goes from where the table says to where it says, and from nowhere else."""
    world = in_state(state)
    passages = {
        "submit": lambda: world.submit(tiny_pending("1", 1, 5.0), 9.0),
        "start": lambda: world.start("1", Placement.whole("all", 1), 9.0),
        "cancel": lambda: world.cancel("1", 9.0),
        "requeue": lambda: world.end(Outcome("1", 0.0, 9.0, EndedBecause.LOST), 9.0),
        "unstart": lambda: world.unstart(NotStarted(9.0, "1", 1, "no", 1.0), 9.0),
        "end": lambda: world.end(Outcome("1", 0.0, 9.0), 9.0),
    }
    source, target = TRANSITIONS[transition]
    if state is source:
        passages[transition]()
        assert world.stage_of("1") is target
    elif transition == "cancel" and state is not JobState.ABSENT:
        assert world.cancel("1", 9.0) == []
        assert world.stage_of("1") is state
    else:
        with pytest.raises(ImpossibleTransition):
            passages[transition]()
        assert world.stage_of("1") is state


def test_infinite_estimates_wake_nobody():
    """A job that is expected to run for ever starts without a wake-up."""
    loop = controller(predictor=Constant(float("inf")))
    assert texts(loop.step(0, [submitted(0, "1", 1)])) == ["start 1"]


def test_a_held_job_waits_behind_those_that_came_later_until_it_is_released():
    loop = controller(processors=1)
    loop.step(0, [submitted(0, "1", 1), submitted(0, "2", 1), submitted(0, "3", 1)])
    assert texts(loop.step(1, [Held(1, "2"), Held(1, "1"), Held(1, "4")])) == []
    assert loop.reasons()["2"].code is ReasonCode.HELD
    assert texts(loop.step(5, [ended(5, "1")])) == ["start 3", "wake 3 at 15"]
    assert not loop.running["3"].backfilled
    assert texts(loop.step(9, [ended(9, "3", start=5)])) == []
    assert texts(loop.step(12, [Released(12, "2"), Released(12, "1")])) == [
        "start 2",
        "wake 2 at 22",
    ]


def test_a_job_may_be_held_behind_another_and_is_withdrawn_with_it():
    loop = controller(processors=2)
    after = [submitted(0, "2", 1, after=["1"]), submitted(0, "3", 1, after=["1"])]
    loop.step(0, [submitted(0, "1", 1), *after, Held(0, "2")])
    assert loop.reasons()["2"].code is ReasonCode.HELD
    assert texts(loop.step(5, [ended(5, "1")])) == ["start 3", "wake 3 at 15"]
    assert [each.job.job_id for each in loop.pending] == ["2"]
    assert loop.step(6, [Cancelled(6, "2")]) == []
    assert not loop.pending
    assert not loop.state.held


def test_a_job_cancelled_while_it_runs_is_stopped_once_and_does_not_go_back():
    loop = controller(processors=1)
    loop.step(0, [submitted(0, "1", 1), submitted(0, "2", 1, after=["1"])])
    assert texts(loop.step(1, [Cancelled(1, "1")])) == ["preempt 1"]
    assert loop.step(2, [Cancelled(2, "1")]) == []
    instructions = loop.step(3, [ended(3, "1", EndedBecause.CANCELLED)])
    assert texts(instructions) == ["withdraw 2"]
    assert not loop.pending


def test_nothing_new_starts_on_a_drained_node_and_coming_up_does_not_change_that():
    """One that is not there is passed over, now and when it comes."""
    nodes = tuple(Node(name, Resources(1.0)) for name in "ab")
    parts = parse_policy("task_fifo").build()
    loop = Controller(Cluster((Partition("all", Resources(2.0), nodes),)), *parts)
    loop.step(0, [submitted(0, "1", 2), NodeDrained(0, "b"), NodeDrained(0, "c")])
    assert dict(loop.running) == {}
    for event in (NodeDown(1, "b"), NodeUp(2, "b")):
        loop.step(event.time, [event])
        assert dict(loop.running) == {}
    loop.step(3, [NodeResumed(3, "b")])
    assert [*loop.running] == ["1"]


class Looking(Scheduler):
    """Starts jobs where it is told to, and keeps what it was shown."""

    def __init__(self, nodes):
        self.nodes = nodes

    def decide(self, view):
        self.free, self.running = view.free["all"].cpus, [each.job.job_id for each in view.running]
        places = ((each.job, self.nodes.get(each.job.job_id)) for each in view.pending)
        return Decision(
            tuple(
                Start(job.job_id, Placement((("all", job.tasks),), ((node, job.tasks),)))
                for job, node in places
                if node
            )
        )


def test_what_runs_on_a_drained_node_takes_no_room_from_the_others():
    """Two nodes of 4 cpus with 3 in use: one is drained and 1 cpu is free, not 1 - 3."""
    nodes = tuple(Node(name, Resources(4.0)) for name in "ab")
    looking = Looking({"1": "a", "2": "b", "3": "a"})
    cluster = Cluster((Partition("all", Resources(8.0), nodes),))
    loop = Controller(cluster, looking, Requested(), Doubling(), STANDARD)
    loop.step(0, [submitted(0, "1", 3), submitted(0, "2", 3), submitted(0, "9", 2)])
    loop.step(1, [NodeDrained(1, "b")])
    assert (looking.free, looking.running) == (1.0, ["1"])
    assert loop.state.free.by_partition()["all"].cpus == 1.0
    loop.step(2, [submitted(2, "3", 1)])
    assert [*loop.running] == ["1", "2", "3"]
    loop.step(3, [ended(3, "2"), Tick(3)])
    assert looking.free == 0.0
    loop.step(4, [NodeResumed(4, "b")])
    assert (looking.free, looking.running) == (4.0, ["1", "3"])


@pytest.mark.parametrize("policy", ["foresail", "easy", "tetrisched,requested", "task_fifo"])
def test_an_undivided_machine_is_drained_as_a_whole(policy):
    """What runs runs on, what it leaves is not used, and a run that takes over knows it."""
    cluster, parts = Cluster.of_processors(4), parse_policy(policy)
    log = MemoryLog(Manifest(policy, cluster))
    loop = Controller(cluster, *parts.build(), log=log)
    loop.step(0, [submitted(0, "1", 3)])
    assert [*loop.running] == ["1"]
    loop.step(1, [NodeDrained(1, "all", "olga"), submitted(1, "2", 1)])
    assert dict(loop.state.free.by_partition()) == {"all": Resources()}
    assert loop.state.free.cpus == 0.0
    assert loop.state.free.of_named("all") == [Resources()]
    assert loop.reasons()["2"].numbers["nodes"] == "all (drained by olga)"
    assert not loop.state.free.has_room(Job.gang("3", 0.0, 1), Placement.whole("all", 1))
    loop.step(2, [ended(2, "1"), Tick(2)])
    assert (dict(loop.running), loop.state.free.cpus) == ({}, 0.0)
    again = Controller(cluster, *parts.build())
    fold = RunFold(again.compares_with)
    for record in log.records:
        fold.take(record)
    again.take_over(fold)
    for each in (loop, again):
        each.step(3, [Tick(3)])
        assert not each.running
        each.step(4, [NodeResumed(4, "all"), NodeResumed(4, "all")])
        assert [*each.running] == ["2"]
        assert each.state.free.cpus == 3.0


def test_who_compares_takes_over_only_what_has_told_its_reference():
    """Else a job would be due later than in the run that was interrupted, and nobody would know."""
    cluster = Cluster.of_processors(4)
    loop = Controller(cluster, *parse_policy("guarded,requested,requested").build())
    run, alone = RunFold(loop.compares_with), RunFold()
    for fold in (run, alone):
        fold.take(Manifest("guarded,requested,requested", cluster))
    with pytest.raises(ValueError, match="compares otherwise"):
        loop.take_over(alone)
    loop.take_over(run)
    plain = Controller(cluster, *parse_policy("easy,requested,requested").build())
    with pytest.raises(ValueError, match="compares otherwise"):
        plain.take_over(run)
