"""Trials of the local adapter: commands that sleep, and that leave a mark when they begin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from foresail.live.adapters.local.adapter import LocalAdapter
from foresail.live.cluster_plugin import RunContext
from foresail.live.command_job import CommandJob
from foresail.model.decision import Placement, Start


class LocalTrial:
    """The machine and jobs for it, with their files in a folder."""

    def __init__(self, connect: Callable[[RunContext], LocalAdapter], folder: Path) -> None:
        self._connect = connect
        self._commands: dict[str, CommandJob] = {}
        self._marks = folder / "marks"
        self._run = RunContext(folder / "attempts", folder / "logs", self._commands, _say_nothing)
        for each in (self._marks, self._run.attempts, self._run.logs):
            each.mkdir(parents=True)

    def connect(self) -> LocalAdapter:
        """Another adapter to this machine."""
        return self._connect(self._run)

    def start_of(self, seconds: float) -> Start:
        """The start of a new command."""
        job_id = f"sleep-{len(self._commands)}"
        command = f"echo >> {job_id}; sleep {seconds}"
        self._commands[job_id] = CommandJob(job_id, job_id, command, str(self._marks))
        return Start(job_id, Placement.whole("all", 1))

    def times_begun(self, job_id: str) -> int:
        """How many marks there are of it."""
        mark = self._marks / job_id
        return len(mark.read_text().splitlines()) if mark.exists() else 0


def _say_nothing(sentence: str) -> None:
    del sentence
