"""The golden values of the 3Sigma reference, where a distribution alone decides."""

import numpy as np
import pytest

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.operations import convolved
from foresail.distributions.packed import PackedDistributions
from made_distributions import merged

SLOTS = np.arange(0.0, 20.0, 2.5)


@pytest.mark.parametrize(
    ("belief", "value", "consumption", "best_effort"),
    [
        (
            Uniform(0.0, 10.0),
            [1, 1, 1, 0.75, 0.5, 0.25, 0, 0],
            [1, 0.75, 0.5, 0.25, 0],
            [0.0875, 0.08125, 0.075, 0.06875, 0.0625, 0.05625, 0.05, 0.04375],
        ),
        (
            Uniform(2.5, 7.5),
            [1, 1, 1, 1, 0.5, 0, 0, 0],
            [1, 1, 0.5, 0, 0],
            [0.0875, 0.08125, 0.075, 0.06875, 0.0625, 0.05625, 0.05, 0.04375],
        ),
    ],
    ids=["wide", "narrow"],
)
def test_two_job_example(belief, value, consumption, best_effort):
    """G1: chance to meet the deadline at 15, consumption, and value of the best-effort job."""
    assert belief.cumulative(15.0 - SLOTS) == pytest.approx(value)
    assert belief.survival(SLOTS[:5]) == pytest.approx(consumption)
    grid = PackedDistributions.pack([belief]).survival_grid([0.0], SLOTS[:5])
    assert grid[0] == pytest.approx(consumption)
    linear = [belief.expectation(lambda t, s=s: 0.1 * (1.0 - (s + t) / 40.0)) for s in SLOTS]
    assert linear == pytest.approx(best_effort)


def test_two_jobs_in_a_row_miss_by_an_eighth():
    """G1: P(T1 + T2 > 15) is 12.5 % for U(0,10), to 0.1 % of probability; 0 for U(2.5,7.5)."""
    wide = convolved([Uniform(0.0, 10.0)] * 2)
    assert float(wide.survival(15.0)) == pytest.approx(0.125, abs=1e-3)
    assert float(convolved([Uniform(2.5, 7.5)] * 2).survival(15.0)) == 0.0


@pytest.mark.parametrize(
    ("elapsed", "at", "survival"),
    [(2.5, [2.5, 5, 7.5, 10], [1, 2 / 3, 1 / 3, 0]), (5.0, [5, 7.5, 10], [1, 0.5, 0])],
)
def test_conditional_uniform(elapsed, at, survival):
    """G2: U(0,10) given an elapsed time, by the method and by the kernel."""
    belief = Uniform(0.0, 10.0)
    assert belief.given(elapsed).survival(at) == pytest.approx(survival)
    grid = PackedDistributions.pack([belief]).survival_grid([elapsed], np.array(at) - elapsed)
    assert grid[0] == pytest.approx(survival)


@pytest.mark.parametrize("kind", [Empirical, Histogram.from_values])
@pytest.mark.parametrize(
    ("elapsed", "left"),
    [(10, [20, 30, 40]), (15, [20, 30, 40]), (20, [30, 40]), (30, [40]), (39, [40])],
)
def test_conditional_atoms(kind, elapsed, left):
    """G2: atoms at or before the elapsed time are dropped."""
    later = kind([10.0, 20.0, 30.0, 40.0]).given(elapsed)
    shares = [later.cumulative(value) - later.cumulative(value - 1) for value in (10, 20, 30, 40)]
    expected = [1 / len(left) if value in left else 0 for value in (10, 20, 30, 40)]
    assert shares == pytest.approx(expected)


@pytest.mark.parametrize("kind", [Empirical, Histogram.from_values])
def test_exhausted_atoms(kind):
    """G2: at the largest value the history is exhausted."""
    belief = kind([10.0, 20.0, 30.0, 40.0])
    assert belief.survival(39.0) > 0.0
    assert belief.survival(40.0) == 0.0
    assert belief.given(40.0) == Point(40.0)


def test_over_estimate_value():
    """G6: the decayed value of a job whose whole history exceeds its deadline."""
    belief = Empirical([100.0, 200.0])

    def value(completion):
        return np.clip(1.0 - (completion - 80.0) / 400.0, 0.0, 1.0)

    assert belief.expectation(value) == pytest.approx(0.825)
    assert float(belief.cumulative(80.0)) == 0.0


def test_convolution():
    """G11: exact for discrete distributions."""
    pair = convolved([Empirical([1.0, 2.0]), Empirical([1.0, 3.0], [0.25, 0.75])])
    assert pair.values.tolist() == [2, 3, 4, 5]
    assert pair.probabilities.tolist() == [0.125, 0.125, 0.375, 0.375]
    three = convolved([Empirical([1.0, 2.0])] * 3)
    assert three.values.tolist() == [3, 4, 5, 6]
    assert three.probabilities.tolist() == [0.125, 0.375, 0.375, 0.125]


def test_restart_rule():
    """G13: what is left of the runs after 150 s, and nothing after 1,200 s."""
    belief = Empirical([100.0, 300.0, 1000.0], [0.5, 0.25, 0.25])
    later = belief.given(150.0)
    assert isinstance(later, Empirical)
    assert later.values.tolist() == [300, 1000]
    assert later.probabilities.tolist() == [0.5, 0.5]
    assert later.mean() == 650.0
    assert belief.survival(1200.0) == 0.0


def test_observed_usage():
    """G14: usage weighted by how long it lasted; equal values count as one."""
    usage = convolved([Empirical([0.2, 0.5, 0.2], [10.0, 20.0, 10.0])])
    assert usage.values.tolist() == [0.2, 0.5]
    assert usage.probabilities.tolist() == [0.5, 0.5]
    histogram = Histogram.from_values([0.2, 0.5, 0.2, 0.5])
    assert histogram.centroids.tolist() == [0.2, 0.5]


def test_streaming_histogram():
    """G4: the bins of the paper's example, by insertion and by merging."""
    values = [23, 19, 10, 16, 36, 2, 9, 32, 30, 45]
    whole = Histogram.from_values(values, 5)
    assert whole.centroids == pytest.approx([2, 9.5, 58 / 3, 98 / 3, 45])
    assert whole.counts.tolist() == [1, 2, 3, 3, 1]
    assert float(whole.cumulative(15.0)) * 10 == pytest.approx(3.275065, abs=1e-6)
    assert whole.quantile(1 / 3) == pytest.approx(15.222891, abs=1e-6)
    assert whole.quantile(2 / 3) == pytest.approx(28.962963, abs=1e-6)
    both = merged(Histogram.from_values(values[:7], 5), Histogram.from_values(values[7:], 5))
    assert both.centroids == pytest.approx(whole.centroids)
    assert both.counts.tolist() == whole.counts.tolist()


def test_interpolated_cumulative():
    """G24: the end bins stand on the extremes only where those are their centroids."""
    belief = Histogram.from_values([10, 20, 30, 40, 100], 3)
    assert belief.centroids.tolist() == [15, 35, 100]
    at = [9, 12.5, 15, 20, 35, 60, np.nextafter(100, 0), 100]
    expected = [0, 0.05, 0.2, 0.3, 0.6, 0.739053, 0.9, 1]
    assert belief.cumulative(at) == pytest.approx(expected, abs=1e-6)
