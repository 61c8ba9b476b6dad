"""The optimistic optimum in hindsight: any amounts, with perfect knowledge (5.2 of 003); its plan.

Amounts of money are in hours of one unit (core, GiB) on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from foresail.cloud.purchasing import demand as demands
from foresail.cloud.purchasing.resources import Amounts, HeldCapacity, held_by_slot
from foresail.cloud.purchasing.stacked_demand import (
    choose_windows,
    level_prices,
    skip_units,
    value_by_slot,
)
from foresail.cloud.purchasing.terms import PurchaseTerms, YearFinder, YearSchedule
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import require, require_positive

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
    extension: demands.Extension = "repeat"
    """Treatment of a log shorter than the longest term: see ``horizon_slots``."""
    level_units: float | None = None
    """Height of a level; None: 1, or more where there would be over 4096 levels."""
    amounts: Amounts = "any"
    """Resources of jobs: cores, memory and GPUs apart, in ``any`` amounts, as published; or parts
    ``of-machines`` on sale (see ``resources_of``)."""

    def __post_init__(self) -> None:
        require(
            0.0 < self.slot_hours <= demands.HOURS_PER_MONTH, self, "slot_hours", "above 0 to 730"
        )
        require_positive(self, "level_units")


DEFAULT_SETTINGS: Final = OfflineSettings()


@dataclass(frozen=True, slots=True, eq=False)
class UnitCommitment:
    """One commitment."""

    option: str
    units: float
    """Term or schedule, and the number of units."""
    start_hours: float
    hours: float
    """Start and length, some of it perhaps beyond the time planned for."""
    cost: float
    """Cost of the whole commitment."""
    schedule: YearSchedule | None = None
    """Share of its year that a scheduled one holds."""


@dataclass(frozen=True, eq=False)
class OfflinePlan:
    """The cheapest purchases for one resource."""

    resource: str
    """``cores``, ``GiB`` or ``GPUs``."""
    hours: float
    """Length of the time planned for."""
    demand_hours: float
    """Unit hours of all jobs: what everything costs on demand."""
    reservations: Sequence[UnitCommitment]
    """All commitments to terms and schedules."""
    over_time: pl.DataFrame
    """Month, option, and there: unit hours used, unit hours paid but idle, cost."""
    cost: float
    """Sum of ``over_time``."""
    all_reserved_cost: float | None
    """Cost of reserving the peak, beyond what is held, for good at the cheapest term, if any."""
    cost_if_scaled: Callable[[float], float] = field(repr=False)
    """Cost if every commitment had been so many times as large: an error of the forecast."""

    def by_option(self, column: str) -> Mapping[str, float]:
        """Sum of a column of ``over_time`` per option: ``used_hours``, ``idle_hours``, ``cost``."""
        sums = self.over_time.group_by("option", maintain_order=True).agg(pl.col(column).sum())
        return dict(zip(sums["option"].to_list(), sums[column].to_list(), strict=True))


def unit_cost(used_share: ArrayLike, tiers: tuple[float, ...]) -> Floats:
    """Cost of a unit used for a share of a month, relative to a whole month on demand.

    ``used_share`` is 0 to 1, of any shape; ``tiers`` are relative prices of equal parts of the
    month.
    """
    edges = np.linspace(0.0, 1.0, len(tiers) + 1)
    costs = np.concatenate([[0.0], np.cumsum(np.asarray(tiers) / len(tiers))])
    return np.asarray(np.interp(np.asarray(used_share, np.float64), edges, costs))


def month_cost(average_units: ArrayLike, tiers: tuple[float, ...]) -> Floats:
    """Cost of an average demand over a month, in months of one unit on demand.

    Whole units are used all month, the rest for its share of it: the provider adds up what is used
    at different times.
    """
    average = np.asarray(average_units, np.float64)
    whole = np.floor(average)
    return whole * unit_cost(1.0, tiers) + unit_cost(average - whole, tiers)


_LEVELS_AT_ONCE: Final = 64
_MOST_LEVELS: Final = 4096


class _LevelWindow(NamedTuple):
    """One commitment of one level.

    The ``product`` is the place of its term among those on sale, or behind them for a schedule;
    ``start`` is the first slot; ``schedule`` is what a scheduled one holds.
    """

    product: int
    start: int
    schedule: YearSchedule | None


Row = tuple[str, Floats, Floats, Floats]
"""An option, and by month (shape (months,)): hours used and idle, cost."""


def plan_offline(
    jobs: demands.BoughtJobs,
    units: Floats,
    terms: PurchaseTerms,
    settings: OfflineSettings = DEFAULT_SETTINGS,
    *,
    resource: str = "cores",
    held: Sequence[HeldCapacity] = (),
) -> OfflinePlan:
    """The cheapest purchases for one resource in hindsight (Ambati's thesis, chapter 5).

    Each job gets the cheapest option without a commitment; units are stacked in every slot, the
    dearest at the bottom; and each level gets the windows of 1 and 3 years and the schedules that
    save most, wherever they begin. With a sustained-use discount the on-demand price that jobs
    compare with is uncertain until the end: both the full price and that of a whole month are
    tried, and the cheaper plan is kept.

    ``units`` are what each job holds of the resource, shape (jobs,). What is ``held`` costs nothing
    more, and covers the dearest demand.

    Raises ``InputError`` if the log is shorter than a term and is not to be repeated.
    """
    tiers = terms.sustained_tiers
    years = max((length for length, _ in terms.reserved), default=terms.schedule_years)
    filled, slots = demands.horizon_slots(
        jobs.span_hours, settings.slot_hours, years, settings.extension
    )
    owned = held_by_slot(held, slots, settings.slot_hours)
    plans = []
    for price in (1.0, float(np.mean(tiers))) if tiers else (1.0,):
        prices = demands.job_prices(jobs.hours, terms, price)
        demand = demands.priced_demand(jobs, units, prices, settings.slot_hours, filled, slots)
        planner = Planner(demand, terms, owned, price, jobs.first_hour_of_week)
        plans.append(planner.plan(resource, settings.level_units))
    return min(plans, key=lambda plan: plan.cost)


def total_demand(demand: demands.PricedDemand) -> Floats:
    """Units of all jobs together; shape (slots,)."""
    return value_by_slot(demand.stacks, np.zeros(demand.slots), np.ones(demand.price.size))


@dataclass(frozen=True, slots=True, eq=False)
class Planner:
    """A demand, and what can be bought for it.

    ``owned`` units are paid for already, shape (slots,), and lie at the bottom of every slot. Jobs
    compared with ``on_demand_price``: 1, or that of a whole month of sustained use.
    """

    demand: demands.PricedDemand
    terms: PurchaseTerms
    owned: Floats
    on_demand_price: float
    first_hour_of_week: float

    def plan(self, resource: str, level_units: float | None) -> OfflinePlan:
        """Return the cheapest purchases, of levels of this height or of as many as there may be."""
        total, owned, hours = total_demand(self.demand), self.owned, self.demand.slot_hours
        unit = level_units or float(max(1.0, np.ceil(float(total.max()) / _MOST_LEVELS)))
        commitments = self._commitments(unit)
        settle = partial(self._settled, commitments, total)
        over_time = settle(1.0)
        cheapest = min((price for _, price in self.terms.reserved), default=None)
        if cheapest is not None:
            peak = float(np.maximum(total - owned, 0.0).max())
            cheapest *= peak * self.demand.slots * hours
        return OfflinePlan(
            resource=resource,
            hours=self.demand.slots * hours,
            demand_hours=float(total.sum()) * hours,
            reservations=commitments,
            over_time=over_time,
            cost=float(over_time["cost"].sum()),
            all_reserved_cost=cheapest,
            cost_if_scaled=lambda factor: float(settle(factor)["cost"].sum()),
        )

    def _commitments(self, unit: float) -> list[UnitCommitment]:
        """The windows of all levels of this height, with what they hold and cost."""
        hours, reserved = self.demand.slot_hours, self.terms.reserved
        year = round(demands.HOURS_PER_YEAR / hours)
        sold = [(round(years * demands.HOURS_PER_YEAR / hours), price) for years, price in reserved]
        found = []
        for window in self.windows(sold, unit, year):
            if window.schedule is None:
                length, price = sold[window.product]
                name, cost = reserved_name(reserved[window.product][0]), price * length
            else:
                length, name, cost = year, SCHEDULED, window.schedule.cost
            begin, cost = window.start * hours, cost * unit * hours
            found.append(UnitCommitment(name, unit, begin, length * hours, cost, window.schedule))
        return found

    def windows(
        self, sold: Sequence[tuple[int, float]], unit: float, year_slots: int
    ) -> list[_LevelWindow]:
        """The windows of all levels, until levels want none.

        What a level costs without commitments never rises from one level to the next, so that
        levels above one without a window have none. ``sold`` are the slots and the price, relative
        to on demand, of each term on sale.
        """
        demand, finders = self.demand, self._finders(year_slots)
        lengths = np.array([length for length, _ in sold], np.int64)
        costs = np.array([price * length for length, price in sold], np.float64)
        segment, used = np.zeros(demand.slots, np.int64), np.zeros(demand.slots)
        skip_units(demand.stacks, self.owned, segment, used)
        prices = np.empty((demand.slots, _LEVELS_AT_ONCE))
        found: list[_LevelWindow] = []
        while True:
            level_prices(demand.stacks, demand.price, unit, segment, used, prices)
            schedules = [
                finder.best(prices[year * year_slots : (year + 1) * year_slots])
                for year, finder in enumerate(finders)
            ]
            saved = np.zeros((len(schedules), _LEVELS_AT_ONCE))
            for year, by_level in enumerate(schedules):
                for level, schedule in by_level.items():
                    saved[year, level] = schedule.saving
            windows = choose_windows(prices, lengths, costs, saved, year_slots)
            if not windows.level.size:
                return found
            for level, product, start in zip(*(part.tolist() for part in windows), strict=True):
                scheduled = product == lengths.size
                held = schedules[start // year_slots][level] if scheduled else None
                found.append(_LevelWindow(product, start, held))

    def _finders(self, year: int) -> list[YearFinder]:
        """One for each whole year of so many slots, where schedules are sold."""
        hours, first = self.demand.slot_hours, self.first_hour_of_week
        finders = (
            self.terms.schedule_finder(year, hours, first + at * year * hours)
            for at in range(self.demand.slots // year)
        )
        return [each for each in finders if each is not None]

    def _settled(
        self, commitments: Sequence[UnitCommitment], total: Floats, factor: float
    ) -> pl.DataFrame:
        """Tabulate hours used and idle, and cost, month by month and option by option.

        ``total`` are the units of all jobs, shape (slots,); of the commitments there are ``factor``
        times as much.
        """
        slots, hours = self.demand.slots, self.demand.slot_hours
        month = (np.arange(slots) * hours / demands.HOURS_PER_MONTH).astype(np.int64)
        held = {COMMITTED: self.owned} if self.owned.any() else {}
        paid = {name: np.zeros(slots) for name in held}
        # The longest terms are used first; within a slot it makes no difference to what is paid.
        options = [reserved_name(years) for years, _ in sorted(self.terms.reserved, reverse=True)]
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
        names = ("used_hours", "idle_hours", "cost")
        return pl.concat(
            pl.DataFrame(
                {"month": np.arange(int(month[-1]) + 1), "option": option}
                | {name: np.bincount(month, each) for name, each in zip(names, sums, strict=True)}
            )
            for option, *sums in (*rows, *self._uncommitted(covered, month))
        )

    def _uncommitted(self, covered: Floats, month: Integers) -> list[Row]:
        """Option, used and idle hours and cost by slot, of the units that commitments leave over.

        Restarts of transient jobs are paid with what is on demand.
        """
        demand, hours, tiers = self.demand, self.demand.slot_hours, self.terms.sustained_tiers
        on_demand = value_by_slot(demand.stacks, covered, demand.on_demand_share) * hours
        if tiers:
            by_month = np.bincount(month, on_demand)
            lengths = np.bincount(month) * hours
            paid = month_cost(by_month / lengths, tiers) * lengths
            ratio = np.divide(paid, by_month, out=np.zeros(paid.size), where=by_month > 0.0)
            on_demand = on_demand * ratio[month]
        rows: list[Row] = []
        for code, name in enumerate(demands.RENTED):
            of_kind = (demand.kind == code).astype(np.float64)
            if code != demands.ON_DEMAND and not of_kind.any():
                continue
            used = value_by_slot(demand.stacks, covered, of_kind) * hours
            own = of_kind * (demand.price - demand.on_demand_share * self.on_demand_price)
            cost = value_by_slot(demand.stacks, covered, own) * hours
            idle = np.zeros(demand.slots)
            rows.append((name, used, idle, cost + on_demand * (code == demands.ON_DEMAND)))
        return rows


def _held(commitment: UnitCommitment, slots: int, left: int) -> Floats:
    """Units that a commitment of some slots holds, in those that are left to plan for."""
    length = min(slots, left)
    units = np.full(length, commitment.units)
    return units if commitment.schedule is None else units * commitment.schedule.held[:length]
