"""Worth of an hour's waiting: of a job, or by a table of the users' own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from foresail.cloud.prices import HIGHEST_PRICE
from foresail.cloud.prices_reading import Reference, table_rows
from foresail.cloud.waiting.jobs import RentedType, TraceJobs, rents, writable
from foresail.model.arrays import Floats
from foresail.model.errors import InputError

USUAL_SHARE: Final = 0.1
"""Of the price of a job's machine: what its waiting is worth unless it is said."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What the advice is to respect."""

    hour_value: float
    """Money that an hour's waiting of a job is worth; the mean, where users say their own."""
    stated: bool
    """Whether it was said; else it is a share of what a job's machine costs for an hour."""
    longest_wait_seconds: float = math.inf
    """Largest mean wait."""
    users: int = 0
    """How many say their own."""
    others_value: float = 0.0
    """What counts for the jobs of all others, where some say their own."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.hour_value <= HIGHEST_PRICE:
            expected = f"0 or more, up to {HIGHEST_PRICE:g}"
            raise InputError(
                "out of range", field="hour value", value=self.hour_value, expected=expected
            )


def usual_hour_value(jobs: TraceJobs, family: Sequence[RentedType]) -> float:
    """A tenth of what a job's machine costs for an hour on demand, the mean over all jobs."""
    requests = jobs.requests
    return USUAL_SHARE * float(rents(requests, family)[requests.of_job].mean())


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
