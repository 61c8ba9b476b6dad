"""The service's log in its store: what another session finds there, and what a check sees of it."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import pairwise

import pytest
from sqlalchemy import delete, update

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.cluster_contact import ClusterContact
from foresail.live.daemon import Daemon
from foresail.live.run_directory import RunHistory
from foresail.live.run_log import KnownRun
from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster
from foresail.model.decision import AlikeReasons, Preempt, ReasonCode, Start
from foresail.model.event import Cancelled, Ended, EndedBecause, Outcome, Submitted
from foresail.model.job import Job
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import Drained, Manifest, ReasonsChanged
from foresail.service import exchange
from foresail.service.exchange import Exchange, Inbox, StoreLog, recovered
from foresail.service.feed import Feed
from foresail.service.metrics import CycleWatch, ServiceMetrics
from foresail.service.store.protocol import JOBS, RECORDS, SNAPSHOTS, StoreUnavailable, WholeStep
from foresail.service.store.sql_store import SqlStore
from foresail.service.upkeep import faults_of
from sessions import BEGIN, CLUSTER, Session


@pytest.fixture
def store(tmp_path):
    store = SqlStore.in_file(tmp_path / "store.db")
    yield store
    store.close()


@pytest.fixture
def session(store, monkeypatch):
    """Sixty jobs came, and most of them ended; a snapshot was kept now and then."""
    monkeypatch.setattr(exchange, "SNAPSHOT_EVERY", 20)
    session, now, running = Session(store), BEGIN, []
    for number in range(1, 61):
        now += 10.0
        started = [each for each in session.submit(number, now) if isinstance(each, Start)]
        running += [(each.job_id, now) for each in started]
        if number % 3:
            job_id, start = running.pop(0)
            end = Ended(now, Outcome(job_id, start, now, EndedBecause.COMPLETED))
            more = session.controller.step(now, [end])
            running += [(each.job_id, now) for each in more if isinstance(each, Start)]
    yield session
    session.inbox.close()


def stands(known):
    """How a run stands: what has ended, waits and runs, and what was counted of it."""
    jobs, state = known.run.history, known.run.state
    waiting = [each.job.job_id for each in state.pending()]
    counted = known.run.steps, asdict(known.run.counters)
    return dict(jobs.ended), list(jobs.submitted), waiting, list(state.running), counted


def by_records(store, until=math.inf):
    known = KnownRun()
    for number, line in store.records():
        if number <= until:
            known.take(line, number, "log", number)
    return known


def test_snapshots_are_kept_in_time_and_lead_to_the_same_as_the_whole_log(store, session):
    end, lines = store.snapshot()
    assert store.last_record() - 2 * len(lines) <= end <= store.last_record()
    assert end > 100
    assert list(lines) == list(by_records(store, end).compaction.lines())
    assert stands(recovered(store)) == stands(by_records(store))
    session.submit(61, BEGIN + 1_000.0)
    assert stands(recovered(store)) == stands(by_records(store))


def test_a_snapshot_reaches_to_the_last_record_of_its_step(store, session, monkeypatch):
    """As it is kept, and as it is read: from any step's end the same follows."""
    whole = stands(by_records(store))
    _, *read = (parse_record(line, "log", number) for number, line in store.records())
    ends = [at for at, (one, then) in enumerate(pairwise(read), 2) if one.step != then.step]
    for end in ends[::8]:
        store.keep_snapshot(list(by_records(store, end).compaction.lines()), end)
        assert stands(recovered(store)) == whole
    kept = []
    monkeypatch.setattr(
        store, "keep_snapshot", lambda lines, end: kept.append((end, store.last_record()))
    )
    for number in range(61, 161):
        session.submit(number, BEGIN + 10.0 * number)
    assert kept
    assert all(end == last for end, last in kept)


def test_a_snapshot_holds_numbers_of_records_about_jobs_and_is_small(store, session):
    """Nothing of a job is kept in memory or written a second time, however much there is to say."""
    _, lines = store.snapshot()
    known = list(store.records_of_snapshot(lines))
    log = dict(store.records())
    assert all(number is None or line == log[number] for number, line in known)
    about_jobs = [line for number, line in known if number is not None]
    assert len(about_jobs) > 0.9 * len(lines)
    assert sum(map(len, lines)) < 0.1 * sum(len(line) for _, line in known)
    compaction = recovered(store).compaction
    assert sum(map(len, compaction._numbers.values())) >= len(about_jobs)


def test_a_snapshot_of_records_that_are_not_there_is_done_without(store, session, caplog):
    """The log is read from its beginning, and found to lack one, or not."""
    before = stands(recovered(store))
    end, lines = store.snapshot()
    store.keep_snapshot([*lines[:-1], "999999\n"], end)
    assert stands(recovered(store)) == before
    assert "event log:999999: is in the log no more" in caplog.text.replace(", line ", ":")


def test_a_snapshot_that_cannot_be_read_is_done_without(store, session):
    with store.database.writing() as connection:
        connection.execute(update(SNAPSHOTS).values(lines="of another version\n"))
    assert stands(recovered(store)) == stands(by_records(store))


def test_records_that_no_state_follows_from_do_not_count_towards_the_next_snapshot(store, session):
    def counted(lines):
        store.keep_snapshot(list(store.snapshot()[1]), store.last_record())
        end = store.commit_step(WholeStep(lines, session.inbox.taken, {}, [None] * len(lines)))
        known = recovered(store)
        assert known.end == end
        return known.since_snapshot

    told = AlikeReasons(ReasonCode.NO_ROOM, ("3",))
    reasons = record_line(ReasonsChanged(99, BEGIN, told))
    assert counted([reasons] * 3) == 0
    assert counted([reasons, record_line(Drained(99))]) == 1


def test_a_store_that_holds_together_is_said_to(store, session):
    assert list(faults_of(store)) == []


@pytest.mark.parametrize("by", ["", "root"])
def test_a_job_that_somebody_else_has_cancelled_is_no_fault(store, session, by):
    job_id = next(iter(session.controller.state.startable))
    session.controller.step(BEGIN + 1_000.0, [Cancelled(BEGIN + 1_000.0, job_id, by)])
    assert list(faults_of(store)) == []


@pytest.mark.parametrize("back", [1, 40])
def test_a_check_sees_that_a_record_is_missing(store, session, back):
    number = store.last_record() - back
    with store.database.writing() as connection:
        connection.execute(delete(RECORDS).where(RECORDS.c.number == number))
    assert list(faults_of(store))


@pytest.mark.parametrize(("is_state", "wrong"), [("completed", "pending"), ("pending", "running")])
def test_a_check_sees_a_job_that_stands_otherwise_than_the_log_tells(
    store,
    session,
    is_state,
    wrong,
):
    with store.database.writing() as connection:
        found = JOBS.select().where(JOBS.c.state == is_state).limit(1)
        job_id = connection.execute(found).one().job_id
        connection.execute(update(JOBS).where(JOBS.c.job_id == job_id).values(state=wrong))
    assert list(faults_of(store)) == [f"job {job_id} is {wrong}, and {is_state} by the log"]


def test_a_check_sees_a_job_that_is_in_the_log_alone(store, session):
    with store.database.writing() as connection:
        connection.execute(delete(JOBS).where(JOBS.c.job_id == "7"))
    assert list(faults_of(store)) == ["job 7 is in the log alone"]


class Stand:
    """An adapter, an observer: what runs runs on, and what is instructed is noted."""

    capabilities = Capabilities(preempts=True, places=True)
    cluster = CLUSTER
    next_seconds = refresh_seconds = math.inf
    wake_descriptor = None

    def __init__(self):
        self.instructed = []

    def resume(self, running, known, now):
        return []

    def carry_out(self, instruction, now):
        self.instructed.append(instruction)

    def reports(self, now):
        return []

    history = close = note = started = refreshed = lambda *_: ()


def test_a_stop_is_repeated_by_the_next_daemon(store):
    """The one before was killed between writing it down and having it carried out."""
    before = Session(store)
    before.submit(1, BEGIN)
    stopped = before.controller.step(BEGIN + 1.0, [Cancelled(BEGIN + 1.0, "1")])
    assert [each.job_id for each in stopped if isinstance(each, Preempt)] == ["1"]
    before.inbox.close()
    after, stand = Session(store), Stand()
    after.inbox.leave()
    history = RunHistory(None, stand.note)
    contact = ClusterContact(stand)
    Daemon(after.controller, after.log, contact, after.inbox, history, None, stand).work()
    after.inbox.close()
    assert [(each.job_id, each.attempt) for each in stand.instructed] == [("1", 1)]
    assert isinstance(stand.instructed[0], Preempt)


FOUR_CPUS = Cluster.of_processors(4)
POLICY = "easy,recent,incremental"


@pytest.fixture
def short_store(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "SNAPSHOT_EVERY", 50)
    short_store = SqlStore.in_file(tmp_path / "store.db")
    yield short_store
    short_store.close()


def log_of(short_store, jobs):
    """The log of a run with so many jobs, most of which wait."""
    cycles = CycleWatch(ServiceMetrics(), 10.0, print)
    inbox = Inbox(short_store)
    exchange = Exchange(short_store, inbox, Feed(short_store), cycles)
    log = StoreLog(exchange, Manifest(POLICY, FOUR_CPUS), KnownRun())
    controller = Controller(FOUR_CPUS, *parse_policy(POLICY).build(), log=log)
    log.follow(controller.state)
    for number in range(jobs):
        now = 1_790_000_000.0 + number
        controller.step(now, [Submitted(now, Job.gang(str(number), now, 1, 60.0, "ann"))])
    inbox.close()
    return log


def test_nothing_is_read_twice_of_a_log_that_was_closed(short_store):
    log = log_of(short_store, 40)
    assert short_store.snapshot() is not None
    assert recovered(short_store).since_snapshot > 0
    log.close()
    again = recovered(short_store)
    assert again.since_snapshot == 0
    assert len(again.run.state.startable) == 36
    assert short_store.snapshot()[0] == short_store.last_record()


def test_a_log_is_closed_as_it_is_amid_a_step_and_without_a_store(short_store, monkeypatch):
    """What was not committed is in no snapshot; and a short_store that is away stops nobody."""
    log = log_of(short_store, 40)
    before = short_store.snapshot()
    log.append(Manifest(POLICY, FOUR_CPUS))
    log.close()
    assert short_store.snapshot() == before
    other = log_of(SqlStore.in_file(short_store.database.engine.url.database + ".other"), 40)

    def away(lines, end):
        raise StoreUnavailable("away")

    monkeypatch.setattr(other._store, "keep_snapshot", away)
    other.close()
    other._store.close()
