"""What histories say: estimates, shocks, windows, and what plans would have had."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.histories import JointHistory, MarketHistory, correlated_pairs, joined
from foresail.cloud.prices_reading import load_histories
from foresail.cloud.transient.availability import shortfall
from foresail.cloud.transient.estimating import (
    MachineKind,
    correlated_offers,
    estimated_offers,
    mean_availability,
    realised,
    rolled,
    shuffled_availability,
)
from foresail.cloud.transient.offers import CommonShocks, fitted_shocks
from foresail.cloud.transient.planning import plan
from foresail.model.errors import InputError
from shared import shared
from transient_offers import history, random_history

DAY = 86_400.0


def market(name, times, prices, end, origin=None, on_demand=1.0):
    return MarketHistory(
        name,
        name,
        "zone",
        np.array(times, dtype=float),
        float(end),
        prices=np.array(prices, dtype=float),
        on_demand_per_hour=on_demand,
        origin_unix_seconds=origin,
    )


def kinds_of(found, capacity=10.0):
    return {name: MachineKind(capacity, 2.0) for name in found.names}


def test_joined_by_hand():
    """Two markets on one axis, over the time that both cover, with every change of either."""
    first = market("a", [0, 10, 20], [0.5, 2.0, 0.5], 40)
    second = market("b", [5, 15], [0.3, 0.4], 30)
    found = joined([first, second])
    assert found.names == ("a", "b")
    assert (found.begin, found.end) == (5.0, 30.0)
    assert found.seconds.tolist() == [5.0, 5.0, 5.0, 10.0]
    assert found.up.tolist() == [[True, True], [False, True], [False, True], [True, True]]
    assert found.prices[:, 1].tolist() == [0.3, 0.3, 0.4, 0.4]
    assert found.availability.tolist() == [0.6, 1.0]
    assert found.mean_prices() == pytest.approx([0.5, (0.3 * 10 + 0.4 * 15) / 25])


def test_joined_by_unix_time():
    """Markets with origins meet on the clock; some without, or no overlap, are refused."""
    first = market("a", [0, 10], [0.5, 2.0], 40, origin=100.0)
    second = market("b", [0], [0.5], 40, origin=120.0)
    found = joined([first, second])
    assert (found.begin, found.end) == (120.0, 140.0)
    assert not found.up[:, 0].any()
    with pytest.raises(InputError, match="only some"):
        joined([first, market("c", [0], [0.5], 40)])
    with pytest.raises(InputError, match="no time in common"):
        joined([first, market("c", [0], [0.5], 40, origin=1e6)])
    with pytest.raises(InputError, match="no market"):
        joined([])


@given(st.floats(0.0, 35.0), st.floats(0.1, 20.0))
def test_parts_of_a_history(begin, length):
    """A part holds what the whole says of its time, and parts side by side add up."""
    whole = history([10.0, 5.0, 20.0, 5.0], [[1, 1], [0, 1], [1, 0], [1, 1]])
    part = whole.between(begin, begin + length)
    assert part.total_seconds == pytest.approx(min(begin + length, 40.0) - begin)
    at = 0.5 * (part.begin + part.end)
    left, right = part.between(part.begin, at), part.between(at, part.end)
    both = left.availability * left.total_seconds + right.availability * right.total_seconds
    assert both == pytest.approx(part.availability * part.total_seconds)


def test_correlated_pairs_by_hand():
    """The most correlated pair first; a type that is always up is in none."""
    up = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1]], bool)
    found = JointHistory(("a", "b", "c", "d"), 0.0, np.ones(4), up, np.ones(up.shape))
    pairs = correlated_pairs(found)
    assert [pair[:2] for pair in pairs] == [("a", "b"), ("b", "c"), ("a", "c")]
    assert [pair[2] for pair in pairs] == pytest.approx([3**-0.5, -(3**-0.5), -1.0])


def test_no_such_part():
    """A time that the history does not cover is refused with what it covers."""
    with pytest.raises(InputError, match="says nothing"):
        history([10.0], [[1]]).between(20.0, 30.0)


def test_estimates():
    """Share of time up, mean price while up, with a doubt; what was never up is left out."""
    seen = history(
        [3600.0 * 6, 3600.0 * 2],
        [[1, 1, 0], [0, 1, 0]],
        [[0.4, 0.2, 9.0], [5.0, 0.4, 9.0]],
        names=("a", "b", "c"),
    )
    offers = estimated_offers(seen, kinds_of(seen))
    assert [each.name for each in offers.types] == ["a", "b"]
    assert [each.availability for each in offers.types] == [0.75, 1.0]
    assert offers.prices == pytest.approx([0.4, 0.25])
    assert offers.on_demand_price_per_unit_hour == pytest.approx(0.2)
    doubted = estimated_offers(seen, kinds_of(seen), doubt_hours=2.0)
    assert [each.availability for each in doubted.types] == [0.7, 0.9]


def test_estimates_refused():
    """Negative doubt, markets that nothing is known of, without a price, or never up."""
    seen = history([10.0], [[1]])
    with pytest.raises(InputError, match="doubt_hours"):
        estimated_offers(seen, kinds_of(seen), doubt_hours=-1.0)
    with pytest.raises(InputError, match="nothing is known"):
        estimated_offers(seen, {})
    unpriced = history([10.0], [[1]], [[math.nan]])
    with pytest.raises(InputError, match="price_per_hour"):
        estimated_offers(unpriced, kinds_of(unpriced))
    priced = estimated_offers(unpriced, {"m0": MachineKind(10.0, None, 0.5)})
    assert priced.prices == pytest.approx([0.5])
    down = history([10.0], [[0]])
    with pytest.raises(InputError, match="no market was up"):
        estimated_offers(down, kinds_of(down))


def test_shocks_are_found_again():
    """Histories drawn from calm and shock give back their odds; calm comes first."""
    random = np.random.default_rng(5)
    hours = 60_000
    shocked = random.uniform(size=hours) < 0.1
    odds = np.where(shocked[:, np.newaxis], [0.3, 0.5, 0.2, 0.4], [0.98, 0.95, 0.99, 0.97])
    seen = history(np.full(hours, 3600.0), random.uniform(size=odds.shape) < odds)
    found = fitted_shocks(seen)
    assert found.weights == pytest.approx([0.9, 0.1], abs=0.01)
    assert found.up[0] == pytest.approx([0.98, 0.95, 0.99, 0.97], abs=0.01)
    assert found.up[1] == pytest.approx([0.3, 0.5, 0.2, 0.4], abs=0.03)


def test_independent_types_have_no_shocks():
    """Where types fail each by itself, one state is enough; each keeps its availability."""
    seen = random_history(3, shocks=0.0)
    found = fitted_shocks(seen)
    assert found.weights.size == 1
    assert found.up[0] == pytest.approx(seen.availability, abs=1e-9)


@given(st.integers(0, 30), st.floats(0.0, 100.0))
def test_shocks_keep_each_type_as_available(seed, doubt):
    """However many states there are, a type by itself is as available as estimated by itself."""
    seen = random_history(seed, hours=300)
    shocks = fitted_shocks(seen, doubt_hours=doubt)
    alone = estimated_offers(seen, kinds_of(seen), doubt_hours=doubt)
    assert shocks.weights @ shocks.up == pytest.approx(
        [each.availability for each in alone.types], abs=1e-6
    )


def test_shocks_explain_what_independence_does_not():
    """A pool in a history with shocks: its availability is near that by shocks, far from apart."""
    seen = random_history(11)
    apart, together = (make(seen, kinds_of(seen)) for make in (estimated_offers, correlated_offers))
    counts = np.ones(4, dtype=np.int64)
    planned = plan(apart, 10.0, 0.9999)
    true = 1.0 - float(seen.seconds @ seen.up.any(axis=1)) / seen.total_seconds
    assert shortfall(apart, counts, 1) < 0.01 * true
    assert shortfall(together, counts, 1) == pytest.approx(true, rel=0.5)
    assert realised(seen, planned).availability < 0.9999


def test_shocks_refused():
    """Shapes or odds that cannot be are refused."""
    for weights, up in (
        (np.array([0.5]), np.array([[0.9]])),
        (np.array([1.0]), np.array([[1.5]])),
        (np.array([1.0]), np.array([[0.9, 0.8]])),
    ):
        with pytest.raises(ValueError, match="must"):
            CommonShocks(("a",), weights, up)


def test_realised_by_hand():
    """A plan of two types in four hours: there for three, and paid for what was up."""
    seen = history(
        [3600.0] * 4,
        [[1, 1], [1, 0], [0, 1], [1, 1]],
        [[1.0, 2.0], [1.0, 9.0], [9.0, 4.0], [3.0, 2.0]],
    )
    offers = estimated_offers(seen, kinds_of(seen))
    planned = plan(offers, 10.0, 0.9)
    assert [each.count for each in planned.rented] == [1, 1]
    found = realised(seen, planned)
    assert found.availability == 1.0
    assert found.price_per_hour == pytest.approx((3.0 + 1.0 + 4.0 + 5.0) / 4)
    both = replace(planned, capacity=20.0)
    assert [each.count for each in both.rented] == [1, 1]
    assert realised(seen, both).availability == 0.5


def test_shuffled_history_is_independent():
    """Turning each market by itself: the mean over turns is what independence says."""
    seen = random_history(7, hours=800, types=3)
    planned = plan(estimated_offers(seen, kinds_of(seen)), 10.0, 0.99)
    draws = shuffled_availability(seen, planned, draws=200, random=np.random.default_rng(1))
    assert draws.shape == (200,)
    assert 1.0 - draws.mean() == pytest.approx(planned.availability_shortfall, rel=0.25)
    assert draws.mean() > realised(seen, planned).availability


def test_windows():
    """Plans of a trailing window are held to the time after it; an oracle's hold by definition."""
    seen = random_history(4, hours=24 * 40, types=5)

    def planned(target):
        return lambda part: plan(estimated_offers(part, kinds_of(seen)), 10.0, target)

    common = {"step_seconds": 5 * DAY, "first_seconds": 10 * DAY}
    found = rolled(seen, planned(0.95), window_seconds=10 * DAY, **common)
    assert [each.begin for each in found] == [10 * DAY + 5 * DAY * i for i in range(6)]
    assert found[-1].end == pytest.approx(seen.end)
    assert 0.9 < mean_availability(found) < 1.0
    oracle = rolled(seen, planned(0.95), window_seconds=None, **common)
    assert mean_availability(oracle) >= mean_availability(found) - 0.02
    hopeless = rolled(seen, planned(1.0 - 1e-15), window_seconds=10 * DAY, **common)
    assert all(each.plan is None for each in hopeless)
    assert math.isnan(mean_availability(hopeless))
    with pytest.raises(InputError, match="first plan"):
        rolled(
            seen,
            planned(0.95),
            window_seconds=DAY,
            step_seconds=DAY,
            first_seconds=99 * DAY,
        )


def test_plan_of_other_markets():
    """A history without a market of the plan says nothing of it."""
    seen = random_history(2, hours=200)
    planned = plan(estimated_offers(seen, kinds_of(seen)), 10.0, 0.9)
    other = history([10.0], [[1]], names=("elsewhere",))
    with pytest.raises(InputError, match="market of the plan"):
        realised(other, planned)


@pytest.fixture(scope="module")
def spot():
    path = shared("traces/ec2-spot-2015/ec2-spot-us-east-1-2015.csv.gz")
    ecu = {
        "c3.xlarge": 14.0,
        "d2.8xlarge": 116.0,
        "g2.2xlarge": 26.0,
        "m3.medium": 3.0,
        "r3.large": 6.5,
    }
    markets = load_histories(str(path))
    kinds = {
        each.market: MachineKind(ecu[each.instance_type], each.on_demand_per_hour)
        for each in markets
    }
    return joined(markets), kinds


def test_real_markets(spot):
    """The spot markets of 2015: a plan for four nines has three, for a third of on demand."""
    seen, kinds = spot
    planned = plan(estimated_offers(seen, kinds, doubt_hours=3.0), 500.0, 0.9999)
    assert 0.3 < planned.on_demand_share < 0.4
    found = realised(seen, planned)
    assert 0.998 < found.availability < 0.9995
    draws = shuffled_availability(seen, planned, draws=20, random=np.random.default_rng(1))
    assert draws.mean() > found.availability
