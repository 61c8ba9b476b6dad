"""Whether a store holds together: the file, the log, and the jobs as they stand by it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from foresail.model.errors import InputError
from foresail.record.jobs_fold import JobsFold
from foresail.record.log_text import parse_record
from foresail.record.state import ImpossibleTransition
from foresail.service.store.protocol import JobsWanted
from foresail.service.store.sql_store import SqlStore
from foresail.service.store_log import recovered

_PAGE = 1_000


def faults_of(store: SqlStore) -> Iterator[str]:
    """What is wrong with a store, a sentence each; nothing of a good one.

    The database says itself whether it is whole; the log must fold to a state; every job must stand
    as the log tells, and no request may be marked as taken that there is not.
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
    jobs = JobsFold()
    number = 0
    try:
        left = store.records_left()
        snapshot = store.snapshot() if left else None
        begin, lines = snapshot or (0, ())
        for at, line in enumerate(lines, 1):
            jobs.take(parse_record(line, "snapshot", at))
        for expected, (number, line) in enumerate(store.records(after=left), left + 1):
            if number != expected:
                yield f"record {expected} of the log is missing"
                return
            if number > begin:
                jobs.take(parse_record(line, "event log", number))
        if begin < left:
            yield "the snapshot does not tell of the records that have left the log"
        recovered(store)
    except (InputError, KeyError, ImpossibleTransition) as error:
        yield f"the log cannot be what a run left, at record {number}: {error}"
        return
    after, known = 0, set()
    while rows := store.jobs(JobsWanted(after=after, limit=_PAGE, oldest_first=True)):
        for row in rows:
            known.add(row["job_id"])
            told = _state_by_log(jobs, row["job_id"])
            if told is not None and told != row["state"]:
                yield f"job {row['job_id']} is {row['state']}, and {told} by the log"
        after = rows[-1]["number"]
    for job_id in jobs.submitted:
        if job_id not in known:
            yield f"job {job_id} is in the log alone"


def _state_by_log(jobs: JobsFold, job_id: str) -> str | None:
    """The state that a job's row should have; None if the log has not heard of it yet."""
    if job_id not in jobs.submitted:
        return None
    if job_id in jobs.ended:
        return str(jobs.ended[job_id].ended_because)
    if job_id in jobs.withdrawn:
        return "cancelled" if jobs.withdrawn[job_id].startswith("cancelled by ") else "withdrawn"
    if jobs.runs(job_id):
        return "running"
    return "held" if job_id in jobs.held else "pending"
