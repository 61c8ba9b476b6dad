"""History: outcomes of earlier runs of commands, kept in one file for predictors to learn from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from foresail.control.log_text import parse_record, record_line
from foresail.control.records import EventTaken
from foresail.model.errors import InputError
from foresail.model.event import HistoryOutcome
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome

REMEMBERED: Final = 1_000
"""How many outcomes a run begins with: the latest ones."""

_TAIL_BYTES: Final = 2_000 * REMEMBERED
_TEACHES: Final = frozenset({EndedBecause.COMPLETED, EndedBecause.FAILED, EndedBecause.LIMIT})


def default_path() -> Path:
    """Where history is kept: under the user's XDG state directory."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "foresail" / "history.jsonl"


class HistoryFile:
    """Outcomes in order of ending, a line each; several runs may add to it at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def latest(self) -> list[HistoryOutcome]:
        """The latest outcomes, oldest first; lines that cannot be read are passed over.

        Raises
        ------
        InputError
            If there is a file and it cannot be read.
        """
        return list(self._lines())[-REMEMBERED:]

    def add(self, time: float, job: Job, outcome: Outcome) -> None:
        """Keep an outcome, if it says anything about how long such jobs run.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        if outcome.ended_because not in _TEACHES:
            return
        line = record_line(EventTaken(0, time, HistoryOutcome(time, job, outcome)))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=self._path) from error

    def _lines(self) -> Iterator[HistoryOutcome]:
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", source=self._path) from error
        for number, line in enumerate(lines, 1):
            try:
                record = parse_record(line, self._path, number)
            except InputError:
                continue
            if isinstance(record, EventTaken) and isinstance(record.event, HistoryOutcome):
                yield record.event


def key_of(job: Job, outcome: Outcome) -> tuple[float, str, int]:
    """What tells an attempt from all others, of other runs too."""
    return job.submit_seconds, job.job_id, outcome.attempt
