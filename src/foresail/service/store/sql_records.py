"""Rows of requests and of jobs that are accepted; and which records of the log are about a job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Select, func, select, union_all

from foresail.live.command_job import CommandJob
from foresail.record.records import NODES
from foresail.service.store.protocol import (
    AboutJob,
    ForJob,
    ForNode,
    JobWish,
    NodeWish,
    NumberedRequest,
    Request,
    Row,
    Submit,
)
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


def what_is_asked(request: Request) -> Request:
    """What a request asks for, whatever ids it was given: these differ each time."""
    if isinstance(request, Submit):
        return replace(request, job=replace(request.job, job_id="", after=()))
    return request


def request_row(numbered: NumberedRequest, client_key: str | None) -> dict[str, Any]:
    """A request as a row, with the key of its call."""
    kind, subject, body = _plain(numbered.request)
    return {
        "number": numbered.number,
        "unix_seconds": numbered.unix_seconds,
        "user": numbered.user,
        "client_key": client_key,
        "kind": kind,
        "subject": subject,
        "body": body,
    }


def _plain(request: Request) -> tuple[str, str, str | None]:
    """Kind, subject and body of a request's row."""
    match request:
        case Submit(job, held):
            return ("submit held" if held else "submit"), job.job_id, job.to_json()
        case ForJob(wish, job_id):
            return wish, job_id, None
        case ForNode(wish, node):
            return wish, node, None


def request_of(row: Row) -> NumberedRequest:
    """The request of a row."""
    kind, subject = row["kind"], row["subject"]
    request: Request
    if kind.startswith("submit"):
        request = Submit(CommandJob.from_json(row["body"]), held=kind == "submit held")
    elif kind in set(JobWish):
        request = ForJob(JobWish(kind), subject)
    else:
        request = ForNode(NodeWish(kind), subject)
    return NumberedRequest(row["number"], row["unix_seconds"], row["user"], request)


def job_row(request: Submit, number: int, user: str, now: float, command: str) -> dict[str, Any]:
    """A job as it stands when it was accepted, as a row."""
    job = request.job
    return {
        "job_id": job.job_id,
        "number": number,
        "user": user,
        "name": job.name,
        "state": "held" if request.held else "pending",
        "cpus": job.cpus,
        "deadline_seconds": None if job.deadline_seconds is None else now + job.deadline_seconds,
        "submit_seconds": now,
        "attempt": 0,
        "command": command,
    }
