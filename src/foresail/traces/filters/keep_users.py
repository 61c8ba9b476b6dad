"""Filter ``keep_users``."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class UsersParameters:
    """Who is kept."""

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
