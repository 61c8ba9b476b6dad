"""Offers of EC2 that are no longer sold: spot blocks and scheduled reservations (section 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.prices import PriceCatalogue
from foresail.cloud.purchasing.demand import (
    FURTHER,
    HOURS_PER_MONTH,
    ON_DEMAND,
    RENTED,
    TRANSIENT,
    expected_costs,
)
from foresail.cloud.purchasing.mix import MixRequest, asked_terms
from foresail.cloud.purchasing.resources import ReservedMachines
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.model.distribution import Floats, Integers
from foresail_studies.purchasing.kernels.reserved_placement import best_intervals

SPOT_BLOCK: Final = FURTHER
KINDS: Final = (*RENTED[:SPOT_BLOCK], "spot-block")
"""Options without a commitment, by code."""
SPOT_BLOCKS: Final = tuple(0.55 + 0.03 * hours for hours in range(6))
"""Published prices of an hour on blocks of 1 to 6 hours, relative to on demand."""
_WEEK_HOURS: Final = 168.0
_WEEKDAY_HOURS: Final = 120.0
PERIODS: Final = (("daily", 24.0), ("weekly", _WEEK_HOURS), ("monthly", HOURS_PER_MONTH))


@dataclass(frozen=True, slots=True)
class ScheduledTerms:
    """Relative prices of scheduled reservations on weekdays and weekends, and their least hours."""

    peak: float = 0.95
    off_peak: float = 0.90
    minimum_hours_per_year: float = 1200.0


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals by end, and for each how many of them end no later than it begins."""

    start: Integers
    end: Integers
    predecessor: Integers


def by_end(start: Integers, end: Integers) -> Intervals:
    """Intervals sorted for ``best_intervals``."""
    order = np.argsort(end, kind="stable")
    ends = end[order]
    return Intervals(start[order], ends, np.searchsorted(ends, start[order], side="right"))


@dataclass(frozen=True, slots=True, eq=False)
class LevelSchedule:
    """The best schedule of one level for a year."""

    period: str
    """``daily``, ``weekly`` or ``monthly``."""
    windows: tuple[tuple[float, float], ...]
    """(begin, end) of each window within the period, in hours; none touch."""
    held: NDArray[np.bool_]
    """Slots of the year that it holds; shape (slots,), bool."""
    saving: float
    """What the demand in these slots costs otherwise, less what the schedule costs."""
    cost: float
    """What the schedule costs, in slots of one unit on demand."""

    def closes(self, hour: Floats) -> Floats:
        """When the window ends that is open at each hour, -inf where none is; same shape.

        Hours count from a Monday, 00:00. Windows that meet across the end of a period are one.
        """
        length = dict(PERIODS)[self.period]
        first = self.windows[0]
        closes = np.full(hour.shape, -np.inf)
        position = hour % length
        for begin, end in self.windows:
            wraps = end == length and first[0] == 0.0
            last = end + (first[1] if wraps and begin > 0.0 else 0.0)
            within = (position >= begin) & (position < end)
            closes[within] = (hour - position)[within] + last
        return closes


def price_of_hours(terms: ScheduledTerms, hour: Floats) -> Floats:
    """Relative price of hours, counted from a Monday, 00:00; same shape."""
    return np.where(hour % _WEEK_HOURS < _WEEKDAY_HOURS, terms.peak, terms.off_peak)


@dataclass(frozen=True, slots=True, eq=False)
class _Period:
    name: str
    position: Integers
    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    cost: Floats
    intervals: Intervals


class ScheduleFinder:
    """Finds schedules for years that begin at one hour of the week.

    Parameters
    ----------
    terms
        Prices and the least hours of a year.
    slots
        Of a year.
    slot_hours
        Length of a slot; periods that are not whole slots are not offered.
    first_hour_of_week
        Hours from Monday 00:00 to the year's beginning.
    reserved_price
        Of reserving the whole year instead; inf where that is not sold.
    """

    def __init__(
        self,
        terms: ScheduledTerms,
        slots: int,
        slot_hours: float,
        first_hour_of_week: float,
        reserved_price: float = math.inf,
    ) -> None:
        self._slot_hours = slot_hours
        self._reserved_price = reserved_price
        hour: Floats = np.arange(slots, dtype=np.float64) * slot_hours + first_hour_of_week
        self._price = price_of_hours(terms, hour)
        self._periods = [
            self._period(name, period_hours, hour, terms.minimum_hours_per_year)
            for name, period_hours in PERIODS
            if period_hours % slot_hours == 0.0 and period_hours > slot_hours
        ]

    def _period(self, name: str, period_hours: float, hour: Floats, least_hours: float) -> _Period:
        length = int(period_hours / self._slot_hours)
        position = (hour % period_hours / self._slot_hours).astype(np.int64)
        order = np.argsort(position, kind="stable")
        held = np.bincount(position, minlength=length) * self._slot_hours
        total = np.concatenate([[0.0], np.cumsum(held)])
        start, end = np.triu_indices(length + 1, 1)
        long_enough = total[end] - total[start] >= least_hours
        intervals = by_end(start[long_enough], end[long_enough])
        cost = np.bincount(position, self._price, length).astype(np.float64)
        starts = np.searchsorted(position[order], np.arange(length)).astype(np.intp)
        return _Period(name, position, order, starts, cost, intervals)

    def best(self, prices: Floats) -> dict[int, LevelSchedule]:
        """The best schedule by level, of the levels that gain more by one than by reserving.

        ``prices`` are what each slot of the year costs otherwise; shape (slots, levels).
        """
        if not prices.size or prices.max() <= self._price.min():
            return {}
        found: dict[int, LevelSchedule] = {}
        reserved = np.maximum((prices - self._reserved_price).sum(axis=0), 0.0)
        for period in self._periods:
            worth = np.add.reduceat(prices[period.order], period.starts) - period.cost[:, None]
            useful = np.maximum(worth, 0.0).sum(axis=0) > reserved
            for level in np.flatnonzero(useful & _may_gain(worth, period.intervals)).tolist():
                schedule = self._schedule(period, worth[:, level])
                if schedule is not None and (
                    level not in found or schedule.saving > found[level].saving
                ):
                    found[level] = schedule
        return found

    def _schedule(self, period: _Period, worth: Floats) -> LevelSchedule | None:
        total = np.concatenate([[0.0], np.cumsum(worth)])
        each = period.intervals
        values = total[each.end] - total[each.start]
        chosen = np.flatnonzero(best_intervals(each.predecessor, values))
        if not chosen.size:
            return None
        positions = np.zeros(worth.size, np.bool_)
        for at in chosen:
            positions[each.start[at] : each.end[at]] = True
        hours = self._slot_hours
        return LevelSchedule(
            period=period.name,
            windows=tuple((begin * hours, end * hours) for begin, end in _runs(positions)),
            held=positions[period.position],
            saving=float(values[chosen].sum()),
            cost=float(period.cost[positions].sum()),
        )


def _may_gain(worth: Floats, intervals: Intervals) -> NDArray[np.bool_]:
    """Whether some interval as long as the shortest on offer, or longer, is worth anything.

    ``worth`` of each position has shape (positions, levels), the result shape (levels,). It spares
    most levels the search over all intervals.
    """
    if not intervals.start.size:
        return np.zeros(worth.shape[1], np.bool_)
    shortest = int((intervals.end - intervals.start).min())
    total = np.concatenate([np.zeros((1, worth.shape[1])), np.cumsum(worth, axis=0)])
    lowest = np.minimum.accumulate(total[:-shortest], axis=0)
    return np.asarray((total[shortest:] - lowest).max(axis=0) > 0.0)


def _runs(held: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Begin and end of each run."""
    change = np.flatnonzero(np.diff(held, prepend=False, append=False))
    return list(zip(change[::2].tolist(), change[1::2].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class PublishedTerms(PurchaseTerms):
    """Terms with the offers that are no longer sold.

    Parameters
    ----------
    spot_blocks
        Price of blocks of 1, 2, ... hours; empty: not sold.
    scheduled
        None: not sold.
    """

    spot_blocks: tuple[float, ...] = ()
    scheduled: ScheduledTerms | None = None

    @property
    def schedule_years(self) -> int:
        """Years that a schedule is committed to; 0: schedules are not sold."""
        return 0 if self.scheduled is None else 1

    def further_prices(self, hours: Floats) -> Floats | None:
        """Return the price of an hour of each job on the shortest spot block that holds it.

        Inf where none does. A job that ends early pays only for the time it held the block.
        """
        if not self.spot_blocks:
            return None
        block = np.maximum(np.ceil(hours), 1.0)
        fits = block <= len(self.spot_blocks)
        at = np.where(fits, block, 1.0).astype(np.int64) - 1
        return np.where(fits, np.asarray(self.spot_blocks)[at], np.inf)

    def schedule_finder(
        self, slots: int, slot_hours: float, first_hour_of_week: float
    ) -> ScheduleFinder | None:
        """Return what finds schedules of a year of so many slots; None: they are not sold."""
        if self.scheduled is None:
            return None
        reserved = min((price for years, price in self.reserved if years == 1), default=math.inf)
        return ScheduleFinder(self.scheduled, slots, slot_hours, first_hour_of_week, reserved)


def published_terms(catalogue: PriceCatalogue, request: MixRequest) -> PublishedTerms:
    """Return the offers of those asked for, at Amazon those that are no longer sold among them."""
    today = asked_terms(catalogue, request)
    terms = PublishedTerms(**{each.name: getattr(today, each.name) for each in fields(today)})
    if request.provider not in ("amazon", "all"):
        return terms
    return replace(terms, spot_blocks=SPOT_BLOCKS, scheduled=ScheduledTerms())


@dataclass(frozen=True, slots=True)
class ScheduledMachines(ReservedMachines):
    """Machines that are paid for in some hours only."""

    schedule: LevelSchedule | None = None
    """Hours that they are there; None: all."""


def schedule_of(machines: ReservedMachines) -> LevelSchedule | None:
    """Return the hours that machines are there; None: all."""
    return machines.schedule if isinstance(machines, ScheduledMachines) else None


@dataclass(frozen=True, slots=True, eq=False)
class RentedOptions:
    """Options rented for each job before its runtime is known; arrays of shape (jobs,)."""

    kind: NDArray[np.int8]
    """Code of the option: see ``KINDS``."""
    block: NDArray[np.int64]
    """Hours of the spot block, where it is one; else 0."""


def choose_options(believed_hours: Floats, terms: PublishedTerms) -> RentedOptions:
    """Choose the option of least expected cost for jobs whose runtimes are believed, not known.

    A job that outlives its block, or is revoked, is paid again on demand. With one believed runtime
    a job this is the published rule (section 4.2): the shortest block that holds it, transient
    capacity if E[C] is below the cost on demand.

    ``believed_hours`` are as for ``expected_costs``.
    """
    cheapest, transient = expected_costs(believed_hours, terms)
    kind = np.where(transient, TRANSIENT, ON_DEMAND).astype(np.int8)
    block = np.zeros(cheapest.size, np.int64)
    for hours, price in enumerate(terms.spot_blocks, start=1):
        cost = block_cost(believed_hours, hours, price).mean(axis=1)
        better = cost < cheapest
        cheapest[better], kind[better], block[better] = cost[better], SPOT_BLOCK, hours
    return RentedOptions(kind, block)


def block_cost(hours: Floats, block: NDArray[np.int64] | int, price: Floats | float) -> Floats:
    """Cost of a unit of jobs on spot blocks of these lengths; late ones start again on demand."""
    return np.asarray(np.where(hours <= block, price * hours, price * block + hours))
