"""Retention: what ended long ago leaves database and folders, and its log goes into the archive."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from itertools import takewhile
from pathlib import Path
from typing import Final

from foresail.model.words import count
from foresail.service.archive import LogArchive
from foresail.service.configuration import ServiceConfiguration
from foresail.service.session import StateFolder
from foresail.service.store import leaving
from foresail.service.store.protocol import StoreUnavailable
from foresail.service.store.sql_store import SqlStore
from foresail.service.store_log import recovered_to

_LOG: Final = logging.getLogger("foresail.service")
_EVERY_SECONDS: Final = 3_600.0
_DAY_SECONDS: Final = 86_400.0
_PAUSE_SECONDS: Final = 0.05
"""After each transaction, so that others have their turn."""

_PATIENCE_SECONDS: Final = 60.0
_RECORDS_OF_PIECE: Final = 50_000


class Retention:
    """Lets jobs leave in a thread of its own, now and then, once the daemon has forgotten them."""

    def __init__(
        self, configuration: ServiceConfiguration, folder: StateFolder, store: SqlStore
    ) -> None:
        self._keep_jobs, self._keep_days = configuration.keep_jobs, configuration.keep_days
        self._folder, self._store = folder, store
        self._archive = LogArchive(folder.archive)
        self._end = threading.Event()
        self._to_stay: int | None = None
        self._is_forgotten = threading.Event()
        self._thread = threading.Thread(target=self._work, name="retention", daemon=True)

    def begin(self) -> None:
        """Begin, if anything is to leave ever."""
        if self._keep_jobs is not None or self._keep_days is not None:
            self._thread.start()

    def close(self) -> None:
        """Leave the rest for the next time."""
        self._end.set()
        self._is_forgotten.set()
        if self._thread.is_alive():
            self._thread.join()

    def forget(self, forget_ended: Callable[[int], None]) -> None:
        """Let the daemon know no more of what leaves; in its thread."""
        stay, self._to_stay = self._to_stay, None
        if stay is not None:
            forget_ended(stay)
            self._is_forgotten.set()

    def clean(self, now: float) -> int:
        """Let go what may leave; returns how many jobs that were.

        Raises ``StoreUnavailable`` or ``OSError`` if it cannot be done now; what is done is done.
        """
        before = None if self._keep_days is None else now - self._keep_days * _DAY_SECONDS
        cutoff = leaving.cutoff_seconds(self._store, self._keep_jobs, before)
        if before is not None:
            leaving.take_out_audit(self._store, before)
        if not leaving.leaving_jobs(self._store, cutoff, ()):
            return 0
        self._is_forgotten.clear()
        self._to_stay = leaving.ended_since(self._store, cutoff)
        self._is_forgotten.wait(_PATIENCE_SECONDS)
        known, end = recovered_to(self._store)
        self._store.keep_snapshot(list(known.compaction.lines()), end)
        job_ids = leaving.leaving_jobs(self._store, cutoff, known.run.jobs.submitted)
        if not job_ids:
            return 0
        last = min(end, leaving.last_about(self._store, job_ids[-1]))
        self._put_away(job_ids, last)
        self._remove_files(set(job_ids))
        self._slowly(leaving.take_out(self._store, job_ids, last, cutoff))
        self._slowly(leaving.shrink(self._store))
        return len(job_ids)

    def _put_away(self, job_ids: Collection[str], last: int) -> None:
        """Write to the archive what is not in it yet; samples go with the first piece."""
        self._archive.forget_after(self._store.last_record())
        samples = leaving.samples_of(self._store, list(job_ids))
        while (first := self._archive.last + 1) <= last:
            found = self._store.records(after=first - 1, limit=_RECORDS_OF_PIECE)
            lines = [line for _, line in takewhile(lambda each: each[0] <= last, found)]
            self._archive.add(first, lines, samples)
            samples = []

    def _remove_files(self, job_ids: Collection[str]) -> None:
        """Remove what attempts have left and what jobs have written."""
        logs = self._folder.logs
        for folder in (self._folder.attempts, logs, *(each for each in logs.iterdir())):
            if folder.is_dir() and not folder.is_symlink():
                _remove_named(folder, job_ids)

    def _slowly(self, steps: Iterable[None]) -> None:
        for _ in steps:
            self._end.wait(_PAUSE_SECONDS)

    def _work(self) -> None:
        while not self._end.is_set():
            try:
                if gone := self.clean(time.time()):
                    _LOG.info("%s that ended long ago went into the archive", count(gone, "job"))
            except (StoreUnavailable, OSError) as error:
                _LOG.error("what ended long ago stays for now: %s", error)
            self._end.wait(_EVERY_SECONDS)


def _remove_named(folder: Path, job_ids: Collection[str]) -> None:
    for each in folder.iterdir():
        if each.name.partition(".")[0] in job_ids and (each.is_symlink() or not each.is_dir()):
            each.unlink(missing_ok=True)
