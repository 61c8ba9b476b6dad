"""The odds that all of a job's tasks are in time."""

import numpy as np
import pytest

from foresail.schedulers.kernels.pilots import in_time


def test_the_odds_of_two_waves_by_drawing():
    """Forty tasks on twenty slots: nineteen after one another at the mean, the last ones drawn."""
    sigma = np.sqrt(np.log1p(0.5))
    random = np.random.default_rng(1)
    last = 7.0 * np.exp(sigma * random.standard_normal((20_000, 20)) - sigma**2 / 2)
    share = float((last.max(axis=1) <= 30.0 - 7.0).mean())
    error = 5.0 * np.sqrt(share * (1.0 - share) / 20_000)
    assert in_time(7.0, 0.5, 40.0, 20.0, 30.0) == pytest.approx(share, abs=error)
    assert 0.2 < share < 0.8


def test_odds_without_variation_or_time():
    """Certain or impossible; nothing is in time once the tasks before the last have used it up."""
    assert in_time(7.0, 0.0, 4.0, 2.0, 14.0) == 1.0
    assert in_time(7.0, 0.0, 4.0, 2.0, 13.9) == 0.0
    assert in_time(7.0, 0.5, 4.0, 2.0, 7.0) == 0.0
    assert in_time(0.0, 0.0, 4.0, 2.0, 0.0) == 1.0
    assert in_time(0.0, 0.0, 4.0, 2.0, -1.0) == 0.0
