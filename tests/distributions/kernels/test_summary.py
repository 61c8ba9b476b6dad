"""Summary rows of known distributions."""

import math

import numpy as np
import pytest

from foresail.distributions.kernels.summary import (
    summarise_atoms,
    summarise_piecewise,
    summarise_point,
)
from foresail.kernels.columns import SUMMARY_COLUMNS


@pytest.mark.parametrize(("value", "urgency"), [(4.0, 0.1), (10.0, 0.1), (40.0, 0.025)])
def test_point(value, urgency):
    """All columns are the value; urgency is bounded at ten seconds."""
    row = np.empty(SUMMARY_COLUMNS)
    summarise_point(value, row)
    assert row.tolist() == [value] * 6 + [urgency]


def test_uniform():
    """Uniform on 0 to 100 s: mean 50, quantiles in proportion, urgency (1 + ln 10) / 100."""
    row = np.empty(SUMMARY_COLUMNS)
    summarise_piecewise(np.array([0.0, 1.0]), np.array([0.0, 100.0]), row)
    assert row == pytest.approx([50, 10, 25, 50, 75, 90, (1 + math.log(10)) / 100])


def test_piecewise_with_an_atom():
    """Half the mass at 20 s, half uniform on 20 to 60 s."""
    row = np.empty(SUMMARY_COLUMNS)
    summarise_piecewise(np.array([0.0, 0.5, 1.0]), np.array([20.0, 20.0, 60.0]), row)
    urgency = 0.5 / 20 + 0.5 * math.log(3) / 40
    assert row == pytest.approx([30, 20, 20, 20, 40, 52, urgency])


def test_atoms():
    """A quantile is the first atom whose cumulative probability reaches the level."""
    probabilities = np.array([0.25, 0.25, 0.5])
    row = np.empty(SUMMARY_COLUMNS)
    summarise_atoms(np.array([5.0, 20.0, 100.0]), probabilities, np.cumsum(probabilities), row)
    assert row == pytest.approx([56.25, 5, 5, 20, 100, 100, 0.25 / 10 + 0.25 / 20 + 0.5 / 100])
