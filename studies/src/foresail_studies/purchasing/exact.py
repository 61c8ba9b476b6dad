"""The exact optimum of small cases as a mixed-integer program: how far the levels are from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foresail.cloud.purchasing.demand import PricedDemand
from foresail.cloud.purchasing.offline import level_windows
from foresail.cloud.purchasing.stacked_demand import value_by_slot
from foresail.milp.solver import Limits, ProgramBuilder, SolveStatus, find_solver
from foresail.model.errors import InputError


def level_cost(
    demand: PricedDemand, terms: Sequence[tuple[int, float]], unit: float = 1.0
) -> float:
    """Cost of demand with the windows of ``level_windows``, in slots of one unit on demand.

    In each slot all windows together cover the dearest demand, whatever level they came from.
    """
    covered = np.zeros(demand.slots)
    paid = 0.0
    for window in level_windows(demand, terms, unit):
        length, price = terms[window.product]
        covered[window.start : window.start + length] += unit
        paid += price * length * unit
    return paid + float(value_by_slot(demand.stacks, covered, demand.price).sum())


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
