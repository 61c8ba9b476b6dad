"""The mix as a whole: work and money add up, options help, and errors are named."""

from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
import slow_stacks
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices import Commitment
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.purchasing.demand import ON_DEMAND, bought_jobs, horizon_slots
from foresail.cloud.purchasing.forecast import ForecastSettings, reserve_at_risk
from foresail.cloud.purchasing.mix import MixRequest, mix
from foresail.cloud.purchasing.offline import OfflineSettings, plan_offline
from foresail.cloud.purchasing.resources import Amount, machines_for, sizes_of
from foresail.cloud.purchasing.terms import (
    CappedRevocation,
    ExponentialRevocation,
    PurchaseTerms,
    TransientTerms,
    observed_transient,
    resource_prices,
    sold_by,
)
from foresail.cloud.waiting.kernels.placing import machines_of, timetable
from foresail.model.errors import InputError, UnknownNameError
from foresail.traces.reading import read
from foresail_studies.purchasing.kernels.reserved_placement import place_jobs
from foresail_studies.purchasing.practice import (
    by_month,
    pieces_of,
    practise,
    predicted_hours,
    rent_per_hour,
    serve,
    train,
)
from foresail_studies.purchasing.retired_offers import (
    SPOT_BLOCK,
    PublishedTerms,
    choose_options,
    published_terms,
)
from made_workloads import hourly_workload
from shared import shared

THESIS = load_prices("thesis")
TERMS = published_terms(THESIS, MixRequest())
HOUR = 3600.0


def steady(days, seed=0, **columns):
    """Some 20 jobs a day, from minutes to days, of 1 to 16 cores."""
    random = np.random.default_rng(seed)
    size = days * 20
    return hourly_workload(
        np.sort(random.random(size) * days * 24.0),
        np.exp(random.normal(1.0, 1.5, size)).clip(0.05, 200.0),
        2 ** random.integers(0, 5, size),
        user=[f"u{at % 7}" for at in range(size)],
        **columns,
    )


LOG = steady(120)


@pytest.mark.parametrize("transient", [True, False])
@pytest.mark.parametrize("provider", ["microsoft", "amazon", "google", "all"])
def test_work_and_money_add_up(provider, transient):
    """Hours of all options are the demand; their costs are the total; nothing is negative."""
    jobs = bought_jobs(LOG)
    terms = sold_by(provider, TERMS)
    plan = plan_offline(jobs, jobs.cores, terms if transient else terms.without_transient())
    work = float(jobs.cores @ np.minimum(jobs.hours, jobs.span_hours - jobs.start_hours))
    repeated = plan.hours / np.ceil(jobs.span_hours)
    assert plan.demand_hours == pytest.approx(work * repeated, rel=0.02)
    assert sum(plan.by_option("used_hours").values()) == pytest.approx(plan.demand_hours)
    assert sum(plan.by_option("cost").values()) == pytest.approx(plan.cost)
    assert (plan.over_time.select("used_hours", "idle_hours", "cost").to_numpy() >= -1e-6).all()


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_more_options_never_cost_more(seed):
    """Whatever the order in which options are added, the optimum falls or stays.

    With a sustained-use discount as far as that is known before: a tenth of a unit (see the docs).
    """
    random = np.random.default_rng(seed)
    few = steady(15, seed)
    # Three years of them, whatever terms are sold.
    repeats = [
        few.jobs.with_columns(pl.col("submit_seconds") + at * 15 * 86_400.0) for at in range(74)
    ]
    jobs = bought_jobs(few.with_jobs(pl.concat(repeats)))
    options = [
        {"reserved": TERMS.reserved[1:]},
        {"transient": TERMS.transient},
        {"spot_blocks": TERMS.spot_blocks},
        {"sustained_tiers": TERMS.sustained_tiers},
        {"scheduled": TERMS.scheduled},
    ]
    terms, cost = PublishedTerms(reserved=()), np.inf
    for at in random.permutation(len(options)):
        terms = replace(terms, **options[at])
        plan = plan_offline(jobs, jobs.cores, terms, OfflineSettings(slot_hours=24.0))
        unknown = 0.1 * plan.hours if terms.sustained_tiers else 0.0
        assert plan.cost <= cost * (1.0 + 1e-9) + unknown
        cost = plan.cost


def test_a_steady_demand_is_reserved_for_three_years():
    """One core all the time costs 40 % of on demand, as a half-used one on demand does not."""
    year = hourly_workload([0.0, 0.0], [8760.0, 4380.0 * 0.7], [1, 1])
    jobs = bought_jobs(year)
    plan = plan_offline(jobs, jobs.cores, PurchaseTerms())
    used = 4380.0 * 0.7 * 3
    assert plan.cost == pytest.approx(0.4 * 3 * 8760 + used)
    assert plan.by_option("used_hours")["reserved-3y"] == pytest.approx(3 * 8760)
    assert plan.all_reserved_cost == pytest.approx(0.4 * 2 * 3 * 8760)


def test_a_reservation_begins_when_it_pays():
    """Four years of which the first is quiet: the three-year term begins with the second."""
    log = hourly_workload([0.0, 8760.0], [1.0, 3 * 8760.0], [1, 1])
    jobs = bought_jobs(log)
    plan = plan_offline(jobs, jobs.cores, PurchaseTerms(), OfflineSettings(extension="refuse"))
    (term,) = plan.reservations
    assert (term.option, term.start_hours) == ("reserved-3y", 8760.0)


def test_commitments_cover_the_dearest_demand_for_nothing():
    """Eight cores that are owned lower the optimum, and their own price is kept apart."""
    own = replace(THESIS, commitments=(Commitment("standard-8", 1, 0.1),))
    request = MixRequest("microsoft")
    with_own, without = mix(LOG, own, request), mix(LOG, THESIS, request)
    assert with_own.share("optimum") < without.share("optimum")
    assert with_own.sunk_cost == pytest.approx(0.1 * with_own.hours)
    covered = with_own.options.filter(pl.col("option") == "committed")
    assert covered["cost"].item() == 0.0
    assert covered["used_hours"].item() + covered["idle_hours"].item() == pytest.approx(
        8 * with_own.hours
    )


def test_an_error_of_demand_costs_money_in_either_direction():
    """Amounts as planned are cheapest among those nearby; nothing reserved costs what it costs."""
    report = mix(LOG, THESIS, MixRequest("microsoft", demand_errors=(-1.0, -0.3, 0.0, 0.3)))
    shares = dict(report.by_demand_error.select("error", "share").iter_rows())
    assert shares[0.0] == pytest.approx(report.share("optimum"))
    assert shares[0.0] < shares[-0.3] < shares[-1.0]
    assert shares[0.0] < shares[0.3]


def test_memory_is_bought_apart_where_the_log_knows_it():
    """Jobs with 4 GiB a core cost the same as those of a log without memory."""
    with_memory = steady(120, memory_bytes_per_task=[4.0 * 2**30] * 2400)
    request = MixRequest("microsoft", settings=OfflineSettings(level_units=1.0))
    known, unknown = mix(with_memory, THESIS, request), mix(LOG, THESIS, request)
    assert [plan.resource for plan in known.plans] == ["cores", "GiB"]
    assert known.memory_known
    assert not unknown.memory_known
    on_demand = [report.costs["cost"][0] for report in (known, unknown)]
    assert on_demand[0] == pytest.approx(on_demand[1])
    assert known.share("optimum") == pytest.approx(unknown.share("optimum"), rel=0.01)


def test_the_practical_policy_pays_more_than_hindsight_and_less_than_on_demand():
    """And its hours add up."""
    outcome, least = practise(steady(360), THESIS, MixRequest("microsoft"), 120 * 24.0)
    assert least < outcome.cost < outcome.all_on_demand_cost
    jobs = bought_jobs(steady(360)).between(120 * 24.0, np.inf)
    assert sum(outcome.used_hours.values()) == pytest.approx(jobs.cores @ jobs.hours)
    assert outcome.used_hours["reserved"] > 0.0


def test_jobs_that_outlive_their_block_start_again_on_demand():
    """Predicted 1 h, ran 3 h: an hour's block and three hours on demand."""
    terms = PublishedTerms(reserved=(), spot_blocks=TERMS.spot_blocks)
    log = hourly_workload([0.0, 0.0], [3.0, 0.5], [1, 1])
    reserved = train(bought_jobs(log), THESIS, terms)
    outcome = serve(reserved, THESIS, terms, bought_jobs(log), np.array([1.0, 1.0]), 0.0)
    assert outcome.cost == pytest.approx(0.0481 * (0.55 + 3.0 + 0.55 * 0.5))
    assert outcome.all_on_demand_cost == pytest.approx(0.0481 * 3.5)


def test_a_belief_of_two_runtimes_decides_by_what_both_cost():
    """Even chances of 1 h and 3 h: a block of three; a rare late end: a short block; else none."""
    terms = PublishedTerms(reserved=(), spot_blocks=TERMS.spot_blocks)
    even = choose_options(np.array([[1.0, 3.0]]), terms)
    assert (even.kind[0], even.block[0]) == (SPOT_BLOCK, 3)
    long = choose_options(np.array([[0.5] * 2 + [50.0]]), terms)
    assert long.kind[0] == ON_DEMAND
    sure = choose_options(np.array([[0.5] * 99 + [1.5]]), terms)
    assert sure.block[0] == 1


def test_transient_jobs_are_paid_in_expectation():
    """The cost is that of eq. 5.1 for the real runtime, chosen by the predicted one."""
    terms = PublishedTerms(reserved=(), transient=TransientTerms(0.3))
    log = hourly_workload([0.0], [6.0], [1])
    reserved = train(bought_jobs(log), THESIS, terms)
    outcome = serve(reserved, THESIS, terms, bought_jobs(log), np.array([5.0]), 0.0)
    assert outcome.cost == pytest.approx(0.0481 * 6 * 0.4866382773)
    late = serve(reserved, THESIS, terms, bought_jobs(log), np.array([60.0]), 0.0)
    assert late.cost == pytest.approx(late.all_on_demand_cost)


def test_customised_machines_save_the_waste_of_standard_ones():
    """Five cores need a machine of eight; a customised one costs 5 % more than five."""
    log = hourly_workload([0.0], [1.0], [5])
    jobs, sizes, price = bought_jobs(log), sizes_of(THESIS), resource_prices(THESIS)
    pieces = pieces_of(jobs, sizes)
    assert rent_per_hour(pieces, sizes, price, None) == pytest.approx([8 * 0.0481])
    assert rent_per_hour(pieces, sizes, price, 1.05) == pytest.approx([5 * 0.0481 * 1.05])


def test_wide_jobs_come_apart_at_their_tasks():
    """150 tasks of one core: two machines of 64 and one of 32."""
    pieces = pieces_of(bought_jobs(hourly_workload([0.0], [1.0], [150])), sizes_of(THESIS))
    assert (pieces.full[0], pieces.of_full()[0, 0], pieces.of_rest()[0, 0]) == (2, 64, 22)


def test_amounts_become_the_largest_machines_of_the_nearest_ratio():
    """100 cores: 64, 32 and 4; what does not fill a machine is left."""
    found = machines_for(Amount(100.4, 400.0), "reserved-1y", 0.6, sizes_of(THESIS))
    assert [(m.instance.cores, m.count) for m in found] == [(64, 1), (32, 1), (4, 1)]
    assert sum(m.per_hour for m in found) == pytest.approx(100 * 0.6 * 0.0481)
    memory = machines_for(
        Amount(16.0, 128.0), "reserved-1y", 0.6, sizes_of(load_prices("ec2-2024"))
    )
    assert {m.instance.name for m in memory} == {"r5.4xlarge"}
    assert machines_for(Amount(0.9, 3.6), "reserved-1y", 0.6, sizes_of(THESIS)) == []


@given(
    st.lists(
        st.tuples(
            *(st.floats(0, 10), st.floats(0.1, 5)),
            *(st.integers(1, 11), st.integers(1, 4), st.integers(0, 2)),
        ),
        min_size=1,
        max_size=25,
    )
)
def test_reserved_machines_hold_what_a_slow_placement_holds(drawn):
    """Jobs of several pieces on three machines: the same jobs find room, whole or not at all."""
    start, hours, cores, memory, gpus = (
        np.array(part) for part in zip(*sorted(drawn), strict=True)
    )
    end, memory, gpus = start + hours, memory.astype(float), gpus.astype(float)
    full, rest = cores // 4, cores % 4
    size = cores.size
    whole = np.column_stack((np.full(size, 4), memory, gpus))
    asked = np.stack((whole, np.column_stack((rest, memory / 2, gpus / 2))), axis=1)
    counts = np.stack((full, full + (rest > 0)), axis=1)
    fleet = np.array([4, 8, 6]), np.array([6.0, 8.0, 5.0]), np.array([0.0, 2.0, 3.0])
    times, machines = np.stack((start, end)), machines_of(*fleet)
    fast = place_jobs(times, counts, asked, machines, timetable(size))
    slow_pieces = [
        [(4, memory[at], gpus[at])] * int(full[at])
        + [(rest[at], memory[at] / 2, gpus[at] / 2)] * int(rest[at] > 0)
        for at in range(size)
    ]
    slow = slow_stacks.placed(start, end, slow_pieces, *fleet)
    assert (fast == slow).all()


@given(st.lists(st.tuples(st.floats(0, 3000), st.floats(0.1, 2000)), min_size=1, max_size=9))
def test_months_hold_all_hours(drawn):
    """The last month takes what goes beyond it."""
    start, hours = (np.array(part) for part in zip(*drawn, strict=True))
    found = by_month(start, hours, np.full(start.size, 2.0), 4)
    assert found.sum() == pytest.approx(2.0 * hours.sum())
    assert found[0] == pytest.approx(
        2.0 * np.clip(np.minimum(start + hours, 730.0) - start, 0.0, None).sum()
    )


def test_ridge_learns_what_users_run():
    """Two users, of one hour and of eight: predictions are near, and never above the limit."""
    hours = np.tile([1.0, 8.0], 200)
    limits = np.where(np.arange(400) < 390, 20.0, 0.5) * HOUR
    log = hourly_workload(
        np.arange(400.0), hours, [1] * 400, user=["a", "b"] * 200, requested_seconds=limits
    )
    jobs = bought_jobs(log)
    found = predicted_hours(log, jobs, np.arange(400) < 300)
    assert found[300:390] == pytest.approx(hours[300:390], rel=0.1)
    assert (found[390:] <= 0.5).all()


def test_less_risk_reserves_less():
    """And a certain future reserves what pays; costs lie between the reserved price and 1."""
    jobs = bought_jobs(steady(200))
    bought = [
        sum(
            reserve_at_risk(
                jobs, jobs.cores, PurchaseTerms(), forecast=ForecastSettings(risk=risk)
            ).units.values()
        )
        for risk in (0.05, 0.2, 0.5)
    ]
    assert bought[0] < bought[1] < bought[2]
    sure = reserve_at_risk(
        jobs, jobs.cores, PurchaseTerms(), forecast=ForecastSettings(growth_spread=0.0)
    )
    assert 0.4 < sure.expected_cost_share < 1.0
    assert sure.cost_shares[0.05] <= sure.cost_shares[0.5] <= sure.cost_shares[0.95]


def test_a_gap_of_two_years_is_refused():
    """Years drawn from within it ask for nothing, of which no cost is a share."""
    log = steady(40)
    later = log.jobs.with_columns(pl.col("job_id") + "b", pl.col("submit_seconds") + 780 * 86_400.0)
    jobs = bought_jobs(log.with_jobs(pl.concat([log.jobs, later])))
    with pytest.raises(InputError, match=r"years drawn .* nothing is asked for.*gap of 7\d\d days"):
        reserve_at_risk(jobs, jobs.cores, PurchaseTerms())


def test_a_constant_future_reserves_all_of_it():
    """Ten cores all the time, no growth: ten cores for three years at 40 %."""
    jobs = bought_jobs(hourly_workload([0.0], [2000.0], [10]))
    plan = reserve_at_risk(
        jobs, jobs.cores, PurchaseTerms(), forecast=ForecastSettings(growth_spread=0.0)
    )
    assert plan.units["reserved-3y"] == pytest.approx(10.0)
    assert plan.expected_cost_share == pytest.approx(0.4)


def test_a_log_shorter_than_a_term_is_refused_unless_it_repeats():
    """The error says how long the log is and what to do."""
    with pytest.raises(InputError, match=r"shorter than the term.*123\.4 days.*repeat"):
        mix(LOG, THESIS, MixRequest(settings=OfflineSettings(extension="refuse")))
    assert horizon_slots(100.0, 1.0, 3, "repeat") == (100, 26_280)
    assert horizon_slots(9000.0, 1.0, 3, "refuse") == (9000, 9000)
    assert horizon_slots(100.0, 1.0, 0, "refuse") == (100, 100)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mix(hourly_workload([0.0], [0.0], [1]), THESIS), "no jobs to buy for"),
        (lambda: practise(LOG, THESIS, MixRequest(), 1e6), "one side of the end"),
        (lambda: MixRequest(demand_errors=(-1.1,)), "'demand_errors': out of range"),
        (lambda: OfflineSettings(slot_hours=0.0), "'slot_hours': out of range"),
        (lambda: OfflineSettings(level_units=-1.0), "'level_units': out of range"),
        (lambda: ForecastSettings(risk=0.0), "'risk': out of range"),
        (lambda: ForecastSettings(scenarios=0), "'scenarios': out of range"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_bought_for_is_named(make, message):
    """Each error has the field, the value, and what was expected."""
    with pytest.raises(InputError, match=message):
        make()


def test_longer_lives_of_transient_machines_cost_less():
    """A mean of a week instead of the catalogue's day; Google's live a day at most in any case."""
    week = TransientTerms(0.3, ExponentialRevocation(168.0))
    day, longer = (
        mix(LOG, THESIS, MixRequest("microsoft", transient_terms=terms)) for terms in (None, week)
    )
    assert longer.share("optimum") < day.share("optimum")
    google = mix(LOG, THESIS, MixRequest("google", transient_terms=week))
    assert google.terms.transient.revocation == CappedRevocation(week.revocation, 24.0)


def test_a_market_tells_price_and_lifetimes():
    """Up at 0.1 and 0.2 of on demand for an hour each, then down: the middle, and a life of two."""
    market = MarketHistory(
        "z/t",
        "t",
        "z",
        np.array([0.0, 3600.0, 7200.0]),
        9000.0,
        prices=np.array([0.1, 0.2, 5.0]),
        on_demand_per_hour=1.0,
    )
    terms = observed_transient([market])
    assert terms.price == pytest.approx(0.15)
    assert terms.revocation.revoked(np.array([0.5, 2.1])).tolist() == [0.25, 1.0]
    with pytest.raises(InputError, match="no market was up"):
        observed_transient([replace(market, on_demand_per_hour=0.05)])


def test_a_commitment_that_has_ended_covers_nothing():
    """The day of the prices decides."""
    ended = Commitment("standard-8", 1, 0.1, until=date(2018, 1, 1))
    report = mix(LOG, replace(THESIS, commitments=(ended,)), MixRequest("microsoft"))
    assert report.sunk_cost == 0.0
    assert "committed" not in report.options["option"].to_list()


def test_an_unknown_provider_is_named():
    """With the nearest known."""
    with pytest.raises(UnknownNameError, match="google"):
        mix(LOG, THESIS, MixRequest("gogle"))


def test_the_shape_of_the_published_results_on_a_real_log():
    """KTH-SP2: far below on demand; Amazon's further options help only without transient ones."""
    log = read(shared("traces/pwa/KTH-SP2-1996-2.swf.gz"))
    share = {}
    for provider in ("microsoft", "amazon"):
        for transient in (True, False):
            request = MixRequest(provider, transient)
            report = mix(log, THESIS, request, published_terms(THESIS, request))
            share[provider, transient] = report.share("optimum")
    assert share["amazon", True] == pytest.approx(share["microsoft", True])
    assert share["amazon", False] < share["microsoft", False]
    assert share["microsoft", True] < 0.55
