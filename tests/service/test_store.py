"""The store, in SQLite and in PostgreSQL: durable, idempotent, whole steps or nothing."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import event, select, text

from databases import postgresql, program
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.service.state_folder import StateFolder
from foresail.service.store.database import DiskRoom
from foresail.service.store.protocol import (
    FORECASTS,
    IDENTITY,
    LATEST,
    METADATA,
    RECORDS,
    ROOM,
    Command,
    CommandRequest,
    ForecastKind,
    ForecastRow,
    JobsWanted,
    Judged,
    KeyedCall,
    StoreUnavailable,
    Submit,
    WholeStep,
    version_of,
)
from foresail.service.store.sql_store import SqlStore

RANGE_OF_FIRST = "made", "low", "median", "high", "drawn_low", "drawn_high"
"""What an earlier version kept of each job's first forecast."""


@pytest.fixture(scope="module")
def server():
    if program("initdb") is None:
        pytest.skip("no PostgreSQL on this machine")
    with tempfile.TemporaryDirectory() as folder, postgresql(Path(folder)) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def opening(request, tmp_path):
    """Opens the same database each time."""
    if request.param == "sqlite":
        return lambda: SqlStore.in_file(tmp_path / "store.db")
    address = request.getfixturevalue("server")
    store = SqlStore.at_address(address)
    with store.database.engine.begin() as connection:
        METADATA.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
    store.close()
    return lambda: SqlStore.at_address(address)


@pytest.fixture
def store(opening):
    store = opening()
    yield store
    store.close()


def job(number, command="true"):
    return CommandJob(str(number), "name", command, "/", user="ann")


def submit(store, numbers, key=None, user="ann", command="true"):
    requests = tuple(Submit(job(number, command)) for number in numbers)
    (accepted,) = store.accept([KeyedCall(user, requests, key, numbers[0])])
    return accepted


def test_what_was_accepted_is_there_again(opening):
    store = opening()
    submit(store, [1, 2])
    commands = (CommandRequest(Command.HOLD, "1"), CommandRequest(Command.DRAIN, "n"))
    store.accept([KeyedCall("eve", commands)])
    lines = ["one\n", "two\n"]
    assert store.commit_step(WholeStep(lines, 2, {"1": {"state": "running"}})) == 2
    store.keep_snapshot(["whole\n", "of it\n"], 2)
    store.close()
    store = opening()
    assert [each.request for each in store.requests_after(2)] == list(commands)
    assert [each.user for each in store.requests_after(0)] == ["ann", "ann", "eve", "eve"]
    assert (store.taken(), store.last_record(), store.next_number()) == (2, 2, 3)
    assert list(store.records()) == [(1, "one\n"), (2, "two\n")]
    assert list(store.records(after=1)) == [(2, "two\n")]
    assert store.snapshot() == (2, ["whole\n", "of it\n"])
    assert store.job("1")["state"] == "running"
    assert store.counts() == {"running": 1, "pending": 1}
    assert [job_id for job_id, _ in store.commands()] == ["1", "2"]
    store.close()


def test_a_key_asked_again_submits_nothing_and_never_two_things(store):
    """In one transaction as in several; another user's same key is another."""
    first = submit(store, [1], key="k")
    again = submit(store, [2], key="k")
    assert first.is_new
    assert not again.is_new
    assert again.requests == first.requests
    assert submit(store, [2], key="k", command="false").conflicts
    assert submit(store, [2], key="k", user="eve").is_new
    twice = [KeyedCall("ann", (Submit(job(number)),), "both", number) for number in (3, 4)]
    one, other = store.accept(twice)
    assert (one.is_new, other.is_new) == (True, False)
    assert one.requests == other.requests
    assert store.next_number() == 4


def test_jobs_are_listed_in_pages(store):
    submit(store, range(1, 8))
    words = "it held more memory than it may have"
    changes = {"3": {"state": "failed"}, "5": {"state": "limit", "because": "its time was over"}}
    changes["6"] = {"state": "limit", "because": words}
    store.commit_step(WholeStep([], 0, changes))

    def ids(**wanted):
        return [row["job_id"] for row in store.jobs(JobsWanted(**wanted))]

    assert ids(limit=3) == ["7", "6", "5"]
    assert ids(limit=3, before=5) == ["4", "3", "2"]
    assert ids(oldest_first=True, after=5) == ["6", "7"]
    assert ids(states=("failed",)) == ["3"]
    assert ids(states=("limit",)) == ["6", "5"]
    assert ids(states=("failed", "out_of_memory")) == ["6", "3"]
    assert ids(users=("eve",)) == []
    assert store.owners(["1", "9"]) == {"1": "ann"}


def forecast_row(job_id, made, kind=ForecastKind.SUBMISSION, low=10.0):
    """A forecast of so many seconds on, which was drawn a little narrower."""
    drawn = made + low + 2.0, made + low + 9.0, made + low + 15.0
    start, end = (made + low, made + low + 10.0, made + low + 20.0), (made + 25.0, made + 40.0)
    return ForecastRow(job_id, made, kind, 7, *start, *drawn, False, *end)


def test_forecasts_are_judged_by_what_came_about(store):
    """Also those of jobs that wait though they should have started; not where too little was known.

    The fifth was withdrawn in its range, the sixth after it; the seventh starts again.
    """
    submit(store, [1, 2, 3, 4, 5, 6, 7])
    rows = [forecast_row(str(number), 0.0) for number in range(1, 8)]
    later = forecast_row("2", 20.0, ForecastKind.WAITING, 100.0)
    unknown = forecast_row("3", 1.0, ForecastKind.UNKNOWN)
    store.keep_forecasts([*rows, later, unknown])
    began = {"attempt": 1, "low_seconds": 5.0, "high_seconds": 9.0, "state": "completed"}
    gone = {"state": "withdrawn"}
    store.commit_step(
        WholeStep(
            [],
            0,
            {
                "1": {**began, "start_seconds": 12.0, "end_seconds": 18.0},
                "2": {**began, "start_seconds": 31.0, "end_seconds": 33.0},
                "4": {"state": "held"},
                "5": {**gone, "end_seconds": 29.0},
                "6": {**gone, "end_seconds": 31.0},
                "7": {**began, "start_seconds": 30.0, "attempt": 2, "state": "running"},
            },
        )
    )
    assert store.judged_forecasts(29.0)[0] == Judged(3, 1, 0)
    starts, by_horizon = store.judged_forecasts(32.0)
    assert starts == Judged(4, 1, 0)
    assert by_horizon[:3] == [Judged(4, 1, 0), Judged(1, 0, 1), Judged()]
    assert store.judged_runtimes() == Judged(2, 1, 1)
    assert store.judged_ends(39.0) == Judged(2, 1, 1)
    assert store.judged_ends(41.0) == Judged(3, 1, 1)
    starts_and_ends = store.use(20.0, 10.0, 2)
    assert [[(each.number, each.jobs) for each in some] for some in starts_and_ends] == [
        [(2, 2)],
        [(2, 1)],
    ]
    found = store.forecast_outcomes(99, 50.0)
    assert [(each.forecast.job_id, each.seconds, each.has_started) for each in found[-3:]] == [
        ("4", 50.0, False),
        ("3", 50.0, False),
        ("2", 31.0, True),
    ]
    assert found[-1].forecast == later
    assert {each.forecast.job_id for each in found} == {"1", "2", "3", "4"}
    assert store.forecast_outcomes(1, 50.0) == found[-1:]
    assert len(store.forecast_outcomes(99, 5.0)) == len(found) - 3
    assert store.last_forecasts() == {"3": 1.0, "4": 0.0}


def test_tables_are_as_they_are_declared_whatever_version_has_made_them(opening):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    def differences(store):
        assert version_of(store.database.engine) == LATEST
        with store.database.engine.connect() as connection:
            return compare_metadata(MigrationContext.configure(connection), METADATA)

    store = opening()
    assert differences(store) == []
    lines = ['{"kind": "prediction", "job_id": "7"}\n', '{"kind": "drained"}\n']
    store.commit_step(WholeStep(lines, 0))
    with store.database.engine.begin() as connection:
        for table in (IDENTITY, ROOM):
            table.drop(connection)
        for index in RECORDS.indexes:
            index.drop(connection)
        connection.execute(text("ALTER TABLE records DROP COLUMN about"))
        connection.execute(text("ALTER TABLE progress DROP COLUMN records_left"))
        connection.execute(text("DROP TABLE start_forecasts"))
        columns = ", ".join(f"{name}_seconds FLOAT NOT NULL" for name in RANGE_OF_FIRST)
        connection.execute(
            text(f"CREATE TABLE forecasts (job_id VARCHAR PRIMARY KEY NOT NULL, {columns})")
        )
        connection.execute(text("INSERT INTO forecasts VALUES ('1', 1, 2, 3, 4, 2.5, 3.5)"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    store.close()
    store = opening()
    assert differences(store) == []
    with store.database.reading() as connection:
        kept = connection.execute(select(FORECASTS)).one()
    ranges = (2.0, 3.0, 4.0, 2.5, 3.0, 3.5)
    assert kept == ("1", 1.0, "submission", 0, *ranges, False, None, None, None, None)
    with store.database.reading() as connection:
        subjects = connection.scalars(select(RECORDS.c.about).order_by(RECORDS.c.number))
        assert subjects.all() == ["7", ""]
    assert store.identity
    with store.database.engine.begin() as connection:
        for name in ("stood_in", "end_low_seconds", "end_high_seconds"):
            connection.execute(text(f"ALTER TABLE start_forecasts DROP COLUMN {name}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0005'"))
    store.close()
    store = opening()
    assert differences(store) == []
    store.close()


def test_a_store_of_a_later_version_is_refused_and_left_alone(opening):
    store = opening()
    with store.database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(InputError, match="later version"):
        opening()
    if "sqlite" not in str(store.database.engine.url):
        with store.database.engine.begin() as connection:
            connection.execute(text(f"UPDATE alembic_version SET version_num = '{LATEST}'"))
        store.database.engine.dispose()


def test_a_database_is_used_by_one_service_alone(server):
    store = SqlStore.at_address(server)
    with pytest.raises(InputError, match="another service"):
        SqlStore.at_address(server)
    store.close()
    with pytest.raises(InputError, match="database"):
        SqlStore.at_address("nonsense")
    with pytest.raises(InputError, match="reached"):
        SqlStore.at_address("postgresql://nobody@/none?host=/nowhere")


def test_a_damaged_file_is_said_to_be(tmp_path):
    path = tmp_path / "store.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(InputError, match=r"store\.db"):
        SqlStore.in_file(path)


def test_a_torn_journal_loses_nothing_that_was_acknowledged(tmp_path):
    """What was torn off was being written: all before it is there."""
    store = SqlStore.in_file(tmp_path / "store.db")
    for number in range(1, 30):
        submit(store, [number])
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("store.db", "store.db-wal"):
        (copy / name).write_bytes((tmp_path / name).read_bytes())
    store.close()
    journal = copy / "store.db-wal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:5000][::-1])
    torn = SqlStore.in_file(copy / "store.db")
    assert torn.next_number() == 30
    torn.close()
    journal.write_bytes(whole[:-100])
    shorter = SqlStore.in_file(copy / "store.db")
    assert 28 <= shorter.next_number() <= 30
    shorter.close()


_FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_store import StoreUnavailable, SqlStore, submit
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqlStore.in_file(Path({path!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
count = 0
try:
    while True:
        submit(store, [count + 1], command="x" * 5_000)
        count += 1
except StoreUnavailable:
    print(count)
"""


def test_a_full_disk_takes_nothing_back_that_was_acknowledged(tmp_path):
    path = tmp_path / "store.db"
    code = _FULL.format(tests=str(Path(__file__).parent), path=str(path))
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    accepted = int(ran.stdout)
    assert accepted > 5
    store = SqlStore.in_file(path)
    assert store.next_number() == accepted + 1
    submit(store, [accepted + 1])
    store.close()


def test_a_store_that_cannot_be_written_is_said_to_be(tmp_path):
    """SQLite refuses to write, as it does where the file may be read only (by root, too)."""
    store = SqlStore.in_file(tmp_path / "store.db")
    store.database.engine.dispose()
    event.listen(
        store.database.engine, "connect", lambda made, _: made.execute("PRAGMA query_only=ON")
    )
    with pytest.raises(StoreUnavailable, match="nothing of it was done"):
        submit(store, [1])
    store.close()
    again = SqlStore.in_file(tmp_path / "store.db")
    assert again.counts() == {}
    submit(again, [1])
    again.close()


def test_a_folder_that_cannot_be_laid_out_is_named(tmp_path):
    (tmp_path / "file").write_text("none")
    with pytest.raises(InputError, match="file/state: the folder cannot be made"):
        StateFolder(tmp_path / "file" / "state").make()


def test_a_locked_database_is_waited_for(tmp_path):
    store = SqlStore.in_file(tmp_path / "store.db")
    other = sqlite3.connect(tmp_path / "store.db")
    other.execute("BEGIN")
    assert store.counts() == {}
    other.close()
    submit(store, [1])
    store.close()


def test_more_rows_than_one_statement_takes_are_all_written(store):
    """What is written many rows at a time is what one row at a time would have been."""
    numbers = range(1, 151)
    submit(store, numbers)
    changes = {
        str(number): {
            "state": "running",
            "start_seconds": number / 8,
            "attempt": number,
            "places": None if number % 2 else f"a% ? {number}",
        }
        for number in numbers
    }
    changes["7"] = {"exit_code": -9, "because": "it's over"}
    assert store.commit_step(WholeStep([f"{number}\n" for number in numbers], 0, changes)) == 150
    assert [line for _, line in store.records()] == [f"{number}\n" for number in numbers]
    rows = store.jobs(JobsWanted(limit=1000, oldest_first=True))
    assert [row["number"] for row in rows] == list(numbers)
    for row in rows:
        changed = changes[row["job_id"]]
        assert {name: row[name] for name in changed} == changed
    assert rows[6]["state"] == "pending"
    assert rows[6]["start_seconds"] is None


SECONDS = st.floats(allow_nan=False)


@given(st.lists(st.tuples(SECONDS, st.text(st.characters(exclude_categories=["Cs"]))), min_size=1))
@example(
    [(2356.5221601766398, "\x85\u2028\"'%\n"), (1795801092.7031643, ""), (math.inf, "\U0001f9ed")]
)
def test_a_page_is_what_one_job_after_the_other_is(values):
    """To the last digit, though it is handed over as a text."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore.in_file(Path(folder) / "store.db")
        submit(store, range(1, len(values) + 1))
        changes = {
            str(number): {"start_seconds": seconds, "because": words.replace("\0", "")}
            for number, (seconds, words) in enumerate(values, 1)
        }
        store.commit_step(WholeStep([], 0, changes))
        page = store.jobs(JobsWanted(oldest_first=True))
        assert page == [store.job(job_id) for job_id in changes]
        store.close()


def test_room_is_given_up_inside_the_file_when_the_disk_fills_and_kept_again(tmp_path, monkeypatch):
    """What is written then takes the pages that were kept; no job is accepted, commands are."""
    store = SqlStore.in_file(tmp_path / "store.db")
    free = 1e9
    monkeypatch.setattr(DiskRoom, "_free_bytes", lambda _: free)

    def spare_pages():
        with store.database.reading() as connection:
            return connection.scalar(text("PRAGMA freelist_count"))

    submit(store, [1])
    store.database.keep_room()
    assert spare_pages() < 100
    size = (tmp_path / "store.db").stat().st_size
    assert size > 8e6
    free = 1e6
    with pytest.raises(StoreUnavailable, match="full but for 1 MB"):
        submit(store, [2])
    store.accept([KeyedCall("ann", (CommandRequest(Command.CANCEL, "1"),))])
    assert spare_pages() > 1900
    store.commit_step(WholeStep(["x" * 100_000 + "\n"] * 20, 2, {}))
    assert (tmp_path / "store.db").stat().st_size == size
    free = 1e9
    store.database.keep_room()
    assert spare_pages() < 100
    submit(store, [2])
    store.close()
