"""Many distributions on a slot grid, against each one's own methods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.histogram import Histogram
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.packed import PackedDistributions
from made_distributions import DISTRIBUTIONS, SECONDS

OFFSETS = np.array([0.0, 0.5, 10.0, 1_000.0, 1_000.0, 50_000.0, 3e6])


@given(st.lists(DISTRIBUTIONS, min_size=1, max_size=5), st.data())
def test_grid_is_given_then_survival(beliefs, data):
    """Row by row what ``given(elapsed)`` says at elapsed + offset, where something is left."""
    elapsed = np.array(data.draw(st.lists(SECONDS, min_size=len(beliefs), max_size=len(beliefs))))
    packed = PackedDistributions.pack(beliefs)
    grid, left = packed.survival_grid(elapsed, OFFSETS), packed.left(elapsed)
    assert len(packed) == len(beliefs)
    assert np.all((grid >= 0.0) & (grid <= 1.0))
    assert np.all(np.diff(grid, axis=1) <= 1e-12)
    for i, (belief, since) in enumerate(zip(beliefs, elapsed, strict=True)):
        if since > 0.0:
            assert left[i] == pytest.approx(float(belief.survival(since)), abs=1e-9)
        else:
            assert left[i] == 1.0
        if left[i] > 1e-6:
            slow = belief.given(since).survival(since + OFFSETS)
            assert grid[i] == pytest.approx(slow, abs=1e-6)
            assert since == 0.0 or grid[i, 0] == pytest.approx(1.0)


def test_nothing_left_is_a_row_of_zeros():
    """As a point at the elapsed time has it."""
    beliefs = [
        Point(5.0),
        Uniform(0.0, 10.0),
        Histogram.from_values([1.0, 2.0]),
        LogNormal(0.0, 1.0, 9.0),
    ]
    packed = PackedDistributions.pack(beliefs)
    assert packed.left([5.0, 10.0, 2.0, 9.0]).tolist() == [0.0] * 4
    assert not packed.survival_grid([5.0, 10.0, 2.0, 9.0], OFFSETS).any()


def test_unknown_kinds_are_packed_by_their_quantiles():
    """Linear between the levels of a belief row; without an end they are refused."""

    class Foreign:
        def __init__(self, inner):
            self.quantile = inner.quantile

    packed = PackedDistributions.pack([Foreign(Uniform(0.0, 10.0))])
    assert packed.survival_grid([2.5], [0.0, 2.5])[0] == pytest.approx([1.0, 2 / 3])
    with pytest.raises(ValueError, match="finite largest value"):
        PackedDistributions.pack([Foreign(LogNormal(1.0, 1.0))])


def test_nothing_is_packed_into_nothing():
    """No distributions, or no slots: an empty matrix."""
    assert PackedDistributions.pack([]).survival_grid([], [0.0, 1.0]).shape == (0, 2)
    assert PackedDistributions.pack([Point(1.0)]).survival_grid([0.0], []).shape == (1, 0)


@pytest.mark.parametrize(
    ("elapsed", "offsets", "words"),
    [
        ([0.0, 1.0], [0.0], "one per distribution"),
        ([-1.0], [0.0], "not negative"),
        ([np.nan], [0.0], "finite"),
        ([0.0], [1.0, 0.0], "ascend"),
        ([0.0], [-1.0, 0.0], "negative"),
        ([0.0], [np.nan], "ascend"),
    ],
)
def test_nonsense_is_refused(elapsed, offsets, words):
    """Elapsed times must fit, and the grid must ascend from 0 or later."""
    with pytest.raises(ValueError, match=words):
        PackedDistributions.pack([Point(1.0)]).survival_grid(elapsed, offsets)
