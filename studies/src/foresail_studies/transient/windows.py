"""Study ``transient-windows``: how well a capacity is kept that was planned from the past."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from foresail.cloud.transient.estimating import estimated_offers, mean_availability, rolled
from foresail.cloud.transient.planning import plan
from foresail.model.errors import InputError, require_each_positive
from foresail.model.registry import register
from foresail_studies import cloud as cloud
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    StudyParameters,
    published,
)

_SHORT: Final = Measure("short_minutes", "minutes a year without it")
_NINES: Final = Measure("nines", "nines kept (5 at most)")
_COST: Final = Measure("on_demand_share", "cost, of on-demand", "share")
_PLANNED: Final = Measure("planned", "periods with a plan", "share")

_DAY: Final = 86_400.0
_GROUP: Final = "spot markets"
_RULE: Final = "published rule"
_NINE: Final = "published rule, a nine more"
_ORACLE: Final = "published rule, oracle"
_DOUBTING: Final = "refined, with doubt"
_DOUBTING_NINE: Final = "refined, with doubt, a nine more"
_TARGET: Final = 4.0
_LEAST_SHORT: Final = 1e-5
"""A stretch of some weeks cannot tell shares of time below this."""


@dataclass(frozen=True, slots=True)
class TrailingWindows:
    """Plans of a trailing window, each held to the days after it, in one stretch of a history."""

    prices: str
    machines: str
    rule: cloud.Rule
    nines: float
    extra_nines: float
    doubt_hours: float
    capacity: float

    window_days: float | None
    """How far back each plan looks; None: an oracle, which looks at what it plans for."""
    held_days: float
    """How long each plan is held to."""
    first_days: float
    """Where the first plan begins: the same for all windows."""
    place: int
    stretches: int
    """Which stretch after that, of how many."""

    def measure(self) -> Mapping[str, float]:
        """Time without the capacity, and what was paid."""
        history, kinds = cloud.markets(self.prices, self.machines)
        first = history.begin + self.first_days * _DAY
        if first >= history.end:
            raise InputError(
                "the histories end before the first plan",
                source=self.prices,
                field="window_days",
                value=self.first_days,
                expected=f"less than the {history.total_seconds / _DAY:.0f} days that they cover",
            )
        begin, end = cloud.stretch(history, self.place, self.stretches, first)
        back = (self.window_days or 0.0) * _DAY
        found = rolled(
            history.between(begin - back, end),
            lambda seen: plan(
                estimated_offers(seen, kinds, doubt_hours=self.doubt_hours),
                self.capacity,
                cloud.target(self.nines),
                extra_nines=self.extra_nines,
                choose=cloud.RULES[self.rule],
            ),
            window_seconds=None if self.window_days is None else back,
            step_seconds=self.held_days * _DAY,
            first_seconds=back,
        )
        cheapest = min(
            kind.on_demand_per_hour / kind.capacity
            for kind in kinds.values()
            if kind.on_demand_per_hour is not None
        )
        paid = np.array([each.price_per_hour for each in found if each.plan is not None])
        short = 1.0 - mean_availability(found)
        return {
            "nines": -math.log10(max(short, _LEAST_SHORT)),
            "short_minutes": max(short, 0.0) * cloud.YEAR_MINUTES,
            "on_demand_share": (
                float(paid.mean()) / (cheapest * self.capacity) if paid.size else math.nan
            ),
            "planned": float(paid.size) / len(found),
        }


@dataclass(frozen=True, slots=True)
class WindowParameters(
    StudyParameters, quick="seeds=6 window_days=[7,28] capacity=500", minutes=(0.5, 8)
):
    """Parameters of ``transient-windows``."""

    FILES: ClassVar[tuple[str, ...]] = ("prices", "machines")

    seeds: int = 6
    """How many equal stretches the histories are cut into after the longest window."""
    capacity: float = 5000.0
    """That a service needs (ECU)."""
    window_days: tuple[float, ...] = (3.0, 7.0, 14.0, 28.0, 42.0)
    """How far back plans look."""
    held_days: float = 7.0
    """How long each plan is held to."""
    doubt_hours: float = 3.0
    """Hours put to what was seen, half of them down, where there is doubt."""
    prices: Path | None = None
    """Price histories of spot markets."""
    machines: Path | None = None
    """Capacity of each instance type there; EC2's of 2015 by default."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        if self.prices is None:
            raise InputError(
                "the study needs price histories of spot markets",
                field="prices",
                expected="--set prices=FILE",
            )
        require_each_positive(self, "window_days")


@register("study", "transient-windows", parameters=WindowParameters)
def transient_windows(parameters: WindowParameters) -> Study:
    """Check how well a transient capacity planned from the past is kept (figure 3.8)."""
    return Study(
        title="How well is a transient capacity kept that was planned from the past?",
        source=f"{cloud.SOURCE}, figure 3.8",
        axis="days that a plan looks back",
        measures=(_NINES, _SHORT, _COST, _PLANNED),
        drawn=(_NINES.name, _COST.name),
        cases=tuple(
            GridPoint(_GROUP, days, system, seed, _task(parameters, system, days, seed))
            for seed in range(parameters.seeds)
            for system in (_RULE, _NINE, _ORACLE, _DOUBTING, _DOUBTING_NINE)
            for days in parameters.window_days
        ),
        claims=published(_claims(parameters.window_days)),
        notes=(
            "Four nines are 53 minutes a year, three nines 526, five nines 5. Nines kept are the "
            "mean over stretches; minutes are dominated by the worst stretch.",
            "The published markets are EC2's of late 2017. Each repetition is a stretch of the "
            f"histories given; plans are held to {parameters.held_days:g} days. The oracle knows "
            "how available each market will be, not which are down together.",
            "By the published rule a market that was up throughout a window is taken for certain, "
            "and is all of the pool: no further nine changes that, and when it goes, all is gone. "
            f"Doubt, which is ours, puts {parameters.doubt_hours:g} h to what was seen, half of "
            "them down.",
            "Costs are what was paid while machines were up, of as much capacity on the cheapest "
            "on-demand machines.",
        ),
    )


def _task(parameters: WindowParameters, system: str, days: float, seed: int) -> TrailingWindows:
    doubting = system in (_DOUBTING, _DOUBTING_NINE)
    return TrailingWindows(
        str(parameters.prices),
        "" if parameters.machines is None else str(parameters.machines),
        "refined" if doubting else "published",
        _TARGET,
        1.0 if system in (_NINE, _DOUBTING_NINE) else 0.0,
        parameters.doubt_hours if doubting else 0.0,
        parameters.capacity,
        None if system == _ORACLE else days,
        parameters.held_days,
        max(parameters.window_days),
        seed,
        parameters.seeds,
    )


def _claims(windows: tuple[float, ...]) -> dict[str, Bound]:
    def short(system: str, *days: float) -> Mean:
        return Mean("short_minutes", system, _GROUP, days)

    allowed = (1.0 - cloud.target(_TARGET)) * cloud.YEAR_MINUTES
    shortest, longest = min(windows), max(windows)
    return {
        "A plan for four nines does not keep them.": Bound(allowed, short(_RULE)),
        "... but about three (taken as: at most twice "
        "as long without it as three nines allow).": Bound(short(_RULE), 20.0 * allowed),
        "... in the mean stretch as well (nines of each).": Bound(
            Mean("nines", _RULE, _GROUP), _TARGET
        ),
        "A plan for a nine more keeps four.": Bound(short(_NINE), allowed),
        "An oracle always keeps them.": Bound(short(_ORACLE), allowed),
        f"The window hardly matters (taken as: {longest:g} days are short no less than half as "
        f"long as {shortest:g}).": Bound(short(_RULE, shortest), short(_RULE, longest), factor=2.0),
        "With doubt, a plan for a nine more keeps four as well.": Bound(
            short(_DOUBTING_NINE), allowed
        ),
    }
