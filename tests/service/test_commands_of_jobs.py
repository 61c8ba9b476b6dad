"""Commands of jobs that are not done with: read from the store when they are first asked for."""

from __future__ import annotations

from foresail.live.command_job import CommandJob
from foresail.service.exchange import CommandsById
from foresail.service.store.protocol import KeyedCall, Submit
from foresail.service.store.sql_store import SqlStore


def test_commands_are_read_when_they_are_asked_for_and_kept_until_their_jobs_are_done(tmp_path):
    """Of those that wait nothing is in memory; which there are, the store knows."""
    first = CommandJob("1", "name", ("true", "é"), "/", user="ann", after=("0",))
    second = CommandJob("2", "name", "false", "/")
    store = SqlStore.in_file(tmp_path / "store.db")
    commands = CommandsById(store)
    call = KeyedCall("ann", (Submit(first), Submit(second)))
    store.accept([call])
    assert not commands._asked_for
    assert commands["1"] == first
    assert commands["1"] is commands["1"]
    assert list(commands) == ["1", "2"]
    assert len(commands) == 2
    commands.forget(["1", "3"])
    assert not commands._asked_for
    assert "3" not in commands
    store.close()
