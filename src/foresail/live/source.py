"""Sources of a daemon's events and commands, and observers, which show what happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from foresail.control.loop import Controller
from foresail.live.command_job import CommandJob
from foresail.live.jobs_file import InvalidJobs, JobLines
from foresail.live.run_clock import by_clock_of_run
from foresail.live.run_directory import RunDirectory
from foresail.model.event import Event, Outcome, Submitted
from foresail.model.job import Job
from foresail.record.job_life import JobHistory


class DaemonCommand(Enum):
    """Command to a daemon."""

    GO_ON = auto()
    DRAIN = auto()
    """Start nothing new, and stop once what runs has ended."""
    STOP = auto()
    """Stop running jobs, which count as not done; else as ``DRAIN``."""
    LEAVE = auto()
    """Stop at once; what runs runs on, and the next daemon finds it again."""


class EventSource(Protocol):
    """Gives a daemon events that come from people, each of which is on disk before."""

    @property
    def descriptor(self) -> int | None:
        """Readable when there may be something new; None once there will be nothing more."""

    def earlier(self, known: Container[str], now: float) -> Sequence[Event]:
        """Return events that an earlier daemon heard and did not take; it knew these jobs."""

    def arrived(self, now: float) -> Sequence[Event]:
        """Return new events; raises ``InputError`` if they cannot be written down."""

    def command(self, interrupts: int) -> DaemonCommand:
        """Return the command after so many interrupts by signals."""

    def close(self) -> None:
        """Take nothing more."""


class Observer(Protocol):
    """Shows what happens, while it happens."""

    refresh_seconds: float
    """Time after which ``refreshed`` is wanted though nothing happens; infinite for never."""

    def started(self, job: Job, attempt: int) -> None:
        """An attempt of a job starts."""

    def ended(self, job: Job, outcome: Outcome) -> None:
        """An attempt of a job has ended."""

    def withdrawn(self, job: Job, because: str) -> None:
        """A job will never run."""

    def note(self, sentence: str) -> None:
        """Pass on what else a person should know."""

    def refreshed(self, controller: Controller, jobs: JobHistory) -> None:
        """Show the present state."""


@dataclass(frozen=True, slots=True)
class LineInput:
    """Jobs that arrive as lines while the run goes on: a descriptor, and what checks the lines."""

    descriptor: int
    reader: JobLines


class Submissions:
    """A source of events: accepted jobs, each on disk before it is reported."""

    def __init__(
        self, run: RunDirectory, lines: LineInput | None, note: Callable[[str], None]
    ) -> None:
        self.commands = {job.job_id: job for job in run.jobs()}
        self.refused_lines = 0
        self._run = run
        self._lines = lines
        self._note = note
        self._line_count = 0
        self._unfinished_line = b""

    @property
    def descriptor(self) -> int | None:
        """Readable when there may be further jobs; None once there will be none."""
        return None if self._lines is None else self._lines.descriptor

    def command(self, interrupts: int) -> DaemonCommand:
        """Drain after one interrupt, and stop what runs after two."""
        return (DaemonCommand.GO_ON, DaemonCommand.DRAIN, DaemonCommand.STOP)[min(interrupts, 2)]

    def close(self) -> None:
        """Accept no more."""
        self._lines = None

    def earlier(self, known: Container[str], now: float) -> list[Submitted]:
        """The jobs accepted before, but for those of known ids."""
        return [
            Submitted(now, by_clock_of_run(job, now).specification(now))
            for job_id, job in self.commands.items()
            if job_id not in known
        ]

    def arrived(self, now: float) -> list[Submitted]:
        """Accept what has arrived; raises ``InputError`` if it cannot be written down."""
        if self._lines is None:
            return []
        content = os.read(self._lines.descriptor, 1 << 16)
        *whole, rest = (self._unfinished_line + content).split(b"\n")
        if not content:
            whole, rest = [*whole, rest], b""
        self._unfinished_line = rest
        reader = self._lines.reader
        jobs = [job for line in whole if (job := self._accepted(line, reader)) is not None]
        if not content:
            self.close()
        if jobs:
            self._run.add_jobs(jobs)
            self.commands.update((job.job_id, job) for job in jobs)
        return [Submitted(now, by_clock_of_run(job, now).specification(now)) for job in jobs]

    def _accepted(self, line: bytes, reader: JobLines) -> CommandJob | None:
        self._line_count += 1
        try:
            return reader.line(line.decode(errors="replace"), self._line_count)
        except InvalidJobs as error:
            self.refused_lines += 1
            self._note(str(error))
            return None
