"""A log that is closed leaves little for who comes next to read."""

from __future__ import annotations

import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.run_log import KnownRun
from foresail.model.cluster import Cluster
from foresail.model.event import Submitted
from foresail.model.job import Job
from foresail.record.records import Manifest
from foresail.service import exchange
from foresail.service.exchange import Exchange, Inbox, StoreLog, recovered
from foresail.service.feed import Feed
from foresail.service.metrics import CycleWatch, ServiceMetrics
from foresail.service.store.protocol import StoreUnavailable
from foresail.service.store.sql_store import SqlStore

CLUSTER = Cluster.of_processors(4)
POLICY = "easy,recent,incremental"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "SNAPSHOT_EVERY", 50)
    store = SqlStore.in_file(tmp_path / "store.db")
    yield store
    store.close()


def log_of(store, jobs):
    """The log of a run with so many jobs, most of which wait."""
    cycles = CycleWatch(ServiceMetrics(), 10.0, print)
    inbox = Inbox(store)
    exchange = Exchange(store, inbox, Feed(store), cycles)
    log = StoreLog(exchange, Manifest(POLICY, CLUSTER), KnownRun())
    controller = Controller(CLUSTER, *parse_policy(POLICY).build(), log=log)
    log.follow(controller.state)
    for number in range(jobs):
        now = 1_790_000_000.0 + number
        controller.step(now, [Submitted(now, Job.gang(str(number), now, 1, 60.0, "ann"))])
    inbox.close()
    return log


def test_nothing_is_read_twice_of_a_log_that_was_closed(store):
    log = log_of(store, 40)
    assert store.snapshot() is not None
    assert recovered(store).since_snapshot > 0
    log.close()
    again = recovered(store)
    assert again.since_snapshot == 0
    assert len(again.run.state.startable) == 36
    assert store.snapshot()[0] == store.last_record()


def test_a_log_is_closed_as_it_is_amid_a_step_and_without_a_store(store, monkeypatch):
    """What was not committed is in no snapshot; and a store that is away stops nobody."""
    log = log_of(store, 40)
    before = store.snapshot()
    log.append(Manifest(POLICY, CLUSTER))
    log.close()
    assert store.snapshot() == before
    other = log_of(SqlStore.in_file(store.database.engine.url.database + ".other"), 40)

    def away(lines, end):
        raise StoreUnavailable("away")

    monkeypatch.setattr(other._store, "keep_snapshot", away)
    other.close()
    other._store.close()
