"""The event log: an append-only list of records, kept nowhere, in memory, or in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from foresail.control.log_text import record_line
from foresail.control.records import Manifest, Record
from foresail.model.errors import InputError


class EventLog(Protocol):
    """Where records go."""

    def append(self, record: Record) -> None:
        """Take one record."""
        ...

    def commit(self) -> None:
        """Called once at the end of every step, before its instructions reach a cluster."""
        ...


class NullLog:
    """Keeps nothing; control does not even make the records."""

    def append(self, record: Record) -> None:
        """Forget the record."""

    def commit(self) -> None:
        """Nothing to do."""


class MemoryLog:
    """Keeps the records in ``records``."""

    def __init__(self, manifest: Manifest) -> None:
        self.records: list[Record] = [manifest]

    def append(self, record: Record) -> None:
        """Keep the record."""
        self.records.append(record)

    def commit(self) -> None:
        """Nothing to do."""


class JsonLinesLog:
    """Appends a line of JSON per record to a file; a step is in the file once it is committed.

    A file that exists is continued, after cutting off a last line that a crash left incomplete: the
    manifest begins a new session in it; without one, its last session goes on.

    Raises
    ------
    InputError
        If the file cannot be opened for writing.
    """

    def __init__(self, path: Path, manifest: Manifest | None) -> None:
        self._path = path
        self._lines: list[str] = []
        self._file = _open_at_last_whole_line(path)
        if manifest is not None:
            self.append(manifest)
            self.commit()

    def append(self, record: Record) -> None:
        """Keep the record until the step is committed."""
        self._lines.append(record_line(record))

    def commit(self) -> None:
        """Hand the step's lines to the operating system."""
        self._file.write("".join(self._lines).encode())
        self._lines.clear()
        self._file.flush()

    def close(self) -> None:
        """Commit and close the file."""
        self.commit()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DurableLog(JsonLinesLog):
    """A ``JsonLinesLog`` for live use: a committed step survives a crash of the machine."""

    def commit(self) -> None:
        """Hand the step's lines to the disk."""
        JsonLinesLog.commit(self)
        os.fsync(self._file.fileno())


def _open_at_last_whole_line(path: Path) -> BinaryIO:
    try:
        file = path.open("r+b") if path.exists() else path.open("x+b")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
    _cut_incomplete_line(file)
    return file


def _cut_incomplete_line(file: BinaryIO) -> None:
    end = file.seek(0, os.SEEK_END)
    block = 65536
    while end > 0:
        begin = max(0, end - block)
        file.seek(begin)
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            end = begin + newline + 1
            break
        end = begin
    file.truncate(end)
    file.seek(end)
