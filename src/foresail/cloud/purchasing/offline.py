"""The optimistic optimum in hindsight: perfect knowledge and capacity in any amounts (5.2 of 003).

Amounts of money are in hours of one unit (core, GiB) on demand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.cloud.purchasing.demand import (
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    BoughtJobs,
    Extension,
    PricedDemand,
    horizon_slots,
    priced_demand,
)
from foresail.cloud.purchasing.job_prices import KINDS, ON_DEMAND, Normalisation, job_prices
from foresail.cloud.purchasing.levels import level_windows
from foresail.cloud.purchasing.owned import Held, held_by_slot
from foresail.cloud.purchasing.schedules import Schedule, ScheduleFinder
from foresail.cloud.purchasing.sustained import month_cost
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.kernels.stacked_demand import value_by_slot
from foresail.model.errors import InputError

Floats = NDArray[np.float64]

Amounts = Literal["any", "of-machines"]
SCHEDULED: Final = "scheduled-reserved"
COMMITTED: Final = "committed"
_MOST_LEVELS: Final = 4096


def reserved_name(years: int) -> str:
    """Name of a term in results."""
    return f"reserved-{years}y"


@dataclass(frozen=True, slots=True)
class OfflineSettings:
    """How the optimum is computed.

    Parameters
    ----------
    slot_hours
        Demand is averaged over slots of this length.
    extension
        What to do with a log shorter than the longest term: see ``horizon_slots``.
    normalisation
        Of the transient cost: see ``job_prices``.
    level_units
        Height of a level; None: 1, or more where there would be over 4096 levels.
    amounts
        What jobs hold: cores, memory and GPUs apart, in ``any`` amounts, as published; or parts
        ``of-machines`` on sale (see ``resources_of``).

    Raises
    ------
    InputError
        If a length or height is not above 0.
    """

    slot_hours: float = 1.0
    extension: Extension = "repeat"
    normalisation: Normalisation = "useful-hour"
    level_units: float | None = None
    amounts: Amounts = "any"

    def __post_init__(self) -> None:
        if not 0.0 < self.slot_hours <= HOURS_PER_MONTH:
            raise InputError(
                "not a slot", field="slot_hours", value=self.slot_hours, expected="above 0 to 730"
            )
        if self.level_units is not None and not self.level_units > 0.0:
            raise InputError(
                "not a level", field="level_units", value=self.level_units, expected="above 0"
            )


DEFAULT_SETTINGS: Final = OfflineSettings()


@dataclass(frozen=True, slots=True)
class Reservation:
    """One commitment: how many units, from when, and for how long."""

    option: str
    units: float
    start_hours: float
    hours: float


@dataclass(frozen=True, eq=False)
class OfflinePlan:
    """The cheapest purchases for one resource.

    Parameters
    ----------
    resource
        ``cores``, ``GiB`` or ``GPUs``.
    hours
        Planned for.
    demand_hours
        Unit hours of all jobs: what everything costs on demand.
    peak_units
        Highest demand of any slot.
    reservations
        All commitments to terms; schedules hold their whole year.
    schedules
        What the scheduled ones hold, in the order of ``reservations``.
    over_time
        Month, option, and there: unit hours used, unit hours paid but idle, cost.
    cost
        Sum of ``over_time``.
    all_reserved_cost
        What reserving the peak, beyond what is held, costs all the time at the cheapest term;
        None: no term is sold.
    cost_if_scaled
        Cost if every commitment had been so many times as large: an error of the forecast.
    """

    resource: str
    hours: float
    demand_hours: float
    peak_units: float
    reservations: tuple[Reservation, ...]
    schedules: tuple[Schedule, ...]
    over_time: pl.DataFrame
    cost: float
    all_reserved_cost: float | None
    cost_if_scaled: Callable[[float], float] = field(repr=False)

    def by_option(self, column: str) -> Mapping[str, float]:
        """Sum of a column of ``over_time`` per option: ``used_hours``, ``idle_hours``, ``cost``."""
        sums = self.over_time.group_by("option", maintain_order=True).agg(pl.col(column).sum())
        return dict(zip(sums["option"].to_list(), sums[column].to_list(), strict=True))

    def mean_units(self, option: str) -> float:
        """Units committed with an option, averaged over the time planned for."""
        held = (r.units * r.hours for r in self.reservations if r.option == option)
        return sum(held) / self.hours


def plan_offline(
    jobs: BoughtJobs,
    units: Floats,
    terms: PurchaseTerms,
    settings: OfflineSettings = DEFAULT_SETTINGS,
    *,
    resource: str = "cores",
    held: Sequence[Held] = (),
) -> OfflinePlan:
    """The cheapest purchases for one resource in hindsight (spec section 4.1).

    Each job gets the cheapest option without a commitment; units are stacked in every slot, the
    dearest at the bottom; and each level gets the windows of 1 and 3 years and the schedules that
    save most, wherever they begin. With a sustained-use discount the on-demand price that jobs
    compare with is uncertain until the end: both the full price and that of a whole month are
    tried, and the cheaper plan is kept.

    Parameters
    ----------
    jobs
        Which never wait.
    units
        What each job holds of the resource; shape (jobs,).
    terms
        What is sold.
    settings
        Slots, levels, and what happens beyond the log.
    resource
        Its name.
    held
        Units that are paid for already: they cost nothing more, and cover the dearest demand.

    Raises
    ------
    InputError
        If the log is shorter than a term and is not to be repeated.
    """
    tiers = terms.sustained_tiers
    tried = [1.0, float(np.mean(tiers))] if tiers else [1.0]
    plans = [_plan(jobs, units, terms, settings, resource, held, price) for price in tried]
    return min(plans, key=lambda plan: plan.cost)


def _plan(
    jobs: BoughtJobs,
    units: Floats,
    terms: PurchaseTerms,
    settings: OfflineSettings,
    resource: str,
    held: Sequence[Held],
    on_demand_price: float,
) -> OfflinePlan:
    years = [length for length, _ in terms.reserved] + [1] * (terms.scheduled is not None)
    filled, slots = horizon_slots(
        jobs.span_hours, settings.slot_hours, max(years, default=0), settings.extension
    )
    prices = job_prices(jobs.hours, terms, settings.normalisation, on_demand_price)
    demand = priced_demand(jobs, units, prices, settings.slot_hours, filled, slots)
    total = total_demand(demand)
    peak = float(total.max())
    unit = settings.level_units or float(max(1.0, np.ceil(peak / _MOST_LEVELS)))
    owned = held_by_slot(held, slots, settings.slot_hours)
    commitments = _commitments(demand, terms, unit, owned, jobs.first_hour_of_week)
    settle = partial(_settled, demand, terms, commitments, owned, total, on_demand_price)
    over_time = settle(1.0)
    cheapest = min((price for _, price in terms.reserved), default=None)
    hours = slots * settings.slot_hours
    return OfflinePlan(
        resource=resource,
        hours=hours,
        demand_hours=float(total.sum()) * settings.slot_hours,
        peak_units=peak,
        reservations=tuple(each.reservation for each in commitments),
        schedules=tuple(each.schedule for each in commitments if each.schedule is not None),
        over_time=over_time,
        cost=float(over_time["cost"].sum()),
        all_reserved_cost=None
        if cheapest is None
        else cheapest * float(np.maximum(total - owned, 0.0).max()) * hours,
        cost_if_scaled=lambda factor: float(settle(factor)["cost"].sum()),
    )


def total_demand(demand: PricedDemand) -> Floats:
    """Units of all jobs together; shape (slots,)."""
    return value_by_slot(demand.stacks, np.zeros(demand.slots), np.ones(demand.price.size))


@dataclass(frozen=True, slots=True, eq=False)
class _Commitment:
    reservation: Reservation
    start: int
    slots: int
    cost: float
    schedule: Schedule | None = None


def _commitments(
    demand: PricedDemand,
    terms: PurchaseTerms,
    unit: float,
    owned: Floats,
    first_hour_of_week: float,
) -> list[_Commitment]:
    """The windows of all levels, with what they hold and cost."""
    hours = demand.slot_hours
    year = round(HOURS_PER_YEAR / hours)
    sold = [(round(years * HOURS_PER_YEAR / hours), price) for years, price in terms.reserved]
    windows = level_windows(
        demand,
        sold,
        unit,
        finders=_finders(terms, demand.slots, year, hours, first_hour_of_week),
        year_slots=year,
        covered=owned,
    )
    found = []
    for window in windows:
        begin, schedule = window.start * hours, window.schedule
        if schedule is not None:
            term = Reservation(SCHEDULED, unit, begin, year * hours)
            found.append(
                _Commitment(term, window.start, year, schedule.cost * unit * hours, schedule)
            )
            continue
        length, price = sold[window.product]
        name = reserved_name(terms.reserved[window.product][0])
        term = Reservation(name, unit, begin, length * hours)
        found.append(_Commitment(term, window.start, length, price * length * unit * hours))
    return found


def _finders(
    terms: PurchaseTerms, slots: int, year: int, slot_hours: float, first_hour_of_week: float
) -> list[ScheduleFinder]:
    """One for each whole year."""
    if terms.scheduled is None:
        return []
    reserved = min((price for years, price in terms.reserved if years == 1), default=math.inf)
    return [
        ScheduleFinder(
            terms.scheduled,
            year,
            slot_hours,
            first_hour_of_week + at * year * slot_hours,
            reserved,
        )
        for at in range(slots // year)
    ]


def _held(commitment: _Commitment, slots: int) -> Floats:
    """Units that a commitment holds, in its slots within the time planned for."""
    length = min(commitment.slots, slots - commitment.start)
    units = np.full(length, commitment.reservation.units)
    return units if commitment.schedule is None else units * commitment.schedule.held[:length]


def _settled(
    demand: PricedDemand,
    terms: PurchaseTerms,
    commitments: list[_Commitment],
    owned: Floats,
    total: Floats,
    on_demand_price: float,
    factor: float,
) -> pl.DataFrame:
    """Month, option, used and idle hours, and cost, with ``factor`` times the commitments."""
    slots, hours = demand.slots, demand.slot_hours
    month = (np.arange(slots) * hours / HOURS_PER_MONTH).astype(np.int64)
    held = {COMMITTED: owned} if owned.any() else {}
    paid = {name: np.zeros(slots) for name in held}
    # The longest terms are used first; within a slot it makes no difference to what is paid.
    options = [reserved_name(years) for years, _ in sorted(terms.reserved, reverse=True)]
    for option in (*options, SCHEDULED):
        chosen = [each for each in commitments if each.reservation.option == option]
        if not chosen:
            continue
        held[option], paid[option] = np.zeros(slots), np.zeros(slots)
        for each in chosen:
            units = _held(each, slots) * factor
            at = slice(each.start, each.start + units.size)
            held[option][at] += units
            paid[option][at] += each.cost * factor / units.size
    rows: list[tuple[str, Floats, Floats, Floats]] = []
    covered = np.zeros(slots)
    for option, units in held.items():
        use = np.minimum(units, total - covered)
        covered += use
        rows.append((option, use * hours, (units - use) * hours, paid[option]))
    rows += _uncommitted(demand, terms, covered, month, on_demand_price)
    return pl.concat(
        [
            pl.DataFrame(
                {
                    "month": np.arange(month[-1] + 1),
                    "option": [option] * int(month[-1] + 1),
                    "used_hours": np.bincount(month, used),
                    "idle_hours": np.bincount(month, idle),
                    "cost": np.bincount(month, cost),
                }
            )
            for option, used, idle, cost in rows
        ]
    )


def _uncommitted(
    demand: PricedDemand,
    terms: PurchaseTerms,
    covered: Floats,
    month: NDArray[np.int64],
    on_demand_price: float,
) -> list[tuple[str, Floats, Floats, Floats]]:
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
    rows: list[tuple[str, Floats, Floats, Floats]] = []
    for code, name in enumerate(KINDS):
        of_kind = (demand.kind == code).astype(np.float64)
        if code != ON_DEMAND and not of_kind.any():
            continue
        used = value_by_slot(demand.stacks, covered, of_kind) * hours
        own = of_kind * (demand.price - demand.on_demand_share * on_demand_price)
        cost = value_by_slot(demand.stacks, covered, own) * hours
        rows.append((name, used, np.zeros(demand.slots), cost + on_demand * (code == ON_DEMAND)))
    return rows
