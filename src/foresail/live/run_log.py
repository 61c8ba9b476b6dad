"""The log of a run that goes on, and what follows it as it is written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from foresail.live.snapshot import snapshot_path, write_snapshot
from foresail.record.compaction import Compaction
from foresail.record.jobs_fold import JobsFold
from foresail.record.log import DurableLog, EventLog
from foresail.record.log_text import record_line
from foresail.record.records import Manifest, ReasonsChanged, Record, Sized, Solved

TELL_ONLY: Final = (ReasonsChanged, Sized, Solved)
"""Records that no state follows from."""

SNAPSHOT_EVERY: Final = 50_000
"""A snapshot is written after so many records that matter (or as many as it has itself)."""


class FollowedLog(EventLog, Protocol):
    """The log of a run that goes on; a step is on disk once it is committed."""

    jobs: JobsFold
    """What became of the jobs."""

    def close(self) -> None:
        """Let go of it; what was not committed never happened."""
        ...


class RunLog(DurableLog):
    """The log of a run; ``jobs`` follows it, and a snapshot of it is written from time to time.

    Parameters
    ----------
    path
        Where it is; what is there ends with a whole step.
    manifest
        What a new log begins with; None where one goes on.
    jobs, compaction
        What became of the jobs in what is there, and the records that matter of it.
    since_snapshot
        How many of these came after the last snapshot.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest | None,
        jobs: JobsFold,
        compaction: Compaction,
        since_snapshot: int = 0,
    ) -> None:
        self.jobs = jobs
        self._snapshot = snapshot_path(path)
        self._compaction = compaction
        self._since_snapshot = since_snapshot
        super().__init__(path, manifest)

    def append(self, record: Record) -> None:
        """Take one record."""
        line = record_line(record)
        self._lines.append(line)
        if not isinstance(record, TELL_ONLY):
            self.jobs.take(record)
            self._compaction.take(record, line)
            self._since_snapshot += 1

    def commit(self) -> None:
        """Hand the step to the disk; now and then a snapshot, which can be done without."""
        super().commit()
        if self._since_snapshot >= max(SNAPSHOT_EVERY, len(self._compaction)):
            self._since_snapshot = 0
            with suppress(OSError):
                write_snapshot(self._snapshot, self._compaction.lines(), self._path, self._end)
