"""Tables of the store, and how those that an earlier version has made become them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    func,
    insert,
    inspect,
    select,
    update,
)

from foresail.model.errors import InputError

METADATA: Final = MetaData()

_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")

REQUESTS: Final = Table(
    "requests",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("unix_seconds", Float, nullable=False),
    Column("user", String, nullable=False),
    Column("client_key", String),
    Column("kind", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("body", Text),
    Index("requests_by_key", "user", "client_key"),
)
"""What was asked for, in order: ``kind`` is ``submit``, ``submit held`` or a command;
``subject`` the job or the node, and ``body`` the job of a submission."""

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
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("taken", _NUMBER, nullable=False),
    Column("records_left", _NUMBER, nullable=False, server_default="0"),
)
"""One row: the last request that the controller was handed; and the record up to which those have
left that are of jobs which have left."""

IDENTITY: Final = Table(
    "identity",
    METADATA,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("identity", String, nullable=False),
    Column("moved_to", String),
)
"""One row: this store's identity, made once at random; and where to it was moved,
if it is not to be used any more."""

ROOM: Final = Table(
    "room",
    METADATA,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("filling", LargeBinary, nullable=False),
)
"""One row of zeros, or none: room in a file for what must be written though the disk is full."""

SNAPSHOTS: Final = Table(
    "snapshots",
    METADATA,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("end", _NUMBER, nullable=False),
    Column("lines", Text, nullable=False),
)
"""One row, or none: the records that matter of the log up to number ``end``."""

FORECASTS: Final = Table(
    "start_forecasts",
    METADATA,
    Column("job_id", String, primary_key=True),
    Column("made_seconds", Float, primary_key=True),
    Column("kind", String, nullable=False),
    Column("waiting", Integer, nullable=False),
    Column("low_seconds", Float, nullable=False),
    Column("median_seconds", Float, nullable=False),
    Column("high_seconds", Float, nullable=False),
    Column("drawn_low_seconds", Float, nullable=False),
    Column("drawn_median_seconds", Float, nullable=False),
    Column("drawn_high_seconds", Float, nullable=False),
)
"""Forecasts of each job's start, of ``kind`` ``submission`` when it came, ``waiting`` at each
doubling of its wait, ``unknown`` where too little was known then: quantiles (10, 50, 90 %) in Unix
seconds, and these as they were drawn, before they were corrected; and how many jobs waited."""

SAMPLES: Final = Table(
    "samples",
    METADATA,
    Column("job_id", String, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("start_seconds", Float, primary_key=True),
    Column("end_seconds", Float, nullable=False),
    Column("average_cpus", Float, nullable=False),
    Column("memory_bytes", Float, nullable=False),
    Index("samples_by_time", "end_seconds"),
)
"""What jobs used, measured from time to time: between two looks (Unix seconds) the cpus in the
mean, and the memory at the second."""

JOBS: Final = Table(
    "jobs",
    METADATA,
    Column("job_id", String, primary_key=True),
    Column("number", _NUMBER, nullable=False, unique=True),
    Column("user", String, nullable=False),
    Column("name", String, nullable=False),
    Column("state", String, nullable=False),
    Column("cpus", Integer, nullable=False),
    Column("deadline_seconds", Float),
    Column("submit_seconds", Float, nullable=False),
    Column("start_seconds", Float),
    Column("end_seconds", Float),
    Column("attempt", Integer, nullable=False, default=0),
    Column("exit_code", Integer),
    Column("places", String),
    Column("because", Text),
    Column("low_seconds", Float),
    Column("median_seconds", Float),
    Column("high_seconds", Float),
    Column("command", Text, nullable=False),
    Index("jobs_by_user", "user", "number"),
    Index("jobs_by_state", "state", "number"),
    Index("jobs_by_end", "end_seconds"),
)
"""Jobs as they stand: times in Unix seconds; the quantiles (10, 50, 90 %) of the runtime believed;
``because`` is why one ended so, ``command`` the job as it was accepted."""

TOKENS: Final = Table(
    "tokens",
    METADATA,
    Column("token_id", String, primary_key=True),
    Column("digest", String, nullable=False, unique=True),
    Column("user", String, nullable=False),
    Column("role", String, nullable=False),
    Column("label", String, nullable=False),
    Column("created_seconds", Float, nullable=False),
    Column("expires_seconds", Float),
    Column("revoked_seconds", Float),
)
"""``digest`` is the SHA-256 of a token's secret, which is nowhere."""

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("unix_seconds", Float, nullable=False),
    Column("user", String, nullable=False),
    Column("address", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", Text, nullable=False),
    Column("request_id", String, nullable=False),
)
"""What was done to tokens and to the policy, and who was refused."""


LATEST: Final = "0005"
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
        "drawn_low_seconds, median_seconds, drawn_high_seconds FROM forecasts"
    )
    connection.exec_driver_sql("DROP TABLE forecasts")


_CHANGES: Final[Mapping[str, Callable[[Connection], None]]] = MappingProxyType(
    {
        "0001": _add_identity_and_room,
        "0002": _add_subjects,
        "0003": _add_records_left,
        "0004": _add_later_forecasts,
    }
)
"""By version: what makes the next one of it."""
