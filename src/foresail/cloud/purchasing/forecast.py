"""Reserving for a year that is not known yet: scenarios of demand, and a stated risk."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.purchasing import demand as demands
from foresail.cloud.purchasing import offline
from foresail.cloud.purchasing.resources import HeldCapacity, held_in_year
from foresail.cloud.purchasing.stacked_demand import level_prices, value_by_slot
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.model.distribution import Floats
from foresail.model.errors import InputError, require, require_at_least

_BLOCK_HOURS: Final = 4.0 * 168.0
_LEVELS: Final = 256
_STEPS_AT_ONCE: Final = 64
_STEP_BLOCKS: Final = 16
_SHARES: Final = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True)
class ForecastSettings:
    """Assumptions about the coming years."""

    risk: float = 0.2
    """A level is reserved only if the chance that it does not pay is at most this."""
    scenarios: int = 50
    """Number of futures that are drawn: blocks of four weeks of the log, put together anew."""
    growth: float = 1.0
    """Factor by which demand grows in a year, in the middle."""
    growth_spread: float = 0.2
    """Standard deviation of the logarithm of a year's growth."""
    seed: int = 0
    """Seed of the draws."""

    def __post_init__(self) -> None:
        require(0.0 < self.risk < 1.0, self, "risk", "above 0 and below 1")
        require_at_least(self, 1, "scenarios")
        require(0.001 <= self.growth <= 1000.0, self, "growth", "from 0.001 to 1000")
        require(0.0 <= self.growth_spread <= 5.0, self, "growth_spread", "from 0 to 5")


@dataclass(frozen=True, slots=True)
class RiskPlan:
    """Units to reserve now of one resource, at a stated risk."""

    units: Mapping[str, float]
    """Units to reserve, by term."""
    cost_shares: Mapping[float, float]
    """First year's cost relative to all on demand: 5 %, 50 % and 95 % quantiles of scenarios."""
    expected_cost_share: float
    """Its mean."""


def reserve_at_risk(
    jobs: demands.BoughtJobs,
    units: Floats,
    terms: PurchaseTerms,
    settings: offline.OfflineSettings = offline.DEFAULT_SETTINGS,
    forecast: ForecastSettings = ForecastSettings(),
    held: Sequence[HeldCapacity] = (),
) -> RiskPlan:
    """Choose how much to reserve so that every level pays with a stated probability.

    A level pays in a scenario if what it replaces costs at least the reservation. The dearest
    demand is at the bottom, so that a higher level never pays where a lower one does not. Long
    terms come first, at the bottom: they are cheaper, and face more years of growth. What is held
    already covers the dearest demand until it ends, and levels are reserved on top of it.

    With a discount for sustained use all that is on demand pays the price of whole months: the
    provider adds up what is used at different times, so that all but the last unit of a month do.
    What that leaves out is less than a tenth of a unit.

    ``units`` are what each job holds of the resource, shape (jobs,). Levels are 1 / 256 of the
    highest that can pay unless ``settings`` say.

    Raises ``InputError`` if the log has a gap so long that nothing is asked for in some of the
    years drawn.
    """
    filled = max(1, math.ceil(jobs.span_hours / settings.slot_hours - 1e-9))
    on_demand = float(np.mean(terms.sustained_tiers)) if terms.sustained_tiers else 1.0
    prices = demands.job_prices(jobs.hours, terms, on_demand)
    demand = demands.priced_demand(jobs, units, prices, settings.slot_hours, filled, filled)
    longest = max((years for years, _ in terms.reserved), default=1)
    weights, growth = _futures(filled, settings.slot_hours, longest, forecast)
    total = offline.total_demand(demand)
    _require_demand(weights @ total, total, settings.slot_hours)
    tallest = _height(total, terms) * float(growth.max())
    unit = settings.level_units or tallest / _LEVELS
    owned = [held_in_year(held, year, demands.HOURS_PER_YEAR) for year in range(longest)]
    most = max(units for stretches in owned for _, units in stretches)
    top = min(float(total.max()), (tallest + most) / float(growth.min()))
    worth, covered = _worth(demand, weights, growth, unit, top, owned)
    everything = weights @ value_by_slot(demand.stacks, np.zeros(filled), demand.price)
    level, paid, bought, price = 0, 0.0, {}, dict(terms.reserved)
    for years in sorted(price, reverse=True):
        paying = _levels_that_pay(worth[:, :years].mean(axis=1), price[years], forecast.risk)
        more = max(paying - level, 0)
        bought[offline.reserved_name(years)] = float(more * unit)
        paid += more * unit * price[years]
        level += more
    # Of the first year: what is not committed costs all but what the reserved levels are worth.
    rest = growth[:, 0] * everything - covered[:, 0] - (worth[:, 0] * unit)[:, :level].sum(axis=1)
    share = (rest + paid) / (growth[:, 0] * (weights @ total))
    return RiskPlan(
        units=bought,
        cost_shares={each: float(np.quantile(share, each)) for each in _SHARES},
        expected_cost_share=float(share.mean()),
    )


def _require_demand(drawn: Floats, total: Floats, slot_hours: float) -> None:
    """Refuse futures in which nothing is asked for, whose cost is no share of anything."""
    empty = int((drawn <= 0.0).sum())
    if empty and total.any():
        busy = np.flatnonzero(total)
        gap = float(np.diff(busy).max(initial=1) - 1) * slot_hours / 24.0
        raise InputError(
            f"in {empty:,} of {drawn.size:,} years drawn from the log nothing is asked for: it has "
            f"a gap of {gap:,.0f} days",
            expected="a log without it, such as one side of it (--filter keep_between)",
        )


def _worth(
    demand: demands.PricedDemand,
    weights: Floats,
    growth: Floats,
    unit: float,
    tallest: float,
    owned: Sequence[Sequence[tuple[float, float]]],
) -> tuple[Floats, Floats]:
    """Cost per hour of a unit of each level otherwise; shape (scenarios, years, levels).

    And what is held saves per hour, shape (scenarios, years): levels begin on top of it, in each
    stretch of a year (share, units) of ``owned``.

    Demand that grows by a factor has levels that are lower by it: the mean cost of all demand below
    a height is tabulated once and read between its steps.
    """
    slots = demand.slots
    step = tallest / (_STEPS_AT_ONCE * _STEP_BLOCKS)
    segment, used = np.zeros(slots, np.int64), np.zeros(slots)
    prices = np.empty((slots, _STEPS_AT_ONCE))
    parts = [np.zeros((weights.shape[0], 1))]
    for _ in range(_STEP_BLOCKS):
        level_prices(demand.stacks, demand.price, step, segment, used, prices)
        # Not a BLAS product: its threads wait for each other on a busy machine.
        parts.append(np.einsum("st,tl->sl", weights, prices) * step)
    below = np.cumsum(np.concatenate(parts, axis=1), axis=1)
    heights = np.arange(below.shape[1]) * step
    tops = np.arange(_LEVELS + 1) * unit
    worth = np.zeros((*growth.shape, _LEVELS))
    covered = np.zeros(growth.shape)
    for scenario, year in np.ndindex(growth.shape):
        factor = growth[scenario, year]
        for share, units in owned[year]:
            cost = np.interp((units + tops) / factor, heights, below[scenario]) * factor
            worth[scenario, year] += share * np.diff(cost) / unit
            covered[scenario, year] += share * cost[0]
    return worth, covered


def _height(total: Floats, terms: PurchaseTerms) -> float:
    """No level above this pays: its use is at most mean over height, and a unit costs at most 1."""
    cheapest = min((price for _, price in terms.reserved), default=1.0)
    return min(float(total.max()), float(total.mean()) / cheapest)


def _futures(
    filled: int, slot_hours: float, years: int, forecast: ForecastSettings
) -> tuple[Floats, Floats]:
    """Share of each slot of the log in a scenario's year, and demand's factor in each year."""
    random = np.random.default_rng(forecast.seed)
    block = max(1, min(filled, round(_BLOCK_HOURS / slot_hours)))
    draws = math.ceil(demands.HOURS_PER_YEAR / slot_hours / block)
    weights = np.zeros((forecast.scenarios, filled))
    for scenario in range(forecast.scenarios):
        begins = random.integers(filled, size=draws)
        slots = (begins[:, None] + np.arange(block)) % filled
        weights[scenario] = np.bincount(slots.reshape(-1), minlength=filled) / slots.size
    steps = random.standard_normal((forecast.scenarios, years)) * forecast.growth_spread
    return weights, np.exp(np.cumsum(steps + math.log(forecast.growth), axis=1))


def _levels_that_pay(worth: Floats, price: float, risk: float) -> int:
    """Levels from the bottom that pay in all but a share ``risk`` of scenarios."""
    failing = (worth < price).mean(axis=0)
    wrong = np.flatnonzero(failing > risk)
    return int(wrong[0]) if wrong.size else worth.shape[1]
