"""A moment rebuilt from the log is what the controller itself knew at that instant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.empirical import Empirical
from foresail.explain.run_snapshot import LogFold, extent_of, snapshot_of
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, PlannedStart, ReasonCode, Start
from foresail.model.errors import InputError
from foresail.model.event import (
    IN_CYCLES,
    PREDICTSIM,
    STANDARD,
    Cancelled,
    Ended,
    Outcome,
    Submitted,
    Tick,
)
from foresail.model.job import Job
from foresail.model.protocols import Scheduler
from foresail.record.beliefs import LEVELS, belief_of, kept
from foresail.record.log_text import JsonLinesLog, LogClock, MemoryLog, read_log
from foresail.record.records import Decided, EventTaken, Manifest, Predicted
from foresail.simulator.conditions import ClusterConditions, random_outages
from foresail.simulator.engine import simulate_events
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from long_series import of_a_series
from made_moments import racks
from toys import Constant, Doubling, Easy, PreemptsOnce, Requested

MANIFEST = Manifest("toy", Cluster.of_processors(4))


class Spied(Controller):
    """A controller that notes its own state after every step."""

    def __init__(self, *arguments, **named):
        Controller.__init__(self, *arguments, **named)
        self.seen = []

    def step(self, now, events):
        told = Controller.step(self, now, events)
        self.seen.append(
            {
                "now": now,
                "running": {name: (each, each.prediction) for name, each in self.running.items()},
                "waiting": {each.job.job_id: each for each in self.pending},
                "plan": dict(self.plan),
                "reasons": self.reasons(),
                "stopping": frozenset(self.state.stopping),
                "idle": sum(room.cpus for room in self.state.free.by_partition().values()),
            }
        )
        return told


def assert_same(moment, known):
    """The moment agrees with what a spy has noted."""
    assert [each.job.job_id for each in moment.running] == list(known["running"])
    for each in moment.running:
        real, belief = known["running"][each.job.job_id]
        assert each.job == real.job
        assert (each.start_seconds, each.placement) == (real.start_seconds, real.placement)
        assert (each.start_order, each.corrections) == (real.start_order, real.corrections)
        assert each.expected_end_seconds == real.expected_end_seconds
        assert_alike(each.prediction, belief)
    assert [each.pending.job.job_id for each in moment.waiting] == list(known["waiting"])
    for each in moment.waiting:
        name = each.pending.job.job_id
        real = known["waiting"][name]
        assert (each.pending.job, each.pending.arrival) == (real.job, real.arrival)
        assert each.pending.planned_seconds == real.planned_seconds
        assert_alike(each.pending.prediction, real.prediction)
        assert each.reason.code is known["reasons"][name].code
        if name in known["plan"]:
            assert each.planned.start_seconds == pytest.approx(known["plan"][name], abs=1e-3)
        else:
            assert each.planned is None
    assert moment.stopping == known["stopping"]
    assert moment.idle_cpus == pytest.approx(known["idle"])


def assert_alike(kept, real):
    """Quantiles that are kept are the belief's own, to four digits."""
    for level in (0.05, 0.9):
        assert kept.quantile(level) == pytest.approx(real.quantile(level), rel=1e-3, abs=1e-3)


def spied(workload, parts, cluster, conditions=None, conventions=IN_CYCLES):
    """The records of a run, and what its controller knew after each step."""
    log = MemoryLog(Manifest("toy", cluster))
    controller = Spied(cluster, *parts, conventions, log)
    simulate_events(workload, controller, "toy", conditions=conditions or ClusterConditions())
    return log.records, controller.seen


def all_moments(records, seen):
    """Every step's moment, from one reading of the log."""
    clock, fold = LogClock(), LogFold()
    known = iter(seen)
    current = next(known)
    step = 0
    for record in records:
        if getattr(record, "step", step) != step:
            step += 1
            yield fold.snapshot(current["now"], clock), current
            current = next(known)
        clock.see(record)
        fold.follow(record)
    yield fold.snapshot(current["now"], clock), current


def contested(seed=4):
    """Twenty-four nodes full of long jobs, urgent ones that come later, and chains of jobs."""
    random = np.random.default_rng(seed)
    count = 40
    urgent = np.arange(count) % 2 == 1
    submits = np.where(urgent, 60.0, 0.0) + np.sort(random.uniform(0.0, 1200.0, count))
    runtimes = np.where(urgent, random.uniform(50, 200, count), random.uniform(300, 1500, count))
    order = np.argsort(submits)
    deadlines = np.where(urgent, submits + 2.0 * runtimes, np.nan)[order]
    table = jobs_table(
        {
            "job_id": [str(number) for number in range(count)],
            "submit_seconds": submits[order],
            "tasks": random.integers(2, 14, count),
            "runtime_seconds": runtimes[order],
            "requested_seconds": 1.5 * runtimes[order],
            "user": [f"u{number % 3}" for number in range(count)],
            "deadline_seconds": [None if np.isnan(each) else float(each) for each in deadlines],
            "preferred": ["partition:rack1,rack2" if at % 5 == 0 else None for at in range(count)],
            "slowdown_elsewhere": [1.5 if at % 5 == 0 else None for at in range(count)],
            "after_jobs": [str(at - 4) if at % 9 == 8 else None for at in range(count)],
        }
    )
    return Workload(table, WorkloadMeta("contested", "hand", 24))


@pytest.mark.parametrize(
    "policy",
    [
        "3sigma(relative_gap=9),history,exponential_increment",
        "prio,recent,doubling",
        "tetrisched",
    ],
)
def test_moments_of_a_cluster_with_nodes(policy):
    """With preemption, outages, corrections and dependencies, after every step."""
    cluster = racks(3, 8)
    conditions = ClusterConditions(
        cycle_seconds=20.0, outages=random_outages(cluster, 1500.0, 8000.0, 120.0, 2)
    )
    parts = parse_policy(policy).build()
    records, seen = spied(contested(), parts, cluster, conditions)
    moments = list(all_moments(records, seen))
    assert len(moments) == len(seen) > 100
    for moment, known in moments:
        assert_same(moment, known)
    if policy != "tetrisched":  # it stops nobody, and is told runtimes that are long enough
        assert any(moment.stopping for moment, _ in moments)
        assert any(each.corrections for moment, _ in moments for each in moment.running)
    assert any(moment.down for moment, _ in moments)
    waits = {each.reason.code for moment, _ in moments for each in moment.waiting}
    assert "dependency" in waits
    for known in seen[::40]:
        last = [each for each in seen if each["now"] == known["now"]][-1]
        assert_same(snapshot_of(records, known["now"]), last)


@given(
    policy=st.sampled_from(
        [
            "easy(order=shortest),similar,incremental",
            "conservative,recent,doubling",
            "guarded(patience=0.1),similar,incremental",
            "capacity(cycle_seconds=20),recent,doubling",
            "prio,similar,doubling",
            "3sigma(relative_gap=9),similar,exponential_increment",
        ]
    ),
    conventions=st.sampled_from([STANDARD, IN_CYCLES]),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=of_a_series(10, short=5), deadline=None)
def test_every_moment_of_random_runs_is_what_the_controller_says(policy, conventions, seed):
    """Running, waiting, reasons, plan, whatever is drawn: folded from records alone."""
    has_nodes = policy.startswith(("prio", "3sigma"))
    cluster = racks(3, 8) if has_nodes else Cluster.of_processors(24)
    outages = random_outages(cluster, 1500.0, 8000.0, 120.0, seed) if has_nodes else ()
    conditions = ClusterConditions(cycle_seconds=20.0, outages=outages)
    parts = parse_policy(policy).build()
    records, seen = spied(contested(seed), parts, cluster, conditions, conventions)
    moments = list(all_moments(records, seen))
    assert len(moments) == len(seen) > 50
    for moment, known in moments:
        assert_same(moment, known)
        for each in moment.waiting:
            said = known["reasons"][each.pending.job.job_id].numbers
            if each.reason.code is ReasonCode.RESERVED:
                assert each.reason.numbers["start"] == pytest.approx(said["start"], abs=1e-3)


@pytest.mark.parametrize(
    "policy", ["easy(order=shortest),similar,incremental", "conservative,recent,doubling"]
)
@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM])
def test_moments_of_a_pool_of_processors(policy, conventions):
    """Beliefs that change while jobs wait, plans at fixed times, several passes an instant."""
    random = np.random.default_rng(1)
    jobs = [
        (float(at), int(random.integers(1, 5)), float(random.integers(5, 900)), 2000.0)
        for at in sorted(random.integers(0, 2500, 60))
    ]
    parts = parse_policy(policy).build()
    records, seen = spied(
        tiny_workload(jobs), parts, Cluster.of_processors(4), conventions=conventions
    )
    for moment, known in all_moments(records, seen):
        if conventions is STANDARD:
            assert_same(moment, known)
        else:  # it may start jobs on processors that are only expected to be free
            assert [each.job.job_id for each in moment.running] == list(known["running"])
            planned = {each.pending.job.job_id: each.planned for each in moment.waiting}
            for name, start in known["plan"].items():
                assert planned[name].start_seconds == pytest.approx(start)


def test_preempted_jobs_wait_again_with_their_first_belief():
    """After a stop the job is in its place in the queue, and its first attempt is past."""
    records, seen = spied(
        tiny_workload([(0, 4, 100, 150), (30, 4, 10, 20)]),
        (PreemptsOnce("1"), Requested(), Doubling()),
        Cluster.of_processors(4),
        conventions=STANDARD,
    )
    for moment, known in all_moments(records, seen):
        assert_same(moment, known)
    (first,) = (each for each in snapshot_of(records, 31.0).past if each.job.job_id == "1")
    ended = first.outcome
    assert (ended.start_seconds, ended.end_seconds, ended.ended_because) == (0, 30, "preempted")


def test_a_drain_ends_the_plan():
    """Nothing is planned once nothing new is started, and the reasons say so."""
    log = MemoryLog(MANIFEST)
    controller = Controller(Cluster.of_processors(4), Easy(), Constant(50), Doubling(), log=log)
    jobs = [Job.gang(name, 0, 3) for name in ("1", "2", "3")]
    controller.step(0, [Submitted(0, job) for job in jobs])
    assert [each.planned is not None for each in snapshot_of(log.records, 0).waiting] == [
        True,
        False,
    ]
    controller.drain()
    controller.step(5, [Cancelled(5, "3")])
    moment = snapshot_of(log.records, 5)
    assert moment.draining
    assert [(each.pending.job.job_id, each.planned) for each in moment.waiting] == [("2", None)]
    assert moment.waiting[0].reason.code == "draining"
    controller.reopen()
    controller.step(9, [Ended(9, Outcome("1", 0, 9))])
    assert [each.job.job_id for each in snapshot_of(log.records, 9).running] == ["2"]


def test_a_log_on_disk_gives_the_same_moment(tmp_path):
    """Also without its torn last line, up to what is whole; a time of day is no second zero."""
    path = tmp_path / "events.jsonl"
    zero = 1_700_006_400.0
    jobs = tiny_workload([(zero, 4, 100, 7200), (zero + 5, 2, 1800, 7200)])
    with JsonLinesLog(path, MANIFEST) as log:
        controller = Controller(MANIFEST.cluster, Easy(), Constant(1200.0), Doubling(), log=log)
        simulate_events(jobs, controller, "toy")
    records = list(read_log(path))
    extent = extent_of(records)
    assert extent.zero_seconds == zero
    assert extent.busiest_seconds == zero + 5
    assert extent.end_seconds == zero + 1900
    moment = snapshot_of(records, zero + 5)
    assert moment.since_start == 5
    assert moment.waiting[0].planned.start_seconds == zero + 1200
    path.write_bytes(path.read_bytes()[:-7])
    assert snapshot_of(list(read_log(path)), zero + 5) == moment


def test_logs_that_cannot_be_are_named():
    """A log of nothing, and one whose beginning is missing."""
    with pytest.raises(InputError, match="no scheduling pass"):
        extent_of([MANIFEST], "events.jsonl")
    end = EventTaken(0, 5.0, Ended(5.0, Outcome("9", 0, 5)))
    with pytest.raises(InputError, match=r"never submitted.*9"):
        snapshot_of([MANIFEST, end], 10.0)


def test_logs_without_quantiles_tell_the_range_they_have():
    """What was logged before beliefs were kept: a straight line through its three quantiles."""
    old = Predicted(0, 0.0, "1", 600.0, 60.0, 300.0, 3600.0, 900.0)
    assert [belief_of(old).quantile(level) for level in (0.1, 0.5, 0.9)] == [60, 300, 3600]
    assert belief_of(Predicted(0, 0.0, "1", 600.0, 600.0, 600.0, 600.0, 600.0)).mean() == 600


@given(seconds=st.lists(st.floats(0.0, 1e7), min_size=2, max_size=40))
def test_kept_quantiles_are_those_of_the_belief(seconds):
    """Any sample: every level that is kept agrees to four digits."""
    belief = Empirical(seconds)
    values = kept(belief)
    if not values:
        assert belief.quantile(0.005) == belief.quantile(0.9999)
        return
    assert len(values) == len(LEVELS)
    for level, value in zip(LEVELS, values, strict=True):
        assert value == pytest.approx(belief.quantile(level), rel=1e-3)


def test_plans_that_slide_are_told_once():
    """A plan that counts from now is told when it changes, not at every pass."""
    log = MemoryLog(MANIFEST)
    controller = Controller(MANIFEST.cluster, _Slots(), Constant(50.0), Doubling(), log=log)
    controller.step(0, [Submitted(0, Job.gang(name, 0, 3)) for name in ("1", "2", "3")])
    for second in range(1, 6):
        controller.step(second, [Tick(second)])
    told = [each.plan for each in log.records if isinstance(each, Decided)]
    assert told == [{"2": 60.0, "3": 120.0}, {}, {}, {"2": 123.0}, {}, {}]
    starts = {
        each.pending.job.job_id: each.planned.start_seconds
        for each in snapshot_of(log.records, 5).waiting
        if each.planned
    }
    assert starts == {"2": 125.0, "3": 125.0}


class _Slots(Scheduler):
    """Starts the first job, and plans the others in slots of a minute from now."""

    def decide(self, view):
        waiting = [each.job.job_id for each in view.pending]
        starts = (Start("1", Placement.whole("all", 3)),) if "1" in waiting else ()
        slots = {"2": 1.0 if view.now < 3 else 2.0, "3": 2.0}
        plan = tuple(
            PlannedStart(name, view.now + 60.0 * slots[name], Placement.whole("all", 3))
            for name in waiting
            if name in slots
        )
        return Decision(starts, plan=plan)
