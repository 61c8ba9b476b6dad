"""Studies ``transient-capacity`` and ``transient-windows``: price of nines, and how they last."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

import numpy as np

from foresail.cloud.histories import JointHistory, joined
from foresail.cloud.prices_reading import load_histories
from foresail.cloud.transient.estimating import (
    estimated_offers,
    mean_availability,
    realised,
    rolled,
)
from foresail.cloud.transient.offers import MachineKind, Offers, TransientType
from foresail.cloud.transient.plan import CapacityPlan, kinds_of_markets
from foresail.cloud.transient.planning import (
    PoolRule,
    UnreachableError,
    best_of_scales,
    chosen,
    gained_nines,
    plan,
)
from foresail.model.distribution import Integers
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters, require_each_positive

_MEASURES: Final = (
    Measure("on_demand_share", "cost, of on-demand", "share"),
    Measure("surplus_share", "capacity beyond the need (1 = twice it)"),
    Measure("reached", "targets that can be reached", "share"),
    Measure("types", "types rented"),
    Measure("short_minutes", "minutes a year without it"),
    Measure("nines", "nines kept (5 at most)"),
    Measure("planned", "periods with a plan", "share"),
)

YEAR_MINUTES: Final = 525_600.0
_ECU: Final[Mapping[str, float]] = MappingProxyType(
    {"c3.xlarge": 14.0, "d2.8xlarge": 116.0, "g2.2xlarge": 26.0, "m3.medium": 3.0, "r3.large": 6.5}
)
"""Compute units of EC2's types as they were published in 2015."""


def published_rule(offers: Offers, needed: int, allowed: float, dearest: float) -> Integers | None:
    """The published way to choose a pool: one machine after the other, by gains in nines."""
    return chosen(offers, needed, allowed, gained_nines, dearest=dearest)


def target(nines: float) -> float:
    """An availability of so many whole nines, with the digits that people write."""
    return float(f"0.{'9' * round(nines)}")


@lru_cache(maxsize=1)
def markets(prices: str) -> tuple[JointHistory, Mapping[str, MachineKind]]:
    """Histories of markets on one axis, and what each market's machines are.

    Raises ``InputError`` if the file cannot be read, or the capacity of a type is not known.
    """
    histories = load_histories(prices)
    known = {name: MachineKind(capacity) for name, capacity in _ECU.items()}
    return joined(histories), kinds_of_markets(histories, known, prices)


class Stretch(NamedTuple):
    """One of so many equal stretches of the histories in a file, counted from 0."""

    prices: str
    place: int
    of: int

    def begin_and_end(self, begin: float, end: float) -> tuple[float, float]:
        """Its begin and end in seconds, of histories between these."""
        length = (end - begin) / self.of
        return begin + self.place * length, begin + (self.place + 1) * length


_RULE: Final = "published rule"
_REFINED: Final = "refined"
_DOUBTING: Final = "refined, with doubt"
_SIZES: Final = (8.0, 16.0, 32.0, 64.0, 128.0)
_DOUBT_HOURS: Final = 3.0
"""Put to what was seen, half of them down, where there is doubt."""
_NINES: Final = (2.0, 3.0, 4.0, 5.0, 6.0)


def _rule_of(system: str) -> PoolRule:
    return published_rule if system.startswith(_RULE) else best_of_scales


@dataclass(frozen=True, slots=True)
class DrawnPool:
    """A capacity on types whose availabilities and prices are drawn.

    Availabilities are between 0.9 and 0.999, their shortfalls equally likely in logarithms; prices
    are 20 to 40 % of on-demand, the published range.
    """

    system: str
    nines: float
    capacity: float
    types: int
    seed: int

    def measure(self) -> Mapping[str, float]:
        """Measure what the plan costs and rents."""
        return _figures(_planned(self._offers(), self.capacity, self.nines, self.system))

    def _offers(self) -> Offers:
        random = np.random.default_rng(self.seed)
        down = 10.0 ** random.uniform(-3.0, -1.0, self.types)
        price = random.uniform(0.2, 0.4, self.types)
        size = random.choice(_SIZES, self.types)
        return Offers(
            tuple(
                TransientType(f"type {i}", float(size[i]), 1.0 - float(down[i]), float(p), 1.0)
                for i, p in enumerate(price)
            )
        )


@dataclass(frozen=True, slots=True)
class MarketPool:
    """A capacity on spot markets, as a stretch of their history shows them."""

    stretch: Stretch
    system: str
    nines: float
    capacity: float
    doubt_hours: float
    """As for ``estimated_offers``."""

    def measure(self) -> Mapping[str, float]:
        """Measure what the plan costs and rents, and how much of the same time it is short."""
        history, kinds = markets(self.stretch.prices)
        seen = history.between(*self.stretch.begin_and_end(history.begin, history.end))
        offers = estimated_offers(seen, kinds, doubt_hours=self.doubt_hours)
        planned = _planned(offers, self.capacity, self.nines, self.system)
        figures = dict(_figures(planned))
        if planned is not None:
            short = 1.0 - realised(seen, planned).availability
            figures["short_minutes"] = max(short, 0.0) * YEAR_MINUTES
        return figures


def _planned(offers: Offers, capacity: float, nines: float, system: str) -> CapacityPlan | None:
    try:
        return plan(offers, capacity, target(nines), choose=_rule_of(system))
    except UnreachableError:
        return None


def _figures(planned: CapacityPlan | None) -> Mapping[str, float]:
    if planned is None:
        return {"reached": 0.0}
    share = planned.on_demand_share
    return {
        "reached": 1.0,
        "on_demand_share": math.nan if share is None else share,
        "surplus_share": planned.surplus_share,
        "types": float(len(planned.rented)),
    }


@dataclass(frozen=True, slots=True)
class MarketParameters(StudyParameters):
    """Parameters that the studies of spot markets share."""

    FILES: ClassVar[tuple[str, ...]] = ("prices",)

    seeds: int = 6
    """How many equal stretches the histories are cut into."""
    capacity: float = 5000.0
    """That a service needs (ECU)."""
    prices: Path | None = None
    """Price histories of EC2's spot markets, of types of 2015 whose capacity is known here."""


@dataclass(frozen=True, slots=True)
class TransientCapacityParameters(MarketParameters, quick="seeds=6 types=16", minutes=(1.5, 8)):
    """Parameters of ``transient-capacity``; as many pools of types are drawn as there are seeds."""

    seeds: int = 12

    types: int = 24
    """In a drawn pool."""


@register("study", "transient-capacity", parameters=TransientCapacityParameters)
def transient_capacity(parameters: TransientCapacityParameters) -> Study:
    """Measure the cost of each further nine of a transient capacity (figure 3.7)."""
    seeds, capacity = range(parameters.seeds), parameters.capacity
    cases = [
        GridPoint(
            "drawn", nines, system, seed, DrawnPool(system, nines, capacity, parameters.types, seed)
        )
        for seed in seeds
        for system in (_RULE, _REFINED)
        for nines in _NINES
    ]
    pools = [{"group": "drawn", "system": system} for system in (_RULE, _REFINED)]
    left_out: tuple[str, ...] = (
        "Left out for want of price histories (`--set prices=FILE`): spot markets.",
    )
    if parameters.prices is not None:
        for seed in seeds:
            stretch = Stretch(str(parameters.prices), seed, parameters.seeds)
            for system in (_RULE, _REFINED, _DOUBTING):
                doubt = _DOUBT_HOURS if system == _DOUBTING else 0.0
                for nines in _NINES:
                    task = MarketPool(stretch, system, nines, capacity, doubt)
                    cases.append(GridPoint("markets", nines, system, seed, task))
        pools += [{"group": "markets", "system": system} for system in (_RULE, _DOUBTING)]
        left_out = ()
    said = f"{_DOUBT_HOURS:g}"
    return declared(
        "transient-capacity", _MEASURES, cases, {"pool": pools}, left_out, doubt_hours=said
    )


_DAY: Final = 86_400.0
_HELD_DAYS: Final = 7.0
"""How long each plan is held to."""
_MORE: Final = ", a nine more"
_ORACLE: Final = f"{_RULE}, oracle"
_TARGET: Final = 4.0
_LEAST_SHORT: Final = 1e-5
"""A stretch of some weeks cannot tell shares of time below this."""


@dataclass(frozen=True, slots=True)
class TrailingWindows:
    """Plans of a trailing window, each held to the days after it, in one stretch of a history."""

    stretch: Stretch
    """Of what comes after the first plan."""
    system: str
    nines: float
    capacity: float
    window_days: float
    """How far back each plan looks; an oracle looks at what it plans for."""
    first_days: float
    """Where the first plan begins: the same for all windows."""

    def measure(self) -> Mapping[str, float]:
        """Time without the capacity, and what was paid."""
        history, kinds = markets(self.stretch.prices)
        first = history.begin + self.first_days * _DAY
        if first >= history.end:
            raise InputError(
                "the histories end before the first plan",
                source=self.stretch.prices,
                field="window_days",
                value=self.first_days,
                expected=f"less than the {history.total_seconds / _DAY:.0f} days that they cover",
            )
        begin, end = self.stretch.begin_and_end(first, history.end)
        back = 0.0 if self.system == _ORACLE else self.window_days * _DAY
        doubt = _DOUBT_HOURS if self.system.startswith(_DOUBTING) else 0.0
        found = rolled(
            history.between(begin - back, end),
            lambda seen: plan(
                estimated_offers(seen, kinds, doubt_hours=doubt),
                self.capacity,
                target(self.nines),
                extra_nines=1.0 if self.system.endswith(_MORE) else 0.0,
                choose=_rule_of(self.system),
            ),
            window_seconds=None if self.system == _ORACLE else back,
            step_seconds=_HELD_DAYS * _DAY,
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
            "short_minutes": max(short, 0.0) * YEAR_MINUTES,
            "on_demand_share": (
                float(paid.mean()) / (cheapest * self.capacity) if paid.size else math.nan
            ),
            "planned": float(paid.size) / len(found),
        }


@dataclass(frozen=True, slots=True)
class WindowParameters(
    MarketParameters, quick="seeds=6 window_days=[7,28] capacity=500", minutes=(0.5, 8)
):
    """Parameters of ``transient-windows``; histories are cut after the longest window."""

    window_days: tuple[float, ...] = (3.0, 7.0, 14.0, 28.0, 42.0)
    """How far back plans look."""

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
    longest = max(parameters.window_days)
    cases = [
        GridPoint(
            "markets",
            days,
            system,
            seed,
            TrailingWindows(
                Stretch(str(parameters.prices), seed, parameters.seeds),
                system,
                _TARGET,
                parameters.capacity,
                days,
                longest,
            ),
        )
        for seed in range(parameters.seeds)
        for system in (_RULE, _RULE + _MORE, _ORACLE, _DOUBTING, _DOUBTING + _MORE)
        for days in parameters.window_days
    ]
    allowed = (1.0 - target(_TARGET)) * YEAR_MINUTES
    return declared(
        "transient-windows",
        _MEASURES,
        cases,
        allowed=allowed,
        twenty=20.0 * allowed,
        shortest=f"{min(parameters.window_days):g}",
        longest=f"{longest:g}",
        held_days=f"{_HELD_DAYS:g}",
        doubt_hours=f"{_DOUBT_HOURS:g}",
    )
