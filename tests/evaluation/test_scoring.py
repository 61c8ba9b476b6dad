"""Scores of one belief: CRPS and levels against slow references."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.evaluation import _loop as scoring
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS

continuous_ranked_probability_score = compiled(scoring.continuous_ranked_probability_score)
level_at_or_below = compiled(scoring.level_at_or_below)
level_below = compiled(scoring.level_below)
tame_belief = compiled(scoring.tame_belief)

LEVELS = np.array(BELIEF_LEVELS)
AMOUNTS = st.floats(0.0, 1e6)
ROWS = st.lists(st.integers(0, 40), min_size=BELIEF_COLUMNS, max_size=BELIEF_COLUMNS).map(
    lambda values: np.sort(np.array(values, dtype=np.float64))
)


def slow_crps(row, truth, steps=200_000):
    """Twice the pinball loss at the middle of many equal steps of the level."""
    level = (np.arange(steps) + 0.5) / steps
    above = truth - np.interp(level, LEVELS, row)
    return float(2.0 * np.maximum(level * above, (level - 1.0) * above).mean())


@given(value=AMOUNTS, truth=AMOUNTS)
def test_crps_of_a_point_is_its_absolute_error(value, truth):
    """For one number the CRPS is how far it is off."""
    row = np.full(BELIEF_COLUMNS, value)
    expected = pytest.approx(abs(value - truth), rel=1e-9, abs=1e-9)
    assert continuous_ranked_probability_score(row, truth) == expected


@pytest.mark.parametrize("seed", range(6))
def test_crps_is_the_pinball_loss_over_all_levels(seed):
    """The closed form is the integral, wherever the truth lies, atoms included."""
    generator = np.random.default_rng(seed)
    row = np.sort(generator.integers(0, 60, BELIEF_COLUMNS).astype(np.float64))
    for truth in (0.0, row[0], 17.0, 30.5, row[13], row[-1], 80.0):
        expected = pytest.approx(slow_crps(row, truth), rel=1e-4, abs=1e-4)
        assert continuous_ranked_probability_score(row, truth) == expected


def test_crps_of_a_uniform_belief():
    """Uniform on 0 to 1: a third at the ends, a twelfth in the middle (closed form)."""
    for truth, expected in ((0.0, 1 / 3), (1.0, 1 / 3), (0.5, 1 / 12), (2.0, 4 / 3)):
        assert continuous_ranked_probability_score(LEVELS, truth) == pytest.approx(expected)


@given(row=ROWS, truth=st.integers(-2, 42).map(float))
def test_levels_enclose_the_quantiles(row, truth):
    """Below the truth lie the levels whose quantiles are less, at it those that equal it."""
    below, reached = level_below(row, truth), level_at_or_below(row, truth)
    assert 0.0 <= below <= reached <= 1.0
    less, same = LEVELS[row < truth], LEVELS[row <= truth]
    assert below >= (less[-1] if less.size else 0.0)
    assert reached >= (same[-1] if same.size else 0.0)
    more = LEVELS[row > truth]
    assert reached <= (more[0] if more.size else 1.0)
    if not (row == truth).any():
        assert below == pytest.approx(reached)


def test_level_within_a_piece_and_at_an_atom():
    """Linear between quantiles; an atom spans its levels."""
    assert level_at_or_below(LEVELS, 0.3125) == pytest.approx(0.3125)
    row = np.where(LEVELS < 0.25, 0.0, 10.0)
    assert level_below(row, 10.0) == pytest.approx(0.25)
    assert level_at_or_below(row, 10.0) == 1.0
    assert level_below(row, 0.0) == 0.0
    assert level_at_or_below(row, 0.0) == pytest.approx(0.2)


def test_beliefs_are_made_finite():
    """An endless belief keeps its last finite quantile; one that says nothing is refused."""
    row = np.array([*np.arange(BELIEF_COLUMNS - 2.0), 3.0, math.inf])
    assert tame_belief(row)
    assert row[-3:].tolist() == [BELIEF_COLUMNS - 3.0] * 3
    assert not tame_belief(np.full(BELIEF_COLUMNS, math.nan))
    assert not tame_belief(np.full(BELIEF_COLUMNS, math.inf))
