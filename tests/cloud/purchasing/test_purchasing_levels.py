"""Stacks, levels, windows and schedules against brute force, and the levels against the optimum."""

import numpy as np
import pytest
import slow_stacks
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.purchasing.demand import BoughtJobs, JobPrices, priced_demand
from foresail.cloud.purchasing.offline import Planner
from foresail.cloud.purchasing.stacked_demand import (
    choose_windows,
    level_prices,
    skip_units,
    value_by_slot,
)
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.milp.solver import Limits, ProgramBuilder, SolveStatus, find_solver
from foresail_studies.purchasing.kernels.reserved_placement import best_intervals
from foresail_studies.purchasing.retired_offers import ScheduledTerms, ScheduleFinder, by_end

YEAR = 8760


def jobs(start, hours, units):
    size = len(start)
    return BoughtJobs(
        row=np.arange(size),
        start_hours=np.asarray(start, float),
        hours=np.asarray(hours, float),
        tasks=np.ones(size, np.int64),
        cores_per_task=np.asarray(units, float),
        gib_per_task=np.asarray(units, float),
        gpus_per_task=np.zeros(size),
        left_out=0,
        memory_known=False,
        first_hour_of_week=0.0,
    )


def demand_of(start, hours, units, price, slots):
    bought = jobs(start, hours, units)
    prices = JobPrices(np.zeros(len(start), np.int8), np.asarray(price, float), np.ones(len(start)))
    return priced_demand(bought, bought.cores, prices, 1.0, slots, slots)


def curve(values):
    """A demand curve at the price on demand: one job per slot."""
    return demand_of(range(len(values)), [1] * len(values), values, [1] * len(values), len(values))


def level_windows(demand, terms, unit):
    """The windows of all levels of this height, where terms of slots are sold and no schedules."""
    nothing = np.zeros(demand.slots)
    planner = Planner(demand, PurchaseTerms(), nothing, on_demand_price=1.0, first_hour_of_week=0.0)
    return planner.windows(terms, unit, demand.slots)


def level_cost(demand, terms):
    """Cost with the windows of ``level_windows``, in slots of one unit on demand.

    In each slot all windows together cover the dearest demand, whatever level they came from.
    """
    covered, paid = np.zeros(demand.slots), 0.0
    for window in level_windows(demand, terms, 1.0):
        length, price = terms[window.product]
        covered[window.start : window.start + length] += 1.0
        paid += price * length
    return paid + float(value_by_slot(demand.stacks, covered, demand.price).sum())


def exact_cost(demand, terms):
    """The least that reservations of whole units, beginning in any slot, make demand cost.

    One column counts the windows of every term and first slot, one says how much of every segment
    is covered; in each slot no more is covered than is reserved.
    """
    slots, stacks = demand.slots, demand.stacks
    builder = ProgramBuilder()
    rows = builder.add_rows(np.zeros(slots), np.inf)
    for length, price in terms:
        windows = builder.add_columns(np.zeros(slots), np.inf, True, -price * length)
        for start in range(slots):
            held = rows[start : start + length]
            builder.add_entries(held, np.full(held.size, windows[start]), 1.0)
    for slot in range(slots):
        at = slice(stacks.first[slot], stacks.first[slot] + stacks.size[slot])
        price_of = demand.price[stacks.classes[at]]
        covered = builder.add_columns(np.zeros(price_of.size), stacks.units[at], False, price_of)
        if covered.size:
            builder.add_entries(np.full(covered.size, rows[slot]), covered, -1.0)
    solution = find_solver("highs").solve(builder.build(), Limits(60.0))
    assert solution.status == SolveStatus.OPTIMAL
    everything = float(value_by_slot(stacks, np.zeros(slots), demand.price).sum())
    return everything - solution.objective


def test_golden_levels():
    """D = [3,1,2,2,0,1,3,2], d = .4: two levels are reserved, 8.4 against 14 (section 4.1)."""
    demand = curve([3, 1, 2, 2, 0, 1, 3, 2])
    levels = np.empty((8, 3))
    level_prices(demand.stacks, demand.price, 1.0, np.zeros(8, np.int64), np.zeros(8), levels)
    assert levels.mean(axis=0).tolist() == [0.875, 0.625, 0.25]
    assert len(level_windows(demand, [(8, 0.4)], 1.0)) == 2
    assert level_cost(demand, [(8, 0.4)]) == pytest.approx(8.4)
    assert level_cost(demand, []) == 14.0


DRAWN_JOBS = st.lists(
    st.tuples(
        st.floats(0, 5.5), st.floats(0.05, 4), st.integers(1, 3), st.sampled_from([0.3, 0.5, 1.0])
    ),
    min_size=1,
    max_size=7,
)


@given(DRAWN_JOBS, st.sampled_from([0.5, 1.0, 2.0]))
def test_levels_equal_the_slow_stack(drawn, unit):
    """Every level of every slot, and the demand that commitments leave over."""
    start, hours, units, price = (list(part) for part in zip(*drawn, strict=True))
    slots = 6
    demand = demand_of(start, hours, units, price, slots)
    end = [min(a + b, slots) for a, b in zip(start, hours, strict=True)]
    slow = slow_stacks.stack(start, end, units, price, slots)
    found = np.empty((slots, 5))
    level_prices(
        demand.stacks, demand.price, unit, np.zeros(slots, np.int64), np.zeros(slots), found
    )
    expected = [[slow_stacks.price_of_level(held, lv, unit) for lv in range(5)] for held in slow]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    left = value_by_slot(demand.stacks, np.full(slots, 5 * unit), demand.price)
    total = [sum(p * u for p, u in held) for held in slow]
    np.testing.assert_allclose(left + found.sum(axis=1) * unit, total, atol=1e-9)
    assert (np.diff(found, axis=1) <= 1e-9).all()


@given(DRAWN_JOBS, st.lists(st.floats(0, 5), min_size=6, max_size=6))
def test_levels_begin_on_top_of_what_is_covered(drawn, covered):
    """A different height in every slot."""
    start, hours, units, price = (list(part) for part in zip(*drawn, strict=True))
    slots = 6
    demand = demand_of(start, hours, units, price, slots)
    end = [min(a + b, slots) for a, b in zip(start, hours, strict=True)]
    slow = slow_stacks.stack(start, end, units, price, slots)
    segment, used = np.zeros(slots, np.int64), np.zeros(slots)
    skip_units(demand.stacks, np.array(covered), segment, used)
    found = np.empty((slots, 3))
    level_prices(demand.stacks, demand.price, 1.0, segment, used, found)
    expected = [
        [slow_stacks.price_of_level(held, height + level, 1.0) for level in range(3)]
        for held, height in zip(slow, covered, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 4), st.floats(0.1, 1)), min_size=1, max_size=2),
)
def test_windows_save_as_much_as_brute_force(prices, terms):
    """One level: no set of windows saves more; those found do not overlap."""
    column = np.asarray(prices)[:, None].copy()
    lengths = np.array([length for length, _ in terms])
    costs = np.array([length * cost for length, cost in terms])
    found = choose_windows(column, lengths, costs, np.zeros((0, 1)), 1)
    taken = np.zeros(len(prices))
    saved = 0.0
    for product, start in zip(found.product, found.start, strict=True):
        end = start + lengths[product]
        taken[start:end] += 1
        saved += column[start:end].sum() - costs[product]
    assert taken.max(initial=0) <= 1
    assert saved == pytest.approx(slow_stacks.best_saving(prices, terms), abs=1e-6)


def test_golden_weighted_intervals():
    """Six intervals of the spec: 17 with (2,5) and (5,8)."""
    start = np.array([1, 2, 4, 6, 5, 7])
    end = np.array([3, 5, 6, 7, 8, 9])
    value = np.array([5.0, 6, 5, 4, 11, 2])
    intervals, value = by_end(start, end), value[np.argsort(end, kind="stable")]
    chosen = best_intervals(intervals.predecessor, value)
    assert value[chosen].sum() == 17
    chosen_pairs = zip(intervals.start[chosen], intervals.end[chosen], strict=True)
    assert list(chosen_pairs) == [(2, 5), (5, 8)]


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(1, 5), st.floats(-2, 9)), min_size=1, max_size=8
    )
)
def test_weighted_intervals_equal_brute_force(drawn):
    """No subset without overlaps is worth more."""
    start = np.array([a for a, _, _ in drawn])
    end = start + np.array([length for _, length, _ in drawn])
    value = np.array([v for _, _, v in drawn])
    ordered = value[np.argsort(end, kind="stable")]
    chosen = best_intervals(by_end(start, end).predecessor, ordered)
    assert ordered[chosen].sum() == pytest.approx(slow_stacks.best_intervals(start, end, value))


def test_a_daily_schedule_of_busy_hours_is_found():
    """Busy from 8 to 18 every day: one daily window of ten hours, at 95 % and 90 %."""
    hour = np.arange(YEAR) % 24
    prices = ((hour >= 8) & (hour < 18)).astype(float)[:, None]
    found = ScheduleFinder(ScheduledTerms(), YEAR, 1.0, 0.0).best(prices)[0]
    assert (found.period, found.windows) == ("daily", ((8.0, 18.0),))
    weekday = np.arange(YEAR) % 168 < 120
    cost = np.where(weekday, 0.95, 0.90)[found.held].sum()
    assert found.cost == pytest.approx(cost)
    assert found.saving == pytest.approx(prices.sum() - cost)


def test_a_weekly_schedule_of_weekends_is_found():
    """Busy all weekend: the weekly window of its 48 hours."""
    prices = (np.arange(YEAR) % 168 >= 120).astype(float)[:, None]
    found = ScheduleFinder(ScheduledTerms(), YEAR, 1.0, 0.0).best(prices)[0]
    assert (found.period, found.windows) == ("weekly", ((120.0, 168.0),))


def test_three_hours_a_day_are_too_short_for_a_schedule():
    """1095 hours a year are below 1200; four hours a day are enough (spec section 4.1)."""
    hour = np.arange(YEAR) % 24
    finder = ScheduleFinder(ScheduledTerms(), YEAR, 1.0, 0.0)
    assert finder.best((hour < 3).astype(float)[:, None]) == {}
    assert finder.best((hour < 4).astype(float)[:, None])[0].windows == ((0.0, 4.0),)


def test_a_schedule_pays_only_above_its_price():
    """At a use of 89 % nothing is scheduled."""
    finder = ScheduleFinder(ScheduledTerms(), YEAR, 1.0, 0.0)
    assert finder.best(np.full((YEAR, 1), 0.89)) == {}
    assert finder.best(np.full((YEAR, 1), 0.91))[0].period == "weekly"


@settings(max_examples=30)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=8), st.floats(0.2, 0.9))
def test_one_term_over_the_whole_log_is_exact(values, price):
    """The stacking rule is optimal there: levels cost what the program costs (step 6)."""
    demand = curve(values)
    terms = [(len(values), price)]
    assert level_cost(demand, terms) == pytest.approx(exact_cost(demand, terms), abs=1e-6)


@settings(max_examples=25)
@given(DRAWN_JOBS)
def test_the_program_is_never_dearer_than_the_levels(drawn):
    """Sliding windows of two terms: the exact optimum bounds the levels from below."""
    start, hours, units, price = (list(part) for part in zip(*drawn, strict=True))
    demand = demand_of(start, hours, units, price, 6)
    terms = [(2, 0.6), (4, 0.4)]
    exact = exact_cost(demand, terms)
    assert exact <= level_cost(demand, terms) + 1e-6
    assert level_cost(demand, terms) <= level_cost(demand, []) + 1e-6


def test_levels_can_be_dearer_than_the_optimum():
    """Windows of two levels that overlap by turns can share demand: the levels miss some of it."""
    random = np.random.default_rng(3)
    terms = [(3, 0.6), (6, 0.4)]
    drawn = [curve(random.integers(0, 4, 12)) for _ in range(10)]
    gaps = [level_cost(demand, terms) / exact_cost(demand, terms) - 1.0 for demand in drawn]
    assert min(gaps) > -1e-9
    assert np.median(gaps) < 0.05
    assert 0.1 < max(gaps) < 0.2
