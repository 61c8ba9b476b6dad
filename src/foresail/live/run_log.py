"""The log of a run that goes on, what follows it as it is written, and snapshots of it.

A snapshot has the records that the state follows from, up to a place in the log: a header, and
lines as in the log. It says nothing that the log does not: one that is missing, torn, of another
log or of a version that is not known is none, and the log is read from its beginning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

from foresail.model.whole_files import write_durably
from foresail.record.compaction import Compaction
from foresail.record.log import DurableLog, EventLog
from foresail.record.log_text import record_line
from foresail.record.records import Manifest, ReasonsChanged, Record, Sized, Solved

_VERSION: Final = 1
_TAIL_BYTES: Final = 65_536
"""How much of the log before the place is compared."""


@dataclass(frozen=True, slots=True)
class _Header:
    """What a snapshot says of itself: ``end`` is the place in the log, in bytes."""

    end: int
    log_sha256: str
    lines_sha256: str
    version: int = _VERSION


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """Records that stand for a log up to byte ``end``, as lines."""

    end: int
    lines: bytes


def snapshot_path(log: Path) -> Path:
    """Where the snapshot of a log is: beside it."""
    return log.with_name("snapshot.jsonl")


def write_snapshot(path: Path, lines: Iterable[str], log: Path, end: int) -> None:
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


def read_snapshot(path: Path, log: bytes) -> LogSnapshot | None:
    """The snapshot of a log, if there is one that can be used."""
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
    return LogSnapshot(header.end, lines) if fits else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


TELL_ONLY: Final = (ReasonsChanged, Sized, Solved)
"""Records that no state follows from."""

SNAPSHOT_EVERY: Final = 50_000
"""A snapshot is written after so many records that matter (or as many as it has itself)."""


class FollowedLog(EventLog, Protocol):
    """The log of a run that goes on; a step is on disk once it is committed."""

    def close(self) -> None:
        """Let go of it; what was not committed never happened."""
        ...


class RunLog(DurableLog):
    """The log of a run, of which a snapshot is written from time to time.

    What is in the log ends with a whole step. ``manifest`` is what a new one begins with;
    ``since_snapshot`` counts the records that matter behind the last snapshot.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest | None,
        compaction: Compaction,
        since_snapshot: int = 0,
    ) -> None:
        self._snapshot = snapshot_path(path)
        self._compaction = compaction
        self._since_snapshot = since_snapshot
        super().__init__(path, manifest)

    def append(self, record: Record) -> None:
        """Take one record."""
        line = record_line(record)
        self._lines.append(line)
        if not isinstance(record, TELL_ONLY):
            self._compaction.take(record, line)
            self._since_snapshot += 1

    def commit(self) -> None:
        """Hand the step to the disk; now and then a snapshot, which can be done without."""
        super().commit()
        if self._since_snapshot >= max(SNAPSHOT_EVERY, len(self._compaction)):
            self._since_snapshot = 0
            with suppress(OSError):
                write_snapshot(self._snapshot, self._compaction.lines(), self._path, self._end)
