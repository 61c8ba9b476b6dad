"""Writing rows, many by each statement.

SQLite leaves the interpreter's lock for each statement that it carries out, and a thread that comes
back may have to wait for it: one row at a time, fifty rows would wait fifty times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Column, Connection, Dialect, Table

_MOST_ROWS: Final = 64
"""Of one statement; with all columns of any table, fewer values than SQLite and PostgreSQL take."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, all of the same columns; what these leave out is null."""
    for some in _in_few(rows):
        statement = _insertion(connection.dialect, table, tuple(some[0]), len(some))
        connection.exec_driver_sql(statement, _values(some))


def update_rows(
    connection: Connection, key: Column[Any], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Change rows that there are, all in the same columns.

    Parameters
    ----------
    connection
        In the transaction of which this is a part.
    key
        The column that says which row is meant, the first of each.
    rows
        What stands in their columns from now on.
    """
    for some in _in_few(rows):
        statement = _change(connection.dialect, key, tuple(some[0]), len(some))
        connection.exec_driver_sql(statement, _values(some))


def _in_few(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """The rows in order, some at a time: always a power of two, so that statements are few."""
    begin, size = 0, _MOST_ROWS
    while begin < len(rows):
        while size > len(rows) - begin:
            size //= 2
        yield rows[begin : begin + size]
        begin += size


def _values(rows: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    columns = tuple(rows[0])
    return tuple(row[column] for row in rows for column in columns)


@cache
def _insertion(dialect: Dialect, table: Table, columns: tuple[str, ...], rows: int) -> str:
    preparer = dialect.identifier_preparer
    names = ", ".join(map(preparer.quote, columns))
    return f"INSERT INTO {preparer.format_table(table)} ({names}) {_places(dialect, columns, rows)}"


@cache
def _change(dialect: Dialect, key: Column[Any], columns: tuple[str, ...], rows: int) -> str:
    preparer, table = dialect.identifier_preparer, key.table
    name, key_name = preparer.format_table(table), preparer.quote(key.name)
    quoted = {column: preparer.quote(column) for column in columns}
    kinds = {column: table.c[column].type.compile(dialect) for column in columns}
    changes = ", ".join(
        f"{quoted[column]} = CAST(given.{quoted[column]} AS {kinds[column]})"
        for column in columns
        if column != key.name
    )
    return (
        f"WITH given({', '.join(quoted.values())}) AS ({_places(dialect, columns, rows)}) "
        f"UPDATE {name} SET {changes} FROM given WHERE {name}.{key_name} = given.{key_name}"
    )


def _places(dialect: Dialect, columns: tuple[str, ...], rows: int) -> str:
    """Where the values of so many rows go."""
    place = "?" if dialect.paramstyle == "qmark" else "%s"
    row = f"({', '.join([place] * len(columns))})"
    return f"VALUES {', '.join([row] * rows)}"
