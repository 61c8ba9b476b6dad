"""Copies of a store, while it is used or of the whole elsewhere; and whether one holds together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from foresail.model.errors import InputError
from foresail.model.whole_files import to_be_written
from foresail.record.job_life import ImpossibleTransition, JobState
from foresail.record.log_text import parse_record
from foresail.record.run_fold import RunFold
from foresail.service.store import tables
from foresail.service.store.database import Database
from foresail.service.store.protocol import JobsWanted
from foresail.service.store.sql_store import SqlStore
from foresail.service.store_log import recovered

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
    while rows := store.jobs(JobsWanted(after=after, limit=_PAGE, oldest_first=True)):
        for row in rows:
            known.add(row["job_id"])
            told = _state_by_log(run, row["job_id"])
            if told is not None and told != row["state"]:
                yield f"job {row['job_id']} is {row['state']}, and {told} by the log"
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
"""What SQLite has beside a file of its own."""


def back_up(source: Database, file: Path) -> None:
    """Write all of a store to a SQLite file, as it is at one moment, also while it is used.

    Raises ``InputError`` if the file is there, or the store is of another version of Foresail.
    """
    with to_be_written(file):
        if file.exists():
            raise InputError("is there already", source=file, expected="a new file")
    found = tables.version_of(source.engine)
    if found != tables.LATEST:
        raise InputError(
            "is of another version of Foresail",
            source=source.name,
            value=found,
            expected=f"version {tables.LATEST}; serve brings it up to date",
        )
    with _in_place_of(file) as draft, closing(Database.in_file(draft)) as target:
        tables.bring_up_to_date(target.engine)
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
                is_store = tables.version_of(database.engine) is not None
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
    with store.database.writing() as connection:
        connection.execute(update(tables.IDENTITY).values(moved_to=moved_to))


def _copy(source: Database, target: Connection) -> None:
    """Write what one holds in place of what the other does."""
    with source.at_one_moment() as connection:
        for table in tables.METADATA.sorted_tables:
            target.execute(delete(table))
            if table is tables.ROOM:
                continue
            rows = connection.execute(select(table))
            for some in rows.mappings().partitions(_ROWS_AT_ONCE):
                target.execute(insert(table), [dict(row) for row in some])
    if target.dialect.name == "postgresql":  # it counts on by itself, from where it is set
        last = target.scalar(select(func.max(tables.AUDIT.c.number)))
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
