"""When a log's run began: what times that people read count from."""

from __future__ import annotations

from typing import Final

from foresail.record.records import Manifest, Record

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
