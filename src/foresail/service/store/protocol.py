"""Requests to the service, tables of its store (brought up to date where older), and rows."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    String,
    Table,
    Text,
    bindparam,
    false,
    func,
    insert,
    inspect,
    select,
    union_all,
    update,
)
from sqlalchemy.types import TypeEngine

from foresail.live.command_job import CommandJob
from foresail.model.errors import ForesailError, InputError
from foresail.record.records import NODES

METADATA: Final = MetaData()

_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")


def _one() -> Column[int]:
    """The key of a table of one row at most."""
    return Column("one", Integer, primary_key=True, autoincrement=False)


def _columns(kind: type[TypeEngine[Any]], names: str, **given: Any) -> list[Column[Any]]:
    """Columns of one kind, which always say something unless that is ``given`` otherwise."""
    return [Column(name, kind, **{"nullable": False, **given}) for name in names.split()]


def _texts(names: str, **given: Any) -> list[Column[Any]]:
    return _columns(String, names, **given)


def _floats(names: str, **given: Any) -> list[Column[Any]]:
    return _columns(Float, names, **given)


REQUESTS: Final = Table(
    "requests",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    *_floats("unix_seconds"),
    *_texts("user kind subject"),
    *_texts("client_key", nullable=True),
    Column("body", Text),
    Index("requests_by_key", "user", "client_key"),
)
"""Requests, in order: ``kind`` is ``submit``, ``submit held`` or a command; ``subject`` the job or
the node, and ``body`` the job of a submission, or when a drained node should be used again."""

RECORDS: Final = Table(
    "records",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("line", Text, nullable=False),
    Column("about", String),
    Index("records_about", "about", "number"),
)
"""The event log: whole steps alone. ``about`` is the job that a record is about (or ``nodes``);
NULL where there may be several, and empty where it is none."""

PROGRESS: Final = Table(
    "progress",
    METADATA,
    _one(),
    Column("taken", _NUMBER, nullable=False),
    Column("records_left", _NUMBER, nullable=False, server_default="0"),
)
"""The last request that the controller was handed; and the record up to which those have left that
are of jobs which have left."""

IDENTITY: Final = Table(
    "identity", METADATA, _one(), *_texts("identity"), *_texts("moved_to", nullable=True)
)
"""Identity of this store, made once at random, and the place that it was moved to, if it was."""

ROOM: Final = Table("room", METADATA, _one(), *_columns(LargeBinary, "filling"))
"""Zeros: room in a file for what must be written though the disk is full."""

SNAPSHOTS: Final = Table(
    "snapshots", METADATA, _one(), Column("end", _NUMBER, nullable=False), *_columns(Text, "lines")
)
"""The records that matter of the log up to number ``end``."""

FORECASTS: Final = Table(
    "start_forecasts",
    METADATA,
    *_texts("job_id", primary_key=True),
    *_floats("made_seconds", primary_key=True),
    *_texts("kind"),
    *_columns(Integer, "waiting"),
    *_floats("low_seconds median_seconds high_seconds"),
    *_floats("drawn_low_seconds drawn_median_seconds drawn_high_seconds"),
    *_columns(Boolean, "stood_in", server_default=false()),
    *_floats("end_low_seconds end_high_seconds by_cluster_seconds", nullable=True),
    *_texts("partition", nullable=True),
)
"""Forecasts of each job's start, of ``kind`` ``submission`` when it came, ``waiting`` at each
doubling of its wait, ``unknown`` where too little was known then: quantiles (10, 50, 90 %) in Unix
seconds, and these as they were drawn, before they were corrected; how many jobs waited; if a
simpler rule stood in for the policy's own; the quantiles (10, 90 %) of its end; when the cluster
itself expected it to start, where it says that; and the partition that the job named."""

SAMPLES: Final = Table(
    "samples",
    METADATA,
    *_texts("job_id", primary_key=True),
    *_columns(Integer, "attempt", primary_key=True, autoincrement=False),
    *_floats("start_seconds", primary_key=True),
    *_floats("end_seconds average_cpus memory_bytes"),
    Index("samples_by_time", "end_seconds"),
)
"""Use of jobs, measured from time to time: between two looks (Unix seconds) the cpus in the mean,
and the memory at the second."""

JOBS: Final = Table(
    "jobs",
    METADATA,
    *_texts("job_id", primary_key=True),
    Column("number", _NUMBER, nullable=False, unique=True),
    *_texts("user name state"),
    *_columns(Integer, "cpus"),
    *_floats("submit_seconds"),
    *_floats("deadline_seconds start_seconds end_seconds", nullable=True),
    *_columns(Integer, "attempt", default=0),
    *_columns(Integer, "exit_code", nullable=True),
    *_texts("places", nullable=True),
    *_floats("low_seconds median_seconds high_seconds", nullable=True),
    Column("because", Text),
    *_columns(Text, "command"),
    Index("jobs_by_user", "user", "number"),
    Index("jobs_by_state", "state", "number"),
    Index("jobs_by_end", "end_seconds"),
)
"""Jobs as they stand: times in Unix seconds; the quantiles (10, 50, 90 %) of the runtime believed;
``because`` is why one ended so, ``command`` the job as it was accepted."""

TOKENS: Final = Table(
    "tokens",
    METADATA,
    *_texts("token_id", primary_key=True),
    *_texts("digest", unique=True),
    *_texts("user role label"),
    *_floats("created_seconds"),
    *_floats("expires_seconds revoked_seconds", nullable=True),
)
"""``digest`` is the SHA-256 of a token's secret, which is nowhere."""

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    *_floats("unix_seconds"),
    *_texts("user address action request_id"),
    *_columns(Text, "subject"),
)
"""Changes of tokens and of the policy, and who was refused."""


LATEST: Final = "0008"
"""The version that this Foresail reads and writes."""

_VERSIONS: Final = Table(
    "alembic_version", MetaData(), Column("version_num", String(32), primary_key=True)
)
"""One row. The name is that of earlier versions of Foresail, which refuse a later one's by it."""

_AT_ONCE: Final = 10_000


def version_of(engine: Engine) -> str | None:
    """Return the version of a database's tables; None where there are none."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(_VERSIONS.name):
            return None
        return connection.scalar(select(_VERSIONS))


def bring_up_to_date(engine: Engine) -> None:
    """Make or change the tables of a database, all at once, so that they are of this version.

    Raises ``InputError`` if a later version of Foresail has made them.
    """
    version = version_of(engine)
    if version == LATEST:
        return
    if version not in (None, *_CHANGES):
        raise InputError(
            "was made by a later version of Foresail",
            source=engine.url.render_as_string(hide_password=True),
            value=version,
            expected=f"version {LATEST} or earlier",
        )
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":  # Python's driver begins with the first row only
            connection.exec_driver_sql("BEGIN")
        if version is None:
            METADATA.create_all(connection)
            _VERSIONS.create(connection)
            connection.execute(insert(_VERSIONS).values(version_num=LATEST))
            _make_identity(connection)
        for change in list(_CHANGES.values())[list(_CHANGES).index(version) :] if version else ():
            change(connection)
        connection.execute(update(_VERSIONS).values(version_num=LATEST))


def _make_identity(connection: Connection) -> None:
    connection.execute(insert(IDENTITY).values(one=1, identity=secrets.token_hex(16)))


def _add_identity_and_room(connection: Connection) -> None:
    IDENTITY.create(connection)
    ROOM.create(connection)
    _make_identity(connection)


def _add_subjects(connection: Connection) -> None:
    """Let records be found by the job that they are about."""
    connection.exec_driver_sql("ALTER TABLE records ADD COLUMN about VARCHAR")
    number = RECORDS.c.number
    change = update(RECORDS).where(number == bindparam("changed")).values(about=bindparam("about"))
    last, end = 0, connection.scalar(select(func.max(number))) or 0
    while last < end:
        some = select(number, RECORDS.c.line).where(number.between(last + 1, last + _AT_ONCE))
        found = [(each, _subject(json.loads(line))) for each, line in connection.execute(some)]
        values = [{"changed": each, "about": job} for each, job in found if job is not None]
        if values:
            connection.execute(change, values)
        last += _AT_ONCE
    for index in RECORDS.indexes:
        index.create(connection)


def _subject(record: dict[str, Any]) -> str | None:
    """Return the job of a record of that time; None for perhaps several, empty for none."""
    if record["kind"] in ("decision", "reasons"):
        job_ids = record.get("reasons", {}).get("job_ids", ())
        return job_ids[0] if len(job_ids) == 1 else None
    if "Node" in record.get("event", {}).get("type", ""):
        return "nodes"
    whole = [record, *(each for each in record.values() if isinstance(each, dict))]
    for each in [*whole, *(sub for one in whole for sub in one.values() if isinstance(sub, dict))]:
        if isinstance(each.get("job_id"), str):
            return str(each["job_id"])
    return ""


def _add_records_left(connection: Connection) -> None:
    kind = _NUMBER.compile(connection.dialect)
    connection.exec_driver_sql(
        f"ALTER TABLE progress ADD COLUMN records_left {kind} NOT NULL DEFAULT '0'"
    )


def _add_later_forecasts(connection: Connection) -> None:
    """Let there be several forecasts of a job."""
    FORECASTS.create(connection)
    ranges = "low_seconds, median_seconds, high_seconds"
    connection.exec_driver_sql(
        f"INSERT INTO {FORECASTS.name} SELECT job_id, made_seconds, 'submission', 0, {ranges}, "
        "drawn_low_seconds, median_seconds, drawn_high_seconds, FALSE"
        + ", NULL" * 4
        + " FROM forecasts"
    )
    connection.exec_driver_sql("DROP TABLE forecasts")


def _add_to_forecasts(connection: Connection, *, columns: str) -> None:
    """Add columns, which tables that were just made have."""
    known = {each["name"] for each in inspect(connection).get_columns(FORECASTS.name)}
    for column in columns.split(", "):
        if column.split()[0] not in known:
            connection.exec_driver_sql(f"ALTER TABLE {FORECASTS.name} ADD COLUMN {column}")


_STAND_INS: Final = "stood_in BOOLEAN NOT NULL DEFAULT FALSE"
_ENDS: Final = "end_low_seconds FLOAT, end_high_seconds FLOAT"
_CHANGES: Final[Mapping[str, Callable[[Connection], None]]] = MappingProxyType(
    {
        "0001": _add_identity_and_room,
        "0002": _add_subjects,
        "0003": _add_records_left,
        "0004": _add_later_forecasts,
        "0005": partial(_add_to_forecasts, columns=_STAND_INS),
        "0006": partial(_add_to_forecasts, columns=_ENDS),
        "0007": partial(_add_to_forecasts, columns="by_cluster_seconds FLOAT, partition TEXT"),
    }
)
"""Statements that make the next version, by version."""


@dataclass(frozen=True, slots=True)
class Submit:
    """A job is to run; in state held if ``held``."""

    job: CommandJob
    held: bool = False


class Command(StrEnum):
    """Command that may be given about a job that has not ended, or about a node."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    DRAIN = "drain"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """Command to a job, by its id, or to a node, by its name."""

    command: Command
    subject: str
    until_seconds: float | None = None
    """Time from which a node that is drained should be used again (Unix seconds)."""


Request: TypeAlias = Submit | CommandRequest


@dataclass(frozen=True, slots=True)
class NumberedRequest:
    """A request as it was accepted."""

    number: int
    """Its place in the order of all requests, from 1."""
    unix_seconds: float
    """Time at which it was accepted."""
    user: str
    """User who asked."""
    request: Request
    """Request as it was made."""


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
    """User who asks."""
    requests: tuple[Request, ...]
    """Requests in order; the ids of jobs among them are given already."""
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
    """Changes of jobs, by id: values by column."""
    about: Sequence[str | None] = ()
    """The job that each record is about, as ``record.records.about`` has it; () says nothing."""
    new: Sequence[Row] = ()
    """Jobs that were submitted to the cluster itself; each is given the next number."""


@dataclass(frozen=True, slots=True)
class JobsWanted:
    """Selection of listed jobs, newest first unless ``oldest_first``."""

    users: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """One of these; empty for all."""
    job_ids: tuple[str, ...] | None = None
    """Ids asked for; None for all."""
    before: int | None = None
    after: int | None = None
    """Numbers of jobs between which they are (exclusive), for paging."""
    limit: int = 100
    """Most jobs in the answer."""
    oldest_first: bool = False


@dataclass(frozen=True, slots=True)
class UsedInBin:
    """Sums over jobs that started, or ended, within a bin; those before the first have number 0."""

    number: int
    jobs: int
    cpus: float
    cpus_times_seconds: float
    """Sum of each job's cpus by the seconds from the beginning of the bins to its start or end."""
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

    The ``drawn`` ones are those before it was corrected; ``waiting`` is how many jobs waited;
    ``stood_in``: a simpler rule than the policy's own started jobs in the futures. Of the end are
    the 10 and 90 %; none are known of old ones. ``by_cluster_seconds`` is when the cluster itself
    expected the start, and ``partition`` the one that the job named.
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
    stood_in: bool = False
    end_low_seconds: float | None = None
    end_high_seconds: float | None = None
    by_cluster_seconds: float | None = None
    partition: str | None = None


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

    made: int = 0
    """Number of them that have come about, or should have."""
    within: int = 0
    below: int = 0
    """Number of these that were in their range, and number that came before it began."""


@dataclass(frozen=True, slots=True)
class AboutJob:
    """Records that a job's story follows from."""

    lines: Sequence[tuple[int, str]]
    """Numbers and lines, in order."""
    is_complete: bool
    """True if all are there from the job's first to its last."""


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
        return AboutJob((), is_complete=True)
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
    return AboutJob(lines, is_complete=are_few)


def _numbers() -> Select[tuple[int]]:
    return select(RECORDS.c.number)


def what_is_asked(request: Request) -> Request:
    """Return a request without what differs from call to call: ids, and variables."""
    if isinstance(request, Submit):
        job = replace(request.job, job_id="", after=(), number=None, environment={})
        return replace(request, job=job)
    return request


def numbers_of(requests: Iterable[Request], first: int) -> list[int]:
    """The numbers of the jobs among requests; members of arrays come with theirs."""
    numbers = [first - 1]
    for each in requests:
        if isinstance(each, Submit):
            numbers.append(each.job.number or numbers[-1] + 1)
    return numbers[1:]


def request_row(numbered: NumberedRequest, client_key: str | None) -> dict[str, Any]:
    """A request as a row, with the key of its call."""
    request = numbered.request
    asked: dict[str, str | None]
    if isinstance(request, Submit):
        kind = "submit held" if request.held else "submit"
        asked = {"kind": kind, "subject": request.job.job_id, "body": request.job.to_json()}
    else:
        until = request.until_seconds
        body = None if until is None else str(until)
        asked = {"kind": request.command, "subject": request.subject, "body": body}
    return {
        "number": numbered.number,
        "unix_seconds": numbered.unix_seconds,
        "user": numbered.user,
        "client_key": client_key,
        **asked,
    }


def request_of(row: Row) -> NumberedRequest:
    """The request of a row."""
    kind = row["kind"]
    request: Request
    if kind.startswith("submit"):
        request = Submit(CommandJob.from_json(row["body"]), held=kind == "submit held")
    else:
        until = None if row["body"] is None else float(row["body"])
        request = CommandRequest(Command(kind), row["subject"], until)
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
