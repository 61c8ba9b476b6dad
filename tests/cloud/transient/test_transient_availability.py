"""The availability polynomial: goldens, enumeration, properties, log space, sizes."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.transient.availability import (
    allowed_shortfall,
    best_shortfall,
    capacity_distribution,
    capacity_masses,
    counted,
    shortfall,
    shortfall_after,
)
from foresail.cloud.transient.offers import CommonShocks, Offers, TransientType
from foresail.model.errors import InputError
from transient_offers import FIVE, enumerated_shortfall

POOL = Offers(
    (
        TransientType("A", 4.0, 0.90, 1.0),
        TransientType("B", 8.0, 0.95, 1.0),
        TransientType("C", 2.0, 0.99, 1.0),
    )
)
COUNTS = np.array([2, 1, 4])

groups = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 3), st.floats(0.0, 1.0)), min_size=1, max_size=6
)


def offers_of(drawn):
    types = (TransientType(f"t{i}", float(u), p, 1.0) for i, (u, _, p) in enumerate(drawn))
    return Offers(tuple(types)), np.array([count for _, count, _ in drawn])


def test_golden_pool():
    """The specification's pool: four coefficients, and the availability of every capacity."""
    assert POOL.unit == 2
    masses = capacity_distribution(POOL, COUNTS, 13)
    found = {2 * k: mass for k, mass in enumerate(masses) if mass > 0.0}
    assert found == pytest.approx({0: 5e-5, 8: 0.00635, 16: 0.14715, 24: 0.84645})
    expected = {8: 0.99995, 9: 0.9936, 16: 0.9936, 17: 0.84645, 24: 0.84645, 25: 0.0}
    for capacity, availability in expected.items():
        short = shortfall(POOL, COUNTS, POOL.units_for(capacity))
        assert 1.0 - short == pytest.approx(availability, abs=1e-12)


@given(groups, st.integers(1, 40))
def test_distribution_against_enumeration(drawn, needed):
    """The convolution gives what looking at all patterns gives, and sums to 1."""
    offers, counts = offers_of(drawn)
    units = offers.units_for(needed)
    masses = capacity_distribution(offers, counts, units)
    assert masses.sum() == pytest.approx(1.0)
    expected = enumerated_shortfall(offers, counts, units)
    assert shortfall(offers, counts, units) == pytest.approx(expected, abs=1e-12)


@given(groups, st.integers(1, 40))
def test_cap_is_exact(drawn, needed):
    """Counting everything beyond the needed together changes nothing below."""
    offers, counts = offers_of(drawn)
    whole = capacity_distribution(offers, counts, int(counts @ offers.units) + needed)
    capped = capacity_distribution(offers, counts, needed)
    assert capped[:-1] == pytest.approx(whole[:needed], abs=1e-15)
    assert capped[-1] == pytest.approx(whole[needed:].sum(), abs=1e-12)


@given(groups)
def test_availability_falls_with_capacity(drawn):
    """More capacity is never there more often."""
    offers, counts = offers_of(drawn)
    shorts = [shortfall(offers, counts, needed) for needed in range(1, 40)]
    assert all(later >= former - 1e-12 for former, later in pairwise(shorts))


@given(groups, st.integers(0, 5), st.integers(1, 40))
def test_one_more_machine_never_hurts(drawn, place, needed):
    """Adding a machine of any type leaves the capacity there as often or more often."""
    offers, counts = offers_of(drawn)
    more = counts.copy()
    more[place % counts.size] += 1
    assert shortfall(offers, more, needed) <= shortfall(offers, counts, needed) + 1e-12


@given(groups, st.integers(1, 40), st.sampled_from([-1, 1]))
def test_shortfall_after_a_change(drawn, needed, change):
    """The shortfall after any one change, for all types at once, is that of the changed pool."""
    offers, counts = offers_of(drawn)
    found = shortfall_after(offers.units, counts, offers.up[0], needed, change)
    for i in range(counts.size):
        changed = counts.copy()
        changed[i] = max(changed[i] + change, 0)
        assert found[i] == pytest.approx(shortfall(offers, changed, needed), abs=1e-12)


def test_shocks_are_a_mean_of_polynomials():
    """Under shocks the shortfall is the mean of those in each state, not that of mean types."""
    up, weights = np.array([[0.99, 0.98, 0.97], [0.5, 0.4, 0.6]]), np.array([0.9, 0.1])
    shocks = CommonShocks(("A", "B", "C"), weights, up)
    offers = Offers(POOL.types, shocks)
    mean = Offers(
        tuple(
            TransientType(each.name, each.capacity, float(p), 1.0)
            for each, p in zip(POOL.types, weights @ up, strict=True)
        )
    )
    assert shortfall(offers, COUNTS, 4) == pytest.approx(enumerated_shortfall(offers, COUNTS, 4))
    assert shortfall(offers, COUNTS, 4) > 1.5 * shortfall(mean, COUNTS, 4)
    assert best_shortfall(offers) == pytest.approx(0.9 * 0.01 * 0.02 * 0.03 + 0.1 * 0.5 * 0.6 * 0.4)


def test_fractional_capacities_are_counted_exactly():
    """Capacities of 6.5 and 13 are 1 and 2 of a unit; 20 take four units."""
    types = (TransientType("x", 6.5, 0.9, 1.0), TransientType("y", 13.0, 0.9, 1.0))
    offers = Offers(types)
    assert float(offers.unit) == 6.5
    assert offers.units.tolist() == [1, 2]
    assert offers.units_for(19.5) == 3
    assert offers.units_for(20.0) == 4


def test_large_pool_takes_less_than_a_second():
    """1,000 types and 10,000 units of capacity."""
    random = np.random.default_rng(1)
    units, up = random.integers(1, 64, 1_000), random.uniform(0.9, 0.999, 1_000)
    capacity_masses(units[:2], up[:2], 10)
    begin = time.process_time()
    capacity_masses(units, up, 10_000)
    assert time.process_time() - begin < 1.0


def test_allowed_shortfall_keeps_the_written_digits():
    """Ten nines leave exactly 1e-10, and extra nines a tenth each."""
    assert allowed_shortfall(0.9999999999) == 1e-10
    assert allowed_shortfall(0.999, 2.0) == pytest.approx(1e-5, rel=1e-12)
    assert allowed_shortfall(0.5) == 0.5


@pytest.mark.parametrize("availability", [-0.1, 0.0, 1.0, 1.5, math.nan])
def test_no_such_target(availability):
    """Targets outside (0, 1) are refused by name."""
    with pytest.raises(InputError, match="availability"):
        allowed_shortfall(availability)


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("capacity", {"capacity": 0.0}),
        ("capacity", {"capacity": math.inf}),
        ("availability", {"availability": 1.2}),
        ("availability", {"availability": math.nan}),
        ("price_per_unit_hour", {"price_per_unit_hour": -1.0}),
        ("on_demand_price_per_unit_hour", {"on_demand_price_per_unit_hour": 0.0}),
        ("name", {"name": ""}),
    ],
)
def test_impossible_types(field, changed):
    """A type with a value that cannot be is refused, naming the field."""
    values = {"name": "a", "capacity": 1.0, "availability": 0.9, "price_per_unit_hour": 1.0}
    with pytest.raises(InputError) as error:
        TransientType(**(values | changed))
    assert error.value.field == field


def test_impossible_offers():
    """No types, two of one name, shocks of others, and incommensurable capacities are refused."""
    a = FIVE.types[0]
    with pytest.raises(InputError, match="no type"):
        Offers(())
    with pytest.raises(InputError, match="twice"):
        Offers((a, a))
    shocks = CommonShocks(("z",), np.ones(1), np.array([[0.9]]))
    with pytest.raises(InputError, match="other types"):
        Offers((a,), shocks)
    odd = TransientType("odd", math.pi, 0.9, 1.0)
    with pytest.raises(InputError, match="multiples of nothing"):
        Offers((a, odd))
    with pytest.raises(InputError, match="for each type"):
        counted(FIVE, [1, 2])
