"""Cost against waiting: hulls, sums by block, and the sweep as a whole against slow references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.over_time import block_draws, block_seconds
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.waiting.jobs import (
    FixedMachines,
    TraceJobs,
    proportional_family,
    rented_family,
    usual_hour_value,
)
from foresail.cloud.waiting.simulating import Beliefs, simulate, waiting_policy
from foresail.model.errors import InputError
from foresail_studies.renting.metrics import BlockSums, block_sums, measured
from foresail_studies.renting.owned_machines import Worth, owned_machines, owned_offer
from foresail_studies.renting.owning import (
    FrontierPoint,
    advised,
    best_by_value,
    drawn,
    own_or_rent,
    pareto,
)
from foresail_studies.renting.sweeping import Sweep, SweepInputs, WaitingSetting, usual_counts

DAY = 86400.0
FAMILY = proportional_family()


def point(cost: float, hours: float) -> FrontierPoint:
    return FrontierPoint(
        "no-jobs-wait", 1, None, None, cost, 1.0, hours * 60.0, hours, 0.0, 0.0, 0.5
    )


def made(days: int, seed: int = 0, per_day: int = 40) -> TraceJobs:
    random = np.random.default_rng(seed)
    count = days * per_day
    return TraceJobs(
        np.sort(random.random(count) * days * DAY),
        np.exp(random.normal(7.5, 1.5, count)),
        random.integers(1, 9, count),
    )


points = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda each: point(*map(float, each))),
    min_size=1,
    max_size=12,
)


@given(points, st.floats(0.0, 50.0))
def test_best_by_value(some, value):
    """At any value of an hour the range that holds it has a point than which none is better."""
    found = best_by_value(some)
    assert (found[0].least, found[-1].most) == (0.0, np.inf)
    holds = [each for each in found if each.least <= value <= each.most]
    least = min(each.worth(value) for each in some)
    assert holds
    for each in holds:
        assert each.point.worth(value) == pytest.approx(least)
    assert advised(some, value).worth(value) == pytest.approx(least)


@given(points)
def test_pareto(some):
    """Kept is what no other is cheaper and no slower than; the rest is beaten or equalled."""
    kept = pareto(some, lambda each: (each.mean_wait_seconds, each.cost))
    for each in kept:
        assert not any(
            other.cost < each.cost and other.mean_wait_seconds <= each.mean_wait_seconds
            for other in some
        )
    for other in some:
        assert any(
            each.cost <= other.cost and each.mean_wait_seconds <= other.mean_wait_seconds
            for each in kept
        )


@pytest.mark.parametrize("policy", ["all-jobs-wait-threshold", "speculative"])
def test_blocks_add_up(policy):
    """The sums by day are those of the whole; the days' weights of once each give its price."""
    jobs = made(9)
    fixed = FixedMachines(3, 8)
    rules = waiting_policy(policy, 3600.0, 600.0)
    simulated = simulate(jobs, fixed, FAMILY, rules, Beliefs.true_runtimes(jobs))
    whole = measured(simulated, fixed, rules)
    length = block_seconds(jobs.submit_seconds)
    assert length == DAY
    sums = block_sums(simulated, fixed, rules, length)
    assert sums.jobs.sum() == len(jobs)
    assert sums.cost.sum() == pytest.approx(whole.total_cost)
    assert sums.on_demand_cost.sum() == pytest.approx(whole.on_demand_cost)
    price, wait = sums.drawn(np.ones((1, sums.jobs.size)))
    assert (price[0], wait[0]) == pytest.approx((whole.price, whole.mean_wait_seconds))


def test_draws():
    """Every draw has as many blocks as there are, and all blocks are as likely."""
    draws = block_draws(10, 4000, seed=3)
    assert (draws.sum(axis=1) == 10).all()
    assert draws.mean(axis=0) == pytest.approx(np.ones(10), abs=0.06)
    assert block_seconds(np.array([0.0, 4.9 * DAY])) is None
    assert block_seconds(np.arange(0.0, 35.5 * DAY, DAY)) == 7.0 * DAY


def test_blocks_few_of_which_have_jobs():
    """A gap of two years leaves nothing to draw from but itself; five busy days are enough."""
    ends = np.array([0.0, 600.0, 730.0 * DAY, 730.0 * DAY + 600.0])
    assert block_seconds(ends) is None
    busy = np.append(np.arange(0.0, 4.9 * DAY, 3600.0), 730.0 * DAY)
    assert block_seconds(busy) == DAY


def test_periods_without_a_job_are_not_drawn():
    """Of 300 days five have jobs: what has no price is not counted, and nothing is NaN."""
    amounts = np.where(np.arange(300) % 60 == 0, 1.0, 0.0)
    found = drawn(BlockSums(amounts, amounts, amounts, amounts))
    assert 900 < found.price.size < 1000
    assert np.isfinite(found.price).all()
    assert np.isfinite(found.wait_seconds).all()


def test_intervals_hold_other_years():
    """The interval of a price holds the price of other logs like it, about as often as it says."""
    machine = FixedMachines(1, 8)
    rules = waiting_policy("no-jobs-wait")
    logs = [made(60, seed, 30) for seed in range(40)]

    def result(jobs):
        fixed = replace(machine, count=4)
        simulated = simulate(jobs, fixed, FAMILY, rules, Beliefs.true_runtimes(jobs))
        sums = block_sums(simulated, fixed, rules, 7.0 * DAY)
        prices, _ = sums.drawn(block_draws(sums.jobs.size, 500, 1))
        return measured(simulated, fixed, rules).price, np.quantile(prices, [0.025, 0.975])

    results = [result(jobs) for jobs in logs]
    truth = np.mean([price for price, _ in results])
    held = np.mean([low <= truth <= high for _, (low, high) in results])
    assert 0.75 <= held <= 1.0


def test_the_sweep_as_a_whole():
    """The advice is the least of what was tried, in between too; unaided ones need no oracle."""
    jobs = made(30)
    inputs = SweepInputs(jobs, jobs.runtime_seconds, FixedMachines(1, 8), FAMILY)
    sweep = Sweep(
        ("no-jobs-wait", "compound"),
        (0, 4, 8),
        (3600.0,),
        (600.0,),
        (6, "all-jobs-wait"),
        refine=True,
    )
    worth = Worth(usual_hour_value(jobs, FAMILY), stated=False)
    seen = []
    answer = own_or_rent(inputs, sweep, worth, workers=2, done=lambda *each: seen.append(each))
    assert seen[-1][0] == seen[-1][1] >= len(answer.points)
    assert {each.machines for each in answer.points} > {0, 4, 8}
    values = [each.worth(worth.hour_value) for each in answer.points]
    assert answer.advised.worth(worth.hour_value) == min(values)
    assert answer.unaided is not None
    assert answer.unaided.policy in ("no-jobs-wait", "all-jobs-wait")
    assert answer.today is not None
    assert (answer.today.policy, answer.today.machines) == ("all-jobs-wait", 6)
    assert answer.certainty is not None
    assert answer.certainty.near_share >= answer.certainty.best_share
    assert answer.certainty.saving is not None
    low, high = answer.certainty.saving
    assert low <= answer.today.price - answer.advised.price <= high
    none = next(each for each in answer.points if each.machines == 0)
    assert none.price == pytest.approx(1.0)
    assert none.mean_wait_seconds == 0.0


def test_settings_once():
    """Thresholds that a policy does not have are not swept."""
    sweep = Sweep(
        ("no-jobs-wait", "long-jobs-wait"), (1,), (1.0, 2.0), (3.0, 4.0), (1, "no-jobs-wait")
    )
    assert sweep.settings() == [
        WaitingSetting("no-jobs-wait", 1, None, None),
        WaitingSetting("long-jobs-wait", 1, None, 3.0),
        WaitingSetting("long-jobs-wait", 1, None, 4.0),
    ]
    with pytest.raises(InputError, match="nothing to try"):
        Sweep(("no-jobs-wait",), (), (1.0,), (1.0,))


@given(st.floats(0.01, 500.0), st.floats(0.01, 1.0))
def test_usual_counts(machines, price):
    """From none to where owning costs as much as renting all, in a dozen steps or so."""
    counts = usual_counts(machines, price, 12)
    assert counts[0] == 0
    assert counts[-1] * max(price, 0.05) >= machines
    assert 2 <= len(counts) <= 14


def test_machines_of_a_catalogue():
    """The largest machine that can be reserved, at its longest term, and what can be rented."""
    catalogue = load_prices("ec2-2017")
    offer = owned_offer(catalogue, None)
    assert offer.instance.name == "c5.18xlarge"
    machine = owned_machines(offer, None, None)
    assert (machine.cores, machine.price_per_hour) == (72, 1.282)
    assert owned_machines(offer, 1, None).price_per_hour == 1.928
    assert owned_machines(offer, None, 0.5).price_per_hour == 0.5
    assert {each.name for each in rented_family(catalogue)} >= {"m4.large", "r4.16xlarge"}
