"""Upkeep of a store: copies, checks, and what ended long ago leaves it for the archive."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import Final

import zstandard
from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from foresail.live.cluster_plugin import UseSample
from foresail.model.errors import InputError
from foresail.model.whole_files import to_be_written, write_durably
from foresail.model.words import count
from foresail.record.job_life import ImpossibleTransition, JobState
from foresail.record.log_text import parse_record
from foresail.record.records import NODES
from foresail.record.run_fold import RunFold
from foresail.service.configuration import ServiceConfiguration
from foresail.service.exchange import recovered
from foresail.service.state_folder import StateFolder
from foresail.service.store import protocol
from foresail.service.store.database import Database
from foresail.service.store.sql_store import SqlStore

_PAGE = 1_000


def faults_of(store: SqlStore) -> Iterator[str]:
    """Yield the faults of a store, a sentence each; nothing of a good one.

    The database says itself whether it is whole; the log must fold to a state; every job must stand
    as the log says, and no request may be marked as taken that there is not.
    """
    try:
        if store.database.engine.dialect.name == "sqlite":
            with store.database.engine.connect() as connection:
                for row in connection.execute(text("PRAGMA integrity_check")):
                    if row[0] != "ok":
                        yield f"the database file is damaged: {row[0]}"
        yield from _faults_of_log(store)
    except DBAPIError as error:
        yield f"the database cannot be read: {error.orig}"


def _faults_of_log(store: SqlStore) -> Iterator[str]:
    run = RunFold()
    number = 0
    try:
        left = store.records_left()
        snapshot = store.snapshot() if left else None
        begin, lines = snapshot or (0, ())
        for at, (_, line) in enumerate(store.records_of_snapshot(lines), 1):
            run.take(parse_record(line, "snapshot", at))
        for expected, (number, line) in enumerate(store.records(after=left), left + 1):
            if number != expected:
                yield f"record {expected} of the log is missing"
                return
            if number > begin:
                run.take(parse_record(line, "event log", number))
        if begin < left:
            yield "the snapshot does not have the records that have left the log"
        recovered(store)
    except (InputError, KeyError, ImpossibleTransition) as error:
        yield f"the log cannot be what a run left, at record {number}: {error}"
        return
    after, known = 0, set()
    while rows := store.jobs(protocol.JobsWanted(after=after, limit=_PAGE, oldest_first=True)):
        for row in rows:
            known.add(row["job_id"])
            logged = _state_by_log(run, row["job_id"])
            if logged is not None and logged != row["state"]:
                yield f"job {row['job_id']} is {row['state']}, and {logged} by the log"
        after = rows[-1]["number"]
    for job_id in run.history.submitted:
        if job_id not in known:
            yield f"job {job_id} is in the log alone"


def _state_by_log(run: RunFold, job_id: str) -> str | None:
    """The state that a job's row should have; None if the log has not heard of it yet."""
    jobs, state = run.history, run.state
    if job_id not in jobs.submitted:
        return None
    if job_id in jobs.ended:
        return str(jobs.ended[job_id].ended_because)
    if job_id in jobs.withdrawn:
        return "cancelled" if jobs.withdrawn[job_id].startswith("cancelled by ") else "withdrawn"
    if state.stage_of(job_id) is JobState.RUNNING:
        return "running"
    return "held" if job_id in state.held else "pending"


_ROWS_AT_ONCE: Final = 1_000
_BESIDE: Final = ("-wal", "-shm")
"""Files that SQLite has beside the main one."""


def back_up(source: Database, file: Path) -> None:
    """Write all of a store to a SQLite file, as it is at one moment, also while it is used.

    Raises ``InputError`` if the file is there, or the store is of another version of Foresail.
    """
    with to_be_written(file):
        if file.exists():
            raise InputError("is there already", source=file, expected="a new file")
    found = protocol.version_of(source.engine)
    if found != protocol.LATEST:
        raise InputError(
            "is of another version of Foresail",
            source=source.name,
            value=found,
            expected=f"version {protocol.LATEST}; serve brings it up to date",
        )
    with _in_place_of(file) as draft, closing(Database.in_file(draft)) as target:
        protocol.bring_up_to_date(target.engine)
        with target.writing() as connection:
            _copy(source, connection)


@contextmanager
def good_backup(file: Path, folder: Path) -> Iterator[SqlStore]:
    """Open the store in a backup, up to date, in a folder for as long as it is looked at.

    Raises ``InputError`` if it is none, or does not hold together.
    """
    draft = folder / f".backup.{os.getpid()}"
    try:
        with to_be_written(draft):
            shutil.copyfile(file, draft)
        try:
            with closing(Database.in_file(draft)) as database:
                is_store = protocol.version_of(database.engine) is not None
        except DBAPIError:
            is_store = False
        if not is_store:
            raise InputError(
                "is no backup", source=file, expected="what `foresail db backup` has written"
            )
        with closing(SqlStore.in_file(draft)) as store:
            for fault in faults_of(store):
                raise InputError(f"does not hold together: {fault}", source=file)
            yield store
    finally:
        _forget(draft)


def write_to_file(source: SqlStore, file: Path) -> None:
    """Put all of a store in place of the one in a file, which nobody uses."""
    with _in_place_of(file) as draft, closing(SqlStore.in_file(draft)) as target:
        write_to(source, target)


def write_to(source: SqlStore, target: SqlStore) -> None:
    """Put all of a store in place of another's, which nobody else uses: in one transaction."""
    with target.database.writing() as connection:
        _copy(source.database, connection)


def is_free(store: SqlStore) -> bool:
    """Return whether nothing is lost with a store: it is empty, or has been moved."""
    return store.moved_to is not None or not (store.last_record() or store.next_number() > 1)


def retire(store: SqlStore, moved_to: str) -> None:
    """Let no service use it any more."""
    store.database.write(update(protocol.IDENTITY).values(moved_to=moved_to))


def _copy(source: Database, target: Connection) -> None:
    """Write what one holds in place of what the other does."""
    with source.at_one_moment() as connection:
        for table in protocol.METADATA.sorted_tables:
            target.execute(delete(table))
            if table is protocol.ROOM:
                continue
            rows = connection.execute(select(table))
            for some in rows.mappings().partitions(_ROWS_AT_ONCE):
                target.execute(insert(table), [dict(row) for row in some])
    if target.dialect.name == "postgresql":  # it counts on by itself, from where it is set
        last = target.scalar(select(func.max(protocol.AUDIT.c.number)))
        sequence = "pg_get_serial_sequence('audit', 'number')"
        target.execute(text(f"SELECT setval({sequence}, :next, false)"), {"next": (last or 0) + 1})


@contextmanager
def _in_place_of(file: Path) -> Iterator[Path]:
    """A draft of a database, that takes the file's place once it is whole; for its owner alone."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with to_be_written(file):
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield draft
        with to_be_written(file):
            with draft.open("rb") as written:
                os.fsync(written.fileno())
            _take_in_journal(file)
            draft.replace(file)
            descriptor = os.open(file.parent, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    finally:
        _forget(draft)


def _take_in_journal(file: Path) -> None:
    """Leave nothing beside a file that would be taken for the journal of what takes its place."""
    if file.exists():
        # where it is damaged, that is why it is replaced
        with closing(Database.in_file(file)) as database, suppress(DBAPIError):
            database.engine.connect().close()
    for beside in _BESIDE:
        file.with_name(file.name + beside).unlink(missing_ok=True)


def _forget(draft: Path) -> None:
    for suffix in ("", *_BESIDE, "-journal"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)


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


def _leaving_jobs(store: SqlStore, cutoff: float, needed: Container[str]) -> list[str]:
    """The jobs that leave, in order of their ends, but for those that the run still knows."""
    wanted = select(protocol.JOBS.c.job_id).where(protocol.JOBS.c.end_seconds < cutoff)
    found = store.database.rows(
        wanted.order_by(protocol.JOBS.c.end_seconds, protocol.JOBS.c.number)
    )
    return [job_id for (job_id,) in found if job_id not in needed]


def _take_out(store: SqlStore, job_ids: Sequence[str], last: int, cutoff: float) -> Iterator[None]:
    """Take out jobs, and records up to a number but for those of jobs that stay; pausing often.

    The first record stays, as do those of nodes: every job's story begins with them.
    """
    for some in _parts(job_ids):
        with store.database.writing() as connection:
            for table in (protocol.SAMPLES, protocol.FORECASTS, protocol.JOBS):
                connection.execute(delete(table).where(table.c.job_id.in_(some)))
        yield
    about, number = protocol.RECORDS.c.about, protocol.RECORDS.c.number
    stays = (about == NODES) | about.in_(select(protocol.JOBS.c.job_id))
    for begin in range(1, last + 1, _RECORDS_AT_ONCE):
        end = min(last, begin + _RECORDS_AT_ONCE - 1)
        some_records = number.between(max(begin, 2), end) & (about.is_(None) | ~stays)
        with store.database.writing() as connection:
            connection.execute(delete(protocol.RECORDS).where(some_records))
            further = protocol.PROGRESS.c.records_left < end
            connection.execute(update(protocol.PROGRESS).where(further).values(records_left=end))
        yield
    answered = (protocol.REQUESTS.c.number <= store.taken()) & (
        protocol.REQUESTS.c.unix_seconds < cutoff
    )
    store.database.write(delete(protocol.REQUESTS).where(answered))
    yield


def _shrink(store: SqlStore) -> Iterator[None]:
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
"""Pause after each transaction, so that others have their turn."""

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
        database, end = self._store.database, protocol.JOBS.c.end_seconds
        cutoff = -float("inf")
        if self._keep_days is not None:
            cutoff = now - self._keep_days * _DAY_SECONDS
            database.write(delete(protocol.AUDIT).where(protocol.AUDIT.c.unix_seconds < cutoff))
        if self._keep_jobs is not None:
            newest = select(end).where(end.is_not(None)).order_by(end.desc())
            rows = database.rows(newest.limit(1).offset(self._keep_jobs - 1))
            cutoff = max([cutoff, *(row[0] for row in rows)])
        if not _leaving_jobs(self._store, cutoff, ()):
            return 0
        self._is_forgotten.clear()
        self._to_stay = database.rows(select(func.count()).where(end >= cutoff))[0][0]
        self._is_forgotten.wait(_PATIENCE_SECONDS)
        known = recovered(self._store)
        self._store.keep_snapshot(list(known.compaction.lines()), known.end)
        job_ids = _leaving_jobs(self._store, cutoff, known.run.history.submitted)
        if not job_ids:
            return 0
        last_about = select(func.max(protocol.RECORDS.c.number)).where(
            protocol.RECORDS.c.about == job_ids[-1]
        )
        last = min(known.end, database.rows(last_about)[0][0] or 0)
        self._put_away(job_ids, last)
        self._remove_files(set(job_ids))
        self._slowly(_take_out(self._store, job_ids, last, cutoff))
        self._slowly(_shrink(self._store))
        return len(job_ids)

    def _put_away(self, job_ids: Sequence[str], last: int) -> None:
        """Write to the archive what is not in it yet; samples go with the first piece."""
        self._archive.forget_after(self._store.last_record())
        samples: list[UseSample] = []
        for some in _parts(job_ids):
            wanted = select(protocol.SAMPLES).where(protocol.SAMPLES.c.job_id.in_(some))
            samples += [UseSample(**row) for row in self._store.database.records(wanted)]
        while (first := self._archive.last + 1) <= last:
            found = self._store.records(after=first - 1, limit=_RECORDS_OF_PIECE)
            lines = [line for _, line in takewhile(lambda each: each[0] <= last, found)]
            self._archive.add(first, lines, samples)
            samples = []

    def _remove_files(self, job_ids: Collection[str]) -> None:
        """Remove what attempts have left and what jobs have written."""
        logs = self._folder.logs
        for folder in (self._folder.attempts, logs, *logs.iterdir()):
            for each in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
                is_file = each.is_symlink() or not each.is_dir()
                if is_file and each.name.partition(".")[0] in job_ids:
                    each.unlink(missing_ok=True)

    def _slowly(self, steps: Iterable[None]) -> None:
        for _ in steps:
            self._end.wait(_PAUSE_SECONDS)

    def _work(self) -> None:
        while not self._end.is_set():
            try:
                if gone := self.clean(time.time()):
                    _LOG.info("%s that ended long ago went into the archive", count(gone, "job"))
            except (protocol.StoreUnavailable, OSError) as error:
                _LOG.error("what ended long ago stays for now: %s", error)
            self._end.wait(_EVERY_SECONDS)
