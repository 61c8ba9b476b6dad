"""Commands of jobs that are not done with, some as lines that nobody has asked for yet."""

from __future__ import annotations

from foresail.live.command_job import CommandJob
from foresail.service.inbox import CommandsById


def test_stored_and_new_commands_are_asked_for_alike():
    """A stored one is read once; one that is done with is there no more."""
    stored = CommandJob("1", "name", ("true", "é"), "/", user="ann", after=("0",))
    new = CommandJob("2", "name", "false", "/")
    commands = CommandsById([("1", stored.to_json()), ("3", new.to_json())])
    commands.put(new)
    assert commands["1"] == stored
    assert commands["1"] is commands["1"]
    assert commands["2"] == new
    commands.forget(["3", "4"])
    assert list(commands) == ["1", "2"]
    assert len(commands) == 2
    assert "3" not in commands
