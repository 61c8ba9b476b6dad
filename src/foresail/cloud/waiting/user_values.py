"""What an hour's waiting is worth to each user: a table of theirs, laid over the jobs of a log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import polars as pl

from foresail.cloud.prices_reading import Reference, table_rows
from foresail.cloud.waiting.jobs import writable
from foresail.model.arrays import Floats
from foresail.model.errors import InputError

_COLUMNS: Final = ("user", "value")


def read_user_values(path: Path) -> dict[str, float]:
    """Money for an hour's waiting by user, of a table with commas: columns ``user``, ``value``.

    Raises
    ------
    InputError
        If the file cannot be read or has no rows, a user is there twice, or a value is missing or
        negative; it names file, line, field and value.
    """
    if not path.is_file():
        raise InputError("there is no such file", source=path)
    values: dict[str, float] = {}
    for row in table_rows(Reference(str(path))):
        row.demand_known(_COLUMNS)
        user, value = row.text("user"), row.number("value")
        if user in values:
            raise row.error("a user is there twice", "user", user, "one row for each user")
        if not 0.0 <= value < math.inf:
            raise row.error("out of range", "value", value, "money for an hour, 0 or more")
        values[user] = value
    if not values:
        raise InputError("there is no user in it", source=path, expected="columns user, value")
    return values


def values_by_job(
    users: pl.Series, values: Mapping[str, float], otherwise: float, source: Path
) -> Floats:
    """Money for an hour's waiting of each job, shape (jobs,).

    ``users`` are those of the jobs, null where unknown; jobs of users that are not in ``values``
    (from ``source``) have what ``otherwise`` says.

    Raises
    ------
    InputError
        If no job is by one of these users.
    """
    if not users.is_in(list(values)).any():
        some = ", ".join(users.drop_nulls().unique(maintain_order=True).head(3))
        raise InputError(
            "no job is by one of these users",
            source=source,
            field="user",
            value=next(iter(values)),
            expected=f"users of the log, such as {some}" if some else "a log that names users",
        )
    return writable(
        users.replace_strict(dict(values), default=otherwise, return_dtype=pl.Float64)
        .fill_null(otherwise)
        .to_numpy()
    )
