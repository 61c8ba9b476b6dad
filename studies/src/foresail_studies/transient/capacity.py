"""Studies ``transient-capacity`` and ``transient-windows``: price of nines, and how they last."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final, Literal

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
from foresail.cloud.transient.plan import CapacityPlan, kinds_of_markets, read_kinds
from foresail.cloud.transient.planning import (
    PoolRule,
    UnreachableError,
    best_of_scales,
    chosen,
    gained_nines,
    plan,
)
from foresail.model.distribution import Integers
from foresail.model.errors import InputError, require_each_positive
from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters

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

Rule = Literal["published", "refined"]
"""Name of a way to choose a pool of transient machines."""


def published_rule(offers: Offers, needed: int, allowed: float, dearest: float) -> Integers | None:
    """The published way to choose a pool: one machine after the other, by gains in nines."""
    return chosen(offers, needed, allowed, gained_nines, dearest=dearest)


RULES: Final[Mapping[Rule, PoolRule]] = {"published": published_rule, "refined": best_of_scales}


def target(nines: float) -> float:
    """An availability of so many whole nines, with the digits that people write."""
    return float(f"0.{'9' * round(nines)}")


@lru_cache(maxsize=1)
def markets(prices: str, machines: str) -> tuple[JointHistory, Mapping[str, MachineKind]]:
    """Histories of markets on one axis, and what each market's machines are.

    ``machines`` is a file with the capacity of each instance type; empty: those of 2015 that are
    known here.

    Raises ``InputError`` if a file cannot be read, or the capacity of a type is not known.
    """
    histories = load_histories(prices)
    known = (
        read_kinds(Path(machines))
        if machines
        else {name: MachineKind(capacity) for name, capacity in _ECU.items()}
    )
    return joined(histories), kinds_of_markets(histories, known, machines or prices)


def stretch(history: JointHistory, place: int, of: int, begin: float) -> tuple[float, float]:
    """Begin and end of one of so many equal stretches of a history from ``begin`` on (seconds)."""
    length = (history.end - begin) / of
    return begin + place * length, begin + (place + 1) * length


_RULE: Final = "published rule"
_REFINED: Final = "refined"
_DOUBTING: Final = "refined, with doubt"
_SIZES: Final = (8.0, 16.0, 32.0, 64.0, 128.0)
_RULE_OF: Final[Mapping[str, Rule]] = {
    _RULE: "published",
    _REFINED: "refined",
    _DOUBTING: "refined",
}


@dataclass(frozen=True, slots=True)
class DrawnPool:
    """A capacity on types whose availabilities and prices are drawn.

    Availabilities are between 0.9 and 0.999, their shortfalls equally likely in logarithms; prices
    are 20 to 40 % of on-demand, the published range.
    """

    rule: Rule
    nines: float
    capacity: float
    types: int
    seed: int

    def measure(self) -> Mapping[str, float]:
        """Measure what the plan costs and rents."""
        return _figures(_planned(self._offers(), self.capacity, target(self.nines), self.rule))

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
    """A capacity on spot markets, as one of so many equal stretches of their history shows them."""

    prices: str
    machines: str
    rule: Rule
    nines: float
    capacity: float

    doubt_hours: float
    """As for ``estimated_offers``."""
    place: int
    stretches: int
    """Which stretch, of how many."""

    def measure(self) -> Mapping[str, float]:
        """Measure what the plan costs and rents, and how much of the same time it is short."""
        history, kinds = markets(self.prices, self.machines)
        begin, end = stretch(history, self.place, self.stretches, history.begin)
        seen = history.between(begin, end)
        offers = estimated_offers(seen, kinds, doubt_hours=self.doubt_hours)
        planned = _planned(offers, self.capacity, target(self.nines), self.rule)
        figures = dict(_figures(planned))
        if planned is not None:
            short = 1.0 - realised(seen, planned).availability
            figures["short_minutes"] = max(short, 0.0) * YEAR_MINUTES
        return figures


def _planned(
    offers: Offers, capacity: float, availability: float, rule: Rule
) -> CapacityPlan | None:
    try:
        return plan(offers, capacity, availability, choose=RULES[rule])
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

    FILES: ClassVar[tuple[str, ...]] = ("prices", "machines")

    seeds: int = 6
    """How many equal stretches the histories are cut into."""
    capacity: float = 5000.0
    """That a service needs (ECU)."""
    doubt_hours: float = 3.0
    """Hours put to what was seen, half of them down, where there is doubt."""
    prices: Path | None = None
    """Price histories of spot markets."""
    machines: Path | None = None
    """Capacity of each instance type there; EC2's of 2015 by default."""


@dataclass(frozen=True, slots=True)
class TransientCapacityParameters(MarketParameters, quick="seeds=6 types=16", minutes=(1.5, 8)):
    """Parameters of ``transient-capacity``; as many pools of types are drawn as there are seeds."""

    seeds: int = 12

    types: int = 24
    """In a drawn pool."""


@register("study", "transient-capacity", parameters=TransientCapacityParameters)
def transient_capacity(parameters: TransientCapacityParameters) -> Study:
    """Measure the cost of each further nine of a transient capacity (figure 3.7)."""
    cases = [
        GridPoint(
            "drawn",
            nines,
            system,
            seed,
            DrawnPool(_RULE_OF[system], nines, parameters.capacity, parameters.types, seed),
        )
        for seed in range(parameters.seeds)
        for system in (_RULE, _REFINED)
        for nines in (2.0, 3.0, 4.0, 5.0, 6.0)
    ]
    pools = [{"group": "drawn", "system": system} for system in (_RULE, _REFINED)]
    left_out: tuple[str, ...] = (
        "Left out for want of price histories (`--set prices=FILE`): spot markets.",
    )
    if parameters.prices is not None:
        cases += _market_cases(parameters, str(parameters.prices))
        pools += [{"group": "markets", "system": system} for system in (_RULE, _DOUBTING)]
        left_out = ()
    doubt = f"{parameters.doubt_hours:g}"
    return declared(
        "transient-capacity", _MEASURES, cases, {"pool": pools}, left_out, doubt_hours=doubt
    )


def _market_cases(parameters: TransientCapacityParameters, prices: str) -> list[GridPoint]:
    return [
        GridPoint(
            "markets",
            nines,
            system,
            seed,
            MarketPool(
                prices,
                "" if parameters.machines is None else str(parameters.machines),
                method,
                nines,
                parameters.capacity,
                parameters.doubt_hours if system == _DOUBTING else 0.0,
                seed,
                parameters.seeds,
            ),
        )
        for seed in range(parameters.seeds)
        for system, method in _RULE_OF.items()
        for nines in (2.0, 3.0, 4.0, 5.0, 6.0)
    ]


_DAY: Final = 86_400.0
_NINE: Final = "published rule, a nine more"
_ORACLE: Final = "published rule, oracle"
_DOUBTING_NINE: Final = "refined, with doubt, a nine more"
_TARGET: Final = 4.0
_LEAST_SHORT: Final = 1e-5
"""A stretch of some weeks cannot tell shares of time below this."""


@dataclass(frozen=True, slots=True)
class TrailingWindows:
    """Plans of a trailing window, each held to the days after it, in one stretch of a history."""

    prices: str
    machines: str
    rule: Rule
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
        history, kinds = markets(self.prices, self.machines)
        first = history.begin + self.first_days * _DAY
        if first >= history.end:
            raise InputError(
                "the histories end before the first plan",
                source=self.prices,
                field="window_days",
                value=self.first_days,
                expected=f"less than the {history.total_seconds / _DAY:.0f} days that they cover",
            )
        begin, end = stretch(history, self.place, self.stretches, first)
        back = (self.window_days or 0.0) * _DAY
        found = rolled(
            history.between(begin - back, end),
            lambda seen: plan(
                estimated_offers(seen, kinds, doubt_hours=self.doubt_hours),
                self.capacity,
                target(self.nines),
                extra_nines=self.extra_nines,
                choose=RULES[self.rule],
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
    held_days: float = 7.0
    """How long each plan is held to."""

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
    cases = [
        GridPoint("markets", days, system, seed, _task(parameters, system, days, seed))
        for seed in range(parameters.seeds)
        for system in (_RULE, _NINE, _ORACLE, _DOUBTING, _DOUBTING_NINE)
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
        longest=f"{max(parameters.window_days):g}",
        held_days=f"{parameters.held_days:g}",
        doubt_hours=f"{parameters.doubt_hours:g}",
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
