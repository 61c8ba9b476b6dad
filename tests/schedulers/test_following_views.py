"""A queue that follows views decides as one that is made anew from each of them.

How little it looks at is counted, not timed.
"""

import random
from dataclasses import replace

import pytest

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.control.waiting_reasons import _scarce
from foresail.distributions.basic import Uniform
from foresail.explain.run_snapshot import LogClock, LogFold
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.containers import Roster
from foresail.model.decision import ReasonCode
from foresail.model.event import (
    PREDICTSIM,
    STANDARD,
    Cancelled,
    Ended,
    EndedBecause,
    EstimateExpired,
    Outcome,
    Submitted,
)
from foresail.model.job import Job, Stage
from foresail.model.protocols import Predictor, Scheduler
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest, ReasonsChanged
from foresail.record.state import State
from foresail.scenario.beginning import controller_of, manifest_of
from foresail.scenario.by_events import run_by_events
from foresail.scenario.scenario import Scenario

POLICIES = (
    "easy",
    "easy(order=shortest,reservations=3)",
    "easy(queue=slowdown,order=shortest,age_limit_seconds=60)",
    "easy(order=max(q50,10)/probe)",
    "guarded(patience=0.1)",
    "conservative",
    "fcfs",
)
MOVE_ON = (ReasonCode.BEHIND, ReasonCode.WOULD_DELAY)
NO_ROOM = ReasonCode.NO_ROOM
CLUSTER = Cluster(
    (
        Partition("left", Resources(8.0, 10.0, 2.0)),
        Partition("right", Resources(2.5, 4.0)),
    )
)


class Witness(Scheduler):
    """Compares every decision with that of a scheduler that knows of no earlier view."""

    def __init__(self, build):
        self._build = build
        self._following = build()
        self.planned_seconds = self._following.planned_seconds
        if hasattr(self._following, "reference"):
            self.reference = self._following.reference
        self.compared = 0

    def decide(self, view):
        decision = self._following.decide(view)
        told = dict(decision.reasons)
        copied = replace(view, pending=tuple(view.pending), running=tuple(view.running))
        fresh = self._build().decide(copied)
        assert (decision.starts, decision.plan) == (fresh.starts, fresh.plan)
        assert told == dict(fresh.reasons)
        assert self._following.decide(view) == fresh
        self.compared += 1
        return fresh if self.compared % 3 == 0 else self._following.decide(view)


class Wavering(Predictor):
    """Believes something else whenever it is asked."""

    def __init__(self, draw):
        self._draw = draw

    def predict(self, job, now):
        del job, now
        low = self._draw.uniform(1.0, 20.0)
        return Uniform(low, low + self._draw.uniform(1.0, 30.0))

    refreshed = predict

    def observe(self, job, outcome):
        pass


class Likening(Wavering):
    """Believes the same of all jobs that wait and are alike."""

    likens_jobs = True

    def refreshed(self, job, now):
        low = random.Random(repr((job.likeness, now))).uniform(1.0, 20.0)
        return Uniform(low, 2.0 * low)


class Doubling:
    def correct(self, job, prediction, initial, current, corrections):
        del job, prediction, initial, corrections
        return 2.0 * current


def some_job(draw, number, now, shares):
    low, middle, high = shares
    cpus = draw.choice((low, middle, 1.0, 1.0, 2.0))
    memory, gpus = draw.choice((0.0, 0.0, high, 2.0)), draw.choice((0.0, 0.0, 0.0, 0.5))
    stage = Stage(draw.randint(1, 3), Resources(cpus, memory, gpus))
    return Job(
        str(number),
        now,
        (stage,),
        draw.choice((None, 20.0, 50.0)),
        draw.choice(("ann", "bob")),
        partition=draw.choice((None, "left", "right", "nowhere")),
        after=() if number < 3 or draw.random() < 0.8 else (str(draw.randrange(number)),),
    )


def led_through_a_day(loop, draw, shares=(0.1, 0.3, 0.7)):
    """Jobs that come, end, are lost and cancelled; hands the controller out after each step.

    Some ask for shares of a cpu and of memory.
    """
    now, number = 0.0, 0
    for _ in range(150):
        now += draw.choice((0.0, 0.1, 3.0, 9.0))
        events = []
        for _ in range(draw.choice((0, 1, 1, 2, 5))):
            events.append(Submitted(now, some_job(draw, number, now, shares)))
            number += 1
        for job_id, running in list(loop.running.items()):
            if draw.random() < 0.25:
                because = draw.choice([*[*EndedBecause][:3], EndedBecause.LOST])
                events.append(Ended(now, Outcome(job_id, running.start_seconds, now, because)))
            elif running.expected_end_seconds <= now and draw.random() < 0.8:
                events.append(EstimateExpired(now, job_id))
        if loop.pending and draw.random() < 0.1:
            events.append(Cancelled(now, draw.choice(loop.pending).job.job_id))
        loop.step(now, events)
        yield loop


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=["standard", "predictsim"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("predictor", [Wavering, Likening])
def test_it_decides_as_if_it_had_seen_nothing_before(predictor, policy, conventions):
    draw = random.Random(repr((policy, conventions.name)))
    witness = Witness(parse_policy(policy).scheduler.build)
    loop = Controller(CLUSTER, witness, predictor(draw), Doubling(), conventions)
    for _ in led_through_a_day(loop, draw):
        pass
    assert witness.compared > 60


@pytest.mark.parametrize("policy", ["foresail", "easy(queue=shortest)"])
def test_jobs_alike_are_asked_about_once_and_all_believed_the_same(policy):
    """One controller asks about one job of a kind, the other about each: all else is the same."""
    scheduler = parse_policy(policy).scheduler.build
    draws = [random.Random(7), random.Random(7)]
    once, each = (Likening(draw) for draw in draws)
    each.likens_jobs = False
    asked = {once: 0, each: 0}

    def count(predictor):
        refreshed = predictor.all_refreshed

        def counted(jobs, now):
            asked[predictor] += len(jobs)
            return refreshed(jobs, now)

        predictor.all_refreshed = counted

    logs, days = [], []
    for predictor, draw in zip((once, each), draws, strict=True):
        count(predictor)
        logs.append(MemoryLog(Manifest(policy, CLUSTER)))
        loop = Controller(CLUSTER, scheduler(), predictor, Doubling(), log=logs[-1])
        days.append(led_through_a_day(loop, draw))
    for one, other in zip(*days, strict=True):
        assert one.pending == other.pending
        assert [*one.running.values()] == [*other.running.values()]
        for queue in one.scheduler._queues:  # of partitions, which plan with the beliefs there
            for pending in queue.table.waiting():
                known = one.state.startable.get(pending.job.job_id)
                assert known is None or known.prediction == pending.prediction
    assert logs[0].records == logs[1].records
    assert 0 < asked[once] < asked[each]


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=["standard", "predictsim"])
@pytest.mark.parametrize(
    ("policy", "series"),
    [
        *((each, "") for each in POLICIES),
        ("easy(queue=slowdown,order=shortest,age_limit_seconds=60)", "29"),
    ],
)
def test_the_log_tells_each_reason_that_has_become_another(policy, series, conventions):
    """What is read from the log of each job is what the controller says when asked.

    Of a reason that was told before and is of the same kind these numbers may be others by now: how
    many are ahead, whom it would delay, and what was free where no single resource lacks.
    """
    draw, shares = random.Random(f"{(policy, conventions.name)!r}{series}"), (0.125, 0.25, 0.75)
    log = MemoryLog(Manifest(policy, CLUSTER, conventions))
    parts = parse_policy(policy).scheduler.build(), Wavering(draw), Doubling()
    told, clock, seen, whole, compared = LogFold(), LogClock(), 0, 0, 0
    for loop in led_through_a_day(Controller(CLUSTER, *parts, conventions, log), draw, shares):
        news = set()
        for record in log.records[seen:]:
            clock.see(record)
            told.follow(record)
            if isinstance(record, ReasonsChanged):
                assert news.isdisjoint(record.reasons.job_ids)
                news.update(record.reasons.job_ids)
        seen = len(log.records)
        if draw.random() < 0.6:  # some steps will do
            continue
        reasons = loop.reasons()
        assert news <= reasons.keys()
        for waiting in told.snapshot(loop.now, clock).waiting:
            job, read = waiting.pending.job, waiting.reason
            reason = reasons[job.job_id]
            assert read.code == reason.code
            is_whole = job.job_id in news or not (
                reason.code in MOVE_ON or (reason.code is NO_ROOM and not _scarce(job, loop.state))
            )
            assert not is_whole or replace(read, numbers=reason.numbers) == reason
            assert not is_whole or read.numbers == pytest.approx(reason.numbers)
            whole, compared = whole + is_whole, compared + 1
    assert whole > 0.6 * compared > 200


def backlog(waiting, stream):
    """Jobs that wait from the beginning, and more that come as quickly as the machine works."""
    draw = random.Random(1)
    seconds = [*[0.0] * waiting, *(5.0 * number for number in range(stream))]
    rows = [(submit, draw.randint(1, 4), draw.randint(1, 10), 20.0) for submit in seconds]
    return tiny_workload(rows)


@pytest.mark.parametrize("logged", [False, True], ids=["without a log", "with a log"])
def test_few_of_those_who_wait_are_visited(logged, monkeypatch):
    """Ten times as many wait, and no more of them are looked at in an event."""
    visits = []

    def count(owner, name):
        visit = getattr(owner, name)

        def counted(self):
            visited = visit(self)
            visits.append(len(visited))
            return visited

        monkeypatch.setattr(owner, name, counted)

    count(Roster, "in_order")
    count(State, "pending")
    policy = parse_policy("easy")
    for waiting in (200, 2_000):
        visits.clear()
        workload = backlog(waiting, 300)
        scenario = Scenario(workload, policy)
        log = MemoryLog(manifest_of(scenario)) if logged else None
        run_by_events(scenario, controller_of(scenario, log))
        events = 2 * len(workload)
        assert sum(visits) < 4 * events


def test_a_job_too_wide_for_each_of_several_partitions_is_told_so():
    """It fits the cluster, and no partition: the log has a reason for it, once."""
    log = MemoryLog(Manifest("easy", CLUSTER))
    controller = Controller(CLUSTER, *parse_policy("easy").build(), log=log)
    for now, width in ((0.0, 8), (1.0, 8), (2.0, 9), (3.0, 1)):
        controller.step(now, [Submitted(now, Job.gang(f"j{now:g}", now, width))])
    told = [each.reasons.code for each in log.records if isinstance(each, ReasonsChanged)]
    assert told.count(ReasonCode.TOO_WIDE) == 1


@pytest.mark.parametrize("policy", ["easy", "conservative"])  # one tells in columns
def test_a_record_of_the_log_has_reasons_of_a_thousand_jobs_at_most(policy):
    """Each job's numbers are its own, as the controller answers; a story reads one piece."""
    log = MemoryLog(Manifest("easy", CLUSTER))
    controller = Controller(CLUSTER, *parse_policy(policy).build(), log=log)
    jobs = [Job.gang(f"j{number}", 0.0, 1 + number % 3) for number in range(2_300)]
    controller.step(0.0, [Submitted(0.0, job) for job in jobs])
    told = [each.reasons for each in log.records if isinstance(each, ReasonsChanged)]
    assert max(len(each.job_ids) for each in told) == 1_000
    reasons = [pair for each in told for pair in each.items()]
    waiting = [each.job.job_id for each in controller.state.pending()]
    assert sorted(job_id for job_id, _ in reasons) == sorted(waiting)
    assert dict(reasons) == controller.reasons_of(waiting)
