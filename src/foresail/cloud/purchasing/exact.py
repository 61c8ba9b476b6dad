"""The exact optimum of small cases as a mixed-integer program: how far the levels are from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.purchasing.demand import PricedDemand
from foresail.kernels.stacked_demand import value_by_slot
from foresail.milp.program import ProgramBuilder
from foresail.milp.solver import Limits, Status, find_solver
from foresail.model.errors import InputError

Floats = NDArray[np.float64]


def exact_cost(
    demand: PricedDemand,
    terms: Sequence[tuple[int, float]],
    unit: float = 1.0,
    solver: str = "highs",
    time_limit_seconds: float = 60.0,
) -> float:
    """The least that reservations of whole units, beginning in any slot, make demand cost.

    Windows of different units may share demand in any way. One column counts the windows of every
    term and first slot, one says how much of every segment is covered; in each slot no more is
    covered than is reserved. A term that the last slot cuts off is paid in full.

    Parameters
    ----------
    demand
        Stacked and priced; its cost without reservations is the sum over it.
    terms
        Slots and price, relative to on demand, of each term.
    unit
        Units that are reserved at once.
    solver
        Back end.
    time_limit_seconds
        When to stop.

    Returns
    -------
    float
        In slots of one unit on demand.

    Raises
    ------
    InputError
        If the optimum is not found in time.
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
    solution = find_solver(solver).solve(builder.build(), Limits(time_limit_seconds))
    if solution.status != Status.OPTIMAL:
        raise InputError(
            "the exact optimum was not found",
            field="time_limit_seconds",
            value=time_limit_seconds,
            expected=f"a smaller case, or more time: the solve {solution.status}",
        )
    everything = float(value_by_slot(stacks, np.zeros(slots), demand.price).sum())
    return everything - solution.objective
