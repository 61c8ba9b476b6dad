"""Which records of the log are about a job, found by an index: few, however long the log is."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Select, func, select, union_all

from foresail.record.subjects import NODES
from foresail.service.store.protocol import AboutJob, Row
from foresail.service.store.tables import RECORDS

_NEARBY: Final = 2_000
"""All records from a job's first to its last are read where they are no more than these."""

_OF_PASS: Final = '{"kind":"decision"'


def records_about(connection: Connection, job: Row) -> AboutJob:
    """The records that a job's story follows from.

    The log's first, those of nodes and all from the job's first to its last, if these are few; of
    many the job's own, those of several jobs that name it, and the pass after each of its own.
    """
    of, job_id = RECORDS.c, job["job_id"]
    own = of.about == job_id
    first, last = connection.execute(
        select(func.min(of.number), func.max(of.number)).where(own)
    ).one()
    if first is None:
        return AboutJob((), tells_of_others=True)
    if job["end_seconds"] is None:
        last = connection.scalar(select(func.max(of.number)))
    wanted = [_numbers().where((of.about == NODES) & (of.number < first))]
    are_few = last - first <= _NEARBY
    if are_few:
        wanted.append(_numbers().where(of.number.between(first, last)))
    else:
        later = RECORDS.alias()
        passes = later.c.about.is_(None) & later.c.line.startswith(_OF_PASS)
        next_pass = select(later.c.number).where(passes & (later.c.number > of.number))
        next_pass = next_pass.order_by(later.c.number).limit(1).correlate(RECORDS)
        several = of.about.is_(None) & of.number.between(first, last)
        wanted += [
            _numbers().where(own),
            select(next_pass.scalar_subquery()).where(own),
            _numbers().where((of.about == NODES) & of.number.between(first, last)),
            _numbers().where(several & of.line.contains(f'"{job_id}"', autoescape=True)),
        ]
    found = union_all(*wanted).subquery()
    rows = select(of.number, of.line).where((of.number == 1) | of.number.in_(select(found)))
    lines = [(row.number, row.line) for row in connection.execute(rows.order_by(of.number))]
    return AboutJob(lines, tells_of_others=are_few)


def _numbers() -> Select[tuple[int]]:
    return select(RECORDS.c.number)
