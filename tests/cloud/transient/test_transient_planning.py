"""Choosing a pool: the worked examples, against brute force, under shocks, and what is refused."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from exact_pools import cheapest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.cloud.transient.availability import allowed_shortfall, shortfall
from foresail.cloud.transient.offers import CommonShocks, Offers, TransientType
from foresail.cloud.transient.plan import from_record
from foresail.cloud.transient.planning import (
    GAINS,
    UnreachableError,
    availability_text,
    best_of_scales,
    cheaper,
    chosen,
    completed,
    frontier,
    gained_nines,
    gained_share,
    plan,
    pruned,
    refined,
)
from foresail.cloud.transient.tiers import (
    Tier,
    plan_tiers,
    shared_pool_availability,
    tier_frontier,
    tier_target,
)
from foresail.model.errors import InputError
from transient_offers import FIVE, brute_force_price, enumerated_shortfall


def by_gain(gain):
    """The published rule: one machine after the other, by this gain."""
    return lambda *asked: chosen(*asked[:3], gain, dearest=asked[3])


def exactly(offers, needed, allowed, dearest):
    """The optimum."""
    return cheapest(offers, needed, allowed, best_of_scales(offers, needed, allowed, dearest))


RULES = {
    "marginal_log": by_gain(gained_nines),
    "marginal_linear": by_gain(gained_share),
    "exact": exactly,
}
GOLDENS = [
    (20, 0.999, "marginal_log", "a1 b1 d1 e1", 8.7, 0.999669),
    (20, 0.999, "marginal_linear", "a1 b1 d1 e1", 8.7, 0.999669),
    (20, 0.999, "exact", "a1 b1 d1 e1", 8.7, 0.999669),
    (20, 0.9999, "marginal_log", "a1 b1 c1 e1", 11.5, 0.9999399),
    (20, 0.9999, "exact", "a1 b1 c1 e1", 11.5, 0.9999399),
    (30, 0.99999, "marginal_log", "a1 b2 c2 d2 e2", 23.4, 0.99999372),
    (30, 0.99999, "marginal_linear", "a2 b2 c1 d2 e2", 21.4, 0.99999372),
    (30, 0.99999, "best", "a2 b2 c1 d2 e2", 21.4, 0.99999372),
    (30, 0.99999, "exact", "a2 b2 c1 d2 e2", 21.4, 0.99999372),
]


@pytest.mark.parametrize(("capacity", "target", "method", "pool", "price", "reached"), GOLDENS)
def test_worked_examples(capacity, target, method, pool, price, reached):
    """The specification's examples: pool, price and availability of every method."""
    rule = best_of_scales if method == "best" else RULES[method]
    found = plan(FIVE, float(capacity), target, choose=rule)
    assert " ".join(f"{each.type.name}{each.count}" for each in found.rented) == pool
    assert found.price_per_hour == pytest.approx(price)
    assert found.availability == pytest.approx(reached, abs=1e-12)


def test_before_pruning():
    """Both examples grow further than they need to: 12.7 and 27.1 an hour."""
    allowed = allowed_shortfall(0.9999)
    nothing = np.zeros(len(FIVE.types), np.int64)
    counts = completed(FIVE, nothing, 2, allowed, gained_nines)
    assert float(counts @ FIVE.prices) == pytest.approx(12.7)
    assert 1.0 - shortfall(FIVE, counts, 2) == pytest.approx(0.99999372, abs=1e-8)
    counts = completed(FIVE, nothing, 3, allowed_shortfall(0.99999), gained_share)
    assert float(counts @ FIVE.prices) == pytest.approx(27.1)


small_offers = st.lists(
    st.tuples(st.integers(1, 4), st.floats(0.6, 0.99), st.floats(0.05, 1.0)),
    min_size=1,
    max_size=4,
).map(
    lambda drawn: Offers(
        tuple(TransientType(f"t{i}", float(c), p, s) for i, (c, p, s) in enumerate(drawn))
    )
)


@settings(max_examples=40)
@given(small_offers, st.integers(1, 6), st.floats(0.5, 0.9999))
def test_exact_is_the_optimum_and_greedy_no_better(offers, capacity, target):
    """Branch and bound finds what brute force finds; greedy pools are feasible and no cheaper."""
    needed, allowed = offers.units_for(capacity), allowed_shortfall(target)
    best = np.prod(1.0 - offers.up)
    if math.isclose(best, allowed, rel_tol=1e-9):
        return
    if best > allowed:
        with pytest.raises(UnreachableError) as error:
            plan(offers, float(capacity), target)
        assert error.value.best < target
        return
    optimum = brute_force_price(offers, needed, allowed)
    for gain in GAINS:
        counts = chosen(offers, needed, allowed, gain)
        assert enumerated_shortfall(offers, counts, needed) <= allowed * (1 + 1e-9)
        assert float(counts @ offers.prices) >= optimum - 1e-9
    exact = cheapest(offers, needed, allowed, counts)
    assert float(exact @ offers.prices) == pytest.approx(optimum, rel=1e-6)


@given(small_offers, st.integers(1, 9), st.floats(0.3, 0.9))
def test_pruned_has_nothing_to_spare(offers, capacity, target):
    """After pruning, no machine can be dropped, and the capacity is still there often enough."""
    allowed = allowed_shortfall(target)
    needed = offers.units_for(capacity)
    plenty = np.full(len(offers.types), needed)
    if shortfall(offers, plenty, needed) > allowed:
        return
    counts = pruned(offers, plenty, needed, allowed)
    assert shortfall(offers, counts, needed) <= allowed
    for i in np.flatnonzero(counts):
        fewer = counts.copy()
        fewer[i] -= 1
        assert shortfall(offers, fewer, needed) > allowed


@settings(max_examples=30)
@given(small_offers, st.integers(1, 60), st.floats(0.3, 0.999))
def test_best_is_feasible_and_no_dearer(offers, capacity, target):
    """Scales and refinement never cost more than the marginal criteria, nor miss the target."""
    needed, allowed = offers.units_for(capacity), allowed_shortfall(target)
    if np.prod(1.0 - offers.up) > allowed:
        return
    best = best_of_scales(offers, needed, allowed)
    assert shortfall(offers, best, needed) <= allowed
    greedy = [chosen(offers, needed, allowed, each) for each in GAINS]
    assert float(best @ offers.prices) <= min(float(c @ offers.prices) for c in greedy) + 1e-9


def twelve():
    """Types of differing size, price and availability."""
    random = np.random.default_rng(4)
    sizes, ups = random.choice([4, 8, 16, 32], 12), random.uniform(0.8, 0.999, 12)
    prices = random.uniform(0.2, 0.6, 12)
    return Offers(
        tuple(
            TransientType(f"t{i}", float(sizes[i]), float(ups[i]), float(prices[i]))
            for i in range(12)
        )
    )


def test_best_is_far_below_the_greedy_on_large_capacities():
    """Five nines of 1,000 units of twelve types cost half of what the greedy alone pays."""
    best = plan(twelve(), 1_000.0, 0.99999)
    assert best.availability >= 0.99999
    for gain in GAINS:
        assert (
            best.price_per_hour
            < 0.6 * plan(twelve(), 1_000.0, 0.99999, choose=by_gain(gain)).price_per_hour
        )


def test_large_plan_takes_seconds():
    """1,000 types and 10,000 units: planned in coarse steps, in little more than a second."""
    random = np.random.default_rng(3)
    offers = Offers(
        tuple(
            TransientType(
                f"t{i}",
                float(random.choice([1, 2, 4, 8, 16, 32, 64])),
                float(random.uniform(0.8, 0.999)),
                float(random.uniform(0.2, 0.6)),
            )
            for i in range(1_000)
        )
    )
    begin = time.process_time()
    found = plan(offers, 10_000.0, 0.99999)
    assert time.process_time() - begin < 15.0
    assert found.availability >= 0.99999


@pytest.mark.parametrize("capacity", [16.0, 24.0, 32.0, 48.0])
def test_best_is_near_the_optimum(capacity):
    """On what branch and bound can do, the best pool found costs at most 1 % more."""
    optimum = plan(twelve(), capacity, 0.9999, choose=exactly).price_per_hour
    best = plan(twelve(), capacity, 0.9999).price_per_hour
    assert optimum <= best + 1e-9
    assert best <= 1.01 * optimum


def test_refined_is_no_dearer():
    """From a pool with plenty of everything, refinement finds the optimum of the small example."""
    allowed = allowed_shortfall(0.99999)
    counts = refined(FIVE, np.full(5, 3), 3, allowed)
    assert shortfall(FIVE, counts, 3) <= allowed
    assert float(counts @ FIVE.prices) == pytest.approx(21.4)


def test_unreachable_says_the_best():
    """Five types reach 1 − 3e-8 together; eight nines are refused with that figure."""
    with pytest.raises(UnreachableError, match=r"0\.9999999700") as error:
        plan(FIVE, 20.0, 0.99999999)
    assert error.value.best == pytest.approx(1.0 - 3e-8, abs=1e-15)
    with pytest.raises(UnreachableError):
        plan(FIVE, 20.0, 0.99999, extra_nines=3.0)


def test_certain_types_end_too():
    """Types that were never seen down leave no gain to choose by; the loop still ends."""
    offers = Offers(tuple(TransientType(f"t{i}", 10.0, 1.0, 0.1 + i) for i in range(3)))
    found = plan(offers, 45.0, 0.99999)
    assert found.availability == 1.0
    assert found.price_per_hour == pytest.approx(5.0 * 1.0)


def test_extra_nines_plan_for_more():
    """One extra nine of three is a plan for four that remembers its target."""
    more = plan(FIVE, 20.0, 0.999, extra_nines=1.0)
    assert more.rented == plan(FIVE, 20.0, 0.9999).rented
    assert (more.target, more.extra_nines) == (0.999, 1.0)


def test_on_demand_comparison():
    """The price on demand is the cheapest of the types'; a dearer pool says so."""
    types = tuple(replace(each, on_demand_price_per_unit_hour=0.5) for each in FIVE.types)
    cheap = (replace(types[0], on_demand_price_per_unit_hour=0.4), *types[1:])
    found = plan(Offers(cheap), 20.0, 0.999)
    assert found.on_demand_price_per_hour == pytest.approx(8.0)
    assert found.on_demand_share == pytest.approx(8.7 / 8.0)
    assert not found.is_worth_it
    hopeless = tuple(replace(each, on_demand_price_per_unit_hour=0.01) for each in FIVE.types)
    given_up = plan(Offers(hopeless), 20.0, 0.9999)
    assert not given_up.is_worth_it
    assert given_up.availability >= 0.9999


def test_record_round_trip():
    """A plan survives JSON; what is no plan is refused by field."""
    found = plan(FIVE, 20.0, 0.9999)
    record = json.loads(json.dumps(found.to_record()))
    assert from_record(record) == found
    for field, value, problem in (
        ("kind", "other", "kind"),
        ("version", 99, "version"),
        ("capacity", "many", "no plan"),
    ):
        with pytest.raises(InputError, match=problem):
            from_record(record | {field: value}, "plan.json")
    del record["machines"][0]["count"]
    with pytest.raises(InputError, match="count"):
        from_record(record)
    with pytest.raises(InputError, match="kind"):
        from_record([1, 2])


def test_more_is_never_cheaper():
    """Prices rise with the target; a cheaper plan for more does for less."""
    random = np.random.default_rng(11)
    types = [
        TransientType(f"t{i}", float(c), 1.0 - 10.0 ** -random.uniform(1, 3), float(p))
        for i, (c, p) in enumerate(
            zip(random.choice([3, 8, 14], 8), random.uniform(0.1, 0.4, 8), strict=True)
        )
    ]
    plans = frontier(Offers(tuple(types)), 50.0)
    prices = [each.price_per_hour for each in plans]
    assert prices == sorted(prices)
    assert all(each.availability >= each.target for each in plans)
    dear, cheap = replace(plans[0], rented=plans[-1].rented), plans[1]
    better = cheaper(dear, [cheap])
    assert (better.rented, better.target) == (cheap.rented, dear.target)
    assert cheaper(plans[-1], plans[:1]) == plans[-1]


def test_tiers_cost_more_as_more_is_asked():
    """The frontier of a service: each target is reached by all tiers together."""
    found = tier_frontier(FIVE, [Tier("a", 20.0), Tier("b", 10.0)], (0.9, 0.99, 0.999))
    assert [target for target, _ in found] == [0.9, 0.99, 0.999]
    assert all(each.availability >= target for target, each in found)
    prices = [each.price_per_hour for _, each in found]
    assert prices == sorted(prices)
    assert not tier_frontier(FIVE, [Tier("a", 20.0)], (0.99999999,))


def test_frontier_ends_where_types_end():
    """Each target that can be reached has a plan."""
    assert frontier(FIVE, 20.0)[-1].target == 0.999999
    two = Offers(FIVE.types[:2])
    assert [each.target for each in frontier(two, 20.0)] == [0.9, 0.95, 0.99, 0.995, 0.999]


def test_shocks_make_plans_dearer():
    """A plan that knows that types fail together needs more than one that does not."""
    calm, shock = np.array([0.97, 0.99, 0.995, 0.93, 0.985]), np.array([0.2, 0.3, 0.4, 0.2, 0.3])
    weights = np.array([0.98, 0.02])
    names = tuple(each.name for each in FIVE.types)
    shocks = CommonShocks(names, weights, np.stack((calm, shock)))
    types = tuple(
        replace(each, availability=float(p))
        for each, p in zip(FIVE.types, weights @ shocks.up, strict=True)
    )
    apart, together = Offers(types), Offers(types, shocks)
    naive, aware = plan(apart, 20.0, 0.995), plan(together, 20.0, 0.995)
    counts = [next((r.count for r in naive.rented if r.type.name == n), 0) for n in names]
    assert shortfall(together, np.array(counts), 2) > 0.005
    assert aware.availability >= 0.995
    assert aware.price_per_hour > naive.price_per_hour
    assert aware.model == "2 states"


@pytest.mark.parametrize("capacity", [0.0, -5.0, math.inf, math.nan, 1e9])
def test_impossible_capacities(capacity):
    """A capacity that is nothing, endless or beyond counting is refused by name."""
    with pytest.raises(InputError) as error:
        plan(FIVE, capacity, 0.9)
    assert error.value.field == "capacity"


def test_tiers():
    """Three tiers for four nines each need 0.99996667; sharing all types, the weakest counts."""
    assert tier_target(0.9999, 3) == pytest.approx(0.99996667, abs=1e-8)
    found = plan_tiers(FIVE, [Tier("web", 20.0), Tier("db", 20.0)], 0.999)
    assert found.plans[0].rented == found.plans[1].rented
    weakest = found.plans[0].availability
    assert found.availability == pytest.approx(weakest, abs=1e-12)
    assert found.independent_availability == pytest.approx(weakest**2, abs=1e-12)
    record = json.loads(json.dumps(found.to_record()))
    assert from_record(record["tiers"][1]["plan"]) == found.plans[1]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_shared_pool_against_enumeration(counts, needed):
    """All tiers together, exactly, against looking at every pattern of types that are up."""
    expected = 0.0
    for pattern in range(32):
        up = np.array([(pattern >> i) & 1 for i in range(5)])
        odds = float(np.prod(np.where(up, FIVE.up[0], 1.0 - FIVE.up[0])))
        if all(int(up * np.array(tier) @ FIVE.units) >= needed for tier in counts):
            expected += odds
    arrays = [np.array(tier) for tier in counts]
    found = shared_pool_availability(FIVE, arrays, [needed] * len(counts))
    assert found == pytest.approx(expected, abs=1e-12)


def test_disjoint_tiers_are_independent():
    """Tiers without a type in common: the product of their availabilities."""
    first, second = np.array([1, 1, 0, 0, 0]), np.array([0, 0, 1, 1, 1])
    product = (1.0 - shortfall(FIVE, first, 1)) * (1.0 - shortfall(FIVE, second, 2))
    assert shared_pool_availability(FIVE, [first, second], [1, 2]) == pytest.approx(product)


def test_no_tiers():
    """A service without tiers, or with two of one name, is refused."""
    with pytest.raises(InputError, match="tiers"):
        plan_tiers(FIVE, [], 0.9)
    with pytest.raises(InputError, match="different names"):
        plan_tiers(FIVE, [Tier("a", 1.0), Tier("a", 2.0)], 0.9)


def test_availability_is_said_with_its_nines():
    """As many digits as tell it from one."""
    assert availability_text(1e-4) == "0.999900"
    assert availability_text(0.0) == "1"
