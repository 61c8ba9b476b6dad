"""What tells a store from every other, and room for what must be written on a full disk."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables, and up the identity, once."""
    table = op.create_table(
        "identity",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("identity", sa.String(), nullable=False),
        sa.Column("moved_to", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("one"),
    )
    op.bulk_insert(table, [{"one": 1, "identity": secrets.token_hex(16)}])
    op.create_table(
        "room",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("filling", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("one"),
    )
