"""Up to which record some have left the log."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Bring a database up to this version."""
    left = sa.Column(
        "records_left",
        sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
        nullable=False,
        server_default="0",
    )
    op.add_column("progress", left)
