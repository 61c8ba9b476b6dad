"""The records that a job's story follows from: not the whole log, where a snapshot will do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from foresail.record.log_text import parse_record
from foresail.record.records import EventTaken, Record
from foresail.service.store.protocol import Row, Store


def records_of_job(store: Store, job: Row) -> Iterator[Record]:
    """What was before a job, in a snapshot if it came after the latest one, and all since.

    Parameters
    ----------
    store
        Where the log is.
    job
        The job as it stands there.
    """
    before, end = _before(store, job["submit_seconds"])
    since = (parse_record(line, "event log", number) for number, line in store.records(end))
    return chain(before, since)


def _before(store: Store, submit_seconds: float) -> tuple[list[Record], int]:
    """The latest snapshot and the number it reaches to; nothing if the job may be in it."""
    kept = store.snapshot()
    if kept is None:
        return [], 0
    end, lines = kept
    records = [parse_record(line, "snapshot", number) for number, line in enumerate(lines, 1)]
    last = max((each.time for each in records if isinstance(each, EventTaken)), default=0.0)
    return (records, end) if submit_seconds > last else ([], 0)
