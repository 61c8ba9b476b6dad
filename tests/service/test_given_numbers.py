"""A state folder and its database: which belongs to which, and ids that are never given twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.service.state_folder import GivenNumbers, StateFolder
from foresail.service.store.protocol import KeyedCall, StoreUnavailable, Submit, WholeStep
from foresail.service.store.sql_store import SqlStore
from live_service import becomes, environment_of_service, live_service

_SERVE = [sys.executable, "-c", "from foresail.cli.main import main; main()", "serve"]
_EASY = 'policy = "easy,recent,incremental"\ncluster = "local(nodes=1,cpus=4)"'


def _full(*_):
    raise OSError(28, "No space left on device")


@pytest.fixture
def folder(tmp_path):
    made = StateFolder(tmp_path / "state")
    made.make()
    return made


@pytest.fixture
def opened(folder):
    """Opens the folder's store; all are closed at the end."""
    stores = []

    def at(path=folder.database):
        stores.append(SqlStore.in_file(path))
        return stores[-1]

    yield at
    for store in stores:
        store.close()


def submit(store, *numbers):
    for number in numbers:
        job = CommandJob(str(number), "name", "true", "/", user="ann")
        store.accept([KeyedCall("ann", (Submit(job),), None, number)])


def test_a_database_that_was_replaced_is_refused_and_no_job_is_reported_done(tmp_path):
    """Its jobs would have the ids of former ones, whose ends and logs would be taken for theirs."""
    with live_service(tmp_path, _EASY) as service, service.client() as client:
        job = {"command": "echo former", "directory": "/"}
        assert client.post("/v1/jobs", json=job).json()["jobs"][0]["job_id"] == "1"
        becomes(client, "1", "completed")
    for each in service.state.glob("foresail.db*"):
        each.unlink()
    ran = subprocess.run(
        [*_SERVE, str(tmp_path / "service.toml")],
        capture_output=True,
        text=True,
        env=environment_of_service(),
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert "is of another store" in ran.stderr
    assert "foresail db restore" in ran.stderr


def test_an_older_copy_goes_on_with_new_numbers(folder, opened, tmp_path):
    """After a stop with the next one; after a kill behind all that may have been given."""
    store = opened()
    numbers = GivenNumbers(folder, store)
    numbers.set_aside(2)
    submit(store, 1, 2)
    store.close()
    shutil.copy(folder.database, tmp_path / "older.db")
    store = opened()
    numbers = GivenNumbers(folder, store)
    first = store.next_number()
    assert first > 2
    numbers.set_aside(first)
    submit(store, first)
    numbers.close()
    store.close()
    shutil.copy(tmp_path / "older.db", folder.database)
    store = opened()
    assert store.next_number() == 3
    GivenNumbers(folder, store)
    assert store.next_number() == first + 1


def test_numbers_go_on_without_a_gap_after_a_stop(folder, opened):
    store = opened()
    numbers = GivenNumbers(folder, store)
    numbers.set_aside(3)
    submit(store, 1, 2, 3)
    numbers.close()
    store.close()
    store = opened()
    GivenNumbers(folder, store)
    assert store.next_number() == 4


def test_numbers_are_set_aside_before_callers_need_them(folder, opened, monkeypatch):
    """By how many were given since the last look; a caller writes no file then."""
    store = opened()
    numbers = GivenNumbers(folder, store)
    numbers.set_aside(300)
    numbers.look_ahead()
    with monkeypatch.context() as patched:
        patched.setattr("foresail.service.state_folder.write_durably", _full)
        numbers.set_aside(1_000)
        with pytest.raises(StoreUnavailable, match="cannot be written"):
            numbers.set_aside(2_000)
        numbers.look_ahead()
    store.close()
    store = opened()
    GivenNumbers(folder, store)
    assert 1_000 < store.next_number() < 2_000


def test_no_number_is_given_that_cannot_be_set_aside(folder, opened, monkeypatch):
    numbers = GivenNumbers(folder, opened())
    monkeypatch.setattr("foresail.service.state_folder.write_durably", _full)
    with pytest.raises(StoreUnavailable, match="No space left"):
        numbers.set_aside(1)


def test_a_folder_of_before_there_were_identities_passes_over_what_ran_in_it(folder, opened):
    (folder.attempts / "17.1.status").write_text("0 1 2 -\n")
    (folder.attempts / "9_4.1.claim").write_text("-\n")
    store = opened()
    GivenNumbers(folder, store)
    assert store.next_number() == 18


def test_a_database_with_running_jobs_is_refused_in_an_empty_folder(folder, opened):
    """They would be begun once more."""
    store = opened()
    submit(store, 1)
    store.commit_step(WholeStep(["x\n"], 1, {"1": {"state": "running"}}))
    with pytest.raises(InputError, match="holds nothing of the jobs that run"):
        GivenNumbers(folder, store)


@pytest.mark.parametrize("content", ["", "{}", '{"identity": "x", "given": "many"}'])
def test_a_spoilt_file_is_named(folder, opened, content):
    folder.identity.write_text(content)
    with pytest.raises(InputError, match=r"store\.json"):
        GivenNumbers(folder, opened())


def test_the_identity_is_made_once_and_is_no_other_stores(folder, opened, tmp_path):
    store = opened()
    assert opened().identity == store.identity
    assert opened(tmp_path / "other.db").identity != store.identity
    GivenNumbers(folder, store)
    assert json.loads(folder.identity.read_text())["identity"] == store.identity
    with pytest.raises(InputError, match="is of another store"):
        GivenNumbers(folder, opened(tmp_path / "other.db"))
