"""Cumulative shares, variation, Tukey's box, and the test against a Poisson process."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.analysis.columns import MOST_POINTS, cumulative_shares, tukey_box, variation
from foresail.analysis.studies.interarrivals import asymptotic_p_value, distance_to_exponential

VALUES = st.lists(
    st.floats(min_value=0, max_value=1e9) | st.integers(0, 5).map(float), min_size=1, max_size=300
).map(np.array)


@given(VALUES)
def test_shares_are_those_counted(values):
    """Every row says which share of the sample is at most its value; the last row says all."""
    table = cumulative_shares(values)
    for value, share in table.iter_rows():
        assert share == pytest.approx((values <= value).mean())
    assert table["value"][-1] == values.max()
    assert table["share"][-1] == pytest.approx(1.0)
    assert table["value"].is_sorted()


def test_long_samples_are_thinned_where_it_matters():
    """At most 1,000 rows, all exact, with both ends and the far tail among them."""
    values = np.random.default_rng(3).lognormal(5, 3, 200_000)
    table = cumulative_shares(values, "seconds")
    assert 500 < table.height <= MOST_POINTS
    ordered = np.sort(values)
    exact = np.searchsorted(ordered, table["seconds"].to_numpy(), side="right") / values.size
    assert np.allclose(exact, table["share"].to_numpy())
    assert (ordered[0], ordered[-1]) == (table["seconds"][0], table["seconds"][-1])
    assert np.diff(table["share"].to_numpy()).max() < 0.005
    assert (table["share"].to_numpy() > 0.9999).sum() > 10


def test_tukey_box_golden():
    """Golden value G21 of the specification."""
    box = tukey_box(np.array([0.7, 0.8, 0.9, 1, 1, 1.1, 1.2, 1.9]))
    assert (box.quartile_1, box.median, box.quartile_3) == pytest.approx((0.875, 1, 1.125))
    assert (box.lower_whisker, box.upper_whisker) == pytest.approx((0.7, 1.2))
    assert box.outliers == (1.9,)


@given(VALUES)
def test_tukey_box_parts_the_sample(values):
    """Values are outliers or lie between the whiskers."""
    box = tukey_box(values)
    inside = (values >= box.lower_whisker) & (values <= box.upper_whisker)
    assert inside.sum() + len(box.outliers) == values.size


def test_variation_golden():
    """Golden value G22: the population's standard deviation over the mean."""
    assert variation(np.array([1.0, 2, 9])) == pytest.approx(0.889757, abs=1e-6)
    assert variation(np.array([16.0, 1, 1])) == pytest.approx(1.178511, abs=1e-6)
    assert np.isnan(variation(np.zeros(3)))


@pytest.mark.parametrize(
    ("gaps", "distance"),
    [([1, 2, 3, 4], 0.329680), ([0, 0, 0, 1, 1, 2, 10, 30], 0.458753)],
    ids=["even", "bursts"],
)
def test_distance_golden(gaps, distance):
    """Golden value G19, ties and zeros included."""
    assert distance_to_exponential(np.array(gaps, dtype=float)) == pytest.approx(distance, abs=1e-6)


def test_distance_is_scipys():
    """SciPy's one-sample test gives the same distance and, for many values, the same p-value."""
    stats = pytest.importorskip("scipy.stats")
    gaps = np.random.default_rng(1).weibull(0.9, 4000)
    expected = stats.kstest(gaps, "expon", args=(0, gaps.mean()), method="asymp")
    distance = distance_to_exponential(gaps)
    assert distance == pytest.approx(expected.statistic, rel=1e-12)
    assert asymptotic_p_value(distance, gaps.size) == pytest.approx(expected.pvalue, rel=1e-9)


def test_p_value_is_kolmogorovs():
    """Both series agree with SciPy over the whole range, and the ends are 1 and 0."""
    special = pytest.importorskip("scipy.special")
    for at in np.linspace(0.05, 6, 120):
        assert asymptotic_p_value(at, 1) == pytest.approx(special.kolmogorov(at), abs=1e-12)
    assert asymptotic_p_value(0.0, 10) == 1.0
    assert asymptotic_p_value(1.0, 10**6) == 0.0


@given(st.integers(2, 2000), st.integers(0, 10**6))
def test_poisson_is_seldom_refused(count, seed):
    """Gaps of a Poisson process lie near the exponential distribution."""
    gaps = np.random.default_rng(seed).exponential(7.0, count)
    assert 0 < distance_to_exponential(gaps) < 3 / np.sqrt(count)
