"""The exact optimum of small cases as a mixed-integer program: how far the levels are from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from foresail.cloud.purchasing.demand import (
    HOURS_PER_YEAR,
    BoughtJobs,
    Extension,
    PricedDemand,
    horizon_slots,
    job_prices,
    priced_demand,
)
from foresail.cloud.purchasing.offline import level_cost, total_demand
from foresail.cloud.purchasing.resources import Resource
from foresail.cloud.purchasing.stacked_demand import value_by_slot
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.milp.solver import Limits, ProgramBuilder, SolveStatus, find_solver
from foresail.model.errors import InputError

_SLOT_HOURS: Final = 168.0
_LEVELS: Final = 64
_MOST_SEGMENTS: Final = 30_000


@dataclass(frozen=True, slots=True)
class ExactComparison:
    """Cost of the levels beside the exact optimum, in coarse slots, relative to all on demand."""

    slot_hours: float
    """Demand is averaged over slots of this length."""
    levels: float
    exact: float
    """Costs."""

    @property
    def above(self) -> float:
        """Share by which the levels cost more."""
        return self.levels / self.exact - 1.0


def compare_exactly(
    jobs: BoughtJobs,
    resources: Sequence[Resource],
    terms: PurchaseTerms,
    extension: Extension = "repeat",
    time_limit_seconds: float = 60.0,
) -> ExactComparison | None:
    """Compare the levels with the exact optimum of a log, in weeks; None: too large to solve.

    So that the program is small, demand is averaged over weeks, levels are a 64th of the peak, and
    prices of jobs are rounded to hundredths; the same for both. Schedules, discounts for sustained
    use and what is held already are left out of both.

    ``extension`` as for ``horizon_slots``; the time limit is for each resource.

    Raises ``InputError`` if the optimum is not found in time, or the log is shorter than a term and
    not to be repeated.
    """
    prices = job_prices(jobs.hours, terms)
    rounded = replace(
        prices,
        unit_price=np.round(prices.unit_price, 2),
        on_demand_share=np.zeros(prices.unit_price.size),
    )
    longest = max((years for years, _ in terms.reserved), default=0)
    filled, slots = horizon_slots(jobs.span_hours, _SLOT_HOURS, longest, extension)
    sold = [(round(years * HOURS_PER_YEAR / _SLOT_HOURS), price) for years, price in terms.reserved]
    demands = [
        priced_demand(jobs, each.units, rounded, _SLOT_HOURS, filled, slots) for each in resources
    ]
    if sum(int(demand.stacks.size.sum()) for demand in demands) > _MOST_SEGMENTS:
        return None
    levels = exact = on_demand = 0.0
    for demand, each in zip(demands, resources, strict=True):
        total = total_demand(demand)
        unit = float(total.max()) / _LEVELS
        levels += level_cost(demand, sold, unit) * each.per_hour
        exact += each.per_hour * exact_cost(
            demand, sold, unit, time_limit_seconds=time_limit_seconds
        )
        on_demand += float(total.sum()) * each.per_hour * each.standard_work
    return ExactComparison(_SLOT_HOURS, levels / on_demand, exact / on_demand)


def exact_cost(
    demand: PricedDemand,
    terms: Sequence[tuple[int, float]],
    unit: float = 1.0,
    time_limit_seconds: float = 60.0,
) -> float:
    """The least that reservations of whole units, beginning in any slot, make demand cost.

    Windows of different units may share demand in any way. One column counts the windows of every
    term and first slot, one says how much of every segment is covered; in each slot no more is
    covered than is reserved. A term that the last slot cuts off is paid in full.

    ``terms`` are the slots and the price, relative to on demand, of each; so many units (``unit``)
    are reserved at once. The cost is in slots of one unit on demand.

    Raises ``InputError`` if the optimum is not found in time.
    """
    slots, stacks = demand.slots, demand.stacks
    builder = ProgramBuilder()
    rows = builder.add_rows(np.zeros(slots), np.inf)
    for length, price in terms:
        if length <= 0:
            raise InputError("not a term", field="slots", value=length, expected="1 or more")
        windows = builder.add_columns(np.zeros(slots), np.inf, True, -price * length * unit)
        for start in range(slots):
            held = rows[start : start + length]
            builder.add_entries(held, np.full(held.size, windows[start]), unit)
    for slot in range(slots):
        at = slice(stacks.first[slot], stacks.first[slot] + stacks.size[slot])
        price_of = demand.price[stacks.classes[at]]
        covered = builder.add_columns(np.zeros(price_of.size), stacks.units[at], False, price_of)
        if covered.size:
            builder.add_entries(np.full(covered.size, rows[slot]), covered, -1.0)
    solution = find_solver("highs").solve(builder.build(), Limits(time_limit_seconds))
    if solution.status != SolveStatus.OPTIMAL:
        raise InputError(
            "the exact optimum was not found",
            field="time_limit_seconds",
            value=time_limit_seconds,
            expected=f"a smaller case, or more time: the solve {solution.status}",
        )
    everything = float(value_by_slot(stacks, np.zeros(slots), demand.price).sum())
    return everything - solution.objective
