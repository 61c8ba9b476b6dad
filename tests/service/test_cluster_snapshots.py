"""Readers of a run do not wait for ever for a daemon that has no time."""

from __future__ import annotations

import asyncio
import math
import time
from http import HTTPStatus

import pytest

from foresail.control.loop import Controller
from foresail.model.cluster import Cluster
from foresail.model.decision import ReasonCode
from foresail.model.event import Held, Submitted
from foresail.model.job import Job
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest
from foresail.record.run_fold import folded
from foresail.service import snapshots
from foresail.service.api.problems import refusal_of
from foresail.service.snapshots import DaemonBusy, SnapshotCache
from foresail.service.store.protocol import Accepted, Command, CommandRequest, NumberedRequest
from toys import Doubling, Easy, Requested


def cache():
    """One of a daemon that never comes by."""
    return SnapshotCache(
        lambda: None, lambda sentence: None, 30.0, lambda: 0, lambda controller: 0.0
    )


def waiting_controller(log=None):
    """One whose second job waits for the first, which has all cpus."""
    controller = Controller(Cluster.of_processors(4), Easy(), Requested(), Doubling(), log=log)
    jobs = [Job.gang(each, 0.0, 4, 60.0, "ann") for each in ("1", "2")]
    controller.step(0.0, [Submitted(0.0, job) for job in jobs])
    return controller


def test_a_recovered_run_is_shown_before_its_first_pass_as_the_one_before_left_it():
    shown, log = cache(), MemoryLog(Manifest("easy", Cluster.of_processors(4)))
    controller = waiting_controller(log)
    shown.recovered(folded(log.records))

    async def look():
        return await shown.look(fresh_seconds=math.inf)

    known = asyncio.run(look())
    assert known == snapshots.snapshot_of(controller, controller.plan)
    assert (len(known.running), known.pending, known.plan) == (1, 1, {"2": 60.0})


def test_a_question_that_the_daemon_has_no_time_for_is_answered_as_busy(monkeypatch):
    """As in a first pass, which compiles kernels; it was a fault of the service (500)."""
    monkeypatch.setattr(snapshots, "_FIRST_PATIENCE_SECONDS", 0.02)
    with pytest.raises(DaemonBusy) as raised:
        asyncio.run(cache().ask(lambda controller, jobs: None))
    refused = refusal_of(raised.value)
    assert refused.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "Retry-After" in refused.headers


def test_reasons_are_done_without_where_the_daemon_has_no_time(monkeypatch):
    monkeypatch.setattr(snapshots, "_REASONS_PATIENCE_SECONDS", 0.02)
    assert asyncio.run(cache().reasons(["1"])) == {}


def test_readers_that_come_again_are_answered_by_what_the_last_step_has_left():
    """They do not wait for a daemon in a step, which under load is where it mostly is."""
    shown, controller = cache(), waiting_controller()

    async def look_twice():
        first = asyncio.create_task(shown.look()), asyncio.create_task(shown.reasons(["2"]))
        await asyncio.sleep(0)
        shown.refreshed(controller, None)
        before = [await each for each in first]
        controller.step(1.0, [Held(1.0, "2", "ann")])
        shown.refreshed(controller, None)  # and then it is in a step that takes long
        begin = time.monotonic()
        return before, (await shown.look(), await shown.reasons(["2"])), time.monotonic() - begin

    (snapshot, reasons), (then, held), seconds = asyncio.run(look_twice())
    assert reasons["2"].code is not ReasonCode.HELD
    assert held["2"].code is ReasonCode.HELD
    assert (snapshot.unix_seconds, then.unix_seconds) == (0.0, 1.0)
    assert seconds < 0.015


def test_nothing_is_made_ready_for_those_who_do_not_come_again(monkeypatch):
    shown, controller = cache(), waiting_controller()
    asked = []
    reasons_of = controller.reasons_of
    monkeypatch.setattr(controller, "reasons_of", lambda ids: asked.extend(ids) or reasons_of(ids))

    async def look_once():
        first = asyncio.create_task(shown.look()), asyncio.create_task(shown.reasons(["2"]))
        await asyncio.sleep(0)
        shown.refreshed(controller, None)
        return [await each for each in first]

    asyncio.run(look_once())
    monkeypatch.setattr(snapshots, "_WATCHED_SECONDS", -1.0)
    monkeypatch.setattr(snapshots, "snapshot_of", None)
    asked.clear()
    shown.refreshed(controller, None)
    assert not asked


def test_a_wish_is_heard_once_the_step_that_takes_it_is_over():
    """Who holds a job and then releases it, or asks for it, finds it held."""
    taken = 0
    shown = SnapshotCache(lambda: None, str, 30.0, lambda: taken, lambda controller: 0.0)
    controller = waiting_controller()
    accepted = Accepted((NumberedRequest(7, 0.0, "ann", CommandRequest(Command.HOLD, "2")),))

    async def command():
        nonlocal taken
        heard = asyncio.create_task(shown.heard(accepted))
        told = []
        for taken in (0, 6, 7):  # noqa: B007 - the cache asks for it
            await asyncio.sleep(0)
            shown.refreshed(controller, None)
            await asyncio.sleep(0.01)
            told.append(heard.done())
        return told

    assert asyncio.run(command()) == [False, False, True]


def test_a_wish_is_durable_though_the_daemon_has_no_time(monkeypatch):
    monkeypatch.setattr(snapshots, "_COMMAND_PATIENCE_SECONDS", 0.01)
    accepted = Accepted((NumberedRequest(7, 0.0, "ann", CommandRequest(Command.HOLD, "2")),))
    asyncio.run(cache().heard(accepted))
