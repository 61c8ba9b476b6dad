"""A plan in hindsight for one resource: how it is asked for, what it commits to, what it costs.

Amounts of money are in hours of one unit (core, GiB) on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl

from foresail.cloud.purchasing.demand import HOURS_PER_MONTH, Extension
from foresail.cloud.purchasing.terms import YearSchedule
from foresail.model.errors import require, require_positive

Amounts = Literal["any", "of-machines"]
SCHEDULED: Final = "scheduled-reserved"
COMMITTED: Final = "committed"


def reserved_name(years: int) -> str:
    """Name of a term in results."""
    return f"reserved-{years}y"


@dataclass(frozen=True, slots=True)
class OfflineSettings:
    """Settings of the optimum."""

    slot_hours: float = 1.0
    """Demand is averaged over slots of this length."""
    extension: Extension = "repeat"
    """What to do with a log shorter than the longest term: see ``horizon_slots``."""
    level_units: float | None = None
    """Height of a level; None: 1, or more where there would be over 4096 levels."""
    amounts: Amounts = "any"
    """What jobs hold: cores, memory and GPUs apart, in ``any`` amounts, as published; or parts
    ``of-machines`` on sale (see ``resources_of``)."""

    def __post_init__(self) -> None:
        require(0.0 < self.slot_hours <= HOURS_PER_MONTH, self, "slot_hours", "above 0 to 730")
        require_positive(self, "level_units")


DEFAULT_SETTINGS: Final = OfflineSettings()


@dataclass(frozen=True, slots=True, eq=False)
class UnitCommitment:
    """One commitment."""

    option: str
    units: float
    """To what, and to how many units."""
    start_hours: float
    hours: float
    """From when and for how long, some of it perhaps beyond the time planned for."""
    cost: float
    """Of all of it."""
    schedule: YearSchedule | None = None
    """What a scheduled one holds of its year."""


@dataclass(frozen=True, eq=False)
class OfflinePlan:
    """The cheapest purchases for one resource."""

    resource: str
    """``cores``, ``GiB`` or ``GPUs``."""
    hours: float
    """Planned for."""
    demand_hours: float
    """Unit hours of all jobs: what everything costs on demand."""
    reservations: Sequence[UnitCommitment]
    """All commitments to terms and schedules."""
    over_time: pl.DataFrame
    """Month, option, and there: unit hours used, unit hours paid but idle, cost."""
    cost: float
    """Sum of ``over_time``."""
    all_reserved_cost: float | None
    """What reserving the peak, beyond what is held, costs all the time at the cheapest term; None:
    no term is sold."""
    cost_if_scaled: Callable[[float], float] = field(repr=False)
    """Cost if every commitment had been so many times as large: an error of the forecast."""

    def by_option(self, column: str) -> Mapping[str, float]:
        """Sum of a column of ``over_time`` per option: ``used_hours``, ``idle_hours``, ``cost``."""
        sums = self.over_time.group_by("option", maintain_order=True).agg(pl.col(column).sum())
        return dict(zip(sums["option"].to_list(), sums[column].to_list(), strict=True))
