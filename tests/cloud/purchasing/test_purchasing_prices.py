"""What jobs cost on transient capacity and spot blocks, and a month of sustained use."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.histories import Lifetimes
from foresail.cloud.purchasing.demand import (
    ON_DEMAND,
    TRANSIENT,
    job_prices,
    transient_cost,
)
from foresail.cloud.purchasing.offline import month_cost, unit_cost
from foresail.cloud.purchasing.terms import (
    CappedRevocation,
    ExponentialRevocation,
    ObservedRevocation,
    PurchaseTerms,
    TransientTerms,
)
from foresail.model.errors import InputError
from foresail_studies.purchasing.retired_offers import SPOT_BLOCK, SPOT_BLOCKS, PublishedTerms

TIERS = (1.0, 0.8, 0.6, 0.4)
DAY = TransientTerms(0.3, ExponentialRevocation(24.0))


@dataclass
class Fixed:
    """A revocation model of one probability and one mean run."""

    probability: float
    run: float

    def revoked(self, hours):
        return np.full(hours.shape, self.probability)

    def mean_run(self, hours):
        return np.full(hours.shape, self.run)


def test_golden_exponential_lifetimes():
    """M = 24 h, T = 6 h: R, E and the cost of an hour (spec section 4.1); T = 24 h as well."""
    hours = np.array([6.0, 24.0])
    assert DAY.revocation.revoked(hours)[0] == pytest.approx(0.2211992169, abs=1e-10)
    assert DAY.revocation.mean_run(hours)[0] == pytest.approx(2.875130015, abs=1e-9)
    cost = transient_cost(hours, DAY)
    assert cost / hours == pytest.approx([0.4866382773, 0.8217567264], abs=1e-10)


def test_golden_transient_beats_on_demand_below_49_55_hours():
    """The longest job for which transient capacity is cheaper in expectation."""
    terms = PurchaseTerms(transient=DAY)
    assert job_prices(np.array([49.54, 49.56]), terms).kind.tolist() == [TRANSIENT, ON_DEMAND]


def test_golden_cost_of_a_useful_hour():
    """T = 24, R = .95, E = 8: 1.060 per useful hour."""
    terms = PurchaseTerms(transient=TransientTerms(0.3, Fixed(0.95, 8.0)))
    cost = transient_cost(np.array([24.0]), terms.transient)
    assert cost / 24.0 == pytest.approx(1.060, abs=5e-4)
    assert job_prices(np.array([24.0]), terms).kind[0] == ON_DEMAND


def test_a_cap_revokes_whatever_outlives_it():
    """Google: R = 1 beyond 24 h, and the mean run is that of lives cut there."""
    capped = CappedRevocation(ExponentialRevocation(24.0), 24.0)
    hours = np.array([24.0, 24.1])
    assert capped.revoked(hours).tolist() == [pytest.approx(1 - np.exp(-1)), 1.0]
    assert capped.mean_run(hours)[1] == pytest.approx(24.0 * (1 - np.exp(-1)))


def test_observed_lifetimes_equal_every_beginning():
    """Lives of 1, 2, 4, 8 h: a machine taken at each of many moments while one is up."""
    lives = np.array([4.0, 1.0, 8.0, 2.0])
    model = ObservedRevocation(Lifetimes(lives, np.ones(4, bool)))
    left = np.concatenate([np.arange(0.0005, life, 0.001) for life in lives])
    for hours in (0.5, 1.5, 4.0, 5.0, 9.0):
        lost = left[left < hours]
        at = np.array([hours])
        assert model.revoked(at)[0] == pytest.approx(lost.size / left.size, abs=1e-3)
        assert model.mean_run(at)[0] == pytest.approx(lost.mean(), abs=1e-3)


def test_moments_whose_future_was_not_seen_do_not_count():
    """Lives of 2 h and 3 h, and one cut off at 4 h: from its first 3 h one sees an hour ahead."""
    lives = Lifetimes(np.array([4.0, 2.0, 3.0]), np.array([False, True, True]))
    model = ObservedRevocation(lives)
    assert model.revoked(np.array([1.0, 9.0])).tolist() == [pytest.approx(2 / (5 + 3)), 1.0]
    with pytest.raises(InputError, match="no revocation"):
        ObservedRevocation(Lifetimes(np.ones(2), np.zeros(2, bool)))


@given(st.integers(0, 2**32 - 1))
def test_observed_lifetimes_approach_the_exponential(seed):
    """20,000 draws: probability and mean run within a few percent."""
    draws = np.random.default_rng(seed).exponential(24.0, 20_000)
    observed = ObservedRevocation(Lifetimes(draws, np.ones(draws.size, bool)))
    exact = ExponentialRevocation(24.0)
    hours = np.array([6.0, 24.0, 48.0])
    assert observed.revoked(hours) == pytest.approx(exact.revoked(hours), abs=0.02)
    assert observed.mean_run(hours) == pytest.approx(exact.mean_run(hours), rel=0.06)


def test_blocks_hold_whole_jobs():
    """The smallest block of at least the runtime; none beyond six hours."""
    hours = np.array([0.2, 1.0, 1.01, 6.0, 6.01])
    prices = PublishedTerms(spot_blocks=SPOT_BLOCKS).further_prices(hours)
    assert prices.tolist() == pytest.approx([0.55, 0.55, 0.58, 0.70, np.inf])


@given(st.floats(0.01, 6.0))
def test_blocks_are_never_chosen_where_transient_capacity_is_sold(hours):
    """Jobs of up to 6 h are cheaper on transient machines (paper 003, section 5.5.2)."""
    terms = PublishedTerms(transient=DAY, spot_blocks=SPOT_BLOCKS)
    assert job_prices(np.array([hours]), terms).kind[0] == TRANSIENT
    assert job_prices(np.array([hours]), terms.without_transient()).kind[0] == SPOT_BLOCK


def test_golden_sustained_use():
    """Cost of a share of a month, the average price, and a demand of 10.6 units."""
    shares = np.array([0.25, 0.5, 0.6, 0.75, 1.0])
    assert unit_cost(shares, TIERS) == pytest.approx([0.25, 0.45, 0.51, 0.60, 0.70])
    assert unit_cost(shares, TIERS)[[0, 1, 3, 4]] / shares[[0, 1, 3, 4]] == pytest.approx(
        [1.0, 0.9, 0.8, 0.7]
    )
    assert month_cost(10.6, TIERS) == pytest.approx(7.51)


@pytest.mark.parametrize("hours", [0.0, -1.0, float("nan")])
def test_a_lifetime_is_above_0(hours):
    """An error that names the value."""
    with pytest.raises(InputError, match="'mean_hours': out of range"):
        ExponentialRevocation(hours)
    with pytest.raises(InputError, match="'cap_hours': out of range"):
        CappedRevocation(ExponentialRevocation(), hours)
