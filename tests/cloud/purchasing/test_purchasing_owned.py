"""What is paid for already: commitments that end, and scheduled machines in their windows."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.prices import GIB, Commitment, InstanceType
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.purchasing.demand import bought_jobs
from foresail.cloud.purchasing.forecast import ForecastSettings, reserve_at_risk
from foresail.cloud.purchasing.mix import MixRequest
from foresail.cloud.purchasing.offline import plan_offline
from foresail.cloud.purchasing.resources import HeldCapacity, held_by_slot, held_in_year, hours_left
from foresail.cloud.purchasing.terms import PurchaseTerms
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.purchasing.practice import fleets_of, place, serve, train
from foresail_studies.purchasing.retired_offers import (
    LevelSchedule,
    PublishedTerms,
    ScheduledMachines,
    ScheduledTerms,
    published_terms,
    schedule_of,
)

THESIS = load_prices("thesis")
HOUR = 3600.0
CORE = 0.0481


def jobs_of(submit_hours, hours, tasks=None):
    size = len(submit_hours)
    table = jobs_table(
        {
            "job_id": [str(at) for at in range(size)],
            "submit_seconds": np.asarray(submit_hours, float) * HOUR,
            "runtime_seconds": np.asarray(hours, float) * HOUR,
            "tasks": tasks or [1] * size,
        }
    )
    return Workload(table, WorkloadMeta("made", "made"))


def daily(*windows):
    """A daily schedule of these hours."""
    return LevelSchedule("daily", windows, np.zeros(0, bool), 0.0, 0.0)


def machine(cores, schedule):
    kind = InstanceType(f"standard-{cores}", "any", "any", cores, 4.0 * GIB * cores)
    return ScheduledMachines(kind, 1, "scheduled-reserved", 0.95, CORE * cores, schedule=schedule)


def test_a_window_closes_when_it_ends():
    """Windows that meet over midnight are one; outside of them nothing is there."""
    schedule = daily((0.0, 4.0), (8.0, 18.0), (20.0, 24.0))
    closes = schedule.closes(np.array([1.0, 5.0, 8.0, 41.5, 21.0, 23.0, 24.0]))
    assert closes.tolist() == [4.0, -np.inf, 18.0, 42.0, 28.0, 28.0, 28.0]
    whole = daily((0.0, 24.0)).closes(np.array([30.0]))
    assert whole.tolist() == [48.0]


def test_scheduled_machines_take_jobs_that_are_believed_to_fit():
    """A core from 8 to 18: what is believed to end by 18, whatever then happens."""
    # Submitted at 8, 9 (taken), 12, 19 (closed), 32 = 8 the next day, and 33.
    start = [8.0, 9.0, 12.0, 19.0, 32.0, 33.0]
    jobs = bought_jobs(jobs_of(start, [2.0, 2.0, 8.0, 1.0, 1.0, 2.0]))
    believed = np.array([2.0, 2.0, 5.0, 1.0, 11.0, 2.0])
    placed = place(jobs, fleets_of([machine(1, daily((8.0, 18.0)))]), believed, 8.0)
    # The second finds it taken; the third is cut at 18; the fifth would not fit.
    assert placed.fleet.tolist() == [0, -1, 0, -1, -1, 0]
    assert placed.cut.tolist() == [False, False, True, False, False, False]
    assert placed.done.tolist() == [True, False, False, False, False, True]


def test_a_job_that_outlives_its_window_starts_again_on_demand():
    """The window is paid in any case, and the job in full once more."""
    terms = PublishedTerms(reserved=(), scheduled=ScheduledTerms())
    reserved = (machine(1, daily((0.0, 10.0))),)
    jobs = bought_jobs(jobs_of([0.0, 2.0, 30.0], [1.0, 20.0, 4.0]))
    outcome = serve(reserved, THESIS, terms, jobs, np.array([1.0, 8.0, 4.0]), 0.0)
    # 34 hours from Monday on: ten of each day, at the price of weekdays.
    assert outcome.cost == pytest.approx((20 * 0.95 + 20.0) * CORE)
    assert outcome.used_hours["scheduled-reserved"] == 5.0
    assert outcome.used_hours["on-demand"] == pytest.approx(20.0)


def test_a_daily_demand_is_scheduled_by_the_policy_and_served():
    """Ten busy hours a day at Amazon without transient machines: cheaper than on demand only."""
    days = 730
    start = np.repeat(np.arange(days) * 24.0 + 8.0, 4)
    log = jobs_of(start, [10.0] * start.size)
    terms = PublishedTerms(scheduled=ScheduledTerms())
    jobs = bought_jobs(log)
    reserved = train(jobs.between(0.0, 8760.0), THESIS, terms)
    (group,) = {(m.option, m.schedule.period, m.schedule.windows) for m in reserved}
    # The log begins when its first job does: 8 o'clock is its hour 0.
    assert group == ("scheduled-reserved", "daily", ((0.0, 10.0),))
    assert sum(m.count * m.instance.cores for m in reserved) == 4
    later = jobs.between(8760.0, np.inf)
    first_hour = jobs.first_hour_of_week + 8760.0
    outcome = serve(reserved, THESIS, terms, later, later.hours, first_hour)
    assert sum(outcome.used_hours.values()) == pytest.approx(later.hours.sum())
    assert outcome.cost < outcome.all_on_demand_cost
    assert outcome.cost == pytest.approx(
        outcome.all_on_demand_cost * (5 * 0.95 + 2 * 0.90) / 7, rel=0.01
    )


def test_nothing_is_scheduled_where_transient_machines_are_sold():
    """Paper 003 finds so (figure 5.5): jobs of hours cost less there than any schedule."""
    start = np.repeat(np.arange(365) * 24.0 + 8.0, 4)
    jobs = bought_jobs(jobs_of(start, [10.0] * start.size))
    reserved = train(jobs, THESIS, published_terms(THESIS, MixRequest()))
    assert all(schedule_of(each) is None for each in reserved)


def test_commitments_end_on_their_last_day():
    """Hours are counted from the day of the prices, that day and the last included."""
    day = THESIS.valid_on
    assert hours_left(Commitment("standard-1", 1, 0.0, day), THESIS) == 24.0
    assert hours_left(Commitment("standard-1", 1, 0.0, date(day.year + 1, 1, 1)), THESIS) == 48.0
    assert hours_left(Commitment("standard-1", 1), THESIS) == np.inf
    held = (HeldCapacity(2.0, 3.5), HeldCapacity(1.0))
    assert held_by_slot(held, 5, 1.0).tolist() == [3.0, 3.0, 3.0, 2.0, 1.0]
    assert held_in_year(held, 0, 10.0) == [(0.35, 3.0), (0.65, 1.0)]
    assert held_in_year(held, 1, 10.0) == [(1.0, 1.0)]


def test_what_is_held_covers_demand_until_it_ends():
    """A core all the time, held for a year: the two years after it are reserved or rented."""
    jobs = bought_jobs(jobs_of([0.0], [8760.0]))
    terms = PurchaseTerms(reserved=((1, 0.6),))
    plan = plan_offline(jobs, jobs.cores, terms, held=(HeldCapacity(1.0, 8760.0),))
    assert plan.cost == pytest.approx(0.0)  # one year is planned for
    longer = PurchaseTerms(reserved=((3, 0.4),))
    plan = plan_offline(jobs, jobs.cores, longer, held=(HeldCapacity(1.0, 8760.0),))
    # Three years at 0.4 cost 1.2 years; two years on demand cost 2.
    assert plan.cost == pytest.approx(0.4 * 3 * 8760.0)
    assert plan.by_option("used_hours")["committed"] == pytest.approx(8760.0)
    short = plan_offline(jobs, jobs.cores, longer, held=(HeldCapacity(1.0, 2 * 8760.0),))
    assert short.cost == pytest.approx(8760.0)


def test_the_plan_at_a_risk_counts_what_is_held():
    """Ten cores all the time, six of them held for good: four more are reserved."""
    jobs = bought_jobs(jobs_of([0.0], [2000.0], [10]))
    sure = ForecastSettings(growth_spread=0.0)
    plan = reserve_at_risk(
        jobs,
        jobs.cores,
        PurchaseTerms(),
        forecast=sure,
        held=(HeldCapacity(6.0), HeldCapacity(0.0)),
    )
    assert plan.units["reserved-3y"] == pytest.approx(4.0, abs=0.05)
    assert plan.expected_cost_share == pytest.approx(0.4 * 0.4, abs=0.01)
    # HeldCapacity for two of three years: one year on demand is cheaper than three at 40 %.
    ending = reserve_at_risk(
        jobs, jobs.cores, PurchaseTerms(), forecast=sure, held=(HeldCapacity(6.0, 2 * 8760.0),)
    )
    assert sum(ending.units.values()) == pytest.approx(4.0, abs=0.05)
    soon = reserve_at_risk(
        jobs, jobs.cores, PurchaseTerms(), forecast=sure, held=(HeldCapacity(6.0, 720.0),)
    )
    assert soon.units["reserved-3y"] == pytest.approx(10.0, abs=0.05)


@settings(max_examples=15)
@given(st.floats(0.0, 12.0), st.floats(0.0, 4 * 8760.0))
def test_what_is_held_never_adds_to_what_is_bought(units, hours):
    """Whatever one has, no more is reserved than without it."""
    jobs = bought_jobs(jobs_of([0.0, 500.0], [2000.0, 1000.0], [6, 4]))
    few = ForecastSettings(scenarios=5)
    without = reserve_at_risk(jobs, jobs.cores, PurchaseTerms(), forecast=few)
    plan = reserve_at_risk(
        jobs, jobs.cores, PurchaseTerms(), forecast=few, held=(HeldCapacity(units, hours),)
    )
    assert sum(plan.units.values()) <= sum(without.units.values()) + 0.1
    assert plan.expected_cost_share <= without.expected_cost_share + 0.2


def test_sustained_use_makes_reservations_pay_less_often():
    """A reservation at 75 % pays against on demand, but not against a whole month's 70 %."""
    jobs = bought_jobs(jobs_of([0.0], [2000.0], [10]))
    sure = ForecastSettings(growth_spread=0.0)
    dear = PurchaseTerms(reserved=((1, 0.75),))
    assert reserve_at_risk(jobs, jobs.cores, dear, forecast=sure).units["reserved-1y"] > 9.0
    tiers = replace(dear, sustained_tiers=(1.0, 0.8, 0.6, 0.4))
    plan = reserve_at_risk(jobs, jobs.cores, tiers, forecast=sure)
    assert plan.units["reserved-1y"] == 0.0
    assert plan.expected_cost_share == pytest.approx(0.7)
