"""Snapshots of a run: the records that its state follows from, up to a place in its log.

A file of a header and lines as in the log. It says nothing that the log does not: one that is
missing, torn, of another log or of a version that is not known is none, and the log is read from
its beginning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from foresail.model.whole_files import write_durably

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

    Parameters
    ----------
    path
        Where to.
    lines
        Of its records.
    log, end
        The log that they stand for, up to which byte.

    Raises
    ------
    OSError
        If it cannot be written.
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
