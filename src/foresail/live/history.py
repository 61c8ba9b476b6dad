"""History: outcomes of earlier runs of commands, kept in one file for predictors to learn from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from foresail.model.errors import InputError
from foresail.model.event import HistoryOutcome
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.record.job_life import JobHistory
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import EventTaken

REMEMBERED: Final = 1_000
"""How many outcomes a run begins with: the latest ones."""

_TAIL_BYTES: Final = 2_000 * REMEMBERED
_TEACHES: Final = frozenset({EndedBecause.COMPLETED, EndedBecause.FAILED, EndedBecause.LIMIT})


def default_path() -> Path:
    """Where history is kept: under the user's XDG state directory."""
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
        """The latest outcomes, oldest first; lines that cannot be read are passed over."""
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
    """What tells an attempt from all others, of other runs too."""
    return job.submit_seconds, job.job_id, outcome.attempt
