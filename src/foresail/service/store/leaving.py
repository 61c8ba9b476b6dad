"""Rows that leave the store: of jobs that ended long ago, few at a time."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final

from sqlalchemy import delete, func, select, text, update

from foresail.live.cluster_plugin import UseSample
from foresail.record.subjects import NODES
from foresail.service.store.sql_store import SqlStore
from foresail.service.store.tables import (
    AUDIT,
    FORECASTS,
    JOBS,
    PROGRESS,
    RECORDS,
    REQUESTS,
    SAMPLES,
)

AT_ONCE: Final = 500
"""Jobs that leave in one transaction."""

_RECORDS_AT_ONCE: Final = 5_000
_PAGES_AT_ONCE: Final = 1_000


def cutoff_seconds(store: SqlStore, keep_jobs: int | None, before_seconds: float | None) -> float:
    """Before when (Unix seconds) leaves what ended: all but so many jobs, or before a time."""
    cutoff = -float("inf") if before_seconds is None else before_seconds
    if keep_jobs is not None:
        ended = select(JOBS.c.end_seconds).where(JOBS.c.end_seconds.is_not(None))
        newest = ended.order_by(JOBS.c.end_seconds.desc()).limit(1).offset(keep_jobs - 1)
        with store.database.reading() as connection:
            cutoff = max(cutoff, connection.scalar(newest) or -float("inf"))
    return cutoff


def ended_since(store: SqlStore, cutoff: float) -> int:
    """How many jobs that have ended stay."""
    with store.database.reading() as connection:
        found = select(func.count()).where(JOBS.c.end_seconds >= cutoff)
        return connection.scalar(found) or 0


def leaving_jobs(store: SqlStore, cutoff: float, needed: Container[str]) -> list[str]:
    """The jobs that leave, in order of their ends, but for those that the run still knows."""
    wanted = select(JOBS.c.job_id).where(JOBS.c.end_seconds < cutoff)
    with store.database.reading() as connection:
        found = connection.scalars(wanted.order_by(JOBS.c.end_seconds, JOBS.c.number))
        return [job_id for job_id in found if job_id not in needed]


def last_about(store: SqlStore, job_id: str) -> int:
    """Number of the last record about a job; 0 for none."""
    with store.database.reading() as connection:
        about = RECORDS.c.about == job_id
        return connection.scalar(select(func.max(RECORDS.c.number)).where(about)) or 0


def samples_of(store: SqlStore, job_ids: Sequence[str]) -> list[UseSample]:
    """What these jobs were measured to use."""
    found: list[UseSample] = []
    with store.database.reading() as connection:
        for some in _parts(job_ids):
            wanted = select(SAMPLES).where(SAMPLES.c.job_id.in_(some))
            found += [UseSample(**row) for row in connection.execute(wanted).mappings()]
    return found


def take_out(store: SqlStore, job_ids: Sequence[str], last: int, cutoff: float) -> Iterator[None]:
    """Take out jobs, and records up to a number but for those of jobs that stay; pausing often.

    The first record stays, as do those of nodes: every job's story begins with them.
    """
    for some in _parts(job_ids):
        with store.database.writing() as connection:
            for table in (SAMPLES, FORECASTS, JOBS):
                connection.execute(delete(table).where(table.c.job_id.in_(some)))
        yield
    about, number = RECORDS.c.about, RECORDS.c.number
    stays = (about == NODES) | about.in_(select(JOBS.c.job_id))
    for begin in range(1, last + 1, _RECORDS_AT_ONCE):
        end = min(last, begin + _RECORDS_AT_ONCE - 1)
        some_records = number.between(max(begin, 2), end) & (about.is_(None) | ~stays)
        with store.database.writing() as connection:
            connection.execute(delete(RECORDS).where(some_records))
            further = PROGRESS.c.records_left < end
            connection.execute(update(PROGRESS).where(further).values(records_left=end))
        yield
    answered = (REQUESTS.c.number <= store.taken()) & (REQUESTS.c.unix_seconds < cutoff)
    with store.database.writing() as connection:
        connection.execute(delete(REQUESTS).where(answered))
    yield


def take_out_audit(store: SqlStore, before_seconds: float) -> None:
    """Take out what was noted before a time."""
    with store.database.writing() as connection:
        connection.execute(delete(AUDIT).where(AUDIT.c.unix_seconds < before_seconds))


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
