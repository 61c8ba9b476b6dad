"""Backups, put back or moved to another database: all of it or nothing, and no id given twice."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import select, text
from typer.testing import CliRunner

from databases import PostgreSQLServer, program
from foresail.cli.main import app_of
from foresail.live.command_job import CommandJob
from foresail.service import upkeep
from foresail.service.state_folder import StateFolder
from foresail.service.store.protocol import METADATA, ROOM, KeyedCall, Submit
from foresail.service.store.sql_store import SqlStore
from live_service import ENDS, becomes, live_service, submit

_EASY = 'policy = "easy,recent,incremental"\ncluster = "local(nodes=1,cpus=4)"\n'
_LAST = {"completed", "failed", "cancelled"}


@pytest.fixture(scope="module")
def server():
    if program("initdb") is None:
        pytest.skip("no PostgreSQL on this machine")
    with tempfile.TemporaryDirectory() as folder:
        server = PostgreSQLServer(Path(folder))
        server.start()
        yield server.address
        server.stop()


@pytest.fixture
def state(tmp_path):
    """A state folder with a store of 2,500 jobs, so that copies take several statements."""
    folder = StateFolder(tmp_path / "state")
    folder.make()
    store = SqlStore.in_file(folder.database)
    jobs = [CommandJob(str(each), "name", "true", "/", user="ann") for each in range(1, 2501)]
    store.accept([KeyedCall("ann", tuple(Submit(each) for each in jobs))])
    store.database.keep_room()
    store.close()
    return folder.path


def told(*words):
    result = CliRunner().invoke(app_of("db"), [str(each) for each in words])
    return result.exit_code, result.output or str(result.exception)


def well(*words):
    code, output = told(*words)
    assert code == 0, output
    return output


def rows(store):
    """All that is in it."""
    with store.database.engine.connect() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table))))
            for table in METADATA.sorted_tables
            if table is not ROOM
        }


def rows_in_file(path):
    store = SqlStore.in_file(path)
    found = rows(store)
    store.close()
    return found


def test_a_service_goes_on_after_a_restore_and_in_another_database(tmp_path, server):
    """What ran since the backup is found out, ids go on, nothing runs twice, replay is alike."""
    marks = tmp_path / "marks"
    configuration = tmp_path / "service.toml"

    def mark(client, **fields):
        command = f"echo $FORESAIL_JOB_ID >> {marks}"
        return submit(client, command=command, directory="/", **fields)

    def ended(client, *job_ids):
        for each in job_ids:
            becomes(client, each, *ENDS)

    with live_service(tmp_path, _EASY) as service, service.client() as client:
        ended(client, mark(client), mark(client))
        assert mark(client, held=True) == "3"
        well("backup", service.state, tmp_path / "backup.db")
        assert told("restore", service.state, tmp_path / "backup.db")[0] != 0
        assert told("move", configuration, "--to", server)[0] != 0
        assert client.post("/v1/jobs/3/release").is_success
        ended(client, "3", mark(client))
    assert "restored: 3 jobs" in well("restore", service.state, tmp_path / "backup.db")
    with live_service(tmp_path, _EASY) as service, service.client() as client:
        assert client.get("/v1/jobs/3").json()["state"] == "held"
        assert client.get("/v1/jobs/4").status_code == 404
        assert client.post("/v1/jobs/3/release").is_success
        ended(client, "3", mark(client))
    assert sorted(marks.read_text().split()) == ["1", "2", "3", "4", "5"]
    log = exported(service.state, tmp_path / "before")
    assert "moved: 4 jobs" in well("move", service.state, "--to", server)
    assert "was moved to postgresql" in told("move", service.state, "--to", server)[1]
    moved = _EASY + f'database = "{server}"\n'
    with live_service(tmp_path, moved) as service, service.client() as client:
        listed = client.get("/v1/jobs").json()["jobs"]
        assert {each["job_id"]: each["state"] for each in listed} == dict.fromkeys(
            ["1", "2", "3", "5"], "completed"
        )
        ended(client, mark(client))
        assert "well: 5 jobs" in well("check", configuration)
    assert exported(configuration, tmp_path / "moved").startswith(log)
    well("move", configuration, "--to", "sqlite")
    with live_service(tmp_path, _EASY) as service, service.client() as client:
        ended(client, mark(client))
    assert sorted(marks.read_text().split()) == ["1", "2", "3", "4", "5", "6", "7"]
    assert well("check", service.state).startswith("well: 6 jobs")
    assert not [each for each in tmp_path.rglob(".*") if each.is_file()]


def exported(state, folder):
    """The session's log, of which every decision is made again."""
    well("export", state, "--output", folder)
    again = CliRunner().invoke(app_of("replay"), [str(folder)])
    assert again.output == "every decision is made again\n"
    return (folder / "events.jsonl").read_text()


def test_a_backup_is_all_of_a_store_at_one_moment_for_its_owner(state, tmp_path, monkeypatch):
    store = SqlStore.in_file(StateFolder(state).database)
    before = rows(store)
    tables = []

    def looked_at(table):
        """Something is accepted in the middle of it."""
        tables.append(table)
        if len(tables) == 2:
            job = CommandJob("2501", "name", "true", "/", user="ann")
            store.accept([KeyedCall("ann", (Submit(job),), None, 2501)])
        return select(table)

    with monkeypatch.context() as patched:
        patched.setattr(upkeep, "select", looked_at)
        well("backup", state, tmp_path / "backup.db")
    assert len(tables) > 2
    assert store.next_number() == 2502
    store.close()
    assert rows_in_file(tmp_path / "backup.db") == before
    assert (tmp_path / "backup.db").stat().st_mode & 0o077 == 0
    assert "is there already" in told("backup", state, tmp_path / "backup.db")[1]


@pytest.mark.parametrize("what", ["backup", "restore", "move"])
def test_a_copy_that_fails_half_way_leaves_nothing(state, tmp_path, server, monkeypatch, what):
    empty_database(server)
    well("backup", state, tmp_path / "good.db")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*.db")}
    words = {
        "backup": ("backup", state, tmp_path / "new.db"),
        "restore": ("restore", state, tmp_path / "good.db"),
        "move": ("move", state, "--to", server),
    }[what]
    inserted = 0

    def insert(table):
        nonlocal inserted
        inserted += 1
        if inserted == 3:
            raise OSError(28, "No space left on device")
        return original(table)

    original = upkeep.insert
    monkeypatch.setattr(upkeep, "insert", insert)
    assert told(*words)[0] != 0
    monkeypatch.undo()
    assert inserted == 3
    assert {each: each.read_bytes() for each in tmp_path.rglob("*.db")} == before
    assert not [each for each in tmp_path.rglob(".*") if each.is_file()]
    assert well("check", state).startswith("well: 2,500 jobs")
    if what == "move":
        store = SqlStore.at_address(server)
        assert upkeep.is_free(store)
        store.close()


def empty_database(address):
    store = SqlStore.at_address(address)
    with store.database.engine.begin() as connection:
        METADATA.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
    store.close()


def test_what_is_no_sound_backup_is_refused(state, tmp_path):
    """Something else, a damaged one, and one of another service's store."""
    file = tmp_path / "other"
    file.write_text("none")
    assert "is no backup" in told("restore", state, file)[1]
    file.unlink()
    sqlite3.connect(file).close()
    assert "is no backup" in told("restore", state, file)[1]
    file.unlink()
    well("backup", state, file)
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT INTO records (number, line) VALUES (2, 'nonsense')")
    connection.close()
    assert "does not hold together: record 1" in told("restore", state, file)[1]
    file.unlink()
    well("backup", state, file)
    (state / "store.json").write_text(json.dumps({"identity": "another", "given": 7}))
    assert "is of another store" in told("restore", state, file)[1]
    assert told("restore", state, tmp_path / "none")[0] != 0
    assert not list((state / "attempts").iterdir())


def test_a_lost_machine_is_made_good_from_a_backup_alone(state, tmp_path):
    """In a new folder; its ids go on, and the folder is the store's from then on."""
    well("backup", state, tmp_path / "backup.db")
    new = tmp_path / "new"
    well("restore", new, tmp_path / "backup.db")
    assert rows_in_file(new / "foresail.db") == rows_in_file(state / "foresail.db")
    assert json.loads((new / "store.json").read_text())["given"] == 2500
