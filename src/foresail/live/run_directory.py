"""The run directory: everything that a run needs in order to go on after its daemon is gone."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.model.whole_files import write_durably


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings from the beginning of a run; a resumed run keeps to them."""

    source: str
    """The jobs file, or ``standard input``."""
    source_sha256: str | None
    """Digest of the jobs file; None for standard input."""
    policy: str
    """Short form of scheduler, predictor and correction."""
    cluster: str
    """Short form of the cluster."""
    history: str | None
    """Where outcomes of earlier runs are; None where none are used or kept."""
    learned: str | None = None
    """The file in which what the predictor knows is kept; None for none."""
    learned_as: str = ""
    """What the run calls itself in that file."""


class RunDirectory:
    """The files of one run.

    ``run.json`` (settings), ``jobs.jsonl`` (accepted jobs, in order), ``events.jsonl`` (the event
    log), ``snapshot.jsonl`` (what matters of it), ``attempts/`` (claims and statuses), ``logs/``
    (what commands write), ``lock``, ``schedule.parquet``, ``report/``; ``learned-before`` (what
    the predictor knew at first) and ``learned`` (what it knows, where that could not be written
    elsewhere).
    """

    def __init__(self, path: Path) -> None:
        path = path.absolute()
        self.path = path
        self.events = path / "events.jsonl"
        self.attempts = path / "attempts"
        self.logs = path / "logs"
        self.schedule = path / "schedule.parquet"
        self.report = path / "report"
        self.learned_before = path / "learned-before"
        self.learned_aside = path / "learned"
        self._settings = path / "run.json"
        self._jobs = path / "jobs.jsonl"

    @classmethod
    def create(cls, path: Path, settings: RunSettings, jobs: Iterable[CommandJob]) -> RunDirectory:
        """Lay out the directory of a new run; it counts as one once all of it is on disk.

        Raises ``InputError`` if there is a run already, or the directory cannot be written.
        """
        run = cls(path)
        if run._settings.exists():
            raise InputError(
                "holds a run already", source=path, expected="a new directory, or --resume"
            )
        try:
            for folder in (path, run.attempts, run.logs):
                folder.mkdir(parents=True, exist_ok=True)
            run.learned_before.unlink(missing_ok=True)
            if settings.learned is not None and Path(settings.learned).exists():
                write_durably(run.learned_before, Path(settings.learned).read_bytes())
            lines = "".join(job.to_json() + "\n" for job in jobs)
            write_durably(run._jobs, lines.encode())
            write_durably(run._settings, (json.dumps(asdict(settings), indent=2) + "\n").encode())
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=path) from error
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """The directory of a run that was begun; raises ``InputError`` if it is none."""
        run = cls(path)
        if not run._settings.is_file():
            raise InputError(
                "not a run directory", source=path, expected="one that `foresail run` has made"
            )
        return run

    def settings(self) -> RunSettings:
        """Read the settings of the run's beginning; raises ``InputError`` if unreadable."""
        try:
            stored: dict[str, Any] = json.loads(self._settings.read_text())
            if "cpus" in stored:  # of a run that began when there was this machine alone
                cpus, grace = stored.pop("cpus"), stored.pop("grace_seconds")
                stored["cluster"] = f"local(cpus={cpus},grace_seconds={grace!r})"
            return RunSettings(**stored)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"unreadable settings: {error}", source=self._settings) from error

    def origin(self) -> tuple[str, str | None]:
        """Return where its jobs came from, and the digest of that if it is a file."""
        settings = self.settings()
        return settings.source, settings.source_sha256

    def jobs(self) -> list[CommandJob]:
        """All accepted jobs, in order; a line that a crash left incomplete is none."""
        lines = self._jobs.read_text().splitlines(keepends=True)
        return [CommandJob.from_json(line) for line in lines if line.endswith("\n")]

    def add_jobs(self, jobs: Iterable[CommandJob]) -> None:
        """Accept further jobs: they are on disk when this returns.

        Raises ``InputError`` if they cannot be written; none of them is accepted then.
        """
        content = "".join(job.to_json() + "\n" for job in jobs).encode()
        before = self._jobs.stat().st_size
        try:
            with self._jobs.open("ab", buffering=0) as file:
                while content:
                    content = content[file.write(content) :]
                os.fsync(file.fileno())
        except OSError as error:
            os.truncate(self._jobs, before)
            raise InputError(
                f"cannot be written: {error.strerror}; the last lines are not accepted",
                source=self._jobs,
            ) from error

    def drop_incomplete_line(self) -> None:
        """Cut off what a crash left of a job that was being accepted."""
        content = self._jobs.read_bytes()
        os.truncate(self._jobs, content.rfind(b"\n") + 1)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other daemon away from this run."""
        with (self.path / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                lock.seek(0)
                raise InputError(
                    f"another supervisor (process {lock.read().strip()}) is at work on this run",
                    source=self.path,
                ) from error
            lock.truncate(0)
            with suppress(OSError):  # a full disk: it is only said to others
                os.write(lock.fileno(), f"{os.getpid()}\n".encode())
            yield
