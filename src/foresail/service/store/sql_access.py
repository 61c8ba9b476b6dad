"""Tokens and the audit log in a relational database."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import insert, select, update

from foresail.service.store.database import Database
from foresail.service.store.tables import AUDIT, TOKENS
from foresail.service.tokens import AccessToken, AuditEntry, Role


class SqlAccess:
    """The access store behind SQLAlchemy, in the database of the store.

    Parameters
    ----------
    database
        That one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def tokens(self) -> list[AccessToken]:
        """As the protocol has it."""
        wanted = select(TOKENS).order_by(TOKENS.c.created_seconds, TOKENS.c.token_id)
        with self._database.reading() as connection:
            rows = connection.execute(wanted).mappings().all()
        return [AccessToken(**{**row, "role": Role(row["role"])}) for row in rows]

    def add_token(self, token: AccessToken) -> None:
        """As the protocol has it."""
        with self._database.writing() as connection:
            connection.execute(insert(TOKENS), asdict(token))

    def revoke_token(self, token_id: str, unix_seconds: float) -> None:
        """As the protocol has it."""
        change = update(TOKENS).where(TOKENS.c.token_id == token_id)
        with self._database.writing() as connection:
            connection.execute(change, {"revoked_seconds": unix_seconds})

    def append_audit(self, entry: AuditEntry) -> None:
        """As the protocol has it."""
        with self._database.writing() as connection:
            connection.execute(insert(AUDIT), asdict(entry))

    def audit(self, before: int | None, limit: int) -> list[tuple[int, AuditEntry]]:
        """As the protocol has it."""
        wanted = select(AUDIT).order_by(AUDIT.c.number.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(AUDIT.c.number < before)
        with self._database.reading() as connection:
            rows = connection.execute(wanted).mappings().all()
        return [
            (row["number"], AuditEntry(**{k: v for k, v in row.items() if k != "number"}))
            for row in rows
        ]
