"""Forecasts of a long queue: those drawn last are given, and tell when that was."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

from foresail.cli._service import start_cell
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point, Uniform
from foresail.explain.forecast import Range, WaitingForecast, WaitingForecasts
from foresail.explain.job_columns import columns_of
from foresail.explain.outlook import WaitingJobs, outlook_of
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.event import NodeDrained, Submitted
from foresail.model.job import Job, StartConditions
from foresail.model.view import PendingJob, RunningJob
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.service import queue_forecasts
from foresail.service import slow_answers as module
from foresail.service.api.forecasts import forecast_answer
from foresail.service.api.service import plan, waiting_bar
from foresail.service.queue_forecasts import (
    Forecasts,
    PastForecasts,
    StandInRecord,
    _horizon,
    drawn_forecasts,
)
from foresail.service.slow_answers import QueueForecaster, slowly
from foresail.service.snapshots import DaemonBusy
from foresail.service.store.protocol import ForecastKind, ForecastOutcome, ForecastRow
from in_loop import in_loop

SOON = Range(1.0, 2.0, 3.0)


class SnapshotCache:
    """Is asked how things stand."""

    def __init__(self, waiting):
        self.asked = 0
        self.waiting = waiting
        self.estimates = {}

    async def ask(self, question):
        self.asked += 1
        now = float(self.asked)
        return now, lambda: SimpleNamespace(now=now, waiting=self.waiting)


class Store:
    """Keeps only how many were given at once."""

    def __init__(self):
        self.given = []

    def forecast_outcomes(self, most, now):
        return []

    def last_forecasts(self):
        return {}

    def keep_forecasts(self, rows):
        self.given.append([(row.job_id, row.kind) for row in rows])


def forecaster(monkeypatch, seconds, jobs):
    """One whose forecasts take so long to draw."""

    def drawn(outlook, starts, past, alike=None):
        time.sleep(seconds)
        count, places = len(jobs), outlook.waiting.jobs.places
        starts = np.repeat([[SOON.low], [SOON.median], [SOON.high]], count, axis=1)
        nothing = np.zeros(count)
        shares = nothing, np.full(count, np.nan), np.full(count, -1.0), nothing, nothing
        waiting = WaitingForecasts(places, starts, starts, starts, *shares)
        return Forecasts(outlook, waiting, waiting, {}, frozenset(), {})

    monkeypatch.setattr(module, "drawn_forecasts", drawn)
    monkeypatch.setattr(module, "front_of", lambda outlook, _: outlook)
    waiting = [PendingJob(Job.gang(each, 0.0, 1), 0, Point(60.0), 60.0) for each in jobs]
    columns = [np.zeros(len(jobs))] * 5
    snapshots = SnapshotCache(WaitingJobs(columns_of(waiting), *columns))
    compiler = SimpleNamespace(compile=lambda: None, is_stopped=False)
    return QueueForecaster(snapshots, Store(), compiler), snapshots


def test_a_service_that_ends_draws_none(monkeypatch):
    """It would compile in this process what the one apart has not, and not end meanwhile."""
    made, _ = forecaster(monkeypatch, 0.0, ("1",))
    made._compiler.is_stopped = True
    with pytest.raises(DaemonBusy):
        asyncio.run(made.ahead())


@in_loop
async def test_a_job_of_a_long_queue_is_told_by_the_forecasts_drawn_last(monkeypatch):
    monkeypatch.setattr(module, "_QUICK_SECONDS", 0.05)
    monkeypatch.setattr(module, "_MANY", 1)

    made, snapshots = forecaster(monkeypatch, 0.2, ("1", "2"))
    first = await made.of_job("1")
    begin = time.monotonic()
    again = [await made.of_job("2") for _ in range(50)]
    seconds, asked = time.monotonic() - begin, snapshots.asked
    assert first.outlook.now == 1.0
    assert {id(each) for each in again} == {id(first)}
    assert seconds < 0.15
    assert asked == 1


@in_loop
async def test_of_a_short_queue_each_is_made_as_things_stand(monkeypatch):
    made, _ = forecaster(monkeypatch, 0.0, ("1",))
    assert [(await made.of_job("1")).outlook.now for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


@in_loop
async def test_forecasts_that_are_being_made_are_not_taken_for_those_of_now(monkeypatch):
    """What was noted before the question says nothing of what has ended since."""
    monkeypatch.setattr(module, "_FORECAST_SECONDS", 0.0)
    monkeypatch.setattr(module, "_REST_ASKED", 0.0)

    made, snapshots = forecaster(monkeypatch, 0.1, ("1",))
    await made.of_job("1")
    others = asyncio.create_task(made.latest(()))
    await asyncio.sleep(0.02)
    asked, found = snapshots.asked, await made.of_job("1")
    await others
    assert (asked, found.outlook.now) == (2, 3.0)


@in_loop
async def test_forecasts_of_a_stream_of_new_jobs_leave_time_to_others(monkeypatch):
    """Who asks soon after is told those of before, or waits until the next may be drawn."""
    made, snapshots = forecaster(monkeypatch, 0.05, ("1",))
    await made.of_job("1")
    await made.latest(["1"], 1.0)
    asked = snapshots.asked
    await made.latest(["new"], 0.02)
    soon = snapshots.asked - asked
    await made.latest(["new"], 1.0)
    assert (soon, snapshots.asked - asked) == (0, 1)


@in_loop
async def test_what_compiles_under_a_short_queue_keeps_nobody_from_later_forecasts(monkeypatch):
    """Nor does anything else wait behind it."""
    made, _ = forecaster(monkeypatch, 0.2, ("1",))
    await made.of_job("1")
    others = [asyncio.create_task(made.ahead()) for _ in range(4)]
    await asyncio.sleep(0.01)
    begin = time.monotonic()
    await slowly(int)
    waited = time.monotonic() - begin
    await asyncio.gather(*others)
    monkeypatch.setattr(module, "_FORECAST_SECONDS", 0.0)
    before = (await made.latest(("1",))).outlook.now
    await asyncio.sleep(0.4)
    await made.latest(("1",))
    await asyncio.sleep(0.4)
    after = (await made.latest(("1",))).outlook.now
    assert waited < 0.1
    assert after > before


@in_loop
async def test_nobody_waits_longer_than_for_a_while(monkeypatch):
    """Neither for the first ones, nor for ones with a job that the last ones do not know."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(module, "_QUICK_SECONDS", 0.05)
    monkeypatch.setattr(module, "_MANY", 0)

    made, _ = forecaster(monkeypatch, 0.3, ("1",))
    begin = time.monotonic()
    nothing = [await made.of_job("1") for _ in range(3)]
    waited = time.monotonic() - begin
    await asyncio.sleep(0.4)
    begin = time.monotonic()
    unknown = await made.of_job("new")
    then = time.monotonic() - begin
    assert nothing == [None] * 3
    assert unknown is None
    assert waited < 0.2
    assert then < 0.1


def running(*job_ids):
    return tuple(SimpleNamespace(job=SimpleNamespace(job_id=each)) for each in job_ids)


@in_loop
async def test_ends_of_all_that_runs_are_drawn_once(monkeypatch):
    """By what has been learned, not by what the policy believes; anew for another snapshot."""
    drawn, runs, fewer = [], running("a", "b"), running("b")

    def draw(running, now, learned):
        drawn.append((running, learned.__name__))
        return {each.job.job_id: SOON for each in running}

    made, _ = forecaster(monkeypatch, 0.0, ())
    monkeypatch.setattr(module, "forecast_running", draw)
    first = [await made.ends(runs, now) for now in (10.0, 10.5)]
    await made.ends(runs, 20.0)
    await made.ends(fewer, 20.0)
    assert first == [{"a": SOON, "b": SOON}] * 2
    assert drawn == [(runs, "draw"), (runs, "draw"), (fewer, "draw")]


@in_loop
async def test_ends_that_take_long_to_draw_are_those_of_before(monkeypatch):
    """And a new job's the one that the policy believes in; one drawing goes on, and is taken."""
    monkeypatch.setattr(module, "_READER_SECONDS", 0.05)
    may_draw, drawn = Event(), []

    def draw(running, now, learned):
        drawn.append(now)
        assert may_draw.wait(10.0)
        return {each.job.job_id: SOON for each in running}

    made, _ = forecaster(monkeypatch, 0.0, ())
    monkeypatch.setattr(module, "forecast_running", draw)
    may_draw.set()
    await made.ends(running("a"), 10.0)
    may_draw.clear()
    place = Placement.whole("all", 1)
    limited = RunningJob(Job.gang("b", 0.0, 1, 26.0), 10.0, 1, place, Uniform(20.0, 40.0), 36.0)
    outlived = RunningJob(Job.gang("c", 0.0, 1), 10.0, 2, place, Point(1.0), 11.0)
    now = (*running("a"), limited, outlived)
    waiting = [await made.ends(now, 20.0 + at) for at in range(3)]
    may_draw.set()
    await made.ends(now, 20.0)
    before, after = waiting, await made.ends(now, 20.0)
    ends = [
        {job_id: each.end for job_id, each in found.items() if job_id != "a"} for found in before
    ]
    moments = (20.0, 21.0, 22.0)
    assert ends == [{"b": Range(32.0, 36.0, 36.0), "c": Range(now, now, now)} for now in moments]
    assert [each["a"] for each in before] == [SOON] * 3
    assert after == dict.fromkeys("abc", SOON)
    assert drawn == [10.0, 20.0]


def test_who_waits_no_more_is_not_in_the_plan():
    """Forecasts are some seconds old, of a long queue more: what has ended since is not to come."""
    forecasts = SimpleNamespace(
        unknown=(),
        doubt=lambda job_id: None,
        soonest={job_id: Job.gang(job_id, 0.0, 1) for job_id in "12"},
        waiting=dict.fromkeys("12", WaitingForecast(SOON, SOON, SOON, 0.0, None)),
    )

    async def latest(waiting):
        return forecasts

    async def ends(running, now):
        return {}

    async def look(fresh_seconds):
        cluster = Cluster.of_processors(1)
        return SimpleNamespace(running=(), cluster=cluster, unix_seconds=1.0, pending=1)

    parts = SimpleNamespace(
        snapshots=SimpleNamespace(look=look),
        forecaster=SimpleNamespace(latest=latest, ends=ends),
        store=SimpleNamespace(jobs=lambda wanted: [{"job_id": "2", "state": "pending"}]),
        now=float,
    )
    told = asyncio.run(plan(SimpleNamespace(sees=bool), parts, 10))
    assert [each.cpus for each in told.waiting] == [1.0]


def test_forecasts_of_a_long_queue_are_kept_by_parts(monkeypatch):
    """Who submits writes in between, and who waits for them has them before."""
    monkeypatch.setattr(queue_forecasts, "_ROWS_AT_ONCE", 100)
    monkeypatch.setattr(module, "_FORECAST_SECONDS", 0.01)
    monkeypatch.setattr(QueueForecaster, "_standing", None)

    async def ask():
        made, snapshots = forecaster(monkeypatch, 0.0, [str(number) for number in range(1_050)])
        outlooks = snapshots.ask

        async def asked(question):
            return (60.0, 1, 1) if question is None else await outlooks(question)

        snapshots.ask = asked
        given = made._store.given
        latest = await made.latest(["no such"])
        shown_before = latest is not None and not given
        keeping = asyncio.create_task(made.keep_all())
        while sum(map(len, given)) < 1_050:
            await asyncio.sleep(0.001)
        keeping.cancel()
        return shown_before, [len(each) for each in given]

    assert asyncio.run(asyncio.wait_for(ask(), 20)) == (True, [100] * 10 + [50])


def test_forecasts_are_kept_at_submission_and_when_the_wait_has_doubled(monkeypatch):
    """Asked for or not; the first after a second, others from a minute on."""
    monkeypatch.setattr(module, "_FORECAST_SECONDS", 0.0)
    monkeypatch.setattr(module, "_REST", 0.0)
    monkeypatch.setattr(QueueForecaster, "_standing", None)
    times = iter([0.5, 1.0, 59.0, 60.0, 100.0, 119.0, 120.0, 300.0, 500.0])

    async def ask():
        made, snapshots = forecaster(monkeypatch, 0.0, ("1",))
        kept, looks = {}, []
        for now in times:

            async def asked(question, now=now):
                if question is None:
                    looks.append(now)
                    return now, 1, 1
                return now, lambda: SimpleNamespace(now=now, waiting=snapshots.waiting)

            snapshots.ask = asked
            keeping = asyncio.create_task(made.keep_all())
            while looks.count(now) < 2:
                await asyncio.sleep(0.001)
            keeping.cancel()
            kept[now] = [kind for rows in made._store.given for _, kind in rows]
            made._store.given.clear()
        return kept

    kept = asyncio.run(ask())
    assert {now: each for now, each in kept.items() if each} == {
        1.0: [ForecastKind.SUBMISSION],
        60.0: [ForecastKind.WAITING],
        120.0: [ForecastKind.WAITING],
        300.0: [ForecastKind.WAITING],
    }


@in_loop
async def test_nothing_is_drawn_while_nothing_is_to_be_kept(monkeypatch):
    monkeypatch.setattr(module, "_FORECAST_SECONDS", 0.0)
    monkeypatch.setattr(module, "_REST", 0.0)
    monkeypatch.setattr(QueueForecaster, "_standing", None)

    made, snapshots = forecaster(monkeypatch, 0.0, ("1",))
    drawn = []

    async def asked(question):
        if question is None:
            return 10.0, 1, 1
        drawn.append(question)
        return 10.0, lambda: SimpleNamespace(now=10.0, waiting=snapshots.waiting)

    snapshots.ask = asked
    keeping = asyncio.create_task(made.keep_all())
    await asyncio.sleep(0.1)
    keeping.cancel()
    assert len(drawn) == 1


@pytest.fixture
def doubtful():
    """One waits, of ranges of which only 43 % have held, by a rule that stands in."""
    cluster, policy = Cluster.of_processors(4), "easy,requested"
    log = MemoryLog(Manifest(policy, cluster))
    controller = Controller(cluster, *parse_policy(policy).build(), log=log)
    jobs = [Job.gang(job_id, 0.0, 4, 6_000.0, "ann") for job_id in ("runs", "waits")]
    controller.step(0.0, [Submitted(0.0, job) for job in jobs])
    record = StandInRecord.from_ends([(True, 60.0)] * 80 + [(False, 600.0)] * 20)
    past = replace(PastForecasts.from_outcomes(()), held=dict.fromkeys(range(5), 0.43))
    past = replace(past, stood_in=record)
    made = drawn_forecasts(outlook_of(controller), StartForecaster(), past)
    return replace(made, unknown=frozenset(), stand_in="not with several partitions")


def test_no_range_is_printed_that_the_record_contradicts(doubtful):
    """In tables, of the plan and before a job too; where too little is known none is printed."""
    answer, job = forecast_answer(doubtful, "waits"), doubtful.soonest["waits"]
    bar = waiting_bar(doubtful, job)
    assert answer.held == bar.held == 0.43
    assert "only 43 % were within" in " ".join(answer.remarks)
    for each in (answer, bar):
        assert start_cell(each.model_dump(), 0.0).endswith("), only 43 % held")
    unknown = waiting_bar(replace(doubtful, unknown=frozenset({"waits"})), job)
    assert start_cell(unknown.model_dump(), 0.0) == "too little is known yet"
    sure = waiting_bar(replace(doubtful, held={}), job)
    assert start_cell(sure.model_dump(), 0.0).endswith(")")


def test_where_a_rule_stands_in_it_is_said_by_how_much_it_may_be_off(doubtful):
    remark = forecast_answer(doubtful, "waits").remarks[-1]
    said = "of the last 100 such starts 80 % were within their range, and half of them within 60 s"
    assert said in remark
    assert remark.endswith("of its middle): not with several partitions")
    new = replace(doubtful, stood_in=StandInRecord())
    assert "is not known yet, after 0 such starts" in forecast_answer(new, "waits").remarks[-1]


def test_of_the_last_of_each_horizon_is_known_how_they_held():
    def outcome(made, seconds, *, has_started=True, kind=ForecastKind.SUBMISSION):
        row = ForecastRow("1", made, kind, 1, *(made + each for each in (5, 10, 20) * 2))
        return ForecastOutcome(row, made, made + seconds, has_started)

    held = [outcome(1.0 * number, 10.0) for number in range(100)]
    late = [outcome(100.0, 21.0, has_started=False)] * 50
    open_yet = [outcome(200.0, 19.0, has_started=False)] * 50
    unknown = [outcome(300.0, 900.0, kind=ForecastKind.UNKNOWN)] * 50
    assert PastForecasts.from_outcomes([*held, *late, *open_yet, *unknown]).held == {0: 2 / 3}
    assert PastForecasts.from_outcomes(held * 3 + late * 4).held == {0: 0.0}
    assert PastForecasts.from_outcomes(held[:20]).held == {}
    stood = [replace(each, forecast=replace(each.forecast, stood_in=True)) for each in held]
    assert PastForecasts.from_outcomes([*held, *stood]).stood_in == StandInRecord(100, 1.0, 0.0)
    assert PastForecasts.from_outcomes(late).stood_in == StandInRecord()
    assert [_horizon(each) for each in (0.0, 59.0, 60.0, 1e9)] == [0, 0, 1, 4]


def test_no_range_begins_before_what_is_known_for_certain():
    """Past starts were early; not before a begin, a predecessor or the return of nodes."""
    later = StartConditions(begin_seconds=4_600.0)
    jobs = [Job.gang(each, 1_000.0, 1, 60.0) for each in ("later", "after", "drained")]
    jobs[0] = replace(jobs[0], conditions=later)
    jobs[1] = replace(jobs[1], after=("later",))
    controller = Controller(Cluster.of_processors(4), *parse_policy("easy,requested").build())
    controller.step(1_000.0, [NodeDrained(1_000.0, "all", "op", 2_800.0)])
    controller.step(1_000.0, [Submitted(1_000.0, job) for job in jobs])
    row = ForecastRow("j", 0.0, ForecastKind.SUBMISSION, 3, *(3e3, 4e3, 5e3) * 2)
    past = PastForecasts.from_outcomes([ForecastOutcome(row, 0.0, 1_500.0, True)] * 100)
    made = drawn_forecasts(outlook_of(controller), StartForecaster(), past)
    assert made.waiting["later"].start.low >= 4_600.0
    assert made.waiting["after"].start.low >= 4_600.0
    assert made.waiting["drained"].start.low >= 2_800.0
