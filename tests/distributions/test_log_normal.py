"""The log-normal distribution cut at a limit: against SciPy, quadrature and by hand."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import lognorm, norm

from foresail.distributions.kernels.log_normal import (
    STANDARD_QUANTILES,
    upper_quantile,
    upper_tail,
)
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.summary import summarise
from foresail.kernels.columns import Q50, QUANTILE_LEVELS, URGENCY

MUS = st.floats(0.0, 12.0)
SIGMAS = st.floats(0.05, 4.0)
SHARES = st.floats(0.01, 0.99)


@given(st.floats(-37.0, 37.0))
def test_tails_are_those_of_the_normal_distribution(z):
    """Far out too, where one minus a probability would be one."""
    assert upper_tail(z) == pytest.approx(norm.sf(z), rel=1e-11)
    if z > -7.0:
        assert upper_quantile(upper_tail(z)) == pytest.approx(z, rel=1e-9, abs=1e-9)


@given(st.floats(1e-12, 1 - 1e-12))
def test_quantile_of_the_normal_distribution(probability):
    """AS 241, which the standard library uses too; the ends are infinite."""
    expected = -NormalDist().inv_cdf(probability)
    assert upper_quantile(probability) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert (upper_quantile(0.0), upper_quantile(1.0)) == (math.inf, -math.inf)


def test_quantiles_that_are_written_out_are_those_computed():
    """To the last digit: a belief is the same whichever way it is summarised."""
    assert [upper_quantile(1.0 - level) for level in QUANTILE_LEVELS] == [*STANDARD_QUANTILES]


@given(MUS, SIGMAS, SHARES)
def test_uncut_is_the_log_normal_distribution(mu, sigma, share):
    """Mean, quantiles and survival without a cap are the textbook's."""
    belief, textbook = LogNormal(mu, sigma), lognorm(s=sigma, scale=math.exp(mu))
    assert belief.mean() == pytest.approx(math.exp(mu + sigma**2 / 2), rel=1e-12)
    assert belief.quantile(share) == pytest.approx(textbook.ppf(share), rel=1e-9)
    values = textbook.ppf([0.001, 0.2, share, 0.999])
    assert belief.survival(values) == pytest.approx(textbook.sf(values), rel=1e-9)


@given(MUS, SIGMAS, SHARES, SHARES)
def test_cut_moves_what_is_beyond_onto_the_cap(mu, sigma, share, level):
    """Quantiles are those of the uncut one, at most the cap, where the rest of the mass is."""
    uncut = LogNormal(mu, sigma)
    cap = uncut.quantile(share)
    belief = LogNormal(mu, sigma, cap)
    assert belief.quantile(level) == min(uncut.quantile(level), cap)
    assert belief.survival(0.999999 * cap) == pytest.approx(1.0 - share, abs=1e-4)
    assert belief.survival(cap) == 0.0


@given(MUS, SIGMAS, SHARES, SHARES)
def test_mean_and_urgency_are_those_of_its_quantiles(mu, sigma, cut, seen):
    """Closed forms against the mean over evenly spaced levels, cut and after an elapsed time."""
    uncut = LogNormal(mu, sigma)
    cap = uncut.quantile(cut)
    belief = LogNormal(mu, sigma, cap, 0.9 * min(cap, uncut.quantile(seen)))
    levels = (np.arange(4000) + 0.5) / 4000
    sample = np.array([belief.quantile(level) for level in levels])
    assert belief.mean() == pytest.approx(sample.mean(), rel=2e-3)
    expected = np.mean(1.0 / np.maximum(sample, 10.0))
    assert summarise(belief)[URGENCY] == pytest.approx(expected, rel=5e-3)


@given(MUS, SIGMAS)
def test_urgency_is_the_expected_inverse_by_quadrature(mu, sigma):
    """A second road to the same number: the kink at the bound costs the quadrature little."""
    belief = LogNormal(mu, sigma, math.exp(mu + sigma))
    urgency = belief.expectation(lambda t: 1.0 / np.maximum(t, 10.0))
    assert summarise(belief)[URGENCY] == pytest.approx(urgency, rel=2e-4)


def test_median_is_exact():
    """No rounding of the standard normal's median: exp(mu), or the cap."""
    assert summarise(LogNormal(5.0, 1.3))[Q50] == math.exp(5.0)
    assert summarise(LogNormal(5.0, 1.3, 60.0))[Q50] == 60.0


@given(MUS, SIGMAS, st.floats(0.0, 1e5), st.floats(0.0, 1e5))
def test_conditions_are_kept_exactly(mu, sigma, one, other):
    """In two steps or in one the belief is the same, to the last bit."""
    belief = LogNormal(mu, sigma, 2e5)
    assert belief.given(one).given(other) == belief.given(max(one, other))


@pytest.mark.parametrize("deviations", [5.0, 15.0, 35.0])
def test_a_belief_outlived_by_far_stays_a_distribution(deviations):
    """Deep in the tail the quantiles still ascend from the elapsed time and frame the mean."""
    elapsed = math.exp(5.0 + deviations)
    belief = LogNormal(5.0, 1.0).given(elapsed)
    quantiles = [belief.quantile(level) for level in (0.0, 0.1, 0.5, 0.9, 0.99)]
    assert quantiles == sorted(set(quantiles))
    assert quantiles[0] == elapsed
    assert quantiles[1] < belief.mean() < quantiles[-1]
    expected = elapsed * (1.0 + 1.0 / deviations)  # Mills' ratio, to first order
    assert belief.mean() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    "parameters",
    [
        (5.0, 0.0),
        (5.0, math.nan),
        (math.inf, 1.0),
        (5.0, 50.0),
        (5.0, 1.0, 0.0),
        (5.0, 1.0, 60.0, 60.0),
        (5.0, 1.0, 60.0, -1.0),
        (0.0, 0.1, math.inf, 1e9),
    ],
)
def test_refuses_what_is_no_distribution(parameters):
    """There must be scatter, and something must be left."""
    with pytest.raises(ValueError, match="must"):
        LogNormal(*parameters)
