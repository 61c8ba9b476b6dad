"""What ended long ago leaves database and folders; its log is in the archive, nothing is lost."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import func, select, update
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.live.cluster_plugin import UseSample
from foresail.model.event import Ended, EndedBecause, Outcome
from foresail.service.configuration import ServiceConfiguration
from foresail.service.state_folder import StateFolder
from foresail.service.store.protocol import METADATA, REQUESTS
from foresail.service.store.sql_store import SqlStore
from foresail.service.upkeep import LogArchive, Retention, faults_of
from long_series import some_of
from sessions import BEGIN, Session

_DAY = 86_400.0
_EVERY = _DAY / 8


@pytest.fixture
def folder(tmp_path):
    folder = StateFolder(tmp_path / "state")
    folder.make()
    (folder.logs / "ann").mkdir()
    return folder


@pytest.fixture
def store(folder):
    store = SqlStore.in_file(folder.database)
    yield store
    store.close()


@pytest.fixture
def session(store, folder):
    """A job every three hours for ten days, each of which writes something; the last one runs."""
    session = Session(store)
    for number in range(1, 81):
        now = BEGIN + number * _EVERY
        session.submit(number, now)
        (folder.attempts / f"{number}.1.status").write_text("0\n")
        (folder.logs / f"{number}.out").write_text("told\n")
        (folder.logs / "ann" / f"{number}.err").write_text("told\n")
        store.keep_samples([UseSample(str(number), 1, now, now + 60.0, 1.0, 1e6)])
        if number < 80:
            outcome = Outcome(str(number), now, now + 60.0, EndedBecause.COMPLETED)
            session.controller.step(now + 60.0, [Ended(now + 60.0, outcome)])
    with store.database.writing() as connection:  # they were accepted by the clock of the test
        connection.execute(update(REQUESTS).values(unix_seconds=BEGIN + REQUESTS.c.number * _EVERY))
    yield session
    session.inbox.close()


def cleaned(store, folder, session, **kept):
    """What one round lets go, with a daemon that comes by all the while."""
    configuration = ServiceConfiguration(state=folder.path, **kept)
    retention, over = Retention(configuration, folder, store), threading.Event()
    gone = []

    def clean():
        gone.append(retention.clean(BEGIN + 10 * _DAY))
        over.set()

    threading.Thread(target=clean).start()
    while not over.wait(0.01):
        retention.forget(session.controller.forget_ended)
        session.log.commit()
    return gone[0]


def numbers(folder):
    return sorted({int(each.name.partition(".")[0]) for each in folder.glob("[0-9]*")})


def counts(store):
    with store.database.reading() as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(METADATA.tables[name]))
            for name in ("jobs", "records", "requests", "samples")
        }


@pytest.mark.parametrize(
    ("kept", "stay"),
    some_of([({"keep_jobs": 20}, 20), ({"keep_days": 3.0}, 24), ({"keep_jobs": 300}, 79)], every=2),
)
def test_what_stays_is_as_it_was_and_the_rest_is_in_the_archive(store, folder, session, kept, stay):
    whole = list(store.records())
    assert cleaned(store, folder, session, **kept) == 79 - stay
    first = 80 - stay
    for each in (folder.attempts, folder.logs, folder.logs / "ann"):
        assert numbers(each) == list(range(first, 81))
    left = counts(store)
    assert (left["jobs"], left["samples"]) == (stay + 1, stay + 1)
    assert left["requests"] <= stay + 2
    if stay < 79:
        assert left["records"] < len(whole) * (stay + 10) / 79
    archive = LogArchive(folder.archive)
    assert [*archive.records(), *store.records(after=archive.last)][: len(whole)] == whole
    assert len([*archive.samples(), *store.samples()]) == 80
    assert list(faults_of(store)) == []
    session.inbox.close()
    after = Session(store)
    assert [each.job.job_id for each in after.controller.running.values()] == ["80"]
    assert after.submit(81, BEGIN + 11 * _DAY)
    after.inbox.close()
    assert list(faults_of(store)) == []
    assert store.records_about(store.job("80")).lines[0][1] == whole[0][1]


def test_archive_and_database_are_exported_replayed_and_compared_as_one(
    store, folder, session, tmp_path
):
    lines = "".join(line for _, line in store.records())
    assert cleaned(store, folder, session, keep_jobs=20) == 59
    assert cleaned(store, folder, session, keep_jobs=20) == 0
    store.close()
    exported = tmp_path / "exported"
    told = CliRunner().invoke(app_of("db"), ["export", str(folder.path), "--output", str(exported)])
    assert told.output.startswith("79 jobs")
    assert (exported / "events.jsonl").read_text().startswith(lines)
    again = CliRunner().invoke(app_of("replay"), [str(exported)])
    assert again.output == "every decision is made again\n"
    words = [str(exported / "workload"), "--with", "easy", "--with", "fcfs"]
    assert CliRunner().invoke(app_of("compare"), words).exit_code == 0


def test_a_round_that_was_cut_off_is_made_up_for_by_the_next(store, folder, session, monkeypatch):
    """The log is in the archive once, whether it was killed before or after it wrote that."""
    whole = list(store.records())
    with monkeypatch.context() as patched:
        patched.setattr(Retention, "_remove_files", lambda *_: 1 / 0)
        patched.setattr("foresail.service.upkeep._PATIENCE_SECONDS", 0.0)
        retention = Retention(ServiceConfiguration(keep_jobs=50), folder, store)
        session.controller.forget_ended(50)
        session.log.commit()
        with pytest.raises(ZeroDivisionError):
            retention.clean(BEGIN)
    assert counts(store)["jobs"] == 80
    assert cleaned(store, folder, session, keep_jobs=30) == 49
    archive = LogArchive(folder.archive)
    assert [*archive.records(), *store.records(after=archive.last)][: len(whole)] == whole
    assert list(faults_of(store)) == []


def test_the_file_grows_smaller_by_what_has_left_but_keeps_its_room(
    store, folder, session, monkeypatch
):
    monkeypatch.setattr("foresail.service.upkeep._PAUSE_SECONDS", 0.0)
    with store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE jobs SET because = hex(zeroblob(50000))")
    store.database.keep_room()
    checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
    with store.database.reading() as connection:
        connection.exec_driver_sql(checkpoint)
    before = folder.database.stat().st_size
    assert cleaned(store, folder, session, keep_jobs=10) == 69
    with store.database.reading() as connection:
        connection.exec_driver_sql(checkpoint)
    assert 8_000_000 < folder.database.stat().st_size < before - 69 * 100_000


def test_pieces_of_a_course_that_was_taken_back_are_left_out(tmp_path):
    archive = LogArchive(tmp_path / "archive")
    archive.add(1, ["a\n", "b\n"], [])
    archive.add(3, ["c\n"], [UseSample("1", 1, 0.0, 1.0, 1.0, 1.0)])
    assert (archive.last, list(archive.records())[-1]) == (3, (3, "c\n"))
    archive.forget_after(2)
    assert [line for _, line in archive.records()] == ["a\n", "b\n"]
    assert list(archive.samples()) == []
    assert archive.last == 2


def test_what_the_run_still_knows_stays_whole(store, folder, monkeypatch):
    """A job that runs all along keeps its records; what the daemon has not forgotten stays."""
    session = Session(store)
    session.submit(1, BEGIN)
    for number in range(2, 8):
        now = BEGIN + number * _EVERY
        session.submit(number, now)
        outcome = Outcome(str(number), now, now + 60.0, EndedBecause.COMPLETED)
        session.controller.step(now + 60.0, [Ended(now + 60.0, outcome)])
    about = [
        each for _, each in store.records_about(store.job("1")).lines if '"job_id":"1"' in each
    ]
    assert about
    monkeypatch.setattr("foresail.service.upkeep._PATIENCE_SECONDS", 0.0)
    assert Retention(ServiceConfiguration(keep_jobs=2), folder, store).clean(BEGIN) == 0
    assert counts(store)["jobs"] == 7
    monkeypatch.undo()
    assert cleaned(store, folder, session, keep_jobs=2) == 4
    lines = [each for _, each in store.records_about(store.job("1")).lines]
    assert [each for each in lines if '"job_id":"1"' in each] == about
    session.inbox.close()
