"""What commitments hold and cost month by month, and what is paid for all that they leave over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.purchasing.demand import HOURS_PER_MONTH, PricedDemand
from foresail.cloud.purchasing.job_prices import KINDS, ON_DEMAND
from foresail.cloud.purchasing.kernels.stacked_demand import value_by_slot
from foresail.cloud.purchasing.offline_plan import (
    COMMITTED,
    SCHEDULED,
    UnitCommitment,
    reserved_name,
)
from foresail.cloud.purchasing.renting import Row, month_table
from foresail.cloud.purchasing.sustained import month_cost
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.model.arrays import Floats


def settled(
    demand: PricedDemand,
    terms: PurchaseTerms,
    commitments: Sequence[UnitCommitment],
    owned: Floats,
    total: Floats,
    on_demand_price: float,
    factor: float,
) -> pl.DataFrame:
    """What is used, idle and paid month by month, with ``factor`` times the commitments.

    ``owned`` units are paid for already, ``total`` are those of all jobs; shape (slots,). Jobs
    compared with ``on_demand_price``: 1, or that of a whole month of sustained use.

    Returns
    -------
    table
        Month, option, used and idle hours, and cost.
    """
    slots, hours = demand.slots, demand.slot_hours
    month = (np.arange(slots) * hours / HOURS_PER_MONTH).astype(np.int64)
    held = {COMMITTED: owned} if owned.any() else {}
    paid = {name: np.zeros(slots) for name in held}
    # The longest terms are used first; within a slot it makes no difference to what is paid.
    options = [reserved_name(years) for years, _ in sorted(terms.reserved, reverse=True)]
    for option in (*options, SCHEDULED):
        chosen = [each for each in commitments if each.option == option]
        if not chosen:
            continue
        held[option], paid[option] = np.zeros(slots), np.zeros(slots)
        for each in chosen:
            start = round(each.start_hours / hours)
            units = _held(each, round(each.hours / hours), slots - start) * factor
            at = slice(start, start + units.size)
            held[option][at] += units
            paid[option][at] += each.cost * factor / units.size
    rows: list[Row] = []
    covered = np.zeros(slots)
    for option, units in held.items():
        use = np.minimum(units, total - covered)
        covered += use
        rows.append((option, use * hours, (units - use) * hours, paid[option]))
    rows += _uncommitted(demand, terms, covered, month, on_demand_price)

    def monthly(by_slot: Floats) -> Floats:
        return np.bincount(month, by_slot).astype(np.float64)

    return month_table(
        (option, monthly(used), monthly(idle), monthly(cost)) for option, used, idle, cost in rows
    )


def _held(commitment: UnitCommitment, slots: int, left: int) -> Floats:
    """Units that a commitment of some slots holds, in those that are left to plan for."""
    length = min(slots, left)
    units = np.full(length, commitment.units)
    return units if commitment.schedule is None else units * commitment.schedule.held[:length]


def _uncommitted(
    demand: PricedDemand,
    terms: PurchaseTerms,
    covered: Floats,
    month: NDArray[np.int64],
    on_demand_price: float,
) -> list[Row]:
    """Option, used and idle hours and cost by slot, of the units that commitments leave over.

    Restarts of transient jobs are paid with what is on demand.
    """
    hours = demand.slot_hours
    on_demand = value_by_slot(demand.stacks, covered, demand.on_demand_share) * hours
    if terms.sustained_tiers:
        by_month = np.bincount(month, on_demand)
        lengths = np.bincount(month) * hours
        paid = month_cost(by_month / lengths, terms.sustained_tiers) * lengths
        ratio = np.divide(paid, by_month, out=np.zeros(paid.size), where=by_month > 0.0)
        on_demand = on_demand * ratio[month]
    rows: list[Row] = []
    for code, name in enumerate(KINDS):
        of_kind = (demand.kind == code).astype(np.float64)
        if code != ON_DEMAND and not of_kind.any():
            continue
        used = value_by_slot(demand.stacks, covered, of_kind) * hours
        own = of_kind * (demand.price - demand.on_demand_share * on_demand_price)
        cost = value_by_slot(demand.stacks, covered, own) * hours
        rows.append((name, used, np.zeros(demand.slots), cost + on_demand * (code == ON_DEMAND)))
    return rows
