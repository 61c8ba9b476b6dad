"""The tables of the store; ``migrations`` has made them so."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

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
"""What was asked for, in order: ``kind`` is ``submit``, ``submit held`` or a wish; ``subject`` the
job or the node, and ``body`` the job of a submission."""

RECORDS: Final = Table(
    "records",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("line", Text, nullable=False),
)
"""The event log: whole steps alone."""

PROGRESS: Final = Table(
    "progress",
    METADATA,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("taken", _NUMBER, nullable=False),
)
"""One row: the last request that the controller was handed."""

SNAPSHOTS: Final = Table(
    "snapshots",
    METADATA,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("end", _NUMBER, nullable=False),
    Column("lines", Text, nullable=False),
)
"""One row, or none: the records that matter of the log up to number ``end``."""

FORECASTS: Final = Table(
    "forecasts",
    METADATA,
    Column("job_id", String, primary_key=True),
    Column("made_seconds", Float, nullable=False),
    Column("low_seconds", Float, nullable=False),
    Column("median_seconds", Float, nullable=False),
    Column("high_seconds", Float, nullable=False),
)
"""The first forecast of each job's start: quantiles (10, 50, 90 %) in Unix seconds."""

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
