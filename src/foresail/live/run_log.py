"""The log of a run that goes on, its snapshots, and recovery: the state that it leads to.

A snapshot has the records that the state follows from, up to a place in the log. One that is
missing, torn, of another log or version is none, and the log is read from its beginning.

Recovery folds what happened and what was instructed up to the last step that is whole. Nothing of a
later one was carried out: a step is on disk before its instructions.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Protocol

from foresail.control.loop import Controller
from foresail.model.errors import InputError
from foresail.model.event import Submitted
from foresail.model.protocols import Scheduler
from foresail.model.whole_files import write_durably
from foresail.record import log_text, records
from foresail.record.compaction import Compaction
from foresail.record.job_life import ImpossibleTransition
from foresail.record.run_fold import RunFold

_VERSION: Final = 1
_TAIL_BYTES: Final = 65_536
"""Size of the end of the log before the place that is compared."""


@dataclass(frozen=True, slots=True)
class _Header:
    """Header of a snapshot: ``end`` is the place in the log, in bytes."""

    end: int
    log_sha256: str
    lines_sha256: str
    version: int = _VERSION


def snapshot_path(log: Path) -> Path:
    """Return where the snapshot of a log is: beside it."""
    return log.with_name("snapshot.jsonl")


def _write_snapshot(path: Path, lines: Iterable[str], log: Path, end: int) -> None:
    """Write a snapshot, whole or not at all.

    ``end`` is the byte of the log up to which these lines stand for it.
    """
    content = "".join(lines).encode()
    begin = max(0, end - _TAIL_BYTES)
    with log.open("rb") as file:
        file.seek(begin)
        tail = file.read(end - begin)
    header = _Header(end, _digest(tail), _digest(content))
    write_durably(path, json.dumps(asdict(header)).encode() + b"\n" + content)


def _read_snapshot(path: Path, log: bytes) -> tuple[int, bytes] | None:
    """The place in a log that its snapshot stands for, and the lines; None if none can be used."""
    try:
        first, _, lines = path.read_bytes().partition(b"\n")
        header = _Header(**json.loads(first))
        fits = (
            header.version == _VERSION
            and header.lines_sha256 == _digest(lines)
            and header.log_sha256 == _digest(log[max(0, header.end - _TAIL_BYTES) : header.end])
            and 0 < header.end <= len(log)
        )
    except (OSError, ValueError, TypeError):
        return None
    return (header.end, lines) if fits else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


INFORMATIVE: Final = (records.ReasonsChanged, records.Sized, records.Solved)
"""Records that no state follows from."""

SNAPSHOT_EVERY: Final = 50_000
"""A snapshot is written after so many records that matter (or as many as it has itself)."""


class FollowedLog(records.EventLog, Protocol):
    """The log of a run that goes on; a step is on disk once it is committed."""

    def close(self) -> None:
        """Let go of it; what was not committed never happened."""


class RunLog(log_text.DurableLog):
    """The log of a run, of which a snapshot is written from time to time.

    What is in the log ends with a whole step. ``manifest`` is what a new one begins with;
    ``since_snapshot`` counts the records that matter behind the last snapshot.
    """

    def __init__(
        self,
        path: Path,
        manifest: records.Manifest | None,
        compaction: Compaction,
        since_snapshot: int = 0,
    ) -> None:
        self._snapshot = snapshot_path(path)
        self._compaction = compaction
        self._since_snapshot = since_snapshot
        super().__init__(path, manifest)

    def append(self, record: records.Record) -> None:
        """Take one record."""
        line = log_text.record_line(record)
        self._lines.append(line)
        if not isinstance(record, INFORMATIVE):
            self._compaction.take(record, line)
            self._since_snapshot += 1

    def commit(self) -> None:
        """Hand the step to the disk; now and then a snapshot, which can be done without."""
        super().commit()
        if self._since_snapshot >= max(SNAPSHOT_EVERY, len(self._compaction)):
            self._since_snapshot = 0
            with suppress(OSError):
                _write_snapshot(self._snapshot, self._compaction.lines(), self._path, self._end)


_MARK: Final = log_text.COMMITTED_LINE.encode()
_INFORMATIVE: Final = ('{"kind":"reason', '{"kind":"solution"', log_text.COMMITTED_LINE)
"""Lines of records that the state does not follow from."""


def recover(
    path: Path, manifest: records.Manifest, build: Callable[[records.EventLog], Controller]
) -> tuple[Controller, RunLog]:
    """The controller as it was after the last whole step of a log, and the log, open at its end.

    What a crash left of a step that was being written is cut off: nothing of it had been carried
    out. A log that does not exist, or whose first line is torn, begins with ``manifest``; ``build``
    makes the run's controller, fresh, writing to a log.

    Raises ``InputError`` if the log is damaged, or cannot be read or written.
    """
    content = _content(path)
    end = _end_of_whole_steps(content, path)
    compares_with = build(records.NullLog()).compares_with if end > 0 else None
    known = _known(content[:end], path, compares_with)
    _end_with_whole_step(path, content, end)
    first = manifest if end == 0 else None
    log = RunLog(path, first, known.compaction, known.since_snapshot)
    controller = build(log)
    if end > 0:
        controller.take_over(known.run)
    return controller, log


@dataclass(slots=True)
class KnownRun:
    """State that the records of a run lead to, and the content its log goes on with.

    ``since_snapshot`` counts the records that matter behind the last snapshot; ``end`` is the
    number of the last record.
    """

    run: RunFold = field(default_factory=RunFold)
    compaction: Compaction = field(default_factory=Compaction)
    since_snapshot: int = 0
    end: int = 0

    @classmethod
    def beginning(cls, compares_with: Scheduler | None) -> KnownRun:
        """The state before any record, of a run whose scheduler compares with another, if any."""
        return cls(RunFold(compares_with))

    def take(self, line: str, number: int, source: object, place: int | None = None) -> None:
        """Take a record of a whole step; with its number in the log, if it can be read by that."""
        if number > 1 and line.startswith(_INFORMATIVE):
            self.end = number
            return
        record = log_text.parse_record(line, source, number)
        if number == 1 and not isinstance(record, records.Manifest):
            raise InputError(
                "does not begin with a manifest", source=source, expected="an event log"
            )
        try:
            self.run.take(record)
            self.compaction.take(record, line, place)
            if isinstance(record, records.Forgotten):
                self.run.forget(record.job_ids)
        except (ImpossibleTransition, KeyError, ValueError) as error:
            raise InputError(
                f"does not fit what comes before: {error}",
                source=source,
                line=number,
                expected="the log as the run left it",
            ) from error
        self.since_snapshot += 1
        self.end = number


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error


def _end_of_whole_steps(content: bytes, path: Path) -> int:
    """Return where the last whole step ends; 0 if not even the manifest is whole."""
    mark = content.rfind(b"\n" + _MARK)
    if mark >= 0:
        return mark + 1 + len(_MARK)
    return _end_without_marks(content[: content.rfind(b"\n") + 1], path)


def _end_without_marks(content: bytes, path: Path) -> int:
    """The end of the last step of a log from before there were marks (0.1.0).

    That step counts as whole if none of its submissions lacks its prediction: of a job that it does
    not start, nothing is lost, and one that it started is found by its claim.
    """
    size, last = 0, None
    submitted, predicted = set[str](), set[str]()
    lines = content.splitlines(keepends=True)
    for number in range(len(lines), 1, -1):
        record = log_text.parse_record(lines[number - 1].decode(errors="replace"), path, number)
        step = getattr(record, "step", None)
        if last not in (None, step):
            break
        last = step
        size += len(lines[number - 1])
        match record:
            case records.Predicted(job_id=job_id):
                predicted.add(job_id)
            case records.EventTaken(event=Submitted(job=job)):
                submitted.add(job.job_id)
    return len(content) if submitted <= predicted else len(content) - size


def _known(content: bytes, path: Path, compares_with: Scheduler | None) -> KnownRun:
    """Read the records of whole steps: those of a snapshot first, and what follows it."""
    snapshot = _read_snapshot(snapshot_path(path), content)
    known, begin = KnownRun.beginning(compares_with), 0
    if snapshot is not None:
        try:
            _fold(known, snapshot[1], 0, path)
            known.since_snapshot, begin = 0, snapshot[0]
        except InputError:  # it is not what this version would have written: do without
            known = KnownRun.beginning(compares_with)
    _fold(known, content, begin, path)
    return known


def _fold(known: KnownRun, content: bytes, begin: int, path: Path) -> None:
    """Take the records from a byte on."""
    lines = io.BytesIO(content)
    lines.seek(begin)
    for number, line in enumerate(lines, 1 + content.count(b"\n", 0, begin)):
        known.take(line.decode(errors="replace"), number, path)


def _end_with_whole_step(path: Path, content: bytes, end: int) -> None:
    """Cut off what is no whole step, and mark the last one if an older version did not."""
    missing = b"" if end == 0 or content[:end].endswith(b"\n" + _MARK) else _MARK
    if end == len(content) and not missing:
        return
    try:
        with path.open("r+b") as file:
            file.truncate(end)
            file.seek(end)
            file.write(missing)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
