"""What every distribution promises, and what each kind adds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.distributions.basic import SHARE_WEIGHTS, SHARES, Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.operations import breaks, node_levels, places_at
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.summary import belief_row, summarise
from foresail.distributions.truncated_normal import TruncatedNormal
from foresail.kernels.columns import (
    BELIEF_LEVELS,
    PREDICTED,
    Q10,
    QUANTILE_LEVELS,
    URGENCY,
)
from foresail.model.distribution import Distribution
from made_distributions import BOUNDED, DISTRIBUTIONS, SECONDS, empiricals, truncated_normals

LEVELS = st.floats(0.001, 0.999)
LONGEST = 1e8


@given(DISTRIBUTIONS)
def test_is_a_distribution(belief):
    """Every kind satisfies the protocol."""
    assert isinstance(belief, Distribution)


@given(DISTRIBUTIONS, LEVELS)
def test_quantile_inverts_survival(belief, level):
    """At a quantile at least the level has passed, and just below it no more than the level."""
    value = belief.quantile(level)
    slack = 1e-9 * max(value, 1.0)
    assert 1.0 - belief.survival(value + slack) >= level - 1e-9
    assert 1.0 - belief.survival(value - slack) <= level + 1e-6


@given(DISTRIBUTIONS)
def test_survival_falls_from_one_to_zero(belief):
    """Nothing is below zero or above the highest quantile, and survival never rises."""
    points = np.linspace(-1.0, min(belief.quantile(1.0), LONGEST), 50)
    survival = belief.survival(points)
    assert survival[0] == 1.0
    assert np.all(np.diff(survival) <= 1e-12)
    assert belief.survival([belief.quantile(1.0), np.inf]).tolist() == [0.0, 0.0]


@given(DISTRIBUTIONS)
def test_mean_is_the_expectation_of_the_quantity(belief):
    """The mean agrees with the expectation of the identity and lies between the extremes."""
    assert belief.mean() == pytest.approx(belief.expectation(lambda t: t), rel=1e-9, abs=1e-9)
    slack = 1e-9 * min(belief.quantile(1.0), LONGEST)
    assert belief.quantile(0.0) - slack <= belief.mean() <= belief.quantile(1.0) + slack


@given(DISTRIBUTIONS)
def test_given_nothing_is_itself(belief):
    """Conditioning on no elapsed time changes nothing."""
    assert belief.given(0.0) is belief


@given(DISTRIBUTIONS, SECONDS)
def test_given_leaves_no_mass_before_elapsed(belief, elapsed):
    """What is known to be over has no probability."""
    later = belief.given(elapsed)
    assert later.quantile(0.0) >= elapsed or belief.survival(elapsed) == 1.0
    assert later.survival(np.nextafter(elapsed, -1.0)) == 1.0


@given(DISTRIBUTIONS, SECONDS.filter(bool), SECONDS)
def test_given_is_bayes(belief, elapsed, further):
    """The odds to exceed a later value are the ratio of the odds before."""
    left = float(belief.survival(elapsed))
    if left > 1e-6:
        expected = float(belief.survival(elapsed + further)) / left
        actual = float(belief.given(elapsed).survival(elapsed + further))
        assert actual == pytest.approx(expected, abs=1e-6)


@given(DISTRIBUTIONS, SECONDS, SECONDS)
def test_given_twice_is_given_once(belief, one, other):
    """Conditioning in two steps is conditioning on the longer one."""
    twice, once = belief.given(one).given(other), belief.given(max(one, other))
    if float(belief.survival(max(one, other))) > 1e-6:
        for level in (0.1, 0.5, 0.9):
            assert twice.quantile(level) == pytest.approx(once.quantile(level), rel=1e-5, abs=1e-3)
    else:
        assert twice.quantile(0.0) >= max(one, other)


@given(DISTRIBUTIONS)
def test_summary_agrees_with_the_methods(belief):
    """The row holds what the distribution itself says, bit by bit."""
    row = summarise(belief)
    assert row[PREDICTED] == belief.mean()
    assert [row[Q10 + i] for i in range(5)] == [belief.quantile(p) for p in QUANTILE_LEVELS]
    assert 0.0 < row[URGENCY] <= 0.1 + 1e-12


@given(st.one_of(SECONDS.map(Point), empiricals()))
def test_urgency_is_the_expected_inverse(belief):
    """The urgency is the mean of 1 / max(t, 10 s)."""
    urgency = belief.expectation(lambda t: 1.0 / np.maximum(t, 10.0))
    assert summarise(belief)[URGENCY] == pytest.approx(urgency)


def test_urgency_of_quantiles_is_exact():
    """Against a fine sample of the quantile function."""
    belief = Quantiles([0.0, 0.2, 0.7, 1.0], [1.0, 30.0, 400.0, 90_000.0])
    levels = (np.arange(1_000_000) + 0.5) / 1_000_000
    sample = np.interp(levels, belief.levels, belief.values)
    expected = np.mean(1.0 / np.maximum(sample, 10.0))
    assert summarise(belief)[URGENCY] == pytest.approx(expected, rel=1e-6)


def test_a_foreign_distribution_is_summarised_by_its_methods():
    """Anything that satisfies the protocol has a row."""

    class Wrapped:
        def __init__(self, inner):
            self.mean, self.quantile = inner.mean, inner.quantile
            self.expectation = inner.expectation

    belief = Empirical([5.0, 50.0, 500.0], [1.0, 2.0, 1.0])
    assert summarise(Wrapped(belief)) == pytest.approx(summarise(belief))


def test_crossing_quantiles_are_put_in_order():
    """Values that descend are rearranged."""
    assert Quantiles([0.0, 0.5, 1.0], [3.0, 1.0, 2.0]).values.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("elapsed", [100.0, 250.0])
@pytest.mark.parametrize(
    "belief",
    [
        Point(90.0),
        Quantiles([0.0, 1.0], [10.0, 100.0]),
        Empirical([10.0, 100.0]),
        LogNormal(3.0, 1.0, 100.0),
        LogNormal(0.0, 0.1),
    ],
)
def test_an_outlived_belief_is_a_point_at_the_elapsed_time(belief, elapsed):
    """Nothing was thought to last so long: the belief is that it ends at once."""
    assert belief.given(elapsed) == Point(elapsed)


@pytest.mark.parametrize("belief", [Quantiles([0.0, 1.0], [1.0, 2.0]), Empirical([1.0, 2.0])])
def test_arrays_cannot_be_changed(belief):
    """A distribution is a value."""
    with pytest.raises(ValueError, match="read-only"):
        belief.values[0] = 5.0


@pytest.mark.parametrize(
    ("levels", "values"),
    [
        ([0.0], [1.0]),
        ([0.0, 1.0], [1.0]),
        ([0.1, 1.0], [1.0, 2.0]),
        ([0.0, 0.5, 0.5, 1.0], [1.0, 2.0, 3.0, 4.0]),
        ([0.0, 1.0], [-1.0, 2.0]),
        ([0.0, 1.0], [1.0, np.inf]),
    ],
)
def test_quantiles_refuse_what_is_no_distribution(levels, values):
    """Levels must frame the whole probability and values be runtimes."""
    with pytest.raises(ValueError, match="must"):
        Quantiles(levels, values)


@pytest.mark.parametrize(
    ("values", "weights"),
    [([], None), ([1.0], [1.0, 2.0]), ([-1.0], None), ([1.0], [0.0]), ([1.0, 2.0], [2.0, -1.0])],
)
def test_empirical_refuses_what_is_no_distribution(values, weights):
    """There must be weight, and none of it negative."""
    with pytest.raises(ValueError, match="must"):
        Empirical(values, weights)


@given(DISTRIBUTIONS, st.lists(SECONDS, min_size=1, max_size=5))
def test_cumulative_is_the_rest(belief, values):
    """What is not exceeded, for numbers and arrays of any shape alike."""
    at = np.array(values)[:, np.newaxis]
    assert belief.cumulative(at).shape == at.shape
    assert belief.cumulative(at) + belief.survival(at) == pytest.approx(np.ones_like(at))
    assert float(belief.cumulative(values[0])) == belief.cumulative(at)[0, 0]
    assert belief.cumulative(np.inf) == 1.0
    assert belief.cumulative(-1.0) == 0.0


@given(BOUNDED)
def test_mean_is_the_integral_of_the_survival(belief):
    """Between the values where the survival jumps or bends, by quadrature."""
    end = belief.quantile(1.0)
    places = np.append(breaks(belief), places_at(belief, node_levels(41)))
    places = np.unique(np.append(places[(places > 0.0) & (places < end)], [0.0, end]))
    gaps = np.diff(places)
    within = places[:-1, np.newaxis] + gaps[:, np.newaxis] * SHARES
    integral = float(gaps @ (belief.survival(within) @ SHARE_WEIGHTS))
    assert integral == pytest.approx(belief.mean(), rel=1e-5, abs=1e-6)


@given(DISTRIBUTIONS, st.floats(0.01, 100.0), LEVELS)
def test_scaled_is_the_same_in_another_unit(belief, factor, level):
    """Quantiles, mean and survival follow the factor."""
    scaled = belief.scaled(factor)
    assert scaled.quantile(level) == pytest.approx(belief.quantile(level) * factor, rel=1e-6)
    assert scaled.mean() == pytest.approx(belief.mean() * factor, rel=1e-9)
    between = 1.000001 * belief.quantile(level) + 1e-6
    expected = float(belief.survival(between))
    assert float(scaled.survival(between * factor)) == pytest.approx(expected, abs=1e-6)


@given(DISTRIBUTIONS, st.integers(0, 2**32 - 1))
def test_samples_follow_the_distribution(belief, seed):
    """The share of draws up to a quantile is its level; nothing lies outside the range."""
    sample = belief.sample(np.random.default_rng(seed), 2_000)
    assert sample.shape == (2_000,)
    slack = 1e-9 * max(belief.quantile(0.0), 1.0)
    assert sample.min() >= belief.quantile(0.0) - slack
    assert sample.max() <= belief.quantile(1.0) * (1.0 + 1e-9) + slack
    for level in (0.1, 0.5, 0.9):
        value = belief.quantile(level)
        around = np.array([value - 1e-6 * value - 1e-9, value + 1e-6 * value + 1e-9])
        low, high = belief.cumulative(around)
        assert np.mean(sample <= around[0]) <= high + 0.07
        assert np.mean(sample <= around[1]) >= low - 0.07


@given(DISTRIBUTIONS)
def test_belief_row_holds_the_quantiles(belief):
    """Level by level, ascending; the last of a log-normal keeps the mean of what is beyond."""
    row = belief_row(belief)
    quantiles = [belief.quantile(level) for level in BELIEF_LEVELS]
    if isinstance(belief, LogNormal):
        beyond = belief.given(row[-2]).mean()
        quantiles[-1] = min(max(2.0 * beyond - row[-2], row[-2]), belief.cap)
    assert row.tolist() == pytest.approx(quantiles, rel=1e-12)
    assert np.all(np.diff(row[:-1]) >= -1e-9 * row[:-2])


@given(DISTRIBUTIONS)
def test_nothing_is_left_from_the_largest_value_on(belief):
    """Nothing lasts longer than the highest quantile; everything lasts longer than nothing."""
    largest = belief.quantile(1.0)
    assert belief.survival(-1.0) == 1.0
    if 0.0 < largest < np.inf:
        assert belief.survival(largest) <= 0.0
        assert belief.given(largest) == Point(largest)


@given(DISTRIBUTIONS)
def test_impossible_factors_are_refused(belief):
    """By every kind, in the same words."""
    for factor in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="factor must be above 0"):
            belief.scaled(factor)


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (Uniform, (-1.0, 2.0)),
        (Uniform, (2.0, 2.0)),
        (Uniform, (0.0, np.inf)),
        (TruncatedNormal, (np.nan, 1.0)),
        (TruncatedNormal, (1.0, 0.0)),
        (TruncatedNormal, (1.0, 1.0, -1.0)),
        (TruncatedNormal, (0.0, 1.0, 50.0)),
    ],
)
def test_further_kinds_refuse_what_is_no_distribution(made, arguments):
    """Parameters that no distribution has."""
    with pytest.raises(ValueError, match="must"):
        made(*arguments)


@given(truncated_normals(), st.floats(0.001, 0.999))
def test_truncated_normal_is_the_textbooks(belief, level):
    """Against SciPy, whose cut is in standard deviations."""
    stats = pytest.importorskip("scipy.stats")
    cut = (belief.low - belief.mu) / belief.sigma
    textbook = stats.truncnorm(cut, np.inf, loc=belief.mu, scale=belief.sigma)
    assert belief.quantile(level) == pytest.approx(textbook.ppf(level), rel=1e-6)
    at = textbook.ppf([0.1, level, 0.99])
    assert belief.survival(at) == pytest.approx(textbook.sf(at), rel=1e-6)
    mean = float(textbook.stats(moments="m"))
    assert belief.mean() == pytest.approx(mean, rel=1e-6)
