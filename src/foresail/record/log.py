"""The event log: an append-only list of records, kept nowhere, in memory or a file; its clock."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, Protocol, Self

from foresail.model.errors import InputError
from foresail.record.log_text import record_line
from foresail.record.records import Committed, Manifest, Record

_EARLIEST_UNIX_SECONDS: Final = 1e9
"""September 2001: no simulation lasts from its second zero to such a time."""


class LogClock:
    """Reads the beginning of a log for the start of its run.

    Times count from second zero of a simulation, and from the first record of a live run, whose
    clock is Unix time.
    """

    def __init__(self) -> None:
        self._zero: float | None = None
        self.start_unix_seconds: float | None = None
        """Unix time of the run's start, where the log knows it."""

    @property
    def zero(self) -> float:
        """The start of the run on the log's own clock (seconds)."""
        return self._zero or 0.0

    def see(self, record: Record) -> None:
        """Take the next record of the log."""
        if self._zero is not None:
            return
        if isinstance(record, Manifest):
            self.start_unix_seconds = record.origin_unix_seconds
            return
        first = getattr(record, "time", None)
        if first is not None:
            live = self.start_unix_seconds is None and first >= _EARLIEST_UNIX_SECONDS
            self._zero = first if live else 0.0
            if live:
                self.start_unix_seconds = first


COMMITTED_LINE: Final = record_line(Committed())
"""What ends every step of a live run's log."""


class EventLog(Protocol):
    """Destination of records."""

    def append(self, record: Record) -> None:
        """Take one record."""

    def commit(self) -> None:
        """Called once at the end of every step, before its instructions reach a cluster."""


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

    Raises ``InputError`` if the file cannot be opened for writing.
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
        content = "".join(self._lines).encode()
        self._lines.clear()
        try:
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):  # what is left in the buffer cannot be written either
                self._file.close()
            raise InputError(f"cannot be written: {error.strerror}", source=self._path) from error

    def close(self) -> None:
        """Commit and close the file, unless it could not be written."""
        if not self._file.closed:
            self.commit()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DurableLog:
    """A log for live use: a committed step survives a crash of the machine, whole or not at all.

    A file that exists is continued, and is to end with a whole step (see
    ``foresail.live.run_log``); the manifest begins a new one.

    Raises ``InputError`` if the file cannot be written; the step is not in it then, and the log
    takes no more.
    """

    def __init__(self, path: Path, manifest: Manifest | None) -> None:
        self._path = path
        self._lines: list[str] = []
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", source=path) from error
        self._end = os.lseek(self._file, 0, os.SEEK_END)
        if manifest is not None:
            self.append(manifest)
            self.commit()

    def append(self, record: Record) -> None:
        """Keep the record until the step is committed."""
        self._lines.append(record_line(record))

    def commit(self) -> None:
        """Hand the step's lines, and that these are all, to the disk."""
        if not self._lines:
            return
        content = "".join((*self._lines, COMMITTED_LINE)).encode()
        self._lines.clear()
        try:
            _write_all(self._file, content)
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):  # else recovery does it
                os.ftruncate(self._file, self._end)
            raise InputError(
                f"cannot be written: {error.strerror}; nothing was begun that is not in it",
                source=self._path,
                expected="room for it, before the run is resumed",
            ) from error
        self._end += len(content)

    def close(self) -> None:
        """Close the file; what was not committed never happened."""
        os.close(self._file)


def _write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


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
