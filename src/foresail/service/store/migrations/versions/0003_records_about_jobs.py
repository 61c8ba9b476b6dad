"""Records are found by the job that they are about."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_AT_ONCE = 10_000


def upgrade() -> None:
    """Bring a database up to this version."""
    op.add_column("records", sa.Column("about", sa.String(), nullable=True))
    connection = op.get_bind()
    some = sa.text(
        "SELECT number, line FROM records WHERE number > :last AND number <= :last + :most"
    )
    change = sa.text("UPDATE records SET about = :about WHERE number = :number")
    last, end = 0, connection.scalar(sa.text("SELECT max(number) FROM records")) or 0
    while last < end:
        rows = connection.execute(some, {"last": last, "most": _AT_ONCE}).all()
        found = [(number, _about(json.loads(line))) for number, line in rows]
        values = [{"number": number, "about": job} for number, job in found if job is not None]
        if values:
            connection.execute(change, values)
        last += _AT_ONCE
    op.create_index("records_about", "records", ["about", "number"], unique=False)


def _about(record: dict[str, Any]) -> str | None:
    """The job that a record is about; None where there may be several, empty where it is none."""
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
