"""Files of a run: its directory, outcomes of earlier runs, and what its predictor has learned.

A run begins with what the file of that held, which it copies into its directory, so that a recovery
begins with the same knowledge. The file is replaced from time to time and at the end, unless
another run has written it meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from foresail.control.policy import parse_policy
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause, HistoryOutcome, Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.whole_files import write_durably
from foresail.predictors import saving
from foresail.record.job_life import JobHistory
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import EventTaken


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
    """Place of the outcomes of earlier runs; None where none are used or kept."""
    learned: str | None = None
    """The file in which what the predictor knows is kept; None for none."""
    learned_as: str = ""
    """Name of the run in that file."""


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


REMEMBERED: Final = 1_000
"""Most outcomes that a run begins with: the latest ones."""

_TAIL_BYTES: Final = 2_000 * REMEMBERED
_TEACHES: Final = frozenset({EndedBecause.COMPLETED, EndedBecause.FAILED, EndedBecause.LIMIT})


def default_path() -> Path:
    """Return where history is kept: under the user's XDG state directory."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "foresail" / "history.jsonl"


class RunHistory:
    """Outcomes in order of ending, a line each; several runs may add to the file at the same time.

    A run does not fail because the file cannot be read or written: that is said, once.

    ``path`` is None where no history is used or kept.
    """

    def __init__(self, path: Path | None, note: Callable[[str], None]) -> None:
        self._path = path
        self._note = note

    def latest(self) -> list[HistoryOutcome]:
        """The latest outcomes, oldest first; lines that cannot be read are skipped."""
        path = self._path
        try:
            return [] if path is None else list(_outcomes(path))[-REMEMBERED:]
        except OSError as error:
            self._give_up(f"no history is used or kept: {path}: cannot be read", error)
            return []

    def add(self, time: float, job: Job, outcome: Outcome) -> None:
        """Keep an outcome, if it says anything about how long such jobs run."""
        path = self._path
        if path is None or outcome.ended_because not in _TEACHES:
            return
        line = record_line(EventTaken(0, time, HistoryOutcome(time, job, outcome)))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError as error:
            self._give_up(f"no more history is kept: {path}: cannot be written", error)

    def catch_up(self, jobs: JobHistory, now: float) -> None:
        """Keep the outcomes of this run that an earlier daemon had no time to keep."""
        known = {_key_of(each.job, each.outcome) for each in self.latest()}
        for past in jobs.past:
            if _key_of(past.job, past.outcome) not in known:
                self.add(now, past.job, past.outcome)

    def _give_up(self, problem: str, error: OSError) -> None:
        self._path = None
        self._note(f"{problem}: {error.strerror}")


def _outcomes(path: Path) -> Iterator[HistoryOutcome]:
    if not path.exists():
        return
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read(_TAIL_BYTES).decode(errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            record = parse_record(line, path, number)
        except InputError:
            continue
        if isinstance(record, EventTaken) and isinstance(record.event, HistoryOutcome):
            yield record.event


def _key_of(job: Job, outcome: Outcome) -> tuple[float, str, int]:
    """Return the key of an attempt among all, of other runs too."""
    return job.submit_seconds, job.job_id, outcome.attempt


KEPT_EVERY_SECONDS: Final = 60.0
"""Seconds between writings of the file while a run goes on and learns."""

_SHARE: Final = 20.0
"""Factor by which the time between two writes must exceed the time that a write takes."""


def require_learnable(policy: str, path: Path) -> None:
    """Refuse a file that a run under this policy could not go on from.

    Raises ``InputError`` if the policy's predictor has nothing to save, or there is a file and it
    cannot be used.
    """
    part = parse_policy(policy).predictor
    predictor = part.build()
    saving.require_savable(predictor, part.text)
    if path.exists():
        saving.load_state(path, predictor, part.text)
    elif not path.parent.is_dir():
        raise InputError("there is no such folder", source=path.parent)


class LearnedFile:
    """The file in which a run keeps what its predictor knows; a run does not fail without it."""

    def __init__(self, run: RunDirectory, note: Callable[[str], None]) -> None:
        self._settings = run.settings()
        self._before = run.learned_before
        self._aside = run.learned_aside
        path = self._settings.learned
        self._path = None if path is None else Path(path)
        self._note = note
        self._due = time.monotonic() + KEPT_EVERY_SECONDS

    @property
    def knew_before(self) -> bool:
        """Return whether the run began with the content of such a file."""
        return self._before.exists()

    def keep_if_due(self, predictor: Predictor) -> None:
        """Keep the file like ``keep``, if it was not written for long."""
        if time.monotonic() >= self._due:
            self.keep(predictor)

    def keep(self, predictor: Predictor) -> None:
        """Write what the predictor knows, whole or not at all; it is said if that cannot be."""
        if self._path is None:
            return
        begin = time.monotonic()
        try:
            self._write(self._path, predictor)
        except InputError as error:
            self._path = None
            self._note(f"what was learned is not kept: {error}")
        end = time.monotonic()
        self._due = end + max(KEPT_EVERY_SECONDS, _SHARE * (end - begin))

    def _write(self, path: Path, predictor: Predictor) -> None:
        """Into the file; beside it, which is an error, if another run has written it since."""
        learned_by = parse_policy(self._settings.policy).predictor.text
        header = saving.StateHeader(learned_by, self._settings.learned_as)
        if self._is_ours(path):
            saving.save_state(path, predictor, header)
            return
        saving.save_state(self._aside, predictor, header)
        raise InputError(
            "was written by another run meanwhile, and is left as it is",
            source=path,
            expected=f"what this run learned is in {self._aside}: see foresail predict merge",
        )

    def _is_ours(self, path: Path) -> bool:
        if not path.exists():
            return True
        if self.knew_before and path.read_bytes() == self._before.read_bytes():
            return True
        return saving.read_header(path).written_by == self._settings.learned_as
