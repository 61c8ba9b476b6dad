"""The database below the store: SQLite in a file or PostgreSQL, up to date, with room kept for it.

Its faults are said as the store's.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Executable,
    Float,
    Select,
    String,
    Table,
    Update,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    insert,
    literal_column,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from foresail.model.errors import InputError
from foresail.model.words import duration
from foresail.service.store.protocol import ROOM, StoreUnavailable

LITTLE_BYTES: Final = 32_000_000
"""Free space of a disk below which requests that can wait are refused."""

_KEPT_BYTES: Final = 8_000_000


class DiskRoom:
    """Pages of a SQLite file that are full of nothing, and given up when its disk fills.

    No other file can take them, however fast it grows: writing them has made file and journal as
    large as they have to be, so that what follows is written in place.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_kept = False
        """True if the pages are full."""

    def keep(self, engine: Engine) -> None:
        """Fill the pages, unless they are full or the disk is."""
        if not self.is_kept and self._free_bytes() > 2 * LITTLE_BYTES:
            self._fill(engine, _KEPT_BYTES)
            self.is_kept = True

    def give_up_if_needed(self, engine: Engine) -> None:
        """Let the pages be used where the disk is about to be full."""
        if self.is_kept and self._free_bytes() < LITTLE_BYTES:
            self._fill(engine, 0)
            self.is_kept = False

    def require(self) -> None:
        """Refuse what can wait; raises ``StoreUnavailable`` if the disk is about to be full."""
        free = self._free_bytes()
        if free < LITTLE_BYTES:
            raise StoreUnavailable(
                f"the disk of {self._path} is full but for {free / 1e6:.0f} MB: no job is accepted "
                "until there is room; cancel, hold, release and drain are"
            )

    def _fill(self, engine: Engine, size_bytes: int) -> None:
        with suppress(DBAPIError):  # writing shows whether it can be
            with engine.begin() as connection:
                connection.execute(delete(ROOM))
                if size_bytes:
                    connection.execute(
                        insert(ROOM).values(one=1, filling=func.zeroblob(size_bytes))
                    )
            with engine.connect() as connection:
                connection.execute(text("PRAGMA wal_checkpoint(PASSIVE)"))

    def _free_bytes(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize


_LOCK: Final = 0x466F7265
"""Number of the advisory lock that says that a service uses a PostgreSQL database."""

_ONE_MOMENT: Final = "REPEATABLE READ"

_PATIENCE_SECONDS: Final = 5
"""Time that a PostgreSQL server may take to answer at all."""


class Database:
    """A database that threads read and write, one writing at a time."""

    def __init__(self, engine: Engine, room: DiskRoom | None = None) -> None:
        self.engine = engine
        self._room = room
        self._turn = threading.Lock()  # SQLite has who waits for another look again ever later
        self._held: Connection | None = None
        self._writer: Connection | None = None
        """Is kept for the next transaction, where the database is a file."""
        self._is_locked = False
        self._away: tuple[float, str] | None = None
        """Since when its server is, by the monotonic clock, and what was heard last."""

    @classmethod
    def in_file(cls, path: Path) -> Database:
        """The one in a file, which is made if there is none."""
        engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30.0})
        event.listen(engine, "connect", _set_up_sqlite)
        return cls(engine, DiskRoom(path))

    @classmethod
    def at_address(cls, address: str) -> Database:
        """The one of a PostgreSQL server; raises ``InputError`` if that is no address of one."""
        try:
            url = make_url(address).set(drivername="postgresql+psycopg")
            patience = {"connect_timeout": _PATIENCE_SECONDS}
            return cls(create_engine(url, pool_pre_ping=True, connect_args=patience))
        except (ArgumentError, ImportError) as error:
            raise InputError(
                f"cannot be used: {error}",
                field="database",
                expected="sqlite, or postgresql://USER@HOST/NAME and the package psycopg",
            ) from error

    @property
    def name(self) -> str:
        """Its address, without a password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def reads_at_once(self) -> bool:
        """Return whether a row is read without a wait: from a file, by a free connection."""
        pool = self.engine.pool
        return isinstance(pool, QueuePool) and self._room is not None and pool.checkedin() > 0

    @property
    def away(self) -> str:
        """Since when its server does not answer, and what becomes of what is in it; else empty."""
        if (noted := self._away) is None:
            return ""
        since, because = noted
        return (
            f"the database {self.name} has not answered for {duration(time.monotonic() - since)}: "
            "what was accepted is in it and waits, what runs runs on, nothing new is accepted "
            f"({because})"
        )

    def look(self) -> None:
        """Know whether its server is there, if it has one and nothing else has asked it."""
        if self._room is None:
            with suppress(StoreUnavailable, SQLAlchemyError):
                self.rows(select(1))

    def lock(self) -> None:
        """Keep every other service away, for as long as this one is there.

        A file is kept by the lock of its folder. The lock is taken again where a server has gone
        and come back.

        Raises ``InputError`` if another one uses it; ``DBAPIError`` if it cannot be reached.
        """
        if self.engine.dialect.name == "sqlite":
            return
        if not self._takes_lock():
            raise InputError("another service uses this database", field="database")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One look at it; raises ``StoreUnavailable`` if it cannot be read now."""
        with self._speaking("nothing of it was done"), self.engine.connect() as connection:
            yield connection

    def rows(self, wanted: Executable, values: Mapping[str, Any] | None = None) -> list[Any]:
        """All rows that are found, tuples with names; raises as ``reading`` does."""
        with self.reading() as connection:
            return list(connection.execute(wanted, values))

    def records(
        self, wanted: Executable, values: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """The same by name of column."""
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(wanted, values).mappings()]

    def page(self, table: Table, wanted: Select[Any]) -> list[dict[str, Any]]:
        """The same, of few rows of numbers and texts of a table, which SQLite hands over as one."""
        if self.engine.dialect.name != "sqlite":
            return self.records(wanted)
        packed = wanted.with_only_columns(_packed(table), maintain_column_froms=True).subquery()
        text = self.rows(select(func.group_concat(packed.c.packed)))[0][0]
        makes = [(each.name, isinstance(each.type, Float)) for each in table.c]
        return [
            {
                name: float(value) if is_float and value is not None else value
                for (name, is_float), value in zip(makes, row, strict=True)
            }
            for row in msgspec.json.decode(f"[{text or ''}]")
        ]

    def write(self, change: Executable, values: Any = None) -> None:
        """Execute one change, durably; raises as ``writing`` does."""
        with self.writing() as connection:
            connection.execute(change, values)

    @contextmanager
    def at_one_moment(self) -> Iterator[Connection]:
        """A look at it that shows nothing of what others write meanwhile.

        Raises ``StoreUnavailable`` if it cannot be read now.
        """
        is_file = self.engine.dialect.name == "sqlite"
        options = {"stream_results": True} | ({} if is_file else {"isolation_level": _ONE_MOMENT})
        with self.reading() as connection:
            connection.execution_options(**options)
            if is_file:  # Python's driver begins a transaction with the first change only
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, durable at its end or undone.

        Raises ``StoreUnavailable`` if it cannot be written now. Where a server goes at the very
        end, it may have been.
        """
        with self._turn:
            with self._speaking("nothing of it was done"):
                if not (self._held is None or self._is_locked or self._takes_lock()):
                    raise StoreUnavailable(f"another service uses the database {self.name} now")
                if self._room is not None:
                    self._room.give_up_if_needed(self.engine)
                connection = self._writer or self.engine.connect()
            try:
                with self._speaking("nothing of it was done"):
                    yield connection
                with self._speaking("it may have been done"):
                    connection.commit()
                    self._writer = connection if self._room is not None else None
            except BaseException:
                self._writer = None
                raise
            finally:
                if self._writer is None:
                    connection.close()

    def keep_room(self) -> None:
        """Keep room for what must always be written, where the database is a file."""
        if self._room is not None:
            with self._turn:
                self._room.keep(self.engine)

    @property
    def keeps_room(self) -> bool:
        """Return whether the database is a file, and has that room now."""
        return self._room is not None and self._room.is_kept

    def require_room(self) -> None:
        """Refuse what can wait while room on the disk is short."""
        if self._room is not None:
            self._room.require()

    def close(self) -> None:
        """Let go of it, so that another may have it at once."""
        if self._held is not None:
            if not self._held.invalidated:
                with suppress(DBAPIError):
                    self._held.scalar(select(func.pg_advisory_unlock(_LOCK)))
            self._held.close()
        if self._writer is not None:
            self._writer.close()
        self.engine.dispose()

    def _takes_lock(self) -> bool:
        """Return whether nobody else has the lock; it ends with the connection that took it."""
        if self._held is None or self._held.invalidated:
            self._held = self.engine.connect()
        try:
            self._is_locked = bool(self._held.scalar(select(func.pg_try_advisory_lock(_LOCK))))
            self._held.commit()
        except DBAPIError:
            self._held.invalidate()
            raise
        return self._is_locked

    @contextmanager
    def _speaking(self, what_was_done: str) -> Iterator[None]:
        """Say as an error of ours what the database refuses."""
        try:
            yield
            self._away = None
        except DBAPIError as error:
            self._is_locked = False
            if self._room is None and isinstance(error, OperationalError):
                since = time.monotonic() if self._away is None else self._away[0]
                self._away = since, " ".join(str(error.orig).split())
            says = self.away or f"the store {self.name} cannot be used now: {error.orig}"
            raise StoreUnavailable(f"{says}; {what_was_done}") from error


def _set_up_sqlite(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")  # of a new file
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


@cache
def _packed(table: Table) -> ColumnElement[str]:
    """Return the columns of a table as one of JSON, which has floats as texts of all digits."""
    values = (
        f"""CASE WHEN "{each.name}" IS NOT NULL THEN printf('%!.20e', "{each.name}") END"""
        if isinstance(each.type, Float)
        else f'"{each.name}"'
        for each in table.c
    )
    return literal_column(f"json_array({', '.join(values)})", String).label("packed")


_MOST_VALUES: Final = 900
"""Values that one statement of SQLite may have in any version."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, all of the same columns.

    SQLite is given many in a statement: after each of them the driver waits for the interpreter
    while other threads compute.
    """
    if not rows:
        return
    if connection.dialect.name != "sqlite":
        connection.execute(insert(table), rows)
        return
    columns = tuple(rows[0])
    for some in _parts(rows, len(columns)):
        values = tuple(row[name] for row in some for name in columns)
        connection.exec_driver_sql(_insertion(table.name, columns, len(some)), values)


def change_rows(
    connection: Connection, table: Table, key: str, changes: Mapping[str, Mapping[str, Any]]
) -> None:
    """Set the same columns of rows, each by its key; in few statements, as rows are inserted."""
    columns = tuple(next(iter(changes.values()), ()))
    if connection.dialect.name != "sqlite":
        rows = [{"changed_key": one, **values} for one, values in changes.items()]
        connection.execute(_change_of_each(table, key, columns), rows)
        return
    for some in _parts(list(changes.items()), 2 * len(columns) + 1):
        values = [v for name in columns for one, row in some for v in (one, row[name])]
        statement = _change_of_all(table.name, key, columns, len(some))
        connection.exec_driver_sql(statement, (*values, *(one for one, _ in some)))


def _parts(rows: Sequence[Any], values_of_each: int) -> Iterator[Sequence[Any]]:
    """Yield the rows in parts that one statement can have."""
    most = _MOST_VALUES // values_of_each
    return (rows[begin : begin + most] for begin in range(0, len(rows), most))


@cache
def _insertion(table: str, columns: tuple[str, ...], count: int) -> str:
    one = f"({', '.join('?' * len(columns))})"
    names = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({names}) VALUES {", ".join([one] * count)}'


@cache
def _change_of_all(table: str, key: str, columns: tuple[str, ...], count: int) -> str:
    cases = f'CASE "{key}" {" ".join(["WHEN ? THEN ?"] * count)} END'
    changed = ", ".join(f'"{name}" = {cases}' for name in columns)
    return f'UPDATE "{table}" SET {changed} WHERE "{key}" IN ({", ".join("?" * count)})'


@cache
def _change_of_each(table: Table, key: str, columns: tuple[str, ...]) -> Update:
    change = update(table).where(table.c[key] == bindparam("changed_key"))
    return change.values({name: bindparam(name) for name in columns})
