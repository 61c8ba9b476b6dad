"""Forecasts of a long queue: those drawn last are given, and tell when that was."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

from foresail.explain.forecast import Range, WaitingForecast
from foresail.model.cluster import Cluster
from foresail.model.job import Job
from foresail.service import overview as module
from foresail.service.api.service import plan
from foresail.service.overview import Forecasts, QueueForecaster, slowly

SOON = Range(1.0, 2.0, 3.0)


class SnapshotCache:
    """Is asked how things stand."""

    def __init__(self):
        self.asked = 0

    async def ask(self, question):
        self.asked += 1
        return SimpleNamespace(now=float(self.asked))


class Store:
    """Keeps only how many were given at once."""

    def __init__(self):
        self.given = []

    def started_forecasts(self, most):
        return []

    def keep_forecasts(self, rows):
        self.given.append(len(rows))


def forecaster(monkeypatch, seconds, jobs):
    """One whose forecasts take so long to draw."""

    def drawn(outlook, calibration):
        time.sleep(seconds)
        waiting = {job_id: WaitingForecast(SOON, SOON, 0.0, None) for job_id in jobs}
        return Forecasts(outlook, waiting, waiting, {})

    monkeypatch.setattr(module, "_drawn", drawn)
    snapshots = SnapshotCache()
    return QueueForecaster(snapshots, Store()), snapshots


def test_a_job_of_a_long_queue_is_told_by_the_forecasts_drawn_last(monkeypatch):
    monkeypatch.setattr(module, "_QUICK_SECONDS", 0.05)
    monkeypatch.setattr(module, "_MANY", 1)

    async def ask():
        made, snapshots = forecaster(monkeypatch, 0.2, ("1", "2"))
        first = await made.of_job("1")
        begin = time.monotonic()
        again = [await made.of_job("2") for _ in range(50)]
        return first, again, time.monotonic() - begin, snapshots.asked

    first, again, seconds, asked = asyncio.run(ask())
    assert first.outlook.now == 1.0
    assert {id(each) for each in again} == {id(first)}
    assert seconds < 0.15
    assert asked == 1


def test_of_a_short_queue_each_is_made_as_things_stand(monkeypatch):
    async def ask():
        made, _ = forecaster(monkeypatch, 0.0, ("1",))
        return [(await made.of_job("1")).outlook.now for _ in range(4)]

    assert asyncio.run(ask()) == [1.0, 2.0, 3.0, 4.0]


def test_what_compiles_under_a_short_queue_keeps_nobody_from_later_forecasts(monkeypatch):
    """Nor does anything else wait behind it."""

    async def ask():
        made, _ = forecaster(monkeypatch, 0.2, ("1",))
        await made.of_job("1")
        others = [asyncio.create_task(made.ahead(arrivals=False)) for _ in range(4)]
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
        return waited, before, (await made.latest(("1",))).outlook.now

    waited, before, after = asyncio.run(ask())
    assert waited < 0.1
    assert after > before


def test_nobody_waits_longer_than_for_a_while(monkeypatch):
    """Neither for the first ones, nor for ones with a job that the last ones do not know."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(module, "_QUICK_SECONDS", 0.05)
    monkeypatch.setattr(module, "_MANY", 0)

    async def ask():
        made, _ = forecaster(monkeypatch, 0.3, ("1",))
        begin = time.monotonic()
        nothing = [await made.of_job("1") for _ in range(3)]
        waited = time.monotonic() - begin
        await asyncio.sleep(0.4)
        begin = time.monotonic()
        unknown = await made.of_job("new")
        return nothing, waited, unknown, time.monotonic() - begin

    nothing, waited, unknown, then = asyncio.run(ask())
    assert nothing == [None] * 3
    assert unknown is None
    assert waited < 0.2
    assert then < 0.1


def test_who_waits_no_more_is_not_in_the_plan():
    """Forecasts are some seconds old, of a long queue more: what has ended since is not to come."""
    forecasts = SimpleNamespace(
        soonest={job_id: Job.gang(job_id, 0.0, 1) for job_id in "12"},
        waiting=dict.fromkeys("12", WaitingForecast(SOON, SOON, 0.0, None)),
    )

    async def latest(waiting):
        return forecasts

    async def look(fresh_seconds):
        cluster = Cluster.of_processors(1)
        return SimpleNamespace(running=(), cluster=cluster, unix_seconds=1.0, pending=1)

    parts = SimpleNamespace(
        snapshots=SimpleNamespace(look=look),
        forecaster=SimpleNamespace(latest=latest),
        store=SimpleNamespace(jobs=lambda wanted: [{"job_id": "2"}]),
        now=float,
    )
    told = asyncio.run(plan(SimpleNamespace(sees=bool), parts, 10))
    assert [each.cpus for each in told.waiting] == [1.0]


def test_forecasts_of_a_long_queue_are_kept_by_parts(monkeypatch):
    """Who submits writes in between, and waits for none of all."""
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 100)

    async def ask():
        made, _ = forecaster(monkeypatch, 0.0, [str(number) for number in range(1_050)])
        for _ in range(2):
            await made.latest(["no such"])
        return made._store.given

    assert asyncio.run(ask()) == [100] * 10 + [50]
