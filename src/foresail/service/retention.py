"""Retention: what ended long ago leaves database and folders, and its log goes into the archive."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Final

import zstandard
from sqlalchemy import delete, func, select, text, update

from foresail.live.cluster_plugin import UseSample
from foresail.model.whole_files import write_durably
from foresail.model.words import count
from foresail.record.records import NODES
from foresail.service.configuration import ServiceConfiguration
from foresail.service.session import StateFolder
from foresail.service.store import tables
from foresail.service.store.protocol import StoreUnavailable
from foresail.service.store.sql_store import SqlStore
from foresail.service.store_log import recovered

_LINES: Final = ".jsonl.zst"
_USAGE: Final = ".usage.zst"


class LogArchive:
    """A folder of compressed pieces, each named by the numbers of its first and last record."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def last(self) -> int:
        """Number of the last record in it; 0 for none."""
        return max((_last(each) for each in self._pieces(_LINES)), default=0)

    def add(self, first: int, lines: Iterable[str], samples: Iterable[UseSample]) -> None:
        """Add records from a number on, and samples that leave with them; then they are durable."""
        kept = list(lines)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{first:012}-{first + len(kept) - 1:012}"
        used = [json.dumps(asdict(each)) + "\n" for each in samples]
        for suffix, some in ((_USAGE, used), (_LINES, kept)):
            if some:
                content = zstandard.compress("".join(some).encode())
                write_durably(self._folder / (name + suffix), content)

    def forget_after(self, number: int) -> None:
        """Leave out pieces that end behind a record: of a store that was put back as it was."""
        for each in (*self._pieces(_LINES), *self._pieces(_USAGE)):
            if _last(each) > number:
                each.unlink()

    def records(self) -> Iterator[tuple[int, str]]:
        """Numbers and lines of all records, in order."""
        for piece in self._pieces(_LINES):
            yield from enumerate(_lines_of(piece), int(piece.name.partition("-")[0]))

    def samples(self) -> Iterator[UseSample]:
        """Yield the measured use of jobs."""
        for piece in self._pieces(_USAGE):
            for line in _lines_of(piece):
                yield UseSample(**json.loads(line))

    def _pieces(self, suffix: str) -> list[Path]:
        return sorted(self._folder.glob(f"*{suffix}"))


def _last(piece: Path) -> int:
    return int(piece.name.partition(".")[0].partition("-")[2])


def _lines_of(piece: Path) -> list[str]:
    return zstandard.decompress(piece.read_bytes()).decode().splitlines(keepends=True)


AT_ONCE: Final = 500
"""Jobs that leave in one transaction."""

_RECORDS_AT_ONCE: Final = 5_000
_PAGES_AT_ONCE: Final = 1_000


def cutoff_seconds(store: SqlStore, keep_jobs: int | None, before_seconds: float | None) -> float:
    """Before when (Unix seconds) leaves what ended: all but so many jobs, or before a time."""
    cutoff = -float("inf") if before_seconds is None else before_seconds
    if keep_jobs is not None:
        ended = select(tables.JOBS.c.end_seconds).where(tables.JOBS.c.end_seconds.is_not(None))
        newest = ended.order_by(tables.JOBS.c.end_seconds.desc()).limit(1).offset(keep_jobs - 1)
        with store.database.reading() as connection:
            cutoff = max(cutoff, connection.scalar(newest) or -float("inf"))
    return cutoff


def ended_since(store: SqlStore, cutoff: float) -> int:
    """Return how many ended jobs stay."""
    with store.database.reading() as connection:
        found = select(func.count()).where(tables.JOBS.c.end_seconds >= cutoff)
        return connection.scalar(found) or 0


def leaving_jobs(store: SqlStore, cutoff: float, needed: Container[str]) -> list[str]:
    """The jobs that leave, in order of their ends, but for those that the run still knows."""
    wanted = select(tables.JOBS.c.job_id).where(tables.JOBS.c.end_seconds < cutoff)
    with store.database.reading() as connection:
        found = connection.scalars(wanted.order_by(tables.JOBS.c.end_seconds, tables.JOBS.c.number))
        return [job_id for job_id in found if job_id not in needed]


def last_about(store: SqlStore, job_id: str) -> int:
    """Number of the last record about a job; 0 for none."""
    with store.database.reading() as connection:
        about = tables.RECORDS.c.about == job_id
        return connection.scalar(select(func.max(tables.RECORDS.c.number)).where(about)) or 0


def samples_of(store: SqlStore, job_ids: Sequence[str]) -> list[UseSample]:
    """Return the measured use of these jobs."""
    found: list[UseSample] = []
    with store.database.reading() as connection:
        for some in _parts(job_ids):
            wanted = select(tables.SAMPLES).where(tables.SAMPLES.c.job_id.in_(some))
            found += [UseSample(**row) for row in connection.execute(wanted).mappings()]
    return found


def take_out(store: SqlStore, job_ids: Sequence[str], last: int, cutoff: float) -> Iterator[None]:
    """Take out jobs, and records up to a number but for those of jobs that stay; pausing often.

    The first record stays, as do those of nodes: every job's story begins with them.
    """
    for some in _parts(job_ids):
        with store.database.writing() as connection:
            for table in (tables.SAMPLES, tables.FORECASTS, tables.JOBS):
                connection.execute(delete(table).where(table.c.job_id.in_(some)))
        yield
    about, number = tables.RECORDS.c.about, tables.RECORDS.c.number
    stays = (about == NODES) | about.in_(select(tables.JOBS.c.job_id))
    for begin in range(1, last + 1, _RECORDS_AT_ONCE):
        end = min(last, begin + _RECORDS_AT_ONCE - 1)
        some_records = number.between(max(begin, 2), end) & (about.is_(None) | ~stays)
        with store.database.writing() as connection:
            connection.execute(delete(tables.RECORDS).where(some_records))
            further = tables.PROGRESS.c.records_left < end
            connection.execute(update(tables.PROGRESS).where(further).values(records_left=end))
        yield
    answered = (tables.REQUESTS.c.number <= store.taken()) & (
        tables.REQUESTS.c.unix_seconds < cutoff
    )
    with store.database.writing() as connection:
        connection.execute(delete(tables.REQUESTS).where(answered))
    yield


def take_out_audit(store: SqlStore, before_seconds: float) -> None:
    """Take out what was noted before a time."""
    with store.database.writing() as connection:
        connection.execute(delete(tables.AUDIT).where(tables.AUDIT.c.unix_seconds < before_seconds))


def shrink(store: SqlStore) -> Iterator[None]:
    """Give the system back what a SQLite file has no use for, some pages at a time."""
    left = float("inf")
    while store.database.keeps_room:
        with store.database.writing() as connection:
            cursor = connection.connection.cursor()
            cursor.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
            cursor.fetchall()  # a page at each step
            spare = connection.scalar(text("PRAGMA freelist_count")) or 0
        if not 0 < spare < left:
            return
        left = spare
        yield


def _parts(job_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(job_ids), AT_ONCE):
        yield job_ids[begin : begin + AT_ONCE]


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
        cutoff = cutoff_seconds(self._store, self._keep_jobs, before)
        if before is not None:
            take_out_audit(self._store, before)
        if not leaving_jobs(self._store, cutoff, ()):
            return 0
        self._is_forgotten.clear()
        self._to_stay = ended_since(self._store, cutoff)
        self._is_forgotten.wait(_PATIENCE_SECONDS)
        known = recovered(self._store)
        self._store.keep_snapshot(list(known.compaction.lines()), known.end)
        job_ids = leaving_jobs(self._store, cutoff, known.run.history.submitted)
        if not job_ids:
            return 0
        last = min(known.end, last_about(self._store, job_ids[-1]))
        self._put_away(job_ids, last)
        self._remove_files(set(job_ids))
        self._slowly(take_out(self._store, job_ids, last, cutoff))
        self._slowly(shrink(self._store))
        return len(job_ids)

    def _put_away(self, job_ids: Collection[str], last: int) -> None:
        """Write to the archive what is not in it yet; samples go with the first piece."""
        self._archive.forget_after(self._store.last_record())
        samples = samples_of(self._store, list(job_ids))
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
