"""The tables of the store, as the migrations make them (``store.migrations``)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
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
"""One row: what tells this store from every other, made once at random; and where to it was moved,
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
    "forecasts",
    METADATA,
    Column("job_id", String, primary_key=True),
    Column("made_seconds", Float, nullable=False),
    Column("low_seconds", Float, nullable=False),
    Column("median_seconds", Float, nullable=False),
    Column("high_seconds", Float, nullable=False),
    Column("drawn_low_seconds", Float, nullable=False),
    Column("drawn_high_seconds", Float, nullable=False),
)
"""The first forecast of each job's start that was told: quantiles (10, 50, 90 %) in Unix seconds;
and its range as it was drawn, before it was corrected."""

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
