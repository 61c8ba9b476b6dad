"""Requests to the service, and what its store answers: plain records, and their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Select, func, select, union_all

from foresail.live.command_job import CommandJob
from foresail.model.errors import ForesailError
from foresail.record.records import NODES
from foresail.service.store.tables import RECORDS


@dataclass(frozen=True, slots=True)
class Submit:
    """A job is to run; in state held if ``held``."""

    job: CommandJob
    held: bool = False


class JobCommand(StrEnum):
    """Command that may be given about a job that has not ended."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class ForJob:
    """Something is wished of a job."""

    command: JobCommand
    job_id: str


class NodeCommand(StrEnum):
    """Command that may be given about a node."""

    DRAIN = "drain"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class ForNode:
    """Something is wished of a node."""

    command: NodeCommand
    node: str


Request: TypeAlias = Submit | ForJob | ForNode


@dataclass(frozen=True, slots=True)
class NumberedRequest:
    """A request as it was accepted."""

    number: int
    """Its place in the order of all requests, from 1."""
    unix_seconds: float
    """When it was accepted."""
    user: str
    """Who asked."""
    request: Request
    """What was asked for."""


Row: TypeAlias = Mapping[str, Any]
"""Values by name of column."""

LIVING_STATES: Final = ("running", "pending", "held")
"""States that a job leaves again."""


OUT_OF_MEMORY: Final = "out_of_memory"
"""Asked for as a state: jobs in state ``limit`` that ended at their limit of memory."""


class StoreUnavailable(ForesailError):  # noqa: N818 - it says what it is
    """The store neither takes nor gives anything now: a full disk, no rights, no connection."""


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """Request of one call, all of it or nothing."""

    user: str
    """Who asks."""
    requests: tuple[Request, ...]
    """In order; the ids of jobs among them are given already."""
    client_key: str | None = None
    """The caller's own name for this call: asked again, it is answered as it was the first time."""
    first_number: int = 1
    """Number of the first job among them."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The requests of a call as they are written down; not ``is_new`` if they had been before.

    It ``conflicts`` if its key stands for something else that was asked before: that is what the
    requests are, and nothing of the call is written down.
    """

    requests: tuple[NumberedRequest, ...]
    is_new: bool = True
    conflicts: bool = False


@dataclass(frozen=True, slots=True)
class WholeStep:
    """Records that a step of the controller leaves, written at once or not at all."""

    lines: Sequence[str]
    """The step's records, a line each."""
    taken: int
    """Number of the last request that has been handed to the controller."""
    jobs: Mapping[str, Row] = field(default_factory=dict)
    """What has changed of jobs, by id: values by column."""
    about: Sequence[str | None] = ()
    """The job that each record is about, as ``record.records.about`` has it; () says nothing."""


@dataclass(frozen=True, slots=True)
class JobsWanted:
    """Selection of listed jobs, newest first unless ``oldest_first``."""

    users: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """One of these; empty for all."""
    job_ids: tuple[str, ...] | None = None
    """These alone; None for all."""
    before: int | None = None
    after: int | None = None
    """Numbers of jobs between which they are (exclusive), for paging."""
    limit: int = 100
    """At most so many."""
    oldest_first: bool = False


@dataclass(frozen=True, slots=True)
class UsedInBin:
    """Sums over jobs that started, or ended, within a bin; those before the first have number 0."""

    number: int
    jobs: int
    cpus: float
    cpus_times_seconds: float
    """Of each, its cpus by how long after the beginning of the bins that was."""
    waited_seconds: float


class ForecastKind(StrEnum):
    """Occasion of a forecast."""

    SUBMISSION = "submission"
    WAITING = "waiting"
    """The job had waited for twice as long as at the forecast before."""
    UNKNOWN = "unknown"
    """Too little was known for a range to be stated: it is drawn all the same, but not judged."""


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """Forecast of a start: Unix seconds at 10, 50 and 90 %, as of ``made_seconds``.

    The ``drawn`` ones are those before it was corrected; ``waiting`` is how many jobs waited.
    """

    job_id: str
    made_seconds: float
    kind: ForecastKind
    waiting: int
    low_seconds: float
    median_seconds: float
    high_seconds: float
    drawn_low_seconds: float
    drawn_median_seconds: float
    drawn_high_seconds: float


@dataclass(frozen=True, slots=True)
class ForecastOutcome:
    """Forecast of a start, and when that was, or until when it had not been."""

    forecast: ForecastRow
    submitted_seconds: float
    seconds: float
    has_started: bool


HORIZONS_SECONDS: Final = (60.0, 600.0, 3_600.0, 21_600.0, math.inf)
"""Forecasts are judged by how far off the middle of their range was: below the first, and so on."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Counts of things that were stated with a range of 80 %, and of their outcomes."""

    told: int = 0
    """How many have come about, or should have."""
    within: int = 0
    below: int = 0
    """How many of these were in their range, and how many came before it began."""


@dataclass(frozen=True, slots=True)
class AboutJob:
    """Records that a job's story follows from."""

    lines: Sequence[tuple[int, str]]
    """Numbers and lines, in order."""
    tells_of_others: bool
    """Whether all are there from the job's first to its last."""


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
    """Return a request without the ids it was given: these differ each time."""
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
        case ForJob(command, job_id):
            return command, job_id, None
        case ForNode(command, node):
            return command, node, None


def request_of(row: Row) -> NumberedRequest:
    """The request of a row."""
    kind, subject = row["kind"], row["subject"]
    request: Request
    if kind.startswith("submit"):
        request = Submit(CommandJob.from_json(row["body"]), held=kind == "submit held")
    elif kind in set(JobCommand):
        request = ForJob(JobCommand(kind), subject)
    else:
        request = ForNode(NodeCommand(kind), subject)
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
