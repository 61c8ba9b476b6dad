"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("unix_seconds", sa.Float(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "forecasts",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("made_seconds", sa.Float(), nullable=False),
        sa.Column("low_seconds", sa.Float(), nullable=False),
        sa.Column("median_seconds", sa.Float(), nullable=False),
        sa.Column("high_seconds", sa.Float(), nullable=False),
        sa.Column("drawn_low_seconds", sa.Float(), nullable=False),
        sa.Column("drawn_high_seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("deadline_seconds", sa.Float(), nullable=True),
        sa.Column("submit_seconds", sa.Float(), nullable=False),
        sa.Column("start_seconds", sa.Float(), nullable=True),
        sa.Column("end_seconds", sa.Float(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("places", sa.String(), nullable=True),
        sa.Column("because", sa.Text(), nullable=True),
        sa.Column("low_seconds", sa.Float(), nullable=True),
        sa.Column("median_seconds", sa.Float(), nullable=True),
        sa.Column("high_seconds", sa.Float(), nullable=True),
        sa.Column("command", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
        sa.UniqueConstraint("number"),
    )
    op.create_index("jobs_by_end", "jobs", ["end_seconds"], unique=False)
    op.create_index("jobs_by_state", "jobs", ["state", "number"], unique=False)
    op.create_index("jobs_by_user", "jobs", ["user", "number"], unique=False)
    op.create_table(
        "progress",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("taken", _NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("one"),
    )
    op.create_table(
        "records",
        sa.Column("number", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "requests",
        sa.Column("number", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("unix_seconds", sa.Float(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("client_key", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("requests_by_key", "requests", ["user", "client_key"], unique=False)
    op.create_table(
        "samples",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_seconds", sa.Float(), nullable=False),
        sa.Column("end_seconds", sa.Float(), nullable=False),
        sa.Column("average_cpus", sa.Float(), nullable=False),
        sa.Column("memory_bytes", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "attempt", "start_seconds"),
    )
    op.create_index("samples_by_time", "samples", ["end_seconds"], unique=False)
    op.create_table(
        "snapshots",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("end", _NUMBER, nullable=False),
        sa.Column("lines", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("one"),
    )
    op.create_table(
        "tokens",
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("created_seconds", sa.Float(), nullable=False),
        sa.Column("expires_seconds", sa.Float(), nullable=True),
        sa.Column("revoked_seconds", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("token_id"),
        sa.UniqueConstraint("digest"),
    )
