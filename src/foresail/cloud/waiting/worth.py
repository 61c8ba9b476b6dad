"""What an hour of a job's waiting is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foresail.cloud.prices import HIGHEST_PRICE
from foresail.cloud.waiting.jobs import RentedType, TraceJobs, rents
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
