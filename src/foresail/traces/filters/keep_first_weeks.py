"""Filter ``keep_first_weeks``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload

WEEK_SECONDS: Final = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class FirstWeeksParameters:
    """How much is kept."""

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
