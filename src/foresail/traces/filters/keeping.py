"""Filters that keep the jobs of some time, or of some users."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class BetweenParameters:
    """The time that is kept."""

    start: str | None = None
    end: str | None = None
    """Submissions from ``start`` on and before ``end``: seconds from the workload's origin, or a
    date such as 2012-02-01 or 2012-02-01T12:00 (UTC, unless it has an offset) where the origin is
    known. None for no limit."""


@register("filter", "keep_between", parameters=BetweenParameters)
def keep_between(parameters: BetweenParameters) -> Filter:
    """Keep jobs submitted between two dates; times stay counted from the same origin."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        submit = pl.col("submit_seconds")
        kept = pl.lit(value=True)
        if parameters.start is not None:
            kept &= submit >= _seconds(workload, "start", parameters.start)
        if parameters.end is not None:
            kept &= submit < _seconds(workload, "end", parameters.end)
        return keep(workload, kept)

    return apply


def _seconds(workload: Workload, field: str, text: str) -> float:
    """Seconds from the origin of a number of seconds or a date."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            "neither seconds nor a date", field=field, value=text, expected="such as 2012-02-01"
        ) from None
    origin = workload.meta.origin_unix_seconds
    if origin is None:
        raise InputError(
            "the workload's origin is unknown, so dates mean nothing",
            source=workload.meta.source,
            field=field,
            value=text,
            expected="seconds from the origin",
        )
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - origin


WEEK_SECONDS: Final = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class FirstWeeksParameters:
    """The time that is kept."""

    weeks: float = 1.0
    """Weeks from the first submission on; fractions count."""

    def __post_init__(self) -> None:
        if not self.weeks > 0:
            raise InputError("too few", field="weeks", value=self.weeks, expected="more than 0")


@register("filter", "keep_first_weeks", parameters=FirstWeeksParameters)
def keep_first_weeks(parameters: FirstWeeksParameters) -> Filter:
    """Keep the jobs of the first weeks, counted from the first submission."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        passed = pl.col("submit_seconds") - pl.col("submit_seconds").min()
        return keep(workload, passed < parameters.weeks * WEEK_SECONDS)

    return apply


@dataclass(frozen=True, slots=True)
class UsersParameters:
    """Users to keep."""

    users: tuple[str, ...] = ()
    """Names of the users."""

    def __post_init__(self) -> None:
        if not self.users:
            raise InputError("no user would be kept", field="users", expected="names of users")


@register("filter", "keep_users", parameters=UsersParameters)
def keep_users(parameters: UsersParameters) -> Filter:
    """Keep the jobs of some users.

    A name that the workload does not have is an error, not an empty result.
    """

    def apply(workload: Workload) -> tuple[Workload, int]:
        known = set(workload.jobs["user"].unique())
        for name in parameters.users:
            if name not in known:
                raise InputError(
                    "no job belongs to this user",
                    source=workload.meta.source,
                    field="users",
                    value=name,
                )
        return keep(workload, pl.col("user").is_in(list(parameters.users)))

    return apply
